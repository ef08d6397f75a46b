"""From the answers to a table of pairs that `fit` reads, one row a judgement or one a pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from pairlearn.annotators import scale_of
from pairlearn.atomic import replacing
from pairlearn.studio.choosing import inclusion_weights
from pairlearn.studio.overview import crowd_of
from pairlearn.studio.records import AnswerColumns, Floats, Pair, StoredAnswer
from pairlearn.studio.stored import Stored
from pairlearn.tables import PairTable
from pairlearn.tables.sources import convert
from pairlearn.tables.write import in_words, open_rows

Rule: TypeAlias = Literal["mean", "median", "reliability"]


def aggregate(answers: Sequence[StoredAnswer], rule: Rule) -> list[StoredAnswer]:
    """One judgement for each pair, by an annotator named after the rule.

    Similarities and differences are taken together separately, each from those who gave
    it. The pair likelihood is linear in (s, c), so that training on the mean is training
    on all judgements with equal weights; the median withstands single slips; "reliability"
    is a mean with the weights of `pairlearn.annotators.Crowd`. The feasible region is not
    convex: two feasible judgements can have an infeasible mean, which `pairlearn check`
    reports, and which is given as it is.

    Where nobody gave a number, the preference of the majority is kept; a draw says
    nothing, and such a pair is left out.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand, without those that could not say.
    rule : {"mean", "median", "reliability"}
        How.

    Examples
    --------
    >>> def row(name, s, c):
    ...     return StoredAnswer(1, name, 7, "a", "b", s, c, 0, False, "", 4.0, "", 1)
    >>> one, = aggregate([row("x", 0.5, None), row("y", 0.5, 0.2), row("z", 0.8, 0.4)], "mean")
    >>> round(one.similarity, 3), round(one.difference, 3), one.annotator
    (0.6, 0.3, 'mean')
    """
    if rule not in ("mean", "median", "reliability"):
        raise ValueError(f"rule must be 'mean', 'median' or 'reliability'; got {rule!r}")
    weights = crowd_of(answers).weights() if rule == "reliability" else {}
    by_pair: dict[int, list[StoredAnswer]] = {}
    for answer in answers:
        by_pair.setdefault(answer.pair, []).append(answer)
    joined = [_join(by_pair[pair], rule, weights) for pair in sorted(by_pair)]
    return [one for one in joined if one is not None]


def _join(
    answers: Sequence[StoredAnswer], rule: Rule, weights: Mapping[str, float]
) -> StoredAnswer | None:
    columns = AnswerColumns(answers)
    shares = np.array([weights.get(one.annotator, 1.0) for one in answers])

    def middle(column: Floats) -> float | None:
        given = ~np.isnan(column)
        values = column[given]
        if not len(values):
            return None
        if rule == "median":
            return float(np.median(values))
        mean = (values * shares[given]).sum() / shares[given].sum()
        # Rounding must not carry a mean out of the range of what was said.
        return float(np.clip(mean, values.min(), values.max()))

    similarity, difference = middle(columns.similarity), middle(columns.difference)
    preference = 0
    if similarity is None and difference is None:
        preference = int(np.sign(columns.preference.sum()))
        if preference == 0:
            return None
    return replace(
        answers[-1], annotator=rule, similarity=similarity, difference=difference,
        preference=preference, note="", seconds=math.fsum(one.seconds for one in answers),
    )  # fmt: skip


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
        Rows, with both s and c, that no posteriors produce, also if rounded; they are given as
        they are.
    levels : tuple of str
        The answer in words of each row, "" where numbers were given; empty if none was.

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
    levels: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write the table, with a column ``level`` where answers were given in words."""
        columns = in_words(self.table)
        if any(self.levels):
            columns["level"] = np.array(self.levels)
        with open_rows(path, list(columns)) as rows:
            rows.write(columns)


def settled(answers: Sequence[StoredAnswer], author: str | None) -> list[StoredAnswer]:
    """The answers without those that a supervisor's answer to the same pair overrules.

    Examples
    --------
    >>> rows = [StoredAnswer(k, name, 7, "a", "b", 0.9, 0.1, 0, False, "", 4.0, "", 1)
    ...         for k, name in enumerate(["ann", "bob", "boss"])]
    >>> [one.annotator for one in settled(rows, "boss")]
    ['boss']
    """
    decided = {one.pair for one in answers if one.annotator == author}
    return [one for one in answers if one.annotator == author or one.pair not in decided]


def exportable(store: Stored) -> list[StoredAnswer]:
    """The answers that an export takes, without what was mixed in, with inclusion weights."""
    drawn = [one for one in store.answers() if one.pair not in store.mixed_in]
    return weighed(drawn, store.pairs(), len(store.items))


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
    table = pair_table(said, weights=weights, names=[one.annotator for one in said])
    levels = tuple(one.level for one in said)
    return Exported(table, len(answers) - len(said), 0, _infeasible(table), levels)


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
    compared = [replace(one, others={}) for one in said if one.answer("-").compares]
    # Statements of other kinds have no rule, and stay as they are.
    others = [
        replace(one, similarity=None, difference=None, preference=0) for one in said if one.others
    ]
    joined = aggregate(compared, rule)
    undecided = len({one.pair for one in compared}) - len(joined)
    if not joined and not others:
        raise ValueError("nothing to export: all preferences are evenly split")
    table = pair_table([*joined, *others], weights=weights, names=None)
    return Exported(table, len(answers) - len(said), undecided, _infeasible(table))


def write_lines(
    answers: Sequence[StoredAnswer], path: Path, asked: str, author: str | None = None
) -> None:
    """Write every answer as a line of JSON: what was said, and by whom, when, how fast, why.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand; also those that could not say.
    path : Path
        The ``.jsonl`` file.
    asked : {"graded", "each", "exact"}
        How the project asks.
    author : str, optional
        Whose answers overrule those of others, which are marked.

    Examples
    --------
    >>> import tempfile
    >>> row = StoredAnswer(1, "ann", 7, "a", "b", 0.8, 0.0, 0, False, "", 4.0, "", 1, level="alike")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lines([row], Path(folder, "a.jsonl"), "graded")
    ...     Path(folder, "a.jsonl").read_text()[:46]
    '{"annotator":"ann","left":"a","right":"b","sim'
    """
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(answer_lines(answers, asked, author))


def answer_lines(
    answers: Sequence[StoredAnswer], asked: str, author: str | None = None
) -> Iterator[bytes]:
    """The lines of `write_lines`."""
    unsaid = {"id", "pair", "others"}
    standing = {one.id for one in settled(answers, author)}
    for one in answers:
        line = {name: value for name, value in vars(one).items() if name not in unsaid}
        line |= {**one.others, "asked": asked}
        line |= {} if one.id in standing else {"overruled": True}
        yield msgspec.json.encode(line) + b"\n"


def _said(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    said = [one for one in answers if not one.cant_say]
    if not said:
        raise ValueError(
            "nothing to export: there are no answers yet"
            if not answers
            else f"nothing to export: all {len(answers)} answers are “can't say”"
        )
    return said


def pair_table(
    answers: Sequence[StoredAnswer], *, weights: bool = False, names: Sequence[str] | None = None
) -> PairTable:
    """Answers that say something as a table of pairs.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        One for each row.
    weights : bool, default False
        Whether the weights of the pairs go into it.
    names : sequence of str, optional
        Who said it, if that does.

    Examples
    --------
    >>> row = StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.8, 0, False, "", 4.0, "", 1)
    >>> pair_table([row]).difference
    array([0.8])
    """
    columns = AnswerColumns(answers)
    known = dict.fromkeys(name for one in answers for name in one.others)
    others: Any = {name: [one.others.get(name, np.nan) for one in answers] for name in known}
    return PairTable(
        convert("left", "id", [one.left for one in answers]),
        convert("right", "id", [one.right for one in answers], empty=True),
        columns.similarity,
        columns.difference,
        preference=columns.preference if columns.preference.any() else None,
        weight=columns.weight if weights else None,
        annotator=names,
        **others,
    )


def _infeasible(table: PairTable) -> int:
    """Rows that no posteriors produce, also if they are rounded to a scale of few levels."""
    s, c = table.similarity, table.difference
    both = ~np.isnan(s) & ~np.isnan(c)
    return int((~scale_of(s, c).admits(s[both], c[both])).sum())
