"""Cross-validation of judged pairs by their items, for scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.estimators.seen import same_rows
from pairlearn.estimators.splits import split_items

__all__ = ["ItemKFold"]

Indices = NDArray[np.int64]


class ItemKFold:
    """Folds of items, as ``cv=`` of scikit-learn's functions.

    A model is tested on pairs with both items in a fold, and trained on pairs with both
    outside it. Pairs that straddle are in neither: the model knows one of their items.

    Parameters
    ----------
    n_splits : int
        Number of folds, 2 at least.
    random_state : int
        The folds follow from it.

    Examples
    --------
    >>> pairs = np.array([["a", "b"], ["b", "c"], ["d", "e"], ["e", "f"]])
    >>> for train, test in ItemKFold(n_splits=2).split(pairs):
    ...     print(pairs[train].tolist(), pairs[test].tolist())
    [['d', 'e'], ['e', 'f']] [['a', 'b'], ['b', 'c']]
    [['a', 'b'], ['b', 'c']] [['d', 'e'], ['e', 'f']]
    """

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        if (
            isinstance(n_splits, bool)
            or not isinstance(n_splits, (int, np.integer))
            or n_splits < 2
        ):
            raise ValueError(f"n_splits must be a whole number of at least 2; got {n_splits!r}")
        self.n_splits = int(n_splits)
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Rows to train on and to test with, for each fold.

        Parameters
        ----------
        X : array of shape (n, 2) or (n, 2, d, ...)
            Ids of both items of each pair, or their features, which are the same item where
            they are equal.
        y, groups
            Ignored.
        """
        pairs = np.asarray(X)
        if pairs.ndim < 2 or pairs.shape[1] != 2 or not len(pairs):
            raise ValueError(
                "X must have shape (n, 2), ids, or (n, 2, d, ...), features of both items; got "
                f"{pairs.shape}"
            )
        if pairs.ndim > 2:
            items = same_rows(pairs.reshape(-1, *pairs.shape[2:]))[1]
        else:
            items = np.unique(pairs, return_inverse=True)[1]
        ends = items.reshape(-1, 2).astype(np.int64)
        folds = split_items(ends, int(ends.max()) + 1, self.n_splits, self.random_state)
        for fold in range(self.n_splits):
            train, test = (np.flatnonzero(rows(fold)) for rows in (folds.trains, folds.tests))
            if not len(train) or not len(test):
                raise ValueError(
                    f"fold {fold} has {len(train)} pairs to train on and {len(test)} to test with: "
                    "the items recur too often, or the pairs are too few; give fewer splits"
                )
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"ItemKFold(n_splits={self.n_splits}, random_state={self.random_state})"
