"""One thread that writes, and many that wait for it.

The disk takes as long to commit one answer as a hundred, so jobs that arrive during a commit go
into the following transaction together. A job's future is resolved after its commit: whoever has
the result can rely on its being on disk.
"""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from pairlearn.studio.backups import Snapshots, using
from pairlearn.studio.store_file import StoreError, connect, failure, migrate, reading

T = TypeVar("T")

MOST_AT_ONCE = 1000
"""Jobs in one transaction: a bound on how long the first one waits for the others."""

IDLE_SECONDS = 1.0
"""Without work, after which all answers go from the log into the file itself."""


class Writer:
    """The thread that owns the writing connection to a file of answers, which it migrates."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with contextlib.ExitStack() as stack:
            stack.enter_context(using(path.parent))
            self._connection = stack.enter_context(contextlib.closing(connect(path, writer=True)))
            with reading(path):
                migrate(self._connection, path)
            self._held = stack.pop_all()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._snapshots = Snapshots(path)
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="pairlearn-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Do ``work`` in the next transaction; a Future that resolves after the commit.

        If ``work`` raises, its changes are undone, and the others of the transaction are not
        touched.
        """
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                raise StoreError(f"{self._path} was closed; open the store again")
            self._jobs.put(_Job(work, future))
        return future

    def close(self) -> None:
        """Do what was submitted, and end; again and again is fine."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()
        self._snapshots.close()
        self._held.close()

    def _next(self) -> _Job | None:
        """The next job; while there is none, the file is made whole without its log.

        Whoever copies the file alone, as backup tools do, then has all answers.
        """
        try:
            return self._jobs.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            with contextlib.suppress(sqlite3.Error):  # a full disk: the log has everything
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return self._jobs.get()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            batch: list[_Job | None] = [job]
            with contextlib.suppress(queue.Empty):
                while len(batch) < MOST_AT_ONCE and batch[-1] is not None:
                    batch.append(self._jobs.get_nowait())
            self._commit([one for one in batch if one is not None and one.starts()])
            if batch[-1] is None:
                return

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.do(self._connection)
            self._connection.execute("COMMIT")
        except Exception as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            trouble = failure(self._path, error)
            trouble.__cause__ = error
            for job in jobs:
                job.future.set_exception(trouble)
            return
        for job in jobs:
            job.tell()
        with contextlib.suppress(sqlite3.Error):
            (answers,) = self._connection.execute("SELECT max(id) FROM answer").fetchone()
            self._snapshots.consider(answers or 0)


class _Job:
    """Something to do, and the future of its result."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any], future: Future[Any]) -> None:
        self.work, self.future = work, future
        self._result: Any = None
        self._error: Exception | None = None

    def starts(self) -> bool:
        """Whether anybody still wants it."""
        return self.future.set_running_or_notify_cancel()

    def do(self, connection: sqlite3.Connection) -> None:
        """Do it, or undo all of it; an error that ends the transaction is passed on."""
        connection.execute("SAVEPOINT job")
        try:
            self._result = self.work(connection)
        except Exception as error:
            if not connection.in_transaction or isinstance(error, sqlite3.OperationalError):
                raise
            connection.execute("ROLLBACK TO job")
            self._error = error
        connection.execute("RELEASE job")

    def tell(self) -> None:
        """Resolve the future, now that the result is on disk."""
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._result)
