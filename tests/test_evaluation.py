"""Accuracy without labels, against simulated tables whose accuracy is known."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch

from pairlearn import PairLabels
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy

KINDS = {"symmetric": (1, 1), "misses": (1, 0), "alarms": (0, 1)}


def table(
    rng: np.random.Generator, prior: float, turned: tuple[float, float], n: int, mu: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors and decisions (2, n): a calibrated annotator, decisions turned at random."""
    y = rng.random((2, n)) < prior
    u = rng.normal(np.where(y, mu / 2, -mu / 2), 1)
    r = 1 / (1 + np.exp(-(mu * u + math.log(prior / (1 - prior)))))
    w = rng.random((2, n))
    return r, np.where(r > 0.5, w >= turned[0], w < turned[1])


def true_accuracy(prior: float, turned: tuple[float, float], mu: float = 5.0) -> float:
    """P(h = y), from the normal distributions of u."""
    cut = -math.log(prior / (1 - prior)) / mu
    hit = 1 - NormalDist(mu / 2).cdf(cut)
    alarm = 1 - NormalDist(-mu / 2).cdf(cut)
    miss, false = turned
    found = hit * (1 - miss) + (1 - hit) * false
    called = alarm * (1 - miss) + (1 - alarm) * false
    return prior * found + (1 - prior) * (1 - called)


def assess(r: Any, h: Any, **options: Any) -> AccuracyEstimate:
    labels = PairLabels.from_posteriors(r[0], r[1])
    return estimate_accuracy(h[0] - 0.5, h[1] - 0.5, labels, **options)


# ---- value and coverage -------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("turned", [(0.02, 0.02), (0.3, 0.0), (0.0, 0.15)])
def test_large_tables_give_the_true_accuracy(prior: float, turned: tuple[float, float]) -> None:
    r, h = table(np.random.default_rng(0), prior, turned, 200_000)
    estimate = assess(r, h)
    truth = true_accuracy(prior, turned)
    assert estimate.value == pytest.approx(truth, abs=0.003)
    assert estimate.value - estimate.low < 0.003
    assert estimate.n == 200_000


def coverage(prior: float, turned: tuple[float, float], tables: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    truth, covered = true_accuracy(prior, turned), 0
    for _ in range(tables):
        estimate = assess(*table(rng, prior, turned, 500))
        covered += estimate.low <= truth <= estimate.high
    return covered / tables


@pytest.mark.parametrize(
    ("prior", "turned"),
    [(0.1, (0.015, 0.015)), (0.1, (0.15, 0.0)), (0.2, (0.0, 0.14)), (0.5, (0.02, 0.02))],
)
def test_intervals_cover(prior: float, turned: tuple[float, float]) -> None:
    """Rare errors at a small prior are the hard case: few of them fall on dissimilar pairs."""
    assert 0.91 <= coverage(prior, turned, 300, seed=1) <= 0.985


@pytest.mark.long
@pytest.mark.parametrize("prior", [0.1, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("error", [0.015, 0.12])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_everywhere(prior: float, error: float, kind: str) -> None:
    turned = KINDS[kind][0] * error, KINDS[kind][1] * error
    assert 0.91 <= coverage(prior, turned, 2000, seed=2) <= 0.98


@pytest.mark.parametrize("confidence", [0.5, 0.8])
def test_other_confidences(confidence: float) -> None:
    rng = np.random.default_rng(3)
    truth = true_accuracy(0.2, (0.05, 0.05))
    found = [assess(*table(rng, 0.2, (0.05, 0.05), 200), confidence=confidence) for _ in range(400)]
    share = np.mean([e.low <= truth <= e.high for e in found])
    assert share == pytest.approx(confidence, abs=0.07)


def test_noisy_judgements() -> None:
    """Judgements beyond their range: the interval widens and still covers."""
    rng = np.random.default_rng(4)
    truth, covered, widths = true_accuracy(0.2, (0.1, 0.1)), 0, []
    for _ in range(150):
        r, h = table(rng, 0.2, (0.1, 0.1), 500)
        clean = PairLabels.from_posteriors(*r)
        s, c = np.stack([clean.similarity, clean.difference]) * rng.normal(1, 0.5, (2, 500))
        noisy = estimate_accuracy(h[0] - 0.5, h[1] - 0.5, PairLabels(s, c, noisy=True))
        covered += noisy.low <= truth <= noisy.high
        exact = assess(r, h)
        widths.append((noisy.high - noisy.low) / (exact.high - exact.low))
    assert covered / 150 >= 0.89
    assert min(widths) > 1


# ---- values worked out otherwise ----------------------------------------------------------------


def test_the_fit_maximises_the_pair_likelihood() -> None:
    """Search the rates of both decisions on a grid, one pair after another."""
    rng = np.random.default_rng(5)
    r, h = table(rng, 0.4, (0.3, 0.1), 80, mu=2.0)
    grid = np.arange(0.0025, 1, 0.005)
    p, o = np.meshgrid(grid, grid, indexing="ij")
    total = np.zeros_like(p)
    for r1, r2, h1, h2 in zip(*r, *h, strict=True):
        q1, q2 = (p if h1 else o), (p if h2 else o)
        a, b, same = r1 * (1 - r2), (1 - r1) * r2, r1 * r2 + (1 - r1) * (1 - r2)
        total += a * np.log(q1 * (1 - q2)) + b * np.log((1 - q1) * q2)
        total += same * np.log(q1 * q2 + (1 - q1) * (1 - q2))
    best = np.unravel_index(total.argmax(), total.shape)
    q = h.mean()
    expected = q * grid[best[0]] + (1 - q) * (1 - grid[best[1]])
    assert assess(r, h).value == pytest.approx(expected, abs=0.004)


def test_the_standard_error_is_the_jackknife_one() -> None:
    rng = np.random.default_rng(6)
    r, h = table(rng, 0.3, (0.2, 0.1), 250, mu=3.0)
    keep = np.arange(250)
    left_out = [assess(r[:, keep != i], h[:, keep != i]).value for i in keep]
    jackknife = math.sqrt(249 / 250 * ((np.array(left_out) - np.mean(left_out)) ** 2).sum())
    estimate = assess(r, h)
    assert (estimate.high - estimate.low) / (2 * 1.96) == pytest.approx(jackknife, rel=0.05)


def test_certain_judgements_without_errors() -> None:
    """As in a thousand labelled instances without an error: Wilson gives z²/(N + z²)."""
    y = np.random.default_rng(7).random((2, 500)) < 0.3
    estimate = assess(y.astype(float), y)
    assert estimate.value == pytest.approx(1, abs=1e-3)
    assert estimate.high == pytest.approx(1, abs=1e-3)
    assert 1 - estimate.low == pytest.approx(1.96**2 / (1000 + 1.96**2), rel=0.1)


def test_swapping_ends_or_classes_changes_nothing() -> None:
    r, h = table(np.random.default_rng(8), 0.3, (0.2, 0.1), 300)
    estimate = assess(r, h)
    for other in (assess(r[::-1], h[::-1]), assess(1 - r, ~h)):
        assert (other.value, other.low, other.high) == pytest.approx(
            (estimate.value, estimate.low, estimate.high), abs=1e-6
        )
    opposite = assess(r, ~h)
    assert opposite.value == pytest.approx(1 - estimate.value, abs=1e-6)


# ---- missing judgements, weights, a known prior -----------------------------------------------


def some_missing(r: Any, rng: np.random.Generator) -> PairLabels:
    labels = PairLabels.from_posteriors(*r)
    kind = rng.integers(0, 3, len(labels))
    return PairLabels(
        np.where(kind == 0, np.nan, labels.similarity),
        np.where(kind == 1, np.nan, labels.difference),
    )


def test_missing_judgements_all_count() -> None:
    rng = np.random.default_rng(9)
    r, h = table(rng, 0.2, (0.1, 0.1), 100_000)
    labels = some_missing(r, rng)
    z, z_prime = h - 0.5
    estimate = estimate_accuracy(z, z_prime, labels)
    assert estimate.value == pytest.approx(true_accuracy(0.2, (0.1, 0.1)), abs=0.004)
    assert estimate.n == 100_000
    whole = ~np.isnan(labels.to_array()).any(1)
    fewer = estimate_accuracy(z[whole], z_prime[whole], labels[whole])
    assert estimate.high - estimate.low < 0.8 * (fewer.high - fewer.low)


def test_intervals_cover_with_missing_judgements() -> None:
    rng = np.random.default_rng(10)
    truth, covered = true_accuracy(0.2, (0.1, 0.1)), 0
    for _ in range(200):
        r, h = table(rng, 0.2, (0.1, 0.1), 300)
        estimate = estimate_accuracy(*(h - 0.5), some_missing(r, rng))
        covered += estimate.low <= truth <= estimate.high
    assert 0.90 <= covered / 200 <= 0.99


@pytest.mark.parametrize("kind", ["similarity", "difference"])
def test_one_kind_of_judgement_and_the_prior(kind: str) -> None:
    rng = np.random.default_rng(11)
    truth, covered = true_accuracy(0.2, (0.1, 0.1)), 0
    for _ in range(200):
        r, h = table(rng, 0.2, (0.1, 0.1), 300)
        both = PairLabels.from_posteriors(*r)
        given = {"similarity": None, "difference": None} | {kind: getattr(both, kind)}
        estimate = estimate_accuracy(*(h - 0.5), PairLabels(**given), prior=0.2)
        covered += estimate.low <= truth <= estimate.high
        assert estimate.method == "likelihood, prior given"
    assert 0.90 <= covered / 200 <= 0.99


def test_differences_and_a_prior_are_confdiff() -> None:
    """1 − accuracy = π(1 − q) + (1 − π)q + mean c(h − h'), with c alone and a known prior."""
    r, h = table(np.random.default_rng(12), 0.4, (0.2, 0.1), 2000)
    c = r[1] - r[0]
    q = h.mean()
    implied = 0.4 * (1 - q) + 0.6 * q + (c * (h[0] * 1.0 - h[1])).mean()
    estimate = estimate_accuracy(*(h - 0.5), PairLabels(None, c), prior=0.4)
    assert estimate.value == pytest.approx(1 - implied, abs=0.01)


def test_a_known_prior_helps() -> None:
    rng = np.random.default_rng(13)
    ratios = []
    for _ in range(20):
        r, h = table(rng, 0.5, (0.24, 0.0), 500)
        free, given = assess(r, h), assess(r, h, prior=0.5)
        ratios.append((given.high - given.low) / (free.high - free.low))
    assert np.mean(ratios) < 0.95


def test_weights_stand_for_repeated_pairs() -> None:
    rng = np.random.default_rng(14)
    r, h = table(rng, 0.3, (0.1, 0.1), 400)
    times = rng.integers(1, 4, 400)
    repeated = assess(np.repeat(r, times, 1), np.repeat(h, times, 1))
    weighted = assess(r, h, weight=times * 7.0)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-4)
    rows = np.repeat(np.arange(400), times)
    items = np.stack([rows, rows + 1000], 1)
    by_items = assess(np.repeat(r, times, 1), np.repeat(h, times, 1), items=items)
    assert (weighted.low, weighted.high) == pytest.approx((by_items.low, by_items.high), abs=2e-4)


def test_inclusion_weights_undo_the_selection() -> None:
    """Pairs of unlike decisions are included ten times as often as the others."""
    rng = np.random.default_rng(15)
    r, h = table(rng, 0.3, (0.1, 0.1), 200_000)
    chance = np.where(h[0] != h[1], 0.5, 0.05)
    kept = rng.random(200_000) < chance
    estimate = assess(r[:, kept], h[:, kept], weight=1 / chance[kept])
    truth = true_accuracy(0.3, (0.1, 0.1))
    assert estimate.value == pytest.approx(truth, abs=0.01)
    assert estimate.low <= truth <= estimate.high


# ---- recurring items ----------------------------------------------------------------------------


def recurring(rng: np.random.Generator, items: int, n: int, repeats: int = 1) -> Any:
    r, h = (x.reshape(-1)[:items] for x in table(rng, 0.3, (0.1, 0.1), items))
    left = rng.integers(0, items, n)
    right = (left + rng.integers(1, items, n)) % items
    pairs = np.tile(np.stack([left, right], 1), (repeats, 1))
    return r[pairs.T], h[pairs.T], pairs


@pytest.mark.parametrize(("items", "n", "repeats"), [(120, 500, 1), (300, 150, 3)])
def test_intervals_cover_when_items_recur(items: int, n: int, repeats: int) -> None:
    rng = np.random.default_rng(16)
    truth = true_accuracy(0.3, (0.1, 0.1))
    aware = ignorant = 0
    for _ in range(200):
        r, h, pairs = recurring(rng, items, n, repeats)
        one, other = assess(r, h, items=pairs), assess(r, h)
        aware += one.low <= truth <= one.high
        ignorant += other.low <= truth <= other.high
    assert 0.90 <= aware / 200 <= 0.985
    assert ignorant / 200 < 0.85


# ---- decisions that say nothing -----------------------------------------------------------------


def test_a_constant_classifier_leaves_both_answers_open() -> None:
    r, h = table(np.random.default_rng(17), 0.3, (0.1, 0.1), 500)
    never = np.zeros_like(h)
    estimate = assess(r, never)
    assert estimate.value == pytest.approx(0.7, abs=0.05)
    assert estimate.low < 0.3 < 0.7 < estimate.high
    known = assess(r, never, prior=0.3)
    assert known.low < 0.7 < known.high
    assert known.high - known.low < 0.1
    assert assess(r, ~never, prior=0.3).value == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_random_decisions_are_covered(share: float) -> None:
    rng = np.random.default_rng(18)
    truth, covered = 0.2 * share + 0.8 * (1 - share), 0
    for _ in range(100):
        r, h = table(rng, 0.2, (0, 0), 400)
        estimate = assess(r, rng.random(h.shape) < share)
        covered += estimate.low <= truth <= estimate.high
    assert covered / 100 >= 0.9


def test_tiny_tables_give_something() -> None:
    for y, h in itertools.product(itertools.product([0.1, 0.8], repeat=3), repeat=2):
        estimate = assess(np.reshape([*y, 0.9], (2, 2)), np.reshape([*h, 0.1], (2, 2)) > 0.5)
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


# ---- arguments ----------------------------------------------------------------------------------


def test_tensors() -> None:
    r, h = table(np.random.default_rng(19), 0.3, (0.1, 0.1), 100)
    tensors = [torch.from_numpy(x - 0.5).requires_grad_() for x in h]
    labels = PairLabels.from_posteriors(*torch.from_numpy(r))
    assert estimate_accuracy(*tensors, labels) == assess(r, h)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits_prime": np.zeros(5)}, r"logits_prime must have shape \(100,\), one for each"),
        ({"logits": np.full(100, np.nan)}, "logits is NaN in row 0"),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1.0"),
        ({"prior": 0.0}, r"prior must lie in \(0, 1\); got 0.0"),
        ({"labels": np.zeros((100, 2))}, "labels must be PairLabels; got ndarray: use PairLabels"),
        ({"labels": PairLabels(np.ones(100), None)}, "labels have similarities only, which stay"),
        ({"labels": PairLabels(None, np.ones(100))}, "labels have differences only, which fix"),
        ({"weight": np.r_[1.0, 0.0, np.ones(98)]}, "weight must be positive .* row 1 is 0: drop"),
        ({"weight": np.ones(3)}, r"weight must have shape \(100,\)"),
        ({"items": np.zeros((100, 3), int)}, r"items must have shape \(100, 2\), the ids"),
        ({"items": np.zeros((100, 2))}, "items must be integer or text ids; got float64"),
        ({"items": np.full((100, 2), 7)}, "items row 0 pairs item 7 with itself: drop such rows"),
    ],
)
def test_errors_name_the_argument(change: dict[str, Any], message: str) -> None:
    r, h = table(np.random.default_rng(20), 0.3, (0.1, 0.1), 100)
    given = {"logits": h[0] - 0.5, "logits_prime": h[1] - 0.5}
    given["labels"] = PairLabels.from_posteriors(*r)
    with pytest.raises(ValueError, match=message):
        estimate_accuracy(**(given | change))


def test_two_pairs_are_needed() -> None:
    with pytest.raises(ValueError, match="labels have 1 pairs: an estimate needs two"):
        estimate_accuracy([1.0], [1.0], PairLabels([0.5], [0.0]))
