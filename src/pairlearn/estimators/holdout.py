"""Pairs to learn from and pairs to measure with that have no item in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.sampling import permutation, stream
from pairlearn.diagnostics.graph import components

__all__ = ["hold_out_items"]

Mask = NDArray[np.bool_]


def hold_out_items(ends: Any, fraction: float, seed: int) -> tuple[Mask, Mask]:
    """Split pairs into some for training and some that are held out, by their items.

    A model has seen the items of its training pairs, and does better on them than on
    others. So items are split, not pairs: a pair is held out if both of its items are,
    and is for training if neither is. The remaining pairs are for neither.

    Items that are connected by pairs are held out together as long as that goes, so that
    where every item is in one pair, no pair is lost. Where all pairs hang together, a
    share f of the pairs takes √f of the items, and leaves (1 − √f)² of the pairs for
    training.

    Parameters
    ----------
    ends : array of shape (n, 2)
        The two items of each pair, as whole numbers from 0.
    fraction : float
        The share of the pairs that is held out, in (0, 1).
    seed : int
        The choice follows from it.

    Returns
    -------
    training, held_out : array of bool
        Two masks of shape (n,).

    Examples
    --------
    >>> training, held_out = hold_out_items([[0, 1], [1, 2], [3, 4], [5, 6], [7, 8]], 0.2, seed=0)
    >>> int(training.sum()), int(held_out.sum())
    (4, 1)
    """
    pairs = np.asarray(ends, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.min() < 0:
        raise ValueError(
            "ends must be whole numbers from 0, two for each of at least one pair; got an array "
            f"of shape {pairs.shape}"
        )
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie in (0, 1); got {fraction}")
    size = int(pairs.max()) + 1
    component = components(pairs, size)
    rng = stream(seed, "split")
    order = np.lexsort((permutation(rng, size), permutation(rng, size)[component]))
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(size)
    last = rank[pairs].max(1)
    wanted = max(1, round(fraction * len(pairs)))
    # The items up to this rank are held out: the least number with enough pairs among them.
    held_out = last <= np.partition(last, wanted - 1)[wanted - 1]
    measured = np.zeros(size, bool)
    measured[pairs[held_out]] = True
    return np.asarray(~measured[pairs].any(1)), held_out
