"""Atomic file writes, which survive a power cut."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "sync"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces ``path`` on success.

    The folder is created. If the block raises, the file is removed, also the folder if it is new,
    and ``path`` is unchanged.
    """
    new_folder = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile.mkstemp, whose files only their owner can read: caches are shared.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    with errors_naming(path):
        try:
            yield part
            sync(part)
            part.replace(path)
            sync(path.parent)
        finally:
            part.unlink(missing_ok=True)
            if new_folder and not any(path.parent.iterdir()):
                path.parent.rmdir()


@contextmanager
def errors_naming(path: Path) -> Iterator[None]:
    """Make system errors, such as a full disk, name the file being written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and str(error.filename or ".part").endswith(".part"):
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise


def sync(path: Path) -> None:
    """Flush a file to disk, or a folder where the system can open folders."""
    if os.name != "posix" and path.is_dir():
        return
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
