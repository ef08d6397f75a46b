"""The layout that the figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["row_of_panels"]


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
