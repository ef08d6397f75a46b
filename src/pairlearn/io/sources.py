"""CSV and Parquet files as batches of columns.

pyarrow reads CSV as long as it is plain: UTF-8 without quotes, NUL or lone carriage returns. Since
it accepts unclosed cells and text after a closing quote, Python's csv module reads the rest and
reports errors. Messages count rows from 1, without the header.
"""

from __future__ import annotations

import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import RowError, TableError, locate_errors, quote, unify_ids
from pairlearn.io.cells import Kind, convert, list_names, text_array
from pairlearn.io.items import is_empty

Columns: TypeAlias = dict[str, Any]
Table = TypeVar("Table")

BATCH = 8192
"""Rows read at once by the csv module."""
BLOCK = 1 << 23
"""Bytes of CSV read at once by pyarrow."""
MAX_LINE = 1 << 24
"""Longest line in bytes: a longer one is no table, and must not fill the memory."""
MAX_CELL = 131072
"""Longest cell in characters, the limit of the csv module."""
ROWS = 65536
"""Rows of Parquet read at once."""

_BOM = b"\xef\xbb\xbf"
_CSV_ERRORS = {
    "unexpected end": "a quoted cell is never closed",
    "field larger": f"a cell has more than {MAX_CELL} characters; is a quoted cell never closed?",
    "expected after": "text after the closing quote of a cell; double the quotes inside it",
    "new-line": "a carriage return inside a line; end lines with LF or CRLF",
}


class Source(ABC):
    """A file as batches of columns, which are Arrow arrays.

    ``names`` is the header, stripped. ``typed`` is false where all cells are text. With
    ``text_ids``, ids are text even where all of a batch look like integers.
    """

    path: Path
    names: list[str]
    typed: ClassVar[bool]
    text_ids = False

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield batches of rows, none of them empty, with the given columns."""

    def place(self, row: int | None) -> str:
        """Describe a data row, counted from 0, or the file (None), for messages."""
        return str(self.path) if row is None else f"{self.path}, row {row + 1}"

    def column(self, name: str, kind: Kind, cells: Any, *, empty: bool = False) -> NDArray[Any]:
        """A column of a batch as an array of its kind; see `convert`."""
        column = convert(name, kind, cells, typed=self.typed, empty=empty)
        return column.astype(np.str_) if kind == "id" and self.text_ids else column

    def scan_ids(self, names: Sequence[str], *, empty: bool = False) -> bool:
        """Read the ids of the whole file to set `text_ids`; whether some of them are empty."""
        text = some_empty = False
        try:
            for columns in self.batches(names):
                for name in names:
                    ids = self.column(name, "id", columns[name], empty=empty)
                    text |= ids.dtype.kind == "U"
                    some_empty |= empty and bool(is_empty(ids).any())
                if text and some_empty >= empty:
                    break
        except (TableError, RowError):  # reported when the file is read
            text, some_empty = True, empty
        self.text_ids = text
        return some_empty

    def tables(self, names: Sequence[str], build: Callable[[Columns], Table]) -> Iterator[Table]:
        """Yield a table built from each batch; errors name the row in the file."""
        row = 0
        for columns in self.batches(names):
            with locate_errors(self.place, row):
                table = _build_table(build, columns)
            yield table
            row += len(columns[names[0]])
        if row == 0:
            raise TableError(f"{self.path} has a header but no rows")

    def read_arrays(self, names: Sequence[str], build: Callable[[Columns], Columns]) -> Columns:
        """Read all rows of some columns; `build` converts a batch of them to arrays."""
        parts = list(self.tables(names, build))
        return {name: np.concatenate(unify_ids([p[name] for p in parts])) for name in parts[0]}

    def read(self, kinds: Mapping[str, Kind]) -> Columns:
        """Read all rows of some columns, each of its kind."""
        return self.read_arrays(
            [*kinds],
            lambda cells: {name: self.column(name, kinds[name], cells[name]) for name in kinds},
        )


def _build_table(build: Callable[[Columns], Table], columns: Columns) -> Table:
    """Build a table, or raise the error of the earliest bad row, whatever the batches are."""
    try:
        return build(columns)
    except RowError as error:
        if error.row:
            _build_table(build, {name: column[: error.row] for name, column in columns.items()})
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
        """Yield batches of rows; those before a bad row come before its error."""
        row = 1
        with self.path.open("rb") as file:
            file.seek(self._data)
            while block := file.read(BLOCK):
                block += file.readline(MAX_LINE)
                columns = _plain_columns(block, self.names, names)
                if columns is None:
                    file.seek(-len(block), 1)
                    break
                if count := len(columns[names[0]]):
                    row += count
                    yield columns
            for records in self._record_batches(file, row):
                cells = dict(zip(self.names, zip(*records, strict=True), strict=True))
                yield {name: text_array(cells[name]) for name in names}

    def _record_batches(self, file: BinaryIO, row: int) -> Iterator[list[list[str]]]:
        """Yield the remaining records in batches, also those before a bad one."""
        records: list[list[str]] = []
        try:
            for record in self._records(file, row):
                if len(records) == BATCH:
                    yield records
                    records = []
                records.append(record)
        except TableError:
            if records:
                yield records
            raise
        if records:
            yield records

    def _records(self, file: BinaryIO, row: int) -> Iterator[list[str]]:
        """Yield the remaining records without blank lines; row 0 is the header."""
        reader = csv.reader(self._lines(file), strict=True)
        while True:
            try:
                cells = next(reader, None)
                if cells and self.names and len(cells) != len(self.names):
                    raise csv.Error(f"{len(cells)} cells, but the header has {len(self.names)}")
            except csv.Error as error:
                messages = (text for part, text in _CSV_ERRORS.items() if part in str(error))
                place = f"row {row}" if row else "header"
                raise TableError(f"{self.path}, {place}: {next(messages, str(error))}") from None
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
                not_utf8 = f"0x{raw[bad]:02x}, not UTF-8; save the file as UTF-8"
                problem = not_utf8 if raw[bad] else "NUL; this is not a text file"
                raise csv.Error(f"byte {file.tell() - len(raw) + bad} is {problem}")
            if len(raw) == MAX_LINE:
                raise csv.Error(f"longer than {MAX_LINE} bytes")
            yield text


def _plain_columns(block: bytes, header: Sequence[str], names: Sequence[str]) -> Columns | None:
    """Parse whole lines by pyarrow, all cells as text; None if it might read them wrongly."""
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
    try:
        if not block.isascii():
            block.decode()
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(block),
            # With its threads beside torch's, the process sometimes aborts when it ends.
            arrow_csv.ReadOptions(
                use_threads=False, column_names=header, block_size=len(block) + 1
            ),
            arrow_csv.ParseOptions(quote_char=False, double_quote=False),
            arrow_csv.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pyarrow.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (UnicodeDecodeError, pyarrow.ArrowInvalid):
        return None
    return {name: table.column(name).combine_chunks() for name in names}


class ParquetSource(Source):
    """A Parquet file: typed columns, verified by their checksums if it has them."""

    typed = True

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self._stored = self._call(lambda: file.schema_arrow.names)
            self.names = [name.strip() for name in self._stored]
            groups = range(file.num_row_groups)
            self.group_rows = [file.metadata.row_group(group).num_rows for group in groups]

    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield batches of rows."""
        for _, columns in self.group_batches(names, range(len(self.group_rows)), ROWS):
            yield columns

    def group_batches(
        self, names: Sequence[str], groups: Iterable[int], rows: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield batches of up to `rows` rows of the given row groups, each with its group."""
        stored = {name: self._stored[self.names.index(name)] for name in names}
        with self._open() as file:
            for group in groups:
                batches = file.iter_batches(
                    rows, row_groups=[group], columns=[*stored.values()], use_threads=False
                )
                while (batch := self._call(next, batches, None)) is not None:
                    self._call(batch.validate, full=True)
                    if batch.num_rows:
                        yield group, {name: batch.column(column) for name, column in stored.items()}

    def _open(self) -> Any:
        from pyarrow import parquet

        # By default pyarrow keeps everything it has read until the file is closed.
        options = {"pre_buffer": False, "buffer_size": 1 << 16, "page_checksum_verification": True}
        return self._call(parquet.ParquetFile, self.path, **options)

    def _call(self, read: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call pyarrow; these are the errors that fuzzing found it to raise on damaged files."""
        import pyarrow

        try:
            return read(*args, **options)
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise TableError(
                f"{self.path} is not a Parquet file, or is damaged ({reason})"
            ) from None


def suffix_of(path: Path, what: str, suffixes: Sequence[str]) -> str:
    """The suffix of a file in lower case; TableError if it is not one of `suffixes`."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        allowed = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise TableError(f"{path} has the suffix {quote(suffix)}; {what} are {allowed}")
    return suffix


def existing_file(path: Path) -> Path:
    """The path of a readable file; TableError for anything else."""
    for wrong, problem in (
        (path.is_dir(), "is a folder; give a file"),
        (not path.exists(), "does not exist"),
        (not path.is_file(), "is not a regular file; save the table to one first"),
        (not os.access(path, os.R_OK), "cannot be read: permission denied"),
    ):
        if wrong:
            raise TableError(f"{path} {problem}")
    return path


def open_source(path: Path, what: str, *needed: str) -> CsvSource | ParquetSource:
    """Open a CSV or Parquet file and check its header, which must have the columns `needed`.

    `what` is the plural noun for its rows in messages.
    """
    is_csv = suffix_of(path, what, (".csv", ".parquet")) == ".csv"
    existing_file(path)
    source = CsvSource(path) if is_csv else ParquetSource(path)
    place: dict[str, int] = {}
    for number, name in enumerate(source.names, 1):
        if (first := place.setdefault(name, number)) < number:
            raise TableError(
                f"{source.path}: columns {first} and {number} are both named {quote(name)}"
            )
    for name in needed:
        if name not in source.names:
            near = [other for other in source.names if other.lower().rstrip("s") == name]
            if near:
                raise missing_column(source, f"no column {name!r}; rename {near[0]!r}", hint="")
            raise missing_column(source, f"no column {name!r}")
    return source


def missing_column(
    source: Source, problem: str, hint: str = ": rename the one that has it"
) -> TableError:
    """The error for a header without a column that is needed."""
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(source.names) == 1 and mark in source.names[0]:
            return TableError(f"{source.path}: separate the columns by commas, not {word}")
    if problem == "no column 'id'" and {"left", "right"} <= {*source.names}:
        hint = ": these are pairs, and items belong here"
    elif problem == "no column 'left'" and "id" in source.names:
        hint = ": these are items, and pairs belong here"
    return TableError(
        f"{source.path}: {problem}; the columns are {list_names(source.names, 8)}{hint}"
    )
