"""Judgements in and out: plain tables, every answer as a line of JSON, and preferences.

An export is a table of pairs that `fit` reads, one row a judgement or one a pair.

Many tools and models give P = P(right is better) for a pair. What that says about (s, c) depends
on how "better" treats pairs of the same class, so the caller names the reading. With a = P(+, −),
b = P(−, +) and s = P(same), a + b + s = 1 and c = b − a:

**ties half**: P counts a pair of the same class half for each side, as win rates and
forced choices between equals do: P = b + s/2, so c = 2P − 1, whatever s is.

**given different**: P is about pairs that differ, P = b/(a + b), so c = (1 − s)(2P − 1),
and s must be known. The Bradley-Terry model is this reading where the scores are
log-odds of the class: σ(g' − g) = r'(1 − r)/(r'(1 − r) + r(1 − r')) = b/(a + b).

**side only**: P says which one is better, but its size is not to be trusted; P > ½ is the
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

from pairlearn.atomic import replacing
from pairlearn.columns import Floats, RowError, locate_errors, unify_ids
from pairlearn.kinds import Column
from pairlearn.studio.changes import Changes
from pairlearn.studio.choosing import inclusion_weights
from pairlearn.studio.overview import AnswerColumns, crowd_of, group_by
from pairlearn.studio.reader import StoreReader
from pairlearn.studio.records import Answer, StoredAnswer
from pairlearn.studio.store import Store
from pairlearn.studio.store_file import StoreError
from pairlearn.tables import PairTable, TableError
from pairlearn.tables.cells import Kind, convert
from pairlearn.tables.pairs import check_pairs
from pairlearn.tables.sources import open_source
from pairlearn.tables.write import file_columns, open_rows

Rule: TypeAlias = Literal["mean", "median", "reliability"]


def aggregate(answers: Sequence[StoredAnswer], rule: Rule) -> list[StoredAnswer]:
    """One judgement for each pair, by an annotator named after the rule.

    Similarities and differences are combined separately, each from those who gave it. The pair
    likelihood is linear in (s, c), so training on the mean is training on all judgements with
    equal weights; the median withstands single slips; "reliability" is a mean with the weights of
    `pairlearn.annotators.Crowd`. The feasible region is not convex: two feasible judgements can
    have an infeasible mean, which is exported as it is and reported by `pairlearn check`. Where
    nobody gave a number the preference of the majority is kept; a tie is left out.
    """
    if rule not in get_args(Rule):
        raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}; got {rule!r}")
    weights = crowd_of(answers).weights() if rule == "reliability" else {}
    found = []
    for _, theirs in sorted(group_by(answers, "pair").items()):
        given = [(one, weights.get(one.annotator, 1.0)) for one in theirs]
        s = _middle([(one.similarity, weight) for one, weight in given], rule)
        c = _middle([(one.difference, weight) for one, weight in given], rule)
        side: Any = 0
        if (s, c) == (None, None):
            side = int(np.sign(sum(one.preference for one in theirs)))
            if not side:
                continue
        took = math.fsum(one.seconds for one in theirs)
        joined = replace(theirs[-1], annotator=rule, similarity=s, difference=c, preference=side)
        found.append(replace(joined, note="", seconds=took))
    return found


def _middle(said: Sequence[tuple[float | None, float]], rule: Rule) -> float | None:
    """The median or the weighted mean of what was said."""
    given = np.array([one for one in said if one[0] is not None], np.float64)
    if not len(given):
        return None
    values, weights = given.T
    if rule == "median":
        return float(np.median(values))
    # Rounding must not carry a mean out of the range of what was said.
    mean = (values * weights).sum() / weights.sum()
    return float(np.clip(mean, values.min(), values.max()))


@dataclass(frozen=True)
class Exported:
    """A table of pairs, and how many answers "can't say" and evenly split pairs are not in it.

    ``infeasible`` rows are: no posteriors produce their s and c, even after rounding. ``levels``
    has the answer in words of each row, "" where numbers were given.
    """

    table: PairTable
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
    decided = {one.pair for one in answers if one.annotator == author}
    return [one for one in answers if one.annotator == author or one.pair not in decided]


def exportable(store: StoreReader) -> list[StoredAnswer]:
    """The answers that an export takes: without what was mixed in, with inclusion weights.

    The weights have mean one; imported pairs were not drawn and keep theirs.
    """
    drawn = [pair for pair in store.pairs() if pair.origin != "import"]
    weights: dict[int, float] = {}
    if drawn:
        found = inclusion_weights([pair.weight for pair in drawn], len(store.items))
        weights = dict(zip([pair.id for pair in drawn], found.tolist(), strict=True))
    answers = [one for one in store.answers() if one.pair not in store.mixed_in]
    return [replace(one, weight=weights.get(one.pair, one.weight)) for one in answers]


def judgements(answers: Sequence[StoredAnswer], *, weights: bool = False) -> Exported:
    """All judgements, one row each, with the annotators' names; ValueError if there are none.

    ``weights`` adds the inclusion weights, which pairs chosen by a model need.
    """
    return _exported(answers, _said(answers), weights, named=True)


def aggregated(answers: Sequence[StoredAnswer], rule: Rule, *, weights: bool = False) -> Exported:
    """One judgement for each pair, by the mean, the median, or weighted by reliability."""
    said = _said(answers)
    compared = [replace(one, others={}) for one in said if one.compares]
    # Statements of other kinds have no rule, and stay as they are.
    others = [
        replace(one, similarity=None, difference=None, preference=0) for one in said if one.others
    ]
    joined = aggregate(compared, rule)
    if not joined and not others:
        raise ValueError("nothing to export: all preferences are evenly split")
    undecided = len({one.pair for one in compared}) - len(joined)
    return replace(_exported(answers, [*joined, *others], weights), undecided=undecided)


def _exported(
    answers: Sequence[StoredAnswer],
    rows: Sequence[StoredAnswer],
    weights: bool,
    named: bool = False,
) -> Exported:
    """The rows as a table, with counts of what answers are not in it."""
    columns = AnswerColumns(rows)
    known = dict.fromkeys(name for one in rows for name in one.others)
    others: Any = {name: [one.others.get(name, np.nan) for one in rows] for name in known}
    table = PairTable(
        convert("left", "id", [one.left for one in rows]),
        convert("right", "id", [one.right for one in rows], empty=True),
        columns.similarity,
        columns.difference,
        preference=columns.preference if columns.preference.any() else None,
        weight=columns.weight if weights else None,
        annotator=columns.annotator.tolist() if named else None,
        **others,
    )
    silent = sum(one.cant_say for one in answers)
    levels = tuple(one.level for one in rows) if named else ()
    return Exported(table, silent, 0, int(columns.infeasible_rows.sum()), levels)


def write_lines(
    answers: Sequence[StoredAnswer], path: Path, asked: str, author: str | None = None
) -> None:
    """Write every answer as a line of JSON, "can't say" too.

    Answers that one of ``author``'s overrules are marked.
    """
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(answer_lines(answers, asked, author))


def in_numbers(answer: StoredAnswer) -> bool:
    """Whether an answer was given as numbers, as models and imports do in a graded project."""
    return not answer.level and answer.numbers != (None, None)


def answer_lines(
    answers: Sequence[StoredAnswer], asked: str, author: str | None = None
) -> Iterator[bytes]:
    """The lines of `write_lines`."""
    unsaid = {"id", "pair", "others", "key"}
    standing = {one.id for one in settled(answers, author)}
    for one in answers:
        line = {name: value for name, value in vars(one).items() if name not in unsaid}
        numbers = asked == "graded" and in_numbers(one)
        line |= {**one.others, "asked": "exact" if numbers else asked}
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


Reading: TypeAlias = Literal["ties-half", "given-different", "side-only"]


def from_probability(
    probability: Any, reading: Reading, similarity: Any = None
) -> tuple[Floats, NDArray[np.int8]]:
    """Differences and preferences that probabilities of "the right one is better" mean.

    ``probability`` is in [0, 1], NaN where not given; ``reading`` says how it treats pairs of the
    same class. "given-different" needs a similarity in every row with a probability.
    """
    if reading not in get_args(Reading):
        options = ", ".join(get_args(Reading))
        raise ValueError(f"reading must be one of {options}; got {reading!r}")
    p = _shares("probability", probability)
    none = np.zeros(len(p), np.int8)
    if reading == "side-only":
        return np.full(len(p), np.nan), np.nan_to_num(np.sign(p - 0.5)).astype(np.int8)
    if reading == "ties-half":
        return 2 * p - 1, none
    s = np.full(len(p), np.nan) if similarity is None else _shares("similarity", similarity)
    if s.shape != p.shape:
        raise ValueError(f"similarity has shape {s.shape} and probability {p.shape}")
    lacking = ~np.isnan(p) & np.isnan(s)
    if lacking.any():
        raise ValueError(
            f"row {int(lacking.argmax()) + 1} has a probability and no similarity: the reading "
            "'given-different' needs a column 'similarity'; 'ties-half' does not"
        )
    return (1 - s) * (2 * p - 1), none


def _shares(name: str, values: Any) -> Floats:
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim != 1:
        raise ValueError(f"{name} must have shape (n,); got {shares.shape}")
    if (outside := (shares < 0) | (shares > 1)).any():
        row = int(outside.argmax())
        raise ValueError(f"{name} is {shares[row]:g} in row {row + 1}, outside [0, 1]")
    return shares


@dataclass(frozen=True)
class Statement:
    """A judgement of a pair made elsewhere; ``place`` says where it comes from, for messages."""

    annotator: str
    left: str
    right: str
    answer: Answer
    place: str = ""


class ImportCount(NamedTuple):
    """How many imported judgements were new, revised or known, and what they added."""

    new: int
    revised: int
    same: int
    pairs_added: int
    annotators_added: int


def judgements_of(table: PairTable, annotator: str | None = None) -> list[Statement]:
    """The rows of a table of pairs that say something as judgements, without their weights.

    ``annotator`` is for a table that names none; TableError if neither does, or both do.
    """
    if annotator is not None and table.annotator is not None and (table.annotator != "").any():
        raise TableError("the table names its annotators: leave the annotator out")
    said = {name: column.tolist() for name, column in table.statements().items()}
    rows = []
    for row in range(len(table)):
        given = {name: column[row] for name, column in said.items() if not math.isnan(column[row])}
        if not given:
            continue
        name = annotator or ("" if table.annotator is None else str(table.annotator[row]))
        if not name:
            raise TableError(f"row {row + 1} does not say who judged: give an annotator")
        similarity, difference = given.pop("similarity", None), given.pop("difference", None)
        preference = cast("Literal[-1, 0, 1]", int(given.pop("preference", 0)))
        try:
            answer = Answer(similarity, difference, preference, others=given)
        except StoreError as error:
            raise TableError(f"row {row + 1}: {error}") from None
        left, right = str(table.left[row]), str(table.right[row])
        rows.append(Statement(name, left, right, answer, f"row {row + 1}"))
    return rows


def read_preferences(path: Path, column: str, reading: Reading) -> PairTable:
    """Read a table whose judgements are probabilities that the right one is better.

    It has ``left``, ``right``, the column named, and perhaps ``similarity`` and ``annotator``.
    """
    source = open_source(path, "pairs", "left", "right", column)
    kinds: dict[str, Kind] = {"left": "id", "right": "id", column: "number"}
    kinds |= {"similarity": "number"} if "similarity" in source.names else {}
    kinds |= {"annotator": "text"} if "annotator" in source.names else {}
    if "difference" in source.names or "preference" in source.names:
        raise TableError(f"{path} has differences or preferences of its own besides {column!r}")
    columns = source.read(kinds)
    with locate_errors(source.place):
        for row, text in Column(column, 0, 1).mistakes(columns[column]):
            raise RowError(row, text)
    try:
        difference, preference = from_probability(
            columns[column], reading, columns.get("similarity")
        )
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
    left, right = unify_ids([columns["left"], columns["right"]])
    table = PairTable.trusted(
        left=left,
        right=right,
        similarity=columns.get("similarity"),
        difference=difference,
        preference=preference if preference.any() else None,
        annotator=columns.get("annotator"),
    )
    rows = np.flatnonzero(table.judged | (preference != 0))
    if not len(rows):
        raise TableError(f"{path}: column {column!r} says nothing in any row")
    with locate_errors(lambda row: source.place(int(rows[row]))):
        check_pairs(table[rows], noisy=False)
    return table


def import_judgements(store: Store, rows: Sequence[Statement]) -> ImportCount:
    """Import judgements, all of them or none; each annotator judges a pair once.

    Unknown annotators are added, without a link and without open pairs. A pair that is there in
    the other direction is turned; one that is not in the plan is added, for its judgement only. A
    known judgement changes nothing, so a file can be imported twice; a different one is a
    revision. Raises StoreError if an item is unknown, an annotator judges a pair twice, or a
    judgement bears the name under which the supervisor settles pairs.
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
        pair, turned = changes.find_pair(row.left, row.right) or (None, False)
        if pair is None:
            (pair,) = changes.add_pairs([(row.left, row.right, 1.0)], "import")
            count["pairs_added"] += 1
        answer = _turned(row) if turned else row.answer
        count[changes.import_answer(row.annotator, pair, answer)] += 1
    changes.log("imported", f"{len(rows)} judgements")
    count["annotators_added"] = len(changes.rows("SELECT 1 FROM annotator")) - people
    return ImportCount(*(count[name] for name in ImportCount._fields))


def _turned(row: Statement) -> Answer:
    """The same judgement with left and right exchanged: c and the preference change sign."""
    answer = row.answer
    if answer.others:
        raise StoreError(
            f"{row.place}: the project has the pair ({row.right!r}, {row.left!r}), and only "
            "similarities, differences and preferences can be turned: exchange the two items"
        )
    difference = None if answer.difference is None else 0.0 - answer.difference
    return replace(answer, difference=difference, preference=-answer.preference)
