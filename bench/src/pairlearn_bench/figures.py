"""Figures of the experiments: plots into given axes, and whole figures as files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairlearn.report.figures import save_figure, styled
from pairlearn.style import GREY, SPREAD, label_axes, method_style
from pairlearn_bench.cells import (
    Cell,
    PublishedCell,
    condition_of,
    index_cells,
    match,
    published_accuracy,
)
from pairlearn_bench.runs import CORRECTIONS, Method, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCALE = "log-error scale"
_ACCURACY_TICKS = (0.2, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
_PUBLISHED: dict[str, Any] = {"color": GREY, "marker": "|"}
_LEAST_WIDTH, _LINE = 4.2, 0.16  # inches: of a figure with one panel, and of a line of text
_LETTERS = 14  # of a title in an inch
_LEAST_ERROR = 5e-4  # an error of 0 cannot be drawn on a logarithmic axis


def plot_gamma(cells: Sequence[Cell], ax: Axes) -> Axes:
    """The convex combination from ConfDiff (γ = 0) to Sconf (γ = 1), for each correction.

    The cells are of one data set and prior. Bands are ±1 standard deviation over seeds; the axis
    is logarithmic in the error, see :func:`plot_accuracy`.
    """
    for correction in CORRECTIONS:
        line = [c for c in cells if c.gamma is not None and c.method.correction == correction]
        title = Method("convex", None, correction).correction_title
        style = method_style(f"convex-{correction}").line()
        _plot_line(ax, line, lambda cell: cell.gamma, label=title, **style)
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    ax.set_xlim(-0.03, 1.03)
    _scale_by_error(ax, "y", cells)
    return label_axes(ax, "γ (share of Sconf)", f"accuracy ({_SCALE})")


def plot_limited(cells: Sequence[Cell], ax: Axes) -> Axes:
    """Accuracy against the number of pairs, a line for each method.

    The cells are of one data set and prior. Bands are ±1 standard deviation over seeds; the axis
    is logarithmic in the error, see :func:`plot_accuracy`.
    """
    for name, line in grouped(cells, lambda cell: cell.config.method).items():
        style = method_style(name).line() | {"label": line[0].method.title}
        _plot_line(ax, line, lambda cell: cell.config.n_training_pairs, **style)
    _scale_by_error(ax, "y", cells)
    ax.locator_params("x", nbins=4)  # five-digit numbers need room
    return label_axes(ax, "training pairs (number)", f"accuracy ({_SCALE})")


def plot_robustness_heatmap(
    cells: Sequence[Cell], ax: Axes, limits: tuple[float, float] | None = None
) -> Axes:
    """Heat map with numbers: accuracy of one method on one data set for every ε and σ.

    ``limits`` are the accuracies at the ends of the colour scale, by default those of the cells.
    """
    indexed = index_cells(cells, lambda c: (c.config.prior_factor, c.config.label_noise))
    factors = sorted({factor for factor, _ in indexed})
    noises = sorted({noise for _, noise in indexed})
    means = np.full((len(factors), len(noises)), np.nan)
    for (factor, noise), cell in indexed.items():
        means[factors.index(factor), noises.index(noise)] = cell.mean
    if means.size:
        low, high = limits or (float(np.nanmin(means)), float(np.nanmax(means)))
        edges = [np.arange(size + 1) - 0.5 for size in means.shape]
        ax.pcolormesh(*edges[::-1], means, vmin=low, vmax=high, cmap="viridis")
        for (i, j), mean in np.ndenumerate(means):
            if np.isfinite(mean):
                dark = mean < low + 0.6 * (high - low)
                style: dict[str, Any] = {"color": "0.99" if dark else "0.05", "fontsize": 7}
                ax.text(j, i, f"{mean:.3f}", ha="center", va="center", **style)
    ax.set_xticks(range(len(noises)), [f"{noise:g}" for noise in noises])
    ax.set_yticks(range(len(factors)), [f"{factor:g}" for factor in factors])
    ax.set(xlabel="label noise σ", ylabel="prior factor ε")
    return ax


def plot_accuracy(cells: Sequence[Cell], ax: Axes) -> Axes:
    """Every method with its published number, and the supervised accuracy as a line.

    The cells are of one data set and prior. The axis is logarithmic in the error, so that 0.98 and
    0.99 are as far apart as 0.90 and 0.95. Bars are ±1 standard deviation over seeds. Published
    numbers were measured on the paper's test subset, so only cells of that subset have them.
    """
    published = match([c for c in cells if c.test_subset == "paper"], published_accuracy())
    weak = [cell for cell in cells if cell.method.is_weak]
    rows = [cell.method.title for cell in weak]
    for row, cell in enumerate(weak):
        style = method_style(cell.config.method).points()
        _plot_error(ax, row - 0.17, cell.mean, cell.std, style)
        if printed := published.get(cell):
            _plot_error(ax, row + 0.17, printed.mean, printed.std, _PUBLISHED)
    for cell in cells:
        if not cell.method.is_weak:
            color = method_style("supervised").color
            ax.axvline(1 - cell.mean, color=color, ls="--", lw=1.0, label="supervised, ours")
    annotator = [cell.annotator for cell in weak[:1] if cell.annotator is not None]
    for accuracy in annotator:
        _plot_error(ax, len(rows), accuracy, 0.0, method_style("annotator").points())
        rows.append("Annotator")
    if published:
        ax.plot([], [], ls="", ms=4, label="published", **_PUBLISHED)
    if weak:
        ax.plot([], [], "o", ms=3.5, color=GREY, label="ours, coloured by method")
    _scale_by_error(ax, "x", [*cells, *published.values()], annotator)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    ax.grid(axis="y", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(f"accuracy ({_SCALE})")
    return ax


def _plot_line(
    ax: Axes, cells: Sequence[Cell], x: Callable[[Cell], float | None], **style: Any
) -> None:
    points = sorted((x(cell) or 0.0, *_errors(cell.mean, cell.std)) for cell in cells)
    if not points:
        return
    position, error, low, high = np.array(points).T
    ax.plot(position, error, ms=3.8, mew=0.9, lw=1.3, **style)
    ax.fill_between(position, low, high, color=style["color"], alpha=0.18, lw=0)


def _plot_error(ax: Axes, y: float, mean: float, std: float, style: dict[str, Any]) -> None:
    error, low, high = _errors(mean, std)
    span = [[error - low], [high - error]]
    ax.errorbar([error], [y], xerr=span, ls="", ms=3.8, mew=0.9, lw=1, **style)


def _errors(mean: float, std: float) -> tuple[float, float, float]:
    """An error and the ends of its spread, limited to what a logarithmic axis can show."""
    error = max(1 - mean, _LEAST_ERROR)
    return error, max(error - std, error / 3), min(error + std, 1.0)


def _scale_by_error(
    ax: Axes,
    name: Literal["x", "y"],
    cells: Sequence[Cell | PublishedCell],
    others: Sequence[float] = (),
) -> None:
    """Scale an axis by the logarithm of the error, with accuracies as tick labels."""
    spans = [_errors(cell.mean, cell.std) for cell in cells] + [_errors(a, 0.0) for a in others]
    if not spans:
        return
    low, high = min(span[1] for span in spans) / 1.15, max(span[2] for span in spans) * 1.15

    def has_room(tick: float, other: float) -> bool:
        """Whether labels are far enough apart; side by side, long ones need more."""
        share = math.log((1 - tick) / (1 - other)) / math.log(high / low)
        return share > (0.025 * len(f"{tick:g}{other:g}") if name == "x" else 0.16)

    ticks: list[float] = []
    for tick in (t for t in _ACCURACY_TICKS if low <= 1 - t <= high):
        if not ticks or has_room(ticks[-1], tick):
            ticks.append(tick)
    axis = ax.xaxis if name == "x" else ax.yaxis
    ax.set(**{f"{name}lim": (high, low), f"{name}scale": "log"})
    axis.set_ticks([1 - tick for tick in ticks], [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


@dataclass(frozen=True)
class Panel:
    """One plot: a data set at a class prior, or under noise a method on a data set."""

    figure: str
    title: str
    within: str
    cells: list[Cell]
    plot: Callable[[Sequence[Cell], Axes], Axes]

    @property
    def name(self) -> str:
        """The title of the panel on its own."""
        return f"{self.title}, {self.within}"


#: The plot of a data set at a class prior, by experiment.
PLOTS: dict[str, Callable[[Sequence[Cell], Axes], Axes]] = {
    "accuracy": plot_accuracy,
    "gamma": plot_gamma,
    "limited": plot_limited,
}

#: The experiments with figures; the siblings have only a table.
DRAWN = (*PLOTS, "robustness")


def panels(grid: str, cells: Sequence[Cell]) -> list[Panel]:
    """The plots of an experiment on one test subset; none if it is not in ``DRAWN``."""
    if grid not in DRAWN:
        return []
    if grid == "robustness":
        return list(_heat_maps(cells))
    indexed = index_cells(cells, lambda c: (*condition_of(c), c.config.method, c.config.variant))
    groups = grouped(indexed.values(), lambda cell: (cell.config.prior, cell.dataset_title))
    several = any(len(cell.seeds) > 1 for cell in cells)

    def titled(title: str, group: Sequence[Cell]) -> str:
        alone = several and all(len(cell.seeds) == 1 for cell in group)
        run = group[0].config
        changed = [f"{run.epochs} epochs"] * any("epochs" in change for change in run.changes)
        notes = [note for note in changed if note not in title] + ["one seed"] * alone
        return ", ".join([title, *notes])

    return [
        Panel(f"{grid}-{prior:g}", titled(title, group), f"prior {prior:g}", group, PLOTS[grid])
        for (prior, title), group in sorted(groups.items(), key=lambda group: group[0][0])
    ]


def _heat_maps(cells: Sequence[Cell]) -> Iterator[Panel]:
    """A plot for each method, with one colour scale per data set."""
    for title, group in grouped(cells, lambda cell: cell.dataset_title).items():
        limits = min(cell.mean for cell in group), max(cell.mean for cell in group)
        plot = partial(plot_robustness_heatmap, limits=limits)
        run = group[0].config
        variant = f"-{run.images}-{run.model}" if run.variant else ""
        within = f"{title}, prior {run.prior:g}"
        for method, members in grouped(group, lambda cell: cell.method.title).items():
            yield Panel(f"robustness-{run.dataset}{variant}", method, within, members, plot)


def draw_figures(grid: str, cells: Sequence[Cell]) -> list[tuple[str, Figure]]:
    """Draw every figure of an experiment on one test subset, each with a name for its file."""
    with styled("a figure"):
        figures = grouped(panels(grid, cells), lambda panel: panel.figure)
        return [(name, _figure(grid, parts)) for name, parts in figures.items()]


def _figure(grid: str, parts: Sequence[Panel]) -> Figure:
    """A figure of several panels with a common title."""
    title = f"{parts[0].within}, {parts[0].cells[0].test_subset} test subset"
    if grid != "robustness" and any(len(cell.seeds) > 1 for part in parts for cell in part.cells):
        title += f"; {'bars' if grid == 'accuracy' else 'bands'} {SPREAD}"
    if grid == "robustness":
        figure = _compose(parts, (2.6, 2.2), title, columns=2, share_rows=True)
        heat_map = figure.axes[0].collections[0]  # all have the same scale
        figure.colorbar(heat_map, ax=figure.axes, label="accuracy (share correct)")
        return figure
    if grid != "accuracy":
        return _compose(parts, (2.1, 1.9), title)
    rows = {tuple(c.config.method for c in part.cells if c.method.is_weak) for part in parts}
    size = (2.1, 0.13 * max(map(len, rows)) + 0.75)
    # With the same methods in every panel, only the panels on the left name them.
    return _compose(parts, size, title, label_width=1.2, share_rows=len(rows) == 1)


def save_figures(
    grid: str,
    cells: Sequence[Cell],
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Draw every figure of an experiment, write it in every format, and return the files."""
    return [
        save_figure(figure, Path(folder, f"{name}.{kind}"))
        for name, figure in draw_figures(grid, cells)
        for kind in formats
    ]


def _compose(
    parts: Sequence[Panel],
    size: tuple[float, float],
    title: str,
    *,
    columns: int = 3,
    label_width: float = 0.2,
    share_rows: bool = False,
) -> Figure:
    """Arrange panels of this size in at most so many columns, with one legend below."""
    from matplotlib.figure import Figure

    rows = -(-len(parts) // columns)
    columns = -(-len(parts) // rows)
    width = columns * size[0] + (1 if share_rows else columns) * label_width
    stretch = max(1.0, _LEAST_WIDTH / width)
    width *= stretch
    figure = Figure(layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(parts) :]:
        ax.set_visible(False)
    labelled: dict[str, Any] = {}
    for number, (part, ax) in enumerate(zip(parts, grid.flat, strict=False)):
        part.plot(part.cells, ax).set_title(fill(part.title, int(_LETTERS * size[0] * stretch)))
        if number % columns:
            ax.set_ylabel("")
            if share_rows:
                ax.tick_params(labelleft=False)
        if number + columns < len(parts):
            ax.set_xlabel("")
        handles, labels = ax.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    lines = -(-len(labelled) // max(1, int(width / 1.75)))
    if labelled:
        below: Any = {"loc": "outside lower center", "ncols": -(-len(labelled) // lines)}
        figure.legend(list(labelled.values()), list(labelled), **below)
    heading = fill(title, int(_LETTERS * width))
    texts = lines + heading.count("\n") + max(ax.get_title().count("\n") for ax in figure.axes)
    figure.set_size_inches(width, rows * size[1] * stretch**0.5 + 0.35 + _LINE * texts)
    figure.suptitle(heading)
    return figure
