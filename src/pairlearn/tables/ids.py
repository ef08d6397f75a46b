"""Columns of ids and of other short text: 64-bit integers or numpy strings.

Ids are compared exactly, spaces included. An integer is one in its plain form: ``7``
but not ``007``, ``+7`` or ``7.0``, which stay text so that no two ids fall together.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.errors import RowError, TableError, shown

__all__ = ["Ids", "as_ids", "as_text", "check_text", "check_unique", "find_rows", "same_kind"]

Ids: TypeAlias = NDArray[np.int64] | NDArray[np.str_]

MAX_LENGTH = 256
"""Characters of an id: numpy gives every row the room of the longest."""

_CHUNK = 65536


def as_ids(name: str, values: Any) -> Ids:
    """Values as a column of ids.

    Parameters
    ----------
    name : str
        Of the column, for messages.
    values : array-like of shape (n,)
        Integers or text; if any is text, all are.

    Raises
    ------
    TableError
        If they are something else, such as floats.
    RowError
        If one is empty or cannot be kept in a file.

    Examples
    --------
    >>> as_ids("left", [3, 1])
    array([3, 1])
    >>> as_ids("left", [3, "a"])
    array(['3', 'a'], dtype='<U1')
    """
    array = _plain(name, values)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and bool((array > np.iinfo(np.int64).max).any()):
            row = int(array.argmax())
            raise RowError(row, f"{name} is {array[row]}, too large for int64; give ids as text")
        return array.astype(np.int64, copy=False)
    # No wider than the longest: numpy makes text of integers 21 characters wide.
    width = int(np.char.str_len(array).max(initial=1))
    text = array.astype(f"=U{width}", copy=False)
    check_text(name, text, empty=False)
    return text


def as_text(name: str, values: Any) -> NDArray[np.str_]:
    """Values as a column of text, where "" means "not given".

    Examples
    --------
    >>> as_text("annotator", ["ann", ""])
    array(['ann', ''], dtype='<U3')
    """
    array = _plain(name, values)
    text: NDArray[np.str_] = array.astype(np.str_) if array.dtype.kind in "iu" else array
    check_text(name, text, empty=True)
    return text


def _plain(name: str, values: Any) -> NDArray[Any]:
    """A column of integers or of text, as numpy has it."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise TableError(f"{name} must have shape (n,); got {array.shape}")
    if array.dtype.kind == "O" or (array.dtype.kind == "U" and not isinstance(values, np.ndarray)):
        # Only here: a numpy string has already lost the NUL at its end.
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (str, int, np.integer)):
                what = f"{shown(value)}, of {type(value).__name__}"
                raise RowError(row, f"{name} is {what}; give integers or text")
            if isinstance(value, str) and "\0" in value:
                raise RowError(row, f"{name} is {shown(value)}, with a NUL; remove it")
            if isinstance(value, str) and len(value) > MAX_LENGTH:
                raise _too_long(name, row, len(value))
        array = np.asarray([str(value) for value in values], dtype=np.str_)
    if len(array) == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise TableError(f"{name} must be integers or text; got {array.dtype}")
    return array


def check_text(name: str, text: NDArray[np.str_], *, empty: bool) -> None:
    """Refuse text that is empty, too long, or not to be kept in every kind of file.

    Parameters
    ----------
    name : str
        Of the column.
    text : array of str
        The column.
    empty : bool
        Whether "" is admitted.

    Raises
    ------
    RowError
        For the first bad row.

    Examples
    --------
    >>> check_text("left", np.array(["a", ""]), empty=True)
    """
    if not empty and len(text) and bool((text == "").any()):
        raise RowError(int((text == "").argmax()), f"{name} is empty; every row needs it")
    if text.dtype.itemsize // 4 > MAX_LENGTH:
        lengths = np.char.str_len(text)
        if len(text) and bool((lengths > MAX_LENGTH).any()):
            row = int((lengths > MAX_LENGTH).argmax())
            raise _too_long(name, row, int(lengths[row]))
    for start in range(0, len(text), _CHUNK):
        part = np.ascontiguousarray(text[start : start + _CHUNK])
        codes = part.view(np.uint32).reshape(len(part), -1)
        if bool((codes > sys.maxunicode).any()):
            # Only a damaged file has them, and Python cannot even show such a text.
            row = int((codes > sys.maxunicode).any(1).argmax())
            raise RowError(start + row, f"{name} is not Unicode text; write the ids anew")
        bad = ((codes < 32) & (codes > 0)) | (codes == 127) | ((codes >> 11) == 0xD800 >> 11)
        bad[:, :-1] |= (codes[:, :-1] == 0) & (codes[:, 1:] != 0)
        if bad.any():
            row = int(bad.any(1).argmax())
            raise RowError(
                start + row,
                f"{name} is {shown(str(part[row]))}, with a control character; remove it",
            )


def _too_long(name: str, row: int, length: int) -> RowError:
    return RowError(row, f"{name} has {length} characters; at most {MAX_LENGTH} are allowed")


def same_kind(columns: Sequence[Ids]) -> list[Ids]:
    """The columns, all as integers if all are, else all as text.

    Examples
    --------
    >>> same_kind([np.array([7]), np.array(["a"])])
    [array(['7'], dtype='<U21'), array(['a'], dtype='<U1')]
    """
    kinds = {column.dtype.kind for column in columns}
    return list(columns) if len(kinds) < 2 else [column.astype(np.str_) for column in columns]


def check_unique(name: str, ids: Ids) -> None:
    """Refuse ids that occur twice.

    Raises
    ------
    RowError
        At the second of the first two equal ids, naming the row of the first, from 1.

    Examples
    --------
    >>> check_unique("id", np.array([1, 2]))
    """
    order = np.argsort(ids, kind="stable")
    equal = ids[order[1:]] == ids[order[:-1]]
    if equal.any():
        second, first = min(zip(order[1:][equal].tolist(), order[:-1][equal].tolist(), strict=True))
        raise DuplicateError(name, ids[second].item(), first, second)


class DuplicateError(RowError):
    """An id that two rows share; both rows count from 0.

    Examples
    --------
    >>> DuplicateError("id", 7, 0, 2).text
    'id 7 is in row 1 already; ids are unique'
    """

    def __init__(self, name: str, value: object, first: int, second: int) -> None:
        self.name, self.value, self.first = name, value, first
        super().__init__(second, self.at(f"row {first + 1}"))

    def at(self, first: str) -> str:
        """The message, with words for the place of the first of the two rows."""
        return f"{self.name} {shown(self.value)} is in {first} already; ids are unique"


def find_rows(wanted: Ids, ids: Ids) -> NDArray[np.int64]:
    """Where each wanted id stands among unique ids, and −1 where it is not.

    Examples
    --------
    >>> find_rows(np.array([5, 3, 9]), np.array([3, 5]))
    array([ 1,  0, -1])
    """
    wanted, ids = same_kind([wanted, ids])
    if len(ids) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    ordered: Any = ids[order]
    places = np.minimum(np.searchsorted(ordered, wanted), len(ids) - 1)
    return np.where(ordered[places] == wanted, order[places], -1).astype(np.int64)
