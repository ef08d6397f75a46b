"""Rademacher complexities against enumeration."""

import itertools
import math

import numpy as np
import pytest

from pairlearn import bounds


@pytest.mark.parametrize(("functions", "n"), [(1, 3), (4, 7), (20, 10)])
def test_empirical_rademacher_matches_enumeration(functions: int, n: int) -> None:
    outputs = np.random.default_rng(n).normal(size=(functions, n))
    exact = np.mean([max(outputs @ signs) / n for signs in itertools.product((-1, 1), repeat=n)])
    estimate = bounds.empirical_rademacher(outputs, draws=40_000, seed=3)
    assert abs(estimate.value - exact) < 4 * estimate.standard_error < 0.05
    assert bounds.empirical_rademacher(outputs, draws=40_000, seed=3) == estimate


def test_empirical_rademacher_in_blocks() -> None:
    wide = np.ones((2, 2**21))  # blocks of two draws
    estimate = bounds.empirical_rademacher(wide, draws=5)
    assert abs(estimate.value) < 5 / math.sqrt(5 * 2**21)


def test_linear_bound_covers_random_linear_functions() -> None:
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(500, 3)), rng.normal(size=(50, 3))
    w *= 2 / np.linalg.norm(w, axis=1, keepdims=True)
    x *= 3 / np.linalg.norm(x, axis=1, keepdims=True)
    estimate = bounds.empirical_rademacher(w @ x.T, draws=2000)
    bound = bounds.linear_rademacher(n=50, weight_norm=2, feature_radius=3)
    assert 0.5 * bound < estimate.value < bound
