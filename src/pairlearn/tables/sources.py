"""CSV and Parquet files as batches of columns, and what their cells mean.

pyarrow reads unambiguous lines of CSV: UTF-8, no quotes, NUL or lone carriage returns, each as long
as the header. It would accept unclosed cells and text after a closing quote, so Python's csv module
reads all other lines, and finds what is wrong. Messages count rows from 1, without the header.
"""

from __future__ import annotations

import csv
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, TypeAlias, TypeVar

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
    placed,
    same_kind,
    shown,
    too_long,
)

Kind: TypeAlias = Literal["id", "number", "word", "text"]
"""What a column holds: ids, numbers (NaN = not given), or words and text ("" = not given).

Of numbers and words, those in `MISSING_WORDS` are not given either.
"""
Columns: TypeAlias = dict[str, Any]
Table = TypeVar("Table")

BATCH = 8192
"""Rows that the csv module reads at once."""
BLOCK = 1 << 23
"""Bytes that pyarrow is given at once."""
MAX_LINE = 1 << 24
"""Bytes of a line: what is longer is no table, and must not fill the memory."""
MAX_CELL = 131072
"""Characters of a cell, as the csv module has it."""
ROWS = 65536
"""Rows of Parquet that are read at once."""

_BOM = b"\xef\xbb\xbf"
_WANTED = {"id": "integers or text", "number": "numbers", "word": "text", "text": "text"}
NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.ASCII | re.IGNORECASE
)
MISSING_WORDS = {"nan", "na", "n/a", "null", "none", "-", "?"}
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+", re.ASCII)
_CSV_ERRORS = {
    "unexpected end": "a quoted cell is never closed",
    "field larger": f"a cell has more than {MAX_CELL} characters; is a quoted cell never closed?",
    "expected after": "text after the closing quote of a cell; double the quotes inside it",
    "new-line": "a carriage return inside a line; end lines with LF or CRLF",
}


class Source(ABC):
    """A file as batches of columns, which are Arrow arrays.

    ``names`` is the header, stripped; ``typed`` is false where all cells are text.
    """

    path: Path
    names: list[str]
    typed: ClassVar[bool]

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """The columns asked for, some rows at a time."""

    def place(self, row: int | None) -> str:
        """Where a data row is, counted from 0; None is the file."""
        return str(self.path) if row is None else f"{self.path}, row {row + 1}"

    def column(self, name: str, kind: Kind, cells: Any, *, empty: bool = False) -> NDArray[Any]:
        """A column of a batch as an array of its kind; see `convert`."""
        return convert(name, kind, cells, typed=self.typed, empty=empty)

    def tables(self, names: Sequence[str], build: Callable[[Columns], Table]) -> Iterator[Table]:
        """The batches of some columns as tables; errors say in which row they are."""
        row = 0
        for columns in self.batches(names):
            with placed(self.place, row):
                table = _built(build, columns)
            yield table
            row += len(columns[names[0]])
        if row == 0:
            raise TableError(f"{self.path} has a header but no rows")

    def whole(self, names: Sequence[str], build: Callable[[Columns], Columns]) -> Columns:
        """All rows of some columns; those of a batch become arrays by `build`."""
        parts = list(self.tables(names, build))
        return {name: np.concatenate(same_kind([p[name] for p in parts])) for name in parts[0]}

    def read(self, kinds: Mapping[str, Kind]) -> Columns:
        """All rows of some columns, each of its kind."""
        return self.whole(
            [*kinds],
            lambda cells: {name: self.column(name, kinds[name], cells[name]) for name in kinds},
        )


def _built(build: Callable[[Columns], Table], columns: Columns) -> Table:
    """A table, or the error of the earliest bad row, however rows are cut into batches."""
    try:
        return build(columns)
    except RowError as error:
        if error.row:
            _built(build, {name: column[: error.row] for name, column in columns.items()})
        raise


class CsvSource(Source):
    """A CSV file: UTF-8, commas, one header, no ragged rows."""

    typed = False

    def __init__(self, path: Path) -> None:
        self.path, self.names = path, []
        with path.open("rb") as file:
            file.seek(len(_BOM) if file.read(len(_BOM)) == _BOM else 0)
            header = next(self._records(file, 0), [])
            self._data = file.tell()
        if not header:
            raise TableError(f"{path} is empty")
        self.names = [name.strip() for name in header]

    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """The columns asked for, some rows at a time; those before a bad row come first."""
        at = {name: self.names.index(name) for name in names}
        row = 1
        with self.path.open("rb") as file:
            file.seek(self._data)
            while block := file.read(BLOCK):
                block += file.readline(MAX_LINE)
                columns = _plain_columns(block, len(self.names), at)
                if columns is None:
                    file.seek(-len(block), 1)
                    break
                row += len(next(iter(columns.values())))
                yield columns
            records, failure = self._records(file, row), None
            while failure is None:
                rows = []
                try:
                    for record in islice(records, BATCH):
                        rows.append(record)
                except TableError as error:
                    failure = error
                if not rows:
                    break
                cells = list(zip(*rows, strict=True))
                yield {name: text_array(cells[column]) for name, column in at.items()}
            if failure:
                raise failure

    def _records(self, file: BinaryIO, row: int) -> Iterator[list[str]]:
        """Records from here on; blank lines are none. Row 0 is the header."""
        reader = csv.reader(self._lines(file), strict=True)
        while True:
            try:
                cells = next(reader, None)
                if cells and self.names and len(cells) != len(self.names):
                    raise csv.Error(f"{len(cells)} cells, but the header has {len(self.names)}")
            except csv.Error as error:
                known = (text for part, text in _CSV_ERRORS.items() if part in str(error))
                place = f"row {row}" if row else "header"
                raise TableError(f"{self.path}, {place}: {next(known, str(error))}") from None
            if cells is None:
                return
            if cells:
                yield cells
                row += 1

    def _lines(self, file: BinaryIO) -> Iterator[str]:
        while raw := file.readline(MAX_LINE):
            try:
                text, bad = raw.decode(), raw.find(b"\0")
            except UnicodeDecodeError as error:
                text, bad = "", error.start
            if bad >= 0:
                byte = f"0x{raw[bad]:02x}, not UTF-8; save the file as UTF-8"
                what = byte if raw[bad] else "NUL; this is not a text file"
                raise csv.Error(f"byte {file.tell() - len(raw) + bad} is {what}")
            if len(raw) == MAX_LINE:
                raise csv.Error(f"longer than {MAX_LINE} bytes")
            yield text


def text_array(cells: Iterable[str]) -> Any:
    """Cells as an Arrow array, null where they are empty."""
    import pyarrow

    return pyarrow.array([cell or None for cell in cells], pyarrow.string())


def _plain_columns(block: bytes, width: int, at: dict[str, int]) -> dict[str, Any] | None:
    """Columns of whole lines as text, or None where pyarrow should not decide."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    if (
        b'"' in block
        or b"\0" in block
        or block.count(b"\r") != block.count(b"\r\n")
        or block.startswith(_BOM)  # which pyarrow would drop
        or max(map(len, block.split(b"\n"))) > MAX_CELL
    ):
        return None
    names = [str(column) for column in range(width)]
    try:
        if not block.isascii():
            block.decode()
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(block),
            # Its threads and torch's end in an abort, now and then, when the process does.
            arrow_csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1),
            arrow_csv.ParseOptions(quote_char=False, double_quote=False),
            arrow_csv.ConvertOptions(
                include_columns=[names[column] for column in at.values()],
                column_types=dict.fromkeys(names, pyarrow.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (UnicodeDecodeError, pyarrow.ArrowInvalid):
        return None
    return {name: table.column(names[at[name]]).combine_chunks() for name in at}


class ParquetSource(Source):
    """A Parquet file: typed columns, checked against their check sums where they have them."""

    typed = True

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self._stored = self._tried(lambda: file.schema_arrow.names)
            self.names = [name.strip() for name in self._stored]
            groups = range(file.num_row_groups)
            self.group_rows = [file.metadata.row_group(group).num_rows for group in groups]

    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """The columns asked for, some rows at a time."""
        for _, columns in self.group_batches(names, range(len(self.group_rows)), ROWS):
            yield columns

    def group_batches(
        self, names: Sequence[str], groups: Iterable[int], rows: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Row groups in the order asked for, each with its number, so many rows at a time."""
        stored = {name: self._stored[self.names.index(name)] for name in names}
        with self._open() as file:
            for group in groups:
                found = file.iter_batches(
                    rows, row_groups=[group], columns=[*stored.values()], use_threads=False
                )
                while (batch := self._tried(next, found, None)) is not None:
                    self._tried(batch.validate, full=True)
                    if batch.num_rows:
                        yield group, {name: batch.column(there) for name, there in stored.items()}

    def _open(self) -> Any:
        from pyarrow import parquet

        # By default pyarrow keeps all that it has read until the file is closed.
        options = {"pre_buffer": False, "buffer_size": 1 << 16, "page_checksum_verification": True}
        return self._tried(parquet.ParquetFile, self.path, **options)

    def _tried(self, read: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What pyarrow reads; these are the errors that it was seen to raise on damaged files."""
        import pyarrow

        try:
            return read(*args, **options)
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise TableError(
                f"{self.path} is not a Parquet file, or is damaged ({reason})"
            ) from None


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
    if kind == "word" and text:
        column = given(column)
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
    """Words of an Arrow array without spaces around them, null where they stand for a gap."""
    import pyarrow
    from pyarrow import compute

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
        raise RowError(row, f"{name} is {shown(text)}, not a finite number")
    point = text.replace(",", ".")
    hint = f": write {point}" if NUMBER.fullmatch(point) else ""
    if THOUSANDS.fullmatch(text):
        hint = ": write it without a comma"
    raise RowError(row, f"{name} is {shown(text)}, not a number{hint}")


def suffix_of(path: Path, what: str, suffixes: Sequence[str]) -> str:
    """The suffix of a file, in lower case, if it is one of those given; else a TableError."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        allowed = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise TableError(f"{path} has the suffix {shown(suffix)}; {what} are {allowed}")
    return suffix


def existing_file(path: Path) -> Path:
    """The path, if a file is there that can be read."""
    for wrong, what in (
        (path.is_dir(), "is a folder; give a file"),
        (not path.exists(), "does not exist"),
        (not path.is_file(), "is not a regular file; save the table to one first"),
        (not os.access(path, os.R_OK), "cannot be read: permission denied"),
    ):
        if wrong:
            raise TableError(f"{path} {what}")
    return path


def open_source(path: Path, what: str, *needed: str) -> CsvSource | ParquetSource:
    """A CSV or Parquet file, with its header read and found in order, and the columns `needed`.

    `what` says what it has, in the plural, for messages.
    """
    csv_file = suffix_of(path, what, (".csv", ".parquet")) == ".csv"
    existing_file(path)
    source = CsvSource(path) if csv_file else ParquetSource(path)
    for number, name in enumerate(source.names, 1):
        if (first := source.names.index(name) + 1) < number:
            two = f"columns {first} and {number} are both named {shown(name)}"
            raise TableError(f"{source.path}: {two}")
    for name in needed:
        if name not in source.names:
            near = [one for one in source.names if one.lower().rstrip("s") == name]
            rename = f"; rename {near[0]!r}" if near else ""
            raise missing_column(source, f"no column {name!r}{rename}")
    return source


def missing_column(source: Source, what: str) -> TableError:
    """What is wrong with a header that lacks a column."""
    found = ", ".join(map(shown, source.names[:8])) + (", …" if len(source.names) > 8 else "")
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(source.names) == 1 and mark in source.names[0]:
            return TableError(f"{source.path}: separate the columns by commas, not {word}")
    advice = "" if "rename" in what else ": rename the one that has it"
    return TableError(f"{source.path}: {what}; the columns are {found}{advice}")
