"""Finished runs in a file that only grows, and that survives being killed at any moment.

One line of JSON for each run. A line is written by one ``write`` and counts only once its
newline is there, so what a kill leaves behind is at worst one unfinished line at the end:
readers ignore it, and the next writer cuts it off.
"""

from __future__ import annotations

import fcntl
import json
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pairlearn.atomic import replacing, sync
from pairlearn.paper.render import to_csv
from pairlearn.paper.runs import Record, Run, StoreError, checked_notes, checked_results

_START = b'{"dataset": '  # of every line


class StoreLockedError(StoreError):
    """Another process is writing to the store.

    Examples
    --------
    >>> issubclass(StoreLockedError, StoreError)
    True
    """


class DuplicateRunError(StoreError):
    """The run is in the store already.

    Examples
    --------
    >>> issubclass(DuplicateRunError, StoreError)
    True
    """


class RunStore:
    """The finished runs in one file, each there once.

    ``with store:`` keeps other writers out until the block ends; an ``append`` outside
    of a block does so for itself.

    Parameters
    ----------
    path : path-like
        A file of JSON lines; it and its folder are created by the first append.

    Examples
    --------
    >>> import tempfile
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RunStore(Path(folder, "runs.jsonl"))
    ...     store.append(run, {"paper": 0.9})
    ...     len(store), store.missing([run])
    (1, [])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._records: dict[str, Record] = {}
        self._read = 0  # bytes of whole lines that are in _records
        self._file: int | None = None

    def __repr__(self) -> str:
        return f"RunStore({str(self.path)!r})"

    def __enter__(self) -> RunStore:
        if self._file is not None:
            raise StoreError(f"{self.path} is being written to by this very store")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sync(self.path.parent)  # a line is safe only when the file's name is
            self._refresh()
            os.ftruncate(file, self._read)  # an unfinished line, if there is one
        except BlockingIOError:
            os.close(file)
            raise StoreLockedError(
                f"{self.path} is being written to by another process; wait until it is done "
                "or use another store"
            ) from None
        except BaseException:
            os.close(file)
            raise
        self._file = file
        _writing.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def append(self, run: Run, results: Mapping[str, float], **notes: Any) -> None:
        """Add a finished run; when this returns, it is on the disk.

        Parameters
        ----------
        run : Run
            What was trained; it must not be in the store yet.
        results : mapping of str to float
            Its accuracies, see :class:`Record`.
        **notes
            Any of ``seconds``, ``device``, ``precision`` and ``version``.

        Raises
        ------
        DuplicateRunError
            If the run is in the store.
        StoreLockedError
            If another process is writing.
        """
        if self._file is None:
            with self:
                self.append(run, results, **notes)
            return
        noted = checked_notes(notes)
        if run.key() in self._records:
            raise DuplicateRunError(f"{self.path} has this run already: {run.key()}")
        record = Record(run, checked_results(results), noted)
        line = record.line()
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(f"{self.path}: the disk is full; the run was not added")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._read)
            raise
        self._read += len(line)
        self._records[run.key()] = record

    def __iter__(self) -> Iterator[Record]:
        self._refresh()
        return iter(list(self._records.values()))

    def __len__(self) -> int:
        self._refresh()
        return len(self._records)

    def finished(self) -> set[str]:
        """The keys of the runs in the store."""
        self._refresh()
        return set(self._records)

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Those of the runs that are not in the store, in their order."""
        finished = self.finished()
        return [run for run in runs if run.key() not in finished]

    def rows(self) -> list[str]:
        """The results in canonical form: sorted, and without the notes."""
        return sorted(f"{r.run.key()} {json.dumps(r.results, sort_keys=True)}" for r in self)

    def same_rows(self, other: RunStore) -> bool:
        """Whether both hold the same runs with the same results, whatever their order."""
        return self.rows() == other.rows()

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Export as CSV, see :func:`~pairlearn.paper.store.flat_rows`."""
        return write_csv(self, path)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Export as Parquet, see :func:`~pairlearn.paper.store.flat_rows`."""
        return write_parquet(self, path)

    def _refresh(self) -> None:
        if self._file is not None:
            return  # nobody else writes
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._read:
                    self._records, self._read = {}, 0  # another file took its place
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            self._records, self._read = {}, 0
            return
        *lines, rest = new.split(b"\n")
        for line in lines:
            self._take(line)
            self._read += len(line) + 1
        # The rest is cut off by the next writer: make sure that it is ours to cut.
        if rest[: len(_START)] != _START[: len(rest)]:
            raise StoreError(f"{self.path} is not a run store: it ends in {rest[:40]!r}")

    def _take(self, line: bytes) -> None:
        where = f"{self.path}, line {len(self._records) + 1}"
        try:
            record = Record.from_line(line)
        except ValueError as error:
            raise StoreError(f"{where} is not a finished run: {str(error)[:300]}") from error
        if record.run.key() in self._records:
            raise StoreError(f"{where} repeats an earlier run; remove one of the two")
        self._records[record.run.key()] = record


_writing: weakref.WeakSet[RunStore] = weakref.WeakSet()


def _let_go_in_child() -> None:
    # A forked worker would share the lock, and keep it when its parent is killed.
    for store in list(_writing):
        store._close()


os.register_at_fork(after_in_child=_let_go_in_child)


def flat_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One flat dictionary for each run, all with the same columns.

    Parameters
    ----------
    records : iterable of Record
        What to flatten.

    Returns
    -------
    list of dict
        The fields of the run, its results as ``accuracy_NAME``, and its notes; None
        where a run has no such entry.

    Examples
    --------
    >>> flat_rows([])
    []
    """
    rows = [
        record.run.fields()
        | {f"accuracy_{name}": value for name, value in record.results.items()}
        | record.notes
        for record in records
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def write_csv(records: Iterable[Record], path: str | os.PathLike[str]) -> Path:
    """Write runs as CSV; the file is whole or is not there.

    Parameters
    ----------
    records : iterable of Record
        What to write.
    path : path-like
        The file to write.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv([], f"{folder}/runs.csv").name
    'runs.csv'
    """
    with replacing(Path(path)) as part:
        part.write_text(to_csv(flat_rows(records)), encoding="utf-8")
    return Path(path)


def write_parquet(records: Iterable[Record], path: str | os.PathLike[str]) -> Path:
    """Write runs as Parquet; the file is whole or is not there.

    Parameters
    ----------
    records : iterable of Record
        What to write.
    path : path-like
        The file to write.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet([], f"{folder}/runs.parquet").name
    'runs.parquet'
    """
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist(flat_rows(records))
    with replacing(Path(path)) as part:
        parquet.write_table(table, part)
    return Path(path)
