"""Columns of text cells, as a CSV file has them, turned into arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.errors import RowError, shown
from pairlearn.tables.ids import Ids, as_ids, as_text

__all__ = ["Kind", "convert"]

Kind: TypeAlias = Literal["id", "number", "text"]
"""What a column holds: ids, numbers (NaN = not given) or text ("" = not given)."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_NUMERALS = re.compile(r"[0-9+\-.eE \t]*", re.ASCII)
_MISSING_WORDS = {"nan", "na", "n/a", "null", "none", "-", "?"}


def convert(name: str, kind: Kind, cells: Sequence[str]) -> NDArray[Any]:
    """A column of cells as an array of its kind.

    Numbers may have spaces around them, and an empty one is NaN; ids and text are taken
    as they are.

    Parameters
    ----------
    name : str
        Of the column, for messages.
    kind : {"id", "number", "text"}
        What it holds.
    cells : sequence of str
        Its cells.

    Raises
    ------
    RowError
        For the first cell that is not of the kind.

    Examples
    --------
    >>> convert("similarity", "number", ["0.5", "", " 5e-1"])
    array([0.5, nan, 0.5])
    >>> convert("left", "id", ["1", "20"]), convert("left", "id", ["1", "020"])
    (array([ 1, 20]), array(['1', '020'], dtype='<U3'))
    """
    if kind == "id":
        return _ids(name, cells)
    return as_text(name, cells) if kind == "text" else _numbers(name, cells)


def _ids(name: str, cells: Sequence[str]) -> Ids:
    try:
        integers = [int(cell) for cell in cells]
        # Python also reads 007, +7 and 1_000, which are not the text of an integer.
        if list(map(str, integers)) == list(cells):
            return np.array(integers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return as_ids(name, cells)


def _numbers(name: str, cells: Sequence[str]) -> NDArray[np.float64]:
    # Python's float also reads 1_000, nan, the digits of other scripts and odd spaces.
    if _NUMERALS.fullmatch("".join(cells)):
        try:
            values = np.array([float(cell) if cell else math.nan for cell in cells])
        except ValueError:
            pass
        else:
            if not np.isinf(values).any():
                return values
    return np.array([_number(name, row, cell) for row, cell in enumerate(cells)])


def _number(name: str, row: int, cell: str) -> float:
    text = cell.strip(" \t")
    if not text:
        return math.nan
    if _NUMBER.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    bare = text.lstrip("+-").lower()
    if bare in ("inf", "infinity") or _NUMBER.fullmatch(text):
        raise RowError(row, f"{name} is {shown(text)}, not a finite number")
    if bare in _MISSING_WORDS:
        raise RowError(row, f"{name} is {shown(text)}; leave the cell empty where it is not given")
    raise RowError(row, f"{name} is {shown(text)}, not a number")
