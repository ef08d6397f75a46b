"""The counts that README, results, docs and report quote, from one function.

Copies among the published cells and data sets that cannot be compared are left out, and a cell
of the likelihood is counted once however many priors it was not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pairlearn.paper.cells import (
    PUBLISHED,
    TEST_SUBSETS,
    WITHOUT_PRIOR,
    Cell,
    PublishedCell,
    match,
    named,
    place,
    position,
    published_accuracy,
    summarize,
)
from pairlearn.paper.reproduction import (
    ROUNDING,
    ComparedCell,
    Comparison,
    compare_with_published,
    is_comparable,
)
from pairlearn.paper.runs import Record, Run, grouped
from pairlearn.paper.statements import LIKELIHOODS, READ_BY, SOFT, asked

AnyCell = TypeVar("AnyCell", Cell, PublishedCell)
CHALLENGERS = {"likelihood-abs": "", "likelihood-guided": "guided-"}
"""Our methods that are compared with the others, and the prefix of their counts."""
CEILING_MARGIN = 0.003
_SHOWN = 20  # losses in print; to_dict has all
_PAPER = ("sconf", "confdiff", "convex", "sconfconfdiff")


@dataclass(frozen=True)
class Tally:
    """In how many cells a claim holds, by how much, and where it does not.

    ``margins`` has the cells by name: the claim holds where the margin is not negative. ``unit`` is
    what is counted, if not cells.
    """

    claim: str
    test_subset: str
    margins: tuple[tuple[str, float], ...]
    unit: str = "cells"

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.margins)

    @property
    def losses(self) -> tuple[tuple[str, float], ...]:
        """The cells in which it does not hold, the worst first."""
        lost = [cell for cell in self.margins if cell[1] < -ROUNDING]
        return tuple(sorted(lost, key=lambda cell: cell[1]))

    @property
    def holds(self) -> int:
        """In how many cells it holds."""
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
        lines += [f"  not in {name}: {margin:+.4f}" for name, margin in self.losses[:_SHOWN]]
        if (more := len(self.losses) - _SHOWN) > 0:
            lines.append(f"  nor in {more} more")
        return "\n".join(lines)


def headline_counts(grid: str, records: Iterable[Record]) -> dict[str, Tally]:
    """Count what an experiment shows, with what speaks against it.

    ``reproduced``, ``published`` and ``ceiling`` are on the paper's test subset, ``own``,
    ``supervised``, ``annotator`` and ``mirrored`` on the stratified one; only those that have cells
    are there. ``guided-`` is before those of the guided likelihood, and ``cifar10-resnet32-``
    before those on CIFAR-10's published images, which are not among the others.
    """
    known = [record for record in records if is_comparable(record.run)]
    published = PUBLISHED[grid]() if grid in PUBLISHED else ()
    found: dict[str, Tally] = {}
    for variant, here in grouped(known, lambda record: record.run.variant).items():
        prefix = f"{here[0].run.dataset}-{here[0].run.model}-" if variant else ""
        found |= {f"{prefix}{n}": tally for n, tally in _claims(here, published) if tally.margins}
    return found


def _claims(
    records: Sequence[Record], published: Sequence[PublishedCell]
) -> Iterator[tuple[str, Tally]]:
    """Everything that is counted of comparable runs, whether or not it has cells."""
    paper, fair = (summarize(records, subset) for subset in TEST_SUBSETS)
    reproduced = [
        (f"{named(cell)}, {cell.method}", cell.tolerance - abs(cell.difference))
        for cell in compare_with_published(paper, published).evidence
    ]
    claim = "within tolerance of the published number"
    yield "reproduced", Tally(claim, "paper", tuple(reproduced))
    # It takes no prior, so it is counted once and has to beat the best at whatever ε.
    best = _means(c for c in published if c.method.is_weak and c.copy_of is None)
    own = _means(cell for cell in fair if cell.method.risk in _PAPER)
    supervised, labelled = (
        _means(c for c in cells if not c.method.is_weak) for cells in (fair, paper)
    )
    for method, prefix in CHALLENGERS.items():
        mine, ours = (
            _best_of(cell for cell in cells if cell.config.method == method)
            for cells in (paper, fair)
        )
        told = {at: c.annotator for at, c in ours.items() if c.annotator is not None}
        lesser = {
            at: min(labelled[at], cell.annotator) - CEILING_MARGIN
            for at, cell in mine.items()
            if at in best and at in labelled and cell.annotator is not None
        }
        near = f"at most {CEILING_MARGIN:g} below the lesser of supervised and annotator"
        for name, words, cells, rivals in (
            ("published", "at or above the best published weakly supervised method", mine, best),
            ("ceiling", near, mine, lesser),
            ("own", "at or above the best of our runs of the paper's methods", ours, own),
            ("supervised", "at or above supervised training on the same pairs", ours, supervised),
            ("annotator", "at or above the annotator", ours, told),
        ):
            margins = [
                (named(replace(cell.config, prior_factor=1.0)), cell.mean - rivals[at])
                for at, cell in cells.items()
                if at in rivals
            ]
            subset = "paper" if cells is mine else "stratified"
            yield f"{prefix}{name}", Tally(f"{method} {words}", subset, tuple(margins))
        runs = [
            (f"{named(r.run)}, seed {r.run.seed}", r.results["stratified"] - 0.5)
            for r in records
            if r.run.method == method and "stratified" in r.results
        ]
        claim = f"{method} not mirrored (accuracy of at least 0.5)"
        yield f"{prefix}mirrored", Tally(claim, "stratified", tuple(runs), "runs")
    stated = {(asked(c.config.method), place(c)): c for c in fair if c.config.method in LIKELIHOODS}
    siblings = [
        (f"{named(c.config)}, {c.config.method}", stated[at].mean - c.mean)
        for c in fair
        for at in [(asked(c.config.method), place(c))]
        if at in stated and c.method.risk in (*READ_BY, *SOFT) and c.method.correction == "none"
    ]
    claim = "the likelihood at or above the unbiased risk of the same statements"
    yield "siblings", Tally(claim, "stratified", tuple(siblings))


def _best_of(cells: Iterable[AnyCell]) -> dict[Any, AnyCell]:
    """The best of the cells in each place, whatever prior its estimator was given."""
    best: dict[Any, AnyCell] = {}
    for cell in cells:
        at = place(cell, WITHOUT_PRIOR)
        if at not in best or cell.mean > best[at].mean:
            best[at] = cell
    return best


def _means(cells: Iterable[AnyCell]) -> dict[Any, float]:
    """The best mean in each place."""
    return {at: cell.mean for at, cell in _best_of(cells).items()}


@dataclass(frozen=True)
class Line:
    """One configuration: ours by test subset, the published number, and both compared."""

    cells: dict[str, Cell]
    published: PublishedCell | None

    @property
    def cell(self) -> Cell:
        """One of them, for what both have in common."""
        return next(iter(self.cells.values()))

    @property
    def compared(self) -> ComparedCell | None:
        """Ours on the paper's test subset beside the published; None where one of them is not."""
        if self.published is None or "paper" not in self.cells:
            return None
        return ComparedCell.of(self.cells["paper"], self.published)


@dataclass(frozen=True)
class GridSummary:
    """An experiment in numbers: its configurations in the order of the paper's tables."""

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
    """The runs of an experiment beside what was published, on both test subsets."""
    records = list(records)
    # γ-curves and limited data were published as figures; the accuracy tables have some.
    published = PUBLISHED.get(grid, published_accuracy)()
    subsets: dict[Run, dict[str, Cell]] = {}
    printed: dict[Run, PublishedCell] = {}
    for subset in reversed(TEST_SUBSETS):
        # Methods without γ have no place on the γ-curve.
        cells = [c for c in summarize(records, subset) if grid != "gamma" or c.gamma is not None]
        for cell in cells:
            subsets.setdefault(cell.config, {})[subset] = cell
        printed |= {cell.config: p for cell, p in match(cells, published).items()}
    lines = [Line(subsets[run], printed.get(run)) for run in sorted(subsets, key=position)]
    comparison = compare_with_published(cells, published)  # on the paper's test subset
    return GridSummary(grid, tuple(lines), comparison, headline_counts(grid, records))
