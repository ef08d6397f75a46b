"""Folders of files as items: a file is an item, and its name is the id."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pairlearn.columns import TableError
from pairlearn.tables.sources import Source, text_array

TEXTS = (".txt", ".md")
"""Endings of texts that can be items."""
BATCH = 1024
"""Texts that are in memory at once."""


class FolderSource(Source):
    """A folder of texts: ``id`` is the name of a file, and ``text`` what is in it."""

    typed = True

    def __init__(self, path: Path) -> None:
        self.path, self.names = path, ["id", "text"]
        self._files = files_of(path, TEXTS)
        if not self._files:
            raise TableError(f"{path} is a folder without texts ({', '.join(TEXTS)})")

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The columns asked for, some files at a time."""
        files = [*self._files.items()]
        for start in range(0, len(files), BATCH):
            part = files[start : start + BATCH]
            cells = {"id": [name for name, _ in part]}
            if "text" in names:
                cells["text"] = [self._read(path) for _, path in part]
            yield {name: text_array(cells[name]) for name in names}

    def place(self, row: int | None) -> str:
        """The file."""
        return str(self.path) if row is None else str([*self._files.values()][row])

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError) as error:
            raise TableError(f"{path} cannot be read as UTF-8: {error!s:.100}") from None


def files_of(folder: Path, endings: Sequence[str]) -> dict[str, Path]:
    """The files of a folder and its folders, by their names relative to it, in order.

    Links and hidden files are left out: an item is a file that lies here.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "b.txt").touch()
    ...     Path(folder, "a.TXT").touch()
    ...     list(files_of(Path(folder), TEXTS))
    ['a.TXT', 'b.txt']
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
