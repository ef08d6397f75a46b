"""The grid of true posteriors behind answers."""

from __future__ import annotations

from functools import cache

import numpy as np

from pairlearn.columns import Floats, Indices

_LOW = [0.003, 0.02, 0.05, 0.1, 0.17, 0.25, 0.33, 0.42]
#: The grid of posteriors: about even steps of the standard deviation of a Bernoulli variable.
POSTERIORS = np.array([*_LOW, 0.5, *(1 - r for r in reversed(_LOW))])
SIZE = len(POSTERIORS)
#: A distribution of posteriors to start from. Exchanged classes give the same answers, so that from
#: a symmetric start both classes would stay equally frequent.
ANYWHERE = (1 + (0.5 - POSTERIORS) / 2) / SIZE
#: Indices of r and r' in the cells of the grid. Those with r + r' > 1 are left out: (r, r') and (1
#: − r', 1 − r) have the same honest answer, so that they share a cell.
LEFT, RIGHT = np.nonzero(np.add.outer(range(SIZE), range(SIZE)) < SIZE)
CELL = np.empty((SIZE, SIZE), np.int64)
CELL[SIZE - 1 - RIGHT, SIZE - 1 - LEFT] = CELL[LEFT, RIGHT] = np.arange(len(LEFT))
R, R_PRIME = POSTERIORS[LEFT], POSTERIORS[RIGHT]
#: Honest answers (s, c) in all cells of the grid.
HONEST = np.stack([R * R_PRIME + (1 - R) * (1 - R_PRIME), R_PRIME - R], axis=1)


def cells(left: Floats, right: Floats) -> Floats:
    """Probabilities (n, cells) of independent posteriors distributed like these, (n, SIZE) each."""
    mirrored = left[:, SIZE - 1 - RIGHT] * right[:, SIZE - 1 - LEFT]
    return left[:, LEFT] * right[:, RIGHT] + np.where(LEFT + RIGHT < SIZE - 1, mirrored, 0)


def betas(means: Floats, concentration: float) -> Floats:
    """Beta distributions on the grid, (n, SIZE) with these means (n,)."""
    from scipy.special import betainc  # slow to import

    means = means.clip(0.005, 0.995)[:, None]
    between = (POSTERIORS[1:] + POSTERIORS[:-1]) / 2
    below = betainc(concentration * means, concentration * (1 - means), between)
    return np.asarray(np.diff(below, prepend=0.0, append=1.0).clip(1e-9))


#: Candidate shares of private knowledge.
SHARES = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)


@cache
def knowing(share: float) -> Floats:
    """Chances (cells, cells) of each cell for a person who knows a share of what is left open.

    Calibrated knowledge moves r to a value of mean r and of a variance up to r(1 − r): here a beta
    distribution whose variance is this share of it.
    """
    own = betas(POSTERIORS, 1 / share - 1)
    own /= own.sum(1, keepdims=True)
    return cells(own[LEFT], own[RIGHT])


def outcome_of(values: Floats) -> Indices:
    """Index of each hard answer: left, right, alike; 3 where no outcome gives it."""
    s, c = values.T
    # One of the two answers stands for the outcome that it leaves likeliest.
    s = np.where(np.isnan(s), c == 0, s)
    c = np.nan_to_num(c)
    return np.select([(s == 0) & (c == -1), (s == 0) & (c == 1), (s == 1) & (c == 0)], [0, 1, 2], 3)


def outcome_chances(same: Floats, right: Floats) -> Floats:
    """Probabilities (..., 4) of the three outcomes and of any other answer."""
    parts = np.broadcast_arrays((1 - same - right) / 2, (1 - same + right) / 2, same, 1e-6)
    chances = np.stack(parts, -1).clip(1e-6)
    return np.asarray(chances / chances.sum(-1, keepdims=True))
