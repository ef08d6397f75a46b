"""Accuracies side by side, their differences, and intervals that hold together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pairlearn import PairLabels, estimate_accuracy
from pairlearn.comparison.ranking import rank, simultaneous_quantile


def posteriors(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-z))


def test_accuracies_are_those_of_estimate_accuracy() -> None:
    rng = np.random.default_rng(0)
    item_z = rng.normal(-1, 3, size=150)
    items = np.array([rng.choice(150, 2, replace=False) for _ in range(400)])
    labels = PairLabels.from_posteriors(*posteriors(item_z[items]).T)
    weight = rng.uniform(0.5, 2, size=400)
    logits = [(item_z + scale * rng.normal(size=150))[items] for scale in (0.5, 2.0, 0.0)]
    found = rank(logits, labels, weight=weight, items=items, confidence=0.9)
    assert found.order[0] == 2
    for place, method in enumerate(found.order):
        alone = estimate_accuracy(
            *logits[method].T, labels, weight=weight, items=items, confidence=0.9
        )
        together = found.accuracies[place]
        assert (together.value, together.low, together.high) == pytest.approx(
            (alone.value, alone.low, alone.high), abs=1e-12
        )
        best = found.accuracies[0].value
        assert found.differences[place].value == pytest.approx(together.value - best, abs=1e-12)


def test_differences_of_outputs_that_decide_alike_are_zero() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 2))
    labels = PairLabels.from_posteriors(*posteriors(3 * z).T)
    found = rank([z, 5 * z, z**3], labels)
    assert found.order.tolist() == [0, 1, 2]
    for difference in found.differences[1:]:
        assert difference.value == 0
        # One more instance of 600 decided differently.
        assert difference.high == pytest.approx(found.quantile / 600)


def test_intervals_of_all_differences_hold_together() -> None:
    """Three classifiers with known accuracies: the noise that they add to the log-odds."""
    rng = np.random.default_rng(2)
    scales = (0.0, 0.6, 1.0)

    def table(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        z = rng.normal(-0.5, 3, size=(n, 2))
        outputs = np.stack([z + 2 * scale * rng.normal(size=z.shape) for scale in scales])
        return z, outputs

    z, outputs = table(200_000)
    r = posteriors(z)
    truth = np.where(outputs > 0, r, 1 - r).mean((1, 2))
    tables, held = 200, 0
    for _ in range(tables):
        z, outputs = table(150)
        found = rank(outputs, PairLabels.from_posteriors(*posteriors(z).T))
        true = truth[found.order]
        held += all(
            difference.low <= value - true[0] <= difference.high
            for difference, value in zip(found.differences, true, strict=True)
        )
    # 95% at least, as these cover the differences to the best only; ±3 standard errors.
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / tables) <= held / tables


@pytest.mark.parametrize(("count", "range_"), [(2, 2.772), (3, 3.314), (5, 3.858), (10, 4.474)])
def test_quantiles_of_independent_variables_are_tukeys(count: int, range_: float) -> None:
    found = simultaneous_quantile(np.eye(count) * 4, 0.95, 1e9)
    assert found == pytest.approx(range_ / np.sqrt(2), rel=0.01)


def test_quantiles_ignore_copies_and_widen_for_few_items() -> None:
    one = np.array([[1.0, 0.3], [0.3, 2.0]])
    copied = one[np.ix_([0, 0, 1], [0, 0, 1])]
    assert simultaneous_quantile(copied, 0.95, 1e9) == pytest.approx(1.96, rel=0.01)
    assert simultaneous_quantile(np.zeros((3, 3)), 0.95, 1e9) == pytest.approx(1.96, rel=0.001)
    # Student's t with 10 degrees of freedom.
    assert simultaneous_quantile(one, 0.95, 12) == pytest.approx(2.228, rel=0.01)


def test_a_classifier_that_never_decides_is_judged_by_the_prior_of_the_others() -> None:
    """Always negative is right for the negatives: .7, though alone it could as well be .3."""
    rng = np.random.default_rng(3)
    positive = rng.random((2000, 2)) < 0.3
    labels = PairLabels.from_posteriors(*positive.astype(float).T)
    z = np.where(positive, 1.0, -1.0)
    alone = estimate_accuracy(-np.ones(2000), -np.ones(2000), labels)
    assert alone.low < 0.35
    assert alone.high > 0.65
    found = rank([-np.ones_like(z), np.ones_like(z), z], labels)
    assert found.order.tolist() == [2, 0, 1]
    values = [estimate.value for estimate in found.accuracies]
    assert values == pytest.approx([1.0, 0.7, 0.3], abs=0.03)
    assert found.accuracies[1].low > 0.6
    assert found.differences[1].high < -0.2


def test_accuracies_under_noise_are_those_of_a_single_classifier() -> None:
    """Noise leaves the feasible region, and the intervals then hold the normal ones too."""
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(100):
        positive = rng.random((500, 2)) < 0.2
        z = np.where(positive ^ (rng.random(positive.shape) < 0.01), 1.0, -1.0)
        accuracy = float(((z > 0) == positive).mean())
        exact = PairLabels.from_posteriors(*positive.astype(float).T)
        factors = 1 + 0.5 * rng.normal(size=(2, 500))
        noisy = PairLabels(exact.similarity * factors[0], exact.difference * factors[1], noisy=True)
        (estimate,) = rank([z], noisy).accuracies
        alone = estimate_accuracy(*z.T, noisy)
        assert (estimate.low, estimate.high) == pytest.approx((alone.low, alone.high))
        held += estimate.low <= accuracy <= estimate.high
    assert held >= 90
