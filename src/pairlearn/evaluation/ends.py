"""Whether the two ends of pairs were drawn independently of each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.columns import Floats
from pairlearn.dependence import Dependence
from pairlearn.randomness import stream

ALIKE = 0.15
"""Correlation of the ends that may bias an accuracy: 0.24 did by 0.025, and 0.86 by 0.33."""
CLEAR = np.array([3.5, 4.5, 4.5])
"""Standard deviations above the mean of `DRAWS` correlations by chance that are clear: for the mean
of all columns, and for the largest, of which there are many."""
DRAWS = 100
MOST_ROWS = 5000
MOST_DIRECTIONS = 40
PAIRS_A_DIRECTION = 5
"""With fewer, chance would make correlations too large to see others."""
TINY = 1e-300
CONSTANT = 1e-6
"""Standard deviation, as a share of the mean, that is rounding in float32."""


def correlated_ends(
    left: Any, right: Any, weight: Floats, dependence: Dependence
) -> tuple[float, Floats] | None:
    """The correlation between the ends of pairs, if it is clear and may do harm.

    Items can be alike in all columns (n, k), as near neighbours are, in one of many, or in a
    combination, as where pairs are matched on a score. So it is the mean over columns, that of a
    single one, or that of any combination of the first principal components (an eigenvalue of the
    cross-correlation of the ends), whichever is furthest from what chance gives. That is seen
    where the features of each item get a random sign, which keeps the weights, and how often items
    and pairs recur. Deviations are from the common mean of both ends, so that it does not
    matter which end is left.

    Returns
    -------
    correlation, columns : float, array of shape (k,), or None
        The correlation beyond what chance gives, and those of single columns.
    """
    n = len(weight)
    rows = np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int)
    items = np.arange(2 * n).reshape(n, 2) if dependence.ends is None else dependence.ends
    items, share = items[rows], weight[rows] / weight[rows].sum()
    x = np.concatenate([np.asarray(end, np.float64)[rows] for end in (left, right)])
    half = np.tile(share / 2, 2)
    mean = half @ x
    x -= mean
    scale = np.sqrt(half @ x**2)
    varying = scale > CONSTANT * abs(mean)
    if not varying.any():
        return None
    x = x[:, varying] / scale[varying]
    products = np.prod(np.split(x, 2), axis=0)
    pairs = len(np.unique(np.sort(items, 1), axis=0))
    z, z_prime = np.split(x @ _directions(x, half, max(1, pairs // PAIRS_A_DIRECTION)), 2)

    def correlations(signed: Floats) -> Floats:
        """The mean over columns, and the largest of a column and of a combination."""
        alone = signed @ products
        cross = (z * signed[:, None]).T @ z_prime
        combined = np.linalg.eigvalsh((cross + cross.T) / 2)
        return np.array([alone.mean(), *(c[abs(c).argmax()] for c in (alone, combined))])

    found = correlations(share)
    signs = stream(0, "independent ends").choice([-1.0, 1.0], (DRAWS, int(items.max()) + 1))
    chance = abs(np.stack([correlations(share * sign[items].prod(1)) for sign in signs]))
    usual, spread = chance.mean(0), chance.std(0)
    beyond = np.sqrt((found**2 - usual**2).clip(0))
    clear = (abs(found) > usual + CLEAR * spread) & (beyond > ALIKE)
    if not clear.any():
        return None
    best = int(np.where(clear, (abs(found) - usual) / (spread + TINY), -1.0).argmax())
    columns = np.zeros(len(varying))
    columns[varying] = share @ products
    return float(np.sign(found[best]) * beyond[best]), columns


def _directions(x: Floats, share: Floats, most: int) -> Floats:
    """Directions (k, p) of the first principal components of x (m, k), scaled to variance one."""
    from sklearn.utils.extmath import randomized_svd

    most = min(most, MOST_DIRECTIONS, x.shape[1])
    _, values, vectors = randomized_svd(x * np.sqrt(share)[:, None], most, random_state=0)
    kept = values > CONSTANT * values[0]
    return np.asarray((vectors[kept] / values[kept, None]).T)
