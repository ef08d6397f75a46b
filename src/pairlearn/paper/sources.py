"""Finished runs from the files that hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlearn.paper.grids import GRIDS, Selection
from pairlearn.paper.runs import NOTES, Record, Run, StoreError, checked_results
from pairlearn.paper.store import RunStore

SUFFIXES = (".jsonl", ".parquet")
_RESULT = "accuracy_"


@dataclass(frozen=True)
class Source:
    """The runs of a file, and the experiment that they belong to.

    Parameters
    ----------
    path : Path
        The file.
    grid : str
        Name of the experiment.
    records : tuple of Record
        Its runs.
    repeated : int
        Runs that are left out, because an earlier file has them too, or has others in
        their place: with another network, or another number of epochs.

    Examples
    --------
    >>> Source(Path("runs/gamma.jsonl"), "gamma", ()).repeated
    0
    """

    path: Path
    grid: str
    records: tuple[Record, ...]
    repeated: int = 0


def read_sources(paths: Iterable[Path]) -> list[Source]:
    """Read run stores, their exports to Parquet, and folders of both.

    A file that is called like an experiment is that experiment's; of any other, the runs
    tell. Runs whose place in the tables an earlier file fills are left out, unless they are
    further seeds of the same.

    Parameters
    ----------
    paths : iterable of Path
        Files, or folders whose files, or those of their folder ``runs``, are read.

    Returns
    -------
    list of Source
        In the order of the experiments.

    Raises
    ------
    StoreError
        If a file is not there, is not of this kind, or none holds a run.

    Examples
    --------
    >>> read_sources([Path("no/such/store.jsonl")])
    Traceback (most recent call last):
    pairlearn.paper.runs.StoreError: no/such/store.jsonl does not exist
    """
    paths = list(paths)
    found: list[Source] = []
    known: dict[str, _Known] = {}
    for file in _files(paths):
        records = read_records(file)
        if not records:
            continue
        grid = file.stem if file.stem in GRIDS else _grid_of(records, file)
        wanted = Selection().records(GRIDS[grid], records)
        new = known.setdefault(grid, _Known()).new(wanted)
        found.append(Source(file, grid, new, len(wanted) - len(new)))
    if not any(source.records for source in found):
        places = ", ".join(map(str, paths))
        raise StoreError(f"{places}: no finished runs; `pairlearn bench run GRID` makes them")
    order = list(GRIDS)
    return sorted(found, key=lambda source: order.index(source.grid))


class _Known:
    """Runs that were read before."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._places: dict[Any, set[Run]] = {}

    def new(self, records: Sequence[Record]) -> tuple[Record, ...]:
        """Those that are not there, nor others in their place; they are there from now on."""
        new = tuple(record for record in records if self._is_new(record.run))
        for run in (record.run for record in new):
            self._keys.add(run.key())
            self._places.setdefault(_place(run), set()).add(dataclasses.replace(run, seed=0))
        return new

    def _is_new(self, run: Run) -> bool:
        here = self._places.get(_place(run))
        same = here is None or dataclasses.replace(run, seed=0) in here
        return same and run.key() not in self._keys


def _place(run: Run) -> tuple[Any, ...]:
    noise = run.prior_factor, run.label_noise
    return run.dataset, run.prior, *noise, run.fraction, run.method


def read_records(path: Path) -> list[Record]:
    """The runs of one file, a run store or its export to Parquet.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    list of Record

    Examples
    --------
    >>> read_records(Path("runs"))
    Traceback (most recent call last):
    pairlearn.paper.runs.StoreError: runs does not exist
    """
    if not path.is_file():
        raise StoreError(f"{path} does not exist")
    if path.suffix not in SUFFIXES:
        raise StoreError(f"{path} must end in {' or '.join(SUFFIXES)}")
    return list(RunStore(path)) if path.suffix == ".jsonl" else _read_parquet(path)


def _read_parquet(path: Path) -> list[Record]:
    import pyarrow
    from pyarrow import parquet

    try:
        rows = parquet.read_table(path).to_pylist()
    except pyarrow.ArrowException as error:
        raise StoreError(f"{path} is not a Parquet file that can be read: {error}") from None
    fields = [field.name for field in dataclasses.fields(Run)]
    records = []
    for number, row in enumerate(rows, 1):
        given = {name: value for name, value in row.items() if value is not None}
        try:
            run = Run.from_fields({name: given[name] for name in fields if name in given})
            results = {
                name.removeprefix(_RESULT): value
                for name, value in given.items()
                if name.startswith(_RESULT)
            }
            notes = {name: given[name] for name in NOTES if name in given}
            records.append(Record(run, checked_results(results), notes))
        except ValueError as error:
            raise StoreError(f"{path}, row {number} is not a finished run: {error}") from None
    return records


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        folder = path / "runs" if (path / "runs").is_dir() else path
        inside = [file for file in sorted(folder.iterdir()) if file.suffix in SUFFIXES]
        # Those called like an experiment first: others may repeat a part of them.
        files += sorted(inside, key=lambda file: file.stem not in GRIDS)
    return files


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
