"""Convert cells to values, and tell what the columns of items hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    LISTED,
    MISSING_WORDS,
    Floats,
    RowError,
    TableError,
    as_text,
    first_rows,
    quote,
)
from pairlearn.io.items import as_features
from pairlearn.judgements.kinds import column_of_word

#: What a column holds: ids, numbers (NaN is missing), or words and text ("" is missing).
#:
#: In columns of numbers and of words, those in `MISSING_WORDS` are also missing.
Cells: TypeAlias = Literal["id", "number", "word", "text"]
ColumnKind: TypeAlias = Literal["number", "boolean", "date", "category", "text", "image"]
COLUMN_KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
#: Kinds that a column of a table can have; images are in a folder.
IN_TABLES = COLUMN_KINDS[:-1]
BOOLEANS = dict.fromkeys(("true", "yes", "t", "y", "1"), True) | dict.fromkeys(
    ("false", "no", "f", "n", "0"), False
)
#: Columns by name: numbers (NaN is missing; dates are days since 1970) or text ("" is missing).
Values: TypeAlias = dict[str, NDArray[Any]]
_EXPECTED = {"number": "numbers", "word": "text", "text": "text"}
NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.ASCII | re.IGNORECASE
)
#: Colours, height and width to which images are resized.
PIXELS = (3, 32, 32)
#: Categories of a column with a feature each.
MOST_CATEGORIES = 50
#: Numbers and dates written for people: 1,5 and 30%, 31.12.2024 and 12/31/2024.
_NOTATIONS = {
    "dates": re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}"),
    "numbers": re.compile(r"[$€£¥]?\s*[+-]?[0-9][0-9.,'\s]*[%$€£¥]?"),
}
#: Names of columns without one, such as the index of a data frame that was written with it.
UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
_ID_NAME = re.compile(r"(^|[^a-z])(uu|gu)?id$|[a-z]I[dD]$")


def text_array(cells: Iterable[str]) -> Any:
    """Cells as an Arrow array, null where they are empty."""
    import pyarrow

    return pyarrow.array([cell or None for cell in cells], pyarrow.string())


def convert(
    name: str, kind: Cells, cells: Any, *, typed: bool = False, empty: bool = False
) -> NDArray[Any]:
    """Convert a column of cells to an array of its kind; RowError for a cell of another kind.

    Numbers and words may have spaces around them, and an empty number is NaN; ids and text are
    kept as they are. Cells are text or an Arrow array. With `typed`, text is never parsed as
    numbers; `empty` admits ids that are "".

    Examples
    --------
    >>> convert("similarity", "number", ["0.5", "NA", " 5e-1"])
    array([0.5, nan, 0.5])
    >>> convert("left", "id", ["1", "20"]), convert("left", "id", ["1", "020"])
    (array([ 1, 20]), array(['1', '020'], dtype='<U3'))
    """
    import pyarrow
    from pyarrow import types

    column = _decode(cells if isinstance(cells, pyarrow.Array) else text_array(cells))
    if kind == "id":
        column = id_cells(name, column)
        if column.null_count and not empty:
            row = int(np.asarray(column.is_null()).argmax())
            raise RowError(row, f"{name} is empty; every row needs it")
        if not (column.null_count or (typed and _is_text(column.type))):
            with suppress(pyarrow.ArrowInvalid):  # text is integers if all of it is, in plain form
                integers = column.cast(pyarrow.int64())
                if integers.cast(column.type).equals(column):
                    return np.array(integers.to_numpy())
        return _to_text(name, column.cast(pyarrow.string()), empty=empty)
    column = _integers(column) if kind == "text" else column
    if types.is_boolean(column.type):
        column = column.cast(pyarrow.int8())
    text, whole = _is_text(column.type), types.is_integer(column.type)
    number = whole or types.is_floating(column.type)
    fits = number or (text and not typed) if kind == "number" else text or whole
    if not fits and not types.is_null(column.type):
        raise RowError(
            None, f"column {name!r} has the type {column.type}; it must hold {_EXPECTED[kind]}"
        )
    if kind == "number":
        if text:
            return _parse_numbers(name, column)
        return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    column = null_missing(column) if kind == "word" else column
    return _to_text(name, column.cast(pyarrow.string()), empty=True)


def id_cells(name: str, cells: Any) -> Any:
    """An Arrow array of ids as 64-bit integers or text, null where empty; RowError for others."""
    import pyarrow
    from pyarrow import compute, types

    column = _integers(_decode(cells))
    if types.is_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        for row in first_rows(values > np.iinfo(np.int64).max):
            raise RowError(row, f"{name} is {column[row]}, too large for int64; give ids as text")
        return column.cast(pyarrow.int64())
    if not _is_text(column.type) and not types.is_null(column.type):
        raise RowError(
            None, f"column {name!r} has the type {column.type}; it must hold integers or text"
        )
    text = column.cast(pyarrow.string())
    return compute.if_else(compute.equal(text, ""), pyarrow.scalar(None, text.type), text)


def _decode(column: Any) -> Any:
    """An Arrow array that may be a dictionary as one of plain values."""
    from pyarrow import types

    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _integers(column: Any) -> Any:
    """Floating numbers as integers if all are whole: so pandas stores integers with gaps."""
    import pyarrow

    if pyarrow.types.is_floating(column.type):
        with suppress(pyarrow.ArrowInvalid):
            return column.cast(pyarrow.int64())
    return column


def _is_text(type_: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(type_) or types.is_large_string(type_))


def _to_text(name: str, column: Any, *, empty: bool) -> NDArray[Any]:
    """Text as a checked array; each word once, since most ids and annotators recur."""
    encoded = column.fill_null("").dictionary_encode()
    rows = np.asarray(encoded.indices)
    try:
        return np.asarray(as_text(name, encoded.dictionary.to_pylist(), empty=empty)[rows])
    except RowError as error:
        raise RowError(first_rows(rows == error.row)[0], error.text) from None


def null_missing(column: Any) -> Any:
    """Strip the text of an Arrow array, with null where it stands for a missing value."""
    import pyarrow
    from pyarrow import compute

    column = _decode(column)
    if not _is_text(column.type):
        return column
    words = compute.utf8_trim_whitespace(column)
    missing = compute.is_in(compute.utf8_lower(words), pyarrow.array(["", *MISSING_WORDS]))
    return compute.if_else(missing, pyarrow.scalar(None, words.type), words)


def _parse_numbers(name: str, column: Any) -> Floats:
    """Parse text as numbers; the rows that pyarrow cannot parse are found one by one."""
    import pyarrow

    column = null_missing(column)
    with suppress(pyarrow.ArrowInvalid):
        values: Floats = np.array(column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))
        if np.isfinite(values).sum() + column.null_count == len(values):
            return values
    numbers, problems = [], []
    for row, cell in enumerate(column.to_pylist()):
        if cell is None or (NUMBER.fullmatch(cell) and math.isfinite(float(cell))):
            numbers.append(math.nan if cell is None else float(cell))
        else:
            problems.append((row, _not_a_number(name, cell)))
            if len(problems) == LISTED:
                break
    if problems:
        raise RowError.listing(problems)
    return np.array(numbers)


def _not_a_number(name: str, text: str) -> str:
    """What is wrong with a cell that is no finite number."""
    if NUMBER.fullmatch(text):
        return f"{name} is {quote(text)}, not a finite number"
    point = text.replace(",", ".").replace("\N{MINUS SIGN}", "-")
    hint = f": write {point}" if NUMBER.fullmatch(point) else ""
    if (column := column_of_word(text.lower(), name)) is not None:
        hint = f": put words into a column {column!r}"
    return f"{name} is {quote(text)}, not a number{hint}"


def read_values(kinds: Mapping[str, ColumnKind], cells: Mapping[str, Any]) -> Values:
    """Convert the cells of columns, which are Arrow arrays, to values of their kinds."""
    return {name: read_cells(name, kind, cells[name]) for name, kind in kinds.items()}


def read_cells(name: str, kind: ColumnKind, cells: Any) -> NDArray[Any]:
    """Convert a column of cells, an Arrow array, to values of its kind; dates are days since 1970.

    Words such as NA are missing values of numbers, dates and booleans.
    """
    import pyarrow
    from pyarrow import compute, types

    if kind == "image":
        colours, height, width = PIXELS
        pixels = np.frombuffer(b"".join(cells.to_pylist()), np.uint8)
        images = pixels.reshape(-1, height, width, colours).transpose(0, 3, 1, 2)
        return images.astype(np.float32) / 255
    column = _decode(cells)
    if kind in ("category", "text"):
        words = _integers(column).cast(pyarrow.string()).fill_null("")
        text = compute.utf8_trim_whitespace(words)
        return np.asarray(text.to_numpy(zero_copy_only=False), dtype=object)
    if kind == "boolean" and _is_text(column.type):
        return _parse_words(name, column, _truth, "yes or no").astype(np.float32)
    if kind == "date" and _is_text(column.type):
        return _parse_words(name, column, _days, "a date such as 2024-05-31")
    if kind == "date":
        if not types.is_temporal(column.type) or types.is_time(column.type):
            raise RowError(None, f"column {name!r} has the type {column.type}; it must hold dates")
        stamps = column.cast(pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 86_400e6)
    if types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    return as_features([name], convert(name, "number", column)[:, None], gaps=True)[:, 0]


def _parse_words(
    name: str, column: Any, parse: Callable[[str], float | None], expected: str
) -> Floats:
    """Parse each distinct word once; `parse` returns None for one that is not `expected`."""
    encoded = null_missing(column).dictionary_encode()
    words = encoded.dictionary.to_pylist()
    values = [parse(word) for word in words]
    rows = np.asarray(encoded.indices.fill_null(len(words)))
    for place, value in enumerate(values):
        if value is None:
            row = first_rows(rows == place)[0]
            raise RowError(row, f"{name} is {quote(words[place])}, not {expected}")
    return np.asarray(np.array([*values, np.nan], np.float64)[rows])


def _days(word: str) -> float | None:
    try:
        date = datetime.fromisoformat(word)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86_400


def _truth(word: str) -> bool | None:
    return BOOLEANS.get(word.lower())


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a table of items are features, and what they hold.

    Parameters
    ----------
    columns : sequence of str
        The features; all columns but the id if empty.
    ignore : sequence of str
        Columns that are not features.
    kinds : mapping of str to str
        Kinds of some columns: "number", "boolean", "date", "category" or "text".

    Examples
    --------
    >>> ColumnChoice(ignore=["name"], kinds={"zip": "category"}).select(["name", "zip", "age"])
    ['zip', 'age']
    """

    columns: Sequence[str] = ()
    ignore: Sequence[str] = ()
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)

    def select(self, names: Sequence[str]) -> list[str]:
        """Select the features among the columns of a table."""
        for option in ("columns", "ignore", "kinds"):
            for name in getattr(self, option):
                if name not in names:
                    raise TableError(
                        f"{option}={name}: no such column; the columns are {list_names(names, 8)}"
                    )
        for name, kind in self.kinds.items():
            if kind not in IN_TABLES:
                raise TableError(f"kinds={name}:{kind}: a column is one of {', '.join(IN_TABLES)}")
        selected = [name for name in self.columns or names if name not in self.ignore]
        if not selected:
            raise TableError("no column is left to learn from")
        return selected

    def kinds_of(self, cells: Mapping[str, Any]) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
        """Tell the kinds of columns by some of their cells, with notes on those left out.

        Raises TableError, which names every column that cannot be used.
        """
        kinds: dict[str, ColumnKind] = {}
        unusable, left_out = {}, []
        for name, column in cells.items():
            if column.null_count == len(column):
                left_out.append(f"column {quote(name)} is empty, and left out")
                continue
            try:
                kind = self.kinds.get(name) or find_kind(name, column)
            except ValueError as error:
                unusable[name] = str(error)
                continue
            if kind not in ("number", "text") and not column.null_count and _count(column) == 1:
                left_out.append(f"column {quote(name)} has one value, and is left out")
                continue
            kinds[name] = kind
        if unusable:
            raise UnusableColumns(unusable)
        if not kinds:
            raise TableError(f"no features: {'; '.join(left_out)}")
        return kinds, tuple(left_out)


def no_name(name: str) -> str:
    """The note on a column whose name is `UNNAMED`."""
    return f"column {quote(name)} has no name, and is left out"


def list_names(names: Sequence[str], most: int = 5) -> str:
    """The names quoted for a message, cut after `most` of them, since more would not be read."""
    return ", ".join(map(quote, names[:most])) + ", …" * (len(names) > most)


class UnusableColumns(TableError):
    """Columns that cannot be learnt from, each with the reason."""

    def __init__(self, unusable: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{quote(name)} {reason}" for name, reason in unusable.items())
        super().__init__(
            f"cannot be learnt from: {reasons}. Correct this, leave the columns out (ignore=, "
            "--ignore; drop them from a data frame), or say what they hold (kinds=, --kinds)"
        )


def find_kind(name: str, column: Any) -> ColumnKind:
    """Tell the kind of a column by its type and its cells; ValueError for one like an id."""
    from pyarrow import types

    type_ = column.type
    if types.is_boolean(type_):
        return "boolean"
    if types.is_date(type_) or types.is_timestamp(type_):
        return "date"
    if types.is_dictionary(type_):
        if _is_text(type_.value_type):
            return "category"
        return find_kind(name, column.dictionary_decode())
    numeric = types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_)
    if not numeric and not _is_text(type_):
        raise ValueError(f"has the type {type_}")
    distinct = len(column) > 4 and _count(column) == len(column)
    kind: ColumnKind = "number"
    if not numeric:
        words = [word for cell in column.drop_null().to_pylist() if (word := cell.strip())]
        kind = _kind_of_words(words)
    if distinct and (kind == "category" or (kind == "number" and _ID_NAME.search(name))):
        raise ValueError("has a different value in every row, as an id does")
    return kind


def _kind_of_words(words: Sequence[str]) -> ColumnKind:
    """Tell the kind of a column of text.

    It holds numbers or dates if half of the words are such: the others are errors then. Words that
    recur are categories, and phrases are text.
    """
    known = [word for word in words if word.lower() not in MISSING_WORDS]
    # Digits with a zero before them are codes, such as zip codes.
    codes = any(re.fullmatch("0[0-9]+", word) for word in known)
    half = max(len(known) / 2, 1)
    if not codes and sum(NUMBER.fullmatch(word) is not None for word in known) >= half:
        return "number"
    if known and all(_truth(word) is not None for word in known):
        return "boolean"
    if sum(_days(word) is not None for word in known) >= half:
        return "date"
    for noun, notation in {} if codes else _NOTATIONS.items():
        if known and all(map(notation.fullmatch, known)):
            plain = "1.5, with a point" if noun == "numbers" else "2024-12-31"
            raise ValueError(f"holds {noun} such as {quote(known[0])}: write {noun} like {plain}")
    distinct = set(words)
    phrases = sum(len(word.split()) for word in distinct) >= 2 * len(distinct)
    if phrases and len(distinct) > min(len(words) // 2, MOST_CATEGORIES):
        return "text"
    return "category"


def _count(column: Any) -> int:
    """Number of distinct values."""
    return len(column.drop_null().unique())
