"""Annotators with the wrong confidence: its effect on the accuracy, and how to correct it.

The true posterior of an instance is r̃ = σ(k · logit r + d), where r is the annotator's: k < 1 for
an overconfident annotator, k > 1 for an underconfident one, d for a bias to one class. Judgements
of a pair determine (r, r') up to the reflection (1 − r', 1 − r). Scaling by k is the same for both;
for a shift d, the one is taken whose sum is on the same side of 1 as the sum of the classifier's
log-odds is of 0.

Judgements alone do not determine k: `sensitivity` shows the accuracy for several values, and labels
of some items estimate it (`recalibrate`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.columns import Floats, as_column, as_floats, first_rows
from pairlearn.evaluation.judged import JudgedPairs, sigmoid
from pairlearn.evaluation.measures import AccuracyEstimate, accuracy_of
from pairlearn.labels import PairLabels

SURE = 1e-6
"""Distance of posteriors from 0 and 1, where log-odds are infinite."""


@dataclass(frozen=True)
class Sensitivity:
    """Range of accuracies over assumptions about the annotator.

    Attributes
    ----------
    low, high, low_end, high_end : float
        Least and largest estimate of the accuracy, and ends of their intervals.
    estimates : tuple of (k, d, AccuracyEstimate)
    n : int
        Number of pairs used: those with both judgements.
    """

    low: float
    high: float
    low_end: float
    high_end: float
    estimates: tuple[tuple[float, float, AccuracyEstimate], ...]
    n: int


@dataclass(frozen=True)
class Confidence:
    """Annotators' confidence estimated from ``n`` true labels: ``slope`` k and ``shift`` d.

    ``interval`` is the 95% interval of the slope.
    """

    slope: float
    shift: float
    n: int
    interval: tuple[float, float]


@dataclass(frozen=True)
class Recalibration(Confidence):
    """A `Confidence` with ``labels``, the judgements that a calibrated annotator would give."""

    labels: PairLabels


def sensitivity(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    slopes: Sequence[float] = (0.5, 0.75, 1.0, 1.5, 2.0),
    shifts: Sequence[float] = (0.0,),
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
) -> Sensitivity:
    """Estimate the accuracy if the annotator is over- or underconfident.

    Parameters
    ----------
    logits, logits_prime, labels, weight, items, confidence
        As in `estimate_accuracy`. Only pairs with both judgements are used, since one
        alone does not determine posteriors; infeasible judgements are projected first.
    slopes, shifts : sequence of float
        Values of k and d, in all combinations. Scaling needs no further assumption; a shift
        other than zero assumes that the sum of a pair's logits has the right sign.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(0, 3, size=(2, 500))
    >>> labels = PairLabels.from_posteriors(1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)))
    >>> band = sensitivity(z, z_prime, labels, slopes=[0.5, 1, 2])
    >>> [(k, round(estimate.value, 2)) for k, _, estimate in band.estimates]
    [(0.5, 0.73), (1.0, 0.83), (2.0, 0.91)]
    """
    for name, values in (("slopes", slopes), ("shifts", shifts)):
        if not len(values):
            raise ValueError(f"{name} is empty: give at least one value")
    for k in slopes:
        if not (np.isfinite(k) and k > 0):
            raise ValueError(f"slopes must be positive and finite; got {k}")
    annotator = _Annotator(JudgedPairs.of(logits, logits_prime, labels, weight, items, confidence))
    if annotator.n < 2:
        raise ValueError("labels have fewer than two pairs with both judgements: give two")
    estimates = [(float(k), float(d), annotator.accuracy(k, d)) for k in slopes for d in shifts]
    only = [estimate for _, _, estimate in estimates]
    return Sensitivity(
        min(estimate.value for estimate in only),
        max(estimate.value for estimate in only),
        min(estimate.low for estimate in only),
        max(estimate.high for estimate in only),
        tuple(estimates),
        annotator.n,
    )


def recalibrate(
    labels: PairLabels,
    logits: Any,
    logits_prime: Any,
    classes: Any,
    classes_prime: Any,
    *,
    weight: Any = None,
    items: Any = None,
) -> Recalibration:
    """Correct an annotator's confidence with a few true labels.

    k and d maximise the likelihood of the known classes, P(y=+1) = σ(k·logit r + d), with weak
    priors log k ~ N(0, 1) and d ~ N(0, 4), which matter if labels are few. All judgements are then
    recomputed from the corrected posteriors.

    Parameters
    ----------
    labels : PairLabels
        Both judgements of n pairs; infeasible ones are projected.
    logits, logits_prime : array of shape (n,)
        A classifier's log-odds, used only to choose between the two pairs of posteriors that fit
        a judgement; the choice must not depend on the labels.
    classes, classes_prime : array of shape (n,)
        1 or 0 where the true class of an end is known, NaN elsewhere.
    weight : array of shape (n,), optional
        Weights of the pairs, for instance low for an annotator who guesses.
    items : array of shape (n, 2), optional
        Positions or ids of the items. The class of an item in several pairs counts once.

    Examples
    --------
    An annotator whose log-odds are twice what they should be:

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, size=(2, 1000))
    >>> y = (rng.random((2, 1000)) < 1 / (1 + np.exp(-z))).astype(float)
    >>> labels = PairLabels.from_posteriors(*(1 / (1 + np.exp(-2 * z))))
    >>> corrected = recalibrate(labels, *z, *y)
    >>> round(corrected.slope, 1), round(corrected.shift, 1), corrected.n
    (0.5, 0.0, 2000)
    """
    n = len(labels)
    for row in first_rows(np.isnan(as_floats(labels.to_array())).any(1)):
        raise ValueError(
            f"labels have one judgement only in row {row}, which does not determine posteriors: "
            "select the pairs with both"
        )
    z, z_prime = as_column("logits", logits, n), as_column("logits_prime", logits_prime, n)
    odds = _log_odds(labels, z, z_prime)
    known = np.stack(
        [_classes("classes", classes, n), _classes("classes_prime", classes_prime, n)], axis=1
    )
    given = ~np.isnan(known)
    if not given.any():
        raise ValueError("classes and classes_prime are all missing: give some true labels")
    counts = np.ones(n) if weight is None else as_column("weight", weight, n)
    given &= counts[:, None] > 0
    if not given.any():
        raise ValueError("pairs with a known class have weight 0: give classes of other items")
    ends = int(given.sum())
    told = ends if items is None else len(np.unique(np.asarray(items)[given]))
    counts = np.broadcast_to(counts[:, None], given.shape)[given]
    worth = counts.sum() / (counts**2).sum() * told / ends  # by Kish, and a class counts once
    slope, shift, error = _logistic_regression(odds[given], known[given], worth * counts)
    interval = slope * math.exp(-2 * error), slope * math.exp(2 * error)
    return Recalibration(slope, shift, told, interval, _judgements(odds, slope, shift))


class _Annotator:
    """Pairs with both judgements, and the annotators' log-odds (n, 2) of their ends."""

    def __init__(self, pairs: JudgedPairs, threshold: float = 0.0) -> None:
        both, ends = pairs.has_similarity & pairs.has_difference, pairs.dependence.ends
        self.z, self.z_prime, self.threshold = pairs.z[both], pairs.z_prime[both], threshold
        self.labels = PairLabels(pairs.similarity[both], pairs.difference[both], noisy=True)
        self.odds, self.n = _log_odds(self.labels, self.z, self.z_prime), len(self.labels)
        items = None if ends is None else ends[both]
        self.options = pairs.weight[both], items, pairs.confidence

    def accuracy(self, slope: float | None = None, shift: float = 0.0) -> AccuracyEstimate:
        """Estimate the accuracy with the log-odds rescaled; without a slope, as annotated."""
        labels = self.labels if slope is None else _judgements(self.odds, slope, shift)
        pairs = JudgedPairs.of(self.z, self.z_prime, labels, *self.options)
        return accuracy_of(pairs, self.threshold)


def _log_odds(labels: PairLabels, z: Floats, z_prime: Floats) -> Floats:
    """The annotator's log-odds (n, 2), with the reflection chosen by the sign of z + z'."""
    upper, lower = labels.project().posteriors()
    r = np.where((z + z_prime > 0)[:, None], upper, lower).clip(SURE, 1 - SURE)
    return np.asarray(np.log(r) - np.log1p(-r))


def _judgements(odds: Floats, slope: float, shift: float) -> PairLabels:
    r = sigmoid(slope * odds + shift)
    return PairLabels.from_posteriors(r[:, 0], r[:, 1])


def _classes(name: str, values: Any, n: int) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got {column.shape}")
    for row in first_rows(~np.isnan(column) & (column != 0) & (column != 1)):
        raise ValueError(f"{name} must be 0, 1 or NaN; row {row} is {column[row]:g}")
    return column


def _logistic_regression(odds: Floats, y: Floats, weight: Floats) -> tuple[float, float, float]:
    """The most probable (k, d), and the standard error of log k."""
    from scipy.optimize import minimize

    def loss(at: Floats) -> tuple[float, Floats]:
        scaled = np.exp(at[0]) * odds
        t = scaled + at[1]
        error = weight * (sigmoid(t) - y)
        value = weight @ np.logaddexp(0, np.where(y > 0, -t, t)) + at[0] ** 2 / 2 + at[1] ** 2 / 8
        return float(value), np.array([error @ scaled, error.sum()]) + at / [1, 4]

    log_slope, shift = minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    p = sigmoid(np.exp(log_slope) * odds + shift)
    slopes = np.stack([np.exp(log_slope) * odds, np.ones_like(odds)], 1)
    information = (slopes * (weight * p * (1 - p))[:, None]).T @ slopes + np.diag([1, 1 / 4])
    error = float(np.sqrt(np.linalg.inv(information)[0, 0]))
    return float(np.exp(log_slope)), float(shift), error
