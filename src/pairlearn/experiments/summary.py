"""Mean and spread over seeds."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pairlearn.data import SPECS
from pairlearn.experiments.methods import METHOD_GROUPS, Method
from pairlearn.experiments.records import Record
from pairlearn.experiments.spec import Run

__all__ = ["TEST_SUBSETS", "Cell", "dataset_title", "mean_and_std", "summarize"]

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
        Finished runs, such as a :class:`~pairlearn.experiments.RunStore`.
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
    return sorted(cells, key=lambda cell: _position(cell.config))


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


def _position(run: Run) -> tuple[Any, ...]:
    return (
        _DATASET_ORDER.get(run.dataset, len(_DATASET_ORDER)),
        run.prior,
        run.prior_factor,
        run.label_noise,
        run.fraction,
        _METHOD_ORDER.get(run.method, len(_METHOD_ORDER)),
        run.key(),
    )
