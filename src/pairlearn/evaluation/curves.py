"""Curves over all thresholds: ROC, calibration, and cost with its cheapest threshold.

Dissimilar pairs consist of a positive and a negative instance, in either order with
probability a = P(+, −) and b = P(−, +). So they give rates without any prior,

    TPR(t) = E[a 1(g > t) + b 1(g' > t)] / E[1 − s],   FPR(t) with a and b swapped,
    AUC = E[a 1(g > g') + b 1(g' > g)] / E[1 − s],      ties half.

With a, b = (1 − s ∓ c)/2 each numerator is a mean over similarities plus a mean over
differences, each of the pairs that have them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.columns import Floats, check_integer, first_rows
from pairlearn.evaluation.decisions import choose_solutions, expected_cost, fit_decisions
from pairlearn.evaluation.judged import Estimate, JudgedPairs, largest_deviation
from pairlearn.evaluation.levels import LevelTally
from pairlearn.labels import PairLabels

CANDIDATES = 50


@dataclass(frozen=True)
class RocCurve:
    """True and false positive rates at all thresholds.

    Attributes
    ----------
    thresholds : array of shape (m,)
        Decreasing from +∞; outputs of at least the threshold are decided positive.
    true_positive_rate, false_positive_rate : array of shape (m,)
        Both from 0 to 1; non-decreasing for feasible judgements.
    """

    thresholds: Floats
    true_positive_rate: Floats
    false_positive_rate: Floats


def roc_curve(
    logits: Any, logits_prime: Any, labels: PairLabels, *, weight: Any = None
) -> RocCurve:
    """Estimate the ROC curve from judged pairs.

    Parameters are as in `estimate_accuracy`; both kinds of judgements are needed.

    Examples
    --------
    One pair, surely (+, −), and one that is so with probability 0.75, else (−, +):

    >>> curve = roc_curve([3.0, 1.0], [0.0, 2.0], PairLabels([0.0, 0.0], [-1.0, -0.5]))
    >>> curve.true_positive_rate
    array([0.   , 0.5  , 0.625, 1.   , 1.   ])
    """
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight)
    pairs.require_identified()
    different, towards = _terms(pairs)
    total = float(different.sum())
    if total <= 0:
        raise ValueError("labels call every pair similar: a ROC curve needs dissimilar pairs")
    # What each end adds to the rates when the threshold falls below its output.
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


def area_under_curve(pairs: JudgedPairs) -> tuple[Estimate, Floats]:
    """P(output of a positive > output of a negative), ties half, and the influences of the pairs.

    NaN if it is not determined.
    """
    has_s, has_c = pairs.has_similarity, pairs.has_difference
    different, towards = _terms(pairs)
    total = float(different.sum())
    # With one kind of judgement, a prior does not help here.
    if total <= 0 or not (has_s.any() and has_c.any()):
        return Estimate(np.nan, 0.0, 1.0), np.zeros(len(pairs))
    # Not the sign of a difference, since outputs may be infinite.
    order = (pairs.z_prime > pairs.z) * 1.0 - (pairs.z > pairs.z_prime)
    ratio = float((towards * order).sum()) / total
    # AUC = (1 + E[c·order]/E[1 − s])/2; influences of both means, each over its own rows.
    share_c = np.where(has_c, pairs.weight, 0.0) / pairs.weight[has_c].sum()
    share_s = np.where(has_s, pairs.weight, 0.0) / pairs.weight[has_s].sum()
    of_c, of_s = towards * order - share_c * ratio * total, different - share_s * total
    influence = (of_c - ratio * of_s) / (2 * total)
    count = pairs.effective_ends / 2 * total
    return pairs.estimates((1 + ratio) / 2, influence, count)[0], influence


def _terms(pairs: JudgedPairs) -> tuple[Floats, Floats]:
    """Terms (n,) that sum to the means of 1 − s and of c, zero where not given."""
    has_s, has_c = pairs.has_similarity, pairs.has_difference
    different = np.where(has_s, 1 - pairs.similarity, 0.0) * pairs.weight
    towards = np.where(has_c, pairs.difference, 0.0) * pairs.weight
    return (
        different / max(float(pairs.weight[has_s].sum()), 1e-300),
        towards / max(float(pairs.weight[has_c].sum()), 1e-300),
    )


@dataclass(frozen=True)
class CalibrationCurve:
    """Predicted and implied rates of positives in each bin.

    Attributes
    ----------
    edges : array of shape (k + 1,)
        Bin i contains probabilities in [edges[i], edges[i + 1]); the last bin also its upper
        edge.
    predicted, shares : array of shape (k,)
        Mean prediction and share of the instances in each bin.
    implied : tuple of k Estimate
        Rate of positives in each bin, as the annotator sees it.
    """

    edges: Floats
    predicted: Floats
    implied: tuple[Estimate, ...]
    shares: Floats


def calibration_curve(
    probabilities: Any,
    probabilities_prime: Any,
    labels: PairLabels,
    *,
    bins: int = 10,
    **options: Any,
) -> CalibrationCurve:
    """Compare predicted probabilities with the rates of positives that judged pairs imply.

    The bins are the levels of `pairlearn.evaluation.levels`: their rates of positives ρ_1 … ρ_k
    maximise the pair likelihood, without labels or a prior, like those of a piecewise constant
    recalibration of the classifier.

    Parameters
    ----------
    probabilities, probabilities_prime : array of shape (n,)
        Predicted P(y=+1) of both ends.
    bins : int
        Number of bins with equal shares; fewer if predictions are tied.
    labels, **options
        As in `estimate_accuracy`.

    Examples
    --------
    A classifier that says 0.2 and 0.8 where 0.1 and 0.9 are true:

    >>> rng = np.random.default_rng(0)
    >>> r, r_prime = rng.choice([0.1, 0.9], size=(2, 500), p=[0.7, 0.3])
    >>> p, p_prime = np.where(r < 0.5, 0.2, 0.8), np.where(r_prime < 0.5, 0.2, 0.8)
    >>> curve = calibration_curve(p, p_prime, PairLabels.from_posteriors(r, r_prime))
    >>> curve.predicted, [round(rate.value, 3) for rate in curve.implied]
    (array([0.2, 0.8]), [0.1, 0.9])
    """
    names = ("probabilities", "probabilities_prime")
    pairs = JudgedPairs.of(probabilities, probabilities_prime, labels, names=names, **options)
    for name, column in zip(names, (pairs.z, pairs.z_prime), strict=True):
        for row in first_rows((column < 0) | (column > 1)):
            raise ValueError(f"{name} must lie in [0, 1]; row {row} is {column[row]:g}")
    pairs.require_identified()
    edges = _edges(bins, pairs)
    level, level_prime = (
        np.searchsorted(edges[1:-1], column, side="right") for column in (pairs.z, pairs.z_prime)
    )
    tally = LevelTally(pairs, level, level_prime, len(edges) - 1)
    fit = tally.fit(tally.solve(tally.start()))
    counts = pairs.effective_ends * tally.shares
    implied = tuple(pairs.estimates(fit.rates, fit.rate_influence, counts))
    twice = np.concatenate([pairs.weight, pairs.weight])
    both, values = np.concatenate([level, level_prime]), np.concatenate([pairs.z, pairs.z_prime])
    predicted = np.bincount(both, twice * values) / np.bincount(both, twice)
    return CalibrationCurve(edges, predicted, implied, tally.shares)


def _edges(bins: int, pairs: JudgedPairs) -> Floats:
    """Edges of bins that are not empty."""
    predictions = np.concatenate([pairs.z, pairs.z_prime])
    check_integer("bins", bins, 1)
    shares = np.linspace(0, 1, bins + 1)[1:-1]
    inner = np.unique(np.quantile(predictions, shares, method="higher"))
    return np.concatenate([[0.0], inner[inner > predictions.min()], [1.0]])


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold and its expected cost per instance.

    Attributes
    ----------
    threshold, cost : float, Estimate
        Decide positive above it, at this expected cost. The value is the least of many estimates
        and slightly optimistic; the interval holds for all candidates simultaneously.
    candidates, costs : array of shape (m,)
        Thresholds tried, and their estimated costs.
    """

    threshold: float
    cost: Estimate
    candidates: Floats
    costs: Floats


def choose_threshold(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    cost: tuple[float, float] = (1.0, 1.0),
    **options: Any,
) -> ThresholdChoice:
    """Choose the threshold with the least estimated expected cost.

    The expected cost q (1 − p) c_fp + (1 − q) o c_fn is estimated at up to 50 quantiles of the
    outputs, and for deciding always and never positive. An ordinary interval at the least of them
    would be too low and too short, so the interval is *simultaneous*: its quantile is that of the
    largest deviation among all candidates, simulated with their estimated correlations.

    Parameters
    ----------
    cost : (false positive, false negative)
        Cost of a wrong decision of either kind; (1, 1) gives the error rate.
    logits, logits_prime, labels, **options
        As in `estimate_accuracy`.

    Examples
    --------
    A false negative costs nine times as much as a false positive, so the best threshold is a
    probability of 0.1, log-odds of −2.2:

    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(0, 3, size=(2, 2000))
    >>> labels = PairLabels.from_posteriors(1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)))
    >>> choice = choose_threshold(z, z_prime, labels, cost=(1, 9))
    >>> round(choice.threshold, 1), str(choice.cost)
    (-2.2, '0.345 (0.322 to 0.370)')
    """
    costs = check_cost(cost)
    pairs = JudgedPairs.of(logits, logits_prime, labels, **options)
    candidates = _candidates(pairs)
    measure = expected_cost(costs)
    solutions = choose_solutions([fit_decisions(pairs, float(t)) for t in candidates])
    values = np.array([solution.value(measure) for solution in solutions])
    influences = np.hstack([solution.influences([measure]) for solution in solutions])
    best, most = int(np.argmin(values)), max(costs)
    covariance = pairs.dependence.covariance(influences)
    z = largest_deviation(covariance, pairs.confidence, pairs.effective_ends)
    (least,) = pairs.estimates(values[best], influences[:, best], z=z)
    return ThresholdChoice(float(candidates[best]), least.scaled(most), candidates, values * most)


def check_cost(cost: tuple[float, float]) -> tuple[float, float]:
    """Check two costs: finite, not negative, and not both zero."""
    try:
        false_positive, false_negative = map(float, cost)
    except (TypeError, ValueError):
        raise ValueError(
            f"cost must be two numbers, (false positive, false negative); got {cost!r}"
        ) from None
    costs = (false_positive, false_negative)
    if not all(math.isfinite(x) and x >= 0 for x in costs) or max(costs) == 0:
        raise ValueError(f"cost must be finite, not negative and not all zero; got {cost!r}")
    return costs


def _candidates(pairs: JudgedPairs) -> Floats:
    """Midpoints between outputs at quantiles, with one below and one above all outputs."""
    outputs = np.unique(np.concatenate([pairs.z, pairs.z_prime]))
    outputs = outputs[np.isfinite(outputs)]
    if not len(outputs):
        raise ValueError("logits are all infinite: a threshold needs finite outputs")
    middle = (outputs[1:] + outputs[:-1]) / 2
    if len(middle) > CANDIDATES:
        pooled = np.concatenate([pairs.z, pairs.z_prime])
        places = np.quantile(pooled[np.isfinite(pooled)], np.linspace(0, 1, CANDIDATES + 2)[1:-1])
        middle = np.unique(middle[np.searchsorted(middle, places).clip(0, len(middle) - 1)])
    return np.concatenate([[outputs[0] - 1], middle, [outputs[-1] + 1]])
