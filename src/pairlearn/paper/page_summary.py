"""The runs of an experiment beside what was published, on both test subsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pairlearn.paper.against_published import ComparedCell, Comparison, compare_with_published
from pairlearn.paper.headline import Tally, headline_counts
from pairlearn.paper.published import PUBLISHED, PublishedCell, published_accuracy
from pairlearn.paper.runs import Record, Run
from pairlearn.paper.summary import TEST_SUBSETS, Cell, index_cells, summarize


@dataclass(frozen=True)
class Line:
    """One configuration: ours on both test subsets, and what was published.

    Parameters
    ----------
    cells : dict of str to Cell
        Ours by test subset.
    published : PublishedCell or None
        The published number.
    compared : ComparedCell or None
        Ours on the paper's test subset against it.

    Examples
    --------
    >>> Line({}, None, None).published is None
    True
    """

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
        config = self.cell.config
        return {"dataset": config.dataset, "prior": f"{config.prior:g}"}


@dataclass(frozen=True)
class GridSummary:
    """An experiment in numbers.

    Parameters
    ----------
    grid : str
        Its name.
    lines : tuple of Line
        Its configurations, in the order of the paper's tables.
    comparison : Comparison
        Ours against the published, on the paper's test subset.
    tallies : dict of str to Tally
        What it shows in counts, see :func:`~pairlearn.paper.headline.headline_counts`.

    Examples
    --------
    >>> summarize_grid("gamma", []).lines
    ()
    """

    grid: str
    lines: tuple[Line, ...]
    comparison: Comparison
    tallies: dict[str, Tally]

    def to_dict(self) -> dict[str, Any]:
        """Counts for JSON."""
        cells = self.comparison.evidence
        return {
            "cells": len(self.lines),
            "compared": len(cells),
            "copies": sum(cell.is_copy for cell in self.comparison.cells),
            "not_run": self.comparison.absent,
            "tallies": {name: tally.to_dict() for name, tally in self.tallies.items()},
        }


def summarize_grid(grid: str, records: Iterable[Record]) -> GridSummary:
    """Summarise an experiment.

    Parameters
    ----------
    grid : {"accuracy", "gamma", "limited", "robustness"}
        Which one.
    records : iterable of Record
        Its finished runs.

    Returns
    -------
    GridSummary

    Examples
    --------
    >>> summarize_grid("accuracy", []).to_dict()["not_run"]
    360
    """
    records = list(records)
    by_subset = {
        subset: [
            cell
            for cell in summarize(records, subset)
            if grid != "gamma" or cell.gamma is not None  # others have no place on the curve
        ]
        for subset in TEST_SUBSETS
    }
    placed: dict[Run, dict[str, Cell]] = {}
    for subset, cells in by_subset.items():
        index_cells(cells, _place)  # two in one place is an error
        for cell in cells:
            placed.setdefault(cell.config, {})[subset] = cell
    printed = {_printed_place(cell): cell for cell in _published(grid)}
    whole = [cell for cell in by_subset["paper"] if cell.config.fraction == 1]
    comparison = compare_with_published(whole, _published(grid))
    compared = {_compared_place(cell): cell for cell in comparison.cells}
    lines = tuple(
        _line(cells, printed, compared)
        for cells in sorted(placed.values(), key=lambda cells: _order(by_subset, cells))
    )
    return GridSummary(grid, lines, comparison, headline_counts(grid, records))


def _published(grid: str) -> Sequence[PublishedCell]:
    """γ-curves and limited data were published as figures; the accuracy tables have some."""
    return PUBLISHED.get(grid, published_accuracy)()


def _line(
    cells: dict[str, Cell],
    printed: dict[Any, PublishedCell],
    compared: dict[Any, ComparedCell],
) -> Line:
    cell = next(iter(cells.values()))
    config = cell.config
    if config.fraction != 1:
        return Line(cells, None, None)
    noise = config.prior_factor, config.label_noise
    place = config.dataset, config.prior, *noise, cell.method.title
    return Line(cells, printed.get(place), compared.get(place))


def _place(cell: Cell) -> Any:
    c = cell.config
    return c.dataset, c.prior, c.prior_factor, c.label_noise, c.fraction, c.method


def _printed_place(cell: PublishedCell) -> Any:
    return cell.dataset, cell.prior, cell.prior_factor, cell.label_noise, cell.method.title


def _compared_place(cell: ComparedCell) -> Any:
    return cell.dataset, cell.prior, cell.prior_factor, cell.label_noise, cell.method


def _order(by_subset: dict[str, list[Cell]], cells: dict[str, Cell]) -> int:
    subset, cell = next(iter(cells.items()))
    return by_subset[subset].index(cell)
