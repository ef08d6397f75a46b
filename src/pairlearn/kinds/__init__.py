"""Kinds of statement: what each means, and where its values stand in files.

The order is that of codes in `pairlearn.Judgements`; `register` adds a kind of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pairlearn.columns import Floats, first_rows, locate_errors
from pairlearn.kinds.base import Column, Kind
from pairlearn.kinds.comparison import Comparison
from pairlearn.kinds.confidence import Confidence
from pairlearn.kinds.group import GroupShare
from pairlearn.kinds.label import Label
from pairlearn.kinds.positive import Positive
from pairlearn.kinds.preference import Preference
from pairlearn.kinds.same import Same
from pairlearn.kinds.soft import Both, Difference, Similarity
from pairlearn.kinds.triplet import Triplet
from pairlearn.kinds.unlabelled import Unlabelled

__all__ = ["KINDS", "Column", "Kind", "code", "columns", "kind", "register"]

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
    Comparison(),
    GroupShare(),
    Triplet(),
]


def register(new: Kind) -> Kind:
    """Add a kind, after those that there are; one of the same name is replaced."""
    names = [one.name for one in KINDS]
    if new.name in names:
        KINDS[names.index(new.name)] = new
    else:
        KINDS.append(new)
    return new


def code(name: str) -> int:
    """The number that stands for a kind in a table.

    Examples
    --------
    >>> code("both"), code("label")
    (0, 4)
    """
    for number, one in enumerate(KINDS):
        if one.name == name:
            return number
    raise ValueError(
        f"kind {name!r} is unknown; the kinds are {', '.join(one.name for one in KINDS)}"
    )


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
    return {column.name: column for one in KINDS for column in one.columns}


def rows_by_kind(counts: Mapping[str, int], rows: int) -> dict[str, int]:
    """Rows about pairs by what they say, from how many statements there are of each kind.

    A row has at most one statement with a similarity or a difference.
    """
    soft = {name: counts.get(name, 0) for name in ("both", "similarity", "difference")}
    other = {"preference": 0}
    for one in KINDS:
        told = counts.get(one.name, 0)
        soft |= {name: soft[name] + told for name in one.means if name in soft}
        if told and not (one.single or one.means or one.name in soft):
            other[one.name] = told
    rest = rows - sum(soft.values())  # of these, too, one may say several things
    return {
        "both": soft["both"],
        "similarity_only": soft["similarity"],
        "difference_only": soft["difference"],
        **{f"{name}_only": min(told, rest) for name, told in other.items()},
    }


def read_columns(given: Mapping[str, Any]) -> dict[str, Floats]:
    """Numbers, NaN where nothing is said, of columns of numbers or words, checked as in a file.

    What has noise is checked where it is used.
    """
    known, numbers = columns(), {}
    for name, values in given.items():
        if name not in known:
            raise ValueError(f"there is no column {name!r}; the kinds have {', '.join(known)}")
        with locate_errors(lambda row: f"row {row}"):
            numbers[name] = known[name].read(values)
        for row, text in () if known[name].noisy else known[name].mistakes(numbers[name]):
            raise ValueError(f"row {row}: {text}")
    for row, text in incomplete(numbers):
        raise ValueError(f"row {row} {text}")
    return numbers


def incomplete(numbers: Mapping[str, Floats]) -> Iterator[tuple[int, str]]:
    """Rows with one column of a kind that takes two, the first for each column."""
    said = {name: ~np.isnan(column) for name, column in numbers.items()}
    for name, rows in said.items():
        kinds = [one.named for one in KINDS if name in one.named]
        whole = [
            np.logical_and.reduce([said[other] for other in names])
            for names in kinds
            if all(other in said for other in names)
        ]
        for row in first_rows(rows & ~np.logical_or.reduce([np.zeros_like(rows), *whole])):
            yield row, f"has a {name} alone: give {' or '.join(map(' and '.join, kinds))}"
