"""Cells: finished runs averaged over seeds, and the numbers published in the paper.

Tables, figures, the comparison, the headline and the page all use the cells of
:func:`summarize`, and :func:`match` finds the published cell of each.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from statistics import fmean, pstdev
from typing import Any, ClassVar

from pairlearn_bench.data import SPECS
from pairlearn_bench.runs import Method, Record, Run, grouped, method_order

#: How the test set is reduced to the class prior: as in the paper, or stratified.
TEST_SUBSETS = ("paper", "stratified")

#: Number of seeds behind every published mean.
PUBLISHED_SEEDS = 5

#: Label noises whose published numbers repeat those of a smaller one, for every data set.
COPIES = {0.01: 0.0, 0.1: 0.05}


@dataclass(frozen=True, kw_only=True)
class PublishedCell:
    """A cell of the paper's tables: mean and standard deviation of an accuracy over five seeds.

    ``prior_factor`` and ``label_noise`` are ε and σ of the noise tables. ``copy_of``, if not None,
    is the smaller σ whose printed numbers are the same, to the last digit. Another noise cannot
    give the same fifteen means and deviations on every data set, so such a cell is no evidence
    about its own noise.

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


#: The published tables by the grid that reproduces them.
PUBLISHED: dict[str, Callable[[], tuple[PublishedCell, ...]]] = {
    "accuracy": published_accuracy,
    "robustness": published_robustness,
}


def _rows(name: str) -> list[dict[str, str]]:
    file = resources.files("pairlearn_bench").joinpath("published", name)
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def _published(name: str) -> tuple[PublishedCell, ...]:
    """The cells of a file; columns that it lacks have the same value in the whole table."""
    return tuple(
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
            copy_of=COPIES.get(float(row.get("label_noise_std", 0))),
        )
        for row in _rows(name)
    )


@dataclass(frozen=True)
class Cell:
    """The accuracy of one configuration on one test subset, over its seeds.

    ``config`` is the run with the first seed; ``values`` and ``annotators`` are the accuracies of
    the classifier and, if known, of its annotator, for each of the ``seeds``.

    Examples
    --------
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> cell, = summarize([Record(run, {"paper": 0.9})], "paper")
    >>> cell.mean, cell.std, cell.method.title
    (0.9, 0.0, 'Supervised')
    """

    config: Run
    test_subset: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    annotators: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Mean accuracy over seeds."""
        return fmean(self.values)

    @property
    def std(self) -> float:
        """Standard deviation over seeds, of the population."""
        return pstdev(self.values)

    @property
    def annotator(self) -> float | None:
        """Mean accuracy of the annotator over seeds, if known."""
        return fmean(self.annotators) if self.annotators else None

    @property
    def by_seed(self) -> dict[int, float]:
        """The accuracy of each seed."""
        return dict(zip(self.seeds, self.values, strict=True))

    @property
    def method(self) -> Method:
        """The method in the columns of the tables."""
        return Method.parse(self.config.method)

    @property
    def gamma(self) -> float | None:
        """γ of the convex combination, with 0 for ConfDiff and 1 for Sconf."""
        ends = {"confdiff": 0.0, "sconf": 1.0}
        return ends.get(self.method.risk, self.method.gamma)

    @property
    def dataset_title(self) -> str:
        """The title of the data set, with what else tells its runs apart."""
        return dataset_title(self.config.dataset, self.config.variant)


def summarize(records: Iterable[Record], test_subset: str) -> list[Cell]:
    """Average finished runs over seeds, in the order of the paper's tables.

    ``test_subset``, "paper" or "stratified", selects the accuracy. Only runs that differ in
    nothing but the seed are averaged.
    """
    if test_subset not in TEST_SUBSETS:
        raise ValueError(f"test_subset={test_subset!r} must be one of {', '.join(TEST_SUBSETS)}")
    groups: dict[Run, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.run.seed):
        if test_subset in record.results:
            groups[replace(record.run, seed=0)].append(record)
    cells = [_cell(group, test_subset) for group in groups.values()]
    return sorted(cells, key=lambda cell: table_order(cell.config))


def _cell(group: list[Record], test_subset: str) -> Cell:
    key = f"annotator_{test_subset}"
    annotators = [record.results[key] for record in group if key in record.results]
    return Cell(
        config=group[0].run,
        test_subset=test_subset,
        values=tuple(record.results[test_subset] for record in group),
        seeds=tuple(record.run.seed for record in group),
        annotators=tuple(annotators) if len(annotators) == len(group) else (),
    )


def format_cell(cell: Cell | PublishedCell | None) -> str:
    """Format a mean, with its standard deviation if there are several seeds; no cell is a dash.

    Examples
    --------
    >>> format_cell(published_accuracy()[0]), format_cell(None)
    ('0.894 ± 0.043', '–')
    """
    if cell is None:
        return "–"
    one_seed = isinstance(cell, Cell) and len(cell.seeds) == 1
    return f"{cell.mean:.3f}" if one_seed else f"{cell.mean:.3f} ± {cell.std:.3f}"


_DATASET_ORDER = {name: number for number, name in enumerate(SPECS)}


def table_order(run: Run) -> tuple[Any, ...]:
    """Sort key of a run for the order of the paper's tables."""
    dataset = _DATASET_ORDER.get(run.dataset, len(_DATASET_ORDER))
    noise = run.prior_factor, run.label_noise
    method = method_order(run.method)
    size = run.n_training_pairs, run.fraction
    return dataset, run.variant, run.prior or 0.0, *noise, *size, method, run.key()


def dataset_title(name: str, variant: str = "") -> str:
    """The title of a data set; without an entry in the registry it is the name."""
    title = SPECS[name].title if name in SPECS else name
    return ", ".join(filter(None, [title, variant]))


def describe(item: Any) -> str:
    """The conditions of a run or of a compared cell in words."""
    place = f", {item.pairs:,} pairs" if item.prior is None else f" at {item.prior:g}"
    parts = [f"{dataset_title(item.dataset, item.variant)}{place}"]
    if item.prior_factor != 1.0:
        parts.append(f"ε = {item.prior_factor:g}")
    if item.label_noise:
        parts.append(f"σ = {item.label_noise:g}")
    if getattr(item, "fraction", 1.0) != 1.0:
        parts.append(f"{item.fraction:.0%} of the pairs")
    return ", ".join(parts)


def departures(grid: str, items: Iterable[Any]) -> list[str]:
    """A line on how runs or compared cells depart from the paper's recipes, if any does."""
    if grid in ("siblings", "classes"):
        return []  # experiments of our own
    changed = dict.fromkeys(
        f"{dataset_title(item.dataset, item.variant)} ({', '.join(item.changes)})"
        for item in items
        if item.changes
    )
    return [f"Trained in another way than in the paper: {'; '.join(changed)}"] if changed else []


def condition_of(cell: Cell | PublishedCell) -> tuple[Any, ...]:
    """The conditions under which methods are compared."""
    source = cell.config if isinstance(cell, Cell) else cell
    noise = source.prior_factor, source.label_noise
    # At the priors of the data a grid varies the number of pairs.
    size = source.pairs if isinstance(source, Run) and source.prior is None else source.fraction
    return source.dataset, source.prior, *noise, size


def match(cells: Iterable[Cell], published: Iterable[PublishedCell]) -> dict[Cell, PublishedCell]:
    """The published cell of each of our cells that has one, in the order of the published.

    CIFAR-10's cells with either kind of images and either network share a published one. Other
    cells that differ only in the network or the number of epochs are an error.
    """
    indexed = index_cells(cells, lambda c: (*condition_of(c), c.method, c.config.variant))
    ours = grouped(indexed.values(), lambda c: (condition_of(c), c.method))
    return {cell: p for p in published for cell in ours.get((condition_of(p), p.method), ())}


# Fields of a run that commands choose by an option of that name.
OPTIONS = ("epochs", "model", "annotator", "images")


def index_cells(cells: Iterable[Cell], key: Callable[[Cell], Hashable]) -> dict[Any, Cell]:
    """Cells by a key; two with the same key are an error, since a table would hide one."""
    indexed: dict[Any, Cell] = {}
    for cell in cells:
        other = indexed.setdefault(key(cell), cell)
        if other is not cell:
            fields, mine = other.config.fields(), cell.config.fields()
            apart = [name for name in fields if mine[name] != fields[name] and name != "seed"]
            choices = "; ".join(f"{name} {fields[name]} and {mine[name]}" for name in apart)
            options = " or ".join(f"--{name}" for name in apart if name in OPTIONS)
            advice = f"choose one by {options}" if options else "leave a file out"
            raise ValueError(
                f"two cells of {cell.config.dataset}, {cell.config.method}, would stand in one "
                f"place, with {choices}: {advice}"
            )
    return indexed


_SUMMARY = ("accuracy_mean", "accuracy_std")
_METHOD = ("dataset", "prior", "risk", "gamma", "correction")
_ORIGIN = ("seeds", "epochs", "model", "images", "test_subset")
_NOISY = ("dataset", "prior_factor", "label_noise_std", "correction")
_COLUMNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("accuracy", "gamma"), (*_METHOD, *_SUMMARY, *_ORIGIN)),
    **dict.fromkeys(("limited", "siblings"), (*_METHOD, "fraction", *_SUMMARY, *_ORIGIN)),
    "classes": ("dataset", "pairs", "method", *_SUMMARY, *_ORIGIN),
    "robustness": (*_NOISY, *_SUMMARY, "risk", *_ORIGIN),
}


def result_rows(grid: str, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Rows with the columns of the published files, and the origin of each cell.

    ``seeds`` is their number; the cells may be of several test subsets.
    """

    def values(cell: Cell) -> dict[str, Any]:
        method = cell.method
        row = cell.config.fields() | {
            "risk": method.risk,
            # ConfDiff and Sconf are the ends of the γ-curve.
            "gamma": cell.gamma if grid == "gamma" else method.gamma,
            "correction": method.correction,
            "label_noise_std": cell.config.label_noise,
            "accuracy_mean": round(cell.mean, 6),
            "accuracy_std": round(cell.std, 6),
            "seeds": len(cell.seeds),
            "test_subset": cell.test_subset,
        }
        return {name: row[name] for name in _COLUMNS[grid]}

    keys = [name for name in _COLUMNS[grid] if name not in (*_SUMMARY, "seeds")]
    indexed = index_cells(cells, lambda cell: tuple(values(cell)[name] for name in keys))
    return list(map(values, indexed.values()))
