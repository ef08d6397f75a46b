"""Write tables of pairs and of items, atomically; reading them gives the same table.

Python's csv module writes CSV: pyarrow would put all text into quotes.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.atomic import replacing
from pairlearn.columns import TableError, check_text, locate_errors
from pairlearn.io.items import ItemTable
from pairlearn.io.sources import suffix_of
from pairlearn.judgements import Judgements, kinds

#: Rows written at once, which bounds the memory.
BATCH = 65536


def write_pairs(table: Judgements, path: str | os.PathLike[str]) -> Path:
    """Write judgements with ids as CSV or Parquet, atomically, and return the path.

    `read_pairs` gives an equal table, except that text ids which all look like integers come back
    from CSV as integers.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.io import read_pairs
    >>> frame = {"left": [1, 2], "right": [5, 6], "similarity": [0.5, None], "preference": ["", 1]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_pairs(read_pairs(frame), f"{folder}/pairs.csv")
    ...     path.read_text().split()
    ['left,right,similarity,preference', '1,5,0.5,', '2,6,,right']
    """
    path = Path(path)
    suffix_of(path, "pairs", (".csv", ".parquet"))
    columns = file_columns(table)
    with open_rows(path, list(columns)) as rows:
        for start in range(0, len(columns["left"]), BATCH):
            rows.write({n: column[start : start + BATCH] for n, column in columns.items()})
    return path


def file_columns(table: Judgements) -> dict[str, NDArray[Any]]:
    """The columns of judgements as in files, with words for the values that have them."""
    columns, known = table.columns(), kinds.columns()
    for name in columns.keys() & known.keys():
        if known[name].words:
            words = np.full(len(columns[name]), "", f"U{max(map(len, known[name].words))}")
            for value, word in known[name].named.items():
                words[columns[name] == value] = word
            columns[name] = np.ma.masked_equal(words, "")
    return columns


def write_items(items: ItemTable, path: str | os.PathLike[str]) -> Path:
    """Write a table of items as CSV or Parquet, atomically, and return the path.

    `read_items` gives the same table, as in `write_pairs`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_items(ItemTable(["a"], [[0.5, 2]]), f"{folder}/items.csv").read_text().split()
    ['id,x0,x1', 'a,0.5,2.0']
    """
    path = Path(path)
    suffix_of(path, "items", (".csv", ".parquet"))
    with open_rows(path, ["id", *items.names]) as rows:
        for start in range(0, len(items), BATCH):
            rows.write(items[start : start + BATCH].columns())
    return path


class RowWriter:
    """Appends batches of rows to a file opened by `open_rows`; ``count`` rows so far."""

    columns: tuple[str, ...]
    count: int

    def __init__(self, path: Path, columns: Sequence[str], suffix: str) -> None:
        self.columns, self.count = tuple(columns), 0
        self._path, self._suffix = path, suffix
        self._schema: Any = None
        self._sink: Any = None

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows.

        ``columns`` has all columns, each an array (k,) of integers, floats, booleans or text, of
        the same type in every batch. NaN and masked values are written as empty cells.
        """
        import pyarrow

        if {*columns} != {*self.columns}:
            raise TableError(f"columns must be {list(self.columns)}; got {list(columns)}")
        arrays = {name: np.asanyarray(columns[name]) for name in self.columns}
        with locate_errors(start=self.count):
            for name, array in arrays.items():
                if array.dtype.kind == "U":
                    check_text(name, np.asarray(array).tolist(), empty=True)
        try:
            table = pyarrow.table(
                {name: pyarrow.array(array, from_pandas=True) for name, array in arrays.items()},
                self._schema,
            )
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise TableError(
                f"columns must be of one length, and each of one type: {error}"
            ) from None
        self._open(table.schema)
        if self._suffix == ".csv":
            self._csv.writerows(zip(*map(_cells, arrays.values()), strict=True))
        elif len(table):
            self._sink.write_table(table)
        self.count += len(table)

    def _open(self, schema: Any) -> None:
        """Open the file and write its header, once."""
        from pyarrow import parquet

        if self._schema is not None:
            return
        self._schema = schema
        if self._suffix == ".csv":
            self._sink = self._path.open("w", encoding="utf-8", newline="")
            self._csv = csv.writer(self._sink, lineterminator="\n")
            self._csv.writerow(self.columns)
        else:
            self._sink = parquet.ParquetWriter(self._path, schema, write_page_checksum=True)

    def close(self) -> None:
        """Close the file, which has a header even if no rows were written."""
        import pyarrow

        self._open(pyarrow.schema([(name, pyarrow.null()) for name in self.columns]))
        self._sink.close()


def _cells(array: NDArray[Any]) -> list[Any]:
    # Python prints the shortest text that reads back as the same float64.
    cells: list[Any] = array.tolist()
    return ["" if cell != cell else cell for cell in cells] if array.dtype.kind == "f" else cells


@contextmanager
def open_rows(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[RowWriter]:
    """Open a CSV or Parquet file to write it batch by batch, in constant memory.

    Rows are written to a temporary file beside ``path``, which replaces it at the end of the block
    and is removed if the block raises.

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
    with replacing(path) as part, closing(RowWriter(part, columns, suffix)) as writer:
        yield writer
