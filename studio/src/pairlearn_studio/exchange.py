"""Export answers as tables or JSON lines, and import judgements, also from probabilities.

An exported table has one row per judgement or one per pair, and `fit` reads it.

Many tools and models report P = P(right is better) for a pair. What that says about (s, c) depends
on how "better" treats pairs of the same class, so the caller chooses. With a = P(+, −),
b = P(−, +) and s = P(same), a + b + s = 1 and c = b − a:

**ties half**: a pair of the same class counts half for each side, as in win rates and forced
choices between equals: P = b + s/2, so c = 2P − 1, whatever s is.

**given different**: P is conditional on the pair being different, P = b/(a + b), so
c = (1 − s)(2P − 1), and s must be known. The Bradley-Terry model is of this kind if its scores are
log-odds of the class: σ(g' − g) = r'(1 − r)/(r'(1 − r) + r(1 − r')) = b/(a + b).

**side only**: P says which item is better, but its size is not trusted; P > ½ is the
preference "right", P < ½ is "left", P = ½ says nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Floats, RowError, locate_errors
from pairlearn.io import TableError
from pairlearn.io.cells import Cells, convert
from pairlearn.io.sources import open_source
from pairlearn.io.write import file_columns, open_rows
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import Column
from pairlearn_studio.changes import Changes
from pairlearn_studio.overview import AnswerColumns, group_by, people_of
from pairlearn_studio.reader import StoreReader
from pairlearn_studio.records import Answer, StoredAnswer
from pairlearn_studio.store import Store
from pairlearn_studio.store_file import StoreError

Rule: TypeAlias = Literal["mean", "median", "reliability"]


def aggregate(answers: Sequence[StoredAnswer], rule: Rule) -> list[StoredAnswer]:
    """One judgement for each pair, by an annotator named after the rule.

    Similarities and differences are combined separately, each over the annotators who gave one.
    The pair likelihood is linear in (s, c), so training on the mean equals training on all
    judgements with equal weights; the median is robust to single slips; "reliability" is a mean
    weighted by `People.reliability`. The feasible region is not convex: the mean of two
    feasible judgements can be infeasible. It is exported unchanged, and `pairlearn check` reports
    it. Without any number, the preference of the majority counts; a tie drops the pair.
    """
    if rule not in get_args(Rule):
        raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}; got {rule!r}")
    reliability = people_of(answers).reliability() if rule == "reliability" else {}
    rows = []
    for _, group in sorted(group_by(answers, "pair").items()):
        weights = [reliability.get(answer.annotator, 1.0) for answer in group]
        s = _middle([answer.similarity for answer in group], weights, rule)
        c = _middle([answer.difference for answer in group], weights, rule)
        side: Any = 0
        if s is None and c is None:
            side = int(np.sign(sum(answer.preference for answer in group)))
            if not side:
                continue
        seconds = math.fsum(answer.seconds for answer in group)
        row = replace(group[-1], annotator=rule, similarity=s, difference=c, preference=side)
        rows.append(replace(row, note="", seconds=seconds))
    return rows


def _middle(values: Sequence[float | None], weights: Sequence[float], rule: Rule) -> float | None:
    """Median or weighted mean of the values that were given."""
    column = np.array(values, np.float64)  # None becomes NaN
    given = ~np.isnan(column)
    if not given.any():
        return None
    column = column[given]
    if rule == "median":
        return float(np.median(column))
    # Rounding must not carry a mean out of the range of the values.
    mean = np.average(column, weights=np.array(weights)[given])
    return float(np.clip(mean, column.min(), column.max()))


@dataclass(frozen=True)
class Exported:
    """A table of pairs, with counts of "can't say" answers and evenly split pairs left out of it.

    ``infeasible`` counts rows of the table whose s and c no posteriors produce, even after
    rounding. ``levels`` has each row's answer in words, "" where numbers were given.
    """

    table: Judgements
    cant_say: int
    undecided: int
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


def exportable(store: StoreReader) -> list[StoredAnswer]:
    """Answers for an export: without known pairs and repeats."""
    mixed_in = store.mixed_in
    return [answer for answer in store.answers() if answer.pair not in mixed_in]


def export_table(answers: Sequence[StoredAnswer], rule: Rule | None = None) -> Exported:
    """The judgements as a table; ValueError if there are none.

    Without a ``rule`` each judgement is a row, with the name of its annotator; with one, each pair
    (see `aggregate`).
    """
    rows, undecided = _judged(answers), 0
    if rule is not None:
        compared = [replace(answer, others={}) for answer in rows if answer.compares]
        # No rule combines statements of other kinds: they are exported one by one.
        others = [
            replace(answer, similarity=None, difference=None, preference=0)
            for answer in rows
            if answer.others
        ]
        combined = aggregate(compared, rule)
        undecided = len({answer.pair for answer in compared}) - len(combined)
        rows = [*combined, *others]
        if not rows:
            raise ValueError("nothing to export: all preferences are evenly split")
    columns = AnswerColumns(rows)
    names = dict.fromkeys(name for row in rows for name in row.others)
    statements: Any = {name: [row.others.get(name, np.nan) for row in rows] for name in names}
    table = Judgements.from_frame(
        {
            "left": convert("left", "id", [row.left for row in rows]),
            "right": convert("right", "id", [row.right for row in rows], empty=True),
            "similarity": columns.similarity,
            "difference": columns.difference,
            "preference": columns.preference,
            "annotator": columns.annotator.tolist() if rule is None else None,
            **statements,
        }
    )
    cant_say = sum(answer.cant_say for answer in answers)
    levels = tuple(row.level for row in rows) if rule is None else ()
    return Exported(table, cant_say, undecided, int(columns.infeasible_rows.sum()), levels)


def _judged(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    """The answers that are not "can't say"; ValueError if there are none."""
    judged = [answer for answer in answers if not answer.cant_say]
    if judged:
        return judged
    if not answers:
        raise ValueError("nothing to export: there are no answers yet")
    raise ValueError(f"nothing to export: all {len(answers)} answers are “can't say”")


def in_numbers(answer: StoredAnswer) -> bool:
    """Whether an answer was given as numbers, as models and imports do in a graded project."""
    return not answer.level and answer.numbers != (None, None)


def answer_lines(
    answers: Sequence[StoredAnswer], asked: str, author: str | None = None
) -> Iterator[bytes]:
    """Every answer as a line of JSON, "can't say" too; marks those that ``author`` overruled."""
    internal = {"id", "pair", "others", "key"}
    standing = {answer.id for answer in settled(answers, author)}
    for answer in answers:
        line = {name: value for name, value in vars(answer).items() if name not in internal}
        line |= answer.others
        line["asked"] = "exact" if asked == "graded" and in_numbers(answer) else asked
        if answer.id not in standing:
            line["overruled"] = True
        yield msgspec.json.encode(line) + b"\n"


PreferenceMeaning: TypeAlias = Literal["ties-half", "given-different", "side-only"]


def from_probability(
    probability: Floats, meaning: PreferenceMeaning, similarity: Floats | None = None
) -> tuple[Floats, NDArray[np.int8]]:
    """Differences and preferences from probabilities in [0, 1] that the right item is better.

    NaN marks a missing value; "given-different" needs a similarity with every probability.
    """
    side = np.zeros(len(probability), np.int8)
    if meaning == "side-only":
        side = np.nan_to_num(np.sign(probability - 0.5)).astype(np.int8)
        return np.full(len(side), np.nan), side
    difference = 2 * probability - 1
    if meaning == "ties-half":
        return difference, side
    s = np.full(len(side), np.nan) if similarity is None else similarity
    missing = ~np.isnan(probability) & np.isnan(s)
    if missing.any():
        raise ValueError(
            f"row {int(missing.argmax()) + 1} has a probability and no similarity: the reading "
            "'given-different' needs a column 'similarity'; 'ties-half' does not"
        )
    return (1 - s) * difference, side


@dataclass(frozen=True)
class Statement:
    """A judgement of a pair made elsewhere; ``place`` is its position in a file, for messages."""

    annotator: str
    left: str
    right: str
    answer: Answer
    place: str = ""


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
    columns.pop("weight", None)
    names = columns.pop("annotator", [""] * len(left_ids))
    statements = []
    for row in range(len(left_ids)):
        values = {name: column[row] for name, column in columns.items()}
        values = {name: value for name, value in values.items() if not math.isnan(value)}
        name = annotator or names[row]
        if not name:
            raise TableError(f"row {row + 1} does not say who judged: give an annotator")
        similarity, difference = values.pop("similarity", None), values.pop("difference", None)
        preference = cast("Literal[-1, 0, 1]", int(values.pop("preference", 0)))
        try:
            answer = Answer(similarity, difference, preference, others=values)
        except StoreError as error:
            raise TableError(f"row {row + 1}: {error}") from None
        left, right = str(left_ids[row]), str(right_ids[row])
        statements.append(Statement(name, left, right, answer, f"row {row + 1}"))
    return statements


def read_preferences(path: Path, column: str, meaning: PreferenceMeaning) -> Judgements:
    """Read a table whose judgements are probabilities that the right item is better.

    It has ``left``, ``right``, the named column, and optionally ``similarity`` and ``annotator``.
    """
    source = open_source(path, "pairs", "left", "right", column)
    if "difference" in source.names or "preference" in source.names:
        raise TableError(f"{path} has differences or preferences of its own besides {column!r}")
    kinds: dict[str, Cells] = {"left": "id", "right": "id", column: "number"}
    optional: dict[str, Cells] = {"similarity": "number", "annotator": "text"}
    kinds |= {name: kind for name, kind in optional.items() if name in source.names}
    columns = source.read(kinds)
    with locate_errors(source.place):
        for name in {column, "similarity"} & columns.keys():
            if problems := [*Column(name, 0, 1).mistakes(columns[name])]:
                raise RowError.listing(problems)
    similarity = columns.get("similarity")
    try:
        difference, preference = from_probability(columns[column], meaning, similarity)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
    stated = {"similarity": similarity, "difference": difference, "preference": preference}
    numbers = {name: values for name, values in stated.items() if values is not None}
    soft = [~np.isnan(values) for name, values in numbers.items() if name != "preference"]
    judged = np.flatnonzero(np.logical_or.reduce([*soft, preference != 0]))
    if not len(judged):
        raise TableError(f"{path}: column {column!r} says nothing in any row")
    frame = columns | numbers
    return Judgements.from_frame({name: values[judged] for name, values in frame.items()})


def import_judgements(store: Store, rows: Sequence[Statement]) -> ImportCount:
    """Import judgements, all of them or none; each annotator judges a pair once.

    Unknown annotators are added, without a link and without open pairs. If the project has a pair
    in the other direction, its judgement is reversed; a pair outside the plan is added, for its
    judgement only. A known judgement changes nothing, so a file can be imported twice; a different
    one is a revision. Raises StoreError if an item is unknown, an annotator judges a pair twice, or
    a judgement bears the name under which the supervisor settles pairs.
    """
    seen: dict[tuple[str, frozenset[str]], str] = {}
    for row in rows:
        store.check_items(*({row.left, row.right} - {""}), place=f"{row.place}: ")
        if row.left == row.right:
            raise StoreError(f"{row.place}: {row.left!r} is compared with itself")
        pair = (row.annotator, frozenset((row.left, row.right)))
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
        pair, reverse = changes.find_pair(row.left, row.right) or (None, False)
        if pair is None:
            (pair,) = changes.add_pairs([(row.left, row.right)], "import")
            count["pairs_added"] += 1
        answer = _reversed(row) if reverse else row.answer
        count[changes.import_answer(row.annotator, pair, answer)] += 1
    changes.log("imported", f"{len(rows)} judgements")
    count["annotators_added"] = len(changes.rows("SELECT 1 FROM annotator")) - people
    return ImportCount(*(count[name] for name in ImportCount._fields))


def _reversed(row: Statement) -> Answer:
    """The judgement with left and right exchanged: c and the preference change sign."""
    answer = row.answer
    if answer.others:
        raise StoreError(
            f"{row.place}: the project has the pair ({row.right!r}, {row.left!r}), and only "
            "similarities, differences and preferences can be turned: exchange the two items"
        )
    difference = None if answer.difference is None else 0.0 - answer.difference
    return replace(answer, difference=difference, preference=-answer.preference)
