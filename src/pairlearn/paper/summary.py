"""Mean and spread over seeds."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pairlearn.data import SPECS
from pairlearn.paper.methods import METHOD_GROUPS, Method
from pairlearn.paper.runs import Record, Run

TEST_SUBSETS = ("paper", "stratified")
"""How the test set is reduced to the class prior: as the paper did, or fairly."""


@dataclass(frozen=True)
class Cell:
    """The accuracy of one configuration on one test subset, over its seeds.

    Parameters
    ----------
    config : Run
        The configuration, with the first of its seeds.
    test_subset : str
        What was tested on.
    mean, std : float
        Mean and population standard deviation over seeds.
    seeds : tuple of int
        The seeds.
    annotator : float or None
        Mean accuracy over the same seeds of the annotator that was learnt from.

    Examples
    --------
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> cell, = summarize([Record(run, {"paper": 0.9})], "paper")
    >>> cell.mean, cell.std, cell.method.title
    (0.9, 0.0, 'Supervised')
    """

    config: Run
    test_subset: str
    mean: float
    std: float
    seeds: tuple[int, ...]
    annotator: float | None = None

    @property
    def method(self) -> Method:
        """The method, in the columns of the tables."""
        return Method.parse(self.config.method)

    @property
    def gamma(self) -> float | None:
        """γ of the convex combination, with 0 for ConfDiff and 1 for Sconf."""
        ends = {"confdiff": 0.0, "sconf": 1.0}
        return ends.get(self.method.risk, self.method.gamma)


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and population standard deviation.

    Parameters
    ----------
    values : sequence of float
        At least one.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> mean_and_std([1.0, 3.0])
    (2.0, 1.0)
    """
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def summarize(records: Iterable[Record], test_subset: str) -> list[Cell]:
    """One cell for each configuration, in the order of the paper's tables.

    Runs that differ in anything but the seed are never averaged together.

    Parameters
    ----------
    records : iterable of Record
        Finished runs, such as a :class:`~pairlearn.paper.RunStore`.
    test_subset : {"paper", "stratified"}
        Which accuracy.

    Returns
    -------
    list of Cell

    Examples
    --------
    >>> summarize([], "stratified")
    []
    """
    if test_subset not in TEST_SUBSETS:
        raise ValueError(f"test_subset={test_subset!r} must be one of {', '.join(TEST_SUBSETS)}")
    groups: dict[Run, list[Record]] = defaultdict(list)
    for record in records:
        if test_subset in record.results:
            groups[dataclasses.replace(record.run, seed=0)].append(record)
    cells = [_cell(group, test_subset) for group in groups.values()]
    return sorted(cells, key=lambda cell: position(cell.config))


def index_cells(cells: Iterable[Cell], place: Callable[[Cell], Hashable]) -> dict[Any, Cell]:
    """Cells by their place; two in one place is an error, since a table would hide one.

    Parameters
    ----------
    cells : iterable of Cell
        What to place.
    place : callable
        Where a cell goes.

    Returns
    -------
    dict

    Examples
    --------
    >>> index_cells([], lambda cell: cell.config.dataset)
    {}
    """
    placed: dict[Any, Cell] = {}
    for cell in cells:
        other = placed.setdefault(place(cell), cell)
        if other is not cell:
            ours, theirs = cell.config.fields(), other.config.fields()
            different = {
                name: (theirs[name], ours[name])
                for name in ours
                if name != "seed" and ours[name] != theirs[name]
            }
            choices = "; ".join(f"{name} {a} and {b}" for name, (a, b) in different.items())
            raise ValueError(
                f"two cells of {cell.config.dataset}, {cell.config.method}, would stand in one "
                f"place, with {choices}: choose one"
            )
    return placed


def dataset_title(name: str) -> str:
    """The name of a benchmark for tables and figures.

    Parameters
    ----------
    name : str
        Its name in the registry; one that is not there is its own title.

    Returns
    -------
    str

    Examples
    --------
    >>> dataset_title("fashion-mnist")
    'Fashion-MNIST'
    """
    return SPECS[name].title if name in SPECS else name


def _cell(group: list[Record], test_subset: str) -> Cell:
    group = sorted(group, key=lambda record: record.run.seed)
    mean, std = mean_and_std([record.results[test_subset] for record in group])
    key = f"annotator_{test_subset}"
    taught = [record.results[key] for record in group if key in record.results]
    return Cell(
        config=group[0].run,
        test_subset=test_subset,
        mean=mean,
        std=std,
        seeds=tuple(record.run.seed for record in group),
        annotator=mean_and_std(taught)[0] if len(taught) == len(group) else None,
    )


_DATASET_ORDER = {name: place for place, name in enumerate(SPECS)}
_METHOD_ORDER = {
    name: place for place, name in enumerate(name for group in METHOD_GROUPS for name in group)
}


def position(run: Run) -> tuple[Any, ...]:
    """Where a run stands in the order of the paper's tables."""
    return (
        _DATASET_ORDER.get(run.dataset, len(_DATASET_ORDER)),
        run.prior,
        run.prior_factor,
        run.label_noise,
        run.fraction,
        _METHOD_ORDER.get(run.method, len(_METHOD_ORDER)),
        run.key(),
    )


_SUMMARY = ("accuracy_mean", "accuracy_std")
_METHOD = ("risk", "gamma", "correction")
_ORIGIN = ("seeds", "epochs", "test_subset")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "accuracy": ("dataset", "prior", *_METHOD, *_SUMMARY, *_ORIGIN),
    "gamma": ("dataset", "prior", *_METHOD, *_SUMMARY, *_ORIGIN),
    "limited": ("dataset", "prior", *_METHOD, "fraction", *_SUMMARY, *_ORIGIN),
    "robustness": (
        *("dataset", "prior_factor", "label_noise_std", "correction", *_SUMMARY),
        *("risk", *_ORIGIN),
    ),
}


def result_rows(grid: str, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The cells with the columns of the published files, and what they come from.

    Parameters
    ----------
    grid : {"accuracy", "gamma", "limited", "robustness"}
        Which columns.
    cells : sequence of Cell
        Its summary, on one or more test subsets.

    Returns
    -------
    list of dict
        ``seeds`` is their number.

    Examples
    --------
    >>> result_rows("accuracy", [])
    []
    """
    columns = _COLUMNS[grid]
    rows = [_values(cell) for cell in cells]
    if grid == "gamma":
        # There ConfDiff and Sconf are the ends of the curve.
        rows = [row | {"gamma": cell.gamma} for row, cell in zip(rows, cells, strict=True)]
    places = [name for name in columns if name not in (*_SUMMARY, "seeds")]
    index_cells(cells, lambda cell: tuple(_values(cell)[name] for name in places))
    return [{name: row[name] for name in columns} for row in rows]


def _values(cell: Cell) -> dict[str, Any]:
    return {
        "dataset": cell.config.dataset,
        "prior": cell.config.prior,
        "risk": cell.method.risk,
        "gamma": cell.method.gamma,
        "correction": cell.method.correction,
        "prior_factor": cell.config.prior_factor,
        "label_noise_std": cell.config.label_noise,
        "fraction": cell.config.fraction,
        "accuracy_mean": round(cell.mean, 6),
        "accuracy_std": round(cell.std, 6),
        "seeds": len(cell.seeds),
        "epochs": cell.config.epochs,
        "test_subset": cell.test_subset,
    }
