"""A finding: something to know about a table, as a value.

Its sentence is made from its numbers when it is shown. `pairlearn.annotators` finds what is odd
about people, `pairlearn.check` everything, and `fit` warns of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing to know about a table.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
        An error keeps the table from being used; a warning is probably a mistake.
    code : str
        A short name that stays the same from version to version.
    sentence : str
        The message, with the names of numbers in braces.
    count : int
        How many rows (or items, or annotators) it is about; 0 for the whole table.
    rows, ids : tuple
        The first of the rows, counted from 1 without the header, and of the items or annotators.
    numbers : mapping
        The values that fill the sentence.

    Examples
    --------
    >>> Finding("note", "few-pairs", "Only {pairs:,} pairs.", numbers={"pairs": 3}).message
    'Only 3 pairs.'
    """

    severity: Severity
    code: str
    sentence: str
    count: int = 0
    rows: tuple[int, ...] = ()
    ids: tuple[int | str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """What it is, what it means and what to do."""
        return self.sentence.format(**{"count": self.count, **self.numbers})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the message instead of its parts."""
        values = asdict(self)
        del values["sentence"]
        return values | {"message": self.message}
