"""The accuracy of a classifier, from judged pairs that nobody labelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pairlearn.evaluation.decisions import Side, accuracy_of, fit_decisions
from pairlearn.evaluation.estimate import hull, proportion, quantile
from pairlearn.evaluation.judged import JudgedPairs, check_confidence, check_prior
from pairlearn.labels import PairLabels

__all__ = ["AccuracyEstimate", "estimate_accuracy"]


@dataclass(frozen=True)
class AccuracyEstimate:
    """An accuracy with a confidence interval, all in [0, 1].

    Attributes
    ----------
    value, low, high : float
        The estimate and the ends of its interval.
    method : {"likelihood", "likelihood, prior given"}
        The estimator: rates of both decisions by the pair likelihood.
    n : int
        Pairs used.
    """

    value: float
    low: float
    high: float
    method: str
    n: int


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
        What the annotator said. Pairs with one judgement count for what they say.
    weight : array of shape (n,), optional
        Weights of the pairs, for instance inverse probabilities of inclusion.
    items : array of shape (n, 2), optional
        Ids of both ends. Items that recur make pairs dependent, and the interval
        accounts for that. Without ids all items count as distinct.
    confidence : float
        Coverage of the interval, in (0, 1).
    prior : float, optional
        π₊ of the judged pairs where it is known, in the annotator's eyes; needed where
        labels are differences only.
    side : {"positive", "negative", "better"}, optional
        What tells the classes apart where labels are similarities only and `prior` is not
        known: the larger class, or "better", that the classifier is better than chance. An
        interval holds both answers where the classes may be of equal size.

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
    check_confidence(confidence)
    check_prior(prior)
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight, items)
    ends = pairs.effective_ends
    z = quantile(confidence, ends)
    estimates = []
    for solution in fit_decisions(pairs, 0.0, prior, confidence, side):
        value, influence = solution.measure(accuracy_of)
        variance = pairs.dependence.variance(influence)
        estimates.append(
            proportion(float(value[0]), float(variance[0]), ends, z, noisy=pairs.noisy)
        )
    result = hull(estimates)
    method = "likelihood" if prior is None else "likelihood, prior given"
    return AccuracyEstimate(result.value, result.low, result.high, method, len(pairs))
