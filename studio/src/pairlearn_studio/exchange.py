"""Export answers as tables or JSON lines, and import judgements made elsewhere.

An exported table has one row per judgement, and `fit` reads it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pairlearn.io import TableError, read_pairs
from pairlearn.io.cells import convert
from pairlearn.io.write import file_columns, open_rows
from pairlearn.judgements import Judgements
from pairlearn.judgements.sets import join_set
from pairlearn_studio.changes import Changes
from pairlearn_studio.overview import column, infeasible_rows
from pairlearn_studio.records import Answer, StoredAnswer
from pairlearn_studio.store import Store
from pairlearn_studio.store_file import StoreError


@dataclass(frozen=True)
class Exported:
    """A table of pairs, with the count of "can't say" answers left out of it.

    ``infeasible`` counts rows of the table whose s and c no posteriors produce, even after
    rounding. ``levels`` has each row's answer in words, "" where numbers were given.
    """

    table: Judgements
    cant_say: int
    infeasible: int
    levels: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write the table, with a column ``level`` where answers were given in words."""
        columns = file_columns(self.table)
        if any(self.levels):
            columns["level"] = np.array(self.levels)
        with open_rows(path, list(columns)) as rows:
            rows.write(columns)


def settled(answers: Sequence[StoredAnswer], author: str | None) -> list[StoredAnswer]:
    """The answers without those that a supervisor's answer to the same pair overrules."""
    overruled = {answer.pair for answer in answers if answer.annotator == author}
    return [
        answer for answer in answers if answer.annotator == author or answer.pair not in overruled
    ]


def export_table(answers: Sequence[StoredAnswer]) -> Exported:
    """The judgements as a table, one row each; ValueError if there are none."""
    judged = [answer for answer in answers if not answer.cant_say]
    if not answers:
        raise ValueError("nothing to export: there are no answers yet")
    if not judged:
        raise ValueError(f"nothing to export: all {len(answers)} answers are “can't say”")
    rows = [row for answer in judged for row in (_labels(answer) if answer.classes else [answer])]
    sets = [row.about or "" for row in rows]
    names = dict.fromkeys(name for row in rows for name in row.others)
    statements: Any = {name: [row.others.get(name, np.nan) for row in rows] for name in names}
    table = read_pairs(
        {
            "left": convert("left", "id", [row.left for row in rows]),
            "right": convert("right", "id", [row.right for row in rows], empty=True),
            "similarity": column(rows, "similarity"),
            "difference": column(rows, "difference"),
            "annotator": [row.annotator for row in rows],
            **statements,
            **({"about": sets, "q": [row.q for row in rows]} if any(sets) else {}),
        }
    )
    levels = tuple(row.level for row in rows)
    cant_say, infeasible = len(answers) - len(judged), int(infeasible_rows(rows).sum())
    return Exported(table, cant_say, infeasible, levels)


def _labels(answer: StoredAnswer) -> list[StoredAnswer]:
    """The classes of both items, as a label of each."""
    return [
        replace(
            answer, left=item, right="", about=join_set([name]), q=1.0, level="",
            similarity=None, difference=None, others={"label": 1.0},
        )
        for item, name in zip((answer.left, answer.right), answer.classes, strict=True)
    ]  # fmt: skip


def answer_lines(
    answers: Sequence[StoredAnswer], standing: Iterable[StoredAnswer]
) -> Iterator[bytes]:
    """Every answer as a line of JSON, "can't say" too; marks those that are not ``standing``."""
    internal = {"id", "pair", "others", "key"}
    ids = {answer.id for answer in standing}
    for answer in answers:
        line = {name: value for name, value in vars(answer).items() if name not in internal}
        line |= answer.others
        if answer.id not in ids:
            line["overruled"] = True
        yield msgspec.json.encode(line) + b"\n"


@dataclass(frozen=True)
class Statement:
    """A judgement of a pair made elsewhere; ``place`` is its position in a file, for messages.

    ``about`` is as in `pairlearn_studio.records.Pair`.
    """

    annotator: str
    left: str
    right: str
    answer: Answer
    place: str = ""
    about: str | None = None


class ImportCount(NamedTuple):
    """How many imported judgements were new, revised or already known, and what was added."""

    new: int
    revised: int
    same: int
    pairs_added: int
    annotators_added: int


def judgements_of(table: Judgements, annotator: str | None = None) -> list[Statement]:
    """The judgements in a table of pairs, without weights; rows without one are skipped.

    ``annotator`` is for a table that names none; TableError if neither does, or both do.
    """
    if annotator is not None and table.annotator is not None and (table.annotator != "").any():
        raise TableError("the table names its annotators: leave the annotator out")
    columns: dict[str, Any] = {name: column.tolist() for name, column in table.columns().items()}
    left_ids, right_ids = columns.pop("left"), columns.pop("right")
    for unused in ("weight", "q"):
        columns.pop(unused, None)
    names = columns.pop("annotator", [""] * len(left_ids))
    sets = columns.pop("about", [None] * len(left_ids))
    statements = []
    for row in range(len(left_ids)):
        values = {name: column[row] for name, column in columns.items()}
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        name = annotator or names[row]
        if not name:
            raise TableError(f"row {row + 1} does not say who judged: give an annotator")
        similarity, difference = values.pop("similarity", None), values.pop("difference", None)
        try:
            answer = Answer(similarity, difference, others=values)
        except StoreError as error:
            raise TableError(f"row {row + 1}: {error}") from None
        left, right = ("" if one is None else str(one) for one in (left_ids[row], right_ids[row]))
        statements.append(Statement(name, left, right, answer, f"row {row + 1}", sets[row]))
    return statements


def import_judgements(store: Store, rows: Sequence[Statement]) -> ImportCount:
    """Import judgements, all of them or none; each annotator judges a pair once.

    Unknown annotators are added, without a link and without open pairs. If the project has a pair
    in the other direction, its judgement is reversed; a pair outside the plan is added, for its
    judgement only. A known judgement changes nothing, so a file can be imported twice; a different
    one is a revision. Raises StoreError if an item is unknown, an annotator judges a pair twice, or
    a judgement bears the name under which the supervisor settles pairs.
    """
    seen: dict[tuple[str, frozenset[str], str | None], str] = {}
    for row in rows:
        store.check_items(*({row.left, row.right} - {""}), place=f"{row.place}: ")
        if row.left == row.right:
            raise StoreError(f"{row.place}: {row.left!r} is compared with itself")
        if (row.about is None) == bool(store.project.classes):
            needed = (
                "names its classes: give" if row.about is None else "has two classes: leave out"
            )
            raise StoreError(f"{row.place}: the project {needed} the column about")
        pair = (row.annotator, frozenset((row.left, row.right)), row.about)
        if pair in seen:
            raise StoreError(
                f"{row.place}: {row.annotator!r} judged ({row.left!r}, {row.right!r}) before, "
                f"in {seen[pair]}; keep one of the two, or name two annotators"
            )
        seen[pair] = row.place
    return store.carry_out(lambda changes: _import(changes, rows), who="import", share_out=True)


def _import(changes: Changes, rows: Sequence[Statement]) -> ImportCount:
    count: Counter[str] = Counter()
    people = len(changes.rows("SELECT 1 FROM annotator"))
    for row in rows:
        pair, reverse = changes.find_pair(row.left, row.right, row.about) or (None, False)
        if pair is None:
            (pair,) = changes.add_pairs([(row.left, row.right)], "import", [(row.about, 1.0)])
            count["pairs_added"] += 1
        answer = _reversed(row) if reverse else row.answer
        count[changes.import_answer(row.annotator, pair, answer)] += 1
    changes.log("imported", f"{len(rows)} judgements")
    count["annotators_added"] = len(changes.rows("SELECT 1 FROM annotator")) - people
    return ImportCount(*(count[name] for name in ImportCount._fields))


def _reversed(row: Statement) -> Answer:
    """The judgement with left and right exchanged: c and what names a side change sign."""
    answer, others = row.answer, dict(row.answer.others)
    if others.keys() - {"preference", "choice", "both"}:
        raise StoreError(
            f"{row.place}: the project has the pair ({row.right!r}, {row.left!r}), and only "
            "similarities, differences and preferences can be turned: exchange the two items"
        )
    difference = None if answer.difference is None else 0.0 - answer.difference
    turned = {name: value if name == "both" else -value for name, value in others.items()}
    return replace(answer, difference=difference, others=turned)
