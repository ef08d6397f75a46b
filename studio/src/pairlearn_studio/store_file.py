"""The SQLite file that holds the answers: its schema, its connections, and verified copies.

Only SQLite opens the file. On POSIX, closing *any* descriptor of a file drops all locks that
the process holds on it. Reading, hashing, copying or flushing it here would leave the
connections of this process without their locks, and other processes free to remove the log.

Answers and changes are append-only: triggers refuse anything else.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec

from pairlearn.atomic import replacing, sync

BUSY_SECONDS = 30.0


class StoreError(ValueError):
    """The file of answers is not in order, or a request to it is wrong."""


class StoreFileError(StoreError, OSError):
    """The file cannot be read or written now; the request may be right and is worth repeating.

    ``damaged`` means that the content of the file is wrong, not the disk or its permissions.
    """

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged


_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DISK = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
}  # fmt: skip


def to_file_error(path: Path, error: Exception) -> StoreFileError:
    """Translate an error of SQLite into one that names the file and the remedy."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreFileError(f"{path} was in use for {BUSY_SECONDS:.0f} s: try again")
    if code in _DISK:
        full = code == sqlite3.SQLITE_FULL
        reason = "the disk is full" if full else _write_obstacle(path) or str(error)
        return StoreFileError(f"{path} cannot be written: {reason}; what is stored is safe")
    return StoreFileError(
        f"{path} is not a file of answers, or is damaged ({str(error)[:300]}): take it from a "
        "backup with `pairlearn annotate restore`",
        damaged=True,
    )


def _write_obstacle(path: Path) -> str:
    """Find out why a file or its folder cannot be written: SQLite only says "disk I/O error"."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.write(bytes(64 * 1024))  # as much as the index of the log needs
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return "the disk is full" if full else str(error.strerror)
    return "" if os.access(path, os.W_OK) else "the file is read-only"


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a damaged or unavailable file into a `StoreFileError`."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise to_file_error(path, error) from error


def copy_file(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    """Copy a whole file while others use it, readable by its owner only; return row counts.

    The copy is verified before it appears: StoreFileError if it is not whole.
    """
    with replacing(path) as part:
        make_file(part)
        with file_errors(path), closing(sqlite3.connect(part, isolation_level=None)) as copy:
            connection.execute("BEGIN")  # the counts and the copy are of the same moment
            try:
                counts = _row_counts(connection)
                connection.backup(copy)
            finally:
                connection.execute("ROLLBACK")
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            damage = find_damage(copy, "integrity_check")
            if damage or _row_counts(copy) != counts:
                raise StoreFileError(f"{path} was not written whole ({damage}): try again")
    return counts


def find_damage(connection: sqlite3.Connection, check: str = "quick_check") -> str:
    """Check a file; return what is wrong with it, or "".

    Rows of answers and changes are numbered without gaps and never removed, so a missing number
    shows a file put together from parts of two moments.
    """
    (result,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
    if result != "ok":
        return str(result)
    for table in ("answer", "change"):
        if table in _row_counts(connection):
            # In one statement: others may be writing.
            count, last = connection.execute(f"SELECT count(*), max(id) FROM {table}").fetchone()
            if count != (last or 0):
                return f"{last} {table}s were stored, {count} are there"
    return ""


def _row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        str(name): int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])
        for (name,) in names
    }


def make_file(path: Path) -> None:
    """Make an empty file that only its owner can read, and flush the folder."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise StoreError(f"{path} already exists: answers are never replaced") from None
    sync(path.parent)


def parts_of(path: Path) -> list[Path]:
    """The files that SQLite keeps for a database: its log, the log's index, the file itself."""
    return [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "")]


APPLICATION_ID = 0x70616972  # "pair", to tell our files from those of other programs
VERSION = 2
SCHEMA = Path(__file__).with_name("schema.sql").read_text("utf-8").split("\n\n")


class _Connection(sqlite3.Connection):
    """A connection that can be referred to weakly."""


def connect(path: Path, *, writer: bool = False) -> sqlite3.Connection:
    """Open an existing file; the writer's commits reach the disk before they return.

    ``synchronous=FULL`` flushes every commit, which WAL mode's default, ``NORMAL``, would leave to
    the next checkpoint. Raises StoreError if there is no such file or it is another program's.
    """
    with ExitStack() as on_failure, file_errors(path):
        connection = on_failure.enter_context(closing(open_file(path)))
        if enable_wal(connection) != "wal" and not _is_immutable(path):
            raise StoreError(f"{path} is on a file system without WAL: move the project elsewhere")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        if not writer:
            connection.execute("PRAGMA query_only = ON")
        on_failure.pop_all()
    return connection


def enable_wal(connection: sqlite3.Connection) -> str:
    """Switch a file to WAL mode; return the mode that it then has.

    SQLite refuses this at once while another connection makes the same change.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def open_file(path: Path) -> sqlite3.Connection:
    """Open an existing file of ours without writing to it; StoreError if it is not one."""
    if not path.is_file():
        raise StoreError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}")
    with ExitStack() as on_failure, file_errors(path):
        uri = path.absolute().as_uri() + ("?immutable=1" if _is_immutable(path) else "")
        # Without an isolation level, transactions begin only where we begin them.
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None,
            factory=_Connection,
        )  # fmt: skip
        on_failure.callback(connection.close)
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        program = connection.execute("PRAGMA application_id").fetchone()[0]
        # A file without tables is new.
        ours = program == APPLICATION_ID if version_of(connection) else not tables
        if not ours:
            raise StoreError(f"{path} is an SQLite file of another program")
        on_failure.pop_all()
    return connection


def _is_immutable(path: Path) -> bool:
    """Whether a file is on a read-only disk, where SQLite can make no log, and has none."""
    log, *_ = parts_of(path)
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY) and not log.exists()


def has_answers(path: Path) -> bool:
    """Whether a file has our tables; a new one has none yet. The file is left as it is."""
    with closing(open_file(path)) as connection:
        return version_of(connection) > 0


def version_of(connection: sqlite3.Connection) -> int:
    """Schema version of a file; 0 if it is new."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def make_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file; StoreError if it is of another version."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = version_of(connection)
        if version == 0:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    if version not in (0, VERSION):
        raise StoreError(
            f"{path} has schema version {version}; this pairlearn reads version {VERSION}"
        )
