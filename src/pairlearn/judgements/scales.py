"""Answers on other scales than [0, 1] and [−1, 1], and comparisons given as differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairlearn.columns import LISTED, Floats, RowError, first_rows

#: Noise never moves a judgement so far out of its range.
BEYOND_NOISE = 5.0
#: A larger share of similarities or differences out of range means another scale: noise moves half
#: of the answers at an end out of it, and half of the differences are elsewhere.
MOST = {0: 0.55, -1: 0.3}


@dataclass(frozen=True)
class Scale:
    """Ends of the scale of answers; `low` is the larger if it is upside down."""

    low: float
    high: float

    @classmethod
    def of(cls, ends: Any) -> Scale:
        """A scale from its two ends, the lowest answer first; ValueError if they are not such.

        Examples
        --------
        >>> Scale.of((1, 5))
        Scale(low=1.0, high=5.0)
        """
        if isinstance(ends, Scale):
            return ends
        try:
            low, high = map(float, ends.split(",") if isinstance(ends, str) else np.ravel(ends))
        except (TypeError, ValueError):
            low = high = 0.0
        if low == high or not np.isfinite([low, high]).all():
            raise ValueError(f"a scale is its lowest and highest answer, as in 1,5; got {ends!r}")
        return cls(low, high)

    def map(self, name: str, values: Floats, least: float) -> Floats:
        """Map answers linearly, `low` to `least` and `high` to 1; NaN stays."""
        if least < 0 and self.low > self.high:
            problem = f"the scale {self} of {name} would exchange the classes"
            raise RowError(None, f"{problem}: give the lowest answer first")
        bottom, top = sorted((self.low, self.high))
        advice = "give the lowest and the highest possible answer"
        if wrong := first_rows((values < bottom) | (values > top), LISTED):
            raise RowError.listing(
                [(r, f"{name} is {values[r]:g}, outside the scale {self}: {advice}") for r in wrong]
            )
        return least + (values - self.low) * ((1 - least) / (self.high - self.low))

    def __str__(self) -> str:
        return f"{self.low:g},{self.high:g}"


def find_scale(values: Floats, least: Literal[0, -1]) -> Scale | None:
    """Guess the scale of answers; None if it is [least, 1].

    Noise alone leaves no whole numbers, reaches no end twice, and moves neither most answers nor
    their mean out of the range.

    Examples
    --------
    >>> find_scale(np.array([1.0, 2, 2, 5, 4]), 0), find_scale(np.array([2.0, -1, 0, -2]), -1)
    (Scale(low=1, high=5), Scale(low=-2, high=2))
    >>> find_scale(np.array([0.4, 1.02, 0.9]), 0) is None
    True
    """
    answers = values[~np.isnan(values)]
    outside = (answers < least) | (answers > 1)
    if not outside.any():
        return None
    bottom, top = float(answers.min()), float(answers.max())
    far = max(abs(bottom), abs(top))
    if not (
        far > BEYOND_NOISE
        or (far >= 2 and bool((answers * 2 % 1 == 0).all()))
        or (far >= 2 and far % 1 == 0 and int((np.abs(answers) == far).sum()) > 1)
        or (far > 1.5 and outside.mean() > MOST[least])
        or not least <= float(answers.mean()) <= 1
    ):
        return None
    high = 100 if far > 10 else int(np.ceil(far))
    if bottom < 0:
        return Scale(-high, high)
    return Scale(1 if bottom >= 1 and high <= 10 else 0, high)
