"""The items of a project: rows of a table, images, or texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pairlearn.columns import as_ids, check_unique, locate_errors
from pairlearn.io import TableError
from pairlearn.io.cells import UNNAMED
from pairlearn.io.item_files import IMAGES, SUFFIXES, list_files
from pairlearn.io.sources import open_source
from pairlearn_studio.project import Kind, Project, ProjectError

LARGEST_IMAGE = 20 * 2**20
#: Most bytes of a text: people do not compare two books, and a page must stay light.
MAX_TEXT_BYTES = 1 << 20


@dataclass(frozen=True)
class ItemView:
    """The content of an item that an annotator sees; all of it is untrusted.

    ``title`` is its id, ``rows`` has the names and values of a table's row, and ``image_path`` is
    a regular file inside the project.
    """

    kind: Kind
    title: str
    rows: tuple[tuple[str, str], ...] = ()
    text: str = ""
    image_path: Path | None = None


class Items:
    """All items of a project, in the order of the table or of the file names."""

    kind: Kind
    ids: list[str]

    def __init__(self, project: Project, ids: list[str], columns: dict[str, list[str]]) -> None:
        self.kind, self.ids = project.kind, ids
        self._folder, self._columns = project.items_path, columns
        self._rows = {item: row for row, item in enumerate(ids)}
        named = (name for name in columns if not UNNAMED.fullmatch(name))
        self._shown = project.columns or tuple(named)
        for name in self._shown:
            if name not in columns:
                raise ProjectError(
                    f"columns has {name!r}, which {project.items} has not; "
                    f"it has {', '.join(columns) or 'none'}"
                )

    @classmethod
    def open(cls, project: Project) -> Items:
        """Read the items of a project; ProjectError if there are none, or an id is bad."""
        path = project.items_path
        try:
            columns = read_columns(path, "items", "id") if project.kind == "table" else {}
            ids = columns.pop("id") if columns else list(list_files(path, SUFFIXES[project.kind]))
            with locate_errors(lambda row: f"{path}, item {row + 1}"):
                if not ids:
                    raise TableError(f"{path} has no items")
                check_unique("id", as_ids("id", ids))
        except TableError as error:
            raise ProjectError(str(error)) from None
        return cls(project, ids, columns)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, item: object) -> bool:
        return item in self._rows

    def view(self, item: str) -> ItemView:
        """Content of an item for the annotator's page.

        Raises KeyError if there is no such item, and ProjectError if its file cannot be shown.
        """
        row = self._rows[item]
        if self.kind == "table":
            cells = tuple((name, self._columns[name][row]) for name in self._shown)
            return ItemView("table", item, rows=cells)
        path = (self._folder / item).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            raise ProjectError(f"item {item!r} is not a file inside {self._folder} any more")
        if self.kind == "image":
            return ItemView("image", item, image_path=path)
        return ItemView("text", item, text=read_file(path, MAX_TEXT_BYTES).decode(errors="replace"))


def read_columns(path: Path, what: str, *needed: str) -> dict[str, list[str]]:
    """The columns of a ``.csv`` or ``.parquet`` table, every cell as text."""
    source = open_source(path, what, *needed)
    columns: dict[str, list[str]] = {name: [] for name in source.names}
    for batch in source.batches(source.names):
        for name, cells in columns.items():
            try:
                cells += ["" if cell is None else str(cell) for cell in batch[name].to_pylist()]
            except (ValueError, OverflowError) as error:  # dates that Python cannot represent
                raise TableError(f"{path}, after row {len(cells)}: {error}") from None
    return columns


def read_file(path: Path, max_bytes: int) -> bytes:
    """Content of a file; ProjectError if it is too large to be shown."""
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ProjectError(f"{path} has more than {max_bytes} bytes: make it smaller")
    return content


def read_image(path: Path) -> tuple[bytes, str]:
    """Content and media type of an image."""
    content = read_file(path, LARGEST_IMAGE)
    media = media_type(content)
    if media not in IMAGES.values():
        raise ProjectError(f"{path} is not a PNG, JPEG, GIF or WebP image")
    return content, str(media)


def media_type(data: bytes) -> str | None:
    """Type of an image by its first bytes, never by its name; None if it is not supported.

    SVG is not supported, because it can hold scripts.

    >>> media_type(b"GIF89a..."), media_type(b"<svg>")
    ('image/gif', None)
    """
    if data.startswith(b"RIFF") and data.startswith(b"WEBP", 8):
        return "image/webp"
    starts = {
        "image/png": (b"\x89PNG\r\n\x1a\n",),
        "image/jpeg": (b"\xff\xd8\xff",),
        "image/gif": (b"GIF87a", b"GIF89a"),
    }
    return next((media for media, start in starts.items() if data.startswith(start)), None)
