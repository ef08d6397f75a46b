"""The tables of the store, their version, and the way from an older version to this one.

``MIGRATIONS[k]`` takes a file from version k to k + 1; a new file is one of version 0 that
takes all of them. Answers and changes are append-only: triggers refuse anything else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from pairlearn.annotate.store_file import (
    BUSY_SECONDS,
    SMALLEST_FILE,
    StoreError,
    copy_of,
    failure,
)

__all__ = [
    "MIGRATIONS",
    "Migration",
    "connect",
    "has_answers",
    "migrate",
    "open_file",
    "version_of",
]

Migration: TypeAlias = Sequence[str]
"""Statements that are carried out in one transaction."""

APPLICATION_ID = 0x70616972  # "pair", so that the file of another program is not taken for ours


_VERSION_1: Migration = (
    """CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE annotator (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        token_hash BLOB NOT NULL UNIQUE,
        added_at TEXT NOT NULL,
        retired_at TEXT)""",
    """CREATE TABLE pair (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        left TEXT NOT NULL,
        right TEXT NOT NULL,
        weight REAL NOT NULL CHECK (weight > 0),
        origin TEXT NOT NULL CHECK (origin IN ('plan', 'chosen', 'import')))""",
    """CREATE INDEX pair_ends ON pair (left, right)""",
    """CREATE TABLE answer (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        annotator INTEGER NOT NULL REFERENCES annotator,
        pair INTEGER NOT NULL REFERENCES pair,
        key TEXT NOT NULL,
        revision INTEGER NOT NULL,
        similarity REAL CHECK (similarity BETWEEN 0 AND 1),
        difference REAL CHECK (difference BETWEEN -1 AND 1),
        preference INTEGER NOT NULL CHECK (preference IN (-1, 0, 1)),
        cant_say INTEGER NOT NULL CHECK (cant_say IN (0, 1)),
        note TEXT NOT NULL,
        seconds REAL NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (annotator, pair, key),
        UNIQUE (annotator, pair, revision))""",
    """CREATE INDEX answer_by ON answer (annotator, id)""",
    # answer: the current one, NULL while the pair is open;
    # touched: the last change that closed or reopened it, NULL for one never answered.
    """CREATE TABLE assignment (
        annotator INTEGER NOT NULL REFERENCES annotator,
        pair INTEGER NOT NULL REFERENCES pair,
        answer INTEGER REFERENCES answer,
        touched INTEGER REFERENCES change,
        PRIMARY KEY (annotator, pair)) WITHOUT ROWID""",
    """CREATE INDEX assignment_open ON assignment (annotator, touched DESC, pair)
        WHERE answer IS NULL""",
    """CREATE INDEX assignment_done ON assignment (annotator, touched) WHERE answer IS NOT NULL""",
    """CREATE TABLE change (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        who TEXT NOT NULL,
        action TEXT NOT NULL,
        annotator INTEGER REFERENCES annotator,
        pair INTEGER REFERENCES pair,
        before INTEGER REFERENCES answer,
        after INTEGER REFERENCES answer,
        detail TEXT NOT NULL DEFAULT '')""",
    *(
        f"""CREATE TRIGGER {table}_{what.lower()} BEFORE {what} ON {table}
        BEGIN SELECT RAISE(ABORT, '{table}s are kept as they are'); END"""
        for table in ("answer", "change")
        for what in ("UPDATE", "DELETE")
    ),
    f"PRAGMA application_id = {APPLICATION_ID}",
)

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1,)


class _Connection(sqlite3.Connection):
    """A connection that can be referred to weakly."""


def connect(path: Path, *, writer: bool = False) -> sqlite3.Connection:
    """Open an existing file; the writer's commits reach the disk before they return.

    Parameters
    ----------
    path : Path
        The file.
    writer : bool, default False
        Whether changes are made. ``synchronous=FULL`` has every commit flushed to disk,
        which in WAL mode the default of ``NORMAL`` would leave to the next checkpoint.

    Raises
    ------
    StoreError
        If there is no such file, it is not SQLite's, or it is of another program; it is
        left as it is.

    Examples
    --------
    >>> connect(Path("no-such.sqlite"))
    Traceback (most recent call last):
    pairlearn.annotate.store_file.StoreError: no-such.sqlite does not exist
    """
    connection = open_file(path)
    try:
        (journal,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if journal != "wal":
            raise StoreError(f"{path} is on a file system without WAL: move the project elsewhere")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        if not writer:
            connection.execute("PRAGMA query_only = ON")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        connection.close()
        raise failure(path, error) from None
    except StoreError:
        connection.close()
        raise
    return connection


def open_file(path: Path) -> sqlite3.Connection:
    """Open an existing file of ours; nothing is written into it, as the mode of the journal is.

    Raises
    ------
    StoreError
        If there is no such file, or it is not ours.

    Examples
    --------
    >>> open_file(Path("no-such.sqlite"))
    Traceback (most recent call last):
    pairlearn.annotate.store_file.StoreError: no-such.sqlite does not exist
    """
    if not path.is_file():
        raise StoreError(f"{path} does not exist")
    # SQLite takes a file of one byte for an empty one, and writes over it.
    if 0 < path.stat().st_size < SMALLEST_FILE:
        raise failure(path, ValueError("it is not of SQLite"))
    try:
        connection = sqlite3.connect(
            path,
            timeout=BUSY_SECONDS,
            isolation_level=None,  # transactions begin where we say so
            check_same_thread=False,
            factory=_Connection,
        )
    except sqlite3.Error as error:
        raise failure(path, error) from None
    try:
        _check_program(connection, path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        connection.close()
        raise failure(path, error) from None
    except StoreError:
        connection.close()
        raise
    return connection


def has_answers(path: Path) -> bool:
    """Whether a file is one of ours that was ever begun; it is left as it is.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.annotate.store_file import make_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_file(Path(folder, "answers.sqlite"))
    ...     has_answers(Path(folder, "answers.sqlite"))
    False
    """
    with closing(open_file(path)) as connection:
        return version_of(connection) > 0


def _check_program(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not ours; one without tables is a new one."""
    if version_of(connection):
        ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    else:
        ours = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not ours:
        raise StoreError(f"{path} is an SQLite file of another program")


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the schema of a file; 0 if it is new.

    Examples
    --------
    >>> version_of(sqlite3.connect(":memory:"))
    0
    """
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> int:
    """Bring a file to the current version, each step in one transaction.

    Before the first step a file with answers is copied to ``NAME.vK.sqlite``, K being the
    version that it had.

    Parameters
    ----------
    connection : sqlite3.Connection
        The file, with its transactions in our hands.
    path : Path
        Where it is.
    migrations : sequence of migrations
        Those that there are.

    Returns
    -------
    int
        The version it had.

    Raises
    ------
    StoreError
        If the file is of a later version or of another program; it is left as it is.

    Examples
    --------
    >>> memory = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(memory, Path("answers.sqlite")), version_of(memory) == len(MIGRATIONS)
    (0, True)
    """
    found, newest = version_of(connection), len(migrations)
    if found > newest:
        raise StoreError(
            f"{path} has schema version {found}; this pairlearn knows versions up to {newest}: "
            "upgrade pairlearn"
        )
    _check_program(connection, path)
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
