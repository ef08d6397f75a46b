"""Similarities and differences by who gave them, on which pair."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.scale import RANGES, scale_of
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements import Judgements

SHARED = 20
"""Pairs that two must have in common for what they said of them to tell something of the two."""
MOST = 30
"""Annotators, those who said most, who are compared two by two."""
CLEAR = 3.0
"""Standard errors that are no chance."""
MOST_COARSE = 4
"""Levels of a scale that is so coarse that answers are taken for what is rounded to them."""
SLACK = 0.02
"""How far from feasible answers may be that are taken as they are."""


def named(annotator: Any) -> NDArray[np.str_]:
    """Names as text, "" where one is missing."""
    names = np.asarray(annotator)
    if names.dtype.kind == "O":
        names = np.array(["" if name is None or name != name else str(name) for name in names])
    return names.astype(np.str_)


def without_copies(judged: Judgements) -> tuple[Judgements, list[tuple[str, str]]]:
    """The rows without those of annotators who copy another, and who copied whom.

    Soft answers that are the same to the last digit on all pairs that two have in common, twenty
    at least, are one voice: counted twice it would outvote another.
    """
    if judged.annotator is None:
        return judged, []
    answers = Answers.of(judged)
    found: list[tuple[str, str]] = []
    said = [dict(zip(answers.pair[rows].tolist(), answers.values[rows].tolist(), strict=True))
            for rows in answers.each()]  # fmt: skip
    for later in range(1, len(said)):
        for first in range(later):
            shared = said[first].keys() & said[later].keys()
            if len(shared) < SHARED or any(name == answers.names[first] for name, _ in found):
                continue
            ours = np.array([said[first][pair] for pair in shared])
            theirs = np.array([said[later][pair] for pair in shared])
            levels = len(np.unique(np.nan_to_num(ours, nan=9), axis=0))
            if levels > SHARED // 2 and np.array_equal(ours, theirs, equal_nan=True):
                found.append((answers.names[later], answers.names[first]))
                break
    copied = {name for name, _ in found}
    return judged[~np.isin(named(judged.annotator), list(copied))] if copied else judged, found


def opposed(judged: Judgements) -> list[tuple[str, str]]:
    """Annotators whose differences, or preferences, run against each other on the same pairs."""
    sided = judged.has("difference") | judged.has("preference")
    if judged.annotator is None or not sided.any():
        return []
    rows = judged[sided]
    said = np.where(rows.has("difference"), rows.v, rows.u)
    said = np.where(rows.ends[:, 0] <= rows.ends[:, 1], said, -said)
    names, who = np.unique(named(rows.annotator), return_inverse=True)
    pairs, pair = np.unique(np.sort(rows.ends, 1), axis=0, return_inverse=True)
    order = np.argsort(-np.bincount(who.ravel()), kind="stable")[:MOST]
    column = np.full((len(pairs), len(names)), np.nan)
    column[pair.ravel(), who.ravel()] = said
    found = []
    for later, first in ((k, j) for k in range(1, len(order)) for j in range(k)):
        both = column[:, order[[first, later]]]
        both = both[~np.isnan(both).any(1)]
        scale = np.sqrt(np.square(both).sum(0).prod())
        if len(both) >= SHARED and both.prod(1).sum() < -0.5 * scale:
            found.append((str(names[order[first]]), str(names[order[later]])))
    return found


@dataclass(frozen=True)
class Answers:
    """Similarities and differences, with who gave them and on which pair.

    For each answer ``pair`` (n,) is the number of the pair, whichever way round it was shown,
    ``who`` (n,) the place in ``names`` (one "" where a table has none), ``values`` (n, 2) are
    similarity and difference, NaN where not given, and ``turned`` (n,) says that the pair was shown
    the other way round than in ``ends`` (P, 2), for which the difference is stated. ``weight`` (P,)
    is the mean weight of the rows of each pair.
    """

    pair: Indices
    who: Indices
    values: Floats
    names: tuple[str, ...]
    ends: Indices
    weight: Floats
    turned: Mask

    @classmethod
    def of(cls, judged: Judgements) -> Answers:
        """Those of a table; statements of other kinds are left out."""
        rows = judged[judged.soft]
        values = np.stack(
            [
                np.where(rows.has("similarity"), rows.u, np.nan),
                np.where(rows.has("difference"), rows.v, np.nan),
            ],
            axis=1,
        )
        _, first, pair = np.unique(
            np.sort(rows.ends, axis=1), axis=0, return_index=True, return_inverse=True
        )
        # In the order, and the way round, in which pairs first appear.
        order = np.argsort(first)
        pair, ends = np.argsort(order)[pair.ravel()], rows.ends[first[order]]
        turned = rows.ends[:, 0] != ends[pair, 0]
        values[turned, 1] *= -1
        annotator = np.full(len(rows), "") if rows.annotator is None else named(rows.annotator)
        names, who = np.unique(annotator, return_inverse=True)
        count = np.bincount(pair, minlength=len(ends))
        weight = np.bincount(pair, rows.weight, minlength=len(ends)) / np.maximum(count, 1)
        return cls(pair, who.ravel(), values, tuple(map(str, names)), ends, weight, turned)

    def __len__(self) -> int:
        return len(self.pair)

    def part(self, pairs: Indices) -> Answers:
        """The answers on some of the pairs."""
        place = np.full(len(self.ends), -1)
        place[pairs] = np.arange(len(pairs))
        rows = place[self.pair] >= 0
        return replace(
            self,
            pair=place[self.pair[rows]],
            who=self.who[rows],
            values=self.values[rows],
            ends=self.ends[pairs],
            weight=self.weight[pairs],
            turned=self.turned[rows],
        )

    def without(self, names: Collection[str]) -> Answers:
        """The answers of the others, with the same pairs and names."""
        kept = ~np.isin(self.names, list(names))[self.who]
        return replace(
            self, pair=self.pair[kept], who=self.who[kept], values=self.values[kept],
            turned=self.turned[kept],
        )  # fmt: skip

    def spread(self, most: int) -> Indices:
        """At most so many pairs, evenly from all: tables are often in order of the annotators."""
        return np.linspace(0, len(self.ends) - 1, min(most, len(self.ends))).astype(np.int64)

    def by(self, annotator: int) -> Indices:
        """Rows of one annotator."""
        return np.flatnonzero(self.who == annotator)

    def each(self) -> list[Indices]:
        """Rows of every annotator."""
        return [self.by(number) for number in range(len(self.names))]

    def feasible(self, slack: float = 0.0) -> Mask:
        """Whether two posteriors give each answer, rounded to the scale of its annotator."""
        found = np.ones(len(self), bool)
        for rows in self.each():
            said, differs = self.values[rows].T
            found[rows] = scale_of(said, differs).admits(said, differs, slack)
        return found

    def together(self) -> NDArray[np.bool_]:
        """Whether two annotators (names, names) agree on what both answered, more than by chance.

        Those who said most are compared: that similarities, or differences, of both are above
        their own averages on the same pairs.
        """
        found = np.zeros((len(self.names),) * 2, bool)
        most = np.argsort(-np.bincount(self.who, minlength=len(self.names)), kind="stable")[:MOST]
        place = np.full(len(self.names), len(most))
        place[most] = np.arange(len(most))
        for said in self.values.T:
            told = np.full((len(self.ends), len(most) + 1), np.nan)
            told[self.pair, place[self.who]] = said
            told = told[:, :-1]  # the last column is of all others
            given = ~np.isnan(told)
            off = np.where(given, told - np.where(given, told, 0).sum(0) / given.sum(0).clip(1), 0)
            beyond_chance = off.T @ off > CLEAR * np.sqrt(np.square(off).T @ np.square(off))
            shared = given.T.astype(np.float64) @ given
            found[np.ix_(most, most)] |= beyond_chance & (shared >= SHARED)
        np.fill_diagonal(found, False)
        return found

    def strays(self, log_odds: Floats) -> frozenset[str]:
        """Annotators whose differences have nothing to do with log-odds (P, 2) that fit another's.

        They must have said enough that what fits another would show in theirs.
        """
        chances = 1 / (1 + np.exp(-log_odds.clip(-30, 30)))
        fits, count = np.zeros((2, len(self.names)))
        for number, rows in enumerate(self.each()):
            said, expected = self.values[rows, 1], np.diff(chances)[self.pair[rows], 0]
            given = ~np.isnan(said)
            if given.sum() >= SHARED and min(said[given].std(), expected[given].std()) > 0:
                count[number] = given.sum()
                fits[number] = np.corrcoef(said[given], expected[given])[0, 1]
        root = np.sqrt(count)
        if (fits * root).max(initial=0) < CLEAR:
            return frozenset()
        stray = (fits * root < CLEAR / 2) & (fits.max() * root > 2 * CLEAR)
        return frozenset(np.array(self.names)[stray].tolist())

    @property
    def beyond(self) -> bool:
        """Whether answers go beyond the ends of the scales: nobody said so, it is added noise."""
        low, high = np.transpose(RANGES)
        return bool(((self.values < low) | (self.values > high)).any(1).mean() > 0.01)

    @property
    def few_levels(self) -> bool:
        """Whether somebody answers on three levels or four, from which too much would be read."""
        scales = [scale_of(*self.values[rows].T) for rows in self.each()]
        return any(0 < max(one.levels) <= MOST_COARSE and not one.hard for one in scales)

    def speak(self) -> str | None:
        """Why the annotators should not be taken for one ideal voice, if so.

        Answers beyond the ends of the scales are nobody's: noise was added to them, which
        training corrects for where it is right on average. And one answer alone hardly tells a
        habit from what is so: most rows must have both.
        """
        if not len(self) or np.isnan(self.values).any(1).mean() > 0.5:
            return None
        if self.beyond:
            return None
        counts = np.bincount(self.who, minlength=len(self.names))
        if (counts >= 10).sum() > 1:
            return f"{len(self.names)} annotators"
        off = 1 - float(self.feasible(SLACK).mean())
        if off > 0.02 and len(self) >= 20:
            return f"{off:.0%} of the answers are such that no two posteriors give them"
        return None
