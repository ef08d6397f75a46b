"""One table of cells: finished runs averaged over seeds, beside what the paper printed.

Tables, figures, the comparison, the headline and the page all read the cells of
:func:`summarize`, and find the published ones that belong to them with :func:`match`.
"""

from __future__ import annotations

import csv
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean, pstdev
from typing import Any, ClassVar

from pairlearn.data import SPECS
from pairlearn.paper.runs import Method, Record, Run, method_order

TEST_SUBSETS = ("paper", "stratified")
"""How the test set is reduced to the class prior: as the paper did, or fairly."""

PUBLISHED_SEEDS = 5
"""Seeds behind every published mean."""


@dataclass(frozen=True, kw_only=True)
class PublishedCell:
    """A cell of the paper's tables: the mean and deviation of an accuracy over five seeds.

    ``prior_factor`` and ``label_noise`` are ε and σ of the noise tables. ``copy_of``, if not None,
    is the smaller σ whose printed numbers these repeat, over the whole table of the data set and to
    the last digit. Other noise cannot have given the same fifteen means and deviations, so such a
    cell says nothing about its own noise.

    Examples
    --------
    >>> cell = published_accuracy()[0]
    >>> cell.dataset, cell.prior, cell.method.title, cell.mean, cell.std
    ('mnist', 0.2, 'SconfConfDiff-Unbiased', 0.894, 0.043)
    >>> cell = published_robustness()[3]
    >>> cell.label_noise, cell.copy_of
    (0.01, 0.0)
    """

    dataset: str
    prior: float
    method: Method
    mean: float
    std: float
    prior_factor: float = 1.0
    label_noise: float = 0.0
    copy_of: float | None = None
    fraction: ClassVar[float] = 1.0  # nothing was published for a part of the pairs


@cache
def published_accuracy() -> tuple[PublishedCell, ...]:
    """The 360 cells of the accuracy tables."""
    return _published("accuracy.csv")


@cache
def published_robustness() -> tuple[PublishedCell, ...]:
    """The 600 cells of the noise tables, which are all at π₊ = 0.2."""
    return _published("robustness.csv")


@cache
def published_datasets() -> tuple[dict[str, str], ...]:
    """The data sets and their training recipe, as printed."""
    return tuple(_rows("datasets.csv"))


PUBLISHED: dict[str, Callable[[], tuple[PublishedCell, ...]]] = {
    "accuracy": published_accuracy,
    "robustness": published_robustness,
}
"""The published tables by the grid that repeats them."""


def _rows(name: str) -> list[dict[str, str]]:
    file = resources.files("pairlearn.paper").joinpath("published", name)
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def _published(name: str) -> tuple[PublishedCell, ...]:
    """The cells of a file; columns that it lacks have the one value that its table is for."""
    cells = [
        PublishedCell(
            dataset=row["dataset"],
            prior=float(row.get("prior", 0.2)),
            method=Method(
                row.get("risk", "sconfconfdiff"),
                float(row["gamma"]) if row.get("gamma") else None,
                row["correction"],
            ),
            mean=float(row["accuracy_mean"]),
            std=float(row["accuracy_std"]),
            prior_factor=float(row.get("prior_factor", 1)),
            label_noise=float(row.get("label_noise_std", 0)),
        )
        for row in _rows(name)
    ]
    columns: dict[tuple[str, float], set[Any]] = defaultdict(set)
    for c in cells:
        columns[c.dataset, c.label_noise].add((c.prior, c.prior_factor, c.method, c.mean, c.std))
    copies = {
        (dataset, noise): smaller
        for (dataset, noise), column in columns.items()
        for (other, smaller), same in columns.items()
        if other == dataset and smaller < noise and column == same
    }
    return tuple(
        dataclasses.replace(cell, copy_of=copies.get((cell.dataset, cell.label_noise)))
        for cell in cells
    )


@dataclass(frozen=True)
class Cell:
    """The accuracy of one configuration on one test subset, over its seeds.

    ``config`` is the configuration with the first of its seeds; ``mean`` and ``std`` are over the
    ``seeds``, the latter of the population; ``annotator``, if known, is the mean accuracy over the
    same seeds of the annotator that was learnt from.

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

    @property
    def dataset_title(self) -> str:
        """The title of the data set, with images and network where those are as published."""
        return dataset_title(self.config.dataset, self.config.variant)


def summarize(records: Iterable[Record], test_subset: str) -> list[Cell]:
    """One cell for each configuration of finished runs, in the order of the paper's tables.

    ``test_subset``, "paper" or "stratified", says which accuracy. Runs that differ in anything but
    the seed are never averaged together.
    """
    if test_subset not in TEST_SUBSETS:
        raise ValueError(f"test_subset={test_subset!r} must be one of {', '.join(TEST_SUBSETS)}")
    groups: dict[Run, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.run.seed):
        if test_subset in record.results:
            groups[dataclasses.replace(record.run, seed=0)].append(record)
    cells = [_cell(group, test_subset) for group in groups.values()]
    return sorted(cells, key=lambda cell: position(cell.config))


def _cell(group: list[Record], test_subset: str) -> Cell:
    values = [record.results[test_subset] for record in group]
    key = f"annotator_{test_subset}"
    taught = [record.results[key] for record in group if key in record.results]
    return Cell(
        config=group[0].run,
        test_subset=test_subset,
        mean=fmean(values),
        std=pstdev(values),
        seeds=tuple(record.run.seed for record in group),
        annotator=fmean(taught) if len(taught) == len(group) else None,
    )


def written(cell: Cell | PublishedCell | None) -> str:
    """A mean with its standard deviation, which one seed does not have; a dash for no cell.

    Examples
    --------
    >>> written(published_accuracy()[0]), written(None)
    ('0.894 ± 0.043', '–')
    """
    if cell is None:
        return "–"
    alone = isinstance(cell, Cell) and len(cell.seeds) == 1
    return f"{cell.mean:.3f}" if alone else f"{cell.mean:.3f} ± {cell.std:.3f}"


_DATASET_ORDER = {name: place for place, name in enumerate(SPECS)}


def position(run: Run) -> tuple[Any, ...]:
    """Where a run stands in the order of the paper's tables."""
    dataset = _DATASET_ORDER.get(run.dataset, len(_DATASET_ORDER))
    noise = run.prior_factor, run.label_noise
    method = method_order(run.method)
    return dataset, run.variant, run.prior, *noise, run.fraction, method, run.key()


def dataset_title(name: str, variant: str = "") -> str:
    """The title of a benchmark; one that is not in the registry is its own title."""
    title = SPECS[name].title if name in SPECS else name
    return ", ".join(filter(None, [title, variant]))


def named(item: Any) -> str:
    """A run or a compared cell in words."""
    parts = [f"{dataset_title(item.dataset, item.variant)} at {item.prior:g}"]
    if item.prior_factor != 1.0:
        parts.append(f"ε = {item.prior_factor:g}")
    if item.label_noise:
        parts.append(f"σ = {item.label_noise:g}")
    if getattr(item, "fraction", 1.0) != 1.0:
        parts.append(f"{item.fraction:.0%} of the pairs")
    return ", ".join(parts)


CONDITION = ("dataset", "prior", "prior_factor", "label_noise", "fraction")
"""What methods are compared under."""

WITHOUT_PRIOR = ("dataset", "prior", "label_noise", "fraction")
"""What a method that takes no prior depends on, which ε is not."""


def place(cell: Cell | PublishedCell, names: Sequence[str] = CONDITION) -> tuple[Any, ...]:
    """Values of these fields of a cell, ours or published."""
    source = cell.config if isinstance(cell, Cell) else cell
    return tuple(getattr(source, name) for name in names)


def match(cells: Iterable[Cell], published: Iterable[PublishedCell]) -> dict[Cell, PublishedCell]:
    """The published cell of each of ours that has one, in the order of the published.

    Both kinds of CIFAR-10's images have the same, and so have both networks on those as
    published. Other cells that only the network or the number of epochs tells apart are an error.
    """
    ours: dict[Any, list[Cell]] = defaultdict(list)
    for key, cell in index_cells(
        cells, lambda cell: (*place(cell), cell.method, cell.config.variant)
    ).items():
        ours[key[:-1]].append(cell)
    return {cell: p for p in published for cell in ours.get((*place(p), p.method), ())}


def index_cells(cells: Iterable[Cell], key: Callable[[Cell], Hashable]) -> dict[Any, Cell]:
    """Cells by their key; two with the same one is an error, since a table would hide one."""
    placed: dict[Any, Cell] = {}
    for cell in cells:
        other = placed.setdefault(key(cell), cell)
        if other is not cell:
            both = zip(other.config.fields().items(), cell.config.fields().items(), strict=True)
            choices = "; ".join(
                f"{name} {theirs} and {ours}"
                for (name, theirs), (_, ours) in both
                if name != "seed" and ours != theirs
            )
            raise ValueError(
                f"two cells of {cell.config.dataset}, {cell.config.method}, would stand in one "
                f"place, with {choices}: choose one"
            )
    return placed


_SUMMARY = ("accuracy_mean", "accuracy_std")
_METHOD = ("dataset", "prior", "risk", "gamma", "correction")
_ORIGIN = ("seeds", "epochs", "test_subset")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "accuracy": (*_METHOD, *_SUMMARY, *_ORIGIN),
    "gamma": (*_METHOD, *_SUMMARY, *_ORIGIN),
    "limited": (*_METHOD, "fraction", *_SUMMARY, *_ORIGIN),
    "siblings": (*_METHOD, "fraction", *_SUMMARY, *_ORIGIN),
    "robustness": (
        *("dataset", "prior_factor", "label_noise_std", "correction", *_SUMMARY),
        *("risk", *_ORIGIN),
    ),
}


def result_rows(grid: str, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The cells with the columns of the published files, and what they come from.

    ``seeds`` is their number; the cells may be of several test subsets.
    """

    def values(cell: Cell) -> dict[str, Any]:
        method = cell.method
        row = cell.config.fields() | {
            "risk": method.risk,
            # On the γ-curve ConfDiff and Sconf are the ends.
            "gamma": cell.gamma if grid == "gamma" else method.gamma,
            "correction": method.correction,
            "label_noise_std": cell.config.label_noise,
            "accuracy_mean": round(cell.mean, 6),
            "accuracy_std": round(cell.std, 6),
            "seeds": len(cell.seeds),
            "test_subset": cell.test_subset,
        }
        return {name: row[name] for name in _COLUMNS[grid]}

    origin = [name for name in _COLUMNS[grid] if name not in (*_SUMMARY, "seeds")]
    placed = index_cells(cells, lambda cell: tuple(values(cell)[name] for name in origin))
    return list(map(values, placed.values()))
