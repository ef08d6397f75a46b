"""Kinds of statement: what each means, and where its values stand in files.

The order is that of codes in `pairlearn.Judgements`; `register` adds a kind of one's own.
"""

from __future__ import annotations

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
