"""One visual language: the same colour, marker and dash for the same method everywhere.

A **family** of risks has a colour and a marker; its **correction** is told by the dash of a
line and by how full a marker is: ABS solid and full, ReLU dashed and pale, none dotted and
hollow; the guided likelihood dashed and full. Supervised training and the annotator are no
rivals and are grey.

The colours began as those of Okabe and Ito and were moved as little as it took for every two
of them to stay 20 apart in CIE L*a*b*, for readers with normal sight and for those without
red or green cones (Machado et al., 2009), and for each to have a contrast of 3 to 1 with the
page; there is a second set for dark pages. Colour is never the only sign: markers differ too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "DARK_PAGE",
    "FAMILIES",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SPREAD",
    "STYLE",
    "YELLOW",
    "MethodStyle",
    "axis_label",
    "label_axes",
    "method_style",
]

Dash = Literal["solid", "dashed", "dotted"]

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, YELLOW, GREY = "#CC79A7", "#E69F00", "#666666"
"""Okabe and Ito's colours, for what is no method; grey for what only explains."""

DARK_PAGE = "#1c1f25"
"""What figures stand on where the reader prefers a dark page; otherwise it is white."""

SPREAD = "± one standard deviation over seeds"
"""What bars and bands of the experiments show."""

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
FAMILIES = tuple(_FAMILIES)
"""The families that have a colour of their own."""

_OTHER = (GREY, "#a7afbc", "x")
_CORRECTIONS: dict[str, tuple[Dash, float]] = {
    "none": ("dotted", 0.0),
    "relu": ("dashed", 0.45),
    "abs": ("solid", 1.0),
    "guided": ("dashed", 1.0),
}
_UNCORRECTED = ("supervised", "annotator")

STYLE: Any = {  # the type of its keys differs between versions of matplotlib
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
    "svg.hashsalt": "pairlearn",  # or every SVG would differ from the one before
    "svg.fonttype": "none",
}
"""Settings of matplotlib that every figure is drawn and saved with."""


@dataclass(frozen=True)
class MethodStyle:
    """How a method looks.

    Colours are for a white and a dark page, the marker is in matplotlib's letters, and ``fill``
    (1, 0.45 or 0) says how full it is.
    """

    color: str
    dark_color: str
    marker: str
    dash: Dash
    fill: float

    def line(self) -> dict[str, Any]:
        """What ``Axes.plot`` takes for its line with markers."""
        return {"linestyle": self.dash, **self.points()}

    def points(self) -> dict[str, Any]:
        """What ``Axes.plot`` takes for its markers alone, beside ``linestyle=""``."""
        face = (self.color, self.fill) if self.fill else "white"
        return {"color": self.color, "marker": self.marker, "markerfacecolor": face}


def method_style(name: str) -> MethodStyle:
    """The style of a name of the catalogue such as "convex-0.5-abs", "supervised" or "annotator".

    A family without a colour here has that of its risk's ``look``, or is grey with crosses.
    """
    family, _, rest = name.partition("-")
    color, dark, marker = _FAMILIES.get(family) or _own_look(family)
    correction = rest.rpartition("-")[2]
    if family in _UNCORRECTED:
        correction = "abs"  # whole and solid
    dash, fill = _CORRECTIONS.get(correction, _CORRECTIONS["none"])
    return MethodStyle(color, dark, marker, dash, fill)


def _own_look(family: str) -> tuple[str, str, str]:
    """The look that a risk of the catalogue gives itself."""
    from pairlearn.risks import RISKS

    return (RISKS[family].look if family in RISKS else None) or _OTHER


def axis_label(quantity: str, unit: str | None = None) -> str:
    """A quantity with its unit; None for a plain parameter such as γ."""
    return quantity if unit is None else f"{quantity} ({unit})"


def label_axes(
    ax: Axes, x: str, y: str, *, x_unit: str | None = None, y_unit: str | None = None
) -> Axes:
    """Label both axes with their quantities and units."""
    ax.set(xlabel=axis_label(x, x_unit), ylabel=axis_label(y, y_unit))
    return ax
