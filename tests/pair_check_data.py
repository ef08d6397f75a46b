"""Judged pairs for the checks of estimators, and what a check asserts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from pairlearn.labels import PairLabels

Floats = NDArray[np.float64]
PAIRS, FEATURES = 120, 3


def judged_pairs(seed: int = 0) -> tuple[Floats, Floats]:
    """Pairs (n, 2, d) and their labels by posteriors σ(4x₀ − 2), a minority of positives."""
    pairs = np.random.default_rng(seed).normal(size=(PAIRS, 2, FEATURES))
    return pairs, PairLabels.from_posteriors(*posterior(pairs).T).to_array()


def instances(seed: int = 1) -> Floats:
    """Instances (m, d) to predict."""
    return np.random.default_rng(seed).normal(size=(50, FEATURES))


def posterior(x: Floats) -> Floats:
    """P(+) of instances (..., d)."""
    values: Floats = 1 / (1 + np.exp(2 - 4 * x[..., 0]))
    return values


def fresh_clone(estimator: Any) -> Any:
    """A clone with a fixed random state."""
    fresh = clone(estimator)
    if "random_state" in fresh.get_params(deep=False):
        fresh.set_params(random_state=0)
    return fresh


def fitted_clone(estimator: Any, **keywords: Any) -> Any:
    """The same, fitted to `judged_pairs`."""
    return fresh_clone(estimator).fit(*judged_pairs(), **keywords)


def assert_same(one: Any, other: Any, what: str, *, exact: bool = False) -> None:
    """Equal outputs of two fits, up to rounding unless exact."""
    x = instances()
    first, second = one.decision_function(x), other.decision_function(x)
    tolerance = 0.0 if exact else 1e-3 * max(1.0, float(np.abs(first).max()))
    gap = float(np.abs(first - second).max())
    assert gap <= tolerance, f"{what}: decision_function differs by {gap:.3g}"


def assert_alike(one: Any, other: Any, what: str) -> None:
    """Nearly the same decisions, where the order of batches may differ."""
    x = instances(2)
    share = float(np.mean(one.predict(x) == other.predict(x)))
    assert share >= 0.9, f"{what}: only {share:.0%} of the predictions agree"


def assert_refused(
    what: str, call: Callable[..., Any], *given: Any, by: Any = (ValueError, TypeError), **more: Any
) -> None:
    """A call that must raise one of these errors, with a message."""
    try:
        call(*given, **more)
    except by as error:
        assert str(error).strip(), f"{what} raises {type(error).__name__} without a message"
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}: {error}") from error
    else:
        raise AssertionError(f"{what} must be an error, and is accepted")
