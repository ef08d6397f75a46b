"""Files that are written some rows at a time and appear whole, or not at all."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing
from pairlearn.tables.errors import TableError, placed
from pairlearn.tables.ids import check_text
from pairlearn.tables.layout import suffix_of
from pairlearn.tables.parquet_source import import_parquet

__all__ = ["RowWriter", "open_rows"]


class _Sink(Protocol):
    def write(self, columns: dict[str, NDArray[Any]]) -> None: ...

    def close(self) -> None: ...


class RowWriter:
    """Appends batches of rows to a file that `open_rows` opened.

    Attributes
    ----------
    columns : tuple of str
        The header.
    count : int
        Rows written so far.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_rows(f"{folder}/p.csv", ["id", "probability"]) as rows:
    ...         rows.write({"id": ["a", "b"], "probability": [0.5, 1.0]})
    ...         rows.count
    2
    """

    columns: tuple[str, ...]
    count: int

    def __init__(self, columns: Sequence[str], sink: _Sink) -> None:
        self.columns, self.count, self._sink = tuple(columns), 0, sink

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows.

        Parameters
        ----------
        columns : mapping of str to array of shape (k,)
            All columns, each of integers, floats (NaN is written as an empty cell or
            null), booleans or text; a column keeps the kind of its first batch.

        Raises
        ------
        TableError
            If a column is missing, unknown, of another length, or of another kind.
        """
        if set(columns) != set(self.columns):
            raise TableError(f"columns must be {list(self.columns)}; got {list(columns)}")
        arrays = {name: np.asarray(columns[name]) for name in self.columns}
        n = len(next(iter(arrays.values()))) if next(iter(arrays.values())).ndim else 0
        for name, array in arrays.items():
            if array.ndim != 1 or len(array) != n:
                raise TableError(f"column {name!r} must have shape ({n},); got {array.shape}")
            if array.dtype.kind not in "iufbU":
                raise TableError(
                    f"column {name!r} must be numbers, booleans or text; got {array.dtype}"
                )
            if array.dtype.kind == "U":
                with placed(lambda row: f"row {row + 1}", self.count):
                    check_text(name, array, empty=True)
        self._sink.write(arrays)
        self.count += n


@contextmanager
def open_rows(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[RowWriter]:
    """Open a CSV or Parquet file for writing, batch by batch, in constant memory.

    The rows go to a temporary neighbour, which takes the place of ``path`` when the block
    ends well and is removed when it raises.

    Parameters
    ----------
    path : path-like
        The ``.csv`` or ``.parquet`` file to create or replace; its folder is created.
    columns : sequence of str
        The header.

    Yields
    ------
    RowWriter
        With a method ``write``.

    Raises
    ------
    TableError
        If the suffix is another, or the header is empty or has a name twice.
    ImportError
        If it is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_rows(f"{folder}/p.csv", ["id", "probability"]) as rows:
    ...         for start in (0, 2):
    ...             rows.write({"id": [start, start + 1], "probability": [0.5, np.nan]})
    ...     Path(folder, "p.csv").read_text().split()
    ['id,probability', '0,0.5', '1,', '2,0.5', '3,']
    """
    path = Path(path)
    suffix = suffix_of(path, "rows", (".csv", ".parquet"))
    if not columns or len(set(columns)) != len(columns):
        raise TableError(f"columns must be different names, at least one; got {list(columns)}")
    with ExitStack() as stack:
        part = stack.enter_context(replacing(path))
        sink: _Sink = _CsvSink(part, columns) if suffix == ".csv" else _ParquetSink(part, columns)
        stack.callback(sink.close)
        yield RowWriter(columns, sink)


class _CsvSink:
    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(columns)
        self._kinds: dict[str, str] = {}

    def write(self, columns: dict[str, NDArray[Any]]) -> None:
        for name, array in columns.items():
            kind = {"u": "i"}.get(array.dtype.kind, array.dtype.kind)
            if self._kinds.setdefault(name, kind) != kind:
                raise TableError(f"column {name!r} was of another kind in an earlier batch")
        self._writer.writerows(zip(*map(_cells, columns.values()), strict=True))

    def close(self) -> None:
        self._file.close()


def _cells(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind != "f":
        cells: list[Any] = array.tolist()
        return cells
    # Python writes the shortest text that reads back as the same float64.
    return ["" if math.isnan(value) else value for value in array.tolist()]


class _ParquetSink:
    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._pyarrow, self._parquet = import_parquet()
        self._path, self._columns = path, columns
        self._writer: Any = None

    def write(self, columns: dict[str, NDArray[Any]]) -> None:
        arrays = [self._pyarrow.array(array, from_pandas=True) for array in columns.values()]
        table = self._pyarrow.table(arrays, names=list(columns))
        if self._writer is None:
            self._writer = self._open(table.schema)
        for field, first in zip(table.schema, self._writer.schema, strict=True):
            if field.type != first.type:
                raise TableError(f"column {field.name!r} was of another kind in an earlier batch")
        if len(table):
            self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is None:
            null = self._pyarrow.null()
            self._writer = self._open(self._pyarrow.schema([(n, null) for n in self._columns]))
        self._writer.close()

    def _open(self, schema: Any) -> Any:
        return self._parquet.ParquetWriter(self._path, schema, write_page_checksum=True)
