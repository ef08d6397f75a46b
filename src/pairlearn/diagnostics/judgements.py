"""Checks of single judgements, and of several judgements of one pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from pairlearn.diagnostics.columns import Columns, Floats, Indices
from pairlearn.diagnostics.report import Finding, finding_at
from pairlearn.labels import TOLERANCE, PairLabels
from pairlearn.tables.scales import find_scale

__all__ = [
    "DISAGREEMENT",
    "Infeasible",
    "check_answers",
    "check_feasibility",
    "check_ranges",
    "check_repeats",
    "find_infeasible",
]

DISAGREEMENT = 0.2
"""Two answers to one question that differ by more contradict each other."""
FAR, MANY = 0.1, 0.05
"""More than this share of judgements further than this from the feasible region is a warning.
Judgements that are nearly certain lie at its edge, where the least noise takes them out."""
ALONE = 0.05
"""If no more than this share of judgements is out of range, the others are on the right scale."""


class Infeasible:
    """The judgements that no posteriors produce: which, where and how far off.

    Examples
    --------
    >>> from pairlearn.tables import PairTable
    >>> columns = Columns.of(PairTable([1, 2, 3], [4, 5, 6], [0.9, 0.2, 0.5], [0.5, 0.1, 0.0]))
    >>> found = find_infeasible(columns)
    >>> found.above, found.below, found.distance.round(3)
    (array([0]), array([1]), array([0.283, 0.293]))
    """

    def __init__(self, rows: Indices, above: Indices, below: Indices, distance: Floats) -> None:
        self.rows, self.above, self.below, self.distance = rows, above, below, distance

    @classmethod
    def none(cls) -> Infeasible:
        """No such judgements."""
        rows = np.empty(0, np.int64)
        return cls(rows, rows, rows, np.empty(0))

    @property
    def mean_distance(self) -> float:
        """Mean distance to the feasible region, 0 where there are none."""
        return float(self.distance.mean()) if len(self.rows) else 0.0


def find_infeasible(columns: Columns) -> Infeasible:
    """Locate the rows with both judgements that lie outside the feasible region."""
    both = np.flatnonzero(columns.has_s & columns.has_c)
    if not len(both):
        return Infeasible.none()
    labels = PairLabels(columns.s[both], columns.c[both], noisy=True)
    outside = ~labels.feasible()
    wrong = labels[outside]
    near = wrong.project()
    distance = np.hypot(near.similarity - wrong.similarity, near.difference - wrong.difference)
    rows = both[outside]
    over = wrong.similarity > 1 - np.abs(wrong.difference) + TOLERANCE
    return Infeasible(rows, rows[over], rows[~over], distance)


def _answers(
    columns: Columns,
) -> tuple[tuple[str, str, Floats, Literal[0, -1]], tuple[str, str, Floats, Literal[0, -1]]]:
    """Name, plural, values and least value of both kinds of answers."""
    return (
        ("similarity", "similarities", columns.s, 0),
        ("difference", "differences", columns.c, -1),
    )


def check_ranges(columns: Columns) -> Iterator[Finding]:
    """Answers that leave their range: by noise perhaps, or because they have another scale.

    The code ends in ``-range`` where it can be noise, which training can allow for, and in
    ``-scale`` where it cannot: then no other check of the values means anything.

    Examples
    --------
    >>> from pairlearn.tables import PairTable
    >>> percent = PairTable([1, 2], [3, 4], [90, 35], [0.05, 0.1], noisy=True)
    >>> for finding in check_ranges(Columns.of(percent)):
    ...     print(finding.code, "-", finding.message)
    similarity-scale - The similarities look like percentages, up to 90: divide them by 100, so \
that they lie in [0, 1], or say --similarity-scale=0,100.
    """
    for name, many, values, low in _answers(columns):
        outside = np.flatnonzero((values < low) | (values > 1))
        if not len(outside):
            continue
        row, top, scale = int(outside[0]), float(np.nanmax(np.abs(values))), find_scale(values, low)
        remedy = "" if scale is None else f"--{name}-scale={scale}"
        alone = len(outside) <= ALONE * (~np.isnan(values)).sum()
        if scale is None:
            text = (
                f"The {name} must lie in [{low}, 1], and row {row + 1} is {values[row]:g}: bring "
                "answers on another scale to this one. Noise that you know of is admitted by "
                "noisy=True, or --noisy."
            )
        elif alone:
            first = int(np.nanargmax(np.abs(values)))
            percent = f", or {values[first] / 100:g} if it is a percentage" * (top <= 100)
            text = (
                f"The {name} must lie in [{low}, 1], and row {first + 1} is {values[first]:g}: "
                f"give it on the scale of the others{percent}."
            )
        elif 10 < top <= 100:
            text = (
                f"The {many} look like percentages, up to {top:.3g}: divide them by 100, so that "
                f"they lie in [{low}, 1], or say {remedy}."
            )
        else:
            text = (
                f"The {many} have another scale, {np.nanmin(values):g} to {np.nanmax(values):g}: "
                f"bring them to [{low}, 1], or say {remedy}, the lowest and the highest answer "
                "that could be given."
            )
        yield finding_at("error", f"{name}-{'range' if scale is None else 'scale'}", text, outside)


def check_answers(columns: Columns) -> Iterator[Finding]:
    """Check every row on its own, whatever its values are."""
    same = columns.ends[:, 0] == columns.ends[:, 1]
    if same.any():
        rows = np.flatnonzero(same)
        yield finding_at(
            "error",
            "self-pair",
            "Items are paired with themselves. Such a pair teaches nothing, and its two "
            "classes are not independent, as every estimator assumes. Drop these rows.",
            rows,
            columns.ids[columns.ends[rows, 0]],
        )


def check_feasibility(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    """Check whether what a row says fits together."""
    yield from _feasibility(columns, infeasible)
    against = columns.has_c & (columns.preference * columns.c < -DISAGREEMENT)
    if against.any():
        yield finding_at(
            "warning",
            "preference-against-difference",
            "The preference names one item as the more positive and the difference the other. "
            "A difference above 0 says that the right one is.",
            np.flatnonzero(against),
        )


def _feasibility(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    wrong, both = len(infeasible.rows), int((columns.has_s & columns.has_c).sum())
    if not wrong:
        return
    share, far = wrong / both, int((infeasible.distance > FAR).sum())
    yield finding_at(
        "warning" if far > MANY * both else "note",
        "infeasible",
        f"{share:.1%} of the pairs with both judgements have answers that no two posteriors "
        f"produce, {infeasible.mean_distance:.2f} off on average, {far:,} of them more than "
        f"{FAR:g}: {len(infeasible.above):,} are above the edge (too similar for so large a "
        f"difference, s > 1 − |c|), {len(infeasible.below):,} below the parabola (too unlike for "
        "so small a difference, 2s < 1 − c²). Noise does this; training corrects for noise that "
        "is right on average.",
        infeasible.rows,
    )
    zero = infeasible.below[columns.c[infeasible.below] == 0]
    if len(zero) >= 5 and len(zero) > wrong / 2:
        yield finding_at(
            "warning",
            "zero-difference",
            "Pairs that are judged unlike have a difference of exactly 0, which says that "
            "both are equally likely to be positive. If the difference was not asked, leave "
            "it empty.",
            zero,
        )


def check_repeats(columns: Columns) -> Iterator[Finding]:
    """Check pairs that one annotator judged more than once, in either order."""
    turned = (columns.s, columns.c * columns.turn, (columns.preference * columns.turn) / 1.0)
    for named, rows in (
        (True, np.flatnonzero(columns.who >= 0)),
        (False, np.flatnonzero(columns.who < 0)),
    ):
        if len(rows) < 2:
            continue
        whose = columns.who[rows] * (int(columns.pair.max()) + 1) + columns.pair[rows]
        answers = [values[rows] for values in turned]
        first = rows[_contradictions(whose, answers)]
        if len(first):
            yield finding_at(
                "warning" if named else "note",
                "contradiction",
                f"Pairs were judged more than once by {_whom(named)}, perhaps in the other "
                f"order, with answers more than {DISAGREEMENT:g} apart. All of them count; the "
                "rows are the first judgements.",
                first,
            )
        copies = rows[_copies(whose, answers)]
        if len(copies):
            yield finding_at(
                "warning" if named else "note",
                "duplicate",
                f"Rows repeat an answer to the same pair by {_whom(named)}. Each counts as a "
                "judgement of its own: drop them if they are copies.",
                copies,
            )


def _whom(named: bool) -> str:
    return "the same annotator" if named else "annotators without a name, perhaps several"


def _contradictions(whose: Indices, answers: list[Floats]) -> Indices:
    """The first row of each group of equal `whose` with answers that are too far apart."""
    order = np.argsort(whose, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(whose[order]) != 0])
    unlike = np.zeros(len(starts), bool)
    # Preferences are −1, 0 for none, and 1: only left against right is a contradiction.
    for values, bound in zip(answers, (DISAGREEMENT, DISAGREEMENT, 1.5), strict=True):
        ordered = values[order]
        most = np.maximum.reduceat(np.where(np.isnan(ordered), -np.inf, ordered), starts)
        least = np.minimum.reduceat(np.where(np.isnan(ordered), np.inf, ordered), starts)
        unlike |= most - least > bound
    return np.sort(order[starts[unlike]])


def _copies(whose: Indices, answers: list[Floats]) -> Indices:
    """Rows after the first of those with equal `whose` and equal answers."""
    keys = np.stack([whose.astype(np.float64), *(np.nan_to_num(v, nan=9.0) for v in answers)])
    order = np.lexsort(keys[::-1])
    ordered = keys[:, order]
    again = np.r_[False, (ordered[:, 1:] == ordered[:, :-1]).all(axis=0)]
    return np.sort(order[again])
