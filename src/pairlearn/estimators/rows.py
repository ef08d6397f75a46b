"""One table of rows: whatever was said, every row is about an ordered pair.

A row has a kind, and up to two numbers u and v:

    both         similarity s and difference c
    similarity   s alone
    difference   c alone
    preference   "the right one is more positive"; the ends are swapped where it was the left
    labelled     the classes y and y' (1 is positive) of two instances with ordinary labels

Several rows may be about one pair, and all of them count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.sampling import permutation, stream

__all__ = ["KINDS", "Rows", "held_out_rows", "judged_rows", "labelled_rows"]

KINDS = ("both", "similarity", "difference", "preference", "labelled")

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Rows of a table: `ends` (n, 2) are rows of the features, `kind` indexes `KINDS`."""

    ends: Indices
    kind: NDArray[np.int8]
    u: Floats
    v: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, chosen: Any) -> Rows:
        return Rows(
            self.ends[chosen],
            self.kind[chosen],
            self.u[chosen],
            self.v[chosen],
            self.weight[chosen],
        )

    def scaled(self, factor: float) -> Rows:
        """The same rows with their weights multiplied."""
        return Rows(self.ends, self.kind, self.u, self.v, self.weight * factor)

    def total(self, *kinds: str) -> float:
        """Sum of the weights of the rows of these kinds."""
        return float(self.weight[np.isin(self.kind, [KINDS.index(k) for k in kinds])].sum())

    def kinds(self) -> tuple[str, ...]:
        """The kinds that occur."""
        return tuple(KINDS[k] for k in np.unique(self.kind))

    def weight_columns(self, kinds: tuple[str, ...]) -> list[Floats]:
        """For each kind the weights of its rows, zero for rows of another kind.

        The weights of the whole table have mean one.
        """
        scale = len(self) / self.weight.sum()
        return [np.where(self.kind == KINDS.index(k), self.weight * scale, 0.0) for k in kinds]

    @staticmethod
    def concatenate(parts: list[Rows]) -> Rows:
        """Rows of several tables below each other."""
        names = ("ends", "kind", "u", "v", "weight")
        return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def judged_rows(
    ends: Indices, similarity: Floats, difference: Floats, preference: Floats, weight: Floats
) -> Rows:
    """Rows of judged pairs; a pair with a preference beside s or c makes two rows.

    Examples
    --------
    >>> nan = np.nan
    >>> rows = judged_rows(np.array([[0, 1], [2, 3]]), np.array([0.4, nan]),
    ...                    np.array([0.1, nan]), np.array([0.0, -1.0]), np.ones(2))
    >>> rows.kinds(), rows.ends.tolist()
    (('both', 'preference'), [[0, 1], [3, 2]])
    """
    no_s, no_c = np.isnan(similarity), np.isnan(difference)
    kind = np.where(no_c, KINDS.index("similarity"), KINDS.index("both"))
    kind = np.where(no_s, KINDS.index("difference"), kind).astype(np.int8)
    told, preferred = ~(no_s & no_c), np.nan_to_num(preference) != 0
    parts = []
    if told.any():
        # Whole columns as they are where nothing is left out: tables may be large.
        chosen = slice(None) if told.all() else told
        u, v = np.where(no_s, 0.0, similarity), np.where(no_c, 0.0, difference)
        parts.append(Rows(ends[chosen], kind[chosen], u[chosen], v[chosen], weight[chosen]))
    if preferred.any():
        left = preference[preferred] < 0
        swapped = np.where(left[:, None], ends[preferred][:, ::-1], ends[preferred])
        zero = np.zeros(len(swapped))
        kinds = np.full(len(swapped), KINDS.index("preference"), np.int8)
        parts.append(Rows(swapped, kinds, zero, zero, weight[preferred]))
    return Rows.concatenate(parts) if len(parts) > 1 else parts[0]


def labelled_rows(instances: Indices, positive: NDArray[np.bool_], seed: int) -> Rows:
    """Instances with ordinary labels in random pairs; each instance counts one half.

    The risk of a pair is a mean over its two ends. An odd one out is paired with itself,
    at half the weight.

    Examples
    --------
    >>> rows = labelled_rows(np.arange(3), np.array([True, False, True]), seed=0)
    >>> rows.ends.tolist(), rows.weight.tolist()
    ([[1, 2], [0, 0]], [1.0, 0.5])
    """
    order = permutation(stream(seed, "labelled"), len(instances))
    odd = len(order) % 2
    ends = np.concatenate([order, order[len(order) - odd :]]).reshape(-1, 2)
    weight = np.ones(len(ends))
    if odd:
        weight[-1] = 0.5
    kind = np.full(len(ends), KINDS.index("labelled"), np.int8)
    u, v = positive[ends].T.astype(np.float64)
    return Rows(instances[ends], kind, u, v, weight)


def held_out_rows(rows: Rows, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Mask of rows to hold out, with items that no other row has as far as possible.

    Rows are connected where they share an item. Whole components are held out while they
    fit; where one component is most of the table, the rest is drawn from its pairs, all
    rows of a pair together. Some rows of every kind are left for training.

    Examples
    --------
    >>> ends = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [7, 8]])
    >>> rows = judged_rows(ends, np.full(5, 0.5), np.zeros(5), np.zeros(5), np.ones(5))
    >>> int(held_out_rows(rows, 0.2, seed=0).sum())
    1
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    wanted = max(1, round(fraction * len(rows)))
    rng = stream(seed, "held out")
    size = int(rows.ends.max()) + 1
    graph = coo_array((np.ones(len(rows), np.int8), tuple(rows.ends.T)), shape=(size, size))
    component = connected_components(graph, directed=False)[1][rows.ends[:, 0]]
    held_out = _filled(component, wanted, rng)
    missing = wanted - int(held_out.sum())
    if missing > wanted // 2:
        rest = np.flatnonzero(~held_out)
        ordered = np.sort(rows.ends[rest], axis=1)
        pair = np.unique(ordered[:, 0] * size + ordered[:, 1], return_inverse=True)[1]
        held_out[rest[_filled(pair, missing, rng)]] = True
    # Training must know every kind of row: a kind that it would lose stays whole.
    held_out &= np.isin(rows.kind, rows.kind[~held_out])
    return held_out


def _filled(group: NDArray[Any], wanted: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mask of the members of random groups, as many as fit into the wanted number."""
    names, of = np.unique(group, return_inverse=True)
    sizes = np.bincount(of)
    order = permutation(rng, len(names))
    order = order[sizes[order] <= wanted]
    chosen = order[np.cumsum(sizes[order]) <= wanted]
    mask: NDArray[np.bool_] = np.isin(of, chosen)
    return mask
