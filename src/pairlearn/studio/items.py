"""The items of a project: rows of a table, images, or texts."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import RowError, as_ids, check_unique, placed
from pairlearn.studio.project import Kind, Project, ProjectError
from pairlearn.tables import ItemTable, TableError
from pairlearn.tables.items import check_names
from pairlearn.tables.sources import convert, open_source

IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
    ".gif": "image/gif",
}  # fmt: skip
"""The endings of images that can be items, and what they are."""
TEXTS = (".txt", ".md")
MAX_TEXT_BYTES = 1 << 20
"""Of a text: nobody compares two books, and a page must stay light."""


@dataclass(frozen=True)
class ItemView:
    """What an annotator sees of an item; everything in it is untrusted.

    Parameters
    ----------
    kind : {"table", "image", "text"}
    title : str
        Its id.
    rows : tuple of (str, str)
        Names and values of a table's row.
    text : str
        Of a text.
    image_path : Path, optional
        Of an image; a regular file inside the project.

    Examples
    --------
    >>> ItemView("text", "a.txt", text="so it goes").text
    'so it goes'
    """

    kind: Kind
    title: str
    rows: tuple[tuple[str, str], ...] = ()
    text: str = ""
    image_path: Path | None = None


class Items:
    r"""All items of a project, in the order of the table or of the names of the files.

    Attributes
    ----------
    kind : {"table", "image", "text"}
    ids : list of str

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.studio.project import Plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.csv").write_text("id,age,name\n7,31,Ann\n8,22,Bob\n")
    ...     items = Items.open(Project(Path(folder), "table", "items.csv", Plan(pairs=1)))
    >>> items.ids, items.view("8").rows, items.features().names
    (['7', '8'], (('age', '22'), ('name', 'Bob')), ('age',))
    """

    kind: Kind
    ids: list[str]

    def __init__(
        self,
        project: Project,
        ids: list[str],
        names: tuple[str, ...] = (),
        cells: list[list[str]] | None = None,
    ) -> None:
        self.kind, self.ids = project.kind, ids
        self._folder, self._names, self._cells = project.items_path, names, cells or []
        self._rows = {one: row for row, one in enumerate(ids)}
        shown = project.columns or names
        for name in shown:
            if name not in names:
                raise ProjectError(
                    f"columns has {name!r}, which {project.items} has not; "
                    f"it has {', '.join(names) or 'none'}"
                )
        self._shown = [(name, names.index(name)) for name in shown]

    @classmethod
    def open(cls, project: Project) -> Items:
        """Read the items of a project.

        Raises
        ------
        ProjectError
            If they are not there, an id is bad or comes twice, or there are none.
        """
        try:
            if project.kind != "table":
                endings = IMAGES if project.kind == "image" else TEXTS
                ids = [name for name, _ in files_of(project.items_path, endings)]
                _check_ids(project.items_path, ids)
                return cls(project, ids)
            names, rows = read_rows(project.items_path)
            at = names.index("id")
            ids = [row.pop(at) for row in rows]
            _check_ids(project.items_path, ids)
            return cls(project, ids, tuple(name for name in names if name != "id"), rows)
        except TableError as error:
            raise ProjectError(str(error)) from None

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, item: object) -> bool:
        return item in self._rows

    def view(self, item: str) -> ItemView:
        """What an annotator sees of an item.

        Raises
        ------
        KeyError
            If there is no such item.
        ProjectError
            If its file is gone, too large, or not inside the project any more.
        """
        row = self._rows[item]
        if self.kind == "table":
            cells = self._cells[row]
            return ItemView("table", item, rows=tuple((n, cells[at]) for n, at in self._shown))
        path = _inside(self._folder, item)
        if self.kind == "image":
            return ItemView("image", item, image_path=path)
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise ProjectError(f"{path} has more than {MAX_TEXT_BYTES} bytes: shorten the text")
        return ItemView("text", item, text=path.read_text("utf-8", "replace"))

    def features(self) -> ItemTable | None:
        """The columns with a name and a number in every row, for models; None if there are none."""
        found: dict[str, NDArray[Any]] = {}
        for at, name in enumerate(self._names):
            column = [row[at] for row in self._cells]
            try:
                check_names([name])
                values = convert(name, "number", column)
            except (RowError, TableError):
                continue
            if np.isfinite(values).all() and np.abs(values).max(initial=0) < 3e38:
                found[name] = values
        if not found:
            return None
        return ItemTable(np.array(self.ids, np.str_), np.stack(list(found.values()), 1), [*found])


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    r"""The header and the rows of a table of items, every cell as text.

    Parameters
    ----------
    path : Path
        A ``.csv`` or ``.parquet`` file with a column ``id``, the others of any kind.

    Raises
    ------
    TableError
        If it is not such a table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "i.csv").write_text("id,name\n1,Ann\n")
    ...     read_rows(Path(folder, "i.csv"))
    (['id', 'name'], [['1', 'Ann']])
    """
    source = open_source(path, "items")
    if "id" not in source.names:
        raise TableError(
            f"{path}: no column 'id'; the columns are {', '.join(map(repr, source.names[:8]))}: "
            "rename the one that names the items"
        )
    rows: list[list[str]] = []
    for batch in source.batches(source.names):
        try:
            columns = [map(_cell, batch[name].to_pylist()) for name in source.names]
        except (ValueError, OverflowError) as error:  # dates that Python has not
            raise TableError(f"{path}, after row {len(rows)}: {error}") from None
        rows += map(list, zip(*columns, strict=True))
    return source.names, rows


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def media_type(data: bytes) -> str | None:
    """What an image is, by its first bytes and never by its name; None for what is none.

    SVG is none, because it can hold scripts.

    Examples
    --------
    >>> media_type(b"GIF89a..."), media_type(b"<svg>")
    ('image/gif', None)
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    if data[:2] == b"BM" and data[6:10] == b"\0\0\0\0":
        return "image/bmp"
    return None


def files_of(folder: Path, endings: Container[str]) -> list[tuple[str, Path]]:
    """The files of a folder and its folders, with their names relative to it, in order.

    Links and hidden files are left out: an item is a file that lies here.

    Parameters
    ----------
    folder : Path
        Where to look.
    endings : container of str
        Of the files that are items, in lower case.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "b.png").touch()
    ...     Path(folder, "a.PNG").touch()
    ...     [name for name, _ in files_of(Path(folder), IMAGES)]
    ['a.PNG', 'b.png']
    """
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder")
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(place, name)
            if (
                path.suffix.lower() in endings
                and not name.startswith(".")
                and path.is_file()
                and not path.is_symlink()
            ):
                found.append((path.relative_to(folder).as_posix(), path))
    return sorted(found)


def _inside(folder: Path, item: str) -> Path:
    """The file of an item, which must lie inside the folder, links resolved."""
    path = (folder / item).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise ProjectError(f"item {item!r} is not a file inside {folder} any more")
    return path


def _check_ids(path: Path, ids: list[str]) -> None:
    with placed(lambda row: f"{path}, item {row + 1}"):
        if not ids:
            raise TableError(f"{path} has no items")
        check_unique("id", as_ids("id", ids))
