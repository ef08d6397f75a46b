"""Stores of finished runs: an append-only file that survives a kill, and its exports.

A store has one line of JSON for each run. A line is written by one ``write`` and counts only once
it has its newline, so a kill leaves at worst one unfinished line at the end: readers ignore it,
and the next writer truncates it.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pairlearn.atomic import replacing, sync
from pairlearn_bench.grids import GRIDS, Selection
from pairlearn_bench.runs import NOTES, Record, Run, StoreError

SUFFIXES = (".jsonl", ".parquet")
_START = b'{"dataset": '  # of every line
_RESULT = "accuracy_"
_OF = [f"{who}{subset}" for who in ("", "annotator_") for subset in ("paper", "stratified")]
#: The names of results; those that end in shifted are moved to the prior of the pairs.
RESULTS = (*_OF, *(f"{name}_shifted" for name in _OF))


class StoreLockedError(StoreError):
    """Another process is writing to the store."""


class DuplicateRunError(StoreError):
    """The run is already in the store."""


class RunStore:
    """The finished runs in one file of JSON lines, each once.

    ``with store:`` locks the file against other writers until the block ends; an ``append``
    outside of a block locks it for itself, and the first one creates the file and its folder.

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
            sync(self.path.parent)  # a line is only as durable as the name of the file
            self._refresh()
            os.ftruncate(file, self._read)  # removes an unfinished line
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
        """Add a finished run; it is on the disk when this returns.

        Notes are any of ``seconds``, ``device``, ``precision`` and ``version``. Raises
        DuplicateRunError if the run is in the store, StoreLockedError if another process is
        writing.
        """
        if self._file is None:
            with self:
                self.append(run, results, **notes)
            return
        record = Record(run, dict(results), notes)
        if run.key() in self._records:
            raise DuplicateRunError(f"{self.path} has this run already: {run.key()}")
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
        """The runs that are not in the store, in their order."""
        finished = self.finished()
        return [run for run in runs if run.key() not in finished]

    def rows(self) -> list[str]:
        """The results in canonical form: sorted, without the notes."""
        return sorted(f"{r.run.key()} {json.dumps(r.results, sort_keys=True)}" for r in self)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Export as Parquet, atomically: fields of runs, results as ``accuracy_NAME``, notes."""
        import pyarrow
        from pyarrow import parquet

        with replacing(Path(path)) as part:
            rows = flat_rows(self)
            types = dict.fromkeys(rows[0] if rows else (), pyarrow.float64())
            types |= dict.fromkeys(set(NOTES) - {"seconds"}, pyarrow.string())
            known = {"str": pyarrow.string(), "int": pyarrow.int64()}
            types |= {f.name: known.get(str(f.type), pyarrow.float64()) for f in fields(Run)}
            parquet.write_table(pyarrow.Table.from_pylist(rows, pyarrow.schema(types)), part)
        return Path(path)

    def _refresh(self) -> None:
        if self._file is not None:
            return  # no other process can write
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._read:
                    self._records, self._read = {}, 0  # the file was replaced
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            self._records, self._read = {}, 0
            return
        *lines, rest = new.split(b"\n")
        for line in lines:
            self._add(line)
            self._read += len(line) + 1
        # The next writer truncates the rest: make sure that this is a store.
        if rest[: len(_START)] != _START[: len(rest)]:
            raise StoreError(f"{self.path} is not a run store: it ends in {rest[:40]!r}")

    def _add(self, line: bytes) -> None:
        where = f"{self.path}, line {len(self._records) + 1}"
        try:
            record = Record.from_line(line)
        except ValueError as error:
            raise StoreError(f"{where} is not a finished run: {str(error)[:300]}") from error
        if record.run.key() in self._records:
            raise StoreError(f"{where} repeats an earlier run; remove one of the two")
        self._records[record.run.key()] = record


_writing: weakref.WeakSet[RunStore] = weakref.WeakSet()


def _release_in_child() -> None:
    # A forked worker would share the lock, and keep it when its parent is killed.
    for store in list(_writing):
        store._close()


os.register_at_fork(after_in_child=_release_in_child)


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows with the same columns as CSV; None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def flat_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One flat dictionary for each run, in the same columns whatever the runs.

    The columns are the fields of the run, its results as ``accuracy_NAME``, and its notes; an
    absent entry is None. Results of other names than ``RESULTS`` have further columns.
    """
    rows = [
        record.run.fields()
        | {f"{_RESULT}{name}": record.results.get(name) for name in (*RESULTS, *record.results)}
        | {name: record.notes.get(name) for name in NOTES}
        for record in records
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


@dataclass(frozen=True)
class Source:
    """The runs of a file, and the name of their experiment.

    ``repeated`` counts runs left out because an earlier file has them.
    """

    path: Path
    grid: str
    records: tuple[Record, ...]
    repeated: int = 0


def read_sources(paths: Iterable[Path], chosen: Selection | None = None) -> list[Source]:
    """Read run stores, their exports to Parquet, and folders of both, in the order of experiments.

    For a folder with a folder ``runs``, such as results/, the files of all its folders are read. A
    file called like an experiment, ``accuracy`` or ``accuracy-PART``, belongs to that experiment;
    otherwise its runs decide. A run that an earlier file has is left out, and so are those that are
    not ``chosen``. Raises StoreError if a file does not exist or cannot be read, or if no file
    holds such a run.
    """
    paths, chosen = list(paths), chosen or Selection()
    sources: list[Source] = []
    seen: set[tuple[str, Run]] = set()
    for file in (file for path in paths for file in _files(path)):
        records = read_records(file)
        if not records:
            continue
        name = file.stem.partition("-")[0]
        grid = name if name in GRIDS else _grid_of(records, file)
        records = chosen.records(GRIDS[grid], records)
        new = [record for record in records if (grid, record.run) not in seen]
        seen.update((grid, record.run) for record in new)
        sources.append(Source(file, grid, tuple(new), len(records) - len(new)))
    if not any(source.records for source in sources):
        names = ", ".join(map(str, paths))
        such = "" if chosen == Selection() else "such "
        raise StoreError(f"{names}: no {such}finished runs; `pairlearn bench run GRID` makes them")
    return sorted(sources, key=lambda source: list(GRIDS).index(source.grid))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    pattern = "*/*" if (path / "runs").is_dir() else "*"
    files = [file for file in path.glob(pattern) if file.suffix in SUFFIXES]
    return sorted(files, key=lambda file: (file.parent.name != "runs", file))


def _grid_of(records: Sequence[Record], path: Path) -> str:
    """The first experiment with the noise, shares and methods of these runs."""
    methods = {record.run.method for record in records}
    grids = [g for g in GRIDS.values() if len(Selection().records(g, records)) == len(records)]
    if not grids:
        raise StoreError(f"{path}: its runs belong to no experiment of the paper")
    return next((grid for grid in grids if methods <= set(grid.methods)), grids[0]).name


def read_records(path: Path) -> list[Record]:
    """Read the runs of one file, a run store or its export to Parquet."""
    if not path.is_file():
        raise StoreError(f"{path} does not exist")
    if path.suffix not in SUFFIXES:
        raise StoreError(f"{path} must end in {' or '.join(SUFFIXES)}")
    if path.suffix == ".jsonl":
        return list(RunStore(path))
    import pyarrow
    from pyarrow import parquet

    try:
        rows = parquet.read_table(path).to_pylist()
    except pyarrow.ArrowException as error:
        raise StoreError(f"{path} is not a Parquet file that can be read: {error}") from None
    records = []
    for number, row in enumerate(rows, 1):
        try:
            records.append(_from_row({k: v for k, v in row.items() if v is not None}))
        except ValueError as error:
            raise StoreError(f"{path}, row {number} is not a finished run: {error}") from None
    return records


def _from_row(row: dict[str, Any]) -> Record:
    """Invert :func:`flat_rows` for one row."""
    names = {field.name for field in fields(Run)}
    return Record(
        Run.from_fields({name: value for name, value in row.items() if name in names}),
        {k.removeprefix(_RESULT): v for k, v in row.items() if k.startswith(_RESULT)},
        {name: row[name] for name in NOTES if name in row},
    )
