"""Writing the file of answers: locks, the writing thread, snapshots and backups.

The disk takes as long to commit one answer as a hundred, so jobs that arrive during a commit go
into the following transaction together. A job's future is resolved after its commit: a
result means that the answer is on disk.

``PROJECT/backups`` holds the files of `back_up`, the last automatic snapshot, and files that a
restored backup replaced. Each is one whole SQLite file that appears complete and never changes, so
any tool may copy it at any time.

A project is served or restored by one process at a time. The lock is on a file of its own, never
on the file of answers, and the kernel releases it however the process ends. The address of the
server stays in the file for the next links.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias, TypeVar

from pairlearn_studio.changes import Changes
from pairlearn_studio.project import Project
from pairlearn_studio.store_file import (
    StoreError,
    StoreFileError,
    connect,
    copy_file,
    file_errors,
    find_damage,
    has_answers,
    make_file,
    make_tables,
    open_file,
    parts_of,
    to_file_error,
    version_of,
)

T = TypeVar("T")
Job: TypeAlias = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]

FILE = "serve.lock"


@contextmanager
def lock_answers(folder: Path, *, exclusive: bool = False) -> Iterator[None]:
    """Keep others from replacing a project's answers; if ``exclusive``, from using them at all.

    The lock is on the folder, so it needs no right to write. StoreError if others hold it.
    """
    activity = "in use by another command" if exclusive else "being restored from a backup"
    message = f"{folder} is {activity}: try again when that has ended"
    with _locked(folder, os.O_RDONLY, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, message):
        yield


@contextmanager
def lock_server(folder: Path) -> Iterator[int]:
    """Be the only process that serves or replaces a project's answers; StoreError if another does.

    Yields the lock, for `announce`.
    """
    address = served_at(folder)
    at = f", at {address}" if address else ""
    message = f"{folder} is being served already{at}: end that server first"
    with _locked(folder / FILE, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX, message) as lock:
        yield lock


@contextmanager
def _locked(path: Path, mode: int, kind: int, message: str) -> Iterator[int]:
    lock = os.open(path, mode | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(message) from None
        yield lock
    finally:
        os.close(lock)


def announce(lock: int, address: str) -> None:
    """Write the address of the server that holds the lock."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"address": address}).encode(), 0)


def served_at(folder: Path) -> str | None:
    """The address at which a project is or was last served; None if it never was."""
    try:
        address = json.loads((folder / FILE).read_text("utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address if isinstance(address, str) else None


LOG = logging.getLogger("pairlearn.annotate")

FOLDER = "backups"
SNAPSHOT = "auto.sqlite"
#: Answers between two snapshots, or a tenth of all where that is more.
EVERY = 200


class Snapshots:
    """Copy the answers at intervals, in a thread of its own, over the copy before."""

    def __init__(self, path: Path) -> None:
        self._path, self._copy, self._last = path, path.parent / FOLDER / SNAPSHOT, 0
        self._thread: threading.Thread | None = None
        if self._copy.is_file():
            with suppress(StoreError), closing(open_file(self._copy)) as copy:
                self._last = Changes(copy, "snapshot").given()

    def update(self, answers: int) -> None:
        """Begin a copy if the number of answers on disk has grown enough since the last one."""
        self._last = min(self._last, answers)  # fewer after an older state was restored
        busy = self._thread is not None and self._thread.is_alive()
        if busy or answers - self._last < max(EVERY, self._last // 10):
            return
        self._last = answers
        self._thread = threading.Thread(target=self._make, name="pairlearn-snapshot", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for a copy that is under way."""
        if self._thread is not None:
            self._thread.join()

    def _make(self) -> None:
        try:
            with closing(connect(self._path)) as connection:
                copy_file(connection, self._copy)
        except (StoreError, OSError) as error:
            LOG.warning("pairlearn annotate: no snapshot of the answers was made: %s", error)


#: Jobs in one transaction: bounds how long the first one waits for the others.
MOST_AT_ONCE = 1000


class Writer:
    """The thread that owns the writing connection to a file of answers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with ExitStack() as stack:
            stack.enter_context(lock_answers(path.parent))
            self._connection = stack.enter_context(closing(connect(path, writer=True)))
            with file_errors(path):
                make_tables(self._connection, path)
            self._held = stack.pop_all()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._snapshots = Snapshots(path)
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="pairlearn-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Do ``work`` in the next transaction; the future is resolved after the commit.

        If ``work`` raises, its changes are undone, and those of others stay.
        """
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                raise StoreError(f"{self._path} was closed; open the store again")
            self._jobs.put((work, future))
        return future

    def close(self) -> None:
        """Finish what was submitted, and end; may be called again."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()
        self._snapshots.close()
        self._held.close()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch: list[Job | None] = [job]
            with suppress(queue.Empty):
                while len(batch) < MOST_AT_ONCE and batch[-1] is not None:
                    batch.append(self._jobs.get_nowait())
            # Jobs that were cancelled are left out.
            self._commit([job for job in batch if job and job[1].set_running_or_notify_cancel()])
            if batch[-1] is None:
                return

    def _commit(self, jobs: list[Job]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            resolvers = [self._do(*job) for job in jobs]
            self._connection.execute("COMMIT")
        except Exception as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            file_error = to_file_error(self._path, error)
            file_error.__cause__ = error
            for _, future in jobs:
                future.set_exception(file_error)
            return
        for resolve in resolvers:  # now that it is on disk
            resolve()
        with suppress(sqlite3.Error):
            self._snapshots.update(Changes(self._connection, "snapshot").given())

    def _do(
        self, work: Callable[[sqlite3.Connection], T], future: Future[T]
    ) -> Callable[[], object]:
        """Do a job, or undo all of it; return what resolves its future.

        Errors that concern the whole transaction are raised.
        """
        self._connection.execute("SAVEPOINT job")
        resolve: Callable[[], object]
        try:
            resolve = partial(future.set_result, work(self._connection))
        except Exception as error:
            if not self._connection.in_transaction or isinstance(error, sqlite3.OperationalError):
                raise
            self._connection.execute("ROLLBACK TO job")
            resolve = partial(future.set_exception, error)
        self._connection.execute("RELEASE job")
        return resolve


class Restored(NamedTuple):
    """Result of `restore`: the number of answers, and where the file that was replaced is kept.

    ``links`` names those whose link is not that of the backup; None if all are, because the
    file that was replaced cannot be read.
    """

    answers: int
    replaced: Path | None
    links: list[str] | None


def back_up(project: Project, out: Path | None = None) -> tuple[Path, int]:
    """Copy the answers while people may be answering; return the file and its number of answers.

    ``out`` must not exist; by default it is in the project's folder of backups.
    """
    out = _new_path(project, "answers") if out is None else out
    if out.exists():
        raise StoreError(f"{out} already exists: choose another name")
    with closing(connect(project.store_path)) as connection:
        copy_file(connection, out)
    with closing(open_file(out)) as copy:
        return out, Changes(copy, "backup").standing()


def newest_backup(project: Project) -> Path:
    """The backup that was written last; StoreError if there is none."""
    folder = project.folder / FOLDER
    backups = [path for path in folder.glob("[!.]*.sqlite") if not path.match("replaced-*")]
    if not backups:
        raise StoreError(f"{folder} has no backups: name the file to restore")
    return max(backups, key=lambda path: path.stat().st_mtime_ns)


def restore(project: Project, source: Path) -> Restored:
    """Replace the answers of a project by those of a backup; the old ones are kept aside.

    In one transaction: a process killed in the middle leaves the answers as they were. Links
    stay as they are: one that was renewed or ended since the backup does not open again. Raises
    StoreError if the project is being served or used, or the backup is damaged or of another
    project.
    """
    path = project.store_path
    if source.exists() and path.exists() and source.samefile(path):
        raise StoreError(f"{source} is the file of answers itself: name a backup of it")
    with ExitStack() as stack:
        stack.enter_context(lock_server(project.folder))
        stack.enter_context(lock_answers(project.folder, exclusive=True))
        backup = stack.enter_context(closing(open_file(source)))
        with file_errors(source):
            if not version_of(backup):
                raise StoreError(f"{source} is empty: name another")
            if damage := find_damage(backup, "integrity_check"):
                raise StoreFileError(f"{source} is damaged ({damage}): name another", damaged=True)
            if Changes(backup, "restore").setting("project") not in (None, project.id):
                raise StoreError(f"{source} is a backup of another project: name one of this one")
        replaced, readable = _set_aside(project)
        folder = Path(stack.enter_context(TemporaryDirectory(dir=project.folder)))
        copy_file(backup, folder / path.name)
        copy = stack.enter_context(closing(connect(folder / path.name, writer=True)))
        changes, links = Changes(copy, "restore"), None
        if replaced is not None and readable:
            present = stack.enter_context(closing(open_file(replaced)))
            links = changes.adopt_links(Changes(present, "restore"))
        if links:
            changes.reassign(project)
        if not path.exists():
            make_file(path)
        with file_errors(path), closing(connect(path, writer=True)) as connection:
            copy.backup(connection)
            if damage := find_damage(connection, "integrity_check"):
                raise StoreFileError(f"{path} was not written whole ({damage})", damaged=True)
        if (snapshot := path.parent / FOLDER / SNAPSHOT).exists():  # of answers that were replaced
            snapshot.replace(_new_path(project, "replaced-auto"))
        return Restored(changes.standing(), replaced, links)


def _set_aside(project: Project) -> tuple[Path | None, bool]:
    """Copy the present answers to the backups; return where, and whether they can be read.

    A damaged file is moved instead, with its log.
    """
    path, kept = project.store_path, _new_path(project, "replaced")
    if not path.exists():
        return None, False
    try:
        with closing(connect(path)) as connection:
            copy_file(connection, kept)
    except StoreFileError as error:
        if not error.damaged:
            raise
        kept.parent.mkdir(exist_ok=True)
        for part, target in zip(parts_of(path), parts_of(kept), strict=True):
            if part.exists():
                part.replace(target)
        return kept, False
    return kept, has_answers(kept)


def _new_path(project: Project, name: str) -> Path:
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    return project.folder / FOLDER / f"{name}-{now}.sqlite"
