"""Answers on another scale than [0, 1] and [−1, 1], and comparisons given as differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairlearn.columns import Floats, RowError, TableError
from pairlearn.tables.pairs import PairTable

BEYOND_NOISE = 5.0
"""No noise takes a judgement so far out of its range."""
MOST = {0: 0.55, -1: 0.3}
"""If more than this share of similarities or differences is out of range, they are on another
scale: noise takes half of the answers at an end out, and half of the differences are not there."""


@dataclass(frozen=True)
class Scale:
    """Ends of the scale that answers were given on; upside down, `low` is the larger."""

    low: float
    high: float

    @classmethod
    def parse(cls, text: str, *, either: bool = False) -> Scale:
        """Read two numbers with a comma between; upside down too if `either` way will do."""
        try:
            low, high = (float(part) for part in text.split(","))
        except ValueError:
            low, high = 0.0, 0.0
        upwards = low < high or (either and low > high)
        if not upwards or not np.isfinite([low, high]).all():
            raise ValueError(f"a scale is its lowest and highest answer, as in 1,5; got {text!r}")
        return cls(low, high)

    def mapped(self, name: str, values: Floats, least: float) -> Floats:
        """The answers with `low` as `least` and `high` as 1; NaN stays."""
        ends = sorted((self.low, self.high))
        outside = (values < ends[0]) | (values > ends[1])
        if outside.any():
            row = int(outside.argmax())
            raise RowError(
                row,
                f"{name} is {values[row]:g}, outside the scale {self}: give the lowest and the "
                "highest answer that could be given",
            )
        return least + (values - self.low) * ((1 - least) / (self.high - self.low))

    def __str__(self) -> str:
        return f"{self.low:g},{self.high:g}"


def find_scale(values: Floats, least: Literal[0, -1]) -> Scale | None:
    """The scale that answers seem to be on, if it is not [least, 1].

    Noise alone leaves no whole numbers, reaches no end twice, and moves neither most answers nor
    their mean out of the range.

    Examples
    --------
    >>> find_scale(np.array([1.0, 2, 2, 5, 4]), 0), find_scale(np.array([2.0, -1, 0, -2]), -1)
    (Scale(low=1, high=5), Scale(low=-2, high=2))
    >>> find_scale(np.array([0.4, 1.02, 0.9]), 0) is None
    True
    """
    given = values[~np.isnan(values)]
    outside = (given < least) | (given > 1)
    if not outside.any():
        return None
    bottom, top = float(given.min()), float(given.max())
    far = max(abs(bottom), abs(top))
    level = float(given.mean())
    if not (
        far > BEYOND_NOISE
        or (far >= 2 and bool((given * 2 % 1 == 0).all()))
        or (far >= 2 and far % 1 == 0 and int((np.abs(given) == far).sum()) > 1)
        or (far > 1.5 and outside.mean() > MOST[least])
        or not least <= level <= 1
    ):
        return None
    high = 100 if far > 10 else int(np.ceil(far))
    if bottom < 0:
        return Scale(-high, high)
    return Scale(1 if bottom >= 1 and high <= 10 else 0, high)


def rescale(
    table: PairTable, similarity: Scale | None = None, difference: Scale | None = None
) -> PairTable:
    """The same judgements with similarities in [0, 1] and differences in [−1, 1].

    An answer outside its scale is a `RowError`.
    """
    given = (("similarity", similarity, 0), ("difference", difference, -1))
    return table.changed(
        **{
            name: scale.mapped(name, getattr(table, name), least)
            for name, scale, least in given
            if scale is not None
        }
    )


def as_comparisons(table: PairTable) -> tuple[PairTable, int]:
    """Differences read as preferences, and how many were 0, which prefer neither.

    Rows that say nothing else are left out.
    """
    c = table.difference
    given = ~np.isnan(c)
    stated = np.zeros(len(table), np.int8) if table.preference is None else table.preference
    if (given & (stated != 0)).any():
        row = int((given & (stated != 0)).argmax())
        raise TableError(f"row {row + 1} has a preference beside its difference: give one of them")
    side = np.where(given, np.sign(np.nan_to_num(c)), stated).astype(np.int8)
    read = table.changed(preference=side, difference=None)
    said = (side != 0) | ~np.isnan(table.similarity)
    if not said.any():
        raise TableError("every difference is 0: read as comparisons, they say nothing")
    return read[said], int((given & (c == 0)).sum())
