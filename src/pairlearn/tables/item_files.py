"""Read tables and folders of items: whole, or in batches that fit any memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pairlearn.columns import TableError, check_unique, locate_errors, quote
from pairlearn.extras import missing_extra
from pairlearn.tables.cells import PIXELS, ColumnChoice, ColumnKind, read_values, text_array
from pairlearn.tables.encoder import ItemEncoder, unused_columns
from pairlearn.tables.items import ItemTable, check_names, npy_items
from pairlearn.tables.read import PathLike, check_rows, rechunk
from pairlearn.tables.sources import (
    Columns,
    Source,
    existing_file,
    open_source,
    suffix_of,
)

LOOKED_AT = 10_000
"""Rows that tell what the columns hold."""


def read_items(
    path: PathLike,
    ids: PathLike | None = None,
    *,
    columns: ColumnChoice | ItemEncoder | None = None,
    mapped: bool = False,
) -> ItemTable:
    r"""Read a table of items.

    Columns of numbers without gaps are features as they are. For dates, categories, free text or
    gaps, an `ItemEncoder` is fitted to all columns; it is the table's ``encoder``.

    Parameters
    ----------
    path : path-like
        A ``.csv`` or ``.parquet`` file with a column ``id``, every other column a feature; a
        folder of texts (``.txt``, ``.md``) or of images, whose names are the ids; or a
        ``.npy`` file of features, of shape (m, d).
    ids : path-like, optional
        With ``.npy``: a ``.npy`` file of m ids, integers or text; by default 0, 1, …, m − 1.
    columns : ColumnChoice or ItemEncoder, optional
        Which columns to use and what they hold; or the encoder of a model, which makes the
        same features of these items. Other columns are then left out with a note.
    mapped : bool, default False
        Leave the features of a ``.npy`` file in the file, once all are checked.

    Raises
    ------
    TableError
        If the file is not such a table, naming the row, the column and the value.

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
    source = _item_source(path, ids)
    if source is None or isinstance(columns, ItemEncoder):
        parts = _item_batches(path, ids, source, columns)
        if mapped and source is None:
            parts = (part.like(part.ids, part.features[:0]) for part in parts)
        items = _join_items(list(parts))
        if mapped and source is None:
            items.features = np.load(path, mmap_mode="r")
    else:
        items = _encoded_items(source, columns or ColumnChoice())
    with locate_errors(source.place if source else lambda row: f"{ids}, row {row + 1}"):
        check_unique("id", items.ids)
    items.path = path
    return items


def iter_items(
    path: PathLike,
    rows: int = 65536,
    ids: PathLike | None = None,
    *,
    columns: ItemEncoder | None = None,
) -> Iterator[ItemTable]:
    """Read a table of items in batches, in constant memory.

    Joined, the batches are what `read_items` returns, except that repeated ids are not noticed. A
    CSV file is read twice: only its last line tells whether the ids are integers.

    Parameters
    ----------
    path, ids
        As in `read_items`.
    rows : int, default 65536
        Rows of each batch; the last may have fewer.
    columns : ItemEncoder, optional
        That of a model or of a table that was read. Without it all columns must be numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     [items.ids for items in iter_items(f"{folder}/x.npy", rows=2)]
    [array([0, 1]), array([2])]
    """
    check_rows(rows)
    path, ids = Path(path), None if ids is None else Path(ids)
    source = _item_source(path, ids)
    if source is not None:
        source.scan_ids(["id"])
    return rechunk(_item_batches(path, ids, source, columns), rows, _join_items)


def _item_source(path: Path, ids: Path | None) -> Source | None:
    """The file of items, or None if it is NPY, with everything in place to read it."""
    if path.is_dir():
        return FolderSource(path)
    if suffix_of(path, "items", (".csv", ".parquet", ".npy")) == ".npy":
        existing_file(path)
        if ids is not None:
            suffix_of(ids, "ids of .npy features", (".npy",))
            existing_file(ids)
        return None
    if ids is not None:
        raise TableError(f"ids is for .npy features; {path} has its ids in the column 'id'")
    source = open_source(path, "items", "id")
    try:
        check_names([name for name in source.names if name != "id"])
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None
    return source


def _item_batches(
    path: Path, ids: Path | None, source: Source | None, columns: Any
) -> Iterator[ItemTable]:
    """Items in parts, by an encoder; without one all columns are plain numbers."""
    if source is None:
        return npy_items(path, ids)
    there = [name for name in source.names if name != "id"]
    encoder = columns or ItemEncoder.of_numbers(there)
    notes = tuple(unused_columns(there, encoder.names, path))
    more = {"names": encoder.outputs, "notes": notes}
    more |= {} if encoder.plain else {"encoder": encoder}

    def build(cells: Columns) -> ItemTable:
        ids, values = source.column("id", "id", cells["id"]), encoder.values(cells)
        return ItemTable.trusted(ids=ids, features=encoder.encode(values), **more)

    return source.tables(["id", *encoder.names], build)


def item_kinds(
    path: PathLike, choice: ColumnChoice | None = None
) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
    """What the columns of a table of items hold, and what is said of columns left out.

    The first 10,000 rows tell; `read_items` then reads all as such.
    """
    source = _item_source(Path(path), None)
    if source is None:
        return {}, ()
    return _kinds(source, choice or ColumnChoice())


def _kinds(source: Source, choice: ColumnChoice) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
    import pyarrow

    names = choice.select([name for name in source.names if name != "id"])
    if isinstance(source, FolderSource):
        return {source.kind: source.kind}, ()
    first: list[Columns] = []
    for batch in source.batches(names):
        first.append(batch)
        if sum(len(cells[names[0]]) for cells in first) >= LOOKED_AT:
            break
    if not first:
        raise TableError(f"{source.path} has a header but no rows")
    some = {
        name: pyarrow.chunked_array([cells[name] for cells in first])
        .unify_dictionaries()
        .combine_chunks()[:LOOKED_AT]
        for name in names
    }
    try:
        return choice.kinds_of(some, typed=source.typed)
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None


def _encoded_items(source: Source, choice: ColumnChoice) -> ItemTable:
    """All items, by an encoder that is fitted to them if not all columns are plain numbers."""
    kinds, notes = _kinds(source, choice)

    def build(cells: Columns) -> Columns:
        return read_values(kinds, cells) | {"id": source.column("id", "id", cells["id"])}

    values = source.read_arrays(["id", *kinds], build)
    constant = [name for name, kind in kinds.items() if kind == "number" and _same(values[name])]
    if len(constant) < len(kinds):
        notes += tuple(f"column {quote(name)} has one value, and is left out" for name in constant)
        kinds = {name: kind for name, kind in kinds.items() if name not in constant}
    try:
        encoder = ItemEncoder.fit(kinds, values)
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None
    return ItemTable.trusted(
        ids=values["id"],
        features=encoder.encode(values),
        names=encoder.outputs,
        notes=notes,
        encoder=None if encoder.plain else encoder,
    )


def _same(values: Any) -> bool:
    """Whether all items have the same value, and there are several."""
    return len(values) > 1 and bool((values == values[0]).all())


_join_items = partial(ItemTable.concatenate, unique=False)
IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
    ".gif": "image/gif",
}  # fmt: skip
"""The endings of images that can be items, and what they are."""
SUFFIXES: dict[str, tuple[str, ...]] = {"image": tuple(IMAGES), "text": (".txt", ".md")}
BATCH = 1024
"""Files that are in memory at once."""


class FolderSource(Source):
    """A folder of texts or of images: ``id`` is the name of a file, the other what is in it."""

    typed = True

    def __init__(self, path: Path) -> None:
        images, texts = (list_files(path, SUFFIXES[kind]) for kind in ("image", "text"))
        if len(images) == len(texts):
            listed = ", ".join(sum(SUFFIXES.values(), ()))
            what = "as many texts as images: move one sort elsewhere" if texts else (
                f"neither texts nor images ({listed})"
            )  # fmt: skip
            raise TableError(f"{path} is a folder with {what}")
        # A few texts beside images describe them, and the other way round.
        self.kind: ColumnKind = "image" if len(images) > len(texts) else "text"
        self._files = images if self.kind == "image" else texts
        self.path, self.names = path, ["id", self.kind]

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The columns asked for, some files at a time; images as the bytes of their pixels."""
        import pyarrow

        files = [*self._files.items()]
        for start in range(0, len(files), BATCH):
            part = files[start : start + BATCH]
            cells = {"id": text_array([name for name, _ in part])}
            if "text" in names:
                cells["text"] = text_array([self._read(path) for _, path in part])
            if "image" in names:
                cells["image"] = pyarrow.array([read_pixels(path) for _, path in part])
            yield {name: cells[name] for name in names}

    def place(self, row: int | None) -> str:
        """The file."""
        return str(self.path) if row is None else str([*self._files.values()][row])

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError) as error:
            raise TableError(f"{path} cannot be read as UTF-8: {error!s:.100}") from None


def read_pixels(path: Path) -> bytes:
    """An image made as small as the network takes it: height, width and colour of each pixel."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise missing_extra("data", "Pillow", "reading images") from None
    try:
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
            return upright.resize(PIXELS[2:0:-1], Image.Resampling.LANCZOS).tobytes()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise TableError(f"{path} cannot be read as an image: {error!s:.100}") from None


def list_files(folder: Path, endings: Sequence[str]) -> dict[str, Path]:
    """The files of a folder and its folders, by their names relative to it, in order.

    Links and hidden files are left out: an item is a file that lies here.
    """
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder")
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in names if not name.startswith(".")):
            if path.suffix.lower() in endings and path.is_file() and not path.is_symlink():
                found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))
