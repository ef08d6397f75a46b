"""An item is more like a second than like a third."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pairlearn.judgements.kinds.base import (
    TINY,
    Column,
    Floats,
    Kind,
    logarithm_guard,
    sums_by_number,
)
from pairlearn.randomness import uniform


class Triplet(Kind):
    """One of the two pairs of triplet number v: u = 1 the closer one, u = 0 the other.

    "x is more like y than like z" is two rows with one number: (x, y) is the closer pair and (x, z)
    the other. The classes decide, and a coin where both or neither are of x's class:

        P(x is more like y) = ½ + [P(x same as y) − P(x same as z)]/2

    Training uses the cross-entropy to posteriors given the statement, which has the same gradient.
    """

    name, plural = "triplet", "triplets"
    columns = (Column("closer", 0, 1, {"yes": 1, "no": 0}), Column("triplet", 0, np.inf, place=1))
    opposite = (1, 1, 0)
    joint, shared = True, 2
    settles = frozenset({"level"})  # exchanging the classes changes nothing
    # Cross-entropies to the completed posteriors; x occurs in both rows and counts half in each.
    partial_risks = (
        {
            "positive": (0.0, 0.25, 0.0),
            "negative": (0.25, -0.25, 0.0),
            "positive_prime": (0.0, 0.0, 0.5),
            "negative_prime": (0.5, 0.0, -0.5),
        },
    )

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Posteriors given the triplet; an incomplete one leaves the model's as they are."""
        tilt, tilt_at_positive = self._tilts(p, q, u, v)
        event = np.maximum(0.5 + (2 * p - 1) * tilt, TINY)
        second = q * (0.5 + (2 * p - 1) * tilt_at_positive) / event
        return p * (0.5 + tilt) / event, np.clip(second, 0, 1)

    def mistakes(self, ends: Any, u: Floats, v: Floats) -> Iterator[str]:
        """Triplets that are not two rows about x and two others, one of them closer."""
        count, x, others, closer = sums_by_number(v, np.ones_like(u), *ends.T, u)
        valid = (count == 2) & (x == 2 * ends[:, 0]) & (others != 2 * ends[:, 1]) & (closer == 1)
        for number in v[~valid][:1]:
            yield f"triplet {number:g} must be two rows with one left, two rights, one closer"

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the statement, half for each of its rows."""
        return -np.log(logarithm_guard(0.5 + (2 * p - 1) * self._tilts(p, q, u, v)[0])) / 2

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Rows two by two; the closer pair by classes drawn from the posteriors."""
        number = np.arange(len(r)) // 2.0
        positive = uniform(rng, len(r))[number.astype(int)] < r
        same = positive == (uniform(rng, len(r)) < q)
        likeness = same + uniform(rng, len(r)) / 2  # a coin where both or neither are the same
        other = np.append(likeness, np.nan)[np.arange(len(r)) ^ 1]
        return np.stack([np.where(np.isnan(other), np.nan, likeness > other), number], 1)

    @staticmethod
    def _tilts(p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """P(statement) − ½ if x is positive, and if the row's second item is as well."""
        count, of_x, both, closer = sums_by_number(v, np.ones_like(p), p, q, u)
        half = (u - 0.5) * ((count == 2) & (closer == 1) & np.isclose(of_x, 2 * p))
        return half * (2 * q - both), half * (1 + q - both)
