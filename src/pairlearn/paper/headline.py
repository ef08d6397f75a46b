"""The counts that README, results, docs and report quote, from one function.

Copies among the published cells and data sets that cannot be compared are left out, and a cell
of the likelihood is counted once however many priors it was not given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pairlearn.paper.against_published import (
    CEILING_MARGIN,
    CHALLENGER,
    NOT_COMPARABLE,
    ComparedCell,
    Comparison,
    compare_with_published,
    condition,
    improvements,
)
from pairlearn.paper.published import PUBLISHED, PublishedCell, published_accuracy
from pairlearn.paper.runs import Record, Run
from pairlearn.paper.summary import (
    TEST_SUBSETS,
    Cell,
    dataset_title,
    index_cells,
    position,
    summarize,
)

_ROUNDING = 1e-9
_SHOWN = 20  # losses in print; to_dict has all
_PAPER = ("sconf", "confdiff", "convex", "sconfconfdiff")


@dataclass(frozen=True)
class Tally:
    """In how many cells something holds, by how much, and where it does not.

    Parameters
    ----------
    claim : str
        What is counted.
    test_subset : str
        What was tested on.
    margins : tuple of (str, float)
        The cells by name; the claim holds where the margin is not negative.

    Examples
    --------
    >>> tally = Tally("above", "paper", (("MNIST", 0.02), ("Letter", -0.01), ("CIFAR", 0.05)))
    >>> tally.holds, tally.cells, tally.losses
    (2, 3, (('Letter', -0.01),))
    >>> print(tally)
    above: 2 of 3 cells, margins -0.0100 to +0.0500, mean +0.0200 (paper test subset)
      not in Letter: -0.0100
    """

    claim: str
    test_subset: str
    margins: tuple[tuple[str, float], ...]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.margins)

    @property
    def losses(self) -> tuple[tuple[str, float], ...]:
        """The cells in which it does not hold, the worst first."""
        lost = [cell for cell in self.margins if cell[1] < -_ROUNDING]
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
        return {
            "claim": self.claim,
            "test_subset": self.test_subset,
            "holds": self.holds,
            "cells": self.cells,
            "least": self.least,
            "most": self.most,
            "mean": self.mean,
            "losses": [{"cell": name, "margin": margin} for name, margin in self.losses],
        }

    def __str__(self) -> str:
        lines = [
            f"{self.claim}: {self.holds} of {self.cells} cells, margins {self.least:+.4f} to "
            f"{self.most:+.4f}, mean {self.mean:+.4f} ({self.test_subset} test subset)"
        ]
        lines += [f"  not in {name}: {margin:+.4f}" for name, margin in self.losses[:_SHOWN]]
        if (more := len(self.losses) - _SHOWN) > 0:
            lines.append(f"  nor in {more} more")
        return "\n".join(lines)


def headline_counts(grid: str, records: Iterable[Record]) -> dict[str, Tally]:
    """Count what an experiment shows, with what speaks against it.

    Parameters
    ----------
    grid : {"accuracy", "gamma", "limited", "robustness"}
        Which experiment.
    records : iterable of Record
        Its finished runs.

    Returns
    -------
    dict of str to Tally
        ``reproduced``, ``published`` and ``ceiling`` on the paper's test subset, ``own``,
        ``supervised`` and ``annotator`` on the stratified one; only those that have cells.

    Examples
    --------
    >>> headline_counts("limited", [])
    {}
    """
    known = [record for record in records if record.run.dataset not in NOT_COMPARABLE]
    tallies = [*_against_published(grid, known), *_against_ours(summarize(known, "stratified"))]
    return {name: tally for name, tally in tallies if tally.cells}


def _against_published(grid: str, records: Sequence[Record]) -> list[tuple[str, Tally]]:
    if grid not in PUBLISHED:
        return []
    published, cells = PUBLISHED[grid](), summarize(records, "paper")
    compared = compare_with_published(cells, published).evidence
    improved = improvements(cells, published)
    bounded = [(item, item.ceiling) for item in improved if item.ceiling is not None]
    claims = {
        "reproduced": (
            "within tolerance of the published number",
            [
                (f"{_named(c)}, {c.method}", c.tolerance - abs(c.difference))
                for c in compared
            ],
        ),
        "published": (
            f"{CHALLENGER} at or above the best published weakly supervised method",
            [(_named(item), item.ours - item.best) for item in improved],
        ),
        "ceiling": (
            f"{CHALLENGER} at most {CEILING_MARGIN:g} below the lesser of supervised and annotator",
            [(_named(item), item.ours - bound + CEILING_MARGIN) for item, bound in bounded],
        ),
    }  # fmt: skip
    return [(name, Tally(words, "paper", tuple(m))) for name, (words, m) in claims.items()]


def _against_ours(cells: Sequence[Cell]) -> list[tuple[str, Tally]]:
    """The likelihood beside everything else that was run where it was."""
    ours = {_place(cell): cell for cell in cells if cell.config.method == CHALLENGER}
    rivals: dict[str, tuple[str, Callable[[Cell], bool]]] = {
        "own": ("the best of our runs of the paper's methods", lambda c: c.method.risk in _PAPER),
        "supervised": ("supervised training on the same pairs", lambda c: not c.method.is_weak),
    }
    claims: dict[str, tuple[str, dict[Any, float]]] = {}
    for name, (words, is_rival) in rivals.items():
        best: dict[Any, float] = {}
        for cell in filter(is_rival, cells):
            best[_place(cell)] = max(cell.mean, best.get(_place(cell), 0.0))
        claims[name] = words, best
    annotators = {p: cell.annotator for p, cell in ours.items() if cell.annotator is not None}
    claims["annotator"] = "the annotator", annotators
    return [
        (
            name,
            Tally(
                f"{CHALLENGER} at or above {words}",
                "stratified",
                tuple(
                    (_named(replace(cell.config, prior_factor=1.0)), cell.mean - best[place])
                    for place, cell in ours.items()
                    if place in best
                ),
            ),
        )
        for name, (words, best) in claims.items()
    ]


def _place(cell: Cell) -> tuple[Any, ...]:
    """What the likelihood depends on, which ε is not."""
    config = cell.config
    return config.dataset, config.prior, config.label_noise, config.fraction


def _named(place: Any) -> str:
    """A cell in words."""
    parts = [f"{dataset_title(place.dataset)} at {place.prior:g}"]
    if getattr(place, "prior_factor", 1.0) != 1.0:
        parts.append(f"ε = {place.prior_factor:g}")
    if place.label_noise:
        parts.append(f"σ = {place.label_noise:g}")
    if getattr(place, "fraction", 1.0) != 1.0:
        parts.append(f"{place.fraction:.0%} of the pairs")
    return ", ".join(parts)


@dataclass(frozen=True)
class Line:
    """One configuration: ours by test subset, the published number, and both compared."""

    cells: dict[str, Cell]
    published: PublishedCell | None
    compared: ComparedCell | None

    @property
    def cell(self) -> Cell:
        """One of them, for what both have in common."""
        return next(iter(self.cells.values()))

    @property
    def facets(self) -> dict[str, str]:
        """What it is filtered by."""
        return {"dataset": self.cell.config.dataset, "prior": f"{self.cell.config.prior:g}"}


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
    """The runs of an experiment beside what was published, on both test subsets.

    Examples
    --------
    >>> summarize_grid("accuracy", []).to_dict()["not_run"]
    360
    """
    records = list(records)
    placed: dict[Run, dict[str, Cell]] = {}
    whole = []
    for subset in TEST_SUBSETS:
        # Methods without γ have no place on the γ-curve.
        cells = [c for c in summarize(records, subset) if grid != "gamma" or c.gamma is not None]
        index_cells(cells, lambda c: (*condition(c), c.config.fraction, c.config.method))
        for cell in cells:
            placed.setdefault(cell.config, {})[subset] = cell
        whole += [c for c in cells if c.config.fraction == 1 and subset == "paper"]
    # γ-curves and limited data were published as figures; the accuracy tables have some.
    published = PUBLISHED.get(grid, published_accuracy)()
    comparison = compare_with_published(whole, published)
    printed = {(*condition(cell), cell.method.title): cell for cell in published}
    compared = {
        (c.dataset, c.prior, c.prior_factor, c.label_noise, c.method): c for c in comparison.cells
    }
    lines = []
    for config in sorted(placed, key=position):
        cell = next(iter(placed[config].values()))
        place = (*condition(cell), cell.method.title)
        part = config.fraction != 1  # of the pairs, of which nothing was published
        lines.append(
            Line(
                placed[config],
                None if part else printed.get(place),
                None if part else compared.get(place),
            )
        )
    return GridSummary(grid, tuple(lines), comparison, headline_counts(grid, records))
