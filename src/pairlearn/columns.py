"""Checked columns of ids, text and numbers, with errors that say where they are.

Ids are 64-bit integers or numpy strings, compared exactly. Only the plain form of an integer is
one: ``7`` but not ``007``, ``+7`` or ``7.0``, which stay text so that no two ids coincide. Whole
numbers of a floating type are integers: so pandas stores those with gaps.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ids: TypeAlias = NDArray[np.int64] | NDArray[np.str_]

#: Most characters of an id: numpy stores every row at the width of the longest.
MAX_LENGTH = 256

#: Words that stand for an empty cell, in any case.
MISSING_WORDS = {"nan", "na", "n/a", "null", "none", "-", "?"}

#: Bad rows that one error lists: enough to see a pattern, and to fix a file in few runs.
LISTED = 10

#: Characters that not every format can hold, and halves of characters.
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class TableError(ValueError):
    """A table, or the file that it comes from, is invalid.

    The message names the file, the row (from 1, without the header), the column and the value, and
    says what to do.
    """

    __module__ = "pairlearn.io"  # where it is documented


class RowError(Exception):
    """An invalid row (from 0), or column (None), where the file is not known yet.

    ``others`` are further invalid rows, each with its text.
    """

    def __init__(self, row: int | None, text: str, others: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(text)
        self.row, self.text, self.others = row, text, others

    @classmethod
    def listing(cls, problems: Sequence[tuple[int, str]]) -> RowError:
        """The error for the first bad rows, at most `LISTED`."""
        by_row: dict[int, str] = {}
        for row, text in sorted(problems, key=lambda problem: problem[0]):
            by_row.setdefault(row, text)
        (row, text), *others = [*by_row.items()][:LISTED]
        return cls(row, text, others)


def numbered(keys: Indices) -> tuple[Indices, Indices]:
    """First rows of the different keys (n, k), and for each row which one it has.

    >>> [found.tolist() for found in numbered(np.array([[3, 4], [1, 2], [3, 4]]))]
    [[0, 1], [0, 1, 0]]
    """
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[number.ravel()]


def row_number(row: int | None) -> str:
    """The place of a row of an array, counted from 1."""
    return "the column" if row is None else f"row {row + 1}"


@contextmanager
def locate_errors(place: Callable[[Any], str] = row_number, start: int = 0) -> Iterator[None]:
    """Turn a `RowError` within a block into a `TableError` that says where it is.

    ``place`` describes a row, as in ``"pairs.csv, row 2"``; ``start`` rows precede those of the
    block.
    """
    try:
        yield
    except RowError as error:
        where = place(None if error.row is None else start + error.row)
        more = "".join(f"\n  row {start + row + 1}: {text}" for row, text in error.others)
        raise TableError(f"{where}: {error.text}{more and '. Also:' + more}") from None


def quote(value: object) -> str:
    """Format a value for a message: text in quotes, cut if it is long, and no endless digits."""
    if isinstance(value, str):
        return repr(str(value) if len(value) <= 40 else value[:30] + "…")
    if isinstance(value, int) and abs(value) > 10**40:  # Python prints no more than 4,300 digits
        return f"about {'-' * (value < 0)}1e{math.log10(abs(value)):.0f}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def first_rows(bad: Any, most: int = 1) -> list[int]:
    """The first bad rows, at most `most`; empty if there is none."""
    if most > 1:
        return [int(row) for row in np.flatnonzero(bad)[:most]]
    return [int((1 * bad).argmax())] if bad.any() else []  # torch has no argmax of booleans


def as_ids(name: str, values: Any, *, empty: bool = False) -> Ids:
    """Values as a column of ids: integers, or text if any is text; `empty` admits "".

    Raises TableError for other types, such as booleans, and RowError for a value that is empty,
    no whole number, or cannot be stored in a file.

    Examples
    --------
    >>> as_ids("left", [3, 1]), as_ids("left", [3.0, 1.0])
    (array([3, 1]), array([3, 1]))
    >>> as_ids("left", [3, "a"])
    array(['3', 'a'], dtype='<U1')
    """
    array = whole_numbers(np.asarray(values))
    if array.dtype.kind not in "iu" or array.ndim != 1:
        return as_text(name, values, empty=empty)
    for row in first_rows(array > np.iinfo(np.int64).max):
        raise RowError(row, f"{name} is {array[row]}, too large for int64; give ids as text")
    return array.astype(np.int64, copy=False)


def as_text(name: str, values: Any, *, empty: bool = True) -> NDArray[np.str_]:
    """Values as a column of text, where "" means "not given"."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise TableError(f"{name} must have shape (n,); got {array.shape}")
    # Before conversion: a numpy string has lost a NUL at its end.
    try:
        cells = [whole_number(cell) for cell in np.asarray(values, object)]
    except SystemError:  # numpy can hold what Python cannot
        raise RowError(None, f"{name} is not Unicode text; write the file again") from None
    for row, cell in enumerate(cells):
        if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, (str, int, np.integer)):
            actual = f"{quote(cell)}, of {type(cell).__name__}"
            raise RowError(row, f"{name} is {actual}; give integers or text")
    text = [str(cell) for cell in cells]
    check_text(name, text, empty=empty)
    return np.asarray(text, np.str_)


def whole_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Integers for numbers, also as objects, if all of them are whole; else the array as it is."""
    if array.dtype.kind == "O":
        cells = [whole_number(value) for value in array.ravel()]
        if any(isinstance(c, bool) or not isinstance(c, (int, np.integer)) for c in cells):
            return array
        integers = np.asarray(cells).reshape(array.shape)
        return integers if integers.dtype.kind == "i" else array
    if array.dtype.kind == "f" and (array == np.round(array)).all():
        # Half precision has no 2⁶³.
        return array.astype(np.int64) if (abs(array.astype(float)) < 2.0**63).all() else array
    return array


def without_gaps(array: NDArray[Any]) -> NDArray[Any]:
    """An array with NaN for the missing values of pandas, which only objects hold."""
    if array.dtype.kind != "O":
        return array
    cells = [np.nan if _is_gap(value) else value for value in array.ravel()]
    replaced = np.empty(array.size, dtype=object)
    replaced[:] = cells
    return replaced.reshape(array.shape)


def _is_gap(value: Any) -> bool:
    """Whether a value is the missing one of pandas, which need not be imported."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and value is pandas.NA


def whole_number(value: Any) -> Any:
    """An integer for a floating number that is whole, "" for a missing value; else the value.

    Examples
    --------
    >>> [whole_number(value) for value in (7.0, 7.5, "7.0", None)]
    [7, 7.5, '7.0', '']
    """
    if value is None or _is_gap(value):
        return ""
    if isinstance(value, (float, np.floating)):
        return "" if value != value else int(value) if value.is_integer() else value
    return value


def check_text(name: str, text: Iterable[str], *, empty: bool) -> None:
    """Raise RowError for text that is empty, too long, or cannot be stored in every file format."""
    for row, cell in enumerate(text):
        if not cell and not empty:
            raise RowError(row, f"{name} is empty; every row needs it")
        if len(cell) > MAX_LENGTH:
            problem = f"has {len(cell)} characters; at most {MAX_LENGTH} are allowed"
            raise RowError(row, f"{name} {problem}")
        if _CONTROL.search(cell):
            raise RowError(row, f"{name} is {quote(cell)}, with a control character; remove it")


def unify_ids(columns: Sequence[Ids]) -> list[Ids]:
    """The columns as they are if all have one type, otherwise as text, 7.0 as "7"."""
    if len({column.dtype.kind for column in columns}) < 2:
        return list(columns)
    return [
        np.array([str(whole_number(one)) for one in column.tolist()], np.str_)
        if column.dtype.kind == "f"
        else column.astype(np.str_)
        for column in columns
    ]


def check_unique(name: str, ids: Ids) -> None:
    """Raise RowError at the second occurrence of an id, naming the row of the first."""
    order = np.argsort(ids, kind="stable")
    equal = ids[order[1:]] == ids[order[:-1]]
    if equal.any():
        second, first = min(zip(order[1:][equal].tolist(), order[:-1][equal].tolist(), strict=True))
        value = quote(ids[second].item())
        raise RowError(second, f"{name} {value} is in row {first + 1} already; ids are unique")


def find_rows(wanted: Ids, ids: Ids) -> NDArray[np.int64]:
    """Position of each wanted id among unique ids, −1 if it is missing."""
    wanted, ids = unify_ids([wanted, ids])
    if len(ids) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    ordered: Any = ids[order]
    places = np.minimum(np.searchsorted(ordered, wanted), len(ids) - 1)
    return np.where(ordered[places] == wanted, order[places], -1).astype(np.int64)


def unknown_id(name: str, value: Any, known: Ids) -> str:
    """The message for an id that is not among those known, with a similar one if there is one.

    Examples
    --------
    >>> unknown_id("left", 7, np.array(["007", "008"]))
    "left 7 (they have '007': write ids alike) is not among the items"
    """
    near = similar_id(value, known)
    hint = "" if near is None else f" (they have {near}: write ids alike)"
    return f"{name} {quote(value)}{hint} is not among the items"


def similar_id(value: Any, known: Ids) -> str | None:
    """The first id that differs only in case, spaces around it, leading zeros or ".0", quoted."""

    def bare(name: Any) -> str:
        return str(name).strip().lower().removesuffix(".0").lstrip("0")

    wanted = bare(value)
    return next((quote(name) for name in known.tolist() if bare(name) == wanted), None)


def two_classes(name: str, values: NDArray[Any], positive: Any = None) -> NDArray[Any]:
    """The two classes among values, the positive one last.

    The larger of two numbers is positive unless `positive` says otherwise; other classes need
    `positive`. Messages start with `name`.

    Examples
    --------
    >>> two_classes("the classes", np.array(["ham", "spam", "ham"]), positive="ham").tolist()
    ['spam', 'ham']
    """
    classes, numeric = np.unique(values), values.dtype.kind in "iufb"
    if len(classes) not in (1, 2):
        raise ValueError(f"{name} must be two; got {classes[:5].tolist()}")
    if len(classes) == 1 and numeric and classes[0] in (-1, 0, 1):
        classes = np.array([0, 1] if classes[0] == 0 else [-1, 1])
    if len(classes) == 1:
        only = quote(classes[0].item())
        advice = "give items of both classes, or call them -1 and 1"
        raise ValueError(f"{name} are all {only}: {advice}")
    names = classes.tolist()
    if positive is None and not numeric:
        raise ValueError(
            f"{name} are {names[0]!r} and {names[1]!r}: say which one is positive, as in "
            f"positive={names[1]!r}"
        )
    if positive in (None, names[1], str(names[1])):
        return classes
    if positive in (names[0], str(names[0])):
        return classes[::-1].copy()
    raise ValueError(
        f"{name} are {names[0]!r} and {names[1]!r}: the positive class {positive} is neither"
    )


def check_share(name: str, value: float | None, *, ends: str = "()") -> None:
    """Raise ValueError for a number outside an interval such as [0, 1), "[)"; None is admitted."""
    admitted = {end for end, bracket in zip((0, 1), ends, strict=True) if bracket in "[]"}
    if value is not None and not (0 < value < 1 or value in admitted):
        raise ValueError(f"{name} must lie in {ends[0]}0, 1{ends[1]}; got {value:g}")


def check_confidence(confidence: float) -> None:
    """Raise ValueError for a confidence outside (0, 1)."""
    if not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")


def check_integer(name: str, value: Any, least: int) -> None:
    """Raise ValueError for a value that is not an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")


def as_column(name: str, values: Any, n: int) -> Floats:
    """Values as floats of shape (n,), none missing."""
    column = as_floats(values)
    if column.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one for each pair; got {column.shape}")
    for row in first_rows(np.isnan(column)):
        raise ValueError(f"{name} is NaN in row {row}")
    return column


def as_weights(weight: Any, n: int) -> Floats:
    """Weights (n,) scaled to a mean of one; None stands for equal weights."""
    if weight is None:
        return np.ones(n)
    column = as_column("weight", weight, n)
    for row in first_rows(~(np.isfinite(column) & (column > 0))):
        raise ValueError(
            f"weight must be positive and finite; row {row} is {column[row]:g}: "
            "drop pairs that should not count"
        )
    # Divided by the largest first, so that the sum of huge weights does not overflow.
    relative = column / column.max()
    return np.asarray(relative * (n / relative.sum()))


def as_floats(values: Any) -> Floats:
    """Values, perhaps a tensor on another device, as an array of float64."""
    if is_tensor(values):
        values = values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def is_tensor(values: Any) -> TypeGuard[Tensor]:
    """Whether values are a torch tensor, without importing torch."""
    return isinstance(values, getattr(sys.modules.get("torch"), "Tensor", ()))
