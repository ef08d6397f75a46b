"""Finished runs: a file that only grows and survives a kill, its exports, and all of a folder.

A store has one line of JSON for each run. A line is written by one ``write`` and counts only
once its newline is there, so what a kill leaves behind is at worst one unfinished line at the
end: readers ignore it, and the next writer cuts it off.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pairlearn.atomic import replacing, sync
from pairlearn.paper.grids import GRIDS, Selection
from pairlearn.paper.runs import NOTES, Record, Run, StoreError

SUFFIXES = (".jsonl", ".parquet")
_START = b'{"dataset": '  # of every line
_RESULT = "accuracy_"


class StoreLockedError(StoreError):
    """Another process is writing to the store."""


class DuplicateRunError(StoreError):
    """The run is in the store already."""


class RunStore:
    """The finished runs in one file of JSON lines, each there once.

    ``with store:`` keeps other writers out until the block ends; an ``append`` outside of a block
    does so for itself, and the first one creates the file and its folder.

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
        """Export as CSV: fields of runs, results as ``accuracy_NAME``, and notes."""
        with replacing(Path(path)) as part:
            part.write_text(to_csv(flat_rows(self)), encoding="utf-8")
        return Path(path)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Export as Parquet, with the same columns; the file is whole or is not there."""
        import pyarrow
        from pyarrow import parquet

        with replacing(Path(path)) as part:
            parquet.write_table(pyarrow.Table.from_pylist(flat_rows(self)), part)
        return Path(path)

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


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows with the same columns as CSV; None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def flat_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One flat dictionary for each run, all with the same columns.

    They are the fields of the run, its results as ``accuracy_NAME``, and its notes; None where
    a run has no such entry.
    """
    rows = [
        record.run.fields()
        | {f"{_RESULT}{name}": value for name, value in record.results.items()}
        | record.notes
        for record in records
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


@dataclass(frozen=True)
class Source:
    """The runs of a file, and the name of the experiment that they belong to.

    ``repeated`` counts runs left out because an earlier file has them too, or has others in their
    place: with another network, or another number of epochs.
    """

    path: Path
    grid: str
    records: tuple[Record, ...]
    repeated: int = 0


def read_sources(paths: Iterable[Path]) -> list[Source]:
    """Read run stores, their exports to Parquet, and folders of both, in the order of experiments.

    Of a folder with a folder ``runs``, as results/ has, the files of all its folders are read. A
    file that is called like an experiment, ``accuracy`` or ``accuracy-PART``, is that experiment's;
    of any other, the runs tell. Runs whose place in the tables an earlier file fills are left out,
    unless they are further seeds of the same. CIFAR-10's proper images, and its published ones with
    each network, are places of their own. Raises StoreError if a file is not there, is not of this
    kind, or none holds a run.
    """
    paths = list(paths)
    found: list[Source] = []
    seen: set[Any] = set()
    filled: dict[Any, set[Any]] = defaultdict(set)  # the configurations in each place

    def is_new(grid: str, run: Run) -> bool:
        here = filled.get(_place(grid, run))
        return (not here or _but_seed(run) in here) and (grid, run) not in seen

    for file in (file for path in paths for file in _files(path)):
        records = read_records(file)
        if not records:
            continue
        named = file.stem.partition("-")[0]
        grid = named if named in GRIDS else _grid_of(records, file)
        wanted = Selection().records(GRIDS[grid], records)
        new = [record for record in wanted if is_new(grid, record.run)]
        for run in (record.run for record in new):
            seen.add((grid, run))
            filled[_place(grid, run)].add(_but_seed(run))
        found.append(Source(file, grid, tuple(new), len(wanted) - len(new)))
    if not any(source.records for source in found):
        places = ", ".join(map(str, paths))
        raise StoreError(f"{places}: no finished runs; `pairlearn bench run GRID` makes them")
    return sorted(found, key=lambda source: list(GRIDS).index(source.grid))


def _but_seed(run: Run) -> tuple[Any, ...]:
    return tuple(value for name, value in vars(run).items() if name != "seed")


def _place(grid: str, run: Run) -> tuple[Any, ...]:
    noise = run.prior_factor, run.label_noise
    return grid, run.dataset, run.variant, run.prior, *noise, run.fraction, run.method


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    pattern = "*/*" if (path / "runs").is_dir() else "*"
    inside = [file for file in sorted(path.glob(pattern)) if file.suffix in SUFFIXES]
    # Those called like an experiment first: others may repeat a part of them.
    return sorted(inside, key=lambda file: (file.stem not in GRIDS, file.parent.name != "runs"))


def _grid_of(records: Sequence[Record], path: Path) -> str:
    """The first experiment whose noise, shares and methods these are."""
    methods = {record.run.method for record in records}
    belong = [
        name
        for name, grid in GRIDS.items()
        if len(Selection().records(grid, records)) == len(records)
    ]
    if not belong:
        raise StoreError(f"{path}: its runs are of no experiment that there is a table for")
    return next((name for name in belong if methods <= set(GRIDS[name].methods)), belong[0])


def read_records(path: Path) -> list[Record]:
    """The runs of one file, a run store or its export to Parquet."""
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
    """The opposite of :func:`flat_rows`, for one row."""
    names = {field.name for field in fields(Run)}
    results = {k.removeprefix(_RESULT): v for k, v in row.items() if k.startswith(_RESULT)}
    return Record(
        Run.from_fields({name: value for name, value in row.items() if name in names}),
        results,
        {name: row[name] for name in NOTES if name in row},
    )
