"""Kinds of statement: what each means, and which columns of a file hold its values.

The order defines the codes in `pairlearn.Judgements`; `register_kind` adds your own kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pairlearn.columns import Floats, first_rows
from pairlearn.judgements.kinds.joint import GroupShare, Triplet
from pairlearn.judgements.kinds.order import Choice, Common, Ordering, Preference
from pairlearn.judgements.kinds.single import Confidence, Label, Positive, Unlabelled
from pairlearn.judgements.kinds.soft import Both, Difference, Same, Similarity
from pairlearn.judgements.kinds.statement import Column, Kind

__all__ = ["KINDS", "Column", "Kind", "code", "columns", "kind", "register_kind"]

KINDS: list[Kind] = [
    Both(),
    Similarity(),
    Difference(),
    Preference(),
    Label(),
    Confidence(),
    Positive(),
    Unlabelled(),
    Same(),
    Ordering(),
    GroupShare(),
    Triplet(),
    Choice(),
    Common(),
]


#: Names of the other columns of a file, which no value can have.
RESERVED = {"left", "right", "weight", "annotator", "about", "q"}


def register_kind(new: Kind) -> Kind:
    """Add a kind at the end of `KINDS`, or replace the one of the same name.

    Raises
    ------
    TypeError, ValueError
        If it is no instance of a kind, or could not be told from others in a file.
    """
    if not isinstance(new, Kind):
        raise TypeError(f"register_kind takes an instance of a subclass of Kind; got {new!r}")
    names = [known.name for known in KINDS]
    place = names.index(new.name) if getattr(new, "name", None) in names else len(KINDS)
    for problem in _problems(new, KINDS[:place] + KINDS[place + 1 :]):
        raise ValueError(f"{type(new).__name__}: {problem}")
    KINDS[place : place + 1] = [new]
    return new


def _problems(new: Kind, others: Sequence[Kind]) -> Iterator[str]:
    """Problems of a kind alone, and next to the other kinds."""
    name, columns = getattr(new, "name", None), getattr(new, "columns", None)
    if not isinstance(name, str) or not name.isidentifier():
        yield f"name must be a word; got {name!r}"
    if not isinstance(columns, tuple) or not all(isinstance(c, Column) for c in columns):
        yield f"columns must be a tuple of Column; got {columns!r}"
        return
    places = [column.place for column in columns]
    if places not in ([0], [1], [0, 1], [1, 0]):
        yield f"columns must be one, or two with place=0 and place=1; they have {places}"
    if new.single and not new.joint and places != [0]:
        yield "single takes one column with place=0: v is the value of another row in training"
    known = {column.name: column for other in others for column in other.columns}
    for column in columns:
        if not column.name.isidentifier() or column.name in RESERVED:
            yield f"a column cannot be called {column.name!r}: choose another name"
        if known.get(column.name, column) != column:
            yield f"column {column.name!r} differs from that of another kind: use the same Column"
    for other in others:
        shared = {*new.named} & {*other.named}
        if other.name == name or (shared and {*new.named} == {*other.named}):
            yield f"kind {other.name!r} has the same name or columns: choose others"
        if shared and other.single != new.single:
            yield f"kind {other.name!r} also has column {min(shared)!r}, and another `single`"


def code(name: str) -> int:
    """The code of a kind in a table.

    Examples
    --------
    >>> code("both"), code("label")
    (0, 4)
    """
    names = [known.name for known in KINDS]
    if name not in names:
        raise ValueError(f"kind {name!r} is unknown; the kinds are {', '.join(names)}")
    return names.index(name)


def kind(name: str) -> Kind:
    """The kind of that name."""
    return KINDS[code(name)]


def columns() -> dict[str, Column]:
    """Every column that a file of judgements can have, by name, in the order of the kinds.

    Examples
    --------
    >>> list(columns())[:4]
    ['similarity', 'difference', 'preference', 'label']
    """
    return {column.name: column for known in KINDS for column in known.columns}


def columns_of(*, single: bool) -> list[str]:
    """Columns of statements about one item, or about pairs."""
    found = [column.name for known in KINDS if known.single == single for column in known.columns]
    return list(dict.fromkeys(found))


def column_of_word(word: str, name: str) -> str | None:
    """The first column with this word that is about pairs, or one item, as the named one is."""
    alike = {known.single for known in KINDS if name in known.named}
    found = (column for known in KINDS if known.single in alike for column in known.columns)
    return next((column.name for column in found if word in column.words), None)


def read_columns(table: Mapping[str, Any]) -> dict[str, Floats]:
    """Read columns of numbers or words as numbers, NaN where missing, in the order of the kinds."""
    known = columns()
    for name in table:
        if name not in known:
            raise ValueError(f"there is no column {name!r}; the kinds have {', '.join(known)}")
    return {name: column.read(table[name]) for name, column in known.items() if name in table}


def mistakes(numbers: Mapping[str, Floats], *, noisy: bool) -> Iterator[tuple[int, str]]:
    """The first bad rows of columns with the reasons: values, and values without their other."""
    known = columns()
    filled = {name: ~np.isnan(column) for name, column in numbers.items()}
    for name, rows in filled.items():
        yield from known[name].mistakes(numbers[name], noisy=noisy)
        kinds = [known.named for known in KINDS if name in known.named]
        whole = [
            np.logical_and.reduce([filled[other] for other in names])
            for names in kinds
            if filled.keys() >= {*names}
        ]
        for row in first_rows(rows & ~np.logical_or.reduce([np.zeros_like(rows), *whole])):
            yield row, f"has a {name} alone: give {' or '.join(map(' and '.join, kinds))}"


for _known in tuple(KINDS):
    register_kind(_known)
