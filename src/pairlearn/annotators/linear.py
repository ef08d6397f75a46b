"""A linear score of the items whose differences predict what was said: c ≈ g(x') − g(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.columns import Floats, Indices


def linear_scores(
    features: Any, ends: Indices, difference: Floats, weight: Floats, folds: int, most: int
) -> Floats:
    """Scores (n, 2) of both ends of pairs, by a ridge regression on about `most` of other folds.

    Rows of weight 0 are scored, and not fitted to; the others are in the folds in turn. The
    products of the smaller of the two systems are computed once for all folds.
    """
    from scipy.linalg import solve

    used, places = np.unique(ends, return_inverse=True)
    x, places = features.reshape(len(features), -1)[used], places.reshape(-1, 2)
    scores, turn = np.empty((len(ends), 2)), (np.cumsum(weight > 0) - 1) % folds
    rows = np.flatnonzero(weight > 0)[: most * folds // (folds - 1)]
    left, right = (x[end].astype(np.float64) for end in places[rows].T)
    root = np.sqrt(weight[rows] / weight[rows].mean())
    d, c = (right - left) * root[:, None], difference[rows] * root
    few = len(d) < d.shape[1]
    products = d @ d.T if few else d.T @ d
    for fold in range(folds):
        kept, held = turn[rows] != fold, turn == fold
        if few:
            system, target = products[np.ix_(kept, kept)], c[kept]
        else:
            system, target = products - d[~kept].T @ d[~kept], d[kept].T @ c[kept]
        penalty = float(np.square(d[kept]).sum()) / d.shape[1] + 1e-12
        system[np.diag_indices_from(system)] += penalty
        solved = solve(system, target, assume_a="pos", overwrite_a=True, check_finite=False)
        direction = d[kept].T @ solved if few else solved
        scores[held] = x[places[held]] @ direction.astype(x.dtype)
    return scores


def standardised(features: Any) -> Floats:
    """Features (m, ...) as (m, d) with mean 0 and variance 1, 0 where missing."""
    x = np.asarray(features, np.float64).reshape(len(features), -1)
    known = ~np.isnan(x)
    count = known.sum(0).clip(1)
    x = np.where(known, x - np.where(known, x, 0).sum(0) / count, 0)
    return np.asarray(x / (np.sqrt(np.square(x).sum(0) / count) + 1e-12))
