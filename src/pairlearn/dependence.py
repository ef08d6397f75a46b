"""Variances of sums over pairs, where pairs that share an item depend on each other.

An estimate is, to first order, a sum of influences ψ over pairs. Only pairs without a common item
are independent, so that

    Var = Σ ψ_m ψ_m'  over all (m, m') with an item in common        (dyadic-robust)
        = Σ_items (Σ ψ of the item's pairs)² − Σ_couples (Σ ψ of the couple's rows)²,

because two rows about the same couple of items, as several judgements of one pair are, have both
items in common. The cost is linear in the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats, Indices, Mask, first_rows, is_tensor

__all__ = ["Dependence", "components", "correlated_ends"]

Codes = NDArray[np.intp]

#: Correlation of the ends that may bias an accuracy: 0.24 did by 0.025, and 0.86 by 0.33.
ALIKE = 0.15
#: Standard errors of a clear effect: chance alone exceeds them in 1 of 30,000 tables, and in one of
#: 160 with 100 columns. Small tables have heavier tails; the test of honest tables measures those.
CLEAR = 4.0


@dataclass(frozen=True)
class Dependence:
    """Which of n pairs share items.

    Examples
    --------
    Two pairs with the item 7 in common have the variance ψ₁² + ψ₂² + 2ψ₁ψ₂, times 3/(3 − 2)
    for the small number of items:

    >>> shared = Dependence.of(np.array([[7, 1], [7, 2]]), 2)
    >>> float(shared.variance(np.array([1.0, 2.0])))
    27.0
    """

    n: int
    ends: Codes | None
    couples: Codes | None

    @classmethod
    def of(cls, items: Any, n: int) -> Dependence:
        """From the ids (n, 2) of both ends of each pair; None if all are distinct."""
        if items is None:
            return cls(n, None, None)
        ids = items.detach().cpu().numpy() if is_tensor(items) else np.asarray(items)
        if ids.shape != (n, 2):
            raise ValueError(
                f"items must have shape ({n}, 2), the ids of both ends; got {ids.shape}"
            )
        if ids.dtype.kind not in "iuUS":
            raise ValueError(f"items must be integer or text ids; got {ids.dtype}")
        for row in first_rows(ids[:, 0] == ids[:, 1]):
            raise ValueError(
                f"items row {row} pairs item {ids[row, 0]} with itself: drop such rows, "
                "they say nothing about the classes"
            )
        names, codes = np.unique(ids, return_inverse=True)
        ends = codes.reshape(n, 2)
        keys = ends.min(1) * len(names) + ends.max(1)
        return cls(n, ends, np.unique(keys, return_inverse=True)[1].reshape(n))

    def rows(self, mask: Mask) -> Dependence:
        """The dependence of the rows in a mask."""
        return Dependence.of(None if self.ends is None else self.ends[mask], int(mask.sum()))

    def variance(self, influence: Floats) -> Floats:
        """Variance of the sum of each column of influences (n,) or (n, k).

        The difference of the two sums can be negative by chance; its floor is the variance for
        independent couples.
        """
        if self.ends is None or self.couples is None:
            return np.asarray((influence**2).sum(0) * _small_sample(2 * self.n))
        floor = (_sums(influence, self.couples) ** 2).sum(0)
        dyadic = (self._item_sums(influence) ** 2).sum(0) - floor
        return np.asarray(np.maximum(dyadic, floor) * _small_sample(self._items()))

    def covariance(self, influence: Floats) -> Floats:
        """Covariance (k, k) of the sums of influences (n, k), positive semi-definite."""
        if self.ends is None or self.couples is None:
            return np.asarray(influence.T @ influence * _small_sample(2 * self.n))
        items, couples = self._item_sums(influence), _sums(influence, self.couples)
        values, vectors = np.linalg.eigh(items.T @ items - couples.T @ couples)
        positive = (vectors * values.clip(0)) @ vectors.T
        return np.asarray(positive * _small_sample(self._items()))

    def squared_shares(self, weight: Floats) -> float:
        """Σ (share of the weight)² over the independent units: items if any recurs, else pairs."""
        distinct = self.ends is None or self._items() == 2 * self.n
        shares = weight if distinct else self._item_sums(weight)
        return float((shares**2).sum() / weight.sum() ** 2)

    def effective_ends(self, weight: Floats) -> float:
        """(Σ d)²/Σ d² over items of weight d: 2n for distinct items of equal weight."""
        if self.ends is None:
            return float(2 * weight.sum() ** 2 / (weight**2).sum())
        shares = self._item_sums(weight)
        return float(shares.sum() ** 2 / (shares**2).sum())

    def _items(self) -> int:
        return 0 if self.ends is None else int(self.ends.max()) + 1

    def _item_sums(self, influence: Floats) -> Floats:
        assert self.ends is not None
        twice = np.concatenate([influence, influence])
        return _sums(twice, self.ends.T.reshape(-1))


def _sums(values: Floats, codes: Codes) -> Floats:
    if values.ndim == 1:
        return np.asarray(np.bincount(codes, values), np.float64)
    return np.stack([np.asarray(np.bincount(codes, v), np.float64) for v in values.T], 1)


def _small_sample(items: int) -> float:
    """m/(m − 2) for m items: n/(n − 1) for n pairs of distinct items."""
    return items / max(items - 2, 1)


def correlated_ends(
    left: Any, right: Any, weight: Floats, dependence: Dependence
) -> tuple[float, Floats] | None:
    """The correlation between the ends of pairs, if it is clear and may do harm.

    Items can be alike in all columns (n, k), as near neighbours are, or in some of them, as where
    pairs are matched on a score. So it is the mean over columns or that of a single one, whichever
    is more standard errors from 0. Deviations are from the common mean of both ends, so that it
    does not matter which end is left.

    Returns
    -------
    correlation, columns : float, array of shape (k,), or None
        The correlation, and those of single columns.
    """
    share = weight / weight.sum()
    x = np.stack([left, right]).astype(np.float64)
    mean = (share @ x).mean(0)
    scale = np.sqrt((share @ (x - mean) ** 2).mean(0))
    # Values that differ by the rounding of float32 only are constant.
    varying = scale > np.finfo(np.float32).eps * 10 * abs(mean)
    if not varying.any():
        return None
    products = np.prod((x - mean) / np.where(varying, scale, np.inf), axis=0)
    both = np.column_stack([products[:, varying].mean(1), products])
    found = share @ both
    errors = np.sqrt(np.atleast_1d(dependence.variance(share[:, None] * (both - found))))
    clear = (abs(found) > CLEAR * errors) & (abs(found) > ALIKE)
    if not clear.any():
        return None
    best = int(np.where(clear, abs(found) / errors.clip(np.finfo(np.float64).tiny), -1).argmax())
    return float(found[best]), found[1:]


def components(ends: Indices, n: int) -> Indices:
    """Connected component of each of n items in the graph of pairs, numbered from 0.

    Examples
    --------
    >>> components(np.array([[0, 1], [3, 2], [1, 4]]), 5)
    array([0, 0, 1, 1, 0])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left, right = ends.T.astype(np.int32)  # SciPy 1.11 labels nothing where they are int64
    graph = coo_array((np.ones(len(ends), np.int8), (left, right)), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)  # type: ignore[no-any-return]
