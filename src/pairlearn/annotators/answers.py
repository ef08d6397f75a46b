"""Similarities and differences, grouped by annotator and by question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pairlearn.columns import Floats, Indices, Mask, numbered
from pairlearn.judgements import Judgements


def modelled(judged: Judgements) -> Mask:
    """Mask of the rows that the model is about: similarities and differences.

    With several classes they name a set of them. "The same class at all" is about no set, and is
    taken as it is.
    """
    several = judged.classes is not None
    return judged.soft & (judged.sets != "") if several else judged.soft


@dataclass(frozen=True)
class Answers:
    """Similarities and differences, each with its annotator and the question that it answers.

    A question is a pair, in whichever order it was shown, and the set of classes that it is about.
    ``pair`` (n,) is the index of the question of each answer, and ``who`` (n,) that of the
    annotator in ``names`` (one "" if a table has none). ``values`` (n, 2) are similarity and
    difference, NaN where not given. ``rows`` (P,) is the row of the table that each question and
    the order of its items were taken from.
    """

    pair: Indices
    who: Indices
    values: Floats
    names: tuple[str, ...]
    rows: Indices

    @classmethod
    def of(cls, judged: Judgements) -> Answers:
        """Answers of a table, without other statements."""
        rows = np.flatnonzero(modelled(judged))
        table = judged[rows]
        sets = np.unique(table.sets, return_inverse=True)[1]
        first, pair = numbered(np.column_stack([np.sort(table.ends, axis=1), sets]))
        values = table.answers()
        values[table.ends[:, 0] != table.ends[first[pair], 0], 1] *= -1
        annotator = np.full(len(table), "") if table.annotator is None else table.annotator
        names, who = np.unique(annotator, return_inverse=True)
        return cls(pair, who.ravel(), values, tuple(map(str, names)), rows[first])

    def __len__(self) -> int:
        return len(self.pair)

    def part(self, pairs: Indices) -> Answers:
        """Answers to some of the questions."""
        place = np.full(len(self.rows), -1)
        place[pairs] = np.arange(len(pairs))
        kept = place[self.pair] >= 0
        return replace(
            self,
            pair=place[self.pair[kept]],
            who=self.who[kept],
            values=self.values[kept],
            rows=self.rows[pairs],
        )

    @cached_property
    def each(self) -> list[Indices]:
        """Indices of the answers of every annotator."""
        return [np.flatnonzero(self.who == number) for number in range(len(self.names))]

    def by_pair(self, annotator: int) -> Floats:
        """Answers (P, 2) of one annotator, the last one of several; NaN if none."""
        values = np.full((len(self.rows), 2), np.nan)
        values[self.pair[self.each[annotator]]] = self.values[self.each[annotator]]
        return values

    def scores(self, log_odds: Any) -> Floats | None:
        """Log-odds (P, 2) of both items of each question, from those of the rows of the table."""
        return None if log_odds is None else np.asarray(log_odds, np.float64)[self.rows]
