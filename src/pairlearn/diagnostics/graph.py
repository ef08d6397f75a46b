"""How the pairs hang together: items are the nodes of a graph, pairs its edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pairlearn.diagnostics.columns import Columns, Indices
from pairlearn.diagnostics.report import Finding, finding_at

__all__ = ["PairGraph", "check_graph", "components", "pair_graph"]


class PairGraph(NamedTuple):
    """Components of a graph of pairs and the number of judgements of each item."""

    component: Indices
    sizes: Indices
    degree: Indices

    @property
    def largest(self) -> float:
        """Share of the items in the largest component."""
        return float(self.sizes.max() / self.sizes.sum())


def components(ends: Indices, n: int) -> Indices:
    """Number of the component of each of n items, from 0.

    Parameters
    ----------
    ends : array of int, shape (m, 2)
        Items that a pair joins.
    n : int
        Number of items.

    Examples
    --------
    >>> components(np.array([[0, 1], [3, 2], [1, 4]]), 5)
    array([0, 0, 1, 1, 0])
    """
    root = np.arange(n)
    while True:
        one, two = root[ends[:, 0]], root[ends[:, 1]]
        if (one == two).all():
            break
        # Hang the larger of two roots below the smaller, then shorten all ways to the root.
        np.minimum.at(root, np.maximum(one, two), np.minimum(one, two))
        while (root[root] != root).any():
            root = root[root]
    _, numbers = np.unique(root, return_inverse=True)
    result: Indices = numbers.reshape(-1).astype(np.int64)
    return result


def pair_graph(columns: Columns) -> PairGraph:
    """The graph of a table."""
    number = components(columns.ends, len(columns.ids))
    degree = np.bincount(columns.ends.reshape(-1), minlength=len(columns.ids))
    return PairGraph(number, np.bincount(number), degree)


def check_graph(columns: Columns, graph: PairGraph) -> Iterator[Finding]:
    """Say how connected the pairs are, and what that means."""
    count, items = len(graph.sizes), len(columns.ids)
    once = int((graph.degree == 1).sum())
    if once == items:
        yield Finding(
            "note",
            "independent-pairs",
            "Every item is in one judgement only, as in independent sampling: intervals are "
            "as narrow as so many judgements allow.",
        )
    else:
        whole = (
            "All items hang together"
            if count == 1
            else f"Pairs form {count:,} components, the largest of {graph.sizes.max():,} items"
        )
        yield Finding(
            "note",
            "recurring-items",
            f"{whole}; items are in {graph.degree.mean():.1f} judgements on average, "
            f"{once:,} of {items:,} in one only. Judgements that share an item are not "
            "independent: the intervals of prior and accuracy allow for that.",
        )
    yield from _orientation(columns, graph)


def _orientation(columns: Columns, graph: PairGraph) -> Iterator[Finding]:
    """Components in which nothing tells the classes apart, though it does elsewhere."""
    tells = (columns.has_c & (columns.c != 0)) | (columns.preference != 0)
    if not tells.any() or tells.all():
        return
    oriented = np.zeros(len(graph.sizes), bool)
    oriented[graph.component[columns.ends[tells, 0]]] = True
    lost = ~oriented[graph.component[columns.ends[:, 0]]]
    if lost.any():
        yield finding_at(
            "note",
            "unoriented-component",
            f"In {int((~oriented).sum()):,} of {len(oriented):,} components no judgement says "
            "which item is the more positive, so that they alone would fix the classes only "
            "up to a swap. A model of the features carries the direction over from the others.",
            np.flatnonzero(lost),
        )
