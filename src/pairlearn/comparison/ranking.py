"""Accuracies of several classifiers on the same held-out pairs, and their differences.

Every accuracy is estimated from the same judgements, and is to first order a sum of
influences ψ of the pairs. The difference of two accuracies then has the influences
ψ_i − ψ_j: what is hard to judge about a pair is hard for both and cancels.

The best is the one that looks best, and a plain interval of a difference to it would be too
short. Here the intervals of the differences hold *together*, for all couples of methods:
their quantile is that of

    max over i < j of |Z_i − Z_j| / sd(Z_i − Z_j),

Z normal with the covariance of the estimated accuracies. So they hold for the differences to
the best, whichever it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.evaluation.decisions import accuracy_of, agreeing, fit_decisions
from pairlearn.evaluation.estimate import Estimate, proportion, quantile
from pairlearn.evaluation.judged import JudgedPairs
from pairlearn.labels import PairLabels

__all__ = ["Ranking", "rank", "simultaneous_quantile"]

Floats = NDArray[np.float64]
DRAWS = 100_000


@dataclass(frozen=True)
class Ranking:
    """Methods from the best to the worst.

    Attributes
    ----------
    order : array of int, shape (k,)
        Methods by estimated accuracy; equal ones in the order that they came in.
    accuracies : tuple of Estimate
        Of the methods in that order, each interval by itself.
    differences : tuple of Estimate
        To the first, at most 0; the intervals hold together.
    quantile : float
        Standard errors in half an interval of a difference.
    """

    order: NDArray[np.intp]
    accuracies: tuple[Estimate, ...]
    differences: tuple[Estimate, ...]
    quantile: float


def rank(
    logits: Any,
    labels: PairLabels,
    *,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    prior: float | None = None,
) -> Ranking:
    """Rank classifiers by their accuracies on held-out judged pairs.

    An accuracy has the interval of `estimate_accuracy`.

    Parameters
    ----------
    logits : array of shape (k, n, 2)
        Outputs of k classifiers for both ends of n pairs.
    labels, weight, items, confidence, prior
        As in `pairlearn.evaluation.estimate_accuracy`.

    Examples
    --------
    Outputs as they should be, with some noise, and with much:

    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.normal(size=(2000, 2))
    >>> labels = PairLabels.from_posteriors(*(1 / (1 + np.exp(-z))).T)
    >>> ranking = rank([z + s * rng.normal(size=z.shape) for s in (0.1, 0.0, 4.0)], labels)
    >>> ranking.order, [round(d.value, 3) for d in ranking.differences]
    (array([1, 0, 2]), [0.0, -0.0, -0.149])
    >>> ranking.differences[1].high >= 0, ranking.differences[2].high < 0  # a tie; worse
    (True, True)
    """
    outputs = np.asarray(logits, dtype=np.float64)
    first = JudgedPairs.of(outputs[0, :, 0], outputs[0, :, 1], labels, weight, items)
    ends = first.effective_ends
    found = [
        fit_decisions(replace(first, z=z[:, 0], z_prime=z[:, 1]), 0.0, prior, confidence)
        for z in outputs
    ]
    measured = [one.measure(accuracy_of) for one in agreeing(found)]
    values = np.array([value[0] for value, _ in measured])
    influences = np.concatenate([influence for _, influence in measured], axis=1)
    variances = first.dependence.variance(influences)
    each = quantile(confidence, ends)
    accuracies = [
        proportion(float(value), float(variance), ends, each, noisy=first.noisy)
        for value, variance in zip(values, variances, strict=True)
    ]
    order = np.argsort([-estimate.value for estimate in accuracies], kind="stable")
    together = simultaneous_quantile(first.dependence.covariance(influences), confidence, ends)
    best = int(order[0])
    apart = first.dependence.variance(influences - influences[:, best : best + 1])
    differences = [
        _difference(accuracies[i].value - accuracies[best].value, float(apart[i]), ends, together)
        if i != best
        else Estimate(0.0, 0.0, 0.0)
        for i in order
    ]
    return Ranking(order, tuple(accuracies[i] for i in order), tuple(differences), together)


def simultaneous_quantile(covariance: Floats, confidence: float, ends: float) -> float:
    """Quantile of the largest standardised difference among normal variables.

    Parameters
    ----------
    covariance : array of shape (k, k)
        Of the variables.
    confidence : float
        In (0, 1).
    ends : float
        Instances that the covariance was estimated from; few of them widen it as they do
        the quantile of a single variable.

    Examples
    --------
    Two variables have one difference; three independent ones give Tukey's range, 3.31/√2:

    >>> round(simultaneous_quantile(np.eye(2), 0.95, 1e9), 1)
    2.0
    >>> round(simultaneous_quantile(np.eye(3), 0.95, 1e9), 1)
    2.3
    """
    single = quantile(confidence, ends)
    i, j = np.triu_indices(len(covariance), 1)
    variance = np.diag(covariance)
    deviation = np.sqrt((variance[i] + variance[j] - 2 * covariance[i, j]).clip(0))
    # Classifiers that decide alike differ by nothing but rounding.
    differ = deviation > 1e-9 * np.sqrt(variance.max(initial=0.0))
    if not differ.any():
        return single
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(values.clip(0))
    draws = np.random.default_rng(0).standard_normal((DRAWS, len(values))) @ root.T
    largest = np.zeros(DRAWS)
    for a, b, scale in zip(i[differ], j[differ], deviation[differ], strict=True):
        np.maximum(largest, np.abs(draws[:, a] - draws[:, b]) / scale, out=largest)
    widened = single / quantile(confidence, 1e12)
    return max(float(np.quantile(largest, confidence)) * widened, single)


def _difference(value: float, variance: float, count: float, z: float) -> Estimate:
    """A difference of proportions, with one more instance decided differently among `count`.

    Where few are decided differently their variance is poor, as in `proportion`.
    """
    half = z * float(np.sqrt(variance + 1 / count**2))
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0))
