"""Read and write judgements of pairs; read known classes and shares of groups."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    Indices,
    RowError,
    TableError,
    check_unique,
    find_rows,
    first_rows,
    locate_errors,
    quote,
    two_classes,
    unknown_id,
)
from pairlearn.io.cells import Cells, convert, id_cells
from pairlearn.io.items import ItemTable
from pairlearn.io.sources import FrameSource, Source, missing_column, open_source
from pairlearn.judgements import Judgements, kinds
from pairlearn.judgements.sets import join_set
from pairlearn.judgements.table import SHARES

PathLike: TypeAlias = str | os.PathLike[str]
#: Columns about pairs that messages name: similarity, difference and preference.
USUAL = 3


def read_pairs(
    path: PathLike | Any,
    *,
    noisy: bool = False,
    similarity_scale: Any = None,
    difference_scale: Any = None,
) -> Judgements:
    r"""Read a table of judged pairs from a file or a data frame.

    It has the columns ``left`` and ``right`` and at least one of ``similarity``,
    ``difference`` and ``preference`` (``left``, ``right`` or empty). It may have ``weight`` (empty
    is 1) and ``annotator``. Empty cells, and words such as NA, are missing judgements. A row with
    an empty ``right`` is about one item, such as its ``label`` (``positive``, ``negative``); in
    rows about pairs such a column is ignored. So are other columns, unless they seem misspelt.
    With more than two classes a column ``about`` has the class, or the set of classes as in
    ``cat|dog``, that a row is about; it is empty where a similarity says "the same class at all".
    A column ``q`` beside it has the probability with which that set was chosen (empty is 1), and
    ``label`` may have the name of a class.

    Ids are kept as they are, spaces included. In CSV they are integers if all of them are, in their
    plain form (``7``, not ``007``) and within 64 bits; otherwise all are text.

    Parameters
    ----------
    path : path-like, data frame or mapping of str to array
        A ``.csv`` file (UTF-8, one header line, cells separated by commas, semicolons or tabs), the
        same compressed (``.csv.gz``, ``.csv.zst``), or a ``.parquet`` file; or the same columns as
        a data frame of pandas, polars or pyarrow.
    noisy : bool, default False
        Admit finite similarities and differences outside their ranges.
    similarity_scale, difference_scale : (low, high), optional
        The lowest and the highest possible answer, as in (1, 5), which become 0 and 1,
        or −1 and 1. A similarity whose highest answer is given first is turned round.

    Returns
    -------
    Judgements
        One row for each statement, in the order of the file, with the ids of the items.

    Raises
    ------
    TableError
        If the file is not such a table, naming the first bad rows, the column and the value.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("left,right,similarity,difference\n7,9,0.8,\n9,4,,-0.5\n")
    ...     table = read_pairs(path)
    >>> table, table.left.tolist()
    (Judgements(n=2, similarity=1, difference=1), [7, 9])
    """
    if isinstance(path, (str, os.PathLike)):
        source: Source = open_source(Path(path), "pairs")
    else:
        source = FrameSource(path)
    single = kinds.columns_of(single=True)
    cells = source.cells(_find_columns(source))
    with locate_errors(source.place):
        ids, ends = _number_items(cells.pop("left"), cells.pop("right"), typed=source.typed)
        alone = ends[:, 1] < 0
        given = {
            name: source.column(name, _held(name), column, empty=True)
            for name, column in cells.items()
            if alone.any() or name not in single  # beside pairs, it may hold anything
        }
        scales = {"similarity": similarity_scale, "difference": difference_scale}
        try:
            return Judgements.from_cells(ends, given, ids, noisy=noisy, scales=scales)
        except RowError:
            if alone.any():  # a misspelt name may be the reason
                _refuse_misspelt(source, single)
            raise


def _held(name: str) -> Cells:
    """What a column of pairs holds."""
    if (column := kinds.columns().get(name)) is not None:
        return "word" if column.words else "number"
    return "number" if name in SHARES else "text"


def _number_items(left: Any, right: Any, *, typed: bool) -> tuple[NDArray[Any], Indices]:
    """The distinct ids of two Arrow arrays, sorted, and positions (n, 2); −1 for an empty right.

    Each id is converted once, since most recur.
    """
    import pyarrow

    sides = [id_cells(name, side) for name, side in (("left", left), ("right", right))]
    if sides[0].type != sides[1].type:
        sides = [side.cast(pyarrow.string()) for side in sides]
    for row in first_rows(np.asarray(sides[0].is_null())):
        raise RowError(row, "left is empty; every row needs it")
    encoded = pyarrow.concat_arrays(sides).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
    try:
        ids = convert("left", "id", encoded.dictionary, typed=typed)
    except RowError as error:
        if error.row is None:
            raise
        place = int((codes == error.row).argmax())
        text = error.text if place < len(left) else f"right{error.text.removeprefix('left')}"
        raise RowError(place % len(left), text) from None
    ids, order = np.unique(ids, return_inverse=True)
    return ids, np.append(order, -1)[codes].reshape(2, -1).T.astype(np.int64)


def _find_columns(source: Source) -> list[str]:
    """The columns of pairs in a file; TableError if one is missing or seems misspelt."""
    single, about_pairs = kinds.columns_of(single=True), kinds.columns_of(single=False)
    others = ["left", "right", "weight", "annotator"]
    _refuse_misspelt(source, [*others, *about_pairs])
    if missing := [repr(name) for name in ("left", "right") if name not in source.names]:
        raise missing_column(source, f"no column {' or '.join(missing)}")
    if not {*single, *about_pairs} & {*source.names}:
        _refuse_misspelt(source, single)  # beside pairs, columns like these may be anything
        usual = ", ".join(map(repr, about_pairs[:USUAL]))
        raise missing_column(source, f"no column of judgements ({usual})")
    others += ["about", "q"] if "about" in source.names else []
    return [name for name in [*others, *kinds.columns()] if name in source.names]


def _refuse_misspelt(source: Source, known: Sequence[str]) -> None:
    """TableError for a column of a file that is nearly one of the known names, or its beginning."""
    taken = {*kinds.RESERVED, *kinds.columns()}
    for name in source.names:
        lower = name.lower()
        near = difflib.get_close_matches(lower, known, n=1, cutoff=0.8)
        near += [full for full in known if len(lower) >= SHORTEST and full.startswith(lower)]
        if near and near[0] not in source.names and name not in taken:
            raise TableError(
                f"{source.path}: column {quote(name)} looks like {near[0]!r}; "
                "rename it to that, or to something else"
            )


#: Letters of an abbreviation, such as sim, that is taken for a misspelt name.
SHORTEST = 3


def read_labelled(
    path: Path, items: ItemTable, positive: str | None = None
) -> tuple[Judgements, NDArray[Any]]:
    """Read the classes of some items: columns ``id``, ``class`` and perhaps ``weight`` of a file.

    Returns statements of kind "label" about the items, and the two classes, the positive one last.
    Classes are two words, or two whole numbers, the larger of which is positive by default.
    """
    rows, labels, weight = read_classes(path, items)
    classes = two_classes(f"{path}: the classes", labels, positive)
    right = labels == classes[1]
    return Judgements.about_items("label", rows, right, weight, items.ids), classes


def read_classes(path: Path, items: ItemTable) -> tuple[Indices, NDArray[Any], Any]:
    """Rows of the items in a table, their classes, and their weights, or None."""
    source = open_source(path, "labelled items", "id", "class")
    held: dict[str, Cells] = {"id": "id", "class": "id", "weight": "number"}
    columns = source.read({name: kind for name, kind in held.items() if name in source.names})
    ids, labels = columns["id"], columns["class"]
    with locate_errors(source.place):
        check_unique("id", ids)
    rows = find_rows(ids, items.ids)
    for row in first_rows(rows < 0):
        raise TableError(f"{source.place(row)}: {unknown_id('id', ids[row].item(), items.ids)}")
    return rows, labels, columns.get("weight")


def named_classes(rows: Indices, labels: NDArray[Any], weight: Any, items: ItemTable) -> Judgements:
    """Statements that items are of classes with these names."""
    sets = [join_set([str(name)]) for name in labels]
    return Judgements.about_items("label", rows, np.ones(len(rows)), weight, items.ids, about=sets)


def read_groups(path: Path, items: Path) -> Judgements:
    """Read the share of positives in each group of items.

    ``path`` has the columns ``group``, ``share`` and perhaps ``uncertainty``, the standard error
    of the share; ``items`` has a column ``group``.
    """
    member = open_source(items, "items", "group").read({"group": "text"})["group"]
    source = open_source(path, "groups", "group", "share")
    held: dict[str, Cells] = {"group": "text", "share": "number", "uncertainty": "number"}
    columns = source.read({name: kind for name, kind in held.items() if name in source.names})
    group, share = columns["group"], columns["share"]
    with locate_errors(source.place):
        check_unique("group", group)
    errors = np.nan_to_num(columns.get("uncertainty", np.zeros(len(share))))
    estimates = zip(share.tolist(), errors.tolist(), strict=True)
    try:
        return Judgements.in_groups(member, dict(zip(group.tolist(), estimates, strict=True)))
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
