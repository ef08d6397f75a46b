"""Every measure of a classifier's decisions, from judged pairs that nobody labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.evaluation.decisions import Decisions, Side, fit_decisions
from pairlearn.evaluation.estimate import Estimate, hull, proportion, quantile
from pairlearn.evaluation.judged import JudgedPairs, check_confidence, check_prior
from pairlearn.evaluation.ranking import area_under_curve
from pairlearn.labels import PairLabels

__all__ = ["Evaluation", "check_cost", "check_threshold", "cost_measure", "evaluate"]

MEASURES = (
    "accuracy",
    "true_positive_rate",
    "false_positive_rate",
    "precision",
    "f1",
    "balanced_accuracy",
    "prior",
)
CONFUSION = ("true_positive", "false_positive", "false_negative", "true_negative")
FEW_PAIRS = 30


@dataclass(frozen=True)
class Evaluation:
    """How good a classifier is, as the annotator sees it; each measure with an interval.

    Attributes
    ----------
    accuracy, true_positive_rate, false_positive_rate, precision, f1, balanced_accuracy : Estimate
        NaN in [0, 1] where a measure is not defined, as the precision of a classifier
        that never decides positive.
    prior : Estimate
        π₊ of the judged pairs as judgements and decisions together imply it.
    confusion : dict of str to Estimate
        Shares of all instances that are "true_positive", "false_positive",
        "false_negative" and "true_negative".
    roc_auc : Estimate
        P(output of a positive > output of a negative), ties half.
    expected_cost : Estimate or None
        Per instance, if costs were given.
    threshold, confidence : float
        As given.
    n : int
        Pairs used.
    effective_pairs : float
        Independent pairs of equal weight that they are worth.
    warnings : tuple of str
        Reasons for doubt.
    """

    accuracy: Estimate
    true_positive_rate: Estimate
    false_positive_rate: Estimate
    precision: Estimate
    f1: Estimate
    balanced_accuracy: Estimate
    prior: Estimate
    confusion: dict[str, Estimate]
    roc_auc: Estimate
    expected_cost: Estimate | None
    threshold: float
    confidence: float
    n: int
    effective_pairs: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, for JSON; undefined values are None."""
        named = {name: getattr(self, name).to_dict() for name in (*MEASURES, "roc_auc")}
        cost = self.expected_cost
        return named | {
            "confusion": {name: share.to_dict() for name, share in self.confusion.items()},
            "expected_cost": None if cost is None else cost.to_dict(),
            "threshold": self.threshold,
            "confidence": self.confidence,
            "n": self.n,
            "effective_pairs": self.effective_pairs,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        rows = [(name, getattr(self, name)) for name in (*MEASURES, "roc_auc")]
        rows += list(self.confusion.items())
        if self.expected_cost is not None:
            rows.append(("expected_cost", self.expected_cost))
        lines = [f"{name.replace('_', ' '):<20} {estimate}" for name, estimate in rows]
        head = f"{self.n} pairs, {self.confidence:g} intervals, threshold {self.threshold:g}"
        return "\n".join([head, *lines, *(f"warning: {text}" for text in self.warnings)])


def evaluate(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    threshold: float = 0.0,
    cost: tuple[float, float] | None = None,
    prior: float | None = None,
    side: Side | None = None,
) -> Evaluation:
    """Measure a classifier on held-out judged pairs, without labels.

    All measures are functions of three numbers: q, the share decided positive, and the
    rates of positives p and o among those decided positive and negative (see
    `estimate_accuracy`). With π₊ = q p + (1 − q) o,

        TPR = q p / π₊,   FPR = q (1 − p) / (1 − π₊),   precision = p,
        F1 = 2 q p / (π₊ + q),   expected cost = q (1 − p) c_fp + (1 − q) o c_fn.

    Standard errors follow by the delta method, intervals by Wilson's formula.

    Parameters
    ----------
    logits, logits_prime, labels, weight, items, confidence
        As in `estimate_accuracy`.
    threshold : float
        Outputs above it are decided positive.
    cost : (false positive, false negative), optional
        What a wrong decision of either kind costs.
    prior : float, optional
        π₊ of the judged pairs if it is known. It is used, and a warning says so when
        the judgements contradict it.
    side : {"positive", "negative", "better"}, optional
        As in `estimate_accuracy`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(-1, 1.5, size=(2, 400))
    >>> r, r_prime = 1 / (1 + np.exp(-4 * z)), 1 / (1 + np.exp(-4 * z_prime))
    >>> labels = PairLabels.from_posteriors(r, r_prime)
    >>> print(evaluate(z, z_prime, labels, cost=(1, 5)))
    400 pairs, 0.95 intervals, threshold 0
    accuracy             .931 [.922, .939]
    true positive rate   .850 [.814, .880]
    false positive rate  .040 [.031, .052]
    precision            .880 [.853, .903]
    f1                   .865 [.842, .884]
    balanced accuracy    .905 [.889, .918]
    prior                .259 [.232, .288]
    roc auc              .976 [.958, .987]
    true positive        .220 [.193, .250]
    false positive       .030 [.023, .038]
    false negative       .039 [.032, .047]
    true negative        .711 [.679, .741]
    expected cost        .225 [.190, .265]
    """
    check_confidence(confidence)
    check_prior(prior)
    check_threshold(threshold)
    costs = check_cost(cost) if cost is not None else (1.0, 1.0)
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight, items)
    solutions = fit_decisions(pairs, threshold, prior, confidence, side)
    tables = [_estimates(pairs, solution, costs, confidence) for solution in solutions]
    named = {name: hull([table[name] for table in tables]) for name in tables[0]}
    return Evaluation(
        **{name: named[name] for name in MEASURES},
        confusion={name: named[name] for name in CONFUSION},
        roc_auc=area_under_curve(pairs, confidence),
        expected_cost=None if cost is None else named["expected_cost"],
        threshold=float(threshold),
        confidence=float(confidence),
        n=len(pairs),
        effective_pairs=pairs.effective_ends / 2,
        warnings=tuple(_warnings(pairs, solutions, threshold, prior, confidence)),
    )


def cost_measure(costs: tuple[float, float], theta: NDArray[Any]) -> NDArray[Any]:
    """Expected cost per instance as a share of the larger cost, at θ = (q, p, o)."""
    q, p, o = theta
    return np.array([(q * (1 - p) * costs[0] + (1 - q) * o * costs[1]) / max(costs)])


def check_threshold(threshold: float) -> None:
    """Refuse a threshold that is not a number."""
    if math.isnan(threshold):
        raise ValueError("threshold is NaN: give a finite number, 0 for outputs that are log-odds")


def check_cost(cost: tuple[float, float]) -> tuple[float, float]:
    """Two costs that are finite, not negative, and not both zero."""
    try:
        false_positive, false_negative = (float(x) for x in cost)
    except (TypeError, ValueError):
        raise ValueError(
            f"cost must be two numbers, (false positive, false negative); got {cost!r}"
        ) from None
    both = (false_positive, false_negative)
    if not all(math.isfinite(x) and x >= 0 for x in both) or max(both) == 0:
        raise ValueError(f"cost must be finite, not negative and not all zero; got {cost!r}")
    return both


def _all_measures(theta: NDArray[Any]) -> NDArray[Any]:
    q, p, o = theta
    hits, alarms, misses, rejections = q * p, q * (1 - p), (1 - q) * o, (1 - q) * (1 - o)
    tiny = 1e-300  # Only where a rate is not defined; its interval is [0, 1] then.
    prior = hits + misses
    tpr, fpr = hits / (prior + tiny), alarms / (alarms + rejections + tiny)
    return np.array(
        [
            hits + rejections,
            tpr,
            fpr,
            p,
            2 * hits / (prior + q + tiny),
            (tpr + 1 - fpr) / 2,
            prior,
            hits,
            alarms,
            misses,
            rejections,
        ]
    )


def _estimates(
    pairs: JudgedPairs, solution: Decisions, costs: tuple[float, float], confidence: float
) -> dict[str, Estimate]:
    values, influence = solution.measure(_all_measures)
    variances = pairs.dependence.variance(influence)
    q, ends = float(solution.theta[0]), pairs.effective_ends
    prior = float(values[MEASURES.index("prior")])
    # How many of the instances each measure is a share of.
    counts = dict.fromkeys((*MEASURES, *CONFUSION), ends) | {
        "true_positive_rate": ends * prior,
        "false_positive_rate": ends * (1 - prior),
        "precision": ends * q,
        "f1": ends * (prior + q) / 2,
        "balanced_accuracy": ends * 4 * prior * (1 - prior),
    }
    z = quantile(confidence, ends)
    named = {
        name: proportion(float(value), float(variance), count, z, noisy=pairs.noisy)
        for (name, count), value, variance in zip(counts.items(), values, variances, strict=True)
    }
    share, influence = solution.measure(lambda theta: cost_measure(costs, theta))
    variance = float(pairs.dependence.variance(influence)[0])
    scaled = proportion(float(share[0]), variance, ends, z, noisy=pairs.noisy)
    named["expected_cost"] = Estimate(
        *(x * max(costs) for x in (scaled.value, scaled.low, scaled.high))
    )
    return named


def _warnings(
    pairs: JudgedPairs,
    solutions: list[Decisions],
    threshold: float,
    prior: float | None,
    confidence: float,
) -> list[str]:
    found = []
    effective = pairs.effective_ends / 2
    if effective < FEW_PAIRS:
        found.append(
            f"the pairs are worth {effective:.0f} independent ones: "
            f"intervals of fewer than {FEW_PAIRS} are rough"
        )
    values, influence = solutions[0].measure(_all_measures)
    gap = float(values[1] - values[2])
    error = math.sqrt(float(pairs.dependence.variance(influence[:, 1] - influence[:, 2])))
    if len(solutions) > 1:
        found.append(
            "the judgements do not tell which class is which, because the decisions have too "
            "little to do with the classes: intervals hold both answers; prior= would decide"
        )
    elif abs(gap) < quantile(confidence, pairs.effective_ends) * error:
        found.append(
            f"true and false positive rate differ by {gap:.3f} only, which can be chance: "
            "the decisions may have nothing to do with the classes"
        )
    if prior is not None and pairs.has_similarity.any() and pairs.has_difference.any():
        free = fit_decisions(pairs, threshold, None, confidence)
        implied = hull([_estimates(pairs, s, (1.0, 1.0), confidence)["prior"] for s in free])
        if not implied.low <= prior <= implied.high:
            found.append(
                f"the stated prior is {prior:g} and the judgements imply {implied}: the annotator "
                "judges by another population, or is miscalibrated"
            )
    return found
