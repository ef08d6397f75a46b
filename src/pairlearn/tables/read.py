"""Read tables of pairs and of items: whole, or in batches that fit any memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.cells import Kind
from pairlearn.tables.errors import TableError, placed
from pairlearn.tables.ids import DuplicateError, check_unique, same_kind
from pairlearn.tables.items import ItemTable, as_features
from pairlearn.tables.layout import (
    Source,
    existing_file,
    item_kinds,
    open_source,
    pair_kinds,
    suffix_of,
)
from pairlearn.tables.npy_source import npy_items
from pairlearn.tables.pairs import PairTable, as_preference, check_pairs

__all__ = ["iter_items", "iter_pairs", "read_items", "read_pairs"]

PathLike: TypeAlias = str | os.PathLike[str]
Columns: TypeAlias = dict[str, NDArray[Any]]
Table = TypeVar("Table", PairTable, ItemTable)

PAIR_SUFFIXES = (".csv", ".parquet")
ITEM_SUFFIXES = (".csv", ".parquet", ".npy")


def read_pairs(path: PathLike, *, noisy: bool = False) -> PairTable:
    r"""Read a table of judged pairs.

    The file has the columns ``left`` and ``right`` and at least one of ``similarity``,
    ``difference`` and ``preference`` (``left``, ``right`` or empty), and may have
    ``weight`` (empty is 1) and ``annotator``, in any order. Empty cells are judgements
    not given. Other columns are ignored, unless they look like a misspelt one.

    Ids are taken as they are, spaces included. In CSV they are integers if all are, in
    their plain form (``7``, not ``007``) and within 64 bits; otherwise all are text.

    Parameters
    ----------
    path : path-like
        A ``.csv`` file (UTF-8, commas, one header line) or a ``.parquet`` file.
    noisy : bool, default False
        Admit finite similarities and differences outside their ranges.

    Returns
    -------
    PairTable

    Raises
    ------
    TableError
        If the file is not such a table, naming the line or row, the column and the value.
    ImportError
        If it is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("left,right,similarity,difference\n7,9,0.8,\n9,4,,-0.5\n")
    ...     table = read_pairs(path)
    >>> table.left, table.difference
    (array([7, 9]), array([ nan, -0.5]))
    """
    path = Path(path)
    source = open_source(path, suffix_of(path, "pairs", PAIR_SUFFIXES))
    build = _pair_builder(noisy=noisy, text_ids=False)
    return PairTable.concatenate(list(_tables(source, pair_kinds(source), build)))


def iter_pairs(path: PathLike, rows: int = 65536, *, noisy: bool = False) -> Iterator[PairTable]:
    r"""Read a table of judged pairs in batches, in constant memory.

    Parameters
    ----------
    path, noisy
        As in `read_pairs`.
    rows : int, default 65536
        Rows of each batch; the last may have fewer.

    Returns
    -------
    iterator of PairTable
        Joined, they are what `read_pairs` returns. A CSV file is read twice: only its
        last line tells whether the ids are integers.

    Raises
    ------
    TableError
        As `read_pairs`, when the iteration comes to the bad row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("left,right,similarity\n7,9,0.8\n9,4,0.1\n4,7,1\n")
    ...     [len(table) for table in iter_pairs(path, rows=2)]
    [2, 1]
    """
    _check_rows(rows)
    path = Path(path)
    source = open_source(path, suffix_of(path, "pairs", PAIR_SUFFIXES))
    kinds = pair_kinds(source)
    build = _pair_builder(noisy=noisy, text_ids=not source.all_integers(["left", "right"]))
    return _rechunk(_tables(source, kinds, build), rows, PairTable.concatenate)


def read_items(path: PathLike, ids: PathLike | None = None) -> ItemTable:
    r"""Read a table of items.

    Parameters
    ----------
    path : path-like
        A ``.csv`` or ``.parquet`` file with a column ``id``, every other column a numeric
        feature; or a ``.npy`` file of features, of shape (m, d).
    ids : path-like, optional
        With ``.npy``: a ``.npy`` file of m ids, integers or text; 0, 1, …, m − 1 if not
        given.

    Returns
    -------
    ItemTable

    Raises
    ------
    TableError
        If the file is not such a table, naming the line or row, the column and the value.
    ImportError
        If it is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("id,height\nann,1.62\nbob,1.8\n")
    ...     read_items(path)
    ItemTable(m=2, features=1)
    """
    path, ids_path = Path(path), None if ids is None else Path(ids)
    source = _item_source(path, ids_path)
    if source is None:
        items = _join_items(list(npy_items(path, ids_path)))
    else:
        build = _item_builder(text_ids=False)
        items = _join_items(list(_tables(source, item_kinds(source), build)))
    try:
        check_unique("id", items.ids)
    except DuplicateError as error:
        place = source.place if source else lambda row: f"{ids_path}, row {row + 1}"
        first = place(error.first).removeprefix(f"{ids_path or path}, ")
        raise TableError(f"{place(error.row)}: {error.at(first)}") from None
    return items


def iter_items(
    path: PathLike, rows: int = 65536, ids: PathLike | None = None
) -> Iterator[ItemTable]:
    """Read a table of items in batches, in constant memory.

    Parameters
    ----------
    path, ids
        As in `read_items`.
    rows : int, default 65536
        Rows of each batch; the last may have fewer.

    Returns
    -------
    iterator of ItemTable
        Joined, they are what `read_items` returns. Nothing is kept of earlier batches, so
        an id that comes a second time is not noticed. A CSV file is read twice: only its
        last line tells whether the ids are integers.

    Raises
    ------
    TableError
        As `read_items`, when the iteration comes to the bad row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     [items.ids for items in iter_items(f"{folder}/x.npy", rows=2)]
    [array([0, 1]), array([2])]
    """
    _check_rows(rows)
    path, ids_path = Path(path), None if ids is None else Path(ids)
    source = _item_source(path, ids_path)
    if source is None:
        return _rechunk(npy_items(path, ids_path), rows, _join_items)
    kinds = item_kinds(source)
    build = _item_builder(text_ids=not source.all_integers(["id"]))
    return _rechunk(_tables(source, kinds, build), rows, _join_items)


def _item_source(path: Path, ids: Path | None) -> Source | None:
    """The file of items, or None if it is NPY, with everything in place to read it."""
    suffix = suffix_of(path, "items", ITEM_SUFFIXES)
    if suffix != ".npy":
        if ids is not None:
            raise TableError(f"ids is for .npy features; {path} has its ids in the column 'id'")
        return open_source(path, suffix)
    existing_file(path)
    if ids is not None:
        suffix_of(ids, "ids of .npy features", (".npy",))
        existing_file(ids)
    return None


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise ValueError(f"rows must be at least 1; got {rows}")


def _tables(
    source: Source, kinds: Mapping[str, Kind], build: Callable[[Columns], Table]
) -> Iterator[Table]:
    """Tables from batches of columns; errors are those of the exact reading."""
    try:
        yield from _built(source, source.batches(kinds), build)
    except TableError:
        for _ in _built(source, source.exact_batches(kinds), build):
            pass
        raise


def _built(
    source: Source, batches: Iterator[Columns], build: Callable[[Columns], Table]
) -> Iterator[Table]:
    row = 0
    for columns in batches:
        with placed(source.place, row):
            table = build(columns)
        yield table
        row += len(table)
    if row == 0:
        raise TableError(f"{source.path} has a header but no rows")


def _pair_builder(*, noisy: bool, text_ids: bool) -> Callable[[Columns], PairTable]:
    """How a batch becomes a table; its ids as text, or as they come."""

    def build(columns: Columns) -> PairTable:
        ids = same_kind([columns["left"], columns["right"]])
        n = len(ids[0])
        table = PairTable.trusted(
            left=ids[0].astype(np.str_) if text_ids else ids[0],
            right=ids[1].astype(np.str_) if text_ids else ids[1],
            similarity=columns.get("similarity", np.full(n, np.nan)),
            difference=columns.get("difference", np.full(n, np.nan)),
            annotator=columns.get("annotator"),
        )
        if "preference" in columns:
            table.preference = as_preference(columns["preference"])
        if "weight" in columns:
            table.weight = np.where(np.isnan(columns["weight"]), 1.0, columns["weight"])
        check_pairs(table, noisy=noisy)
        return table

    return build


def _item_builder(*, text_ids: bool) -> Callable[[Columns], ItemTable]:
    """How a batch becomes a table; ids as in `_pair_builder`."""

    def build(columns: Columns) -> ItemTable:
        names = [name for name in columns if name != "id"]
        features = as_features(names, np.stack([columns[name] for name in names], 1))
        ids: Any = columns["id"]
        return ItemTable.trusted(ids.astype(np.str_) if text_ids else ids, features, names)

    return build


def _join_items(parts: Sequence[ItemTable]) -> ItemTable:
    """Like `ItemTable.concatenate`, without a look at the ids."""
    ids: Any = np.concatenate(same_kind([part.ids for part in parts]))
    return ItemTable.trusted(ids, np.concatenate([part.features for part in parts]), parts[0].names)


def _rechunk(
    tables: Iterator[Table], rows: int, join: Callable[[Sequence[Table]], Table]
) -> Iterator[Table]:
    """The same rows in tables of ``rows`` each, but for the last."""
    kept: list[Table] = []
    count = 0
    for table in tables:
        kept.append(table)
        count += len(table)
        if count >= rows:
            joined = join(kept)
            whole = count - count % rows
            yield from (joined[start : start + rows] for start in range(0, whole, rows))
            kept, count = [joined[whole:]], count - whole
    if count:
        yield join(kept)
