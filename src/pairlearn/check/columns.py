"""A table of judgements as arrays that the checks share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.scale import AnswerScale, scale_of
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements import Judgements
from pairlearn.kinds import KINDS, kind
from pairlearn.labels import TOLERANCE, PairLabels
from pairlearn.tables import PairTable


class Infeasible(NamedTuple):
    """The judgements that no posteriors produce: which, on which side and how far off."""

    rows: Indices = np.empty(0, np.int64)
    above: Indices = np.empty(0, np.int64)
    below: Indices = np.empty(0, np.int64)
    distance: Floats = np.empty(0)

    @property
    def mean_distance(self) -> float:
        """Mean distance to the feasible region, 0 where there are none."""
        return float(self.distance.mean()) if len(self.rows) else 0.0


@dataclass(frozen=True)
class Columns:
    """The columns of a table, with items (``ends``) and annotators (``who``) as numbers.

    s and c are NaN where not given, ``preference`` is −1 left, +1 right, 0 none, and ``who`` −1
    where the table names nobody. ``ids`` and ``annotators`` are in the order of the numbers.
    """

    s: Floats
    c: Floats
    preference: Indices
    weight: Floats
    ends: Indices
    ids: NDArray[Any]
    who: Indices
    annotators: NDArray[Any]
    said: Judgements

    @classmethod
    def of(cls, table: PairTable) -> Columns:
        """Read them from a table."""
        n = len(table)
        both: NDArray[Any] = np.concatenate([table.left, table.right])
        ids, numbers = np.unique(both, return_inverse=True)
        if table.annotator is None:
            names, who = np.empty(0, dtype=np.str_), np.full(n, -1)
        else:
            names, who = np.unique(table.annotator, return_inverse=True)
            if len(names) and names[0] == "":  # the empty name sorts first
                names, who = names[1:], who - 1
        similarity = table.similarity
        for one in KINDS:
            if "similarity" in one.means and one.name in table.said():
                stated = table.said()[one.name]
                similarity = np.where(np.isnan(similarity), stated, similarity)
        choice = np.zeros(n, np.int64) if table.preference is None else table.preference
        ends = numbers.reshape(2, n).T.astype(np.int64)
        return cls(
            s=similarity,
            c=table.difference,
            preference=choice.astype(np.int64),
            weight=np.ones(n) if table.weight is None else table.weight,
            ends=ends,
            ids=ids,
            who=who.reshape(-1).astype(np.int64),
            annotators=names,
            said=Judgements.from_columns(ends, table.said()),
        )

    def __len__(self) -> int:
        return len(self.s)

    @cached_property
    def has_s(self) -> Mask:
        """Rows with a similarity."""
        return ~np.isnan(self.s)

    @cached_property
    def has_c(self) -> Mask:
        """Rows with a difference."""
        return ~np.isnan(self.c)

    @cached_property
    def itself(self) -> Mask:
        """Rows that pair an item with itself."""
        return np.asarray(self.ends[:, 0] == self.ends[:, 1])

    @cached_property
    def pair(self) -> Indices:
        """Number of the unordered pair of each row."""
        low, high = self.ends.min(axis=1), self.ends.max(axis=1)
        _, numbers = np.unique(low * len(self.ids) + high, return_inverse=True)
        return numbers.reshape(-1).astype(np.int64)

    @cached_property
    def turn(self) -> Indices:
        """+1, or −1 where a row has its pair the other way round: it changes the sign of c."""
        return np.where(self.ends[:, 0] <= self.ends[:, 1], 1, -1)

    @cached_property
    def component(self) -> Indices:
        """Number of each item's component in the graph of pairs."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n = len(self.ids)
        graph = coo_array((np.ones(len(self), np.int8), tuple(self.ends.T)), shape=(n, n))
        return np.asarray(connected_components(graph, directed=False)[1], np.int64)

    @cached_property
    def degree(self) -> Indices:
        """Judgements that each item is in."""
        return np.bincount(self.ends.reshape(-1), minlength=len(self.ids))

    @cached_property
    def effective_rows(self) -> float:
        """(Σw)²/Σw²."""
        weight = self.weight / max(self.weight.max(initial=0.0), 1e-300)
        return float(weight.sum() ** 2 / max((weight**2).sum(), 1e-300))

    @cached_property
    def learnable(self) -> str:
        """What the table can teach."""
        fixed = frozenset().union(*(kind(name).fixes(False) for name in self.said.kinds()))
        if "level" in fixed:
            return "everything" if "side" in fixed else "classes up to a swap"
        return "posteriors up to a shift" if "scale" in fixed else "a ranking"

    @cached_property
    def judged(self) -> Judgements:
        """As statements, each by who made it."""
        given = {"similarity": self.s, "difference": self.c}
        given["preference"] = np.where(self.preference == 0, np.nan, self.preference)
        return Judgements.from_columns(self.ends, given, annotator=self.names)

    @cached_property
    def crowd(self) -> Crowd:
        """How everybody answers."""
        return Crowd.of(self.judged)

    @cached_property
    def useful(self) -> Mask:
        """Rows of those who have something to say: not one answer to everything, or anything."""
        if len(self.annotators) < 2:
            return np.ones(len(self), bool)
        useless = [one.name for one in self.crowd.manners.values() if not one.useful]
        kept = ~np.isin(self.names, useless)
        return kept if kept.any() else ~kept

    @cached_property
    def names(self) -> NDArray[np.str_]:
        """Who said each row, "" where the table does not name them."""
        return np.append(self.annotators.astype(np.str_), "")[self.who]

    @cached_property
    def scales(self) -> dict[str, AnswerScale]:
        """The scale of everybody's answers, by name."""
        return {
            str(name): scale_of(self.s[self.names == name], self.c[self.names == name])
            for name in np.unique(self.names)
        }

    def infeasible(self) -> Infeasible:
        """Rows with both judgements that no posteriors give, nor do rounded ones."""
        both = np.flatnonzero(self.has_s & self.has_c)
        if not len(both):
            return Infeasible()
        labels = PairLabels(self.s[both], self.c[both], noisy=True)
        outside = ~labels.feasible()
        for name, scale in self.scales.items():
            mine = self.names[both] == name
            outside[mine] &= ~scale.admits(self.s[both][mine], self.c[both][mine])
        wrong = labels[outside]
        near = wrong.project()
        distance = np.hypot(near.similarity - wrong.similarity, near.difference - wrong.difference)
        rows = both[outside]
        over = wrong.similarity > 1 - np.abs(wrong.difference) + TOLERANCE
        return Infeasible(rows, rows[over], rows[~over], distance)
