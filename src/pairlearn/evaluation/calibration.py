"""Whether predicted probabilities mean what they say, from pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.evaluation.estimate import Estimate, proportion, quantile
from pairlearn.evaluation.judged import JudgedPairs, check_confidence, check_prior
from pairlearn.evaluation.levels import LevelTally, constrain, require_identified, start_rates
from pairlearn.labels import PairLabels

__all__ = ["CalibrationCurve", "calibration_curve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CalibrationCurve:
    """Predicted against implied rates of positives, one entry a bin.

    Attributes
    ----------
    edges : array of shape (k + 1,)
        Bin i holds probabilities from edges[i] up to, and without, edges[i + 1]; the
        last bin includes its upper edge.
    predicted : array of shape (k,)
        Mean prediction in each bin.
    implied : tuple of k Estimate
        Share of positives in each bin, as the annotator sees it.
    shares : array of shape (k,)
        Share of the instances in each bin.
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
    bins: int | Any = 10,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    prior: float | None = None,
) -> CalibrationCurve:
    """Compare predicted probabilities with the rates that judged pairs imply.

    The bins are the levels of `pairlearn.evaluation.levels`: their rates of positives
    ρ_1 … ρ_k maximise the pair likelihood, with no label and no prior. That is how a
    piecewise constant recalibration of the classifier would be trained.

    Parameters
    ----------
    probabilities, probabilities_prime : array of shape (n,)
        Predicted P(y=+1) of both ends.
    bins : int or array of edges
        A number of bins with equal shares (fewer if predictions are tied), or increasing
        edges from 0 to 1; bins without instances are left out.
    labels, weight, items, confidence, prior
        As in `estimate_accuracy`.

    Examples
    --------
    A classifier that says .2 and .8 where .1 and .9 are true:

    >>> rng = np.random.default_rng(0)
    >>> r, r_prime = rng.choice([0.1, 0.9], size=(2, 500), p=[0.7, 0.3])
    >>> said, said_prime = np.where(r < 0.5, 0.2, 0.8), np.where(r_prime < 0.5, 0.2, 0.8)
    >>> curve = calibration_curve(said, said_prime, PairLabels.from_posteriors(r, r_prime))
    >>> curve.predicted, [round(rate.value, 3) for rate in curve.implied]
    (array([0.2, 0.8]), [0.1, 0.9])
    """
    check_confidence(confidence)
    check_prior(prior)
    names = ("probabilities", "probabilities_prime")
    pairs = JudgedPairs.of(probabilities, probabilities_prime, labels, weight, items, names)
    for name, column in zip(names, (pairs.z, pairs.z_prime), strict=True):
        outside = (column < 0) | (column > 1)
        if outside.any():
            row = int(outside.argmax())
            raise ValueError(f"{name} must lie in [0, 1]; row {row} is {column[row]:g}")
    require_identified(pairs, prior)
    edges = _edges(bins, pairs)
    level, level_prime = (
        np.searchsorted(edges[1:-1], column, side="right") for column in (pairs.z, pairs.z_prime)
    )
    k = len(edges) - 1
    tally = LevelTally.of(pairs, level, level_prime, k)
    fit = tally.fit(tally.solve(start_rates(pairs, level, level_prime, k, prior), prior))
    if prior is not None:
        fit, _ = constrain(tally, fit, prior)
    variances = pairs.dependence.variance(fit.rate_influence)
    ends = pairs.effective_ends
    z = quantile(confidence, ends)
    implied = tuple(
        proportion(float(rate), float(variance), ends * float(share), z, noisy=pairs.noisy)
        for rate, variance, share in zip(fit.rates, variances, tally.shares, strict=True)
    )
    twice = np.concatenate([pairs.weight, pairs.weight])
    both, values = np.concatenate([level, level_prime]), np.concatenate([pairs.z, pairs.z_prime])
    predicted = np.bincount(both, twice * values) / np.bincount(both, twice)
    return CalibrationCurve(edges, predicted, implied, tally.shares)


def _edges(bins: Any, pairs: JudgedPairs) -> Floats:
    """Edges such that every bin holds some prediction."""
    predictions = np.concatenate([pairs.z, pairs.z_prime])
    if np.ndim(bins) == 0:
        if bins != int(bins) or bins < 1:
            raise ValueError(f"bins must be a whole number of at least 1, or edges; got {bins!r}")
        inner = np.quantile(predictions, np.linspace(0, 1, int(bins) + 1)[1:-1], method="higher")
        given = np.concatenate([[0.0], inner, [1.0]])
    else:
        given = np.asarray(bins, dtype=np.float64)
        if given.ndim != 1 or len(given) < 2 or given[0] != 0 or given[-1] != 1:
            raise ValueError(f"bins must be edges from 0 to 1, or a number; got {bins!r}")
        if not (np.diff(given) > 0).all():
            raise ValueError(f"bins must increase; got {bins!r}")
    inner = np.unique(given[1:-1])
    # An edge stays if predictions lie between it and the next one that stays, on both sides.
    place = np.searchsorted(inner, predictions, side="right")
    inner = inner[np.unique(place[place > 0]) - 1] if (place > 0).any() else inner[:0]
    inner = inner[inner > predictions.min()]
    return np.concatenate([[0.0], inner, [1.0]])
