"""CSV and Parquet files as batches of columns.

pyarrow reads unambiguous lines of CSV: UTF-8, no quotes, NUL or lone carriage returns, each as long
as the header. It would accept unclosed cells and text after a closing quote, so Python's csv module
reads all other lines, and finds what is wrong. Messages count rows from 1, without the header.
"""

from __future__ import annotations

import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    RowError,
    TableError,
    locate_errors,
    quote,
    unify_ids,
)
from pairlearn.tables.cells import Kind, convert, text_array

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
_CSV_ERRORS = {
    "unexpected end": "a quoted cell is never closed",
    "field larger": f"a cell has more than {MAX_CELL} characters; is a quoted cell never closed?",
    "expected after": "text after the closing quote of a cell; double the quotes inside it",
    "new-line": "a carriage return inside a line; end lines with LF or CRLF",
}


class Source(ABC):
    """A file as batches of columns, which are Arrow arrays.

    ``names`` is the header, stripped; ``typed`` is false where all cells are text, and
    ``text_ids`` takes all ids for text.
    """

    path: Path
    names: list[str]
    typed: ClassVar[bool]
    text_ids = False

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """The columns asked for, some rows at a time."""

    def place(self, row: int | None) -> str:
        """Where a data row is, counted from 0; None is the file."""
        return str(self.path) if row is None else f"{self.path}, row {row + 1}"

    def column(self, name: str, kind: Kind, cells: Any, *, empty: bool = False) -> NDArray[Any]:
        """A column of a batch as an array of its kind; see `convert`."""
        found = convert(name, kind, cells, typed=self.typed, empty=empty)
        return found.astype(np.str_) if kind == "id" and self.text_ids else found

    def look_at(self, names: Sequence[str], *, empty: bool = False) -> bool:
        """Find out from the whole file whether ids are text, and whether some are empty."""
        text = alone = False
        try:
            for columns in self.batches(names):
                for name in names:
                    ids = self.column(name, "id", columns[name], empty=empty)
                    text |= ids.dtype.kind == "U"
                    alone |= empty and bool(np.any(ids == ""))
                if text and alone >= empty:
                    break
        except (TableError, RowError):  # reading the file will come to it
            text, alone = True, empty
        self.text_ids = text
        return alone

    def tables(self, names: Sequence[str], build: Callable[[Columns], Table]) -> Iterator[Table]:
        """The batches of some columns as tables; errors say in which row they are."""
        row = 0
        for columns in self.batches(names):
            with locate_errors(self.place, row):
                table = _built(build, columns)
            yield table
            row += len(columns[names[0]])
        if row == 0:
            raise TableError(f"{self.path} has a header but no rows")

    def whole(self, names: Sequence[str], build: Callable[[Columns], Columns]) -> Columns:
        """All rows of some columns; those of a batch become arrays by `build`."""
        parts = list(self.tables(names, build))
        return {name: np.concatenate(unify_ids([p[name] for p in parts])) for name in parts[0]}

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


def suffix_of(path: Path, what: str, suffixes: Sequence[str]) -> str:
    """The suffix of a file, in lower case, if it is one of those given; else a TableError."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        allowed = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise TableError(f"{path} has the suffix {quote(suffix)}; {what} are {allowed}")
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
            two = f"columns {first} and {number} are both named {quote(name)}"
            raise TableError(f"{source.path}: {two}")
    for name in needed:
        if name not in source.names:
            near = [one for one in source.names if one.lower().rstrip("s") == name]
            rename = f"; rename {near[0]!r}" if near else ""
            raise missing_column(source, f"no column {name!r}{rename}")
    return source


def missing_column(source: Source, what: str) -> TableError:
    """What is wrong with a header that lacks a column."""
    found = ", ".join(map(quote, source.names[:8])) + (", …" if len(source.names) > 8 else "")
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(source.names) == 1 and mark in source.names[0]:
            return TableError(f"{source.path}: separate the columns by commas, not {word}")
    advice = "" if "rename" in what else ": rename the one that has it"
    return TableError(f"{source.path}: {what}; the columns are {found}{advice}")
