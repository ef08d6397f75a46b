"""Folders of files as items: a file is an item, and its name is the id."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pairlearn.columns import TableError
from pairlearn.extras import missing_extra
from pairlearn.tables.cells import PIXELS, ColumnKind
from pairlearn.tables.sources import Source, text_array

IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
    ".gif": "image/gif",
}  # fmt: skip
"""The endings of images that can be items, and what they are."""
ENDINGS: dict[str, tuple[str, ...]] = {"image": tuple(IMAGES), "text": (".txt", ".md")}
BATCH = 1024
"""Files that are in memory at once."""


class FolderSource(Source):
    """A folder of texts or of images: ``id`` is the name of a file, the other what is in it."""

    typed = True

    def __init__(self, path: Path) -> None:
        images, texts = (files_of(path, ENDINGS[kind]) for kind in ("image", "text"))
        if len(images) == len(texts):
            listed = ", ".join(sum(ENDINGS.values(), ()))
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


def files_of(folder: Path, endings: Sequence[str]) -> dict[str, Path]:
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
