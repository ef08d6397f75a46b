"""Statements from elsewhere: plain tables, and probabilities that the right one is better.

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
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import placed, same_kind
from pairlearn.studio.changes import THEIRS, Changes, stored_answers
from pairlearn.studio.records import Answer
from pairlearn.studio.store import Store
from pairlearn.studio.store_file import StoreError
from pairlearn.tables import PairTable, TableError
from pairlearn.tables.pairs import check_pairs
from pairlearn.tables.sources import Kind, open_source

Floats: TypeAlias = NDArray[np.float64]
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


def fresh_key() -> str:
    """A key for an answer that comes from no form."""
    return f"import-{uuid.uuid4().hex}"


def judgements_of(table: PairTable, annotator: str | None = None) -> list[Statement]:
    """The rows of a table of pairs as judgements; weights are not taken over.

    ``annotator`` is for a table that names none; TableError if neither does, or both do.
    """
    if annotator is not None and table.annotator is not None and (table.annotator != "").any():
        raise TableError("the table names its annotators: leave the annotator out")
    said = {name: column.tolist() for name, column in table.said().items()}
    rows = []
    for row in range(len(table)):
        name = annotator or ("" if table.annotator is None else str(table.annotator[row]))
        if not name:
            raise TableError(f"row {row + 1} does not say who judged: give an annotator")
        given = {name: column[row] for name, column in said.items() if not math.isnan(column[row])}
        similarity, difference = given.pop("similarity", None), given.pop("difference", None)
        preference = cast("Literal[-1, 0, 1]", int(given.pop("preference", 0)))
        try:
            answer = Answer(similarity, difference, preference, key=fresh_key(), others=given)
        except StoreError as error:
            raise TableError(f"row {row + 1}: {error}") from None
        left, right = str(table.left[row]), str(table.right[row])
        rows.append(Statement(name, left, right, answer, f"row {row + 1}"))
    return rows


def read_preferences(path: Path, column: str, reading: Reading) -> PairTable:
    """Read a table whose judgements are probabilities that the right one is better.

    The ``.csv`` or ``.parquet`` file has ``left``, ``right``, the column named, and perhaps
    ``similarity`` and ``annotator``. Rows without information (no probability, or ½ for a side,
    and no similarity) are left out.
    """
    source = open_source(path, "pairs")
    kinds: dict[str, Kind] = {"left": "id", "right": "id", column: "number"}
    kinds |= {"similarity": "number"} if "similarity" in source.names else {}
    kinds |= {"annotator": "text"} if "annotator" in source.names else {}
    for name in ("left", "right", column):
        if name not in source.names:
            raise TableError(f"{path}: no column {name!r}; there are {', '.join(source.names)}")
    if "difference" in source.names or "preference" in source.names:
        raise TableError(f"{path} has differences or preferences of its own besides {column!r}")
    columns = source.whole(kinds)
    try:
        difference, preference = from_probability(
            columns[column], reading, columns.get("similarity")
        )
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
    n = len(columns["left"])
    similarity = columns.get("similarity", np.full(n, np.nan))
    said = ~(np.isnan(similarity) & np.isnan(difference) & (preference == 0))
    if not said.any():
        raise TableError(f"{path}: column {column!r} says nothing in any row")
    left, right = same_kind([columns["left"], columns["right"]])
    table = PairTable.trusted(
        left=left[said],
        right=right[said],
        similarity=similarity[said],
        difference=difference[said],
        preference=preference[said] if preference.any() else None,
        annotator=columns["annotator"][said] if "annotator" in columns else None,
    )
    rows = np.flatnonzero(said)
    with placed(lambda row: source.place(int(rows[row]))):
        check_pairs(table, noisy=False)
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
        for end in {row.left, row.right} - {""}:
            if end not in store.items:
                raise StoreError(f"{row.place}: {end!r} is not among the items")
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
    new = revised = same = added = 0
    ((people,),) = changes.rows("SELECT count(*) FROM annotator")
    for row in rows:
        number = changes.seat(row.annotator)
        pair, turned = changes.find_pair(row.left, row.right) or (None, False)
        if pair is None:
            (pair,) = changes.add_pairs([(row.left, row.right, 1.0)], "import")
            added += 1
        answer = _turned(row) if turned else row.answer
        before = stored_answers(changes.connection, THEIRS, number, pair)
        if before and answer.same_judgement(before[0].answer("-")):
            same += 1
            continue
        changes.check_author(row.annotator)
        changes.assign_pair(number, pair)
        changes.keep(number, pair, answer)
        new, revised = new + (not before), revised + bool(before)
    changes.log("imported", f"{len(rows)} judgements")
    ((now,),) = changes.rows("SELECT count(*) FROM annotator")
    return ImportCount(new, revised, same, added, now - people)


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
