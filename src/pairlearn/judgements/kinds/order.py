"""Which item of a pair is more positive: alone, or with ties and grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.judgements.kinds.statement import Column, Floats, Kind, logarithm_guard, without_v

if TYPE_CHECKING:
    from pairlearn.risks.base import Risk

WORDS = {"much left": -2, "left": -1, "equal": 0, "right": 1, "much right": 2}
MUCH, LITTLE = 0.5, 0.1
"""Differences of the posteriors from which on one item is much, and a little, more positive."""


class Comparison(Kind):
    """The more positive item of a pair: u < 0 the left, u > 0 the right, ±2 by a lot, 0 neither.

    ``left`` and ``right`` rule out one of the four joint classes, as a preference does; ``equal``
    means equal posteriors; ``much left`` and ``much right`` that they differ by at least a half.
    Each is completed from the model: the cross-entropy to posteriors given the statement has the
    gradient of its likelihood.
    """

    name, plural = "comparison", "comparisons"
    columns = (Column("comparison", -2, 2, WORDS),)
    opposite = (-1, 1, 0)
    settles = frozenset({"side"})  # with a prior too: no affine risk reads them

    def completes(self, risk: Risk) -> bool:
        """Always."""
        return True

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """A third for the outcome that fits, as if p = p' = ½; a half where it is clear."""
        share = np.where(abs(u) > 1, MUCH, 1 / 3)
        return share * (u < 0), share * (u > 0)

    def complete(self, p: Any, q: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Posteriors given the statement."""
        right, left, side = 1.0 * (u == 1), 1.0 * (u == -1), u * (abs(u) != 1) / 2
        event = 1 - right * p * (1 - q) - left * (1 - p) * q + 1e-12
        first, second = (p - right * p * (1 - q)) / event, (q - left * (1 - p) * q) / event
        gap = side * (q - p)
        c = side * (gap + MUCH + abs(gap - MUCH)) / 2  # the larger of gap and MUCH
        total = (p + q).clip(abs(c), 2 - abs(c))
        ordered = right + left  # 1 for "left" and "right", 0 for the others
        return (
            ordered * first + (1 - ordered) * (total - c) / 2,
            ordered * second + (1 - ordered) * (total + c) / 2,
        )

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """By the difference of the posteriors: below 0.1 none, from a half on a lot."""
        size = np.select([abs(q - r) >= MUCH, abs(q - r) >= LITTLE], [2.0, 1.0], 0.0)
        return without_v(np.sign(q - r) * size)


class Preference(Comparison):
    """The more positive item of a pair: u = −1 the left, u = +1 the right.

    "The right one is more positive" does not mean c = 1. It rules out one of the four joint
    classes:

        u = +1 (right)   −log P(not +,−)/2 = −log[1 − p(1 − p')]/2
        u = −1 (left)    −log P(not −,+)/2 = −log[1 − (1 − p)p']/2
    """

    name, plural = "preference", "preferences"
    columns = (Column("preference", -1, 1, {"left": -1, "right": 1}),)
    partial_risks = ({"log_not_left": (-0.25, -0.25, 0.0), "log_not_right": (-0.25, 0.25, 0.0)},)

    def completes(self, risk: Risk) -> bool:
        """Never: it has a likelihood of its own."""
        return False

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """Shares among the pairs, 1 − π₊π₋ of all, in a possible order (Feng et al., 2021)."""
        possible = 1 - prior * (1 - prior)
        middle, half = prior * (1 + prior) / (2 * possible), prior * (1 - prior) / (2 * possible)
        return middle - u * half, middle + u * half

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the statement."""
        ruled_out = np.where(u > 0, p * (1 - q), (1 - p) * q)
        return -np.log(logarithm_guard(1 - ruled_out))

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The item with the larger posterior."""
        return without_v(np.where(q > r, 1.0, -1.0))
