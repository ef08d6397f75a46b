"""Accuracy without labels, against simulated tables of known accuracy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit

from pairlearn import PairLabels
from pairlearn.evaluation import Estimate, estimate_accuracy, sensitivity

Table = tuple[np.ndarray, np.ndarray]


def table(
    rng: np.random.Generator, prior: float, turned: tuple[float, float], n: int, mu: float = 5.0
) -> Table:
    """Posteriors of a calibrated annotator, and decisions flipped at random, each (2, n)."""
    y = rng.random((2, n)) < prior
    u = rng.normal(np.where(y, mu / 2, -mu / 2), 1)
    r = 1 / (1 + np.exp(-(mu * u + math.log(prior / (1 - prior)))))
    w = rng.random((2, n))
    return r, np.where(r > 0.5, w >= turned[0], w < turned[1])


def true_accuracy(prior: float, turned: tuple[float, float], mu: float = 5.0) -> float:
    """P(h = y), from the normal distributions of u."""
    cut = -math.log(prior / (1 - prior)) / mu
    miss, false = turned
    above = (1 - NormalDist(mean).cdf(cut) for mean in (mu / 2, -mu / 2))
    tpr, fpr = (share * (1 - miss) + (1 - share) * false for share in above)
    return prior * tpr + (1 - prior) * (1 - fpr)


def assess(r: Any, h: Any, labels: PairLabels | None = None, **options: Any) -> Estimate:
    """The informed reading, which is right here: the annotators know what decisions depend on."""
    labels = PairLabels.from_posteriors(r[0], r[1]) if labels is None else labels
    return estimate_accuracy(h[0] - 0.5, h[1] - 0.5, labels, **options).informed


# ---- values computed in other ways --------------------------------------------------------------


def test_the_fit_maximises_the_pair_likelihood() -> None:
    """Search the rates of both decisions on a grid, pair by pair."""
    r, h = table(np.random.default_rng(5), 0.4, (0.3, 0.1), 80, mu=2.0)
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
    r, h = table(np.random.default_rng(6), 0.3, (0.2, 0.1), 150, mu=3.0)
    keep = np.arange(150)
    left_out = [assess(r[:, keep != i], h[:, keep != i]).value for i in keep]
    jackknife = math.sqrt(149 / 150 * ((np.array(left_out) - np.mean(left_out)) ** 2).sum())
    estimate = assess(r, h)
    assert (estimate.high - estimate.low) / (2 * 1.96) == pytest.approx(jackknife, rel=0.06)


def test_certain_judgements_without_errors() -> None:
    """Like a thousand labelled instances without an error: Wilson gives z²/(N + z²)."""
    y = np.random.default_rng(7).random((2, 500)) < 0.3
    estimate = assess(y.astype(float), y)
    assert (estimate.value, estimate.high) == pytest.approx((1, 1), abs=1e-3)
    assert 1 - estimate.low == pytest.approx(1.96**2 / (1000 + 1.96**2), rel=0.1)


def test_swapping_ends_or_classes_changes_nothing() -> None:
    r, h = table(np.random.default_rng(8), 0.3, (0.2, 0.1), 300)
    estimate = assess(r, h)
    for other in (assess(r[::-1], h[::-1]), assess(1 - r, ~h)):
        assert (other.value, other.low, other.high) == pytest.approx(
            (estimate.value, estimate.low, estimate.high), abs=1e-6
        )
    assert assess(r, ~h).value == pytest.approx(1 - estimate.value, abs=1e-6)


# ---- coverage -----------------------------------------------------------------------------------


def some_missing(r: Any, rng: np.random.Generator) -> PairLabels:
    labels = PairLabels.from_posteriors(*r)
    kind = rng.integers(0, 3, len(labels))
    return PairLabels(
        np.where(kind == 0, np.nan, labels.similarity),
        np.where(kind == 1, np.nan, labels.difference),
    )


def noisy(r: Any, rng: np.random.Generator) -> PairLabels:
    clean = PairLabels.from_posteriors(*r)
    factors = rng.normal(1, 0.5, (2, len(clean)))
    return PairLabels(clean.similarity * factors[0], clean.difference * factors[1], noisy=True)


def recurring(rng: np.random.Generator, items: int, n: int, repeats: int = 1) -> Any:
    r, h = (x.reshape(-1)[:items] for x in table(rng, 0.3, (0.1, 0.1), items))
    left = rng.integers(0, items, n)
    right = (left + rng.integers(1, items, n)) % items
    pairs = np.tile(np.stack([left, right], 1), (repeats, 1))
    return r[pairs.T], h[pairs.T], pairs


def share_covered(
    draw: Callable[[np.random.Generator], Estimate], truth: float, tables: int
) -> float:
    rng = np.random.default_rng(1)
    estimates = [draw(rng) for _ in range(tables)]
    return float(np.mean([estimate.low <= truth <= estimate.high for estimate in estimates]))


def similarities(r: Any, _: Any = None) -> PairLabels:
    return PairLabels(PairLabels.from_posteriors(*r).similarity, None)


def differences(r: Any, _: Any = None) -> PairLabels:
    return PairLabels(None, r[1] - r[0])


@pytest.mark.parametrize(
    ("prior", "turned", "n", "judge", "options", "least", "most"),
    [
        # Rare errors at a small prior are the hard case: few of them fall on dissimilar pairs.
        (0.1, (0.015, 0.015), 500, None, {}, 0.91, 0.99),
        (0.1, (0.15, 0.0), 500, None, {}, 0.91, 0.99),
        (0.2, (0.0, 0.14), 500, None, {}, 0.91, 0.99),
        (0.5, (0.02, 0.02), 500, None, {}, 0.91, 0.99),
        (0.2, (0.05, 0.05), 200, None, {"confidence": 0.5}, 0.42, 0.58),
        (0.2, (0.05, 0.05), 200, None, {"confidence": 0.8}, 0.73, 0.87),
        (0.2, (0.1, 0.1), 300, some_missing, {}, 0.9, 0.995),
        (0.2, (0.1, 0.1), 500, noisy, {}, 0.89, 1.0),
        (0.2, (0.1, 0.1), 300, similarities, {"prior": 0.2}, 0.9, 0.995),
        (0.2, (0.1, 0.1), 300, differences, {"prior": 0.2}, 0.9, 0.995),
        (0.2, (0.7, 0.3), 400, None, {}, 0.9, 1.0),  # decisions at random
        (0.2, (0.5, 0.5), 400, None, {}, 0.9, 1.0),
    ],
)
def test_intervals_cover(
    prior: float, turned: Any, n: int, judge: Any, options: Any, least: float, most: float
) -> None:
    def draw(rng: np.random.Generator) -> Estimate:
        r, h = table(rng, prior, turned, n)
        return assess(r, h, None if judge is None else judge(r, rng), **options)

    assert least <= share_covered(draw, true_accuracy(prior, turned), 150) <= most


@pytest.mark.parametrize(("items", "n", "repeats"), [(120, 500, 1), (300, 150, 3)])
def test_intervals_cover_when_items_recur(items: int, n: int, repeats: int) -> None:
    def covered(aware: bool) -> float:
        def draw(rng: np.random.Generator) -> Estimate:
            r, h, pairs = recurring(rng, items, n, repeats)
            return assess(r, h, items=pairs if aware else None)

        return share_covered(draw, true_accuracy(0.3, (0.1, 0.1)), 120)

    assert 0.9 <= covered(aware=True) <= 0.99
    assert covered(aware=False) < 0.87


@pytest.mark.long
@pytest.mark.parametrize("prior", [0.1, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("error", [0.015, 0.12])
@pytest.mark.parametrize(("misses", "alarms"), [(1, 1), (1, 0), (0, 1)])
def test_intervals_cover_everywhere(prior: float, error: float, misses: int, alarms: int) -> None:
    turned = misses * error, alarms * error
    truth = true_accuracy(prior, turned)
    covered = share_covered(lambda rng: assess(*table(rng, prior, turned, 500)), truth, 2000)
    assert 0.91 <= covered <= 0.98


# ---- noise, missing judgements, weights, a known prior ------------------------------------------


def test_noise_and_missing_judgements_widen_the_interval() -> None:
    rng = np.random.default_rng(9)
    r, h = table(rng, 0.2, (0.1, 0.1), 50_000)
    whole, labels = assess(r, h), some_missing(r, rng)
    estimate = assess(r, h, labels)
    assert estimate.value == pytest.approx(true_accuracy(0.2, (0.1, 0.1)), abs=0.005)
    both = ~np.isnan(labels.to_array()).any(1)
    fewer = assess(r[:, both], h[:, both])
    estimates = (whole, estimate, fewer, assess(r, h, noisy(r, rng)))
    widths = [estimate.high - estimate.low for estimate in estimates]
    assert widths[0] < widths[1] < 0.8 * widths[2]
    assert widths[3] > widths[0]


def test_differences_and_a_prior_are_confdiff() -> None:
    """1 − accuracy = π(1 − q) + (1 − π)q + mean c(h − h'), with c alone and a known prior."""
    r, h = table(np.random.default_rng(12), 0.4, (0.2, 0.1), 2000)
    q = h.mean()
    implied = 0.4 * (1 - q) + 0.6 * q + ((r[1] - r[0]) * (h[0] * 1.0 - h[1])).mean()
    estimate = estimate_accuracy(*(h - 0.5), differences(r), prior=0.4)
    assert estimate.value == pytest.approx(1 - implied, abs=0.01)
    assert estimate.method == "likelihood, prior given"


def test_a_known_prior_helps() -> None:
    rng = np.random.default_rng(13)
    ratios = []
    for _ in range(10):
        r, h = table(rng, 0.5, (0.24, 0.0), 500)
        free, fixed = assess(r, h), assess(r, h, prior=0.5)
        ratios.append((fixed.high - fixed.low) / (free.high - free.low))
    assert np.mean(ratios) < 0.95


def test_weights_stand_for_repeated_pairs() -> None:
    rng = np.random.default_rng(14)
    r, h = table(rng, 0.3, (0.1, 0.1), 400)
    times = rng.integers(1, 4, 400)
    weighted = assess(r, h, weight=times * 7.0)
    rows = np.repeat(np.arange(400), times)
    items = np.stack([rows, rows + 1000], 1)
    repeated = assess(r[:, rows], h[:, rows], items=items)
    assert (weighted.value, weighted.low, weighted.high) == pytest.approx(
        (repeated.value, repeated.low, repeated.high), abs=2e-4
    )


def test_inclusion_weights_undo_the_selection() -> None:
    """Pairs of unlike decisions are included ten times as often as the others."""
    rng = np.random.default_rng(15)
    r, h = table(rng, 0.3, (0.1, 0.1), 100_000)
    chance = np.where(h[0] != h[1], 0.5, 0.05)
    kept = rng.random(100_000) < chance
    estimate = assess(r[:, kept], h[:, kept], weight=1 / chance[kept])
    assert estimate.low <= true_accuracy(0.3, (0.1, 0.1)) <= estimate.high
    assert estimate.high - estimate.low < 0.02


@pytest.mark.parametrize("side", [None, "positive", "negative", "better"])
def test_similarities_alone_need_a_side(side: Any) -> None:
    r, h = table(np.random.default_rng(16), 0.3, (0.1, 0.1), 2000)
    labels = similarities(r)
    if side is None:
        with pytest.raises(ValueError, match="labels have similarities only, which stay"):
            assess(r, h, labels)
        return
    truth = true_accuracy(0.3, (0.1, 0.1))
    wrong = side == "positive"  # which swaps the classes
    assert assess(r, h, labels, side=side).value == pytest.approx(abs(wrong - truth), abs=0.03)


# ---- uninformative decisions --------------------------------------------------------------------


def test_a_constant_classifier_leaves_both_answers_open() -> None:
    r, h = table(np.random.default_rng(17), 0.3, (0.1, 0.1), 500)
    never = np.zeros_like(h)
    estimate = assess(r, never)
    assert estimate.value == pytest.approx(0.7, abs=0.05)
    assert estimate.low < 0.3 < 0.7 < estimate.high
    known = assess(r, never, prior=0.3)
    assert known.low < 0.7 < known.high < known.low + 0.1
    assert assess(r, ~never, prior=0.3).value == pytest.approx(0.3, abs=0.03)


def test_tiny_tables_give_something() -> None:
    for y, h in itertools.product(itertools.product([0.1, 0.8], repeat=2), repeat=2):
        estimate = assess(np.reshape([*y, 0.2, 0.9], (2, 2)), np.reshape([*h, 0, 1], (2, 2)) > 0.5)
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


# ---- arguments ----------------------------------------------------------------------------------


def test_tensors() -> None:
    r, h = table(np.random.default_rng(19), 0.3, (0.1, 0.1), 100)
    tensors = [torch.from_numpy(x - 0.5).requires_grad_() for x in h]
    labels = PairLabels.from_posteriors(*torch.from_numpy(r))
    assert estimate_accuracy(*tensors, labels).informed == assess(r, h)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits_prime": np.zeros(5)}, r"logits_prime must have shape \(100,\), one for each"),
        ({"logits": np.full(100, np.nan)}, "logits is NaN in row 0"),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1.0"),
        ({"prior": 0.0}, r"prior must lie in \(0, 1\); got 0"),
        ({"side": "left"}, "side must be 'positive', 'negative' or 'better'; got 'left'"),
        ({"labels": np.zeros((100, 2))}, "labels must be PairLabels; got ndarray: use PairLabels"),
        ({"labels": PairLabels([0.5], None)}, "labels have 1 pairs: an estimate needs two"),
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
    logits = {"logits": h[0] - 0.5, "logits_prime": h[1] - 0.5}
    with pytest.raises(ValueError, match=message):
        estimate_accuracy(**logits | {"labels": PairLabels.from_posteriors(*r)} | change)


# ---- overconfident annotators -------------------------------------------------------------------


def overconfident(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, PairLabels, float]:
    """True log-odds, classes, judgements with log-odds twice as large, and the accuracy."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 2, size=(2, n))
    y = (rng.random((2, n)) < expit(z)).astype(float)
    truth = float(np.maximum(expit(z), expit(-z)).mean())
    return z, y, PairLabels.from_posteriors(*expit(2 * z)), truth


def test_the_right_slope_and_shift_give_the_true_accuracy() -> None:
    z, _, labels, truth = overconfident(50_000, 0)
    plain = estimate_accuracy(*z, labels).value
    assert plain > truth + 0.05
    band = sensitivity(*z, labels, slopes=[0.5, 1.0])
    (first, right), (second, stated) = band.items()
    assert (first, second) == (0.5, 1.0)
    assert right.value == pytest.approx(truth, abs=0.005)
    assert stated.value == pytest.approx(plain, abs=1e-4)
    # Scaling does not depend on which of the two pairs of posteriors is taken.
    mirrored = PairLabels.from_posteriors(*expit(-2 * z[::-1]))
    estimate = sensitivity(*z, mirrored, slopes=[0.5])[0.5]
    assert estimate.value == pytest.approx(right.value, abs=1e-9)


def test_errors_of_sensitivity() -> None:
    z, _, labels, _ = overconfident(200, 3)
    some = PairLabels(np.where(np.arange(200) < 50, np.nan, labels.similarity), labels.difference)
    items = np.arange(400).reshape(200, 2)
    both = [column[50:] for column in (*z, labels, items)]
    expected = sensitivity(*both[:3], slopes=[1.0], items=both[3])
    assert sensitivity(*z, some, slopes=[1.0], items=items) == expected
    with pytest.raises(ValueError, match="labels have fewer than two pairs with both"):
        sensitivity(*z, PairLabels(None, labels.difference))
    for slopes in ([0], []):
        with pytest.raises(ValueError, match="slopes must be some positive and finite numbers"):
            sensitivity(*z, labels, slopes=slopes)
