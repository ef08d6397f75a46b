"""Annotators that are too sure or too timid: bands and mending."""

from __future__ import annotations

import numpy as np
import pytest

from pairlearn import PairLabels
from pairlearn.evaluation import estimate_accuracy, recalibrate, sensitivity


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def truth_and_overconfident(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, PairLabels]:
    """True log-odds, classes, and judgements made with log-odds twice as large."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 2, size=(2, n))
    y = (rng.random((2, n)) < sigmoid(z)).astype(float)
    return z, y, PairLabels.from_posteriors(*sigmoid(2 * z))


def test_the_right_slope_gives_the_true_accuracy() -> None:
    z, _, labels = truth_and_overconfident(50_000, 0)
    truth = np.maximum(sigmoid(z), sigmoid(-z)).mean()
    assert estimate_accuracy(*z, labels).value > truth + 0.05
    band = sensitivity(*z, labels, slopes=[0.5, 1.0])
    (half, _, right), (one, _, told) = band.estimates
    assert (half, one) == (0.5, 1.0)
    assert right.value == pytest.approx(truth, abs=0.005)
    assert told.value == pytest.approx(estimate_accuracy(*z, labels).value, abs=1e-4)
    assert (band.low, band.high) == (right.value, told.value)
    assert band.low_end < band.low
    assert band.high < band.high_end
    assert band.n == 50_000


def test_scaling_does_not_depend_on_the_reflection() -> None:
    """Decisions for one, log-odds that choose the other: the same band."""
    z, _, labels = truth_and_overconfident(300, 1)
    chosen = [
        sensitivity(z[0] + shift, z[1] + shift, labels, slopes=[0.5]).estimates[0][2]
        for shift in (0.0, 1e-9)
    ]
    reflected = PairLabels.from_posteriors(*sigmoid(-2 * z[::-1]))
    assert chosen[0].value == pytest.approx(chosen[1].value)
    mirrored = sensitivity(*z, reflected, slopes=[0.5]).estimates[0][2]
    assert mirrored.value == pytest.approx(chosen[0].value, abs=1e-9)


def test_a_shift_moves_the_classes() -> None:
    z, _, _ = truth_and_overconfident(50_000, 2)
    leaning = PairLabels.from_posteriors(*sigmoid(z + 1))
    truth = np.maximum(sigmoid(z), sigmoid(-z)).mean()
    # The true log-odds choose some reflections wrongly where the annotator leans.
    band = sensitivity(*z, leaning, slopes=[1.0], shifts=[0.0, -1.0])
    before, after = (estimate.value for _, _, estimate in band.estimates)
    assert abs(after - truth) < 0.02
    assert abs(after - truth) < abs(before - truth)


def test_only_pairs_with_both_judgements_are_used() -> None:
    z, _, labels = truth_and_overconfident(200, 3)
    s = labels.similarity.copy()
    s[:50] = np.nan
    items = np.arange(400).reshape(200, 2)
    band = sensitivity(*z, PairLabels(s, labels.difference), slopes=[1.0], items=items)
    assert band.n == 150
    with pytest.raises(ValueError, match="labels have 0 pairs with both judgements: give two"):
        sensitivity(*z, PairLabels(None, labels.difference))
    with pytest.raises(ValueError, match="slopes must be positive and finite; got 0"):
        sensitivity(*z, labels, slopes=[0])
    with pytest.raises(ValueError, match="shifts is empty: give at least one value"):
        sensitivity(*z, labels, shifts=[])


def test_a_few_labels_mend_the_annotator() -> None:
    z, y, labels = truth_and_overconfident(5000, 4)
    y[:, 400:] = np.nan
    mended = recalibrate(labels, *z, *y)
    assert mended.n == 800
    assert mended.slope == pytest.approx(0.5, abs=0.08)
    assert mended.shift == pytest.approx(0.0, abs=0.25)
    truth = np.maximum(sigmoid(z), sigmoid(-z)).mean()
    assert estimate_accuracy(*z, mended.labels).value == pytest.approx(truth, abs=0.02)


def test_the_most_probable_slope_by_search() -> None:
    """Ten labels: search log k and d on a grid, term by term."""
    z, y, labels = truth_and_overconfident(40, 5)
    y[0, 5:] = y[1, 5:] = np.nan
    upper, lower = labels.posteriors()
    best, place = np.inf, (0.0, 0.0)
    for log_k in np.arange(-1.5, 1.5, 0.03):
        for d in np.arange(-1.5, 1.5, 0.03):
            loss = log_k**2 / 2 + d**2 / 8
            for i in range(5):
                r = upper[i] if z[0, i] + z[1, i] > 0 else lower[i]
                odds = np.log(r / (1 - r)) * np.exp(log_k) + d
                loss += np.log1p(np.exp(-(2 * y[:, i] - 1) * odds)).sum()
            if loss < best:
                best, place = loss, (log_k, d)
    mended = recalibrate(labels, *z, *y)
    assert np.log(mended.slope) == pytest.approx(place[0], abs=0.02)
    assert mended.shift == pytest.approx(place[1], abs=0.02)


def test_one_sided_labels_stay_finite() -> None:
    z, _, labels = truth_and_overconfident(50, 6)
    mended = recalibrate(labels, *z, np.ones(50), np.full(50, np.nan))
    assert 0 < mended.slope < 10
    assert 0 < mended.shift < 10
    assert mended.labels.feasible().all()


def test_errors_of_recalibrate() -> None:
    z, y, labels = truth_and_overconfident(10, 7)
    with pytest.raises(ValueError, match="classes must be 0, 1 or NaN; row 0 is -1"):
        recalibrate(labels, *z, -np.ones(10), y[1])
    with pytest.raises(ValueError, match=r"classes_prime must have shape \(10,\); got \(3,\)"):
        recalibrate(labels, *z, y[0], y[1][:3])
    with pytest.raises(ValueError, match="are all missing: give some true labels"):
        recalibrate(labels, *z, np.full(10, np.nan), np.full(10, np.nan))
    with pytest.raises(ValueError, match="labels have one judgement only in row 0"):
        recalibrate(PairLabels(labels.similarity, None), *z, *y)
