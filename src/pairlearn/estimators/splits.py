"""Splits of judged pairs for training, early stopping and measuring.

A model does better on the items of its training pairs than on others. So items are split, not
pairs. Items connected by pairs stay together as far as possible; where all pairs are connected,
those with an end on each side are lost to one side or to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order
from sklearn.model_selection import BaseCrossValidator

from pairlearn.columns import Floats, Indices, Mask, check_integer, check_share
from pairlearn.dependence import components
from pairlearn.estimators.instances import number_items
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import KINDS
from pairlearn.judgements.kinds.statement import sums_by_number
from pairlearn.randomness import permutation, stream

#: A fold may hold this many times its share of the judgements when components are cut.
SLACK = 1.05
#: Most passes over the items that even out the folds; they end before if nothing moves.
PASSES = 5


def hold_out_items(ends: Any, fraction: float, seed: int) -> tuple[Mask, Mask]:
    """Split pairs into some for training and some that are held out, by their items.

    A pair is held out if both of its items are, and is for training if neither is; the remaining
    pairs are for neither. Items connected by pairs are held out together where possible: if every
    item is in one pair, no pair is lost. If all pairs are connected, a share f of the pairs takes
    √f of the items, and leaves (1 − √f)² of the pairs for training.

    Parameters
    ----------
    ends : array or data frame of shape (n, 2)
        The ids of both items of each pair, or their features (n, 2, d, ...), which are the same
        item where they are equal.
    fraction, seed : float, int
        The share of the pairs that is held out, in (0, 1), and the seed that chooses them.

    Returns
    -------
    training, held_out : array of bool, shape (n,)

    Examples
    --------
    >>> training, held_out = hold_out_items([[0, 1], [1, 2], [3, 4], [5, 6], [7, 8]], 0.2, seed=0)
    >>> int(training.sum()), int(held_out.sum())
    (4, 1)
    """
    check_share("fraction", fraction)
    return hold_out_positions(number_items("ends", ends), fraction, seed)


def hold_out_positions(ends: Indices, fraction: float, seed: int) -> tuple[Mask, Mask]:
    """`hold_out_items` for positions (n, 2), of which rows about one item have −1 on the right."""
    both, pairs = item_ends(ends), ends[ends[:, 1] >= 0]
    size = int(both.max()) + 1
    rank = np.empty(size, np.int64)
    rank[_shuffle_components(components(pairs, size), seed)] = np.arange(size)
    last = rank[pairs].max(1)
    wanted = max(1, round(fraction * len(pairs)))
    # The items up to this rank are held out: the fewest with enough pairs among them.
    held_item = np.zeros(size, bool)
    held_item[pairs[last <= np.partition(last, wanted - 1)[wanted - 1]]] = True
    return np.asarray(~held_item[both].any(1)), np.asarray(held_item[both].all(1))


def item_ends(ends: Indices) -> Indices:
    """Both items of every row; a single one stands for both."""
    return np.where(ends < 0, ends[:, :1], ends)


def keep_whole(parts: Iterable[Mask], table: Judgements) -> None:
    """Remove from parts of a table, in place, statements of several rows that are cut in two."""
    for kind in KINDS:
        if kind.joint and not kind.single:
            number = np.where(table.of(kind.name), table.v, np.nan)
            for rows in parts:
                rows &= np.isnan(number) | (sums_by_number(number, rows)[0] == kind.shared)


def held_out_rows(rows: Judgements, fraction: float, seed: int) -> Mask:
    """Mask of rows to hold out whose items are, as far as possible, in no other row.

    Rows that share an item are connected. Whole components are held out while they fit; where one
    component is most of the table, the rest is drawn from its pairs, all rows of a pair together.
    Some rows of every kind are left for training.
    """
    wanted = min(max(1, round(fraction * len(rows))), len(rows) - 1)
    rng = stream(seed, "held out")
    size = int(rows.ends.max()) + 1
    component = components(rows.ends, size)[rows.ends[:, 0]]
    held_out = _filled(component, wanted, rng)
    missing = wanted - int(held_out.sum())
    if missing > wanted // 2:
        rest = np.flatnonzero(~held_out)
        ordered = np.sort(rows.ends[rest], axis=1)
        pair = np.unique(ordered[:, 0] * size + ordered[:, 1], return_inverse=True)[1]
        held_out[rest[_filled(pair, missing, rng)]] = True
    # Training needs every kind of row: one that it would lose is not held out.
    held_out &= np.isin(rows.kind, rows.kind[~held_out])
    return held_out


def _filled(group: NDArray[Any], wanted: int, rng: np.random.Generator) -> Mask:
    """Mask of the members of random groups, as many as fit into the wanted number."""
    _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
    order = permutation(rng, len(sizes))
    order = order[sizes[order] <= wanted]
    return np.isin(number, order[np.cumsum(sizes[order]) <= wanted])


def _shuffle_components(component: Indices, seed: int) -> Indices:
    """Items in random order, those of a component together."""
    rng, size = stream(seed, "split"), len(component)
    return np.lexsort((permutation(rng, size), permutation(rng, size)[component]))


def split_items(ends: Any, items: int, folds: int, seed: int = 0) -> Indices:
    """Split items into folds with about the same number of judgements each.

    Parameters
    ----------
    ends : array of int, shape (n, 2)
        Items of each pair, 0 to `items` − 1.
    items, folds : int
        How many of each; at least 2 folds.
    seed : int

    Returns
    -------
    array of int, shape (items,)
        The fold of every item. No pair straddles if no component has more than its share of the
        judgements. A larger one is cut greedily: its items, in the order of a breadth-first search,
        go to the fold with most of their neighbours, less so the fuller it is (Stanton and Kliot,
        2012), and are then moved while that keeps pairs together.

    Examples
    --------
    Five pairs of distinct items, and a chain of five that has to be cut once:

    >>> split_items(np.arange(10).reshape(5, 2), 10, folds=5).tolist()
    [0, 0, 4, 4, 3, 3, 1, 1, 2, 2]
    >>> split_items([[0, 1], [1, 2], [2, 3], [3, 4]], 5, folds=2).tolist()
    [1, 1, 0, 0, 0]
    """
    pairs = np.asarray(ends, dtype=np.int64)
    check_integer("folds", folds, 2)
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
    whole = order[~np.isin(order, large)]
    for number in whole:
        of_component[number] = fold = load.argmin()
        load[fold] += 2 * sizes[number]
    kept = np.isin(component, whole)
    of_item[kept] = of_component[component[kept]]
    return of_item


def _cut(of_item: Indices, load: Floats, inside: Mask, pairs: Indices, rng: Any) -> None:
    """Assign the items inside large components to folds, and count the folds' ends of pairs."""
    size, both = len(inside), np.concatenate([pairs, pairs[:, ::-1]])
    graph = coo_array((np.ones(len(both)), tuple(both.T)), (size, size)).tocsr()
    degree, share = graph.sum(axis=1), len(both) / len(load)
    roots = permutation(rng, size)
    roots = roots[inside[roots]]
    roots = roots[np.unique(components(pairs, size)[roots], return_index=True)[1]]
    order = np.concatenate([breadth_first_order(graph, root)[0] for root in roots])
    of_item[inside] = -1
    for _ in range(PASSES):
        before = of_item[order]
        for item in order:
            if of_item[item] >= 0:
                load[of_item[item]] -= degree[item]
            row = slice(graph.indptr[item], graph.indptr[item + 1])
            fold, placed = of_item[graph.indices[row]], of_item[graph.indices[row]] >= 0
            together = np.bincount(fold[placed], graph.data[row][placed], len(load))
            score = together * (1 - load / (SLACK * share))
            # Without a placed neighbour, or if all their folds are full: the lightest, at first.
            if score.max() > 0 or of_item[item] < 0:
                of_item[item] = score.argmax() if score.max() > 0 else load.argmin()
            load[of_item[item]] += degree[item]
        if (of_item[order] == before).all():
            break


class ItemKFold(BaseCrossValidator):  # type: ignore[misc]
    """Folds of items, as ``cv=`` of scikit-learn's functions.

    A model is tested on pairs with both items in a fold, and trained on pairs with both outside
    it. Pairs that straddle are in neither: the model knows one of their items.

    Parameters
    ----------
    n_splits : int
        At least 2.
    random_state : int

    Examples
    --------
    >>> pairs = np.array([["a", "b"], ["b", "c"], ["d", "e"], ["e", "f"]])
    >>> for train, test in ItemKFold(n_splits=2).split(pairs):
    ...     print(pairs[train].tolist(), pairs[test].tolist())
    [['d', 'e'], ['e', 'f']] [['a', 'b'], ['b', 'c']]
    [['a', 'b'], ['b', 'c']] [['d', 'e'], ['e', 'f']]
    """

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        check_integer("n_splits", n_splits, 2)
        self.n_splits = int(n_splits)
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Rows to train on and to test with, for each fold.

        ``X`` has the ids of both items of each pair (n, 2), or their features (n, 2, d, ...),
        which are the same item where they are equal; ``y`` and ``groups`` are ignored.
        """
        ends = number_items("X", X)
        folds = split_items(ends, int(ends.max()) + 1, self.n_splits, self.random_state)[ends]
        for fold in range(self.n_splits):
            inside = folds == fold
            train, test = (np.flatnonzero(mask.all(1)) for mask in (~inside, inside))
            if not len(train) or not len(test):
                raise ValueError(
                    f"fold {fold} has {len(train)} pairs to train on and {len(test)} to test with: "
                    "the items recur too often, or there are too few pairs; use fewer splits"
                )
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits
