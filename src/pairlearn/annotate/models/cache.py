"""Answers of an endpoint on disk, so that no question is paid for twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from pairlearn.annotate.models.errors import ModelError
from pairlearn.annotate.store_file import SMALLEST_FILE

__all__ = ["AnswerCache", "question_key"]

_VERSION = 1


def question_key(url: str, body: dict[str, Any]) -> str:
    """SHA-256 of where a question goes and of all that is sent, except the key.

    Examples
    --------
    >>> one = question_key("http://127.0.0.1/v1", {"model": "m", "messages": []})
    >>> len(one), one == question_key("http://127.0.0.1/v1", {"messages": [], "model": "m"})
    (64, True)
    """
    text = json.dumps([url, body], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class AnswerCache:
    """Answers by the hash of their question, in one SQLite file.

    An answer is on disk when `put` returns. Questions are not stored, only their hashes:
    items may be private. Threads and processes can share a file.

    Parameters
    ----------
    path : Path
        The file; it is created.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AnswerCache(Path(folder, "answers.sqlite")) as cache:
    ...         cache.put("k", {"tokens": [["Yes", -0.1]]})
    ...         cache.get("k"), cache.get("other"), len(cache)
    ({'tokens': [['Yes', -0.1]]}, None, 1)
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self.path = path
        # Only SQLite opens the file, as `pairlearn.annotate.store_file` explains. It takes a
        # file of one byte for an empty one, and writes over it.
        if path.is_file() and 0 < path.stat().st_size < SMALLEST_FILE:
            raise self._refusal("not of SQLite")
        self._connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
        try:
            self._prepare()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self._connection.close()
            raise self._refusal(error) from None

    def _refusal(self, reason: object) -> ModelError:
        return ModelError(
            f"{self.path} is no cache of answers, or is damaged ({str(reason)[:300]}): move it "
            "away, and a new one is made"
        )

    def _prepare(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise sqlite3.DatabaseError(f"version {version}, written by a newer pairlearn")
        # Both before anything is written: the file may be another program's, or damaged.
        tables = [row[0] for row in self._connection.execute("SELECT name FROM sqlite_master")]
        if any(name != "answers" and not name.startswith("sqlite_") for name in tables):
            raise sqlite3.DatabaseError(f"it has the table {tables[0]!r:.80}")
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS answers "
            "(question TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"
        )
        self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        self._connection.commit()

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer, or None if there is none."""
        try:
            with self._lock:
                row = self._connection.execute(
                    "SELECT answer FROM answers WHERE question = ?", (key,)
                ).fetchone()
            return None if row is None else dict(json.loads(row[0]))
        except (sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
            raise self._refusal(error) from None

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Keep an answer; the first one stays."""
        with self._lock, self._connection:
            self._connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, json.dumps(answer))
            )

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
