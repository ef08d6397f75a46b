"""From the answers to a table of pairs that `fit` reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pairlearn.annotate.aggregation import Rule, aggregate
from pairlearn.annotate.choosing import inclusion_weights
from pairlearn.annotate.records import Pair, StoredAnswer
from pairlearn.tables import PairTable
from pairlearn.tables.cells import convert

__all__ = ["Exported", "aggregated", "judgements", "weighed"]


@dataclass(frozen=True)
class Exported:
    """A table of pairs, and what did not go into it.

    Parameters
    ----------
    table : PairTable
        One row a judgement, or one a pair.
    cant_say : int
        Answers that are left out because nothing could be said.
    undecided : int
        Pairs that are left out because preferences were evenly split.
    infeasible : int
        Rows, with both s and c, that no posteriors produce; they are given as they are.

    Examples
    --------
    >>> row = StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.8, 0, False, "", 4.0, "", 1)
    >>> judgements([row]).infeasible
    1
    """

    table: PairTable
    cant_say: int
    undecided: int
    infeasible: int


def weighed(
    answers: Sequence[StoredAnswer], pairs: Sequence[Pair], items: int
) -> list[StoredAnswer]:
    """The answers with the inclusion weights of their pairs, which have mean one.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        What was said.
    pairs : sequence of Pair
        All pairs in the order in which they were drawn; imported ones were not drawn, and
        their weight stays.
    items : int
        How many items there are.

    Examples
    --------
    >>> row = StoredAnswer(1, "ann", 2, "a", "b", 0.9, 0.0, 0, False, "", 4.0, "", 1, weight=0.5)
    >>> drawn = [Pair(1, "a", "c"), Pair(2, "a", "b", weight=0.5), Pair(3, "b", "c", weight=2.0)]
    >>> round(weighed([row], drawn, items=100)[0].weight, 3)
    0.429
    """
    drawn = [pair for pair in pairs if pair.origin != "import"]
    of_pair: dict[int, float] = {}
    if drawn:
        weights = inclusion_weights([pair.weight for pair in drawn], items)
        of_pair = dict(zip([pair.id for pair in drawn], weights.tolist(), strict=True))
    return [replace(one, weight=of_pair.get(one.pair, one.weight)) for one in answers]


def judgements(answers: Sequence[StoredAnswer], *, weights: bool = False) -> Exported:
    """All judgements, one row each, with the names of the annotators.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand.
    weights : bool, default False
        Add the inclusion weights of the pairs, which pairs chosen by a model need.

    Raises
    ------
    ValueError
        If there is nothing to export.

    Examples
    --------
    >>> rows = [
    ...     StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.1, 0, False, "", 4.0, "", 1),
    ...     StoredAnswer(2, "bob", 7, "a", "b", None, None, 0, True, "blurred", 4.0, "", 1),
    ... ]
    >>> exported = judgements(rows)
    >>> len(exported.table), exported.table.annotator, exported.cant_say
    (1, array(['ann'], dtype='<U3'), 1)
    """
    said = _said(answers)
    table = _table(said, weights=weights, names=[one.annotator for one in said])
    return Exported(table, len(answers) - len(said), 0, _infeasible(table))


def aggregated(answers: Sequence[StoredAnswer], rule: Rule, *, weights: bool = False) -> Exported:
    """One judgement for each pair, by the mean, the median, or weighted by reliability.

    Parameters
    ----------
    answers, weights
        As in `judgements`.
    rule : {"mean", "median", "reliability"}
        See `aggregate`.

    Examples
    --------
    >>> rows = [
    ...     StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.1, 0, False, "", 4.0, "", 1),
    ...     StoredAnswer(2, "bob", 7, "a", "b", 0.7, 0.3, 0, False, "", 4.0, "", 1),
    ... ]
    >>> table = aggregated(rows, "mean").table
    >>> table.similarity.round(3), table.annotator is None
    (array([0.8]), True)
    """
    said = _said(answers)
    joined = aggregate(said, rule)
    undecided = len({one.pair for one in said}) - len(joined)
    if not joined:
        raise ValueError("nothing to export: all preferences are evenly split")
    table = _table(joined, weights=weights, names=None)
    return Exported(table, len(answers) - len(said), undecided, _infeasible(table))


def _said(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    said = [one for one in answers if not one.cant_say]
    if not said:
        raise ValueError(
            "nothing to export: there are no answers yet"
            if not answers
            else f"nothing to export: all {len(answers)} answers are “can't say”"
        )
    return said


def _table(answers: Sequence[StoredAnswer], *, weights: bool, names: list[str] | None) -> PairTable:
    preference = np.array([one.preference for one in answers], dtype=np.int8)
    return PairTable(
        convert("left", "id", [one.left for one in answers]),
        convert("right", "id", [one.right for one in answers]),
        [math.nan if one.similarity is None else one.similarity for one in answers],
        [math.nan if one.difference is None else one.difference for one in answers],
        preference=preference if preference.any() else None,
        weight=[one.weight for one in answers] if weights else None,
        annotator=names,
    )


def _infeasible(table: PairTable) -> int:
    both = table[~np.isnan(table.similarity) & ~np.isnan(table.difference)]
    return int((~both.labels().feasible()).sum()) if len(both) else 0
