"""Annotators with the wrong confidence, and its effect on the accuracy.

The true posterior of an item is r̃ = σ(k · logit r), where r is the annotator's: k < 1 for an
overconfident annotator, k > 1 for an underconfident one. Judgements of a pair determine (r, r') up
to the reflection (1 − r', 1 − r), and the rescaled judgements are the same for both. Judgements
alone do not determine k; labels of some items remove the assumption (`estimate_accuracy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.evaluation.judged import Estimate, JudgedPairs, sigmoid
from pairlearn.evaluation.measures import estimate_accuracy
from pairlearn.labels import PairLabels

SURE = 1e-6
"""Distance of posteriors from 0 and 1, where log-odds are infinite."""


@dataclass(frozen=True)
class Sensitivity:
    """Range of accuracies over assumptions about the annotator.

    Attributes
    ----------
    low, high, low_end, high_end : float
        Least and largest informed reading of the accuracy, and ends of their intervals.
    estimates : tuple of (k, Estimate)
    n : int
        Number of pairs used: those with both judgements.
    """

    low: float
    high: float
    low_end: float
    high_end: float
    estimates: tuple[tuple[float, Estimate], ...]
    n: int


def sensitivity(
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    slopes: Sequence[float] = (0.5, 0.75, 1.0, 1.5, 2.0),
    **options: Any,
) -> Sensitivity:
    """Estimate the accuracy, by the informed reading, if the annotator is over- or underconfident.

    Parameters
    ----------
    logits, logits_prime, labels, **options
        As in `estimate_accuracy`. Only pairs with both judgements are used, since one
        alone does not determine posteriors; infeasible judgements are projected first.
    slopes : sequence of float
        Values of k.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, z_prime = rng.normal(0, 3, size=(2, 500))
    >>> labels = PairLabels.from_posteriors(1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)))
    >>> band = sensitivity(z, z_prime, labels, slopes=[0.5, 1, 2])
    >>> [(k, round(estimate.value, 2)) for k, estimate in band.estimates]
    [(0.5, 0.73), (1.0, 0.83), (2.0, 0.91)]
    """
    if not len(slopes) or not all(np.isfinite(k) and k > 0 for k in slopes):
        raise ValueError(f"slopes must be some positive and finite numbers; got {slopes}")
    pairs = JudgedPairs.of(logits, logits_prime, labels, **options)
    both = pairs.has_similarity & pairs.has_difference
    if both.sum() < 2:
        raise ValueError("labels have fewer than two pairs with both judgements: give two")
    given = PairLabels(pairs.similarity[both], pairs.difference[both], noisy=True)
    r = given.project().posteriors()[0].clip(SURE, 1 - SURE)
    odds = np.log(r) - np.log1p(-r)
    estimates = tuple(
        (
            float(k),
            estimate_accuracy(
                pairs.z[both],
                pairs.z_prime[both],
                PairLabels.from_posteriors(*sigmoid(k * odds).T),
                weight=pairs.weight[both],
                items=None if pairs.items is None else np.asarray(pairs.items)[both],
                confidence=pairs.confidence,
            ).informed,
        )
        for k in slopes
    )
    only = [estimate for _, estimate in estimates]
    return Sensitivity(
        min(estimate.value for estimate in only),
        max(estimate.value for estimate in only),
        min(estimate.low for estimate in only),
        max(estimate.high for estimate in only),
        estimates,
        len(given),
    )
