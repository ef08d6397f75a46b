"""Which item of a pair is more positive."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.base import Column, Floats, Kind, logarithm_guard, without_v


class Preference(Kind):
    """The more positive item of a pair: u = −1 the left, u = +1 the right.

    "The right one is more positive" does not mean c = 1. It rules out one of the four joint
    classes:

        u = +1 (right)   −log P(not +,−)/2 = −log[1 − p(1 − p')]/2
        u = −1 (left)    −log P(not −,+)/2 = −log[1 − (1 − p)p']/2
    """

    name, plural = "preference", "preferences"
    columns = (Column("preference", -1, 1, {"left": -1, "right": 1}),)
    opposite = (-1, 1, 0)
    settles = frozenset({"side"})  # with a prior too: no affine risk reads preferences
    partial_risks = ({"log_not_left": (-0.25, -0.25, 0.0), "log_not_right": (-0.25, 0.25, 0.0)},)

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """A third for the outcome that fits, as for a model with p = p' = ½."""
        return (u < 0) / 3, (u > 0) / 3

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """Shares among the pairs, 1 − π₊π₋ of all, in a possible order (Feng et al., 2021)."""
        possible = 1 - prior * (1 - prior)
        middle, half = prior * (1 + prior) / (2 * possible), prior * (1 - prior) / (2 * possible)
        return middle - u * half, middle + u * half

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Posteriors given that one outcome is ruled out."""
        right = u > 0
        event = self._probability(p, q, u)
        return np.where(right, p * q, p) / event, np.where(right, q, p * q) / event

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the statement."""
        return -np.log(logarithm_guard(self._probability(p, q, u)))

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The item with the larger posterior."""
        return without_v(np.where(q > r, 1.0, -1.0))

    @staticmethod
    def _probability(p: Floats, q: Floats, u: Floats) -> Floats:
        return 1 - np.where(u > 0, p * (1 - q), (1 - p) * q)
