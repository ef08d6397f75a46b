"""Figures of both reports, drawn into axes and embedded in a page or written to a file."""

from __future__ import annotations

import io
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.atomic import replacing
from pairlearn.extras import missing_extra
from pairlearn.style import BLUE, FAMILIES, GREEN, GREY, ORANGE, STYLE, label_axes, method_style

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairlearn.annotators import Annotator
    from pairlearn.evaluation import CalibrationCurve

_PAGE_COLOURS = {  # colours of the figures, by the page's own names for them
    **dict.fromkeys(("#000000", "#262626"), "ink"),
    **dict.fromkeys((GREY, "#999999", "#595959"), "soft"),
    **dict.fromkeys(("#e5e5e5", "#e6e6e6", "#cccccc"), "line"),
    **dict.fromkeys(("#ebebeb", "#f0f0f0"), "tint"),
    "#ffffff": "card",
    BLUE.lower(): "accent",
    ORANGE.lower(): "doubt",
} | {method_style(family).color: family for family in FAMILIES}
_COLOUR = re.compile("|".join(_PAGE_COLOURS), re.IGNORECASE)


@contextmanager
def styled(purpose: str) -> Iterator[None]:
    """Apply the style of all figures; without matplotlib, an error that names the purpose."""
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plot", "matplotlib", purpose) from None
    with matplotlib.rc_context(STYLE):
        yield


def draw(
    plot: Callable[[Axes], object],
    alt: str,
    size: tuple[float, float] = (3.6, 3.3),
    place: str = "",
) -> Markup:
    """Draw with `plot` into axes of a size in inches; inline SVG.

    ``alt`` describes the figure for screen readers; "" for mere decoration. ``place`` makes ids
    unique where a page has two copies.
    """
    from markupsafe import Markup, escape

    with styled("a report"):
        from matplotlib.figure import Figure

        figure = Figure(size, layout="constrained")
        plot(figure.subplots())
        content = io.StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    text = content.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = text[text.index("<svg") :].partition(">")[2]
    # Groups have the same ids in every figure; what is referred to, ids made from its content.
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    prefix = f"f{zlib.crc32((place + alt + text).encode()):x}"
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    text = re.sub(r' (d|x|y|transform)="[^"]*"', lambda match: _rounded(match[0]), text)
    text = _COLOUR.sub(lambda match: f"var(--{_PAGE_COLOURS[match[0].lower()]})", text)
    role = f'role="img" aria-label="{escape(alt)}"' if alt else 'aria-hidden="true"'
    box = " ".join(f"{72 * side:g}" for side in size)
    return Markup(f'<svg class="chart" viewBox="0 0 {box}" {role}>{text.strip()}')


def _rounded(attribute: str) -> str:
    return re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}", attribute)


def save_figure(
    figure: Figure, path: str | os.PathLike[str], description: str | None = None
) -> Path:
    """Write a figure to a .png, .svg or .pdf file, atomically.

    ``description``, such as its numbers as JSON, is kept in the metadata. Returns the path.
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".")
    metadata: dict[str, str | None] = {}
    if kind != "png":
        metadata["CreationDate" if kind == "pdf" else "Date"] = None
    if description is not None:
        metadata["Subject" if kind == "pdf" else "Description"] = description
    content = io.BytesIO()
    with styled("a figure"):
        figure.savefig(content, format=kind, dpi=150, metadata=metadata)
    with replacing(path) as part:
        part.write_bytes(content.getvalue())
    return path


def plot_calibration(curve: CalibrationCurve, ax: Axes) -> Axes:
    """Predicted probabilities against the shares that the judgements imply."""
    values = np.array([(rate.value, rate.low, rate.high) for rate in curve.implied])
    known = ~np.isnan(values[:, 0])
    value, low, high = values[known].T
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=0.9)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_box_aspect(1)
    span = np.maximum([value - low, high - value], 0)
    ax.errorbar(np.asarray(curve.predicted)[known], value, span, fmt="o", color=BLUE, ms=5, lw=1.3)
    return label_axes(ax, "predicted probability of positive", "share of positives")


def plot_histogram(probabilities: Any, threshold: float, ax: Axes) -> Axes:
    """Histogram of predicted probabilities, and the threshold."""
    ax.hist(probabilities, bins=20, range=(0, 1), color=BLUE, edgecolor="white", linewidth=0.7)
    ax.axvline(threshold, color="black", ls="--", lw=0.9)
    return label_axes(ax, "predicted probability of positive", "items (number)")


def plot_learning(history: Sequence[Mapping[str, float]], ax: Axes) -> Axes:
    """The risk in training, epoch by epoch."""
    epochs = [row["epoch"] for row in history]
    ax.plot(epochs, [row["risk"] for row in history], color=BLUE)
    return label_axes(ax, "epoch (passes over the pairs)", "risk (mean loss)")


def plot_annotators(people: Sequence[Annotator], ax: Axes) -> Axes:
    """Guesses, leans and spread of every annotator, with 95% intervals."""
    kinds = {
        "guesses": ("o", BLUE, [(p.guesses, p.guesses_error) for p in people]),
        "lean to “same”": ("^", ORANGE, [(p.leans[0], p.lean_errors[0]) for p in people]),
        "lean to the right": ("s", GREEN, [(p.leans[1], p.lean_errors[1]) for p in people]),
        "spread": ("D", GREY, [(p.spreads[0], p.spread_errors[0]) for p in people]),
    }
    ax.axvline(0, color="black", ls="--", lw=0.9)
    for number, (name, (marker, color, values)) in enumerate(kinds.items()):
        value, error = np.array(values).T
        # Shares and spreads are never below 0; leans may be.
        low = value - 1.96 * error if "lean" in name else np.maximum(value - 1.96 * error, 0)
        high = np.minimum(value + 1.96 * error, 1)
        at = np.arange(len(people)) + 0.18 * (number - 1.5)
        span = [value - low, high - value]
        ax.errorbar(value, at, xerr=span, fmt=marker, color=color, ms=5, lw=1.3, label=name)
    names = [_label(person.name, number) for number, person in enumerate(people, 1)]
    ax.set_yticks(range(len(people)), names, parse_math=False)
    ax.set_ylim(len(people) - 0.4, -0.6)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, handlelength=1)
    ax.set_xlabel("share of guesses, lean and spread; 0 is ideal")
    return ax


def evenly(count: int, most: int) -> Any:
    """At most `most` indices below `count`, evenly spaced, both ends included.

    Examples
    --------
    >>> evenly(9, 3)
    array([0, 4, 8])
    """
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _label(name: str, number: int) -> str:
    """A name, cut to fit; a number where fonts may lack its letters."""
    fits = name.isprintable() and all(ord(letter) < 256 or letter in "“”’" for letter in name)
    return name[:24] if name and fits else f"annotator {number}"
