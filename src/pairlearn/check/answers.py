"""What checks of answers look at, and the checks: pairs, annotators, what the numbers mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.scale import AnswerScale, scale_of
from pairlearn.check.findings import Finding, finding
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.dependence import Dependence, components
from pairlearn.judgements import Judgements
from pairlearn.kinds import KINDS, kind
from pairlearn.labels import TOLERANCE, PairLabels
from pairlearn.prior import PriorEstimate, estimate_prior
from pairlearn.tables import PairTable
from pairlearn.tables.scales import find_scale

DISAGREEMENT = 0.2
"""Two answers to one question that differ by more contradict each other."""
FAR, MANY = 0.1, 0.05
"""More than this share of judgements further than this from the feasible region is a warning.
Judgements that are nearly certain lie at its edge, where the least noise takes them out."""
ONE_SIDED = 0.9
"""Share of infeasible judgements on one side, where noise falls on both: a lean."""
ALONE = 0.05
"""If no more than this share of judgements is out of range, the others are on the right scale."""
ALIKE = 20
"""Answers of one value from which on they are a habit."""
LEAST_ANSWERS = 10
"""Fewer say nothing about the prior, or about a lean."""
LARGE, LEAST_LARGE = 0.6, 3
"""Differences that hardly leave a choice of the similarity, and how many must speak against it."""
SLACK = 1.1
"""How far mean |c| may be above its bound: noise of σ = ½ raises it by 3%."""


def check_meaning(table: PairTable, prior: float | None = None) -> list[Finding]:
    """Findings that the numbers of a table mean something else than they should.

    Answers out of range or on another scale; otherwise differences that only say which item is more
    positive, and similarities that are written upside down.
    """
    columns = Columns.of(table)
    ranges = list(check_ranges(columns))
    return ranges or [*check_comparisons(columns, prior), *check_upside_down(columns)]


def check_ranges(columns: Columns) -> Iterator[Finding]:
    """Answers that leave their range: by noise perhaps, or because they have another scale.

    The code ends in ``-range`` where it can be noise, which training can allow for, and in
    ``-scale`` where it cannot: then no other check of the values means anything.
    """
    low: Literal[0, -1]
    for question, many, answers, low in (
        ("similarity", "similarities", columns.s, 0),
        ("difference", "differences", columns.c, -1),
    ):
        outside = np.flatnonzero((answers < low) | (answers > 1))
        if not len(outside):
            continue
        row, scale = int(outside[0]), find_scale(answers, low)
        top = float(np.nanmax(np.abs(answers)))
        if scale is None:
            code = "range"
        elif len(outside) <= ALONE * (~np.isnan(answers)).sum():
            code, row = "stray", int(np.nanargmax(np.abs(answers)))
        else:
            code = "percentages" if 10 < top <= 100 else "scale"
        value = float(answers[row])
        yield finding(
            code,
            outside,
            name=f"{question}-{'range' if scale is None else 'scale'}",
            question=question,
            many=many,
            low=low,
            row=row + 1,
            value=value,
            percent=f", or {value / 100:g} if it is a percentage" * (top <= 100),
            least=np.nanmin(answers),
            most=top if code == "percentages" else np.nanmax(answers),
            remedy=f"--{question}-scale={scale}",
        )


def check_upside_down(columns: Columns) -> Iterator[Finding]:
    """Similarities s that fit their differences as 1 − s, everybody's or somebody's.

    Honest ones, and those that lean, go down with |c|. Where |c| is large, s is at most 1 − |c|
    and 1 − s at least |c|: there it must be far off, and 1 − s much nearer.
    """
    both, found = columns.has_s & columns.has_c & ~columns.itself, {}
    for name in columns.scales:
        rows = both & (columns.names == name)
        s, c = columns.s[rows], np.abs(columns.c[rows])
        large = c >= LARGE
        if large.sum() < LEAST_LARGE or len(s) < LEAST_ANSWERS:
            continue
        together = (s - s.mean()) * (c - c.mean())
        dependence = Dependence.of(columns.ends[rows], len(s))
        error = math.sqrt(float(dependence.variance(together - together.mean())))
        as_is, turned = (_off(one[large], c[large]) for one in (s, 1 - s))
        if together.sum() > 3 * error and as_is > max(2 * FAR, 2 * turned):
            found[name] = int(large.sum())
    if found:
        sure = len(found) == len(columns.scales) and sum(found.values()) >= LEAST_ANSWERS
        yield _about("upside-down", [*found], severity="error" if sure else "warning")


def _off(s: Floats, c: Floats) -> float:
    """Mean distance of answers to the feasible region."""
    near = PairLabels(s, c, noisy=True).project()
    return float(np.hypot(near.similarity - s, near.difference - c).mean())


def check_feasibility(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    """Check whether what a row says fits together."""
    yield from check_upside_down(columns)
    wrong, both = len(infeasible.rows), int((columns.has_s & columns.has_c).sum())
    if wrong:
        far, side = int((infeasible.distance > FAR).sum()), list(_lean(columns, infeasible))
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
            noise=""
            if side
            else " Noise does this; training corrects for noise that is right on average.",
        )
        yield from side
        zero = infeasible.below[columns.c[infeasible.below] == 0]
        if len(zero) >= 5 and len(zero) > wrong / 2:
            yield finding("zero-difference", zero)
    against = columns.has_c & (columns.preference * columns.c < -DISAGREEMENT)
    if against.any():
        yield finding("preference-against-difference", np.flatnonzero(against))


def _lean(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    """Similarities on one side of what the differences admit, and hardly any on the other.

    Noise falls on both sides where |c| is large: there the region is a strip of width (1 − |c|)²/2.
    """
    above, below = (
        rows[np.abs(columns.c[rows]) >= 0.5] for rows in (infeasible.above, infeasible.below)
    )
    for rows, to in ((above, "same"), (below, "different")):
        if len(rows) >= LEAST_ANSWERS and len(rows) > ONE_SIDED * (len(above) + len(below)):
            yield finding("leaning-similarity", rows, above=len(above), below=len(below), to=to)


def check_annotators(columns: Columns) -> Iterator[Finding]:
    """Check how everybody answers, or the table as one voice where it names nobody."""
    for question, values in (("similarity", columns.s), ("difference", columns.c)):
        given = ~np.isnan(values)
        constant = [
            name
            for name in columns.scales
            if (told := values[given & (columns.names == name)]).size >= ALIKE and np.ptp(told) == 0
        ]
        if constant:
            yield _about("constant", constant, name=f"constant-{question}", question=question)
    words: dict[str, list[str]] = {}
    for name, scale in columns.scales.items():
        if scale.coarse:
            words.setdefault(scale.words(), []).append(name)
    if words:
        names = [name for group in words.values() for name in group]
        listed = [f"{scale} ({', '.join(group)})" for scale, group in words.items()]
        yield _about("levels", names, scale="; ".join(listed).replace(" ()", ""))
    bare = {name: "".join(name.casefold().split()) for name in columns.annotators.tolist()}
    alike = [name for name in bare if [*bare.values()].count(bare[name]) > 1]
    if alike:
        alike.sort(key=bare.__getitem__)
        yield _about("similar-names", alike, words=", ".join(map(repr, alike)))
    # Of a table that names nobody the answers themselves say as much.
    for doubt in columns.crowd.doubts() if len(columns.annotators) else ():
        yield _about(doubt.code, doubt.names, words=doubt.words)
    # Of three who answer the same pairs two tell what the third does.
    others = len(columns.annotators) > 1 and len(columns) < 3 * (columns.pair.max() + 1)
    if others and columns.features is None:
        yield finding("answers-alone")


def _about(code: str, names: Sequence[str], **values: Any) -> Finding:
    known = [name for name in names if name]
    return finding(code, ids=known, count=len(known), **values)


def check_comparisons(columns: Columns, prior: float | None) -> Iterator[Finding]:
    """Differences that say which one is more positive, and not by how much.

    |c| is at most P(y ≠ y'), so over pairs of independent items its mean is at most 2π(1 − π) ≤ ½.
    """
    rows = columns.has_c & ~columns.itself
    if rows.sum() < LEAST_ANSWERS:
        return
    c, weight = np.abs(columns.c[rows]), columns.weight[rows] / columns.weight[rows].sum()
    mean = float(weight @ c)
    dependence = Dependence.of(columns.ends[rows], len(c))
    error = math.sqrt(float(dependence.variance((c - mean) * weight)))
    if columns.has_s.any():
        prior = None  # similarities are compared with it, and with the differences
    most = 0.5 if prior is None else 2 * prior * (1 - prior)
    if mean - 3 * error <= SLACK * most:
        return
    hard = bool(np.isin(c, (0, 1)).all())
    yield finding(
        "comparisons",
        severity="error" if hard else "warning",
        mean=mean,
        most=most,
        known="" if prior is None else f" at a share of positives of {prior:g}",
        meaning=(
            "Values of -1, 0 and 1 are certainties as differences. If they say which item is the "
            "more positive, and not by how much, read them with --difference-means preference, or "
            "give them as the column preference"
        )
        if hard
        else "If they compare items on a scale of their own, they overstate how sure they are",
    )


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
    """The columns of a table, with items as numbers (``ends``).

    s and c are NaN where not given, ``preference`` is −1 left, +1 right, 0 none, and ``names`` ""
    where the table names nobody. ``ids`` are in the order of the numbers.
    ``rows`` are the rows about pairs; ``said`` has all statements, also those about one item, whose
    ids are ``alone``. ``features`` are those of ``ids``, where they are known.
    """

    s: Floats
    c: Floats
    preference: Indices
    weight: Floats
    ends: Indices
    ids: NDArray[Any]
    names: NDArray[np.str_]
    said: Judgements
    rows: Indices
    alone: NDArray[Any]
    features: NDArray[Any] | None = None

    @classmethod
    def of(cls, table: PairTable) -> Columns:
        """Read them from a table."""
        whole, rows = table, np.flatnonzero(~table.single)
        table = table[rows]
        n = len(table)
        ids, ends = table.numbered()
        similarity = table.similarity
        for one in KINDS:
            if "similarity" in one.means and one.name in table.statements():
                stated = table.statements()[one.name]
                similarity = np.where(np.isnan(similarity), stated, similarity)
        choice = np.zeros(n, np.int64) if table.preference is None else table.preference
        every = np.tile([0, -1], (len(whole), 1))  # which single item does not matter here
        every[rows] = ends
        return cls(
            s=similarity,
            c=table.difference,
            preference=choice.astype(np.int64),
            weight=np.ones(n) if table.weight is None else table.weight,
            ends=ends,
            ids=ids,
            names=np.full(n, "") if table.annotator is None else table.annotator,
            said=Judgements.from_columns(every, whole.statements()),
            rows=rows,
            alone=whole.left[whole.single],
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
        return components(self.ends, len(self.ids))

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
        if {"level", "side"} <= fixed:  # without pairs, one answer may agree with all
            return "nothing" if not len(self) and np.ptp(self.said.u) == 0 else "everything"
        if "level" in fixed:
            return "classes up to a swap"
        return "a ranking" if len(self) and "scale" not in fixed else "posteriors up to a shift"

    @cached_property
    def judged(self) -> Judgements:
        """As statements, each by who made it."""
        given = {"similarity": self.s, "difference": self.c}
        given["preference"] = np.where(self.preference == 0, np.nan, self.preference)
        return Judgements.from_columns(self.ends, given, annotator=self.names)

    @cached_property
    def crowd(self) -> Crowd:
        """How everybody answers."""
        told = self.has_c.any() or self.preference.any()  # without which features tell nothing
        return Crowd.of(self.judged, self.features if told else None)

    @cached_property
    def useful(self) -> Mask:
        """Rows of those who have something to say: not one answer to everything, or anything."""
        if len(self.annotators) < 2:
            return np.ones(len(self), bool)
        useless = [one.name for one in self.crowd.manners.values() if not one.useful]
        kept = ~np.isin(self.names, useless)
        return kept if kept.any() else ~kept

    @cached_property
    def comparable(self) -> Mask:
        """Similarities that tell how frequent the classes are: not of an item with itself."""
        return self.has_s & ~self.itself & self.useful

    def implied_prior(
        self, majority: Literal["positive", "negative"], confidence: float = 0.95
    ) -> PriorEstimate:
        """The share of positives that the similarities imply, given the larger class."""
        s, weight, ends = (one[self.comparable] for one in (self.s, self.weight, self.ends))
        return estimate_prior(s, majority, confidence=confidence, weight=weight, items=ends)

    @cached_property
    def annotators(self) -> NDArray[np.str_]:
        """Everybody whom the table names."""
        found: NDArray[np.str_] = np.unique(self.names[self.names != ""])
        return found

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
