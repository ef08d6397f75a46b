"""Files that are either whole or absent, after a power cut too."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "sync"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to a temporary neighbour that takes the place of ``path`` on success.

    Parameters
    ----------
    path : Path
        The file to create or replace; its folder is created.

    Yields
    ------
    Path
        Where to write. Removed if the block raises; ``path`` is then untouched.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as part:
    ...         _ = part.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile.mkstemp: its files are readable by their owner only, and caches are shared.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with naming(path):
            yield part
            sync(part)
            part.replace(path)
            sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have errors of the system, such as a full disk, name what was to be written.

    Examples
    --------
    >>> with naming(Path("model")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'model'
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise


def sync(path: Path) -> None:
    """Have a file or a folder on the disk before going on, where the system can open folders.

    Examples
    --------
    >>> sync(Path("."))
    """
    if os.name != "posix" and path.is_dir():
        return
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
