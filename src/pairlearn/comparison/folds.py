"""Folds of items, such that few pairs have their ends in different ones.

A model must not have seen the items that it is tested on, so that items are split and not
pairs. A pair with both ends in one fold tests the models of that fold; a pair that straddles
two folds tests none. Items that no pair connects can be separated at no cost. Components of
the graph of pairs therefore stay whole where they fit into a fold, and larger ones are cut
where few pairs are.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.sampling import permutation, stream
from pairlearn.diagnostics.graph import components

__all__ = ["Folds", "split_items"]

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

SLACK = 1.05
"""A fold may hold this many times its share of the judgements when components are cut."""
PASSES = 5


@dataclass(frozen=True)
class Folds:
    """The fold of every item, and the pairs (n, 2) of items.

    Examples
    --------
    >>> folds = Folds(np.array([0, 0, 1, 1]), np.array([[0, 1], [1, 2], [2, 3]]), 2)
    >>> folds.tests(0), folds.trains(0), folds.dropped
    (array([ True, False, False]), array([False, False,  True]), 1)
    """

    of_item: Indices
    ends: Indices
    count: int

    def tests(self, fold: int) -> Mask:
        """Pairs that test the models of a fold: both ends are in it."""
        mask: Mask = (self.of_item[self.ends] == fold).all(1)
        return mask

    def trains(self, fold: int) -> Mask:
        """Pairs that the models of a fold are trained on: both ends are outside it."""
        mask: Mask = (self.of_item[self.ends] != fold).all(1)
        return mask

    @property
    def dropped(self) -> int:
        """Pairs that straddle two folds: they test no model, and train those of the others."""
        left, right = self.of_item[self.ends].T
        return int((left != right).sum())


def split_items(ends: Any, items: int, folds: int, seed: int = 0) -> Folds:
    """Split items into folds with about the same number of judgements each.

    Parameters
    ----------
    ends : array of int, shape (n, 2)
        Items of each pair, 0 to `items` − 1.
    items : int
        Number of items.
    folds : int
        Number of folds, 2 at least.
    seed : int
        The folds follow from it.

    Returns
    -------
    Folds
        No pair straddles if no component has more than its share of the judgements. A
        larger one is cut greedily: its items, in the order of a breadth-first search, go to
        the fold with most of their neighbours, less so the fuller it is (Stanton and Kliot,
        2012), and are then moved while that keeps pairs together.

    Examples
    --------
    Five pairs of distinct items, and a chain of four that has to be cut once:

    >>> split_items(np.arange(10).reshape(5, 2), 10, folds=5).dropped
    0
    >>> split_items([[0, 1], [1, 2], [2, 3]], 4, folds=2).dropped
    1
    """
    pairs = np.asarray(ends, dtype=np.int64)
    if folds < 2:
        raise ValueError(f"folds must be at least 2; got {folds}")
    rng = stream(seed, "folds")
    component = components(pairs, items)
    sizes = np.bincount(component[pairs[:, 0]], minlength=int(component.max()) + 1)
    order = permutation(rng, len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    of_item = np.zeros(items, dtype=np.int64)
    load = np.zeros(folds)
    large = order[sizes[order] > -(-len(pairs) // folds)]
    if len(large):
        _cut(of_item, load, np.isin(component, large), pairs, rng)
    of_component = np.zeros(len(sizes), dtype=np.int64)
    lightest = [(size, fold) for fold, size in enumerate(load.tolist())]
    heapq.heapify(lightest)
    whole = order[~np.isin(order, large)]
    for number, size in zip(whole.tolist(), sizes[whole].tolist(), strict=True):
        filled, fold = lightest[0]
        of_component[number] = fold
        heapq.heapreplace(lightest, (filled + 2.0 * size, fold))
    kept = np.isin(component, whole)
    of_item[kept] = of_component[component[kept]]
    return Folds(of_item, pairs, folds)


def _cut(
    of_item: Indices, load: NDArray[np.float64], inside: Mask, pairs: Indices, rng: Any
) -> None:
    """Put the items inside large components into folds, and add up the folds' ends of pairs."""
    neighbours, start = _adjacency(pairs, len(inside))
    degree = np.diff(start)
    share = 2.0 * len(pairs) / len(load)
    of_item[inside] = -1
    order = _breadth_first(permutation(rng, len(inside)), inside, neighbours, start)
    for item in order:
        at = of_item[neighbours[start[item] : start[item + 1]]]
        together = np.bincount(at[at >= 0], minlength=len(load))
        score = together * (1 - load / (SLACK * share))
        # Where no neighbour is placed yet, or all their folds are full, the lightest.
        fold = int(score.argmax()) if score.max() > 0 else int(load.argmin())
        of_item[item] = fold
        load[fold] += degree[item]
    for _ in range(PASSES):
        moved = False
        for item in order:
            at = of_item[neighbours[start[item] : start[item + 1]]]
            together = np.bincount(at, minlength=len(load))
            here = of_item[item]
            full = load + degree[item] > SLACK * share
            full[here] = False
            fold = int(np.where(full, -1, together).argmax())
            if together[fold] > together[here]:
                of_item[item] = fold
                load[here] -= degree[item]
                load[fold] += degree[item]
                moved = True
        if not moved:
            break


def _adjacency(pairs: Indices, items: int) -> tuple[Indices, Indices]:
    """Neighbours of all items in a row, and where each item's begin (items + 1)."""
    one, other = np.concatenate([pairs, pairs[:, ::-1]]).T
    start = np.concatenate([[0], np.cumsum(np.bincount(one, minlength=items))])
    return other[np.argsort(one, kind="stable")], start


def _breadth_first(begin: Indices, inside: Mask, neighbours: Indices, start: Indices) -> list[int]:
    """The items inside, neighbours soon after each other; each search begins at random."""
    seen = ~inside
    order: list[int] = []
    for root in begin.tolist():
        if seen[root]:
            continue
        seen[root] = True
        waiting = deque([root])
        while waiting:
            item = waiting.popleft()
            order.append(item)
            for other in neighbours[start[item] : start[item + 1]].tolist():
                if not seen[other]:
                    seen[other] = True
                    waiting.append(other)
    return order
