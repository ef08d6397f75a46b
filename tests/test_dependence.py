"""Sums over dependent pairs against double loops, intervals against known ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlearn.dependence import Dependence
from pairlearn.evaluation.judged import Estimate, hull, proportion, quantile

rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(-3, 3)).filter(
        lambda row: row[0] != row[1]
    ),
    min_size=1,
    max_size=12,
)


def by_double_loop(ids: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return sum(
        x[m] * y[k]
        for m in range(len(ids))
        for k in range(len(ids))
        if set(ids[m].tolist()) & set(ids[k].tolist())
    )


@given(rows)
def test_variance_is_the_sum_over_pairs_that_share_an_item(table: list) -> None:
    ids, x = np.array([row[:2] for row in table]), np.array([row[2] for row in table])
    count = len(np.unique(ids))
    factor = count / max(count - 2, 1)
    couples: dict[tuple[int, ...], float] = {}
    for row, value in zip(ids.tolist(), x, strict=True):
        key = tuple(sorted(row))
        couples[key] = couples.get(key, 0.0) + value
    floor = sum(value**2 for value in couples.values())
    expected = max(by_double_loop(ids, x, x), floor) * factor
    assert float(Dependence.of(ids, len(x)).variance(x)) == pytest.approx(expected, abs=1e-9)


def test_covariance_of_several_columns() -> None:
    rng = np.random.default_rng(0)
    ids = rng.permuted(np.tile(np.arange(30), (40, 1)), axis=1)[:, :2]
    x = rng.normal(size=(40, 2)) + 1
    covariance = Dependence.of(ids, 40).covariance(x)
    count = len(np.unique(ids))
    expected = [[by_double_loop(ids, x[:, i], x[:, j]) for j in (0, 1)] for i in (0, 1)]
    assert np.linalg.eigvalsh(expected).min() > 0
    assert covariance == pytest.approx(np.array(expected) * count / (count - 2))


def test_distinct_items_are_independent() -> None:
    x = np.random.default_rng(1).normal(size=50)
    ids = np.arange(100).reshape(50, 2)
    texts = ids.astype(str)
    expected = (x**2).sum() * 50 / 49
    for items in (None, ids, texts):
        dependence = Dependence.of(items, 50)
        assert float(dependence.variance(x)) == pytest.approx(expected)
        assert dependence.covariance(x[:, None]) == pytest.approx(expected)
        assert dependence.effective_ends(np.ones(50)) == pytest.approx(100)


def test_effective_ends_by_hand() -> None:
    # One hub in all of 4 pairs: (4 + 1 + 1 + 1 + 1)²/(16 + 4).
    hub = Dependence.of(np.array([[0, k] for k in range(1, 5)]), 4)
    assert hub.effective_ends(np.ones(4)) == pytest.approx(64 / 20)
    # Weights 3 and 1: twice (3 + 1)²/(9 + 1).
    assert Dependence.of(None, 2).effective_ends(np.array([3.0, 1.0])) == pytest.approx(3.2)


def test_rows() -> None:
    ids = np.array([[0, 1], [0, 2], [5, 6]])
    part = Dependence.of(ids, 3).rows(np.array([True, False, True]))
    assert float(part.variance(np.array([1.0, 1.0]))) == pytest.approx(2 * 4 / 2)


# ---- intervals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "expected"), [(4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_quantiles_of_student(degrees: int, expected: float) -> None:
    """Values of printed tables."""
    assert quantile(0.95, degrees + 2) == pytest.approx(expected, abs=0.01)


def test_wilson_of_a_count() -> None:
    """Ten of a hundred, Wilson's 95% interval: .0552 to .1744."""
    estimate = proportion(0.1, 0.1 * 0.9 / 100, 100, 1.959964)
    assert (estimate.low, estimate.high) == pytest.approx((0.0552, 0.1744), abs=3e-4)


@given(
    st.floats(0, 1), st.floats(0, 1), st.floats(2, 1e6), st.sampled_from([0.5, 0.9, 0.95, 0.999])
)
def test_intervals_hold_their_value(v: float, spread: float, count: float, level: float) -> None:
    estimate = proportion(v, spread**2, count, quantile(level, count))
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    wider = proportion(v, spread**2, count, quantile(level, count) * 1.5)
    assert wider.low <= estimate.low + 1e-12
    assert estimate.high <= wider.high + 1e-12


def test_undefined_and_joined() -> None:
    nothing = proportion(0.5, 0.1, 0.0, 1.96)
    assert math.isnan(nothing.value)
    assert nothing.to_dict() == {"value": None, "low": 0.0, "high": 1.0}
    assert str(nothing) == "– (0.000 to 1.000)"
    assert hull([Estimate(0.6, 0.5, 0.7), Estimate(0.4, 0.3, 0.55)]) == Estimate(0.6, 0.3, 0.7)
