"""Parquet files: typed columns, checked against their check sums where they have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.extras import missing_extra
from pairlearn.tables.cells import Kind
from pairlearn.tables.errors import RowError, TableError, placed
from pairlearn.tables.ids import as_ids, as_text

__all__ = ["ParquetSource", "import_parquet"]

_WANTED = {
    "id": "integers or text",
    "number": "numbers",
    "text": "text",
}

BUFFER = 1 << 16
"""Bytes of each column that are read ahead."""


def import_parquet() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet.

    Raises
    ------
    ImportError
        If they are not installed.

    Examples
    --------
    >>> import_parquet()[1].__name__
    'pyarrow.parquet'
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("files", "pyarrow", "Parquet") from None
    return pyarrow, parquet


class ParquetSource:
    """A Parquet file as batches of columns; the counterpart of `CsvSource`.

    Parameters
    ----------
    path : Path
        The file; its schema is read at once.

    Attributes
    ----------
    names : list of str
        Its columns, without spaces around the names.
    header_place : str
        Where they are named, for messages.

    Examples
    --------
    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.parquet")
    ...     pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2], "x": [0.5, None]}), path)
    ...     list(ParquetSource(path).batches({"id": "id", "x": "number"}))
    [{'id': array([1, 2]), 'x': array([0.5, nan])}]
    """

    def __init__(self, path: Path) -> None:
        self.path, self.header_place = path, str(path)
        self._pyarrow, self._parquet = import_parquet()
        with self._open() as file:
            try:
                self._schema = file.schema_arrow
                self.names = [name.strip() for name in self._schema.names]
            except self._failures() as error:
                raise self._damaged(error) from None

    def batches(self, kinds: Mapping[str, Kind]) -> Iterator[dict[str, NDArray[Any]]]:
        """The columns asked for, some rows at a time; as `CsvSource.batches`."""
        at = {name: self.names.index(name) for name in kinds}
        for name, kind in kinds.items():
            self._check_type(name, kind, self._type(at[name]))
        row = 0
        for batch in self._record_batches([self._schema.names[column] for column in at.values()]):
            with placed(self.place, row):
                columns = {
                    name: self._convert(name, kind, batch.column(self._schema.names[at[name]]))
                    for name, kind in kinds.items()
                }
            yield columns
            row += batch.num_rows

    exact_batches = batches

    def group_rows(self) -> list[int]:
        """Rows in each row group of the file."""
        with self._open() as file:
            return [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]

    def group_batches(
        self, kinds: Mapping[str, Kind], groups: Iterable[int], rows: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Row groups in the order asked for, at most so many rows at a time.

        Parameters
        ----------
        kinds : mapping of str to str
            As in `batches`.
        groups : iterable of int
            Numbers of row groups.
        rows : int
            Most rows of a batch. No batch has rows of two row groups.

        Yields
        ------
        (int, dict of str to pyarrow.Array)
            The row group, and the columns asked for, for `column` to convert.
        """
        at = {name: self.names.index(name) for name in kinds}
        for name, kind in kinds.items():
            self._check_type(name, kind, self._type(at[name]))
        stored = {name: self._schema.names[column] for name, column in at.items()}
        with self._open() as file:
            for group in groups:
                for batch in self._checked(
                    file.iter_batches(
                        rows, row_groups=[group], columns=[*stored.values()], use_threads=False
                    )
                ):
                    yield group, {name: batch.column(there) for name, there in stored.items()}

    def column(self, name: str, kind: Kind, values: Any) -> NDArray[Any]:
        """An Arrow array of the file as `batches` has it, a `RowError` if that cannot be."""
        return self._convert(name, kind, values)

    def place(self, row: int) -> str:
        """Where a data row is, counted from 0: the file and the row, counted from 1."""
        return f"{self.path}, row {row + 1}"

    def all_integers(self, names: Sequence[str]) -> bool:
        """Whether these columns have types of integers."""
        return all(
            self._pyarrow.types.is_integer(self._type(self.names.index(name))) for name in names
        )

    def _type(self, column: int) -> Any:
        """The type of a column's values, however they are encoded."""
        type_ = self._schema.field(column).type
        return type_.value_type if self._pyarrow.types.is_dictionary(type_) else type_

    def _open(self) -> Any:
        try:
            # By default pyarrow keeps all that it has read until the file is closed.
            return self._parquet.ParquetFile(
                self.path,
                pre_buffer=False,
                buffer_size=BUFFER,
                page_checksum_verification=True,
            )
        except self._failures() as error:
            raise self._damaged(error) from None

    def _record_batches(self, columns: list[str]) -> Iterator[Any]:
        with self._open() as file:
            yield from self._checked(file.iter_batches(columns=columns, use_threads=False))

    def _checked(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                batch = next(batches)
                batch.validate(full=True)
            except StopIteration:
                return
            except self._failures() as error:
                raise self._damaged(error) from None
            if batch.num_rows:
                yield batch

    def _failures(self) -> tuple[type[Exception], ...]:
        # What pyarrow was seen to raise on damaged files, its own errors first.
        return (self._pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError)

    def _damaged(self, error: Exception) -> TableError:
        lines = str(error).splitlines()
        reason = lines[0].rstrip(".") if lines else type(error).__name__
        return TableError(f"{self.path} is not a Parquet file, or is damaged ({reason})")

    def _check_type(self, name: str, kind: Kind, type_: Any) -> None:
        types = self._pyarrow.types
        text = types.is_string(type_) or types.is_large_string(type_)
        fits = (
            types.is_null(type_)
            or {
                "id": text or types.is_integer(type_),
                "number": types.is_integer(type_)
                or types.is_floating(type_)
                or types.is_boolean(type_),
                "text": text or types.is_integer(type_),
            }[kind]
        )
        if not fits:
            raise TableError(
                f"{self.path}: column {name!r} has the type {type_}; it must hold {_WANTED[kind]}"
            )

    def _convert(self, name: str, kind: Kind, column: Any) -> NDArray[Any]:
        types = self._pyarrow.types
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if kind == "number":
            if types.is_boolean(column.type):
                column = column.cast(self._pyarrow.int8())
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64).copy()
        if kind == "id":
            if column.null_count:
                row = int(np.asarray(column.is_null()).argmax())
                raise RowError(row, f"{name} is empty; every row needs it")
            return as_ids(name, column.to_numpy(zero_copy_only=False))
        cells = column.to_pylist()
        return as_text(name, ["" if cell is None else str(cell) for cell in cells])
