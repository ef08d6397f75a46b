"""Rademacher complexities to put into the bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pairlearn.bounds.quantities import non_negative, require, valid_integer, valid_pairs


def linear_rademacher(*, n: int, weight_norm: float, feature_radius: float) -> float:
    """Rademacher complexity of x ↦ ⟨w, x⟩ with ‖w‖ ≤ B and ‖x‖ ≤ X: at most B·X/√n.

    Standard (for example Mohri et al., Foundations of Machine Learning, Theorem 5.10).

    Examples
    --------
    >>> linear_rademacher(n=100, weight_norm=2.0, feature_radius=3.0)
    0.6
    """
    size = non_negative("weight_norm", weight_norm)
    return size * non_negative("feature_radius", feature_radius) / math.sqrt(valid_pairs(n))


@dataclass(frozen=True)
class RademacherEstimate:
    """A Monte Carlo estimate of a Rademacher complexity, with its standard error.

    Examples
    --------
    >>> RademacherEstimate(value=0.21, standard_error=0.003).value
    0.21
    """

    value: float
    standard_error: float


def empirical_rademacher(
    outputs: ArrayLike, draws: int = 1000, seed: int = 0
) -> RademacherEstimate:
    """Estimate E_σ[max over g of (1/n)·Σ σᵢ g(xᵢ)] for finitely many classifiers.

    Parameters
    ----------
    outputs : array_like of shape (functions, n)
        Row k holds the outputs of classifier k on the n instances.
    draws : int
        Number of random sign vectors, at least 2.
    seed : int
        Seed of the signs; the same seed gives the same estimate.

    Examples
    --------
    >>> estimate = empirical_rademacher([[1.0, 1.0], [-1.0, -1.0]], draws=4000)
    >>> abs(estimate.value - 0.5) < 4 * estimate.standard_error
    True
    """
    table = np.asarray(outputs, dtype=np.float64)
    rule, advice = "be a non-empty (functions, n) array", "for one classifier pass outputs[None, :]"
    require(table.ndim == 2 and table.size > 0, "outputs", rule, table.shape, advice)
    bad = table[~np.isfinite(table)]
    require(bad.size == 0, "outputs", "be finite", bad[:3], "drop classifiers that overflow")
    count = valid_integer("draws", draws, 2, "a standard error needs two sign vectors")
    rng = np.random.default_rng(seed)
    suprema = np.empty(count)
    block = max(1, 2**22 // max(table.shape))  # keeps the working memory near 100 MiB
    for start in range(0, count, block):
        size = min(block, count - start)
        signs = 2.0 * rng.integers(0, 2, size=(size, table.shape[1])) - 1.0
        suprema[start : start + size] = (signs @ table.T).max(axis=1) / table.shape[1]
    error = suprema.std(ddof=1) / math.sqrt(count)
    return RademacherEstimate(value=float(suprema.mean()), standard_error=float(error))
