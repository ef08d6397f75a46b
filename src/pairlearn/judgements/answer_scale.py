"""The scale that answers were given on: any value, levels, or yes and no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.columns import Floats, Mask
from pairlearn.labels import TOLERANCE

#: Ranges of similarities and of differences.
RANGES = ((0.0, 1.0), (-1.0, 1.0))
#: Answers below which nothing is concluded: no levels, no ranking, no model, no finding.
LEAST_ANSWERS = 10
#: Least step of a scale of levels; answers with smaller steps count as continuous.
COARSE = 0.045


@dataclass(frozen=True)
class AnswerScale:
    """Levels and steps of similarities and differences.

    Attributes
    ----------
    levels : tuple of int
        Levels of similarities and of differences: of even steps all between the ends of the
        range, of others those in use; 0 where answers take any value, or are too few or all
        the same.
    steps : tuple of float
        Distance of neighbouring levels, or of numbers with two or three digits; 0 where answers
        are not rounded.
    hard : bool
        Whether all answers are yes or no: s of 0 or 1, and c of −1, 0 or 1.

    Examples
    --------
    >>> scale_of([0, 0.25, 0.5, 0.5, 1] * 4, []).words()
    '5 levels of similarity'
    """

    levels: tuple[int, int]
    steps: tuple[float, float]
    hard: bool

    @property
    def coarse(self) -> bool:
        """Whether answers are rounded to levels, or yes or no."""
        return self.hard or any(self.levels)

    def words(self) -> str:
        """The scale in a few words, "" where it has no levels."""
        if self.hard:
            return "yes or no"
        names = ("similarity", "difference")
        given = [f"{n} levels of {name}" for n, name in zip(self.levels, names, strict=True) if n]
        return " and ".join(given)

    def admits(self, similarity: Any, difference: Any, slack: float = 0.0) -> Mask:
        """Whether two posteriors give each answer, or one that is rounded to it.

        NaN is not given; one answer alone is always possible within its range. ``slack`` is how
        much more than rounding an answer may be off.
        """
        s, c = np.asarray(similarity, np.float64), np.abs(np.asarray(difference, np.float64))
        near, far = (step / 2 + slack for step in self.steps)
        # Among all answers that are rounded to this one: the least similar for the smallest
        # difference, and the most similar for the largest. They must lie inside the edge.
        room = -TOLERANCE if near or far else TOLERANCE
        above = s - near > 1 - np.maximum(c - far, 0) + room
        below = s + near < (1 - np.minimum(c + far, 1) ** 2) / 2 - room
        alone = (s <= 1 - c + TOLERANCE) & (s >= (1 - c**2) / 2 - TOLERANCE)
        return np.asarray(alone | ~(above | below))


def scale_of(similarity: Any, difference: Any) -> AnswerScale:
    """Find the scale of the answers of one annotator; NaN is not given.

    Examples
    --------
    >>> scale = scale_of([1, 0, 1, 1, 0] * 4, [0, 1, 0, 0, -1] * 4)
    >>> scale.levels, scale.steps, scale.hard
    ((2, 3), (1.0, 1.0), True)
    """
    columns = (np.asarray(values, np.float64) for values in (similarity, difference))
    s, c = (values[~np.isnan(values)] for values in columns)
    (s_levels, s_step), (c_levels, c_step) = map(_levels, (s, c), RANGES)
    hard = bool(np.isin(s, (0, 1)).all() and np.isin(c, (-1, 0, 1)).all() and len(s) + len(c))
    return AnswerScale((s_levels, c_levels), (s_step, c_step), hard)


def _levels(answers: Floats, ends: tuple[float, float]) -> tuple[int, float]:
    """Number of levels, and their distance."""
    (used, counts), (low, high) = np.unique(answers, return_counts=True), ends
    if len(answers) < LEAST_ANSWERS or used[0] < low or used[-1] > high:
        return 0, 0.0
    gap = float(np.diff(used).min()) if 1 < len(used) <= len(answers) / 2 else 0.0
    if gap >= COARSE:
        # Thirds may be written as 0.33, so that their gaps differ a little.
        span = float(used[-1] - used[0])
        step = span / round(span / gap)
        places = (used - used[0]) / step
        if np.abs(places - places.round()).max() > 0.15:
            # Uneven levels: the root mean square of the ranges that they stand for.
            edges = np.array([low, *(used[1:] + used[:-1]) / 2, high])
            return len(used), float(np.sqrt(np.average(np.diff(edges) ** 2, weights=counts)))
        below, above = (used[0] - low) / step, (high - used[0]) / step
        return round(below - 0.4) + round(above - 0.4) + 1, step
    for digits in (2, 3):
        if len(used) > 1 and np.abs(used - used.round(digits)).max() < TOLERANCE:
            return 0, 10.0**-digits
    return 0, 0.0
