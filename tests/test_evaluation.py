"""Accuracy without labels, against simulated tables whose accuracy is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pairlearn import PairLabels
from pairlearn.evaluation import estimate_accuracy


def table(rng: np.random.Generator, prior: float, flips: float, n: int, separation: float = 5.0):
    """Decisions, labels and true accuracy: a calibrated annotator, flipped decisions."""
    ends = []
    for _ in range(2):
        y = rng.random(n) < prior
        u = rng.normal(np.where(y, separation / 2, -separation / 2), 1)
        r = 1 / (1 + np.exp(-(separation * u + math.log(prior / (1 - prior)))))
        h = (r > 0.5) ^ (rng.random(n) < flips)
        ends.append((h - 0.5, r, np.where(h, r, 1 - r)))
    (h, r, right), (h_prime, r_prime, right_prime) = ends
    return h, h_prime, PairLabels.from_posteriors(r, r_prime), (right + right_prime).mean() / 2


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("flips", [0.02, 0.12])
def test_large_tables_give_the_true_accuracy(prior: float, flips: float) -> None:
    h, h_prime, labels, truth = table(np.random.default_rng(0), prior, flips, 200_000)
    estimate = estimate_accuracy(h, h_prime, labels)
    assert estimate.value == pytest.approx(truth, abs=0.004)


@pytest.mark.parametrize("prior", [0.2, 0.5])
@pytest.mark.parametrize("flips", [0.03, 0.12])
def test_intervals_cover(prior: float, flips: float) -> None:
    rng = np.random.default_rng(1)
    _, _, _, truth = table(rng, prior, flips, 500_000)
    covered = 0
    for _ in range(300):
        h, h_prime, labels, _ = table(rng, prior, flips, 500)
        estimate = estimate_accuracy(h, h_prime, labels)
        covered += estimate.low <= truth <= estimate.high
    assert 0.89 <= covered / 300 <= 0.995


def test_hard_labels_reproduce_the_counts() -> None:
    """With classes as certain judgements the rates are plain counts over unlike pairs."""
    y, y_prime = np.array([1, 1, 0, 0, 1, 0.0]), np.array([0, 0, 1, 1, 1, 0.0])
    h, h_prime = np.array([1, 0, 0, 0, 1, 0.0]), np.array([0, 0, 1, 1, 1, 0.0])
    labels = PairLabels.from_posteriors(y, y_prime)
    # Unlike pairs: positives found 3 of 4, no alarm; decided positive 5 of 12, prior 5/9.
    estimate = estimate_accuracy(h - 0.5, h_prime - 0.5, labels)
    assert estimate.method == "rates"
    assert estimate.value == pytest.approx(5 / 9 * 3 / 4 + 4 / 9)


def test_missing_judgements_are_left_out() -> None:
    h, h_prime, labels, _ = table(np.random.default_rng(2), 0.3, 0.1, 200)
    similarity = labels.similarity.copy()
    similarity[:50] = np.nan
    part = estimate_accuracy(h, h_prime, PairLabels(similarity, labels.difference))
    assert part == estimate_accuracy(h[50:], h_prime[50:], labels[50:])


def test_a_constant_classifier_has_no_rates_but_an_interval() -> None:
    _, _, labels, _ = table(np.random.default_rng(3), 0.3, 0.1, 200)
    minus = -np.ones(200)
    estimate = estimate_accuracy(minus, minus, labels)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.method == "confdiff"
    assert estimate.value == pytest.approx(0.7, abs=0.1)


def test_tensors_and_errors() -> None:
    h, h_prime, labels, _ = table(np.random.default_rng(4), 0.3, 0.1, 100)
    tensors = [torch.from_numpy(a) for a in (h, h_prime)]
    assert estimate_accuracy(*tensors, labels) == estimate_accuracy(h, h_prime, labels)
    with pytest.raises(ValueError, match=r"logits_prime must have shape \(100,\)"):
        estimate_accuracy(h, h_prime[:5], labels)
    with pytest.raises(ValueError, match="logits is NaN in row 0"):
        estimate_accuracy(np.full(100, np.nan), h_prime, labels)
    with pytest.raises(ValueError, match="confidence must lie"):
        estimate_accuracy(h, h_prime, labels, confidence=1.0)
    with pytest.raises(ValueError, match="labels have 0 pairs with both judgements"):
        estimate_accuracy(h, h_prime, PairLabels(labels.similarity, None))
