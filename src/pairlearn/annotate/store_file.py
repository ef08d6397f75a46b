"""The file of answers as a file: what can be wrong with it, and whole copies of it.

Only SQLite opens the file. On POSIX, closing *any* descriptor of a file drops all locks that
the process holds on it, so that reading, hashing, copying or flushing it here would leave the
connections of this process without their locks, and other processes free to remove the log.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pairlearn.atomic import replacing, sync

__all__ = [
    "BUSY_SECONDS",
    "SMALLEST_FILE",
    "StoreError",
    "StoreFileError",
    "copy_of",
    "failure",
    "find_damage",
    "make_file",
    "reading",
    "remove_file",
]

BUSY_SECONDS = 30.0
SMALLEST_FILE = 512
"""Bytes of the smallest page that SQLite has, and so of the smallest file with anything in it."""


class StoreError(ValueError):
    """The file of answers, or what is asked of it, is not in order."""


class StoreFileError(StoreError, OSError):
    """The file cannot be read or written now; the request may be right, and is worth repeating.

    Attributes
    ----------
    damaged : bool
        Whether it is the content of the file that is wrong, and not the disk or its rights.
    """

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged


_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_OF_THE_DISK = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
}  # fmt: skip


def failure(path: Path, error: Exception) -> StoreFileError:
    """What is wrong with a file, from what SQLite said of it.

    Examples
    --------
    >>> failure(Path("answers.sqlite"), sqlite3.DatabaseError("malformed")).damaged
    True
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _PASSING:
        return StoreFileError(f"{path} was in use for {BUSY_SECONDS:.0f} s: try again")
    if code in _OF_THE_DISK:
        full = code == sqlite3.SQLITE_FULL
        reason = "the disk is full" if full else _obstacle(path) or str(error)
        return StoreFileError(f"{path} cannot be written: {reason}; what is stored is safe")
    return StoreFileError(
        f"{path} is not a file of answers, or is damaged ({str(error)[:300]}): take it from a "
        "backup with `pairlearn annotate restore`",
        damaged=True,
    )


def _obstacle(path: Path) -> str:
    """Why nothing can be written beside a file or into it; SQLite says "disk I/O error"."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.write(bytes(64 * 1024))  # as much as the index of the log needs
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "the disk is full"
        return str(error.strerror)
    return "" if os.access(path, os.W_OK) else "the file is read-only"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a file into a `StoreFileError` that names it.

    Examples
    --------
    >>> with reading(Path("answers.sqlite")):
    ...     raise sqlite3.DatabaseError("database disk image is malformed")
    Traceback (most recent call last):
    pairlearn.annotate.store_file.StoreFileError: answers.sqlite is not a file of answers, or is
    damaged (database disk image is malformed): take it from a backup with `pairlearn annotate
    restore`
    """
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise failure(path, error) from error


def copy_of(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    """Copy a whole file while others use it; the copy is looked through before it appears.

    Parameters
    ----------
    connection : sqlite3.Connection
        The file, with its transactions in our hands.
    path : Path
        Of the copy, which is one file that only its owner can read.

    Returns
    -------
    dict of str to int
        Rows of each table, which are those of the original at one moment.

    Raises
    ------
    StoreFileError
        If the copy is not whole; then there is none.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = copy_of(sqlite3.connect(":memory:"), Path(folder, "copy.sqlite"))
    ...     [file.name for file in Path(folder).iterdir()]
    ['copy.sqlite']
    """
    with replacing(path) as part:
        make_file(part)
        with reading(path), closing(sqlite3.connect(part, isolation_level=None)) as copy:
            connection.execute("BEGIN")  # one moment for the counts and the copy
            try:
                counts = _row_counts(connection)
                connection.backup(copy)
            finally:
                connection.execute("ROLLBACK")
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            found = find_damage(copy, "integrity_check")
            if found or _row_counts(copy) != counts:
                raise StoreFileError(f"{path} was not written whole ({found}): try again")
    return counts


def find_damage(connection: sqlite3.Connection, check: str = "quick_check") -> str:
    """Look through a file; what is wrong with it, or "".

    Rows of answers and changes are numbered without gaps and never removed, so that a
    number which is missing shows a file that was put together from parts of two moments.

    Examples
    --------
    >>> find_damage(sqlite3.connect(":memory:"))
    ''
    """
    (found,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
    if found != "ok":
        return str(found)
    for table in ("answer", "change"):
        if table in _row_counts(connection):
            count, last = connection.execute(f"SELECT count(*), max(id) FROM {table}").fetchone()
            if count != (last or 0):
                return f"{last} {table}s were stored, {count} are there"
    return ""


def _row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    names = [
        str(row[0])
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    return {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])
        for name in names
    }


def make_file(path: Path) -> None:
    """Make an empty file that only its owner can read, in a folder that knows of it on disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_file(Path(folder, "answers.sqlite"))
    ...     remove_file(Path(folder, "answers.sqlite"))
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise StoreError(f"{path} is there already: answers are never replaced") from None
    sync(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file of answers, with what SQLite keeps beside it.

    Examples
    --------
    >>> remove_file(Path("no-such.sqlite"))
    """
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
