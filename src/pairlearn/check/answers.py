"""The answers in a table of judgements, and checks of their meaning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.answers import untouched
from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.scale import AnswerScale, scale_of
from pairlearn.check.findings import Finding, about_people, finding
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.dependence import Dependence, components
from pairlearn.judgements import Judgements, kinds
from pairlearn.judgements.scales import find_scale
from pairlearn.labels import TOLERANCE, PairLabels
from pairlearn.prior import PriorEstimate, estimate_prior

DISAGREEMENT = 0.2
"""Two answers to one question that differ by more contradict each other."""
FAR, MANY = 0.1, 0.05
"""More than a share MANY of judgements further than FAR from the feasible region is a warning.
Judgements that are nearly certain lie at its edge, where a little noise pushes them outside."""
ONE_SIDED = 0.9
"""Share of infeasible judgements on one side, where noise falls on both: a lean."""
ALONE = 0.05
"""If no more than this share of judgements is out of range, the others are on the right scale."""
LEAST_ANSWERS = 10
"""Fewer say nothing about the prior, or about a lean."""
CLEAR = 2.0
"""Standard errors by which known classes must be alike to most items, or unlike."""
LARGE, LEAST_LARGE = 0.6, 3
"""Differences that nearly determine the similarity, and how many must contradict it."""
EXPLAINING = {"outlying-annotator", "leaning-annotator"}
"""Findings about annotators that explain answers which are not feasible."""
SLACK = 1.1
"""How far mean |c| may be above its bound: noise of σ = ½ raises it by 3%."""


class Infeasible(NamedTuple):
    """Judgements that no posteriors produce: their rows, by side of the region, and distances."""

    rows: Indices = np.empty(0, np.int64)
    above: Indices = np.empty(0, np.int64)
    below: Indices = np.empty(0, np.int64)
    distance: Floats = np.empty(0)

    @property
    def mean_distance(self) -> float:
        """Mean distance to the feasible region, 0 where there are none."""
        return float(self.distance.mean()) if len(self.rows) else 0.0


@dataclass(frozen=True)
class Answers:
    """The rows of a table that are about pairs, as columns.

    s and c are NaN where not given, ``preference`` is −1 left, +1 right, 0 none, and ``names`` has
    the annotator of each row, or "". ``ends`` (n, 2) are positions in ``ids``, and ``features``
    those of ``ids`` and then ``other_ids``, where known. ``rows`` are the rows of the table;
    ``statements`` has all of its statements, also those about single items, whose ids are
    ``single_ids``, and ``other_ids`` if they are in no pair.
    """

    s: Floats
    c: Floats
    preference: Indices
    weight: Floats
    ends: Indices
    ids: NDArray[Any]
    names: NDArray[np.str_]
    statements: Judgements
    rows: Indices
    single_ids: NDArray[Any]
    other_ids: NDArray[Any]
    features: NDArray[Any] | None = None

    @classmethod
    def of(cls, table: Judgements) -> Answers:
        """The answers of a table, one for each row of its file."""
        row = table.file_rows()
        first = np.flatnonzero(np.diff(row, prepend=-1))
        values = np.full((3, len(first)), np.nan)
        for place, name, column in (
            (0, "similarity", 0),
            (1, "difference", 1),
            (2, "preference", 0),
        ):
            rows = table.has(name)
            values[place, row[rows]] = table.values[rows, column]
        pairs = ~table.single[first]
        s, c, choice = values[:, pairs]
        first = first[pairs]
        known = np.arange(1 + table.ends.max(initial=-1)) if table.ids is None else table.ids
        used, ends = np.unique(table.ends[first], return_inverse=True)
        singles = table.ends[table.single, 0]
        others = np.setdiff1d(singles, used)
        places = np.full(len(known) + 1, -1)
        places[np.concatenate([used, others])] = np.arange(len(used) + len(others))
        names = np.full(len(table), "") if table.annotator is None else table.annotator
        return cls(
            s=s,
            c=c,
            preference=np.nan_to_num(choice).astype(np.int64),
            weight=table.weight[first],
            ends=ends.reshape(-1, 2).astype(np.int64),
            ids=known[used],
            names=names[first],
            statements=replace(table, ends=places[table.ends], annotator=None, ids=None),
            rows=np.flatnonzero(pairs),
            single_ids=known[singles],
            other_ids=known[others],
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
    def self_pairs(self) -> Mask:
        """Rows that pair an item with itself."""
        return np.asarray(self.ends[:, 0] == self.ends[:, 1])

    @cached_property
    def pair(self) -> Indices:
        """Number of the unordered pair of each row."""
        low, high = self.ends.min(axis=1), self.ends.max(axis=1)
        _, numbers = np.unique(low * len(self.ids) + high, return_inverse=True)
        return numbers.reshape(-1).astype(np.int64)

    @cached_property
    def orientation(self) -> Indices:
        """−1 where a row has its pair in reverse, which changes the sign of c; else +1."""
        return np.where(self.ends[:, 0] <= self.ends[:, 1], 1, -1)

    @cached_property
    def component(self) -> Indices:
        """Number of each item's component in the graph of pairs."""
        return components(self.ends, len(self.ids))

    @cached_property
    def degree(self) -> Indices:
        """Number of rows that each item is in."""
        return np.bincount(self.ends.reshape(-1), minlength=len(self.ids))

    @cached_property
    def effective_rows(self) -> float:
        """(Σw)²/Σw²."""
        weight = self.weight / max(self.weight.max(initial=0.0), 1e-300)
        return float(weight.sum() ** 2 / max((weight**2).sum(), 1e-300))

    @cached_property
    def learnable(self) -> str:
        """What can be learnt from the table."""
        stated = map(kinds.kind, self.statements.kinds())
        fixed = frozenset().union(*(kind.fixes(False) for kind in stated))
        if {"level", "side"} <= fixed:  # without pairs, one answer may agree with all
            return "nothing" if not len(self) and np.ptp(self.statements.u) == 0 else "everything"
        if "level" in fixed:
            return "classes up to a swap"
        return "a ranking" if len(self) and "scale" not in fixed else "posteriors up to a shift"

    @cached_property
    def judgements(self) -> Judgements:
        """The answers as statements of their annotators."""
        preference = np.where(self.preference == 0, np.nan, self.preference)
        columns = {"similarity": self.s, "difference": self.c, "preference": preference}
        return Judgements.from_columns(self.ends, columns, annotator=self.names)

    @cached_property
    def untouched(self) -> tuple[Mask, dict[str, float]]:
        """Rows like sliders that nobody moved, and their share by annotator."""
        rows, both = np.zeros(len(self), bool), self.has_s & self.has_c
        columns = {"similarity": self.s[both], "difference": self.c[both]}
        judged = Judgements.from_columns(self.ends[both], columns, annotator=self.names[both])
        rows[both], shares = untouched(judged)
        return rows, shares

    @cached_property
    def crowd(self) -> Crowd:
        """How each annotator answers."""
        oriented = self.has_c.any() or self.preference.any()  # else features tell nothing
        known = self.statements[self.statements.known]
        return Crowd.of(self.judgements, self.features if oriented else None, known)

    @cached_property
    def useful(self) -> Mask:
        """Rows of annotators whose answers are neither constant nor random; else all rows."""
        if len(self.annotators) < 2:
            return np.ones(len(self), bool)
        manners, rivals = self.crowd.manners, self.crowd.rivalling
        useless = {name for name, manner in manners.items() if not manner.useful}
        kept = ~np.isin(self.names, list(useless.difference(rivals)))
        return kept if kept.any() else ~kept

    @cached_property
    def whole(self) -> Mask:
        """Rows with both judgements, of people who do not always give the same."""
        return self.has_s & self.has_c & ~self._fixed("similarity") & ~self._fixed("difference")

    def _fixed(self, question: str) -> Mask:
        """Rows of people whose similarity, or difference, is always the same."""
        names = [m.name for m in self.crowd.manners.values() if m.fixed == question]
        return np.isin(self.names, names)

    @cached_property
    def comparable(self) -> Mask:
        """Rows whose similarity tells how frequent the classes are."""
        varies = self.has_s & ~self._fixed("similarity")
        return varies & ~self.self_pairs & self.useful & ~self.untouched[0]

    def implied_prior(
        self, majority: Literal["positive", "negative"], confidence: float = 0.95
    ) -> PriorEstimate:
        """The share of positives that the similarities imply, given the larger class."""
        s, weight, ends = (v[self.comparable] for v in (self.s, self.weight, self.ends))
        return estimate_prior(s, majority, confidence=confidence, weight=weight, items=ends)

    @cached_property
    def larger_class(self) -> Literal["positive", "negative"] | None:
        """The larger class, if known classes of items in pairs tell it.

        Whatever items have a known class, they are alike to most others if their class is the
        larger one: s − ½ = (2r − 1)(2r' − 1)/2, with r known and r' that of a random item.
        """
        known = self.statements[self.statements.known]
        sides = np.zeros(len(self.ids) + len(self.other_ids))
        sides[known.ends[:, 0]] = 2 * known.u - 1
        rows = self.comparable
        ends = self.ends[rows]
        added = sides[ends].sum(1) * (self.s[rows] - 0.5)
        total, variance = added.sum(), Dependence.of(ends, len(added)).variance(added)
        if total**2 <= CLEAR**2 * variance:
            return None
        return "positive" if total > 0 else "negative"

    @cached_property
    def annotators(self) -> NDArray[np.str_]:
        """The names in the table."""
        names: NDArray[np.str_] = np.unique(self.names[self.names != ""])
        return names

    @cached_property
    def scales(self) -> dict[str, AnswerScale]:
        """The scale of each annotator's answers, by name."""
        return {
            str(name): scale_of(self.s[self.names == name], self.c[self.names == name])
            for name in np.unique(self.names)
        }

    def infeasible(self) -> Infeasible:
        """Rows with both judgements that no posteriors produce, even if rounded."""
        both = np.flatnonzero(self.whole)
        if not len(both):
            return Infeasible()
        labels = PairLabels(self.s[both], self.c[both], noisy=True)
        outside = ~labels.feasible()
        for name, scale in self.scales.items():
            mine = self.names[both] == name
            outside[mine] &= ~scale.admits(self.s[both][mine], self.c[both][mine])
        wrong = labels[outside]
        rows = both[outside]
        over = wrong.similarity > 1 - np.abs(wrong.difference) + TOLERANCE
        return Infeasible(rows, rows[over], rows[~over], _distances(wrong))


def check_meaning(table: Judgements, prior: float | None = None) -> list[Finding]:
    """Findings that the numbers of a table do not mean what they should.

    Answers out of range or on another scale; otherwise differences that only compare the two items,
    and similarities that are written upside down.
    """
    answers = Answers.of(table)
    ranges = list(check_ranges(answers))
    return ranges or [*check_comparisons(answers, prior), *check_upside_down(answers)]


def check_ranges(answers: Answers) -> Iterator[Finding]:
    """Answers outside their range, because of noise or because they have another scale.

    The code ends in ``-range`` where it can be noise, which training can allow for, and in
    ``-scale`` where it cannot: then no other check of the values means anything.
    """
    low: Literal[0, -1]
    for question, plural, values, low in (
        ("similarity", "similarities", answers.s, 0),
        ("difference", "differences", answers.c, -1),
    ):
        outside = np.flatnonzero((values < low) | (values > 1))
        if not len(outside):
            continue
        row, scale = int(outside[0]), find_scale(values, low)
        top = float(np.nanmax(np.abs(values)))
        if scale is None:
            code = "range"
        elif len(outside) <= ALONE * (~np.isnan(values)).sum():
            code, row = "stray", int(np.nanargmax(np.abs(values)))
        else:
            code = "percentages" if 10 < top <= 100 else "scale"
        value = float(values[row])
        yield finding(
            code,
            outside,
            name=f"{question}-{'range' if scale is None else 'scale'}",
            question=question,
            plural=plural,
            low=low,
            row=row + 1,
            value=value,
            percent=f", or {value / 100:g} if it is a percentage" * (top <= 100),
            least=np.nanmin(values),
            most=top if code == "percentages" else np.nanmax(values),
            remedy=f"--{question}-scale={scale}",
        )


def check_upside_down(answers: Answers) -> Iterator[Finding]:
    """Similarities s that fit their differences as 1 − s, of all annotators or of some.

    Honest similarities, and those that lean, decrease with |c|. Where |c| is large, s is at most
    1 − |c| and 1 − s at least |c|: there s must be far off, and 1 − s much nearer.
    """
    both, reversed_by = answers.has_s & answers.has_c & ~answers.self_pairs, {}
    for name in answers.scales:
        rows = both & (answers.names == name)
        s, c = answers.s[rows], np.abs(answers.c[rows])
        large = c >= LARGE
        if large.sum() < LEAST_LARGE or len(s) < LEAST_ANSWERS:
            continue
        products = (s - s.mean()) * (c - c.mean())
        dependence = Dependence.of(answers.ends[rows], len(s))
        error = math.sqrt(float(dependence.variance(products - products.mean())))
        as_is, turned = (
            float(_distances(PairLabels(v[large], c[large], noisy=True)).mean()) for v in (s, 1 - s)
        )
        if products.sum() > 3 * error and as_is > max(2 * FAR, 2 * turned):
            reversed_by[name] = int(large.sum())
    if reversed_by:
        everybody = len(reversed_by) == len(answers.scales)
        sure = everybody and sum(reversed_by.values()) >= LEAST_ANSWERS
        yield about_people("upside-down", [*reversed_by], severity="error" if sure else "warning")


def _distances(labels: PairLabels) -> Floats:
    """Distances of answers to the feasible region."""
    s, c = np.asarray(labels.project().to_array() - labels.to_array(), np.float64).T
    return np.asarray(np.hypot(s, c))


def check_feasibility(answers: Answers, infeasible: Infeasible) -> Iterator[Finding]:
    """Check whether the answers in each row are consistent."""
    yield from check_upside_down(answers)
    wrong, both = len(infeasible.rows), int(answers.whole.sum())
    if wrong:
        far, leans = int((infeasible.distance > FAR).sum()), list(leans_of(answers, infeasible))
        explained = EXPLAINING.intersection(d.code for d in answers.crowd.doubts())
        cause = " Noise does this; training corrects for noise that is right on average."
        if leans or explained:
            # Where the table names nobody, no other finding tells of guesses.
            named = leans or len(answers.annotators)
            told = "see the next findings" if named else answers.crowd.words("")
            cause = f" Somebody who leans or guesses gives such answers: {told}."
        yield finding(
            "infeasible",
            infeasible.rows,
            severity="warning" if far > MANY * both else "note",
            share=wrong / both,
            off=infeasible.mean_distance,
            far=far,
            limit=FAR,
            above=len(infeasible.above),
            below=len(infeasible.below),
            cause=cause,
        )
        yield from leans
        zero = infeasible.below[answers.c[infeasible.below] == 0]
        if len(zero) >= 5 and len(zero) > wrong / 2:
            yield finding("zero-difference", zero)
    against = answers.has_c & (answers.preference * answers.c < -DISAGREEMENT)
    if against.any():
        yield finding("preference-against-difference", np.flatnonzero(against))


def leans_of(answers: Answers, infeasible: Infeasible) -> Iterator[Finding]:
    """Similarities on one side of what the differences allow, with hardly any on the other.

    Those of annotators who are named for it are no sign of somebody else. Noise falls on both sides
    where |c| is large: the region is a strip of width (1 − |c|)²/2, and 0 is as low as it gets.
    Somebody who is too sure of similarities has rows above where |c| is small.
    """
    explained = {*chain(*(d.names for d in answers.crowd.doubts() if d.code in EXPLAINING))} - {""}
    others, large = ~np.isin(answers.names, [*explained]), np.abs(answers.c) >= 0.5
    above, below = (rows[(others & large)[rows]] for rows in (infeasible.above, infeasible.below))
    sure = infeasible.above[(others & ~large)[infeasible.above]]
    lowest = np.flatnonzero(others & large & (answers.s == 0))
    against = np.union1d(below, lowest), np.union1d(above, sure)
    for rows, other, to in zip((above, below), against, ("same", "different"), strict=True):
        if len(rows) >= LEAST_ANSWERS and len(rows) > ONE_SIDED * (len(rows) + len(other)):
            yield finding("leaning-similarity", rows, above=len(above), below=len(below), to=to)


def check_comparisons(answers: Answers, prior: float | None) -> Iterator[Finding]:
    """Differences that say which item is more positive, and not by how much.

    |c| is at most P(y ≠ y'), so over pairs of independent items its mean is at most 2π(1 − π) ≤ ½.
    """
    rows = answers.has_c & ~answers.self_pairs
    if rows.sum() < LEAST_ANSWERS:
        return
    c, weight = np.abs(answers.c[rows]), answers.weight[rows] / answers.weight[rows].sum()
    mean = float(weight @ c)
    dependence = Dependence.of(answers.ends[rows], len(c))
    error = math.sqrt(float(dependence.variance((c - mean) * weight)))
    if answers.has_s.any():
        prior = None  # other checks compare it with the similarities
    most = 0.5 if prior is None else 2 * prior * (1 - prior)
    if mean - 3 * error <= SLACK * most:
        return
    known = "" if prior is None else f" at a share of positives of {prior:g}"
    code = "hard-comparisons" if np.isin(c, (0, 1)).all() else "soft-comparisons"
    yield finding(code, name="comparisons", mean=mean, most=most, known=known)
