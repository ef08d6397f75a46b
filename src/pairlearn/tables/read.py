"""Read tables of pairs and of items: whole, or in batches that fit any memory."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairlearn import kinds
from pairlearn.columns import (
    DuplicateError,
    Ids,
    RowError,
    TableError,
    check_unique,
    placed,
    same_kind,
    shown,
)
from pairlearn.judgements import Judgements
from pairlearn.tables.encoder import Choice, ItemEncoder, read_cells
from pairlearn.tables.items import ItemTable, check_names, npy_items
from pairlearn.tables.pairs import PairTable, check_pairs, columns_about, pair_columns
from pairlearn.tables.sources import Source, existing_file, open_source, suffix_of

PathLike: TypeAlias = str | os.PathLike[str]
Columns: TypeAlias = dict[str, Any]
Table = TypeVar("Table", PairTable, ItemTable, "_Raw")
Chunk = TypeVar("Chunk", PairTable, ItemTable, Judgements)


def read_pairs(path: PathLike, *, noisy: bool = False) -> PairTable:
    r"""Read a table of judged pairs.

    The file has the columns ``left`` and ``right`` and at least one of ``similarity``,
    ``difference`` and ``preference`` (``left``, ``right`` or empty), and may have
    ``weight`` (empty is 1) and ``annotator``, in any order. Empty cells are judgements
    not given. Other columns are ignored, unless they look like a misspelt one. A row with an
    empty ``right`` is about one item, and gives its ``label`` (``positive``, ``negative``);
    beside pairs, that column is ignored. Other kinds of statement have columns of their own.

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
    source = open_source(Path(path), "pairs")
    names = named_pairs(source)
    table = PairTable.concatenate(list(_tables(source, names, pair_builder(source, noisy))))
    unused = [] if table.single.any() else columns_about(single=True)
    said = {name: column for name, column in table.columns().items() if name not in unused}
    return PairTable.trusted(**said)


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
    source = open_source(Path(path), "pairs")
    names = named_pairs(source)
    text, alone = _scan(source, ["left", "right"], set(names) & {*columns_about(single=True)})
    if not alone:
        names = [name for name in names if name not in columns_about(single=True)]
    tables = _tables(source, names, pair_builder(source, noisy, text_ids=text))
    return rechunked(tables, rows, PairTable.concatenate)


def read_items(
    path: PathLike, ids: PathLike | None = None, *, columns: Choice | ItemEncoder | None = None
) -> ItemTable:
    r"""Read a table of items.

    Columns of numbers without gaps are features as they are. If there are others, dates,
    categories, free text or gaps, an `ItemEncoder` is fitted to the items and makes features
    of all columns; it is the table's ``encoder``.

    Parameters
    ----------
    path : path-like
        A ``.csv`` or ``.parquet`` file with a column ``id``, every other column a feature; a
        folder of texts (``.txt``, ``.md``), whose names are the ids; or a ``.npy`` file of
        features, of shape (m, d).
    ids : path-like, optional
        With ``.npy``: a ``.npy`` file of m ids, integers or text; 0, 1, …, m − 1 if not
        given.
    columns : Choice or ItemEncoder, optional
        Which columns to use and what they hold; or the encoder of a model, which makes the
        same features of these items. Other columns are then left out with a note.

    Returns
    -------
    ItemTable

    Raises
    ------
    TableError
        If the file is not such a table, naming the line or row, the column and the value.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("id,height\nann,1.62\nbob,1.8\n")
    ...     read_items(path)
    ItemTable(m=2, features=1)
    """
    path, ids = Path(path), None if ids is None else Path(ids)
    source = item_source(path, ids)
    if source is None or isinstance(columns, ItemEncoder):
        items = _join_items(list(_item_batches(path, ids, source, columns)))
    else:
        items = _encoded_items(source, columns or Choice())
    try:
        check_unique("id", items.ids)
    except DuplicateError as error:
        place = source.place if source else lambda row: f"{ids}, row {row + 1}"
        first = place(error.first).removeprefix(f"{ids or path}, ")
        raise TableError(f"{place(error.second)}: {error.at(first)}") from None
    return items


def iter_items(
    path: PathLike,
    rows: int = 65536,
    ids: PathLike | None = None,
    *,
    columns: ItemEncoder | None = None,
) -> Iterator[ItemTable]:
    """Read a table of items in batches, in constant memory.

    Parameters
    ----------
    path, ids
        As in `read_items`.
    columns : ItemEncoder, optional
        That of a model, or of a table that was read as a whole. Without it all columns have to
        be numbers, and none may be missing.
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
    path, ids = Path(path), None if ids is None else Path(ids)
    source = item_source(path, ids)
    text = source is not None and _scan(source, ["id"], set())[0]
    batches = _item_batches(path, ids, source, columns, text_ids=text)
    return rechunked(batches, rows, _join_items)


def named_pairs(source: Source) -> list[str]:
    """The columns of a table of pairs that a file has.

    Raises
    ------
    TableError
        If one is missing or seems to be misspelt.
    """
    single, judged = columns_about(single=True), columns_about(single=False)
    known = [name for name in pair_columns() if name not in single]
    for name in source.names:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.8)
        if near and near[0] not in source.names:
            raise TableError(
                f"{source.path}: column {shown(name)} looks like {near[0]!r}; "
                "rename it so, or otherwise"
            )
    for name in ("left", "right"):
        if name not in source.names:
            raise _missing(source, f"no column {name!r}")
    if not {*single, *judged} & {*source.names}:
        raise _missing(source, f"no column of judgements ({', '.join(map(repr, judged))})")
    return [name for name in pair_columns() if name in source.names]


def item_source(path: Path, ids: Path | None) -> Source | None:
    """The file of items, or None if it is NPY, with everything in place to read it."""
    if suffix_of(path, "items", (".csv", ".parquet", ".npy")) == ".npy":
        existing_file(path)
        if ids is not None:
            suffix_of(ids, "ids of .npy features", (".npy",))
            existing_file(ids)
        return None
    if ids is not None:
        raise TableError(f"ids is for .npy features; {path} has its ids in the column 'id'")
    source = open_source(path, "items")
    if "id" not in source.names:
        near = [name for name in source.names if name.lower().rstrip("s") == "id"]
        raise _missing(source, "no column 'id'" + (f"; rename {near[0]!r}" if near else ""))
    try:
        check_names([name for name in source.names if name != "id"])
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None
    return source


def _missing(source: Source, what: str) -> TableError:
    found = ", ".join(map(shown, source.names[:8])) + (", …" if len(source.names) > 8 else "")
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(source.names) == 1 and mark in source.names[0]:
            return TableError(f"{source.path}: separate the columns by commas, not {word}")
    return TableError(f"{source.path}: {what}; the columns are {found}")


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise ValueError(f"rows must be at least 1; got {rows}")


def _scan(source: Source, names: Sequence[str], single: set[str]) -> tuple[bool, bool]:
    """Whether ids of a file are text, and whether some are empty; a look at the whole file.

    A file with an error counts as one with text: reading it will come to the error.
    """
    text = alone = False
    try:
        for columns in source.batches(names):
            for name in names:
                ids = source.column(name, "id", columns[name], empty=bool(single))
                text |= ids.dtype.kind == "U"
                alone |= bool(single) and bool(np.any(ids == ""))
            if text and (alone or not single):
                break
    except (TableError, RowError):
        return True, bool(single)
    return text, alone


def _tables(
    source: Source, names: Sequence[str], build: Callable[[Columns], Table]
) -> Iterator[Table]:
    row = 0
    for columns in source.batches(names):
        with placed(source.place, row):
            table = _built(build, columns)
        yield table
        row += len(table)
    if row == 0:
        raise TableError(f"{source.path} has a header but no rows")


def _built(build: Callable[[Columns], Table], columns: Columns) -> Table:
    """A table, or the error of the earliest bad row, however rows are cut into batches."""
    try:
        return build(columns)
    except RowError as error:
        if error.row:
            _built(build, {name: column[: error.row] for name, column in columns.items()})
        raise


def pair_builder(
    source: Source, noisy: bool, *, text_ids: bool = False
) -> Callable[[Columns], PairTable]:
    """How a batch of a file becomes a table; its ids as text, or as they come."""

    def build(columns: Columns) -> PairTable:
        empty = any(name in columns for name in columns_about(single=True))
        left = source.column("left", "id", columns["left"])
        right = source.column("right", "id", columns["right"], empty=empty)
        left, right = same_kind([left, right])
        if text_ids:
            left, right = left.astype(np.str_), right.astype(np.str_)
        alone = right == "" if empty and right.dtype.kind == "U" else None
        table = PairTable.trusted(left=left, right=right, **statements(source, columns, alone))
        check_pairs(table, noisy=noisy)
        return table

    return build


def statements(source: Source, columns: Columns, alone: NDArray[np.bool_] | None = None) -> Columns:
    """What a batch of a file says of its pairs, and of the items that stand alone in a row."""
    import pyarrow
    from pyarrow import compute

    found: Columns = {}
    for name, column in kinds.columns().items():
        if name in columns:
            cells = columns[name]
            if name in columns_about(single=True):  # beside a pair it is no statement
                none = pyarrow.nulls(len(cells), cells.type)
                some = alone is not None and alone.any()
                cells = compute.if_else(alone, cells, none) if some else pyarrow.nulls(len(cells))
            found[name] = column.read(
                source.column(name, "text" if column.words else "number", cells)
            )
    if "weight" in columns:
        weight = source.column("weight", "number", columns["weight"])
        found["weight"] = np.where(np.isnan(weight), 1.0, weight)
    if "annotator" in columns:
        found["annotator"] = source.column("annotator", "text", columns["annotator"])
    return found


def _item_batches(
    path: Path,
    ids: Path | None,
    source: Source | None,
    columns: Any,
    *,
    text_ids: bool = False,
) -> Iterator[ItemTable]:
    """Items in parts, by an encoder; without one all columns are plain numbers."""
    if source is None:
        return npy_items(path, ids)
    there = [name for name in source.names if name != "id"]
    encoder = columns or ItemEncoder.of_numbers(there)
    names, extra = encoder.names, [name for name in there if name not in encoder.names]
    if missing := [name for name in names if name not in there]:
        raise TableError(f"{path} lacks {_listed(missing)} that the model was fitted to")
    note = f"{path} has {_listed(extra)} that the model was not fitted to: not used"
    kept, outputs = None if encoder.plain else encoder, encoder.outputs

    def build(cells: Columns) -> ItemTable:
        ids = source.column("id", "id", cells["id"])
        features = encoder.encode(encoder.values(cells, typed=source.typed))
        ids = ids.astype(np.str_) if text_ids else ids
        return ItemTable.trusted(ids, features, outputs, kept, (note,) * bool(extra))

    return _tables(source, ["id", *names], build)


def _encoded_items(source: Source, choice: Choice) -> ItemTable:
    """All items, by an encoder that is fitted to them if not all columns are plain numbers."""
    names = choice.named([name for name in source.names if name != "id"])
    first = next(source.batches(names), None)
    if first is None:
        raise TableError(f"{source.path} has a header but no rows")
    try:
        kinds, notes = choice.kinds_of(first, typed=source.typed)
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None

    def build(cells: Columns) -> _Raw:
        ids = source.column("id", "id", cells["id"])
        read = partial(read_cells, typed=source.typed)
        return _Raw(ids, {name: read(name, kind, cells[name]) for name, kind in kinds.items()})

    parts = list(_tables(source, ["id", *kinds], build))
    ids: Any = np.concatenate(same_kind([part.ids for part in parts]))
    values = {name: np.concatenate([part.values[name] for part in parts]) for name in kinds}
    del parts
    try:
        encoder = ItemEncoder.fit(kinds, values)
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None
    features = encoder.encode(values)
    kept = None if encoder.plain else encoder
    return ItemTable.trusted(ids, features, encoder.outputs, kept, notes)


@dataclass(frozen=True)
class _Raw:
    """Items before they are encoded."""

    ids: Ids
    values: Columns

    def __len__(self) -> int:
        return len(self.ids)


def _listed(names: Sequence[str]) -> str:
    found = ", ".join(map(shown, names[:5])) + ", …" * (len(names) > 5)
    return f"the feature {found}" if len(names) == 1 else f"{len(names)} features {found}"


_join_items = partial(ItemTable.concatenate, unique=False)


def rechunked(
    parts: Iterator[Chunk], rows: int, join: Callable[[Sequence[Chunk]], Chunk]
) -> Iterator[Chunk]:
    """The same rows in parts of ``rows`` each, but for the last."""
    kept: list[Chunk] = []
    count = 0
    for part in parts:
        kept.append(part)
        count += len(part)
        if count >= rows:
            joined = join(kept)
            whole = count - count % rows
            yield from (joined[start : start + rows] for start in range(0, whole, rows))
            kept, count = [joined[whole:]], count - whole
    if count:
        yield join(kept)
