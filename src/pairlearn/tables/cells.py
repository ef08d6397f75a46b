"""Cells as values; what columns of items hold, found from their cells or said."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    MAX_LENGTH,
    Floats,
    RowError,
    TableError,
    as_ids,
    as_text,
    first_rows,
    quote,
    too_long,
)
from pairlearn.tables.items import as_features

Kind: TypeAlias = Literal["id", "number", "word", "text"]
"""What a column holds: ids, numbers (NaN = not given), or words and text ("" = not given).

Of numbers and words, those in `MISSING_WORDS` are not given either.
"""
ColumnKind: TypeAlias = Literal["number", "boolean", "date", "category", "text", "image"]
KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
IN_TABLES = KINDS[:-1]
"""What a column of a table can be said to hold; images are in a folder."""
BOOLEANS = dict.fromkeys(("true", "yes", "t", "y", "1"), True) | dict.fromkeys(
    ("false", "no", "f", "n", "0"), False
)
Values: TypeAlias = dict[str, NDArray[Any]]
"""Columns by name: numbers (NaN is a gap; of a date, days since 1970) or text ("" is a gap)."""
_WANTED = {"id": "integers or text", "number": "numbers", "word": "text", "text": "text"}
NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.ASCII | re.IGNORECASE
)
MISSING_WORDS = {"nan", "na", "n/a", "null", "none", "-", "?"}
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+", re.ASCII)
PIXELS = (3, 32, 32)
"""Colours, height and width of an image as it is learnt from."""
MOST_CATEGORIES = 50
"""Those that are a feature each."""
_NOTATIONS = {
    "dates": re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}"),
    "numbers": re.compile(r"[$€£¥]?\s*[+-]?[0-9][0-9.,'\s]*[%$€£¥]?"),
}
"""How people write what is plain in files: 1,5 and 30%, 31.12.2024 and 12/31/2024."""
_FILE_NAME = re.compile(r".+\.(png|jpe?g|gif|bmp|tiff?|webp|txt|md)", re.IGNORECASE)
_ID_NAME = re.compile(r"(^|[^a-z])(uu|gu)?id$|[a-z]I[dD]$")


def text_array(cells: Iterable[str]) -> Any:
    """Cells as an Arrow array, null where they are empty."""
    import pyarrow

    return pyarrow.array([cell or None for cell in cells], pyarrow.string())


def convert(
    name: str, kind: Kind, cells: Any, *, typed: bool = False, empty: bool = False
) -> NDArray[Any]:
    """A column of cells as an array of its kind; RowError for a cell of another kind.

    Numbers and words may have spaces around them, and an empty number is NaN; ids and text are
    taken as they are. Cells are text or an Arrow array; `typed` takes text for text, never for a
    number, and `empty` admits ids that are "".

    Examples
    --------
    >>> convert("similarity", "number", ["0.5", "NA", " 5e-1"])
    array([0.5, nan, 0.5])
    >>> convert("left", "id", ["1", "20"]), convert("left", "id", ["1", "020"])
    (array([ 1, 20]), array(['1', '020'], dtype='<U3'))
    """
    import pyarrow
    from pyarrow import compute, types

    column = cells if isinstance(cells, pyarrow.Array) else text_array(cells)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = column.type in (pyarrow.string(), pyarrow.large_string())
    whole = types.is_integer(column.type)
    number = whole or types.is_floating(column.type) or types.is_boolean(column.type)
    fits = (number or (not typed and text)) if kind == "number" else text or whole
    if not fits and not types.is_null(column.type):
        wanted = f"has the type {column.type}; it must hold {_WANTED[kind]}"
        raise RowError(None, f"column {name!r} {wanted}")
    column = given(column) if kind == "word" else column
    if kind == "number":
        if text:
            return _parsed(name, column)
        if types.is_boolean(column.type):
            column = column.cast(pyarrow.int8())
        return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if kind == "id" and column.null_count and not empty:
        row = int(np.asarray(column.is_null()).argmax())
        raise RowError(row, f"{name} is empty; every row needs it")
    if kind == "id" and whole and not column.null_count:
        return as_ids(name, column.to_numpy(zero_copy_only=False))
    if kind == "id" and text and not typed and not column.null_count:
        with suppress(pyarrow.ArrowInvalid):
            integers = column.cast(pyarrow.int64())
            if integers.cast(pyarrow.string()).equals(column):
                return np.array(integers.to_numpy())
    # Every word once: most ids and annotators are in many rows.
    encoded = column.cast(pyarrow.string()).fill_null("").dictionary_encode()
    rows, words = np.asarray(encoded.indices), encoded.dictionary
    lengths = np.asarray(compute.utf8_length(words))
    try:
        # Before numpy gives every word the room of the longest.
        for word in first_rows(lengths > MAX_LENGTH):
            raise too_long(name, word, int(lengths[word]))
        found = as_text(name, words.to_pylist(), empty=empty or kind != "id")
    except RowError as error:
        raise RowError(first_rows(rows == error.row)[0], error.text) from None
    return np.asarray(found[rows])


def given(column: Any) -> Any:
    """Cells of an Arrow array: words without spaces around them, null if they stand for a gap."""
    import pyarrow
    from pyarrow import compute, types

    column = column.dictionary_decode() if types.is_dictionary(column.type) else column
    if column.type not in (pyarrow.string(), pyarrow.large_string()):
        return column
    words = compute.utf8_trim_whitespace(column)
    missing = compute.is_in(compute.utf8_lower(words), pyarrow.array(["", *MISSING_WORDS]))
    return compute.if_else(missing, pyarrow.scalar(None, words.type), words)


def _parsed(name: str, column: Any, *, trimmed: bool = False) -> Floats:
    """Text as numbers; only where pyarrow does not see any, gaps and spaces are looked for."""
    import pyarrow

    with suppress(pyarrow.ArrowInvalid):
        values: Floats = np.array(column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))
        if np.isfinite(values).sum() + column.null_count == len(values):
            return values
    if not trimmed:
        return _parsed(name, given(column), trimmed=True)
    return np.array([_number(name, row, cell) for row, cell in enumerate(column.to_pylist())])


def _number(name: str, row: int, text: str | None) -> float:
    if text is None:
        return math.nan
    if NUMBER.fullmatch(text):
        if math.isfinite(value := float(text)):
            return value
        raise RowError(row, f"{name} is {quote(text)}, not a finite number")
    point = text.replace(",", ".")
    hint = f": write {point}" if NUMBER.fullmatch(point) else ""
    if THOUSANDS.fullmatch(text):
        hint = ": write it without a comma"
    raise RowError(row, f"{name} is {quote(text)}, not a number{hint}")


def read_values(kinds: Mapping[str, ColumnKind], cells: Mapping[str, Any]) -> Values:
    """What is in the cells of some columns, which are Arrow arrays, by their kinds."""
    return {name: read_cells(name, kind, cells[name]) for name, kind in kinds.items()}


def read_cells(name: str, kind: ColumnKind, cells: Any) -> NDArray[Any]:
    """A column of cells, an Arrow array, as values of its kind; dates are days since 1970-01-01.

    Words such as NA are gaps where numbers, dates or yes and no are wanted.
    """
    import pyarrow
    from pyarrow import compute, types

    if kind == "image":
        colours, height, width = PIXELS
        pixels = np.frombuffer(b"".join(cells.to_pylist()), np.uint8)
        found = pixels.reshape(-1, height, width, colours).transpose(0, 3, 1, 2)
        return found.astype(np.float32) / 255
    column = cells.dictionary_decode() if types.is_dictionary(cells.type) else cells
    if kind in ("category", "text"):
        if (
            types.is_floating(column.type)
            and compute.all(compute.equal(compute.round(column), column)).as_py()
        ):
            column = column.cast(pyarrow.int64())  # numbers with gaps, as pandas has them
        text = compute.utf8_trim_whitespace(column.cast(pyarrow.string()).fill_null(""))
        return np.asarray(text.to_numpy(zero_copy_only=False), dtype=object)
    if types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    if kind == "boolean" and _is_text(column.type):
        return _each(name, given(column), _truth, "yes or no").astype(np.float32)
    if kind == "date":
        if _is_text(column.type):
            return _each(name, given(column), _days, "a date such as 2024-05-31")
        if not types.is_temporal(column.type) or types.is_time(column.type):
            raise RowError(None, f"column {name!r} has the type {column.type}; it must hold dates")
        stamps = column.cast(pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 86_400e6)
    return _numbers(name, column)


def _numbers(name: str, column: Any) -> NDArray[np.float32]:
    numbers = convert(name, "number", column)
    return as_features([name], numbers[:, None], gaps=True)[:, 0]


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _each(name: str, words: Any, parse: Any, wanted: str) -> Floats:
    """Every word once, since many are in several rows."""
    encoded = words.dictionary_encode()
    numbers = [parse(word) for word in encoded.dictionary.to_pylist()]
    rows = np.asarray(encoded.indices.fill_null(len(numbers)))
    for place, number in enumerate(numbers):
        if number is None:
            cell = quote(encoded.dictionary[place].as_py())
            raise RowError(first_rows(rows == place)[0], f"{name} is {cell}, not {wanted}")
    values: Floats = np.array([*numbers, np.nan], np.float64)[rows]
    return values


def _days(word: str) -> float | None:
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        return None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
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
        Columns that are none.
    kinds : mapping of str to str
        What some columns hold: "number", "boolean", "date", "category" or "text".

    Examples
    --------
    >>> ColumnChoice(ignore=["name"], kinds={"zip": "category"}).named(["name", "zip", "age"])
    ['zip', 'age']
    """

    columns: Sequence[str] = ()
    ignore: Sequence[str] = ()
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)

    def named(self, names: Sequence[str]) -> list[str]:
        """The columns to look at, of those that a table has."""
        for option in ("columns", "ignore", "kinds"):
            for name in getattr(self, option):
                if name not in names:
                    have = ", ".join(map(quote, names[:8])) + ", …" * (len(names) > 8)
                    raise TableError(f"{option}={name}: no such column; the columns are {have}")
        for name, kind in self.kinds.items():
            if kind not in IN_TABLES:
                wanted = ", ".join(IN_TABLES)
                raise TableError(f"kinds={name}:{kind}: a column is one of {wanted}")
        chosen = [name for name in self.columns or names if name not in self.ignore]
        if not chosen:
            raise TableError("no column is left to learn from")
        return chosen

    def kinds_of(
        self, cells: Mapping[str, Any], *, typed: bool = False
    ) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
        """What columns hold, by some of their cells, and notes on columns left out.

        Raises TableError, which names every column that cannot be used.
        """
        found: dict[str, ColumnKind] = {}
        unusable, empty, said = {}, [], []
        for name, column in cells.items():
            if column.null_count == len(column):
                empty.append(f"column {quote(name)} is empty, and left out")
                continue
            try:
                kind = self.kinds.get(name) or find_kind(name, column, typed=typed)
            except ValueError as error:
                unusable[name] = str(error)
                continue
            if kind not in ("number", "text") and not column.null_count and _count(column) == 1:
                empty.append(f"column {quote(name)} has one value, and is left out")
            else:
                found[name] = kind
                if kind == "number" and name not in self.kinds and _counts_up(column):
                    said.append(
                        f"column {quote(name)} counts the rows, and is learnt from as a number: "
                        f"leave it out by ignore={name} if it only names them"
                    )
        refuse_columns(unusable)
        if not found:
            raise TableError(f"no features: {'; '.join(empty)}")
        return found, tuple(empty + said)


def refuse_columns(unusable: Mapping[str, str]) -> None:
    """Say of every column that cannot be used why, and what to do about all."""
    if unusable:
        said = "; ".join(f"{quote(name)} {why}" for name, why in unusable.items())
        them, they = ("it", "it holds") if len(unusable) == 1 else ("them", "they hold")
        raise TableError(
            f"cannot be learnt from: {said}. Drop {them}: ignore={','.join(unusable)}; or say what "
            f"{they}: kinds={next(iter(unusable))}:category"
        )


def find_kind(name: str, column: Any, *, typed: bool = False) -> ColumnKind:
    """What a column holds, by its type and its cells.

    Text is numbers or dates if half of it is: the rest are errors then. Words that recur are
    categories, and phrases are text. ValueError for a column like an id.
    """
    from pyarrow import types

    kind = column.type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_dictionary(kind):
        return (
            "category"
            if _is_text(kind.value_type)
            else find_kind(name, column.dictionary_decode(), typed=typed)
        )
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if not numeric and not _is_text(kind):
        raise ValueError(f"has the type {kind}")
    distinct = len(column) > 4 and _count(column) == len(column)
    if not numeric:
        cells = [word for cell in column.drop_null().to_pylist() if (word := cell.strip())]
        known = [cell for cell in cells if cell.lower() not in MISSING_WORDS]
        numbers = sum(NUMBER.fullmatch(cell) is not None for cell in known)
        # Where columns have types, digits with a zero before them are codes.
        codes = typed and any(re.fullmatch("0[0-9]+", cell) for cell in known)
        numeric = not codes and 2 * numbers >= len(known) > 0
        if not numeric:
            if known and all(_truth(cell) is not None for cell in known):
                return "boolean"
            if 2 * sum(_days(cell) is not None for cell in known) >= len(known) > 0:
                return "date"
            for what, notation in _NOTATIONS.items():
                if known and not codes and all(map(notation.fullmatch, known)):
                    plain = "1.5" if what == "numbers" else "2024-12-31"
                    raise ValueError(
                        f"holds {what} such as {quote(known[0])}: write them as {plain}"
                    )
            counts = Counter(cells)
            phrases = sum(len(cell.split()) for cell in counts) >= 2 * len(counts)
            if phrases and len(counts) > min(len(cells) // 2, MOST_CATEGORIES):
                return "text"
    if distinct and not numeric and all(map(_FILE_NAME.fullmatch, cells)):
        raise ValueError("holds names of files: give their folder in place of the table")
    if distinct and (not numeric or _ID_NAME.search(name)):
        raise ValueError("has another value in every row, as an id has")
    return "number" if numeric else "category"


def _counts_up(column: Any) -> bool:
    """Whether numbers are those of the rows, each one more than the last."""
    try:
        numbers = _numbers("", column).astype(np.float64)
    except RowError:
        return False
    return len(numbers) > 20 and bool((np.diff(numbers) == 1).all())


def _count(column: Any) -> int:
    """How many different values there are."""
    return len(column.drop_null().unique())
