"""Read tables of pairs, whole or in batches; read known classes and shares of groups."""

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
    Indices,
    Mask,
    TableError,
    check_unique,
    find_rows,
    first_rows,
    locate_errors,
    quote,
    two_classes,
    unify_ids,
    unknown_id,
)
from pairlearn.judgements import Judgements
from pairlearn.tables.cells import Kind, null_missing
from pairlearn.tables.items import ItemTable, is_empty
from pairlearn.tables.pairs import USUAL, PairTable, check_pairs, pair_columns, statement_columns
from pairlearn.tables.sources import Columns, Source, missing_column, open_source

PathLike: TypeAlias = str | os.PathLike[str]
Chunk = TypeVar("Chunk", PairTable, ItemTable, Judgements)


def read_pairs(path: PathLike, *, noisy: bool = False) -> PairTable:
    r"""Read a table of judged pairs.

    The file has the columns ``left`` and ``right`` and at least one of ``similarity``,
    ``difference`` and ``preference`` (``left``, ``right`` or empty), and may have ``weight`` (empty
    is 1) and ``annotator``. Empty cells, and words such as NA, are missing judgements. A row with
    an empty ``right`` is about one item, such as its ``label`` (``positive``, ``negative``); in
    rows about pairs such a column is ignored. So are other columns, unless they seem misspelt.

    Ids are kept as they are, spaces included. In CSV they are integers if all of them are, in their
    plain form (``7``, not ``007``) and within 64 bits; otherwise all are text.

    Parameters
    ----------
    path : path-like
        A ``.csv`` file (UTF-8, commas, one header line) or a ``.parquet`` file.
    noisy : bool, default False
        Admit finite similarities and differences outside their ranges.

    Raises
    ------
    TableError
        If the file is not such a table, naming the row, the column and the value.

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
    names = find_pair_columns(source)
    table = PairTable.concatenate([*source.tables(names, partial(_build_pairs, source, noisy))])
    others = dict.fromkeys((name for name in source.names if name not in names), len(table))
    table = table.changed(ignored={**table.ignored, **others})
    if table.single.any():
        return table
    return table.changed(**dict.fromkeys(statement_columns(single=True)))


def iter_pairs(path: PathLike, rows: int = 65536, *, noisy: bool = False) -> Iterator[PairTable]:
    r"""Read a table of judged pairs in batches, in constant memory; options as in `read_pairs`.

    Concatenated, the batches are what `read_pairs` returns. A CSV file is read twice, as only its
    last line tells whether the ids are integers.

    Parameters
    ----------
    rows : int, default 65536
        Rows of each batch; the last may have fewer.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("left,right,similarity\n7,9,0.8\n9,4,0.1\n4,7,1\n")
    ...     [len(table) for table in iter_pairs(path, rows=2)]
    [2, 1]
    """
    check_rows(rows)
    source = open_source(Path(path), "pairs")
    names = find_pair_columns(source)
    single = statement_columns(single=True)
    some = source.scan_ids(["left", "right"], empty=bool({*names} & {*single}))
    unused = {} if some else dict.fromkeys(single)
    tables = source.tables(names, partial(_build_pairs, source, noisy))
    return rechunk((table.changed(**unused) for table in tables), rows, PairTable.concatenate)


def find_pair_columns(source: Source) -> list[str]:
    """Find the columns of pairs in a file; TableError if one is missing or seems misspelt."""
    single, about_pairs = statement_columns(single=True), statement_columns(single=False)
    _refuse_misspelt(source, [name for name in pair_columns() if name not in single])
    for name in ("left", "right"):
        if name not in source.names:
            raise missing_column(source, f"no column {name!r}")
    if not {*single, *about_pairs} & {*source.names}:
        _refuse_misspelt(source, single)  # beside pairs, columns like these may be anything
        usual = ", ".join(map(repr, about_pairs[:USUAL]))
        raise missing_column(source, f"no column of judgements ({usual})")
    return [name for name in pair_columns() if name in source.names]


def _refuse_misspelt(source: Source, known: Sequence[str]) -> None:
    """TableError for a column of a file that is nearly one of the known names."""
    for name in source.names:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.8)
        if near and near[0] not in source.names and name not in pair_columns():
            raise TableError(
                f"{source.path}: column {quote(name)} looks like {near[0]!r}; "
                "rename it so, or otherwise"
            )


def _build_pairs(source: Source, noisy: bool, columns: Columns) -> PairTable:
    """Build a table from a batch of a file."""
    left = source.column("left", "id", columns["left"])
    right = source.column("right", "id", columns["right"], empty=True)
    left, right = unify_ids([left, right])
    statements = read_statements(source, columns, is_empty(right))
    table = PairTable.trusted(left=left, right=right, **statements)
    check_pairs(table, noisy=noisy)
    return table


def read_statements(source: Source, columns: Columns, alone: Mask) -> Columns:
    """Read the columns of a batch but for its ids; `alone` masks the rows about one item."""
    arrays: Columns = {"ignored": {}}
    single, silent = statement_columns(single=True), alone.copy()
    for name, column in kinds.columns().items():
        if name in columns:
            cells = columns[name]
            if name in single:
                cells, beside = _cells_about_items(cells, alone)
                arrays["ignored"] |= {name: beside} if beside else {}
            kind: Kind = "word" if column.words else "number"
            arrays[name] = column.read(source.column(name, kind, cells))
            silent &= np.isnan(arrays[name])
    if silent.any():  # perhaps what they state is in a column of another name
        _refuse_misspelt(source, single)
    if "weight" in columns:
        weight = source.column("weight", "number", columns["weight"])
        arrays["weight"] = np.where(np.isnan(weight), 1.0, weight)
    if "annotator" in columns:
        arrays["annotator"] = source.column("annotator", "text", columns["annotator"])
    return arrays


def _cells_about_items(cells: Any, alone: Mask) -> tuple[Any, int]:
    """The cells of rows about one item, null in the others; and how many are ignored in those."""
    import pyarrow
    from pyarrow import compute

    if alone.any():
        kept = compute.if_else(alone, cells, pyarrow.nulls(len(cells), cells.type))
    else:
        kept = pyarrow.nulls(len(cells))  # whatever the type of the cells is
    return kept, null_missing(kept).null_count - null_missing(cells).null_count


def check_rows(rows: int) -> None:
    """Check the number of rows in a batch."""
    if rows < 1:
        raise ValueError(f"rows must be at least 1; got {rows}")


def rechunk(
    parts: Iterator[Chunk], rows: int, join: Callable[[Sequence[Chunk]], Chunk]
) -> Iterator[Chunk]:
    """Yield the same rows in parts of ``rows`` each; the last may have fewer."""
    pending: list[Chunk] = []
    count = 0
    for part in parts:
        pending.append(part)
        count += len(part)
        if count >= rows:
            joined = join(pending)
            whole = count - count % rows
            yield from (joined[start : start + rows] for start in range(0, whole, rows))
            pending, count = [joined[whole:]], count - whole
    if count:
        yield join(pending)


@dataclass(frozen=True)
class Labelled:
    """Items of known class: their ``rows``, which are ``positive``, and the two classes.

    The positive class is the last of ``classes``.
    """

    rows: Indices
    positive: Mask
    classes: NDArray[Any]

    def beside(self, table: PairTable, items: ItemTable) -> PairTable:
        """A table with the classes as further rows, about single items."""
        classes = Judgements.about_items("label", self.rows, self.positive)
        return PairTable.concatenate([table, PairTable.from_judgements(classes, items.ids)])


def read_labelled(path: Path, items: ItemTable, positive: str | None = None) -> Labelled:
    """Read the classes of some items: columns ``id`` and ``class`` of a CSV or Parquet file.

    Classes are two words, or two whole numbers, the larger of which is positive by default.
    """
    source = open_source(path, "labelled items", "id", "class")
    ids, labels = source.read({"id": "id", "class": "id"}).values()
    with locate_errors(source.place):
        check_unique("id", ids)
    rows = find_rows(ids, items.ids)
    for row in first_rows(rows < 0):
        raise TableError(f"{source.place(row)}: {unknown_id('id', ids[row].item(), items.ids)}")
    classes = two_classes(f"{path}: the classes", labels, positive)
    return Labelled(rows, np.asarray(labels == classes[1]), classes)


def read_groups(path: Path, items: Path) -> Judgements:
    """Read the share of positives in each group of items.

    ``path`` has the columns ``group``, ``share`` and perhaps ``uncertainty``, the standard error
    of the share; ``items`` has a column ``group``.
    """
    member = open_source(items, "items", "group").read({"group": "text"})["group"]
    source = open_source(path, "groups", "group", "share")
    kinds: dict[str, Kind] = {"group": "text", "share": "number", "uncertainty": "number"}
    columns = source.read({name: kind for name, kind in kinds.items() if name in source.names})
    group, share = columns["group"], columns["share"]
    with locate_errors(source.place):
        check_unique("group", group)
    errors = np.nan_to_num(columns.get("uncertainty", np.zeros(len(share))))
    estimates = zip(share.tolist(), errors.tolist(), strict=True)
    try:
        return Judgements.in_groups(member, dict(zip(group.tolist(), estimates, strict=True)))
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
