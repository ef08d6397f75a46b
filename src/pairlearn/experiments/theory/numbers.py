"""Rows of numbers, and the functions that every subject computes them with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Floats",
    "Row",
    "Tables",
    "log_log_slope",
    "logit",
    "normal_shape",
    "rounded",
    "sigmoid",
]

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
