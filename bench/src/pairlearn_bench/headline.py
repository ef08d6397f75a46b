"""The counts that README, results, docs and report quote, from one function.

Copies among the published cells and data sets that cannot be compared are left out, and a cell of
the likelihood, which takes no prior, is counted once for all values of ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean, median
from typing import Any, ClassVar, TypeVar

from pairlearn_bench.cells import (
    PUBLISHED,
    PUBLISHED_SEEDS,
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
    GROUPS,
    ROUNDING,
    ComparedCell,
    Comparison,
    compare_with_published,
    is_comparable,
)
from pairlearn_bench.runs import CLASSES, PAPER_RISKS, Record, Run, grouped
from pairlearn_bench.statements import LIKELIHOODS, READ_BY, SOFT, question_of
from pairlearn_bench.statistics import (
    Contrast,
    against_published,
    interval_over_sets,
    paired,
    verdicts,
)

AnyCell = TypeVar("AnyCell", Cell, PublishedCell)
#: Our methods that are compared with the others, and the prefix of their counts.
CHALLENGERS = {"likelihood-abs": "", "likelihood-guided": "guided-"}

#: Answers about pairs, and the answers about their items that they are compared with.
CLASSES_ASKED = ("classes-proposed", "classes-half", "classes-all")
CLASSES_RIVALS = ("classes-label", "classes-labels", "classes-confidences")


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
    missed: ClassVar[str] = "not in"

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
        return fmean(margin for _, margin in self.margins)

    @property
    def counts(self) -> str:
        """In how many cells it holds, in words."""
        return f"{self.holds} of {self.cells} {self.unit}"

    @property
    def spread(self) -> str:
        """The margins in words."""
        return f"margins {self.least:+.4f} to {self.most:+.4f}, mean {self.mean:+.4f}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("claim", "test_subset", "unit", "holds", "cells", "least", "most", "mean")
        losses = [{"cell": name, "margin": margin} for name, margin in self.losses]
        return {name: getattr(self, name) for name in names} | {"losses": losses}

    def __str__(self) -> str:
        lines = [f"{self.claim}: {self.counts}, {self.spread} ({self.test_subset} test subset)"]
        lines += [f"  {self.missed} {name}: {margin:+.4f}" for name, margin in self.losses]
        return "\n".join(lines)


@dataclass(frozen=True)
class Contest(Tally):
    """A method against another: the cells in which it is ahead, level and behind.

    ``contrasts`` are those of the cells of ``margins``, ``datasets`` their data sets. It
    :attr:`holds` where the method is ahead and fails where it is behind, by
    ``statistics.verdicts``.
    """

    contrasts: tuple[Contrast, ...] = ()
    datasets: tuple[str, ...] = ()
    missed: ClassVar[str] = "behind in"

    @classmethod
    def of(cls, claim: str, test_subset: str, cells: Iterable[tuple[Cell, Contrast]]) -> Contest:
        """The contest of these cells; the estimator's prior is no part of their names."""
        cells = list(cells)
        names = [describe(replace(cell.config, prior_factor=1.0)) for cell, _ in cells]
        contrasts = tuple(contrast for _, contrast in cells)
        margins = tuple((n, c.difference) for n, c in zip(names, contrasts, strict=True))
        datasets = tuple(cell.config.dataset for cell, _ in cells)
        return cls(claim, test_subset, margins, contrasts=contrasts, datasets=datasets)

    @classmethod
    def paired(
        cls, claim: str, cells: Iterable[tuple[Cell, Mapping[int, float], Mapping[int, float]]]
    ) -> Contest:
        """The contest of accuracies by seed, ours and theirs, on the stratified test subset."""
        pairs = [(cell, paired(ours, theirs)) for cell, ours, theirs in cells]
        return cls.of(claim, "stratified", [(c, gap) for c, gap in pairs if gap is not None])

    @cached_property
    def verdicts(self) -> tuple[str, ...]:
        """Of each cell "ahead", "level", "behind" or "untested"."""
        return tuple(verdicts(self.contrasts))

    @property
    def holds(self) -> int:
        """Number of cells in which the method is ahead."""
        return self.verdicts.count("ahead")

    @property
    def losses(self) -> tuple[tuple[str, float], ...]:
        """The cells in which it is behind, the worst first."""
        pairs = zip(self.margins, self.verdicts, strict=True)
        behind = [margin for margin, verdict in pairs if verdict == "behind"]
        return tuple(sorted(behind, key=lambda cell: cell[1]))

    @property
    def counts(self) -> str:
        """In how many cells it is ahead, level and behind."""
        level, untested = (self.verdicts.count(word) for word in ("level", "untested"))
        rest = f", level in {level}, behind in {len(self.losses)}"
        single = f", {untested} with one seed" if untested else ""
        return f"ahead in {self.holds} of {self.cells} {self.unit}{rest}{single}"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval of 95% for the mean margin over data sets; None with one data set."""
        named = list(zip(self.datasets, self.contrasts, strict=True))
        return interval_over_sets(
            {k: [c.difference for _, c in v] for k, v in grouped(named, lambda x: x[0]).items()}
        )

    @property
    def effect(self) -> float | None:
        """The median effect size of the cells."""
        effects = [c.effect for c in self.contrasts if c.effect is not None]
        return median(effects) if effects else None

    @property
    def spread(self) -> str:
        """The margins, with their interval and effect size."""
        over = (
            "; 95% over data sets {:+.4f} to {:+.4f}".format(*self.interval)
            if self.interval
            else ""
        )
        size = f"; effect size {self.effect:+.1f}" if self.effect is not None else ""
        return f"{super().spread}{over}{size}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        counts = {word: self.verdicts.count(word) for word in ("ahead", "level", "behind")}
        return super().to_dict() | counts | {"interval": self.interval, "effect": self.effect}


def headline_counts(grid: str, records: Iterable[Record]) -> dict[str, Tally]:
    """Count in how many cells each claim about an experiment holds, and where it fails.

    ``reproduced`` (ABS and supervised), ``uncorrected`` (unbiased and ReLU), ``wide`` (a published
    spread that hardly tests anything) and ``published`` are on the paper's test subset; ``own``,
    ``supervised``, ``annotator`` and ``mirrored`` are on the stratified one. Claims without cells
    are left out. The prefix ``guided-`` marks the guided likelihood, ``cifar10-resnet32-``
    CIFAR-10's published images, which are counted nowhere else.
    """
    comparable = [record for record in records if is_comparable(record.run)]
    published = PUBLISHED[grid]() if grid in PUBLISHED else ()
    tallies: dict[str, Tally] = {}
    for variant, group in grouped(comparable, lambda record: record.run.variant).items():
        run = group[0].run
        parts = [run.dataset, run.model, *variant.split(", ")[2:], ""] if variant else []
        prefix = "-".join(parts).replace(" ", "-")
        tallies |= {f"{prefix}{k}": tally for k, tally in _claims(group, published)}
    return {name: tally for name, tally in tallies.items() if tally.margins}


def _claims(
    records: Sequence[Record], published: Sequence[PublishedCell]
) -> Iterator[tuple[str, Tally]]:
    """Tallies of all claims about comparable runs, also of those without cells."""
    paper, stratified = (summarize(records, subset) for subset in TEST_SUBSETS)
    yield "siblings", _against_unbiased_risks(stratified)
    yield from _of_classes(stratified)
    evidence = compare_with_published(paper, published).evidence
    for name, group in GROUPS.items():
        margins = [
            (f"{describe(cell)}, {cell.method}", cell.tolerance - abs(cell.difference))
            for cell in evidence
            if cell.group == name
        ]
        yield (
            name,
            Tally(f"{group}, within tolerance of the published number", "paper", (*margins,)),
        )
    best = _best_cells(c for c in published if c.method.is_weak and c.copy_of is None)
    own, labelled = (
        {key: cell.by_seed for key, cell in _best_cells(cells).items()}
        for cells in (
            (cell for cell in stratified if cell.method.risk in PAPER_RISKS),
            (cell for cell in stratified if not cell.method.is_weak),
        )
    )
    for method, prefix in CHALLENGERS.items():
        on_paper, on_strata = (
            _best_cells(cell for cell in cells if cell.config.method == method)
            for cells in (paper, stratified)
        )
        printed = [
            (cell, against_published(cell.values, best[key].mean, best[key].std, PUBLISHED_SEEDS))
            for key, cell in on_paper.items()
            if key in best
        ]
        claim = f"{method} against the best published weakly supervised method"
        yield f"{prefix}published", Contest.of(claim, "paper", printed)
        annotators = {
            key: dict(zip(cell.seeds, cell.annotators, strict=True))
            for key, cell in on_strata.items()
            if cell.annotators
        }
        for name, rival, theirs in (
            ("own", "the best of our runs of the paper's methods", own),
            ("supervised", "supervised training on the same pairs", labelled),
            ("annotator", "the annotator", annotators),
        ):
            both = [(c, c.by_seed, theirs[key]) for key, c in on_strata.items() if key in theirs]
            yield f"{prefix}{name}", Contest.paired(f"{method} against {rival}", both)
        runs = [
            (f"{describe(r.run)}, seed {r.run.seed}", r.results["stratified"] - 0.5)
            for r in records
            if r.run.method == method and "stratified" in r.results
        ]
        claim = f"{method} not mirrored (accuracy of at least 0.5)"
        yield f"{prefix}mirrored", Tally(claim, "stratified", tuple(runs), "runs")


def _against_unbiased_risks(cells: Sequence[Cell]) -> Contest:
    """Compare the likelihood with the unbiased risk of the same statements."""

    def key(cell: Cell) -> tuple[Any, ...]:
        return question_of(cell.config.method), *condition_of(cell)

    likelihoods = {key(cell): cell for cell in cells if cell.config.method in LIKELIHOODS}
    return Contest.paired(
        "the likelihood against the unbiased risk of the same statements",
        [
            (cell, likelihoods[key(cell)].by_seed, cell.by_seed)
            for cell in cells
            if cell.method.risk in (*READ_BY, *SOFT)
            and cell.method.correction == "none"
            and key(cell) in likelihoods
        ],
    )


def _of_classes(cells: Sequence[Cell]) -> Iterator[tuple[str, Contest]]:
    """Compare answers about one class, half or all of them with others about the same items."""
    methods = {
        method: {condition_of(cell): cell for cell in group}
        for method, group in grouped(cells, lambda cell: cell.config.method).items()
    }
    others = ("classes-proposed", "classes-random", "classes-same")
    for name, sort in product(CLASSES_ASKED, ("soft", "hard")):
        hard = "-hard" * (sort == "hard")
        ours = f"{name}{hard}"
        for theirs in (*CLASSES_RIVALS, *(f"{other}{hard}" for other in others if other != name)):
            both = [
                (cell, cell.by_seed, methods[theirs][key].by_seed)
                for key, cell in methods.get(ours, {}).items()
                if key in methods.get(theirs, {})
            ]
            claim = f"{CLASSES[ours]}, against {CLASSES[theirs]}"
            pair = name.split("-")[1], sort, theirs.split("-")[1]
            yield "-".join(pair), Contest.paired(claim, both)


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
