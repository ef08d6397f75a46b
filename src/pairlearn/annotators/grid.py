"""The grid of true posteriors behind answers."""

from __future__ import annotations

import numpy as np

from pairlearn.columns import Floats, Indices

_LOW = [0.003, 0.02, 0.05, 0.1, 0.17, 0.25, 0.33, 0.42]
POSTERIORS = np.array([*_LOW, 0.5, *(1 - r for r in reversed(_LOW))])
"""The grid of posteriors: about even steps of the standard deviation of a Bernoulli variable."""
SIZE = len(POSTERIORS)
LEFT, RIGHT = np.nonzero(np.add.outer(range(SIZE), range(SIZE)) < SIZE)
"""Indices of r and r' in the cells of the grid. Those with r + r' > 1 are left out: (r, r') and
(1 − r', 1 − r) have the same honest answer, so that they share a cell."""
CELL = np.empty((SIZE, SIZE), np.int64)
CELL[SIZE - 1 - RIGHT, SIZE - 1 - LEFT] = CELL[LEFT, RIGHT] = np.arange(len(LEFT))
HONEST = np.stack(
    [
        POSTERIORS[LEFT] * POSTERIORS[RIGHT] + (1 - POSTERIORS[LEFT]) * (1 - POSTERIORS[RIGHT]),
        POSTERIORS[RIGHT] - POSTERIORS[LEFT],
    ],
    axis=1,
)
"""Honest answers (s, c) in all cells of the grid."""
HARD = np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0]])
"""Hard answers: the left one, the right one, both alike."""


def cells(left: Floats, right: Floats) -> Floats:
    """Probabilities (n, cells) of independent posteriors distributed like these, (n, SIZE) each."""
    mirrored = left[:, SIZE - 1 - RIGHT] * right[:, SIZE - 1 - LEFT]
    return left[:, LEFT] * right[:, RIGHT] + np.where(LEFT + RIGHT < SIZE - 1, mirrored, 0)


def spread_out(means: Floats, concentration: float) -> Floats:
    """Beta distributions on the grid, (n, SIZE) with these means (n,)."""
    from scipy.special import betainc  # slow to import

    means = means.clip(0.005, 0.995)[:, None]
    between = (POSTERIORS[1:] + POSTERIORS[:-1]) / 2
    below = betainc(concentration * means, concentration * (1 - means), between)
    return np.asarray(np.diff(below, prepend=0.0, append=1.0).clip(1e-9))


def outcome_of(values: Floats) -> Indices:
    """Index of the hard answer of each; one after the last where no outcome gives it."""
    s, c = values[:, 0], values[:, 1]
    # One of the two answers stands for the outcome that it leaves likeliest.
    s = np.where(np.isnan(s), np.where(c == 0, 1, 0), s)
    c = np.where(np.isnan(c), 0, c)
    outcome = np.full(len(values), len(HARD), np.int64)
    for number, (same, right) in enumerate(HARD):
        outcome[(s == same) & (c == right)] = number
    return outcome


def outcome_chances(same: Floats, right: Floats) -> Floats:
    """Probabilities (..., 4) of the three outcomes and of any other answer."""
    parts = np.broadcast_arrays((1 - same - right) / 2, (1 - same + right) / 2, same)
    chances = np.stack([*parts, np.full(parts[0].shape, 1e-6)], -1).clip(1e-6)
    return np.asarray(chances / chances.sum(-1, keepdims=True))
