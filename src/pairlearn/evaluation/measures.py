"""Accuracy and every other measure of a classifier, from judged pairs that nobody labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlearn.columns import Floats
from pairlearn.evaluation.curves import area_under_curve, check_cost
from pairlearn.evaluation.decisions import (
    MEASURES,
    Decisions,
    estimate_measures,
    expected_cost,
    fit_decisions,
)
from pairlearn.evaluation.ends import correlated_ends
from pairlearn.evaluation.judged import Estimate, JudgedPairs, Side
from pairlearn.labels import PairLabels

CONFUSION = ("true_positive", "false_positive", "false_negative", "true_negative")
NAMED = tuple(name for name in MEASURES if name not in CONFUSION)
FEW_PAIRS = 30
EITHER_WAY = (
    "the judgements do not tell which class is which: there are too few, or the decisions have "
    "little to do with the classes. Intervals hold both answers; more pairs, drawn at random, may "
    "tell"
)
TWICE = (0.5, 2.0)
"""Slopes if annotators may be twice as sure as they should be, or half as sure."""


@dataclass(frozen=True)
class Plausible(Estimate):
    """An accuracy that holds over a range of confidences of the annotators.

    Attributes
    ----------
    value : float
        The estimate for the most likely confidence: as stated, or as estimated from labels.
    low, high : float
        Least lower and largest upper end of the intervals over the range.
    slopes : (float, float)
        The range of the factor from the annotators' log-odds to the true ones.
    labels : int
        Approximate number of items of known class that would halve the range; 0 if answers
        are yes or no, which do not tell how sure the annotators were.
    """

    slopes: tuple[float, float]
    labels: int

    def words(self) -> str:
        """The range in words, with the assumption behind it."""
        assumption = (
            "if annotators may be twice too sure or half as sure as they should be"
            if self.slopes == TWICE
            else "the annotators' log-odds times {:.2f} to {:.2f}, as known classes tell".format(
                *self.slopes
            )
        )
        return f"{self.low:.3f} to {self.high:.3f}, {assumption}"

    def remedy(self) -> str:
        """Advice on how to make the range narrower."""
        if not self.labels:
            return "answers that say how likely, and not yes or no, would make the range narrower"
        labels = math.ceil(self.labels / 10) * 10
        return f"about {labels:,} items of known class would make the range half as wide"

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        words = {"in_words": self.words(), "remedy": self.remedy()}
        return super().to_dict() | {"slopes": list(self.slopes), "labels": self.labels} | words


@dataclass(frozen=True)
class AccuracyEstimate(Estimate):
    """An accuracy with a confidence interval, all in [0, 1].

    Attributes
    ----------
    method : {"likelihood", "likelihood, prior given"}
        The estimator: rates of both decisions by the pair likelihood.
    n : int
        Number of pairs used.
    plausible : Plausible or None
        The range over the annotators' confidence, which judgements do not determine; set by
        the methods of `PairClassifier` if pairs have both judgements.
    """

    method: str
    n: int
    plausible: Plausible | None = None

    def __str__(self) -> str:
        estimate, plausible = super().__str__(), self.plausible
        if plausible is None:
            return estimate
        return f"{plausible.low:.3f} to {plausible.high:.3f}; {estimate} as annotators see it"


def estimate_accuracy(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    prior: float | None = None,
    side: Side | None = None,
) -> AccuracyEstimate:
    """Estimate the accuracy of a classifier on held-out judged pairs.

    With q the share of instances decided positive, and p and o the share of positives
    among those decided positive and negative,

        accuracy = q p + (1 − q)(1 − o),

    p and o by the pair likelihood (see `pairlearn.evaluation.levels`). No class prior is
    needed. The interval is Wilson's, with the effective number of instances that the
    estimate's variance implies.

    It is accuracy *as the annotator sees it*: a miscalibrated annotator biases it (see
    `sensitivity`), and so does a classifier that was trained on these pairs.

    Parameters
    ----------
    logits, logits_prime : array of shape (n,)
        Classifier outputs for both ends of pairs that it was not trained on; above
        zero is positive.
    labels : PairLabels
        The annotator's judgements; pairs may have one of them.
    weight : array of shape (n,), optional
        Weights of the pairs, for instance inverse probabilities of inclusion.
    items : array of shape (n, 2), optional
        Ids of both ends. Pairs that share items are dependent, and the interval accounts
        for it. Without ids all items count as distinct.
    confidence : float
        Coverage of the interval, in (0, 1).
    prior : float, optional
        π₊ of the judged pairs if it is known, as the annotator sees it; required if labels
        are differences only.
    side : {"positive", "negative", "better"}, optional
        Tells the classes apart if labels are similarities only and `prior` is not known: the
        larger class, or "better" if the classifier is better than chance. The interval
        contains both answers if the classes may be of equal size.

    See Also
    --------
    evaluate : All measures at once.
    pairlearn.check.plan : How many pairs a given precision takes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(size=(2, 500))
    >>> r, r_prime = 1 / (1 + np.exp(-4 * z)), 1 / (1 + np.exp(-4 * z_prime))
    >>> estimate = estimate_accuracy(z, z_prime, PairLabels.from_posteriors(r, r_prime))
    >>> round(estimate.value, 2), round(estimate.low, 2), round(estimate.high, 2)
    (0.87, 0.86, 0.88)
    >>> round(float(np.maximum([r, r_prime], [1 - r, 1 - r_prime]).mean()), 2)  # the truth
    0.87
    """
    return accuracy_of(
        JudgedPairs.of(logits, logits_prime, labels, weight, items, confidence, prior, side)
    )


def accuracy_of(pairs: JudgedPairs, threshold: float = 0.0) -> AccuracyEstimate:
    """Estimate the accuracy of decisions at a threshold."""
    (accuracy,) = estimate_measures(fit_decisions(pairs, threshold), [MEASURES["accuracy"]])
    method = "likelihood" if pairs.prior is None else "likelihood, prior given"
    return AccuracyEstimate(accuracy.value, accuracy.low, accuracy.high, method, len(pairs))


@dataclass(frozen=True)
class Evaluation:
    """Measures of a classifier as the annotator sees it, each with an interval.

    Attributes
    ----------
    accuracy, true_positive_rate, false_positive_rate, precision, f1, balanced_accuracy : Estimate
        NaN in [0, 1] if a measure is not defined, such as the precision of a classifier
        that never decides positive.
    prior : Estimate
        π₊ of the judged pairs, implied by judgements and decisions.
    confusion : dict of str to Estimate
        Shares of all instances that are "true_positive", "false_positive",
        "false_negative" and "true_negative".
    roc_auc : Estimate
        P(output of a positive > output of a negative), ties half.
    expected_cost : Estimate or None
        Expected cost per instance, if costs were given.
    threshold, confidence : float
        As given.
    n : int
        Number of pairs used.
    effective_pairs : float
        Number of independent, equally weighted pairs that are as informative.
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
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["confusion"] = {name: share.to_dict() for name, share in self.confusion.items()}
        fields["warnings"] = list(self.warnings)
        return {k: v.to_dict() if isinstance(v, Estimate) else v for k, v in fields.items()}

    def rows(self) -> dict[str, Estimate]:
        """All estimates by their titles."""
        rows = {name: getattr(self, name) for name in (*NAMED, "roc_auc")} | self.confusion
        if self.expected_cost is not None:
            rows["expected_cost"] = self.expected_cost
        return {name.replace("_", " "): estimate for name, estimate in rows.items()}

    def __str__(self) -> str:
        lines = [f"{name:<20} {estimate}" for name, estimate in self.rows().items()]
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
        Cost of a wrong decision of either kind.
    prior : float, optional
        π₊ of the judged pairs if it is known. It is used even if the judgements contradict
        it, with a warning.
    side : {"positive", "negative", "better"}, optional
        As in `estimate_accuracy`.

    See Also
    --------
    estimate_accuracy : The accuracy alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(-1, 1.5, size=(2, 400))
    >>> r, r_prime = 1 / (1 + np.exp(-4 * z)), 1 / (1 + np.exp(-4 * z_prime))
    >>> labels = PairLabels.from_posteriors(r, r_prime)
    >>> print(evaluate(z, z_prime, labels, cost=(1, 5)))
    400 pairs, 0.95 intervals, threshold 0
    accuracy             0.931 (0.922 to 0.939)
    true positive rate   0.850 (0.814 to 0.880)
    false positive rate  0.040 (0.031 to 0.052)
    precision            0.880 (0.853 to 0.903)
    f1                   0.865 (0.842 to 0.884)
    balanced accuracy    0.905 (0.889 to 0.918)
    prior                0.259 (0.232 to 0.288)
    roc auc              0.976 (0.958 to 0.987)
    true positive        0.220 (0.193 to 0.250)
    false positive       0.030 (0.023 to 0.038)
    false negative       0.039 (0.032 to 0.047)
    true negative        0.711 (0.679 to 0.741)
    expected cost        0.225 (0.190 to 0.265)
    """
    if math.isnan(threshold):
        raise ValueError("threshold is NaN: give a finite number, 0 for outputs that are log-odds")
    costs = (1.0, 1.0) if cost is None else check_cost(cost)
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight, items, confidence, prior, side)
    solutions = fit_decisions(pairs, threshold)
    measures = MEASURES | {"expected_cost": expected_cost(costs)}
    estimates = estimate_measures(solutions, list(measures.values()))
    by_name = dict(zip(measures, estimates, strict=True))
    return Evaluation(
        **{name: by_name[name] for name in NAMED},
        confusion={name: by_name[name] for name in CONFUSION},
        roc_auc=area_under_curve(pairs),
        expected_cost=None if cost is None else by_name["expected_cost"].scaled(max(costs)),
        threshold=float(threshold),
        confidence=pairs.confidence,
        n=len(pairs),
        effective_pairs=pairs.effective_ends / 2,
        warnings=tuple(_warnings(pairs, solutions, threshold)),
    )


def dependent_ends(pairs: JudgedPairs) -> str | None:
    """A warning if the ends of the pairs were not drawn independently."""
    left, right = _ranks(pairs)
    found = correlated_ends(left, right, pairs.weight, pairs.dependence)
    if found is None:
        return None
    return (
        f"the outputs for both ends of a pair have a correlation of {found[0]:.2f}, so the "
        "pairs are not independent draws: pairs of near neighbours, for instance, bias the "
        "accuracy and all other measures. Measure on pairs drawn at random, or give weights that "
        "undo how they were chosen"
    )


def unclear_decisions(pairs: JudgedPairs, solutions: Sequence[Decisions]) -> str | None:
    """A warning if decisions do not follow the classes, as far as the judgements tell."""
    if len(solutions) > 1:
        return EITHER_WAY
    rates = [MEASURES["true_positive_rate"], MEASURES["false_positive_rate"]]
    gap = solutions[0].value(rates[0]) - solutions[0].value(rates[1])
    influence = solutions[0].influences(rates) @ [1, -1]
    if abs(gap) < pairs.quantile * math.sqrt(float(pairs.dependence.variance(influence))):
        return (
            f"true and false positive rate differ by {gap:.3f} only, which can be chance: "
            "the decisions may have nothing to do with the classes. More pairs may tell"
        )
    if gap < 0:
        return (
            "the judgements contradict the decisions: an item called positive is more often a "
            "negative one. Either these judgements have left and right exchanged, or the decisions "
            "the classes"
        )
    return None


def _warnings(pairs: JudgedPairs, solutions: list[Decisions], threshold: float) -> list[str]:
    warnings = []
    effective = pairs.effective_ends / 2
    if effective < FEW_PAIRS:
        warnings.append(
            f"the pairs are worth {effective:.0f} independent ones: "
            f"intervals of fewer than {FEW_PAIRS} are rough"
        )
    unclear = unclear_decisions(pairs, solutions)
    if unclear == EITHER_WAY:
        unclear += "; prior= would decide"
    warnings += filter(None, [dependent_ends(pairs), unclear])
    if pairs.prior is not None and pairs.has_similarity.any() and pairs.has_difference.any():
        free = fit_decisions(replace(pairs, prior=None), threshold)
        (implied,) = estimate_measures(free, [MEASURES["prior"]])
        if not implied.low <= pairs.prior <= implied.high:
            warnings.append(
                f"the stated prior is {pairs.prior:g} and the judgements imply {implied}: the "
                "annotator judges by another population, or is miscalibrated"
            )
    return warnings


def _ranks(pairs: JudgedPairs) -> Floats:
    """Ranks (2, n, 1) of the outputs, which may be infinite, among those of both ends."""
    outputs = np.concatenate([pairs.z, pairs.z_prime])
    _, place, count = np.unique(outputs, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - count / 2)[place].reshape(2, -1, 1), np.float64)
