"""Axes of a chart: where a value stands, and which values are written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["Axis", "accuracy_axis", "nice_ticks", "span_of"]

_ACCURACIES = (0.2, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
LEAST_ERROR = 5e-4
"""An error of 0 has no place on a logarithmic axis."""


@dataclass(frozen=True)
class Axis:
    """A scale with its title and ticks.

    Parameters
    ----------
    title : str
        The quantity with its unit.
    low, high : float
        Values at its ends; the first may be the larger one.
    ticks : sequence of (float, str), optional
        Values that are written down, and how; round ones if not given.
    transform : callable, optional
        What the scale is even in; the value itself if not given.

    Examples
    --------
    >>> Axis("share", 0, 1).place(0.25)
    0.25
    >>> Axis("pairs", 10, 1000, transform=math.log10).place(100)
    0.5
    """

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    transform: Callable[[float], float] = field(default=float)

    def place(self, value: float) -> float:
        """Where a value stands, from 0 to 1; what lies outside stands at the end."""
        low, high = self.transform(self.low), self.transform(self.high)
        inside = min(max(value, min(self.low, self.high)), max(self.low, self.high))
        return (self.transform(inside) - low) / (high - low)

    def marks(self) -> Sequence[tuple[float, str]]:
        """The ticks."""
        return self.ticks or [
            (tick, f"{tick:g}".replace("-", "−")) for tick in nice_ticks(self.low, self.high)
        ]


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About so many round numbers within a span.

    Parameters
    ----------
    low, high : float
        The span.
    count : int
        How many there should be.

    Returns
    -------
    list of float

    Examples
    --------
    >>> nice_ticks(0.87, 0.993, 4)
    [0.88, 0.9, 0.92, 0.94, 0.96, 0.98]
    >>> nice_ticks(0, 4000)
    [0.0, 1000.0, 2000.0, 3000.0, 4000.0]
    """
    low, high = min(low, high), max(low, high)
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((power * k for k in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def span_of(values: Sequence[float], *, least: float = 0.01) -> tuple[float, float]:
    """A span that holds all values with a little air.

    Parameters
    ----------
    values : sequence of float
        At least one.
    least : float
        It is at least so wide.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> span_of([1.0, 3.0])
    (0.9, 3.1)
    """
    low, high = min(values), max(values)
    if high - low < least:
        low, high = low - least / 2, high + least / 2
    air = 0.05 * (high - low)
    return round(low - air, 9), round(high + air, 9)


def accuracy_axis(accuracies: Sequence[float]) -> Axis:
    """An axis that is even in the logarithm of the error.

    On it 0.98 and 0.99 are as far apart as 0.90 and 0.95.

    Parameters
    ----------
    accuracies : sequence of float
        What it shall hold.

    Returns
    -------
    Axis

    Examples
    --------
    >>> axis = accuracy_axis([0.8, 0.99])
    >>> [text for _, text in axis.marks()]
    ['0.8', '0.9', '0.95', '0.98', '0.99']
    """
    errors = [min(max(1 - accuracy, LEAST_ERROR), 1.0) for accuracy in accuracies] or [0.1]
    best, worst = min(errors) / 1.5, min(max(errors) * 1.5, 1.0)
    ticks: list[float] = []
    for tick in _ACCURACIES:
        apart = math.log((1 - ticks[-1]) / (1 - tick)) if ticks else math.inf
        if best <= 1 - tick <= worst and apart > 0.17 * math.log(worst / best):
            ticks.append(tick)
    return Axis(
        "accuracy (even in log of error)",
        1 - worst,
        1 - best,
        [(tick, f"{tick:g}") for tick in ticks],
        lambda accuracy: -math.log(max(1 - accuracy, LEAST_ERROR / 2)),
    )
