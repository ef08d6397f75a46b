"""Which of two items a third one is more like: "x is more like y than like z"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.kinds.base import TINY, Column, Floats, Kind, logarithm_guard, sums_by_number
from pairlearn.randomness import uniform

if TYPE_CHECKING:
    from torch import Tensor

    from pairlearn.risks.base import Risk


class Triplet(Kind):
    """One of the two pairs of triplet number v: u = 1 the closer one, u = 0 the other.

    "x is more like y than like z" is two rows with one number: (x, y) is the closer pair and (x, z)
    the other. By the classes, and by the toss of a coin where both or none are of x's class,

        P(x is more like y) = ½ + [P(x same as y) − P(x same as z)]/2

    Training goes by the cross-entropy to posteriors given the statement, which has the same
    gradient.
    """

    name, plural = "triplet", "triplets"
    columns = (Column("closer", 0, 1, {"yes": 1, "no": 0}), Column("triplet", 0, np.inf, place=1))
    joint, shared = True, 2
    settles = frozenset({"level"})  # it is the same with the classes exchanged

    def table(self, risk: Risk) -> Tensor:
        """Cross-entropies to the completed posteriors; x stands in both rows, so half in each."""
        from pairlearn.risks.base import make_table

        left = {"positive": (0.0, 0.25, 0.0), "negative": (0.25, -0.25, 0.0)}
        right = {"positive_prime": (0.0, 0.0, 0.5), "negative_prime": (0.5, 0.0, -0.5)}
        return make_table(left | right)

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Posteriors given the triplet; half of one leaves the model's as they are."""
        tilt, at_one = self._tilts(p, q, u, v)
        event = np.maximum(0.5 + (2 * p - 1) * tilt, TINY)
        return p * (0.5 + tilt) / event, np.clip(q * (0.5 + (2 * p - 1) * at_one) / event, 0, 1)

    def mistakes(self, ends: Any, u: Floats, v: Floats) -> Iterator[str]:
        """Triplets that are not two rows about x and two others, one of them closer."""
        count, x, others, closer = sums_by_number(v, np.ones_like(u), *ends.T, u)
        right = (count == 2) & (x == 2 * ends[:, 0]) & (others != 2 * ends[:, 1]) & (closer == 1)
        for number in v[~right][:1]:
            yield f"triplet {number:g} must be two rows with one left, two rights, one closer"

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the statement, half for each of its rows."""
        return -np.log(logarithm_guard(0.5 + (2 * p - 1) * self._tilts(p, q, u, v)[0])) / 2

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Rows two by two; the closer pair by classes drawn from the posteriors."""
        number = np.arange(len(r)) // 2.0
        positive = uniform(rng, len(r))[number.astype(int)] < r
        same = positive == (uniform(rng, len(r)) < q)
        like = same + uniform(rng, len(r)) / 2  # a coin where both or none are the same
        other = np.append(like, np.nan)[np.arange(len(r)) ^ 1]
        return np.stack([np.where(np.isnan(other), np.nan, like > other), number], 1)

    @staticmethod
    def _tilts(p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """P less ½ given that x is positive, and given that the row's last item is, too."""
        count, of_x, both, closer = sums_by_number(v, np.ones_like(p), p, q, u)
        half = (u - 0.5) * ((count == 2) & (closer == 1) & np.isclose(of_x, 2 * p))
        return half * (2 * q - both), half * (1 + q - both)
