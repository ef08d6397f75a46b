"""How well outputs rank the classes: ROC curve and the area under it, from pairs.

Dissimilar pairs are pairs of a positive and a negative, weighted by the probability of
either order: a = P(+, −), b = P(−, +). So they show rates without any prior,

    TPR(t) = E[a 1(g > t) + b 1(g' > t)] / E[1 − s],   FPR(t) with a and b swapped,
    AUC = E[a 1(g > g') + b 1(g' > g)] / E[1 − s],      ties half.

With a, b = (1 − s ∓ c)/2 every numerator is a mean of similarities plus a mean of
differences, each taken over the pairs that have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.evaluation.estimate import Estimate, proportion, quantile
from pairlearn.evaluation.judged import JudgedPairs
from pairlearn.evaluation.levels import require_identified
from pairlearn.labels import PairLabels

__all__ = ["RocCurve", "area_under_curve", "roc_curve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RocCurve:
    """Rates at thresholds, from "nothing is positive" to "everything is".

    Attributes
    ----------
    thresholds : array of shape (m,)
        Decreasing, the first is +∞; an output is positive if it is at least the threshold.
    true_positive_rate, false_positive_rate : array of shape (m,)
        Both from 0 to 1; they never decrease for feasible judgements.
    """

    thresholds: Floats
    true_positive_rate: Floats
    false_positive_rate: Floats


def roc_curve(
    logits: Any, logits_prime: Any, labels: PairLabels, *, weight: Any = None
) -> RocCurve:
    """The ROC curve that judged pairs imply.

    Parameters
    ----------
    logits, logits_prime, labels, weight
        As in `estimate_accuracy`; both kinds of judgements are needed.

    Examples
    --------
    One pair, surely (+, −), and one that is so with probability .75, else (−, +):

    >>> curve = roc_curve([3.0, 1.0], [0.0, 2.0], PairLabels([0.0, 0.0], [-1.0, -0.5]))
    >>> curve.thresholds
    array([inf,  3.,  2.,  1.,  0.])
    >>> curve.true_positive_rate
    array([0.   , 0.5  , 0.625, 1.   , 1.   ])
    >>> curve.false_positive_rate
    array([0.   , 0.   , 0.375, 0.5  , 1.   ])
    """
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight, None)
    require_identified(pairs, None)
    different, towards = _terms(pairs)
    total = float(different.sum())
    if total <= 0:
        raise ValueError("labels call every pair similar: a ROC curve needs dissimilar pairs")
    # What each end adds to both rates when the threshold falls below its output.
    half, lean = different / (2 * total), towards / (2 * total)
    outputs = np.concatenate([pairs.z, pairs.z_prime])
    steps = np.array(
        [np.concatenate([half - lean, half + lean]), np.concatenate([half + lean, half - lean])]
    )
    thresholds, place = np.unique(-outputs, return_inverse=True)
    tpr, fpr = (np.cumsum(np.bincount(place.reshape(-1), step)) for step in steps)
    return RocCurve(
        np.concatenate([[np.inf], -thresholds + 0.0]),
        np.concatenate([[0.0], tpr]),
        np.concatenate([[0.0], fpr]),
    )


def area_under_curve(pairs: JudgedPairs, confidence: float) -> Estimate:
    """P(output of a positive > output of a negative), ties half; NaN if it cannot be told."""
    told_s, told_c = pairs.has_similarity, pairs.has_difference
    if not (told_s.any() and told_c.any()):  # Then a prior was given, and cannot help here.
        return Estimate(np.nan, 0.0, 1.0)
    different, towards = _terms(pairs)
    total = float(different.sum())
    if total <= 0:
        return Estimate(np.nan, 0.0, 1.0)
    # Not the sign of a difference: outputs may be infinite.
    order = (pairs.z_prime > pairs.z) * 1.0 - (pairs.z > pairs.z_prime)
    ratio = float((towards * order).sum()) / total
    # AUC = (1 + E[c·order]/E[1 − s])/2; influences of both means, each over its own rows.
    mean_c, mean_s = ratio * total, total
    share_c = np.where(told_c, pairs.weight, 0.0) / pairs.weight[told_c].sum()
    share_s = np.where(told_s, pairs.weight, 0.0) / pairs.weight[told_s].sum()
    influence = ((towards * order - share_c * mean_c) - ratio * (different - share_s * mean_s)) / (
        2 * total
    )
    variance = float(pairs.dependence.variance(influence))
    ends = pairs.effective_ends
    count = ends / 2 * total
    z = quantile(confidence, ends)
    return proportion((1 + ratio) / 2, variance, count, z, noisy=pairs.noisy)


def _terms(pairs: JudgedPairs) -> tuple[Floats, Floats]:
    """Terms (n,) that sum to the means of 1 − s and of c, zero where not given."""
    told_s, told_c = pairs.has_similarity, pairs.has_difference
    different = np.where(told_s, 1 - pairs.similarity, 0.0) * pairs.weight
    towards = np.where(told_c, pairs.difference, 0.0) * pairs.weight
    return (
        different / max(float(pairs.weight[told_s].sum()), 1e-300),
        towards / max(float(pairs.weight[told_c].sum()), 1e-300),
    )
