"""The class rates behind the two decisions of a classifier.

Two levels, decided positive and decided negative: q = share decided positive,
p = P(+ | decided positive), o = P(+ | decided negative). Every measure of a classifier
is a function of these three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.evaluation.judged import JudgedPairs
from pairlearn.evaluation.levels import (
    LevelTally,
    constrain,
    require_identified,
    start_rates,
)

__all__ = ["Decisions", "Side", "accuracy_of", "agreeing", "fit_decisions"]

Floats = NDArray[np.float64]
Measure = Callable[[NDArray[Any]], NDArray[Any]]
Side = Literal["positive", "negative", "better"]

FAR = 20.0
"""Images of a solution whose log-likelihood is lower by this lead to no other one in reach."""


@dataclass(frozen=True)
class Decisions:
    """One solution: θ = (q, p, o) and the influence (n, 3) of every pair on it."""

    theta: Floats
    influence: Floats
    merit: float

    def measure(self, functions: Measure) -> tuple[Floats, Floats]:
        """Values (k,) of functions of θ, and their influences (n, k)."""
        values = functions(self.theta)
        slopes = np.stack(
            # Complex steps: the measures are rational in θ, so these slopes are exact.
            [functions(self.theta + 1e-30j * unit).imag / 1e-30 for unit in np.eye(3)]
        )
        return values, np.asarray(self.influence @ slopes)

    @property
    def accuracy(self) -> float:
        """The share decided rightly, q p + (1 − q)(1 − o)."""
        q, p, o = self.theta
        return float(q * p + (1 - q) * (1 - o))


def fit_decisions(
    pairs: JudgedPairs,
    threshold: float,
    prior: float | None,
    confidence: float,
    side: Side | None = None,
) -> list[Decisions]:
    """All solutions that the judgements do not rule out, the likeliest first.

    There is one, unless the decisions say so little that the classes could be swapped,
    as with a classifier that always decides the same. Solutions count as ruled out
    where the likelihood ratio test at `confidence` does so; of equal ones, the most
    accurate is first.

    Similarities alone always have two, with the classes exchanged. There `side` tells them
    apart: the larger class, as far as the classes clearly differ in size, or "better", that
    the classifier is better than chance.
    """
    check_side(side)
    sided = side is not None and prior is None and not pairs.has_difference.any()
    require_identified(pairs, prior, sided=sided)
    level, level_prime = (np.asarray(z > threshold, np.intp) for z in (pairs.z, pairs.z_prime))
    tally = LevelTally.of(pairs, level, level_prime, 2)
    rates = tally.solve(start_rates(pairs, level, level_prime, 2, prior), prior)
    found = [_decisions(tally, rates, prior)]
    for image in _images(rates):
        if tally.likelihood(image) > tally.likelihood(rates) - FAR:
            other = _decisions(tally, tally.solve(image, prior), prior)
            if all(_differ(one.theta, other.theta) for one in found):
                found.append(other)
    margin = NormalDist().inv_cdf((1 + confidence) / 2) ** 2 / 2
    top = max(one.merit for one in found)
    kept = [one for one in found if one.merit > top - margin]
    if sided:
        kept = [one for one in kept if _on_side(pairs, one, side, confidence)] or kept
    return sorted(kept, key=lambda one: (-round(one.merit, 6), -one.accuracy))


def check_side(side: str | None) -> None:
    """Refuse what is no side."""
    if side not in (None, "positive", "negative", "better"):
        raise ValueError(f"side must be 'positive', 'negative' or 'better'; got {side!r}")


def _on_side(pairs: JudgedPairs, one: Decisions, side: Side | None, confidence: float) -> bool:
    """Whether a solution may be the one that a side speaks of."""
    if side == "better":
        return one.accuracy >= 0.5
    value, influence = one.measure(lambda theta: np.array([_prior_of(theta)]))
    error = float(np.sqrt(pairs.dependence.variance(influence)[0]))
    beyond = (float(value[0]) - 0.5) * (1 if side == "positive" else -1)
    return beyond > -NormalDist().inv_cdf((1 + confidence) / 2) * error


def _images(rates: Floats) -> list[Floats]:
    """Rates near which another solution can lie, from (o, p).

    (1 − p, 1 − o) has the same mean judgements of pairs decided differently, and
    (1 − o, 1 − p) the same similarities of all pairs.
    """
    return [1 - rates[::-1], 1 - rates]


def _differ(one: Floats, other: Floats) -> bool:
    """Whether two solutions differ in a rate of decisions that occur."""
    q = one[0]
    return bool((np.abs(one - other) * [1.0, q, 1 - q]).max() > 1e-3)


def _decisions(tally: LevelTally, rates: Floats, prior: float | None) -> Decisions:
    fit, surprise = tally.fit(rates), 0.0
    if prior is not None:
        fit, surprise = constrain(tally, fit, prior)
    theta = np.array([fit.shares[1], fit.rates[1], fit.rates[0]])
    influence = np.column_stack(
        [fit.share_influence[:, 1], fit.rate_influence[:, 1], fit.rate_influence[:, 0]]
    )
    return Decisions(theta, influence, fit.log_likelihood + surprise)


def accuracy_of(theta: NDArray[Any]) -> NDArray[Any]:
    """Accuracy q p + (1 − q)(1 − o) of decisions, in the shape that `measure` takes."""
    q, p, o = theta
    return np.array([q * p + (1 - q) * (1 - o)])


def agreeing(found: Sequence[list[Decisions]]) -> list[Decisions]:
    """One solution for each set of decisions: of several, the one with the prior of the others.

    Decisions that hardly vary leave open which class is which; those that separate the
    classes best tell.
    """
    sharpest = max((several[0] for several in found), key=_separation)
    return [min(several, key=lambda one: abs(_prior(one) - _prior(sharpest))) for several in found]


def _separation(solution: Decisions) -> float:
    q, p, o = solution.theta
    return float(q * (1 - q) * (p - o))


def _prior(solution: Decisions) -> float:
    return float(_prior_of(solution.theta))


def _prior_of(theta: NDArray[Any]) -> Any:
    q, p, o = theta
    return q * p + (1 - q) * o
