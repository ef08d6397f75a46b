"""Which item of a pair is more positive, and which class both have.

How people choose decides what a choice means:

    choice       they have to choose, and toss a coin where both are of one class: the likelihood of
                 "right" is P(−,+) + P(same)/2 = (1 + p' − p)/2
    preference   they name the likelier item, which gives a ranking, and not how far apart items
                 are: "right" rules out one joint class, P(not +,−), and the prior says the rest
    comparison   they may say that neither is more positive
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.judgements.kinds.statement import (
    TINY,
    Column,
    Floats,
    Kind,
    logarithm_guard,
    without_v,
)
from pairlearn.randomness import uniform

if TYPE_CHECKING:
    from pairlearn.risks.base import Risk

WORDS = {"much left": -2, "left": -1, "equal": 0, "right": 1, "much right": 2}
#: Differences of the posteriors from which on one item is much, and a little, more positive.
MUCH, LITTLE = 0.5, 0.1


class Ordering(Kind):
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


class Preference(Ordering):
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


class Choice(Ordering):
    """The item that people named who had to choose: u = −1 the left, u = +1 the right one.

    Two items of one class are a coin's toss, so that P(right) = (1 + p' − p)/2.
    """

    name, plural = "choice", "forced choices"
    singular = "forced choice"
    columns = (Column("choice", -1, 1, {"left": -1, "right": 1}),)
    means = ("preference",)

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """As a difference: the side and the scale, and with a prior the level."""
        return frozenset({"level", "side"} if prior_known else {"side", "scale"})

    def complete(self, p: Any, q: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Posteriors given the choice."""
        right, event = (1 + u) / 2, 1 + u * (q - p)
        first = right * p * q + (1 - right) * p * (2 - q)
        second = right * q * (2 - p) + (1 - right) * p * q
        return first / event, second / event

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the choice."""
        return -np.log(logarithm_guard((1 + u * (q - p)) / 2))

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The positive one of two drawn classes; of equal ones, either."""
        left, right = uniform(rng, len(r)) < r, uniform(rng, len(r)) < q
        named = np.where(left == right, uniform(rng, len(r)) < 0.5, right)
        return without_v(np.where(named, 1.0, -1.0))


class Common(Kind):
    """The class of both items, if they are of one: u = 1 positive, u = 0 negative.

    Two posteriors of 0.95 and two of 0.05 have the same similarity and difference. Beside those,
    this tells them apart: P(both positive | same) = σ(g(x) + g(x')), for the logistic loss.
    """

    name, plural = "common", "common classes"
    singular = "common class"
    columns = (Column("both", 0, 1, {"positive": 1, "negative": 0}),)
    settles = frozenset({"side"})
    partial_risks = (
        {
            "positive": (0.0, 0.5, 0.0),
            "positive_prime": (0.0, 0.5, 0.0),
            "negative": (0.5, -0.5, 0.0),
            "negative_prime": (0.5, -0.5, 0.0),
            "log_same": (0.5, 0.0, 0.0),
        },
    )

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The model's posteriors, moved by the slope of the likelihood; within [0, 1]."""
        gap = u - self._positive(p, q)
        return np.clip(p + gap, 0, 1), np.clip(q + gap, 0, 1)

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the class, if both are of one."""
        return -np.log(logarithm_guard(abs(1 - u - self._positive(p, q))))

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """A class drawn from the posteriors of a pair of one class."""
        return without_v((uniform(rng, len(r)) < self._positive(r, q)).astype(np.float64))

    def _positive(self, p: Floats, q: Floats) -> Floats:
        both = p * q
        return both / np.maximum(both + (1 - p) * (1 - q), TINY)
