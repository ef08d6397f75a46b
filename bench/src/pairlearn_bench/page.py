"""The benchmark as one page: the runs, the paper's numbers and ours, and every figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pairlearn.report.figures import draw
from pairlearn.report.html import HtmlTable, TableCell, number_cell, render, signed
from pairlearn.style import SPREAD
from pairlearn_bench.cells import (
    PUBLISHED,
    TEST_SUBSETS,
    Cell,
    PublishedCell,
    departures,
    format_cell,
)
from pairlearn_bench.figures import Panel, panels
from pairlearn_bench.grids import GRIDS
from pairlearn_bench.headline import GridSummary, Line, summarize_grid
from pairlearn_bench.runs import Record
from pairlearn_bench.store import Source

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

__all__ = ["BenchReport", "build_report", "cells_page"]

#: Differences, as shown, from which on a cell has the first, second and third tint.
STEPS = (0.002, 0.006, 0.015)


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page, with its caption; filters show and hide it by ``facets``."""

    title: str
    svg: Markup
    note: str = ""
    facets: Mapping[str, str] = field(default_factory=dict)


def difference_cell(difference: float | None) -> TableCell:
    """A difference with its sign, an arrow and a tint: colour is never the only sign."""
    if difference is None:
        return TableCell("–")
    shown = float(f"{abs(difference):.3f}")
    size = sum(shown >= step for step in STEPS)
    if not size:
        return TableCell(signed(difference), difference, "diff")
    side, arrow = ("above", "▲") if difference > 0 else ("below", "▼")
    return TableCell(f"{signed(difference)} {arrow}", difference, f"diff {side}-{size}")


TITLES = {
    "accuracy": "Accuracy of every method",
    "gamma": "From ConfDiff to Sconf: the γ-curve",
    "limited": "With fewer pairs",
    "robustness": "Under a wrong class prior and noisy labels",
    "siblings": "Other statements about the same items",
    "classes": "All classes of the data",
}
#: Explanation of the figures and tables of an experiment.
EXPLAINED = {
    "accuracy": f"""Each method on each data set and class prior. The dashed line is supervised
training on the true classes of the same pairs, the star the annotator who judged them. Bars are
{SPREAD}; upright ticks are the published numbers, which were measured on the paper's test subset
and are drawn in its figures only.""",
    "gamma": f"""The risk γ·Sconf + (1 − γ)·ConfDiff for each correction; dash and fill show the
correction. Bands are {SPREAD}.""",
    "limited": f"The same training with a part of the pairs. Bands are {SPREAD}.",
    "robustness": """The estimator is given ε·π₊ instead of π₊, and judgements are multiplied by
numbers drawn from N(1, σ²). Every cell shows its accuracy; a data set has one colour scale. The
published cells at σ = 0.01 and 0.1 repeat others to the last digit: they are shown and not
counted.""",
    "siblings": "Accuracy with equally many statements of each kind about the same items.",
    "classes": """What answers about the data's own classes teach, beside labels from the same
annotator.""",
}

_PARAMETERS: dict[str, dict[str, Callable[[Cell], Any]]] = {
    "accuracy": {},
    "gamma": {"γ": lambda cell: cell.gamma},
    "limited": {"pairs": lambda cell: cell.config.n_training_pairs},
    "siblings": {"statements": lambda cell: cell.config.n_training_pairs},
    "classes": {"pairs": lambda cell: cell.config.pairs},
    "robustness": {
        "ε": lambda cell: cell.config.prior_factor,
        "σ": lambda cell: cell.config.label_noise,
    },
}


@dataclass(frozen=True)
class BenchReport:
    """A page of HTML, and the counts of its runs and figures."""

    page: str
    runs: int
    figures: int


def build_report(sources: Sequence[Source]) -> BenchReport:
    """Make the report of the runs from `read_sources`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairlearn_bench import Record, Run
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> record = Record(run, {"paper": 0.97, "stratified": 0.96})
    >>> build_report([Source(Path("accuracy.jsonl"), "accuracy", (record,))]).figures
    2
    """
    summaries = [
        summarize_grid(grid, [r for s in sources if s.grid == grid for r in s.records])
        for grid in GRIDS
        if any(source.grid == grid and source.records for source in sources)
    ]
    parts: dict[str, dict[str, Any]] = {
        s.grid: {"figures": list(_figures(s)), "table": _cells_table(s)} for s in summaries
    }
    runs = sum(len(source.records) for source in sources)
    page = render(
        "bench.html",
        title="The SconfConfDiff benchmark: the paper’s numbers and ours",
        sections={
            "runs": "What ran",
            **{grid: TITLES[grid] for grid in parts},
            "reading": "How to read this page",
        },
        summaries=summaries,
        sources=sources,
        parts=parts,
        explained=EXPLAINED,
        departures=[
            line for s in summaries for line in departures(s.grid, (x.cell.config for x in s.lines))
        ],
        foot=f"from {runs:,} finished runs",
    )
    figures = sum(len(part["figures"]) for part in parts.values())
    return BenchReport(page, runs, figures)


def cells_page(grid: str, records: Sequence[Record]) -> str:
    """A part of a page with all cells of an experiment, to sort and filter.

    Examples
    --------
    >>> cells_page("accuracy", []).startswith("<form")
    True
    """
    summary = summarize_grid(grid, records)
    return render("cells.html", summaries=[summary], table=_cells_table(summary))


def _figures(summary: GridSummary) -> Iterator[PageFigure]:
    """The plots of an experiment on each test subset."""
    for subset in reversed(TEST_SUBSETS):
        cells = [line.cells[subset] for line in summary.lines if subset in line.cells]
        for panel in panels(summary.grid, cells):
            best, worst = (pick(panel.cells, key=lambda cell: cell.mean) for pick in (max, min))
            alt = (
                f"{TITLES[summary.grid]}: {panel.name}, {subset} test subset. From "
                f"{worst.mean:.3f} ({worst.method.title}) to {best.mean:.3f} "
                f"({best.method.title}); all numbers are in the table below"
            )
            height = 0.19 * len(panel.cells) + 1.2 if summary.grid == "accuracy" else 2.8
            drawing = draw(partial(_with_legend, summary.grid, panel), alt, (3.9, height))
            yield PageFigure(panel.name, drawing, "", {**_facets(panel.cells[0]), "subset": subset})


def _with_legend(grid: str, panel: Panel, ax: Axes) -> None:
    panel.plot(panel.cells, ax)
    if grid in ("gamma", "limited"):  # the others need none
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=6)


def _facets(cell: Cell) -> dict[str, str]:
    """The values by which a row or a figure is filtered."""
    prior = "" if cell.config.prior is None else f"{cell.config.prior:g}"
    return {"dataset": cell.config.dataset, "prior": prior}


def _cells_table(summary: GridSummary) -> HtmlTable:
    """Every configuration of an experiment with the published number."""
    parameters = dict(_PARAMETERS[summary.grid])
    if len({line.cell.config.prior for line in summary.lines}) > 1:
        parameters = {"π₊": lambda cell: cell.config.prior, **parameters}

    def row(line: Line) -> dict[str, TableCell]:
        cell, compared = line.cell, line.compared
        return {
            "data set": TableCell(cell.dataset_title),
            **{name: number_cell(value(cell)) for name, value in parameters.items()},
            "method": TableCell(cell.method.title),
            "published": _mean(line.published),
            "ours, paper's test subset": _mean(line.cells.get("paper")),
            "ours, stratified test subset": _mean(line.cells.get("stratified")),
            "difference": difference_cell(compared.difference if compared else None),
            "within tolerance": TableCell(_verdict(line)),
            "seeds": number_cell(len(cell.seeds)),
        }

    comparison = summary.comparison
    caption = f"{TITLES[summary.grid]}: {len(summary.lines):,} cells"
    if comparison.evidence:
        caption += f", {len(comparison.evidence):,} with a published number that counts"
    if comparison.absent and summary.grid in PUBLISHED:
        caption += f"; {comparison.absent:,} published cells were not run"
    facets = [
        {**_facets(line.cell), "method": line.cell.method.title, "verdict": _verdict(line)[:3]}
        for line in summary.lines
    ]
    rows = list(map(row, summary.lines))
    cells = [list(entry.values()) for entry in rows]
    columns = list(rows[0]) if rows else []
    return HtmlTable(f"{caption}. Mean {SPREAD}.", columns, cells, facets)


def _verdict(line: Line) -> str:
    if line.compared is None or line.published is None:
        return "–"
    if line.compared.is_copy:
        return "copy"
    if not line.compared.counts:
        return "other images"
    return f"{'yes' if line.compared.ok else 'no'}, ±{line.compared.tolerance:.3f}"


def _mean(cell: Cell | PublishedCell | None) -> TableCell:
    return TableCell(format_cell(cell), None if cell is None else cell.mean)
