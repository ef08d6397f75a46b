"""What is wrong with a table, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["RowError", "TableError", "placed", "shown"]


class TableError(ValueError):
    """A table, or the file it comes from, cannot be used as it is.

    The message names the file, the row, the column and the value, and says what to do.
    Rows count from 1 and leave out the header; a CSV file has the number of its line
    instead, as an editor shows it.

    Examples
    --------
    >>> issubclass(TableError, ValueError)
    True
    """


class RowError(Exception):
    """A bad row, found where nobody knows yet which file it is in.

    Parameters
    ----------
    row : int
        Counted from 0, in the columns that were looked at.
    text : str
        What is wrong with it.

    Examples
    --------
    >>> RowError(2, "weight is 0").row
    2
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row, self.text = row, text


@contextmanager
def placed(place: Callable[[int], str], start: int = 0) -> Iterator[None]:
    """Turn the `RowError` of a block into a `TableError` that says where it is.

    Parameters
    ----------
    place : callable
        From the row, counted from 0, to words such as ``"pairs.csv, line 3"``.
    start : int, default 0
        Rows that come before those of the block.

    Examples
    --------
    >>> with placed(lambda row: f"pairs.csv, line {row + 2}"):
    ...     raise RowError(1, "weight is 0; weights are positive")
    Traceback (most recent call last):
    pairlearn.tables.errors.TableError: pairs.csv, line 3: weight is 0; weights are positive
    """
    try:
        yield
    except RowError as error:
        raise TableError(f"{place(start + error.row)}: {error.text}") from None


def shown(value: object) -> str:
    """A value as a message shows it: quoted if it is text, and cut if it is long.

    Examples
    --------
    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'"
    >>> shown(1.5)
    '1.5'
    """
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:30] + "…")
    return f"{value:g}" if isinstance(value, float) else str(value)
