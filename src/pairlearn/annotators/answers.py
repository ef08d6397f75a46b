"""Similarities and differences, grouped by annotator and by pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.scale import RANGES, scale_of
from pairlearn.columns import Floats, Indices, Mask, whole_number
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import code
from pairlearn.labels import PairLabels

QUESTIONS = ("similarity", "difference")
SHARED = 20
"""Pairs that two annotators must share for their answers to be compared."""
LISTED = 5
MOST = 30
"""Annotators, those with the most answers, who are compared pairwise."""
UNTOUCHED, CONSTANT = 0.1, 0.95
"""Shares of answers in the middle: from the first on they are left out, from the second all are."""
LEAST_CONSTANT, CHANCE = 10, 0.01
"""Least number of answers of somebody who gives one to everything, and the probability to find
such a person in a table without any."""
CLEAR = 3.0
"""Standard errors from which on an effect is not taken for chance."""
MOST_COARSE = 4
"""Most levels of a scale that counts as coarse: its answers are modelled as rounded."""
FAR, NEARLY, FEW = 0.25, 0.07, 5
"""Distance from the feasible region that no habit explains, of answers that nearly agree, and how
many that far off show that they are copied."""
SLACK = 0.02
"""Distance from the feasible region that is tolerated."""


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


def alike(names: Iterable[str], words: Callable[[str], str]) -> str:
    """The words about each name, those with the same words together.

    >>> alike(["ann", "bob", "cy"], {"ann": "guesses", "bob": "leans", "cy": "guesses"}.get)
    'ann and cy: guesses; bob: leans'
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(words(name), []).append(name)
    return "; ".join(f"{listed(group)}: {text}" for text, group in groups.items())


def without_copies(judged: Judgements) -> tuple[Judgements, list[tuple[str, str]]]:
    """Rows without annotators who copy another one, and the list of (copy, original).

    Soft answers that agree to the last digit on all shared pairs, at least twenty, come from one
    source: counted twice it would outvote others. So do answers that nearly agree, if at
    least five are far from anything that two posteriors give: errors of two people differ.
    """
    if judged.annotator is None:
        return judged, []
    answers = Answers.of(judged)
    copies: list[tuple[str, str]] = []
    known = np.column_stack([answers.values, answers.far()]).tolist()
    values = [{int(answers.pair[row]): known[row] for row in rows} for rows in answers.each()]
    for later in range(1, len(values)):
        for first in range(later):
            shared = values[first].keys() & values[later].keys()
            if len(shared) < SHARED or any(name == answers.names[first] for name, _ in copies):
                continue
            ours = np.array([values[first][pair] for pair in shared])
            theirs = np.array([values[later][pair] for pair in shared])
            levels = len(np.unique(np.nan_to_num(ours, nan=9), axis=0))
            same = levels > SHARED // 2 and np.array_equal(ours, theirs, equal_nan=True)
            errors = int((ours[:, 2] * theirs[:, 2]).sum())
            near = np.square(ours - theirs)[:, :2].sum(1).mean() < NEARLY**2
            if same or (errors >= FEW and near):
                copies.append((answers.names[later], answers.names[first]))
                break
    names = [name for name, _ in copies]
    return judged[~np.isin(named(judged.annotator), names)] if copies else judged, copies


def untouched(judged: Judgements) -> tuple[Mask, dict[str, float]]:
    """Mask of rows like sliders that nobody moved, and their share by annotator.

    These are exact middles of both scales, similarity ½ and difference 0, where they are a tenth of
    an annotator's answers on scales without levels: honest answers hardly ever repeat that point.
    """
    names = np.full(len(judged), "") if judged.annotator is None else named(judged.annotator)
    middle = judged.of("both") & (judged.u == 0.5) & (judged.v == 0)
    rows, shares = np.zeros(len(judged), bool), {}
    for name in np.unique(names[middle]).tolist():
        own = judged.of("both") & (names == name)
        share = float(middle[own].mean())
        scale = scale_of(judged.u[own], judged.v[own])
        if UNTOUCHED < share < CONSTANT and own.sum() >= SHARED and not scale.coarse:
            rows |= own & middle
            shares[name] = share
    return rows, shares


def without_fixed(
    judged: Judgements, known: Mapping[str, str] | None = None
) -> tuple[Judgements, dict[str, str]]:
    """Judgements without questions that somebody always answers alike; and these, by annotator.

    They are similarities or differences of people with twenty answers or more, to whom the other
    question is none, where others answer differently; and those that are ``known`` as such.

    >>> ends, c = np.arange(80).reshape(-1, 2), np.linspace(-0.9, 0.9, 40)
    >>> c[20:] = 0
    >>> columns = {"similarity": np.linspace(0.5, 1, 40), "difference": c}
    >>> who = np.repeat(["ann", "bob"], 20)
    >>> without_fixed(Judgements.from_columns(ends, columns, annotator=who))
    (Judgements(n=40, both=20, similarity=20), {'bob': 'difference'})
    """
    both, fixed = np.flatnonzero(judged.of("both")), dict(known or {})
    if judged.annotator is None or not len(both):
        return judged, fixed
    people, who = np.unique(named(judged.annotator[both]), return_inverse=True)
    order = np.argsort(who.ravel(), kind="stable")
    each = np.split(both[order], np.cumsum(np.bincount(who.ravel()))[:-1])
    varied = np.array([np.ptp(judged.values[rows], axis=0) > 0 for rows in each])
    for side, question in enumerate(QUESTIONS):
        if not varied[:, side].any():
            continue
        habits = constant_people([judged.values[rows, side, None] for rows in each])
        for name, rows, habit, varies in zip(people.tolist(), each, habits, varied, strict=True):
            if habit and len(rows) >= SHARED and not varies[side] and varies.any():
                fixed.setdefault(name, question)
    kind, values = judged.kind.copy(), judged.values.copy()
    for name, rows in zip(people.tolist(), each, strict=True):
        if name in fixed:
            side = QUESTIONS.index(fixed[name])
            kind[rows], values[rows, side] = code(QUESTIONS[1 - side]), np.nan
    return replace(judged, kind=kind, values=values), fixed


def untouched_words(shares: Mapping[str, float]) -> str:
    """Shares of answers in the middle by annotator, as a sentence.

    >>> untouched_words({"ann": 0.25})
    "25% of ann's answers are exactly in the middle of both scales (similarity 0.5, difference 0), \
as if nobody had moved the sliders"
    """
    owners = {name: f"{name}'s answers" if name else "the answers" for name in shares}
    parts = [f"{share:.0%} of {owners[name]}" for name, share in shares.items()]
    return (
        f"{listed(parts)} are exactly in the middle of both scales (similarity 0.5, difference 0), "
        "as if nobody had moved the sliders"
    )


def constant_people(values: Sequence[Floats]) -> list[bool]:
    """Whether each of several people, with answers (n, columns), gives one answer to everything.

    These are people with ten answers or more, nearly all the same, where that is no chance: where
    positives are rare, "same" is usual, and several such answers in a row are no habit. How usual
    an answer is show the others, except those who give only one. Where there are no others, all
    answers must be the same.

    >>> same, varied = np.ones((30, 1)), np.array([[1.0], [0.0]])
    >>> constant_people([same, np.repeat(varied, [15, 15], axis=0)])
    [True, False]
    >>> constant_people([same, np.repeat(varied, [190, 10], axis=0)])
    [False, False]
    """
    from scipy.special import bdtrc  # slow to import

    if not values:
        return []
    rows = np.nan_to_num(np.concatenate(values), nan=9)
    _, codes = np.unique(rows, axis=0, return_inverse=True)
    each = np.split(codes.ravel(), np.cumsum([len(own) for own in values])[:-1])
    varied = [len(np.unique(own)) > 1 for own in each]
    theirs = np.concatenate([own for own, varies in zip(each, varied, strict=True) if varies]
                            or [codes[:0]])  # fmt: skip
    usual = np.bincount(theirs, minlength=len(rows))
    constant = []
    for own, varies in zip(each, varied, strict=True):
        answer, count = _most_frequent(own)
        if len(own) < LEAST_CONSTANT or count < CONSTANT * len(own):
            constant.append(False)
            continue
        given, total = usual[answer] - count * varies, len(theirs) - len(own) * varies
        chance = float(bdtrc(count - 1, len(own), (given + 1) / (total + 2)))
        constant.append(chance < CHANCE / len(values) if total else not varies)
    return constant


def _most_frequent(codes: Indices) -> tuple[int, int]:
    """The most frequent number, and how often it occurs."""
    counts = np.bincount(codes) if len(codes) else np.zeros(1, np.int64)
    return int(counts.argmax()), int(counts.max())


@dataclass(frozen=True)
class Answers:
    """Similarities and differences, each with its annotator and its pair.

    For each answer, ``pair`` (n,) is the index of the pair, in whichever order it was shown;
    ``who`` (n,) the index in ``names`` (one "" if a table has none); ``values`` (n, 2) similarity
    and difference, NaN where not given; and ``turned`` (n,) whether the pair was shown in the
    opposite order of ``ends`` (P, 2), to which differences refer. ``weight`` (P,) is the mean
    weight of the rows of each pair.
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
        """Answers of a table, without statements of other kinds."""
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
        # Pairs are in the order, and the direction, of their first row.
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
        """Answers to some of the pairs."""
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
        """Answers of all other annotators; pairs and names stay."""
        kept = ~np.isin(self.names, list(names))[self.who]
        return replace(
            self, pair=self.pair[kept], who=self.who[kept], values=self.values[kept],
            turned=self.turned[kept],
        )  # fmt: skip

    def only(self, name: str) -> Answers:
        """Answers of one annotator, and the pairs that they answered."""
        rows = self.by(self.names.index(name))
        own = replace(
            self, pair=self.pair[rows], who=np.zeros(len(rows), np.int64), names=(name,),
            values=self.values[rows], turned=self.turned[rows],
        )  # fmt: skip
        return own.part(np.unique(own.pair))

    def spread(self, most: int) -> Indices:
        """At most so many pairs, evenly spaced: tables are often sorted by annotator."""
        return np.linspace(0, len(self.ends) - 1, min(most, len(self.ends))).astype(np.int64)

    def by(self, annotator: int) -> Indices:
        """Rows of one annotator."""
        return self._rows[annotator]

    def each(self) -> list[Indices]:
        """Rows of every annotator."""
        return self._rows

    @cached_property
    def _rows(self) -> list[Indices]:
        return [np.flatnonzero(self.who == number) for number in range(len(self.names))]

    def constant(self) -> list[bool]:
        """Whether each annotator gives one answer to everything."""
        return constant_people([self.values[rows] for rows in self.each()])

    def implied_share(self) -> float:
        """The share of positives that similarities imply if nobody leans, a little below ½."""
        varied = ~np.array(self.constant(), bool)[self.who]
        same = self.values[varied & ~np.isnan(self.values[:, 0]), 0]
        surplus = max(2 * float(same.mean()) - 1, 0.0) if len(same) else 0.0
        return min((1 - float(np.sqrt(surplus))) / 2, 0.46)

    def feasible(self, slack: float = 0.0) -> Mask:
        """Whether two posteriors give each answer, rounded to the scale of its annotator."""
        feasible = np.ones(len(self), bool)
        for rows in self.each():
            s, c = self.values[rows].T
            feasible[rows] = scale_of(s, c).admits(s, c, slack)
        return feasible

    def far(self) -> Mask:
        """Whether answers are far from anything that two posteriors give, even if rounded."""
        far = ~self.feasible(SLACK)
        labels = PairLabels(*self.values[far].T, noisy=True)
        off = labels.project().to_array() - labels.to_array()
        far[far] = np.square(off).sum(1) > FAR**2
        return far

    def together(self) -> NDArray[np.bool_]:
        """Whether annotators (names, names) agree on shared pairs more than by chance.

        Two agree if their similarities, or their differences, exceed their own means on the same
        pairs. Only those with the most answers are compared.
        """
        agree = np.zeros((len(self.names),) * 2, bool)
        most = np.argsort(-np.bincount(self.who, minlength=len(self.names)), kind="stable")[:MOST]
        place = np.full(len(self.names), len(most))
        place[most] = np.arange(len(most))
        for values in self.values.T:
            matrix = np.full((len(self.ends), len(most) + 1), np.nan)
            matrix[self.pair, place[self.who]] = values
            matrix = matrix[:, :-1]  # the last column is of all other annotators
            given = ~np.isnan(matrix)
            mean = np.where(given, matrix, 0).sum(0) / given.sum(0).clip(1)
            off = np.where(given, matrix - mean, 0)
            beyond_chance = off.T @ off > CLEAR * np.sqrt(np.square(off).T @ np.square(off))
            shared = given.T.astype(np.float64) @ given
            agree[np.ix_(most, most)] |= beyond_chance & (shared >= SHARED)
        np.fill_diagonal(agree, False)
        return agree

    def confirmed(self, names: Collection[str]) -> frozenset[str]:
        """Those of some annotators who agree with the mean of the others, beyond chance."""
        chosen = np.isin(self.names, list(names))[self.who]
        pair, who, confirmed = self.pair[chosen], self.who[chosen], set()
        for values in self.values[chosen].T:
            given = ~np.isnan(values)
            count, total = np.zeros((2, len(self.ends)))
            np.add.at(count, pair[given], 1)
            np.add.at(total, pair[given], values[given])
            shared = given & (count[pair] > 1)
            rest = (total[pair] - values) / (count[pair] - 1).clip(1)
            for number in np.unique(who[shared]):
                rows = shared & (who == number)
                if rows.sum() < SHARED:
                    continue
                product = (values[rows] - values[rows].mean()) * (rest[rows] - rest[rows].mean())
                if product.sum() > CLEAR * np.sqrt(np.square(product).sum()):
                    confirmed.add(self.names[number])
        return frozenset(confirmed)

    def fits(self, log_odds: Floats) -> tuple[Floats, Floats]:
        """Correlation of everybody's differences with log-odds (P, 2), and √n of the answers.

        Both are 0 for those with too few answers for a relation to show.
        """
        chances = 1 / (1 + np.exp(-log_odds.clip(-30, 30)))
        fits, count = np.zeros((2, len(self.names)))
        for number, rows in enumerate(self.each()):
            c, expected = self.values[rows, 1], np.diff(chances)[self.pair[rows], 0]
            given = ~np.isnan(c)
            if given.sum() >= SHARED and min(c[given].std(), expected[given].std()) > 0:
                count[number] = given.sum()
                fits[number] = np.corrcoef(c[given], expected[given])[0, 1]
        return fits, np.sqrt(count)

    def strays(self, log_odds: Floats) -> frozenset[str]:
        """Annotators whose differences are unrelated to log-odds (P, 2) that fit another's."""
        fits, root = self.fits(log_odds)
        if (fits * root).max(initial=0) < CLEAR:
            return frozenset()
        stray = (fits * root < CLEAR) & ((fits.max() - fits) * root > 2 * CLEAR)
        return frozenset(np.array(self.names)[stray].tolist())

    @property
    def beyond(self) -> bool:
        """Whether answers lie outside the scales, as no person answers: noise was added."""
        low, high = np.transpose(RANGES)
        return bool(((self.values < low) | (self.values > high)).any(1).mean() > 0.01)

    @property
    def few_levels(self) -> bool:
        """Whether somebody answers on three or four levels."""
        scales = [scale_of(*self.values[rows].T) for rows in self.each()]
        return any(0 < max(scale.levels) <= MOST_COARSE and not scale.hard for scale in scales)

    def reason_to_learn(self) -> str | None:
        """Why annotators should not be taken as ideal, if there is a reason.

        There is none where noise was added to the answers, which training corrects for if its mean
        is zero, nor where most rows have one of the two answers: that hardly tells a bias from
        the truth.
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
