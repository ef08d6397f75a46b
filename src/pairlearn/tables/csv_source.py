"""CSV files, read strictly: UTF-8, commas, one header, no ragged rows.

Python's csv module is the judge of every file and finds the line of what is wrong.
Where pyarrow is installed it reads ahead as long as a file is plain (`csv_arrow`), which
is several times as fast and gives the same table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from pairlearn.tables.cells import Kind, convert
from pairlearn.tables.csv_arrow import fast_columns
from pairlearn.tables.errors import TableError, placed

__all__ = ["CsvSource"]

BATCH = 8192
"""Rows that are converted at once."""

BLOCK = 1 << 23
"""Bytes that pyarrow is given at once."""

MAX_LINE = 1 << 24
"""Bytes of a line: what is longer is no table, and must not fill the memory."""

_BOM = b"\xef\xbb\xbf"

_CSV_ERRORS = {
    "unexpected end": "a quoted cell is never closed",
    "field larger": "a cell has more than 131072 characters; is a quoted cell never closed?",
    "expected after": "text after the closing quote of a cell; double the quotes inside it",
    "new-line": "a carriage return inside a line; end lines with LF or CRLF",
}


class CsvSource:
    r"""A CSV file as batches of columns.

    Parameters
    ----------
    path : Path
        The file; its header is read at once.

    Attributes
    ----------
    names : list of str
        The header, without spaces around the names.
    header_place : str
        Where it is, for messages.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("left,right,similarity\n1,2,0.5\n1,3,\n")
    ...     source = CsvSource(path)
    ...     source.names, list(source.batches({"right": "id", "similarity": "number"}))
    (['left', 'right', 'similarity'],
     [{'right': array([2, 3]), 'similarity': array([0.5, nan])}])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []
        with path.open("rb") as file:
            self._start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
            file.seek(self._start)
            line, header = next(self._records(file, 1), (0, []))
            self._data = file.tell()
            self._line = line + sum(cell.count("\n") for cell in header) + 1
        if not header:
            raise TableError(f"{path} is empty")
        self.names = [name.strip() for name in header]
        self.header_place = f"{path}, line {line}"

    def batches(self, kinds: Mapping[str, Kind]) -> Iterator[dict[str, NDArray[Any]]]:
        """The columns asked for, some rows at a time.

        Parameters
        ----------
        kinds : mapping of str to {"id", "number", "text"}
            The columns, with what they hold.

        Yields
        ------
        dict of str to ndarray
            Equally long columns; a column of ids can be integers in one batch and text
            in another.
        """
        row, line = 0, self._line
        with self.path.open("rb") as file:
            file.seek(self._data)
            while block := file.read(BLOCK):
                block += file.readline(MAX_LINE)
                columns = fast_columns(block, self.names, kinds)
                if columns is None:
                    file.seek(-len(block), 1)
                    yield from self._exact_batches(file, kinds, line, row)
                    return
                line += block.count(b"\n")
                row += len(next(iter(columns.values())))
                yield columns

    def exact_batches(self, kinds: Mapping[str, Kind]) -> Iterator[dict[str, NDArray[Any]]]:
        """The same as `batches`, without pyarrow."""
        with self.path.open("rb") as file:
            file.seek(self._data)
            yield from self._exact_batches(file, kinds, self._line, 0)

    def rows(self) -> list[list[str]]:
        """All rows, every cell as text."""
        with self.path.open("rb") as file:
            file.seek(self._data)
            return [cells for _, cells in self._records(file, self._line)]

    def all_integers(self, names: Sequence[str]) -> bool:
        """Whether all ids in these columns are integers; a look at the whole file.

        A file with an error counts as one with text: reading it will come to the error.
        """
        kinds: dict[str, Kind] = dict.fromkeys(names, "id")
        try:
            return all(
                column.dtype.kind == "i"
                for columns in self.batches(kinds)
                for column in columns.values()
            )
        except TableError:
            return False

    def place(self, row: int) -> str:
        """Where a data row is, counted from 0: the file and the line."""
        with self.path.open("rb") as file:
            file.seek(self._data)
            line, _ = next(islice(self._records(file, self._line), row, None))
        return f"{self.path}, line {line}"

    def _exact_batches(
        self, file: BinaryIO, kinds: Mapping[str, Kind], line: int, row: int
    ) -> Iterator[dict[str, NDArray[Any]]]:
        at = {name: self.names.index(name) for name in kinds}
        records = self._records(file, line)
        while batch := [cells for _, cells in islice(records, BATCH)]:
            cells = list(zip(*batch, strict=True))
            with placed(self.place, row):
                columns = {name: convert(name, kinds[name], cells[at[name]]) for name in kinds}
            yield columns
            row += len(batch)

    def _records(self, file: BinaryIO, line: int) -> Iterator[tuple[int, list[str]]]:
        """Records from here on, each with the line it starts in; blank lines are none."""
        reader = csv.reader(self._lines(file, line), strict=True)
        while True:
            start = line + reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                known = (text for part, text in _CSV_ERRORS.items() if part in str(error))
                reason = next(known, str(error))
                raise TableError(f"{self.path}, line {start}: {reason}") from None
            if not cells:
                continue
            if self.names and len(cells) != len(self.names):
                raise TableError(
                    f"{self.path}, line {start}: {len(cells)} cells, "
                    f"but the header has {len(self.names)}"
                )
            yield start, cells

    def _lines(self, file: BinaryIO, line: int) -> Iterator[str]:
        while raw := file.readline(MAX_LINE):
            if len(raw) == MAX_LINE:
                raise TableError(f"{self.path}, line {line}: longer than {MAX_LINE} bytes")
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                offset = file.tell() - len(raw) + error.start
                raise TableError(
                    f"{self.path}, line {line}: byte {offset} is 0x{raw[error.start]:02x}, "
                    "not UTF-8; save the file as UTF-8"
                ) from None
            if "\0" in text:
                offset = file.tell() - len(raw) + raw.index(b"\0")
                raise TableError(
                    f"{self.path}, line {line}: byte {offset} is NUL; this is not a text file"
                )
            yield text
            line += 1
