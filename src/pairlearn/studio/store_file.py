"""The file of answers as a file: its tables, what can be wrong with it, whole copies of it.

Only SQLite opens the file. On POSIX, closing *any* descriptor of a file drops all locks that
the process holds on it, so that reading, hashing, copying or flushing it here would leave the
connections of this process without their locks, and other processes free to remove the log.

``MIGRATIONS[k]`` takes a file from version k to k + 1; a new file is one of version 0 that
takes all of them. Answers and changes are append-only: triggers refuse anything else.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from pairlearn.atomic import replacing, sync

BUSY_SECONDS = 30.0
SMALLEST_FILE = 512
"""Bytes of the smallest page that SQLite has, and so of the smallest file with anything in it."""


class StoreError(ValueError):
    """The file of answers, or what is asked of it, is not in order."""


class StoreFileError(StoreError, OSError):
    """The file cannot be read or written now; the request may be right and is worth repeating.

    ``damaged`` says that the content of the file is wrong, not the disk or its permissions.
    """

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged


UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, msgspec.DecodeError)
"""What reading a damaged file raises."""
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_OF_THE_DISK = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
}  # fmt: skip


def failure(path: Path, error: Exception) -> StoreFileError:
    """What is wrong with a file, from what SQLite said of it."""
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
    """Turn what SQLite says of a file into a `StoreFileError` that names it."""
    try:
        yield
    except UNREADABLE as error:
        raise failure(path, error) from error


def copy_of(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    """Copy a whole file while others use it, readable by its owner only; the rows of each table.

    The copy is verified before it appears: StoreFileError if it is not whole.
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

    Rows of answers and changes are numbered without gaps and never removed, so a missing number
    shows a file put together from parts of two moments.
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
    """Make an empty file that only its owner can read, in a folder that knows of it on disk."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise StoreError(f"{path} is there already: answers are never replaced") from None
    sync(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file of answers, with what SQLite keeps beside it."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


Migration: TypeAlias = Sequence[str]
"""Statements that are carried out in one transaction."""

APPLICATION_ID = 0x70616972  # "pair", so that the file of another program is not taken for ours


def _statements(name: str) -> Migration:
    """The statements of a script beside this file."""
    found = [""]
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines(keepends=True):
        found[-1] += line
        if sqlite3.complete_statement(found[-1]):
            found.append("")
    return tuple(statement for statement in found if statement.strip())


MIGRATIONS: tuple[Migration, ...] = (
    _statements("schema_1.sql"),
    ("ALTER TABLE answer ADD COLUMN level TEXT NOT NULL DEFAULT ''",),
)


class _Connection(sqlite3.Connection):
    """A connection that can be referred to weakly."""


def connect(path: Path, *, writer: bool = False) -> sqlite3.Connection:
    """Open an existing file; the writer's commits reach the disk before they return.

    ``synchronous=FULL`` flushes every commit, which WAL mode's default, ``NORMAL``, would leave to
    the next checkpoint. Raises StoreError if there is no such file or it is another program's.
    """
    with ExitStack() as on_failure, reading(path):
        connection = on_failure.enter_context(closing(open_file(path)))
        if with_log(connection) != "wal" and not _unchanging(path):
            raise StoreError(f"{path} is on a file system without WAL: move the project elsewhere")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        if not writer:
            connection.execute("PRAGMA query_only = ON")
        on_failure.pop_all()
    return connection


def with_log(connection: sqlite3.Connection) -> str:
    """Have a file written through a log beside it (WAL mode); the mode that it then has.

    SQLite refuses this at once while another connection makes the same change.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _PASSING or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def connect_any(path: Path, suffix: str = "", **options: Any) -> sqlite3.Connection:
    """Open a file for several threads, or make it; sqlite3.DatabaseError if it is too short.

    SQLite takes a file of one byte for an empty one, and writes over it.
    """
    if path.is_file() and 0 < path.stat().st_size < SMALLEST_FILE:
        raise sqlite3.DatabaseError("it is not of SQLite")
    options |= {"uri": True, "timeout": BUSY_SECONDS, "check_same_thread": False}
    connection: sqlite3.Connection = sqlite3.connect(path.absolute().as_uri() + suffix, **options)
    return connection


def open_file(path: Path) -> sqlite3.Connection:
    """Open an existing file of ours without writing to it; StoreError if it is not one."""
    if not path.is_file():
        raise StoreError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}")
    with ExitStack() as on_failure, reading(path):
        suffix = "?immutable=1" if _unchanging(path) else ""
        # Transactions begin where we say so.
        connection = connect_any(path, suffix, isolation_level=None, factory=_Connection)
        on_failure.callback(connection.close)
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        program = connection.execute("PRAGMA application_id").fetchone()[0]
        # One without tables is a new one.
        ours = program == APPLICATION_ID if version_of(connection) else not tables
        if not ours:
            raise StoreError(f"{path} is an SQLite file of another program")
        on_failure.pop_all()
    return connection


def _unchanging(path: Path) -> bool:
    """Whether a file is on a read-only disk, where SQLite can make no log, and has none."""
    log = path.with_name(f"{path.name}-wal")
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY) and not log.exists()


def has_answers(path: Path) -> bool:
    """Whether a file is one of ours that was ever begun; it is left as it is."""
    with closing(open_file(path)) as connection:
        return version_of(connection) > 0


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the schema of a file; 0 if it is new."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> int:
    """Bring a file to the current version, each step in one transaction; the version it had.

    A file with answers is copied to ``NAME.vK.sqlite`` first, K being its version. Raises
    StoreError if the file is of a later version or another program.
    """
    found, newest = version_of(connection), len(migrations)
    if found > newest:
        raise StoreError(
            f"{path} has schema version {found}; this pairlearn knows versions up to {newest}: "
            "upgrade pairlearn"
        )
    if found == newest:
        return found
    if found:
        copy_of(connection, path.with_name(f"{path.stem}.v{found}{path.suffix}"))
    for number in range(found, newest):
        _step(connection, migrations[number], number)
    return found


def _step(connection: sqlite3.Connection, migration: Migration, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster.
        if version_of(connection) == number:
            for statement in migration:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
