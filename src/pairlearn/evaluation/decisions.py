"""Class rates of the two decisions of a classifier, measures from them, and rankings.

The two decisions are two levels: q = share decided positive, p = P(+ | decided positive),
o = P(+ | decided negative). Every measure of a classifier is a function of these three.

The intervals of differences from the classifier that looks best hold *simultaneously*: their
quantile is that of max over i < j of |Z_i − Z_j| / sd(Z_i − Z_j), where Z is normal with the
covariance of the estimated accuracies, computed from the influences of the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pairlearn.columns import Floats
from pairlearn.dependence import Dependence
from pairlearn.evaluation.judged import Estimate, JudgedPairs, largest_difference, quantile
from pairlearn.evaluation.judged import Side as Side
from pairlearn.evaluation.levels import LevelTally
from pairlearn.labels import PairLabels

#: Mirror images of a solution with a log-likelihood lower by this lead to no other solution.
FAR = 20.0
#: Avoids division by zero where a rate is not defined; its interval is [0, 1] then.
TINY = 1e-300


def _prior(q: Any, p: Any, o: Any) -> Any:
    return q * p + (1 - q) * o


class Measure(NamedTuple):
    """A function of (q, p, o), and the share of all instances in its denominator."""

    value: Callable[[Any, Any, Any], Any]
    share: Callable[[Any, Any, Any], Any] = lambda q, p, o: 1.0


_TPR = Measure(lambda q, p, o: q * p / (_prior(q, p, o) + TINY), _prior)
_FPR = Measure(
    lambda q, p, o: q * (1 - p) / (1 - _prior(q, p, o) + TINY), lambda q, p, o: 1 - _prior(q, p, o)
)
#: Measures of a classifier by name; the last four are shares of all instances.
MEASURES = {
    "accuracy": Measure(lambda q, p, o: q * p + (1 - q) * (1 - o)),
    "true_positive_rate": _TPR,
    "false_positive_rate": _FPR,
    "precision": Measure(lambda q, p, o: p, lambda q, p, o: q),
    "f1": Measure(
        lambda q, p, o: 2 * q * p / (_prior(q, p, o) + q + TINY),
        lambda q, p, o: (_prior(q, p, o) + q) / 2,
    ),
    "balanced_accuracy": Measure(
        lambda q, p, o: (_TPR.value(q, p, o) + 1 - _FPR.value(q, p, o)) / 2,
        lambda q, p, o: 4 * _prior(q, p, o) * (1 - _prior(q, p, o)),
    ),
    "prior": Measure(_prior),
    "true_positive": Measure(lambda q, p, o: q * p),
    "false_positive": Measure(lambda q, p, o: q * (1 - p)),
    "false_negative": Measure(lambda q, p, o: (1 - q) * o),
    "true_negative": Measure(lambda q, p, o: (1 - q) * (1 - o)),
}


def expected_cost(cost: tuple[float, float]) -> Measure:
    """Expected cost per instance as a share of the larger cost."""
    alarm, miss = (value / max(cost) for value in cost)
    return Measure(lambda q, p, o: q * (1 - p) * alarm + (1 - q) * o * miss)


@dataclass(frozen=True)
class Decisions:
    """One solution: θ = (q, p, o), the influences (n, 3) of the pairs, and its log-likelihood."""

    pairs: JudgedPairs
    theta: Floats
    influence: Floats
    log_likelihood: float

    def value(self, measure: Measure) -> float:
        """Value of a measure at θ."""
        return float(measure.value(*self.theta))

    def influences(self, measures: Sequence[Measure]) -> Floats:
        """Influences (n, k) of the pairs on the measures."""
        # Complex steps: the measures are rational in θ, so these slopes are exact.
        slopes = [
            [measure.value(*(self.theta + 1e-30j * unit)).imag / 1e-30 for measure in measures]
            for unit in np.eye(3)
        ]
        return np.asarray(self.influence @ np.array(slopes))

    def estimates(self, measures: Sequence[Measure]) -> list[Estimate]:
        """The measures with their intervals."""
        counts = [self.pairs.effective_ends * measure.share(*self.theta) for measure in measures]
        values = [self.value(measure) for measure in measures]
        return self.pairs.estimates(values, self.influences(measures), counts)


def fit_decisions(pairs: JudgedPairs, threshold: float = 0.0) -> list[Decisions]:
    """Fit the rates of both decisions: all solutions that are not ruled out, the likeliest first.

    There is one, unless the decisions are so uninformative that the classes could be swapped, as
    for a constant classifier; others are ruled out by a likelihood ratio test at `confidence`.
    Among equally likely ones the most accurate is first. Similarities alone always have two. `side`
    tells solutions apart: by the larger class, if the sizes clearly differ, or as better than
    chance.
    """
    pairs.require_identified()
    level, level_prime = (np.asarray(z > threshold, np.intp) for z in (pairs.z, pairs.z_prime))
    tally = LevelTally(pairs, level, level_prime, 2)
    rates = tally.solve(tally.start())
    solutions = [_decisions(tally, rates)]
    # (1 − p, 1 − o) has the same mean judgements of pairs decided differently, and
    # (1 − o, 1 − p) the same similarities of all pairs.
    for image in (1 - rates[::-1], 1 - rates):
        if tally.likelihood(image) > tally.likelihood(rates) - FAR:
            other = _decisions(tally, tally.solve(image))
            if all(_differ(solution.theta, other.theta) for solution in solutions):
                solutions.append(other)
    margin = quantile(pairs.confidence) ** 2 / 2
    top = max(solution.log_likelihood for solution in solutions)
    kept = [solution for solution in solutions if solution.log_likelihood > top - margin]
    if pairs.side is not None and pairs.prior is None:
        kept = [solution for solution in kept if _on_side(solution)] or kept
    accuracy = MEASURES["accuracy"]
    return sorted(kept, key=lambda fit: (-round(fit.log_likelihood, 6), -fit.value(accuracy)))


def _on_side(solution: Decisions) -> bool:
    """Whether a solution is compatible with the `side` of the pairs."""
    pairs, prior = solution.pairs, MEASURES["prior"]
    if pairs.side == "better":
        return solution.value(MEASURES["accuracy"]) >= 0.5
    error = float(np.sqrt(pairs.dependence.variance(solution.influences([prior]))[0]))
    beyond = (solution.value(prior) - 0.5) * (1 if pairs.side == "positive" else -1)
    return beyond > -quantile(pairs.confidence) * error


def _differ(theta: Floats, other: Floats) -> bool:
    """Whether two solutions differ in a rate of decisions that occur."""
    q = theta[0]
    return bool((np.abs(theta - other) * [1.0, q, 1 - q]).max() > 1e-3)


def _decisions(tally: LevelTally, rates: Floats) -> Decisions:
    fit = tally.fit(rates)
    theta = np.array([fit.shares[1], fit.rates[1], fit.rates[0]])
    influence = np.column_stack(
        [fit.share_influence[:, 1], fit.rate_influence[:, 1], fit.rate_influence[:, 0]]
    )
    return Decisions(tally.pairs, theta, influence, fit.log_likelihood)


def choose_solutions(solutions: Sequence[list[Decisions]]) -> list[Decisions]:
    """Choose one solution for each classifier: that whose prior is nearest to the others'.

    Decisions that hardly vary do not tell which class is which; those that separate the classes
    best do.
    """

    def separation(solution: Decisions) -> float:
        q, p, o = solution.theta
        return float(q * (1 - q) * (p - o))

    prior = MEASURES["prior"]
    sharpest = max((several[0] for several in solutions), key=separation).value(prior)
    return [min(several, key=lambda fit: abs(fit.value(prior) - sharpest)) for several in solutions]


@dataclass(frozen=True)
class MethodResult:
    """Result of one method in a comparison.

    Attributes
    ----------
    name : str
        The method, as `PairClassifier` and `make_risk` name it.
    accuracy, difference : Estimate
        Mean accuracy of its models on held-out pairs, as the annotator sees it, and its difference
        from the best; the intervals of all differences hold simultaneously.
    tie : bool
        Whether the interval of the difference contains 0. False for the best itself.
    same_as : str or None
        An earlier method in the ranking with the same decisions on all held-out pairs. Risks
        often coincide: on feasible labels no correction changes the non-negative one.
    """

    name: str
    accuracy: Estimate
    difference: Estimate
    tie: bool
    same_as: str | None = None


def rank(
    names: Sequence[str],
    logits: Any,
    labels: PairLabels,
    *,
    labelled: Any = None,
    **options: Any,
) -> tuple[MethodResult, ...]:
    """Rank classifiers by their accuracies on held-out judged pairs.

    ``logits`` (k, n, 2) are their outputs for both ends of n pairs; the other parameters are those
    of `estimate_accuracy`, and accuracies those of its informed reading. With ``labelled``, outputs
    (k, m) of labelled items, and what is known of these as in `LabelledItems`, they are
    prediction-powered. Ties stay in order.
    """
    outputs = np.asarray(logits, dtype=np.float64)
    first = JudgedPairs.of(outputs[0, :, 0], outputs[0, :, 1], labels, **options)
    several = [replace(first, z=z[:, 0], z_prime=z[:, 1]) for z in outputs]
    accuracy = [MEASURES["accuracy"]]
    if labelled is None:
        solutions = choose_solutions([fit_decisions(pairs) for pairs in several])
        influences = np.hstack([solution.influences(accuracy) for solution in solutions])
        estimates = [solution.estimates(accuracy)[0] for solution in solutions]
        dependence, ends = first.dependence, first.effective_ends
    else:
        from pairlearn.evaluation.labelled import LabelledItems, prediction_powered

        known = [LabelledItems(z, *labelled[1:]) for z in labelled[0]]
        powered = [prediction_powered(*both, accuracy) for both in zip(several, known, strict=True)]
        influences = np.hstack([fit.influence[:, :1] for fit in powered])
        estimates = [fit.estimates()[0] for fit in powered]
        dependence, ends = Dependence.of(None, len(influences)), float(powered[0].counts[0])
    decided = [(z > 0).tobytes() for z in outputs]
    return ranked(names, estimates, influences, decided, dependence, ends, first.confidence)


def ranked(
    names: Sequence[str],
    estimates: Sequence[Estimate],
    influences: Floats,
    decided: Sequence[bytes],
    dependence: Dependence,
    ends: float,
    confidence: float,
) -> tuple[MethodResult, ...]:
    """Methods from the best to the worst, from estimates, the influences (n, k) on them, decisions.

    ``ends`` is the number of independent instances that are as informative.
    """
    order = np.argsort([-estimate.value for estimate in estimates], kind="stable")
    best = int(order[0])
    covariance = dependence.covariance(influences)
    quantile = largest_difference(covariance, confidence, ends)
    variances = dependence.variance(influences - influences[:, best : best + 1])
    first: dict[bytes, str] = {}
    rows = []
    for place, i in enumerate(order):
        difference = Estimate(0.0, 0.0, 0.0)
        if place:
            gap = estimates[i].value - estimates[best].value
            # As in `proportion`, one instance is added that they decide differently.
            half = quantile * float(np.sqrt(variances[i] + 1 / ends**2))
            difference = Estimate(gap, max(gap - half, -1.0), min(gap + half, 1.0))
        same = first.setdefault(decided[i], names[i])
        same_as = same if same != names[i] else None
        tie = place > 0 and difference.high >= 0
        rows.append(MethodResult(names[i], estimates[i], difference, tie, same_as))
    return tuple(rows)
