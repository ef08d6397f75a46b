"""Annotators whose confidence is wrong: what follows from it, and how to correct it.

The true posterior of an instance is r̃ = σ(k · logit r + d), where r is the annotator's: k < 1 for
an overconfident annotator, k > 1 for an underconfident one, d for a leaning to one class.
Judgements of a pair fix (r, r') up to the reflection (1 − r', 1 − r). Scaling by k is the same for
both; for a shift d the one is taken whose sum lies on the same side of 1 as the classifier's
log-odds lie of 0.

On a scale of few levels an answer stands for everything that is rounded to it. Where posteriors
are moved, they begin at what the classifier says, as far as the level admits that, and no surer
than the middle of what the end of the scale stands for.

Judgements alone do not tell k. The accuracy that holds whatever it is, is a range (`plausible`),
which labels of some of the items make narrower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.columns import Floats, as_column, as_floats, first_rows
from pairlearn.evaluation.judged import Estimate, JudgedPairs
from pairlearn.evaluation.measures import TWICE, AccuracyEstimate, Plausible, accuracy_of
from pairlearn.labels import PairLabels

SURE = 1e-6
"""Posteriors are kept this far from 0 and 1, where log-odds are infinite."""
LEVELS = 11
"""A scale with no more different answers than this is one of levels."""
RARE = 0.02
"""Share of the answers that a level has at least, where it is a heap of near ones."""


@dataclass(frozen=True)
class Sensitivity:
    """A band of accuracies over assumptions about the annotator.

    Attributes
    ----------
    low, high, low_end, high_end : float
        Least and largest estimate of the accuracy, and ends of the intervals.
    estimates : tuple of (k, d, AccuracyEstimate)
    n : int
        Pairs used: those with both judgements.
    """

    low: float
    high: float
    low_end: float
    high_end: float
    estimates: tuple[tuple[float, float, AccuracyEstimate], ...]
    n: int


@dataclass(frozen=True)
class Confidence:
    """Annotators' confidence by ``n`` true labels: ``slope`` is k, ``shift`` is d.

    ``interval`` is that of the slope, 95%.
    """

    slope: float
    shift: float
    n: int
    interval: tuple[float, float]


@dataclass(frozen=True)
class Recalibration(Confidence):
    """An annotator's judgements, corrected to what a calibrated one would have said: ``labels``."""

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
    """How far the accuracy moves if the annotator is over- or underconfident.

    Parameters
    ----------
    logits, logits_prime, labels, weight, items, confidence
        As in `estimate_accuracy`. Only pairs with both judgements are used, since one
        alone does not determine posteriors; infeasible judgements are projected first.
    slopes, shifts : sequence of float
        The k and d to combine. Scaling needs no further assumption; for a shift other
        than zero the sum of a pair's logits has to have the right sign.

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
    told = _Told(JudgedPairs.of(logits, logits_prime, labels, weight, items, confidence))
    if told.n < 2:
        raise ValueError("labels have fewer than two pairs with both judgements: give two")
    estimates = tuple((float(k), float(d), told.accuracy(k, d)) for k in slopes for d in shifts)
    only = [estimate for _, _, estimate in estimates]
    return Sensitivity(
        min(e.value for e in only),
        max(e.value for e in only),
        min(e.low for e in only),
        max(e.high for e in only),
        estimates,
        told.n,
    )


def recalibrate(
    labels: PairLabels,
    logits: Any,
    logits_prime: Any,
    classes: Any,
    classes_prime: Any,
    *,
    weight: Any = None,
) -> Recalibration:
    """Correct an annotator's confidence with a few true labels.

    k and d maximise the likelihood of the known classes, P(y=+1) = σ(k·logit r + d), with weak
    priors log k ~ N(0, 1) and d ~ N(0, 4) that decide when a few labels do not. All judgements are
    then restated with the corrected posteriors.

    Parameters
    ----------
    labels : PairLabels
        Judgements of n pairs, both of each; infeasible ones are projected.
    logits, logits_prime : array of shape (n,)
        A classifier's log-odds, which only choose between the two pairs of posteriors that fit a
        judgement; the choice must not depend on the labels.
    classes, classes_prime : array of shape (n,)
        1 or 0 where the true class of an end is known, NaN elsewhere.
    weight : array of shape (n,), optional
        How much each pair counts, such as little for an annotator who guesses.

    Examples
    --------
    An annotator whose log-odds are twice what they should be:

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, size=(2, 1000))
    >>> y = (rng.random((2, 1000)) < 1 / (1 + np.exp(-z))).astype(float)
    >>> labels = PairLabels.from_posteriors(*(1 / (1 + np.exp(-2 * z))))
    >>> mended = recalibrate(labels, *z, *y)
    >>> round(mended.slope, 1), round(mended.shift, 1), mended.n
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
    counts = np.broadcast_to(counts[:, None], given.shape)[given]
    if not counts.any():
        raise ValueError("pairs with a known class have weight 0: give classes of other items")
    slope, shift, error = _logistic_regression(odds[given], known[given], counts)
    ends = slope * math.exp(-2 * error), slope * math.exp(2 * error)
    return Recalibration(slope, shift, int(given.sum()), ends, _judgements(odds, slope, shift))


def plausible(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    known: Confidence | None = None,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    threshold: float = 0.0,
) -> Plausible | None:
    """The accuracy, whatever the annotators' confidence: the range that one can rely on.

    Parameters
    ----------
    logits, logits_prime, labels, weight, items, confidence
        As in `estimate_accuracy`; pairs with both judgements are used. None without any.
    known : Confidence, optional
        What labels told of the confidence. Otherwise annotators may be up to twice as sure
        as they should be, or half as sure.
    threshold : float
        Log-odds above it are decided positive.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(0, 3, size=(2, 500))
    >>> labels = PairLabels.from_posteriors(1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)))
    >>> found = plausible(z, z_prime, labels)
    >>> print(found, found.labels)
    0.834 (0.720 to 0.919) 132
    """
    pairs = JudgedPairs.of(logits, logits_prime, labels, weight, items, confidence)
    told = _Told(pairs, threshold)
    if told.n < 2:
        return None
    if known is None:
        slopes, stated = TWICE, told.accuracy()
        found = [stated, *(told.accuracy(k) for k in (1.0, *slopes))]
    else:
        slopes, stated = known.interval, told.accuracy(known.slope, known.shift)
        found = [stated, *(told.accuracy(k, known.shift) for k in slopes)]
    low, high = min(e.low for e in found), max(e.high for e in found)
    hard = min(_step(one) for one in np.asarray(told.labels.to_array()).T) > 0.9
    labels_needed = 0 if hard else _halving(told.odds, slopes, stated, high - low)
    return Plausible(stated.value, low, high, slopes, labels_needed)


class _Told:
    """Pairs with both judgements, and the annotators' log-odds (n, 2) of their ends."""

    def __init__(self, pairs: JudgedPairs, threshold: float = 0.0) -> None:
        whole, ends = pairs.has_similarity & pairs.has_difference, pairs.dependence.ends
        self.z, self.z_prime, self.threshold = pairs.z[whole], pairs.z_prime[whole], threshold
        self.labels = PairLabels(pairs.similarity[whole], pairs.difference[whole], noisy=True)
        self.odds, self.n = _log_odds(self.labels, self.z, self.z_prime), len(self.labels)
        items = None if ends is None else ends[whole]
        self.options = pairs.weight[whole], items, pairs.confidence

    def accuracy(self, slope: float | None = None, shift: float = 0.0) -> AccuracyEstimate:
        """As annotators with other log-odds would see it; without a slope as these do."""
        labels = self.labels if slope is None else _judgements(self.odds, slope, shift)
        told = JudgedPairs.of(self.z, self.z_prime, labels, *self.options)
        return accuracy_of(told, self.threshold)


def _halving(odds: Floats, slopes: tuple[float, float], stated: Estimate, width: float) -> int:
    """Labels that make a range half as wide: they tell the slope, or the accuracy itself."""
    p = sigmoid(odds)
    told = float((p * (1 - p) * odds**2).mean())
    wanted = math.log(slopes[1] / slopes[0]) / 8  # standard errors of log k: four are the range
    by_slope = 1 / (max(told, 1e-9) * wanted**2)
    directly = 16 * stated.value * (1 - stated.value) / max(width / 2, 1e-9) ** 2
    return max(math.ceil(min(by_slope, max(directly, 20.0))), 1)


def _log_odds(labels: PairLabels, z: Floats, z_prime: Floats) -> Floats:
    """The annotator's log-odds (n, 2), the reflection chosen by the sign of z + z'."""
    similarity, difference = as_floats(labels.to_array()).T
    step = _step(similarity)
    if step or _step(difference):
        similarity, difference = _rounded_from(similarity, difference, z, z_prime)
    upper, lower = PairLabels(similarity, difference, noisy=True).project().posteriors()
    # The middle of [1 − h/2, 1], with steps of h, as the similarity of two equal posteriors.
    edge = max((1 - math.sqrt(1 - min(step, 1.0) / 2)) / 2, SURE)
    r = np.where((z + z_prime > 0)[:, None], upper, lower).clip(edge, 1 - edge)
    return np.asarray(np.log(r) - np.log1p(-r))


def _rounded_from(
    similarity: Floats, difference: Floats, z: Floats, z_prime: Floats
) -> tuple[Floats, Floats]:
    """What answers on levels may be rounded from: what the classifier says, as far as it fits."""
    p, q = sigmoid(z), sigmoid(z_prime)
    made = []
    for told, said in ((similarity, p * q + (1 - p) * (1 - q)), (difference, q - p)):
        half = _step(told) / 2
        made.append(said.clip(told - half, told + half))
    return made[0].clip(0, 1), made[1].clip(-1, 1)


def _step(column: Floats) -> float:
    """The step of a scale of few levels; 0 where there are many.

    Levels of several people, mended for each of them, lie in heaps: the step is their distance.
    """
    levels, counts = np.unique(column.round(6), return_counts=True)
    if len(levels) < 2 or len(column) < 2 * LEVELS:
        return 0.0
    gaps = np.diff(levels)
    if len(levels) <= LEVELS:
        return float(np.median(gaps))
    cuts = np.flatnonzero(gaps > 5 * np.median(gaps)) + 1
    heaps, sizes = np.split(levels, cuts), np.split(counts, cuts)
    if not 2 <= len(heaps) <= LEVELS or min(map(np.sum, sizes)) < RARE * len(column):
        return 0.0
    if max(np.ptp(heap) for heap in heaps) >= gaps[cuts - 1].min():
        return 0.0
    return float(np.diff([heap.mean() for heap in heaps]).max())


def sigmoid(odds: Floats) -> Floats:
    """Probabilities of log-odds, however large."""
    return np.asarray((1 + np.tanh(odds / 2)) / 2)


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

    weight = weight * weight.sum() / (weight**2).sum()  # as many as they are worth, by Kish

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
