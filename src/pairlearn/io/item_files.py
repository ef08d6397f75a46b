"""Read files and folders of items, whole or in batches."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import (
    TableError,
    as_ids,
    check_integer,
    check_unique,
    locate_errors,
    quote,
    row_number,
    unify_ids,
)
from pairlearn.extras import missing_extra
from pairlearn.io.cells import (
    PIXELS,
    UNNAMED,
    ColumnChoice,
    ColumnKind,
    Values,
    no_name,
    read_values,
    text_array,
)
from pairlearn.io.encoder import ItemEncoder, unused_columns
from pairlearn.io.items import ItemTable, as_features, check_names, default_names
from pairlearn.io.pairs import PathLike
from pairlearn.io.sources import Columns, Source, existing_file, open_source, suffix_of

#: Rows that tell the kinds of columns: the first of a file, as far as they are in one batch. More
#: would seldom change a kind, and take time.
SAMPLE_ROWS = 10_000


def read_items(
    path: PathLike,
    ids: PathLike | None = None,
    *,
    columns: ColumnChoice | ItemEncoder | None = None,
) -> ItemTable:
    r"""Read a table of items.

    Columns of numbers without gaps are features as they are. If there are dates, categories, free
    text or gaps, an `ItemEncoder` is fitted to all columns; it is the table's ``encoder``.

    Parameters
    ----------
    path : path-like
        A ``.csv`` or ``.parquet`` file with a column ``id``, every other column a feature; a
        folder of texts (``.txt``, ``.md``) or of images, with their names as ids; or a
        ``.npy`` file of features, of shape (m, d).
    ids : path-like, optional
        With ``.npy``: a ``.npy`` file of m ids, integers or text; by default 0, 1, …, m − 1.
    columns : ColumnChoice or ItemEncoder, optional
        Which columns to use and what they hold; or the encoder of a model, for the same
        features as in training. Other columns are then left out with a note.

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
    source = _open_items(path, ids)
    if source is None:
        items = _npy_items(path, ids)
    elif isinstance(columns, ItemEncoder):
        items = join_batches(list(_encoded_batches(source, columns)))
    else:
        items = _fit_encoder(source, columns or ColumnChoice())
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

    Concatenated, the batches are what `read_items` returns, except that repeated ids are not
    noticed. A CSV file is read twice, as only its last line tells whether the ids are integers.

    Parameters
    ----------
    path, ids
        As in `read_items`.
    rows : int, default 65536
        Most rows of a batch.
    columns : ItemEncoder, optional
        The encoder of a model or of a table. Without it all columns must be numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     [items.ids for items in iter_items(f"{folder}/x.npy", rows=2)]
    [array([0, 1]), array([2])]
    """
    check_integer("rows", rows, 1)
    path, ids = Path(path), None if ids is None else Path(ids)
    source = _open_items(path, ids)
    if source is None:
        parts = iter([_npy_items(path, ids)])
    else:
        source.scan_ids()
        encoder = columns or ItemEncoder.of_numbers(_feature_names(source))
        parts = _encoded_batches(source, encoder)
    return (part[start : start + rows] for part in parts for start in range(0, len(part), rows))


def join_batches(parts: Sequence[ItemTable]) -> ItemTable:
    """Join the batches of a file."""
    ids = np.concatenate(unify_ids([part.ids for part in parts]))
    return parts[0].like(ids, np.concatenate([part.features for part in parts]))


def _open_items(path: Path, ids: Path | None) -> Source | None:
    """Open a file or folder of items, and check its header; None if it is NPY."""
    if path.is_dir():
        return FolderSource(path)
    if suffix_of(path, "items", (".csv", ".parquet", ".npy"), compressed=True) == ".npy":
        existing_file(path)
        if ids is not None:
            suffix_of(ids, "ids of .npy features", (".npy",))
            existing_file(ids)
        return None
    if ids is not None:
        raise TableError(f"ids is for .npy features; {path} has its ids in the column 'id'")
    source = open_source(path, "items", "id")
    with _in_file(source):
        check_names(_feature_names(source))
    return source


def _feature_names(source: Source, wanted: Sequence[str] = ()) -> list[str]:
    """Columns but for the id, and for unnamed ones that are not wanted."""
    named = [name for name in source.names if not UNNAMED.fullmatch(name) or name in wanted]
    return [name for name in named if name != "id"]


@contextmanager
def _in_file(source: Source) -> Iterator[None]:
    """Name the file in errors about its columns."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None


def _encoded_batches(source: Source, encoder: ItemEncoder) -> Iterator[ItemTable]:
    """Yield items with the features that an encoder makes of their columns."""
    notes = tuple(unused_columns(_feature_names(source, encoder.names), encoder.names, source.path))

    def build(cells: Columns) -> ItemTable:
        ids = source.column("id", "id", cells["id"])  # whose errors come first
        return _encoded_table(encoder, {"id": ids, **encoder.values(cells)}, notes)

    return source.tables(["id", *encoder.names], build)


def _encoded_table(encoder: ItemEncoder, values: Values, notes: tuple[str, ...]) -> ItemTable:
    return ItemTable.trusted(
        ids=values["id"],
        features=encoder.encode(values),
        names=encoder.outputs,
        encoder=None if encoder.plain else encoder,
        notes=notes,
    )


def item_kinds(
    path: PathLike, choice: ColumnChoice | None = None
) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
    """Tell the kinds of the columns of items by the first 10,000 rows; notes on those left out."""
    source = _open_items(Path(path), None)
    return ({}, ()) if source is None else _find_kinds(source, choice or ColumnChoice())


def _find_kinds(
    source: Source, choice: ColumnChoice
) -> tuple[dict[str, ColumnKind], tuple[str, ...]]:
    names = _feature_names(source, [*choice.columns, *choice.ignore, *choice.kinds])
    unnamed = [name for name in filter(UNNAMED.fullmatch, source.names) if name not in names]
    names = choice.select(names)
    if isinstance(source, FolderSource):
        return {source.kind: source.kind}, ()
    first = next(source.batches(names), None)
    if first is None:
        raise TableError(f"{source.path} has a header but no rows")
    with _in_file(source):
        kinds, notes = choice.kinds_of({name: cells[:SAMPLE_ROWS] for name, cells in first.items()})
    return kinds, (*map(no_name, unnamed), *notes)


def _fit_encoder(source: Source, choice: ColumnChoice) -> ItemTable:
    """Read all items, and fit an encoder to them if not all columns are plain numbers."""
    kinds, notes = _find_kinds(source, choice)

    def build(cells: Columns) -> Columns:
        return read_values(kinds, cells) | {"id": source.column("id", "id", cells["id"])}

    parts = list(source.tables(["id", *kinds], build))
    values = {name: np.concatenate(unify_ids([p[name] for p in parts])) for name in parts[0]}
    constant = [
        name
        for name, kind in kinds.items()
        if kind == "number" and len(values[name]) > 1 and (values[name] == values[name][0]).all()
    ]
    if len(constant) < len(kinds):
        notes += tuple(f"column {quote(name)} has one value, and is left out" for name in constant)
        kinds = {name: kind for name, kind in kinds.items() if name not in constant}
    with _in_file(source):
        encoder = ItemEncoder.fit(kinds, values)
    return _encoded_table(encoder, values, notes)


def _npy_items(path: Path, ids: Path | None) -> ItemTable:
    """The rows of a feature matrix (m, d) in an NPY file, with their ids; float32 stays mapped."""
    features = _map_npy(path, "features have shape (m, d)", 2, "features are numbers", "fiub")
    m, d = features.shape
    if m == 0 or d == 0:
        raise TableError(f"{path} has no {'features' if m else 'rows'}")
    known: Any = np.arange(m)
    if ids is not None:
        array = _map_npy(ids, "ids have shape (m,)", 1, "ids are integers or text", "iufU")
        if len(array) != m:
            raise TableError(f"{ids} has {len(array)} ids, but {path} has {m} rows")
        with locate_errors(lambda row: f"{ids}, {row_number(row)}"):
            known = as_ids("id", np.array(array))
    names = default_names(d)
    with locate_errors(lambda row: f"{path}, row {row + 1}"):
        checked = np.asarray(as_features(names, features), order="C")
    return ItemTable.trusted(ids=known, features=checked, names=names)


def _map_npy(path: Path, shapes: str, axes: int, types: str, kinds: str) -> NDArray[Any]:
    """Map the array of a file into memory, and check its shape and its type."""
    try:
        # numpy reads headers that Python 2 wrote, with a warning.
        with warnings.catch_warnings(action="ignore"):
            array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # numpy parses the header as Python: damaged, it raises anything
        if "Python objects" in str(error):
            raise TableError(
                f"{path} holds Python objects, which could run code when read; save plain numbers"
            ) from None
        reason = (str(error).splitlines() or ["no reason given"])[0].rstrip(".")
        raise TableError(f"{path} is not an NPY file, or is damaged ({reason})") from None
    if array.ndim != axes:
        raise TableError(f"{path} has shape {array.shape}; {shapes}")
    if array.dtype.kind not in kinds:
        raise TableError(f"{path} has the type {array.dtype}; {types}")
    return array


#: Suffixes of images that can be items, and their media types.
IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
    ".gif": "image/gif",
}  # fmt: skip
SUFFIXES: dict[str, tuple[str, ...]] = {"image": tuple(IMAGES), "text": (".txt", ".md")}
#: Files read at once.
BATCH = 1024


class FolderSource(Source):
    """A folder of texts or of images: the names of the files are the ids."""

    typed = True

    def __init__(self, path: Path) -> None:
        images, texts = (list_files(path, SUFFIXES[kind]) for kind in ("image", "text"))
        if not images and not texts:
            suffixes = ", ".join(sum(SUFFIXES.values(), ()))
            raise TableError(f"{path} is a folder with neither texts nor images ({suffixes})")
        # A few texts beside images describe them, and the other way round.
        self.kind: ColumnKind = "image" if len(images) >= len(texts) else "text"
        self._files = images if self.kind == "image" else texts
        self.path, self.names = path, ["id", self.kind]

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield batches of files, images as the bytes of their pixels."""
        import pyarrow

        files = [*self._files.items()]
        for start in range(0, len(files), BATCH):
            part = files[start : start + BATCH]
            cells = {"id": text_array([name for name, _ in part])}
            if "text" in names:
                cells["text"] = text_array([_read_text(path) for _, path in part])
            if "image" in names:
                cells["image"] = pyarrow.array([_read_pixels(path) for _, path in part])
            yield {name: cells[name] for name in names}

    def place(self, row: int | None) -> str:
        """The path of a file."""
        return str(self.path) if row is None else str([*self._files.values()][row])


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise TableError(f"{path} cannot be read as UTF-8: {error!s:.100}") from None


def _read_pixels(path: Path) -> bytes:
    """Read an image, resize it, and return its pixels: height, width, colour."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise missing_extra("images", "Pillow", "reading images") from None
    try:
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
            return upright.resize(PIXELS[2:0:-1], Image.Resampling.LANCZOS).tobytes()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise TableError(f"{path} cannot be read as an image: {error!s:.100}") from None


def list_files(folder: Path, suffixes: Sequence[str]) -> dict[str, Path]:
    """List the files of a folder and its subfolders by their relative names, sorted.

    Links and hidden files are left out.
    """
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder")
    files = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(parent, name) for name in names if not name.startswith(".")):
            if path.suffix.lower() in suffixes and path.is_file() and not path.is_symlink():
                files[path.relative_to(folder).as_posix()] = path
    return dict(sorted(files.items()))


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names, texts and images in a folder."""
    if path.is_dir():
        files = list_files(path, sum(SUFFIXES.values(), ()))
        lines = [f"{name} {digest(file)}\n" for name, file in files.items()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
