"""The counts that README, results, docs and report quote, from one function.

Copies among the published cells and data sets that cannot be compared are left out, and a cell of
the likelihood, which takes no prior, is counted once for all values of ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pairlearn_bench.cells import (
    PUBLISHED,
    TEST_SUBSETS,
    Cell,
    PublishedCell,
    condition_of,
    describe,
    match,
    published_accuracy,
    summarize,
    table_order,
)
from pairlearn_bench.reproduction import (
    ROUNDING,
    ComparedCell,
    Comparison,
    compare_with_published,
    is_comparable,
)
from pairlearn_bench.runs import PAPER_RISKS, Record, Run, grouped
from pairlearn_bench.statements import LIKELIHOODS, READ_BY, SOFT, question_of

AnyCell = TypeVar("AnyCell", Cell, PublishedCell)
CHALLENGERS = {"likelihood-abs": "", "likelihood-guided": "guided-"}
"""Our methods that are compared with the others, and the prefix of their counts."""
CEILING_MARGIN = 0.003
BEST_FIT = "cifar10-resnet32-"
"""Prefix of the network whose runs on published images fit the published numbers best."""
UNBIASED = "-Unbiased"  # ends the titles of uncorrected methods


@dataclass(frozen=True)
class Tally:
    """In how many cells a claim holds, by how much, and where it fails.

    ``margins`` are names of cells with their margins: the claim holds if the margin is not
    negative. ``unit`` is what is counted.
    """

    claim: str
    test_subset: str
    margins: tuple[tuple[str, float], ...]
    unit: str = "cells"

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.margins)

    @property
    def losses(self) -> tuple[tuple[str, float], ...]:
        """The cells in which the claim fails, the worst first."""
        losses = [cell for cell in self.margins if cell[1] < -ROUNDING]
        return tuple(sorted(losses, key=lambda cell: cell[1]))

    @property
    def holds(self) -> int:
        """Number of cells in which the claim holds."""
        return self.cells - len(self.losses)

    @property
    def least(self) -> float:
        """The smallest margin."""
        return min(margin for _, margin in self.margins)

    @property
    def most(self) -> float:
        """The largest margin."""
        return max(margin for _, margin in self.margins)

    @property
    def mean(self) -> float:
        """The mean margin."""
        return sum(margin for _, margin in self.margins) / self.cells

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("claim", "test_subset", "unit", "holds", "cells", "least", "most", "mean")
        losses = [{"cell": name, "margin": margin} for name, margin in self.losses]
        return {name: getattr(self, name) for name in names} | {"losses": losses}

    def __str__(self) -> str:
        lines = [
            f"{self.claim}: {self.holds} of {self.cells} {self.unit}, margins "
            f"{self.least:+.4f} to {self.most:+.4f}, mean {self.mean:+.4f} "
            f"({self.test_subset} test subset)"
        ]
        lines += [f"  not in {name}: {margin:+.4f}" for name, margin in self.losses]
        return "\n".join(lines)


def headline_counts(grid: str, records: Iterable[Record]) -> dict[str, Tally]:
    """Count in how many cells each claim about an experiment holds, and where it fails.

    ``reproduced``, ``published`` and ``ceiling`` are on the paper's test subset, ``own``,
    ``supervised``, ``annotator`` and ``mirrored`` on the stratified one; claims without cells are
    left out. ``corrected`` is ``reproduced`` without unbiased risks. The prefix ``guided-`` marks
    the guided likelihood, ``cifar10-resnet32-`` CIFAR-10's published images, which are counted
    elsewhere with ``all-`` alone.
    """
    comparable = [record for record in records if is_comparable(record.run)]
    published = PUBLISHED[grid]() if grid in PUBLISHED else ()
    tallies: dict[str, Tally] = {}
    for variant, group in grouped(comparable, lambda record: record.run.variant).items():
        run = group[0].run
        parts = [run.dataset, run.model, *variant.split(", ")[2:], ""] if variant else []
        prefix = "-".join(parts).replace(" ", "-")
        tallies |= {f"{prefix}{k}": tally for k, tally in _claims(group, published)}
    for name in ("reproduced", "corrected"):
        here, cifar10 = (tallies.get(f"{prefix}{name}") for prefix in ("", BEST_FIT))
        if here and cifar10:
            claim, margins = f"CIFAR-10 included, {here.claim}", here.margins + cifar10.margins
            tallies[f"all-{name}"] = replace(here, claim=claim, margins=margins)
    return {name: tally for name, tally in tallies.items() if tally.margins}


def _claims(
    records: Sequence[Record], published: Sequence[PublishedCell]
) -> Iterator[tuple[str, Tally]]:
    """Tallies of all claims about comparable runs, also of those without cells."""
    paper, fair = (summarize(records, subset) for subset in TEST_SUBSETS)
    yield "siblings", _against_unbiased_risks(fair)
    for name, of in (("reproduced", ""), ("corrected", "with ABS, ReLU or classes, ")):
        margins = [
            (f"{describe(cell)}, {cell.method}", cell.tolerance - abs(cell.difference))
            for cell in compare_with_published(paper, published).evidence
            if not (of and cell.method.endswith(UNBIASED))
        ]
        claim = f"{of}within tolerance of the published number"
        yield name, Tally(claim, "paper", tuple(margins))
    best = _best_means(c for c in published if c.method.is_weak and c.copy_of is None)
    for method, prefix in CHALLENGERS.items():
        same = _with_its_seeds(records, method)
        paper, fair = (summarize(same, subset) for subset in TEST_SUBSETS)
        rivals = {
            "published": best,
            "labelled": _best_means(cell for cell in paper if not cell.method.is_weak),
            "own": _best_means(cell for cell in fair if cell.method.risk in PAPER_RISKS),
            "supervised": _best_means(cell for cell in fair if not cell.method.is_weak),
        }
        on_paper, on_fair = (
            _best_cells(cell for cell in cells if cell.config.method == method)
            for cells in (paper, fair)
        )
        for name, tally in _challenge(method, on_paper, on_fair, rivals):
            yield f"{prefix}{name}", tally
        runs = [
            (f"{describe(r.run)}, seed {r.run.seed}", r.results["stratified"] - 0.5)
            for r in records
            if r.run.method == method and "stratified" in r.results
        ]
        claim = f"{method} not mirrored (accuracy of at least 0.5)"
        yield f"{prefix}mirrored", Tally(claim, "stratified", tuple(runs), "runs")


def _with_its_seeds(records: Sequence[Record], method: str) -> list[Record]:
    """The runs whose data set, prior, noise, share of the pairs and seed a method has, too."""

    def key(run: Run) -> tuple[Any, ...]:
        return run.dataset, run.prior, run.label_noise, run.fraction, run.seed

    its = {key(record.run) for record in records if record.run.method == method}
    return [record for record in records if key(record.run) in its]


def _challenge(
    method: str,
    paper: Mapping[Any, Cell],
    fair: Mapping[Any, Cell],
    rivals: Mapping[str, Mapping[Any, float]],
) -> Iterator[tuple[str, Tally]]:
    """Compare a method with the rivals of each claim, by the cells of both test subsets."""
    best, labelled = rivals["published"], rivals["labelled"]
    annotator = {key: c.annotator for key, c in fair.items() if c.annotator is not None}
    ceiling = {
        key: min(labelled[key], cell.annotator) - CEILING_MARGIN
        for key, cell in paper.items()
        if key in best and key in labelled and cell.annotator is not None
    }
    near = f"at most {CEILING_MARGIN:g} below the lesser of supervised and annotator"
    supervised = "at or above supervised training on the same pairs"
    for name, claim, cells, others in (
        ("published", "at or above the best published weakly supervised method", paper, best),
        ("ceiling", near, paper, ceiling),
        ("own", "at or above the best of our runs of the paper's methods", fair, rivals["own"]),
        ("supervised", supervised, fair, rivals["supervised"]),
        ("annotator", "at or above the annotator", fair, annotator),
    ):
        margins = [
            (describe(replace(cell.config, prior_factor=1.0)), cell.mean - others[key])
            for key, cell in cells.items()
            if key in others
        ]
        subset = "paper" if cells is paper else "stratified"
        yield name, Tally(f"{method} {claim}", subset, tuple(margins))


def _against_unbiased_risks(cells: Sequence[Cell]) -> Tally:
    """Compare the likelihood with the unbiased risk of the same statements."""

    def key(cell: Cell) -> tuple[Any, ...]:
        return question_of(cell.config.method), *condition_of(cell)

    likelihoods = {key(cell): cell for cell in cells if cell.config.method in LIKELIHOODS}
    margins = [
        (f"{describe(cell.config)}, {cell.config.method}", likelihoods[key(cell)].mean - cell.mean)
        for cell in cells
        if cell.method.risk in (*READ_BY, *SOFT)
        and cell.method.correction == "none"
        and key(cell) in likelihoods
    ]
    claim = "the likelihood at or above the unbiased risk of the same statements"
    return Tally(claim, "stratified", tuple(margins))


def _best_cells(cells: Iterable[AnyCell]) -> dict[Any, AnyCell]:
    """The best cell of each condition, whatever prior its estimator was given.

    The likelihood takes no prior, so it is counted once and compared with the best at any ε.
    """
    best: dict[Any, AnyCell] = {}
    for cell in cells:
        dataset, prior, _, *others = condition_of(cell)
        key = dataset, prior, *others
        if key not in best or cell.mean > best[key].mean:
            best[key] = cell
    return best


def _best_means(cells: Iterable[AnyCell]) -> dict[Any, float]:
    return {key: cell.mean for key, cell in _best_cells(cells).items()}


@dataclass(frozen=True)
class Line:
    """One configuration: our cells by test subset, and the published one."""

    cells: dict[str, Cell]
    published: PublishedCell | None

    @property
    def cell(self) -> Cell:
        """One of our cells, for what they have in common."""
        return next(iter(self.cells.values()))

    @property
    def compared(self) -> ComparedCell | None:
        """Our cell on the paper's test subset and the published one; None if one is missing."""
        if self.published is None or "paper" not in self.cells:
            return None
        return ComparedCell.of(self.cells["paper"], self.published)


@dataclass(frozen=True)
class GridSummary:
    """The numbers of an experiment, with configurations in the order of the paper's tables."""

    grid: str
    lines: tuple[Line, ...]
    comparison: Comparison
    tallies: dict[str, Tally]

    def to_dict(self) -> dict[str, Any]:
        """Counts for JSON."""
        return {
            "cells": len(self.lines),
            "compared": len(self.comparison.evidence),
            "copies": sum(cell.is_copy for cell in self.comparison.cells),
            "not_run": self.comparison.absent,
            "tallies": {name: tally.to_dict() for name, tally in self.tallies.items()},
        }


def summarize_grid(grid: str, records: Iterable[Record]) -> GridSummary:
    """Summarize the runs of an experiment on both test subsets, with the published numbers."""
    records = list(records)
    # γ-curves and limited data were published as figures; some cells are in the accuracy tables.
    published = PUBLISHED.get(grid, published_accuracy)()
    subsets: dict[Run, dict[str, Cell]] = {}
    matched: dict[Run, PublishedCell] = {}
    for subset in reversed(TEST_SUBSETS):
        # Methods without γ are not on the γ-curve.
        cells = [c for c in summarize(records, subset) if grid != "gamma" or c.gamma is not None]
        for cell in cells:
            subsets.setdefault(cell.config, {})[subset] = cell
        matched |= {cell.config: p for cell, p in match(cells, published).items()}
    lines = [Line(subsets[run], matched.get(run)) for run in sorted(subsets, key=table_order)]
    comparison = compare_with_published(cells, published)  # on the paper's test subset
    return GridSummary(grid, tuple(lines), comparison, headline_counts(grid, records))
