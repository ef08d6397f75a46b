"""Rows of numbers, what every subject computes them with, and the layout of its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats: TypeAlias = NDArray[np.float64]
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
    """Numbers with six digits: what is beyond them differs between machines.

    Examples
    --------
    >>> rounded({"n": np.int64(30), "rmse": 2 / 3})
    {'n': 30, 'rmse': 0.666667}
    """
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else _plain(value)
        for name, value in row.items()
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def sigmoid(z: Floats) -> Floats:
    """Probability of a logit.

    Examples
    --------
    >>> sigmoid(np.zeros(1))
    array([0.5])
    """
    return 1 / (1 + np.exp(-z))


def logit(p: float) -> float:
    """Logit of a probability.

    Examples
    --------
    >>> logit(0.5)
    0.0
    """
    return math.log(p / (1 - p))


def normal_shape(z: Floats) -> Floats:
    """The standard normal density, up to its constant.

    Examples
    --------
    >>> normal_shape(np.zeros(1))
    array([1.])
    """
    return np.exp(-(z**2) / 2)


def row_of_panels(
    size: tuple[float, float], widths: Sequence[float], sharey: bool = False
) -> tuple[Figure, Any]:
    """A figure of this size in inches, and its axes side by side.

    Examples
    --------
    >>> _, axes = row_of_panels((6, 3), (1, 2))
    >>> len(axes)
    2
    """
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=list(widths), sharey=sharey)
    return figure, axes
