"""The style of figures: one colour, marker and dash for each method everywhere.

A **family** of risks has a colour and a marker; its **correction** determines the dash of a line
and the fill of a marker: ABS solid and full, ReLU dashed and pale, none dotted and hollow; the
guided likelihood is dashed and hollow. Supervised training and the annotator, which are references
rather than competitors, are grey.

The colours are those of Okabe and Ito, changed as little as possible. Any two are 20 apart in CIE
L*a*b*, for normal sight and without red or green cones (Machado et al., 2009). Each has a contrast
of 3 to 1 with the page; there is a second set for dark pages. Markers differ, so that colour is
never the only cue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Dash = Literal["solid", "dashed", "dotted"]

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
#: Okabe and Ito's colours, for everything but methods; grey for annotations.
PURPLE, YELLOW, GREY = "#CC79A7", "#E69F00", "#666666"

#: The background of figures for readers who prefer a dark page; otherwise it is white.
DARK_PAGE = "#1c1f25"

#: The meaning of bars and bands in the figures of experiments.
SPREAD = "± one standard deviation over seeds"

_FAMILIES: dict[str, tuple[str, str, str]] = {  # colour, colour on a dark page, marker
    "sconfconfdiff": ("#1c74b3", "#468bc0", "o"),
    "convex": ("#885700", "#fbc856", "s"),
    "sconf": ("#e96e16", "#ed7239", "^"),
    "confdiff": ("#8f2b75", "#fea5db", "v"),
    "nonnegative": ("#4b3aa8", "#8b7cee", "P"),
    "likelihood": ("#1d9f70", "#36d0a0", "D"),
    "supervised": ("#232222", "#f7f6f6", "X"),
    "annotator": ("#828a96", "#88939d", "*"),
}
#: The families with their own colour.
FAMILIES = tuple(_FAMILIES)

_OTHER = (GREY, "#a7afbc", "x")
_CORRECTIONS: dict[str, tuple[Dash, float]] = {
    "none": ("dotted", 0.0),
    "relu": ("dashed", 0.45),
    "abs": ("solid", 1.0),
    "guided": ("dashed", 0.0),
}
_UNCORRECTED = ("supervised", "annotator")

#: Matplotlib settings for drawing and saving every figure.
STYLE: Any = {  # the type of the keys differs between versions of matplotlib
    "font.size": 8,
    "axes.titlesize": 9,
    "figure.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.handlelength": 2.6,  # long enough to tell dashes apart
    "svg.hashsalt": "pairlearn",  # otherwise every run writes other ids
    "svg.fonttype": "none",
}


@dataclass(frozen=True)
class MethodStyle:
    """The style of a method: colours on a white and a dark page, marker, dash and fill.

    The marker is a matplotlib code; ``fill`` is 1, 0.45 or 0.
    """

    color: str
    dark_color: str
    marker: str
    dash: Dash
    fill: float

    def line(self) -> dict[str, Any]:
        """Arguments of ``Axes.plot`` for its line with markers."""
        return {"linestyle": self.dash, **self.points()}

    def points(self) -> dict[str, Any]:
        """Arguments of ``Axes.plot`` for its markers alone, in addition to ``linestyle=""``."""
        face = (self.color, self.fill) if self.fill else "white"
        return {"color": self.color, "marker": self.marker, "markerfacecolor": face}


def method_style(name: str) -> MethodStyle:
    """The style of a method such as "convex-0.5-abs", "supervised" or "annotator".

    A family without its own colour has the ``look`` of its risk, or is grey with crosses.
    """
    family, _, rest = name.partition("-")
    color, dark, marker = _FAMILIES.get(family) or _own_look(family)
    correction = rest.rpartition("-")[2]
    if family in _UNCORRECTED:
        correction = "abs"  # full and solid
    dash, fill = _CORRECTIONS.get(correction, _CORRECTIONS["none"])
    return MethodStyle(color, dark, marker, dash, fill)


def _own_look(family: str) -> tuple[str, str, str]:
    """The ``look`` of a risk of the catalogue."""
    from pairlearn.risks import RISKS

    return (RISKS[family].look if family in RISKS else None) or _OTHER


def label_axes(ax: Axes, x: str, y: str) -> Axes:
    """Label both axes with their quantities, and units in parentheses."""
    ax.set(xlabel=x, ylabel=y)
    return ax
