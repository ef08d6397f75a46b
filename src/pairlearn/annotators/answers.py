"""Similarities and differences, grouped by annotator and by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats, Indices, Mask, whole_number
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import RANGES, scale_of

LISTED = 5
"""Names that a sentence lists; more would not be read."""
SLACK = 0.02
"""Distance from the feasible region that counts as rounding by hand: two answers that are each off
by 0.01."""


def named(annotator: Any) -> NDArray[np.str_]:
    """Names of annotators as text, "" where missing."""
    names = np.asarray(annotator)
    if names.dtype.kind in "Of":
        names = np.array([str(whole_number(name)) for name in names])
    return names.astype(np.str_)


def listed(parts: Sequence[str]) -> str:
    """Some parts of a sentence, the first five if there are more.

    >>> listed(["ann", "bob", "cy"])
    'ann, bob and cy'
    """
    more = [f"{len(parts) - LISTED} others"] if len(parts) > LISTED else []
    *first, last = [*parts[:LISTED], *more]
    return " and ".join([", ".join(first), last] if first else [last])


@dataclass(frozen=True)
class Answers:
    """Similarities and differences, each with its annotator and its pair.

    For each answer, ``pair`` (n,) is the index of the pair, in whichever order it was shown;
    ``who`` (n,) the index in ``names`` (one "" if a table has none); ``values`` (n, 2) similarity
    and difference, NaN where not given. Differences refer to the order of ``ends`` (P, 2), and
    ``rows`` (P,) is the row of the table that each pair and its order were taken from. ``weight``
    (P,) is the mean weight of the rows of each pair.
    """

    pair: Indices
    who: Indices
    values: Floats
    names: tuple[str, ...]
    ends: Indices
    rows: Indices
    weight: Floats

    @classmethod
    def of(cls, judged: Judgements) -> Answers:
        """Answers of a table, without statements of other kinds."""
        soft = np.flatnonzero(judged.soft)
        table = judged[soft]
        given = [table.has("similarity"), table.has("difference")]
        values = np.where(np.stack(given, 1), table.values, np.nan)
        _, first, pair = np.unique(
            np.sort(table.ends, axis=1), axis=0, return_index=True, return_inverse=True
        )
        # Pairs are in the order, and the direction, of their first row.
        order = np.argsort(first)
        pair, ends = np.argsort(order)[pair.ravel()], table.ends[first[order]]
        values[table.ends[:, 0] != ends[pair, 0], 1] *= -1
        annotator = np.full(len(table), "") if table.annotator is None else named(table.annotator)
        names, who = np.unique(annotator, return_inverse=True)
        count = np.bincount(pair, minlength=len(ends)).clip(1)
        weight = np.bincount(pair, table.weight, minlength=len(ends)) / count
        rows = soft[first[order]]
        return cls(pair, who.ravel(), values, tuple(map(str, names)), ends, rows, weight)

    def __len__(self) -> int:
        return len(self.pair)

    def part(self, pairs: Indices) -> Answers:
        """Answers to some of the pairs."""
        place = np.full(len(self.ends), -1)
        place[pairs] = np.arange(len(pairs))
        kept = place[self.pair] >= 0
        return replace(
            self,
            pair=place[self.pair[kept]],
            who=self.who[kept],
            values=self.values[kept],
            ends=self.ends[pairs],
            rows=self.rows[pairs],
            weight=self.weight[pairs],
        )

    @cached_property
    def each(self) -> list[Indices]:
        """Indices of the answers of every annotator."""
        return [np.flatnonzero(self.who == number) for number in range(len(self.names))]

    def by_pair(self, annotator: int) -> Floats:
        """Answers (P, 2) of one annotator to each pair, the last one of several; NaN if none."""
        values = np.full((len(self.ends), 2), np.nan)
        values[self.pair[self.each[annotator]]] = self.values[self.each[annotator]]
        return values

    def of_rows(self, judged: Judgements, scores: Floats) -> Floats:
        """Scores (n, 2) of both items of each row of the table, from those of pairs (P, 2)."""
        soft, values = judged.soft, np.full((len(judged), 2), np.nan)
        own, turned = scores[self.pair], judged.ends[soft, 0] != self.ends[self.pair, 0]
        values[soft] = np.where(turned[:, None], own[:, ::-1], own)
        return values

    def feasible(self) -> Mask:
        """Whether two posteriors give each answer, rounded to the scale of its annotator."""
        feasible = np.ones(len(self), bool)
        for rows in self.each:
            s, c = self.values[rows].T
            feasible[rows] = scale_of(s, c).admits(s, c, SLACK)
        return feasible

    @property
    def beyond(self) -> bool:
        """Whether answers lie outside the scales, as no person answers: noise was added."""
        low, high = np.transpose(RANGES)
        return bool(((self.values < low) | (self.values > high)).any())
