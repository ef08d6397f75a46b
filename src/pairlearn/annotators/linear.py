"""A linear score of the items whose differences predict what was said: c ≈ g(x') − g(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.columns import Floats, Indices


def linear_scores(
    features: Any, ends: Indices, difference: Floats, weight: Floats, folds: int, most: int
) -> Floats:
    """Scores (n, 2) of both ends of pairs, fitted to at most so many pairs of other folds.

    Rows of weight 0 are scored, and not fitted to; the others are in the folds in turn.
    """
    used, places = np.unique(ends, return_inverse=True)
    x, places = features.reshape(len(features), -1)[used], places.reshape(-1, 2)
    scores, turn = np.empty((len(ends), 2)), (np.cumsum(weight > 0) - 1) % folds
    for fold in range(folds):
        held = turn == fold
        kept = np.flatnonzero(~held & (weight > 0))[:most]
        left, right = (x[end].astype(np.float64) for end in places[kept].T)
        score = x @ ridge(right - left, difference[kept], weight[kept]).astype(x.dtype)
        scores[held] = score[places[held]]
    return scores


def ridge(d: Floats, c: Floats, weight: Floats) -> Floats:
    """Weights of a linear score whose differences d predict c, by the smaller of two systems."""
    root = np.sqrt(weight / weight.mean())[:, None]
    d, c = d * root, c * root[:, 0]
    n, size = d.shape
    penalty = float(np.square(d).sum()) / size + 1e-12
    if n < size:
        solved: Floats = d.T @ np.linalg.solve(d @ d.T + penalty * np.eye(n), c)
    else:
        solved = np.linalg.solve(d.T @ d + penalty * np.eye(size), d.T @ c)
    return solved


def standardised(features: Any) -> Floats:
    """Features (m, ...) as (m, d) with mean 0 and variance 1, 0 where missing."""
    x = np.asarray(features, np.float64).reshape(len(features), -1)
    known = ~np.isnan(x)
    count = known.sum(0).clip(1)
    x = np.where(known, x - np.where(known, x, 0).sum(0) / count, 0)
    return np.asarray(x / (np.sqrt(np.square(x).sum(0) / count) + 1e-12))
