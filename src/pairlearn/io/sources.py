"""CSV and Parquet files as batches of columns, read by pyarrow.

CSV is UTF-8 with one header line; cells are separated by commas, semicolons or tabs. Messages count
rows from 1, without the header.
"""

from __future__ import annotations

import csv
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    RowError,
    TableError,
    as_ids,
    as_text,
    locate_errors,
    quote,
    row_number,
)
from pairlearn.io.cells import Cells, convert, list_names

Columns: TypeAlias = dict[str, Any]
Table = TypeVar("Table")

#: Bytes of CSV parsed at once, and so the longest row: a longer one is no table. pyarrow reads up
#: to 32 blocks ahead, 64 MiB.
BLOCK = 1 << 21
#: Rows of Parquet read at once.
ROWS = 65536
DELIMITERS = (",", ";", "\t")
COMPRESSED = (".gz", ".zst")
_BOM = b"\xef\xbb\xbf"


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

    def column(self, name: str, kind: Cells, cells: Any, *, empty: bool = False) -> NDArray[Any]:
        """A column of a batch as an array of its kind; see `convert`."""
        column = convert(name, kind, cells, typed=self.typed, empty=empty)
        return column.astype(np.str_) if kind == "id" and self.text_ids else column

    def scan_ids(self) -> None:
        """Read the ids of the whole file to set `text_ids`."""
        try:
            batches = (self.column("id", "id", columns["id"]) for columns in self.batches(["id"]))
            self.text_ids = any(ids.dtype.kind == "U" for ids in batches)
        except (TableError, RowError):  # reported when the file is read
            self.text_ids = True

    def cells(self, names: Sequence[str]) -> Columns:
        """All rows of some columns, as Arrow arrays."""
        import pyarrow

        batches = list(self.batches(names))
        if not batches:
            raise TableError(f"{self.path} has a header but no rows")
        chunks = {n: pyarrow.chunked_array([columns[n] for columns in batches]) for n in names}
        return {n: column.unify_dictionaries().combine_chunks() for n, column in chunks.items()}

    def tables(self, names: Sequence[str], build: Callable[[Columns], Table]) -> Iterator[Table]:
        """Yield a table built from each batch; errors name the row in the file."""
        row = 0
        for columns in self.batches(names):
            with locate_errors(self.place, row):
                table = build(columns)
            yield table
            row += len(columns[names[0]])
        if row == 0:
            raise TableError(f"{self.path} has a header but no rows")

    def read(self, kinds: Mapping[str, Cells]) -> Columns:
        """Read all rows of some columns, each of its kind."""
        cells = self.cells([*kinds])
        with locate_errors(self.place):
            return {name: self.column(name, kind, cells[name]) for name, kind in kinds.items()}


class CsvSource(Source):
    """A CSV file, perhaps compressed: one header, no ragged rows. All cells are text."""

    typed = False
    _quotes = 0  # read so far

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors("header"), _CheckedBytes(self) as file:
            start = file.read(BLOCK).removeprefix(_BOM)
            lines = re.split(rb"\r\n|\n|\r", start)
            self._skipped = next((row for row, line in enumerate(lines) if line.strip()), -1) + 1
            if not self._skipped:
                raise TableError(f"{path} is empty")
            first = lines[self._skipped - 1]
            header = first.decode()
            if first.count(b'"') % 2 or len(first) >= BLOCK - 1:
                raise TableError(f"{path}, header: write all names in one line, and close quotes")
            self._delimiter = next((mark for mark in DELIMITERS if mark in header), ",")
            names = next(csv.reader([header], delimiter=self._delimiter))
        self.names = [name.strip() for name in names]

    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield batches of rows; those before a bad row come before its error."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        places = [self.names.index(name) for name in names]
        with self._errors(), _CheckedBytes(self) as file:
            unnamed = [f"f{place}" for place in range(len(self.names))]
            # With its threads beside torch's, the process sometimes aborts when it ends.
            reading = arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK,
                column_names=unnamed,
                skip_rows=self._skipped,
            )
            parsing = arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
            converting = arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(unnamed, pyarrow.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            )
            reader = arrow_csv.open_csv(file, reading, parsing, converting)
            last = None
            for batch in reader:
                if batch.num_rows:
                    last = batch
                    yield {n: batch.column(p) for n, p in zip(names, places, strict=True)}
            if self._quotes % 2 and last is not None:
                # Only a quoted cell without an end holds the last line break of the file.
                ends = [str(column[-1]) for column in last.columns if column[-1].is_valid]
                if any("\n" in cell for cell in ends):
                    raise TableError(f"{self.path}: a quoted cell is never closed")

    @contextmanager
    def _errors(self, place: str = "") -> Iterator[None]:
        """Turn errors of pyarrow into a TableError that names the row."""
        import pyarrow

        try:
            yield
        except UnicodeDecodeError:
            raise TableError(f"{self.path}, {place}: not UTF-8; save the file as UTF-8") from None
        except (pyarrow.ArrowException, csv.Error, OSError) as error:
            text = str(error).splitlines()[0]
            found = re.search(r"Row #(\d+): (.*)", text)
            place = f", row {int(found[1]) - 1}" if found else ""
            problem = found[2] if found else text
            if ragged := re.search(r"Expected (\d+) columns, got (\d+)", problem):
                problem = f"{ragged[2]} cells, but the header has {ragged[1]}"
                problem += "; is a quoted cell never closed?" * (self._quotes % 2)
            elif "UTF8" in problem:
                problem = "not UTF-8; save the file as UTF-8"
            elif "straddling" in problem:
                problem = f"a row has more than {BLOCK} bytes; is a quoted cell never closed?"
            raise TableError(f"{self.path}{place}: {problem}") from None


class _CheckedBytes(io.RawIOBase):
    """The bytes of a file, decompressed, without BOM; refuses NUL and counts quotes."""

    def __init__(self, source: CsvSource) -> None:
        import pyarrow

        self._source, self._start = source, True
        source._quotes = 0
        self._file = pyarrow.input_stream(str(source.path), compression="detect")

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._file.read(size)
        if self._start:
            block, self._start = block.removeprefix(_BOM), False
        if b"\0" in block:
            where = self._source.path
            raise TableError(f"{where}: not UTF-8 text (NUL bytes); save the file as UTF-8")
        self._source._quotes += block.count(b'"')
        return block

    def readable(self) -> bool:
        return True


class ParquetSource(Source):
    """A Parquet file: typed columns, verified by their checksums if it has them."""

    typed = True

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self._stored = self._call(lambda: file.schema_arrow.names)
            self.names = [name.strip() for name in self._stored]

    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield batches of rows."""
        stored = {name: self._stored[self.names.index(name)] for name in names}
        with self._open() as file:
            batches = file.iter_batches(ROWS, columns=[*stored.values()], use_threads=False)
            while (batch := self._call(next, batches, None)) is not None:
                self._call(batch.validate, full=True)
                if batch.num_rows:
                    yield {name: batch.column(column) for name, column in stored.items()}

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


class FrameSource(Source):
    """A data frame of pandas, polars or pyarrow, or a mapping of columns, of which None is none."""

    typed = True

    def __init__(self, frame: Any) -> None:
        names = getattr(frame, "column_names", getattr(frame, "columns", frame))
        self._columns = {str(name): frame[name] for name in names if frame[name] is not None}
        self.path, self.names = Path("the data frame"), [*self._columns]

    def batches(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield all rows as one batch, ids as Arrow arrays and other columns as they are."""
        cells = {name: self._columns[name] for name in names}
        cells |= {name: _arrow_ids(name, cells[name]) for name in ("left", "right")}
        for name, column in cells.items():
            if len(column) != (n := len(cells["left"])):
                raise TableError(f"{name} has {len(column)} rows and left has {n}")
        yield cells

    def cells(self, names: Sequence[str]) -> Columns:
        """The one batch."""
        return next(self.batches(names))

    def column(self, name: str, kind: Cells, cells: Any, *, empty: bool = False) -> Any:
        """Text is checked here, numbers and words where they are read."""
        values: Any = as_text(name, cells) if kind == "text" else cells
        return values

    def place(self, row: int | None) -> str:
        """Describe a row."""
        return row_number(row)


def _arrow_ids(name: str, ids: Any) -> Any:
    """Ids of a data frame as an Arrow array; those of several types, or too large, as text."""
    import pyarrow

    # Arrow would cut the text of numpy at a NUL.
    plain = ids.tolist() if isinstance(ids, np.ndarray) and ids.dtype.kind == "U" else ids
    try:
        array = pyarrow.chunked_array(pyarrow.array(plain, from_pandas=True))
    except (pyarrow.ArrowException, TypeError, OverflowError, UnicodeError):
        with locate_errors():
            return pyarrow.array(as_ids(name, ids, empty=True))
    return array.combine_chunks()


def suffix_of(path: Path, what: str, suffixes: Sequence[str], *, compressed: bool = False) -> str:
    """The suffix of a file in lower case; TableError if it is not one of `suffixes`.

    With `compressed`, that of ``pairs.csv.gz`` is ``.csv``.
    """
    suffix = path.suffix.lower()
    if compressed and suffix in COMPRESSED and Path(path.stem).suffix.lower() == ".csv":
        suffix = ".csv"
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
    is_csv = suffix_of(path, what, (".csv", ".parquet"), compressed=True) == ".csv"
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
            raise missing_column(source, f"no column {name!r}")
    return source


def missing_column(
    source: Source, problem: str, hint: str = ": rename the one that has it"
) -> TableError:
    """The error for a header without a column that is needed."""
    if problem == "no column 'id'" and {"left", "right"} <= {*source.names}:
        hint = ": these are pairs, and items belong here"
    elif problem.startswith("no column 'left'") and "id" in source.names:
        hint = ": these are items, and pairs belong here"
    return TableError(
        f"{source.path}: {problem}; the columns are {list_names(source.names, 8)}{hint}"
    )
