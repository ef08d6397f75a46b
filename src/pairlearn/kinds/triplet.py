"""Which of two items a third one is more like: "x is more like y than like z".

A triplet is two rows with one number: (x, y) is the closer pair and (x, z) the other. By the
classes, and by the toss of a coin where both or none are of x's class,

    P(x is more like y) = ½ + [P(x same as y) − P(x same as z)]/2

Before each epoch the posteriors of x, y and z given the statement are worked out from the
model; the cross-entropy to them has the gradient of −log P of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairlearn.kinds.base import TINY, Column, Floats, Kind, logarithm_guard
from pairlearn.randomness import uniform

if TYPE_CHECKING:
    from torch import Tensor

    from pairlearn.risks.base import Risk

__all__ = ["Triplet"]


class Triplet(Kind):
    """One of the two pairs of triplet number v: u = 1 the closer one, u = 0 the other."""

    name = "triplet"
    columns = (Column("closer", 0, 1, {"yes": 1, "no": 0}), Column("triplet", 0, np.inf, place=1))
    joint, shared = True, 2

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """The level: it is the same with the classes exchanged."""
        return frozenset({"level"})

    def table(self, risk: Risk) -> Tensor:
        """Cross-entropies to the completed posteriors; x stands in both rows, so half in each."""
        from pairlearn.risks.base import make_table

        left = {"positive": (0.0, 0.25, 0.0), "negative": (0.25, -0.25, 0.0)}
        right = {"positive_prime": (0.0, 0.0, 0.5), "negative_prime": (0.5, 0.0, -0.5)}
        return make_table(left | right)

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Posteriors given the triplet; half of one leaves the model's as they are."""
        other, whole = self._others(p, q, u, v)
        sign = np.where(u > 0.5, 1.0, -1.0)
        tilt = np.where(whole, sign * (q - other) / 2, 0.0)  # P given that x is positive, less ½
        event = np.maximum(0.5 + (2 * p - 1) * tilt, TINY)
        at_one = np.where(whole, 0.5 + (2 * p - 1) * sign * (1 - other) / 2, event)
        return p * (0.5 + tilt) / event, np.clip(q * at_one / event, 0, 1)

    def mistakes(self, ends: NDArray[np.int64], u: Floats, v: Floats) -> Iterator[str]:
        """Triplets that are not two rows about x and two others, one of them closer."""
        of = np.unique(v, return_inverse=True)[1].ravel()
        count, x, others, closer = (np.bincount(of, w)[of] for w in (u == u, *ends.T, u))
        right = (count == 2) & (x == 2 * ends[:, 0]) & (others != 2 * ends[:, 1]) & (closer == 1)
        if not right.all():
            yield (
                f"triplet {v[right.argmin()]:g} must be two rows with one left and two different "
                "rights, of which one is closer (yes) and the other is not (no)"
            )

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the statement, half for each of its rows."""
        other, whole = self._others(p, q, u, v)
        event = 0.5 + (2 * p - 1) * np.where(u > 0.5, 1.0, -1.0) * (q - other) / 2
        return np.where(whole, -np.log(logarithm_guard(event)) / 2, 0.0)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Rows two by two; the closer pair by classes drawn from the posteriors."""
        number = np.arange(len(r)) // 2
        positive = uniform(rng, len(r))[number] < r
        same = positive == (uniform(rng, len(r)) < q)
        like = same + uniform(rng, len(r)) / 2  # a coin where both or none are the same
        other = np.append(like, np.nan)[np.arange(len(r)) ^ 1]
        said = np.where(np.isnan(other), np.nan, like > other)
        return np.stack([said, number.astype(np.float64)], 1)

    @staticmethod
    def _others(p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Posteriors of the last item of the other row, and whether both rows make a triplet."""
        of = np.unique(v, return_inverse=True)[1].ravel()
        count, of_x, ends, closer = (np.bincount(of, w)[of] for w in (np.ones_like(p), p, q, u))
        return ends - q, (count == 2) & (closer == 1) & np.isclose(of_x, 2 * p)
