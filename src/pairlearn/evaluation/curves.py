"""Calibration of predicted probabilities, by the rates of positives that judged pairs imply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.columns import Floats, check_integer, first_rows
from pairlearn.evaluation.judged import Estimate, JudgedPairs
from pairlearn.evaluation.levels import LevelTally
from pairlearn.labels import PairLabels


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
