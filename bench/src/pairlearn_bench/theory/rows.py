"""Rows of numbers, and helpers for computing and drawing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pairlearn.columns import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, list[Row]]


def log_log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y against log x by least squares: the exponent of a power law.

    Examples
    --------
    >>> round(log_log_slope([1, 10, 100], [5, 0.5, 0.05]), 6)
    -1.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def rounded(row: Row) -> Row:
    """Round to six digits, since further ones differ between machines."""
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in plain.items()}


def where(rows: Sequence[Row], name: str, value: object) -> list[Row]:
    """The rows with this value in a column."""
    return [row for row in rows if row[name] == value]


def columns(rows: Sequence[Row], *names: str) -> list[list[Any]]:
    """The values of these columns."""
    return [[row[name] for row in rows] for name in names]


def normal_shape(z: Floats) -> Floats:
    """The standard normal density, up to its constant."""
    return np.exp(-(z**2) / 2)


def row_of_panels(
    size: tuple[float, float], widths: Sequence[float], sharey: bool = False
) -> tuple[Figure, Any]:
    """A figure of this size in inches with axes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=list(widths), sharey=sharey)
    return figure, axes


def note(ax: Axes, text: str, at: Any, shift: tuple[float, float], **style: Any) -> None:
    """Annotate a point with text, shifted by so many points."""
    style.setdefault("fontsize", 7)
    ax.annotate(text, at, xytext=shift, textcoords="offset points", **style)
