"""One server for a project, and the address at which it is reached.

The lock is on a file of its own, never on the file of answers, and the kernel releases it
when the process ends, however it ends. The address stays in the file for the next links.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairlearn.annotate.store_file import StoreError

__all__ = ["announce", "hold", "served_at"]

FILE = "serve.lock"


@contextmanager
def hold(folder: Path) -> Iterator[int]:
    """Be the only one who serves or replaces the answers of a project; the lock, to announce.

    Raises
    ------
    StoreError
        If another process does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, hold(Path(folder)) as lock:
    ...     announce(lock, "http://127.0.0.1:8337")
    ...     served_at(Path(folder))
    'http://127.0.0.1:8337'
    """
    lock = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            where = served_at(folder)
            raise StoreError(
                f"{folder} is being served already{f', at {where}' if where else ''}: "
                "end that server first"
            ) from None
        yield lock
    finally:
        os.close(lock)


def announce(lock: int, address: str) -> None:
    """Write down where the holder of the lock is reached."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"address": address}).encode(), 0)


def served_at(folder: Path) -> str | None:
    """The address at which a project is served, or was the last time; None if it never was.

    Examples
    --------
    >>> served_at(Path("no-such-folder"))
    """
    try:
        found = json.loads((folder / FILE).read_text("utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None
