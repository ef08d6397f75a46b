"""The benchmark as one page: what ran, the paper's numbers and ours, and every figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pairlearn.paper.cells import PUBLISHED, TEST_SUBSETS, Cell, PublishedCell, dataset_title
from pairlearn.paper.figures import plot_accuracy, plot_gamma, plot_limited, plot_robustness_heatmap
from pairlearn.paper.grids import GRIDS
from pairlearn.paper.headline import GridSummary, Line, summarize_grid
from pairlearn.paper.methods import CORRECTIONS, Method
from pairlearn.paper.runs import Record, Run, grouped
from pairlearn.paper.store import Source
from pairlearn.report.figures import PageFigure, draw
from pairlearn.report.html import (
    HtmlTable,
    TableCell,
    difference_cell,
    number_cell,
    render,
    spread,
)
from pairlearn.style import SPREAD, method_style

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

__all__ = ["BenchReport", "build_report"]

_TITLES = {
    "accuracy": "Accuracy of every method",
    "gamma": "From ConfDiff to Sconf: the γ-curve",
    "limited": "With fewer pairs",
    "robustness": "Under a wrong class prior and noisy labels",
    "siblings": "Other statements about the same items",
}
_WHERE: dict[str, dict[str, Callable[[Cell], Any]]] = {
    "accuracy": {},
    "gamma": {"γ": lambda cell: cell.gamma},
    "limited": {"pairs": lambda cell: cell.config.n_training_pairs},
    "siblings": {"statements": lambda cell: cell.config.n_training_pairs},
    "robustness": {
        "prior factor ε": lambda cell: cell.config.prior_factor,
        "label noise σ": lambda cell: cell.config.label_noise,
    },
}


@dataclass(frozen=True)
class BenchReport:
    """A page, and what it says in counts.

    Parameters
    ----------
    page : str
        The HTML.
    runs, figures : int
        Runs behind it, and figures on it.
    grids : dict of str to dict
        Counts of each experiment.

    Examples
    --------
    >>> BenchReport("", 5, 1, {}).runs
    5
    """

    page: str
    runs: int
    figures: int
    grids: dict[str, dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Counts for JSON."""
        return {"runs": self.runs, "figures": self.figures, "grids": self.grids}


def build_report(sources: Sequence[Source]) -> BenchReport:
    """Lay out the report.

    Parameters
    ----------
    sources : sequence of Source
        The runs, see `read_sources`.

    Returns
    -------
    BenchReport

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairlearn.paper import Record, Run
    >>> run = Run(dataset="letter", prior=0.2, seed=0, method="supervised", pairs=9, epochs=1)
    >>> record = Record(run, {"paper": 0.97, "stratified": 0.96})
    >>> report = build_report([Source(Path("accuracy.jsonl"), "accuracy", (record,))])
    >>> report.grids["accuracy"]["compared"], report.figures
    (1, 2)
    """
    summaries = [
        summarize_grid(grid, [r for s in sources if s.grid == grid for r in s.records])
        for grid in GRIDS
        if any(source.grid == grid and source.records for source in sources)
    ]
    parts: dict[str, dict[str, Any]] = {
        s.grid: {"figures": list(_figures(s)), "legend": _legend(s), "table": _cells_table(s)}
        for s in summaries
    }
    runs = sum(len(source.records) for source in sources)
    page = render(
        "bench.html",
        title="The SconfConfDiff benchmark: the paper’s numbers and ours",
        sections={
            "runs": "What ran, on what, for how long",
            **{grid: _TITLES[grid] for grid in parts},
            "reading": "How to read this page",
        },
        summaries=summaries,
        sources=sources,
        runs_table=_runs_table(sources),
        parts=parts,
        dataset_title=dataset_title,
        spread_words=SPREAD,
        foot=f"from {runs:,} finished runs",
    )
    figures = sum(len(part["figures"]) for part in parts.values())
    return BenchReport(page, runs, figures, {s.grid: s.to_dict() for s in summaries})


def _figures(summary: GridSummary) -> Iterator[PageFigure]:
    """A figure for each data set, prior and test subset; of heat maps also for each method."""
    groups = grouped(summary.lines, lambda line: (line.cell.dataset_title, line.cell.config.prior))
    for (name, prior), lines in groups.items():
        for subset in reversed(TEST_SUBSETS):
            cells = [line.cells[subset] for line in lines if subset in line.cells]
            shown = {**_facets(lines[0]), "subset": subset}
            if summary.grid == "robustness":
                yield from _heat_maps(cells, shown)
            elif cells and summary.grid in _PLOTS:
                title = f"{name}, π₊ = {prior:g}"
                height = 0.19 * len(cells) + 1.0 if summary.grid == "accuracy" else 2.8
                alt = f"{_TITLES[summary.grid]}: {title}. {_best(cells)}"
                drawing = draw(partial(_PLOTS[summary.grid], cells), alt, (3.9, height))
                yield PageFigure(title, drawing, "", shown)


def _facets(line: Line) -> dict[str, str]:
    """What a line, or a figure of such lines, is filtered by."""
    return {"dataset": line.cell.config.dataset, "prior": f"{line.cell.config.prior:g}"}


def _accuracy_with_annotator(cells: Sequence[Cell], ax: Axes) -> None:
    plot_accuracy(cells, ax)
    taught = next((cell.annotator for cell in cells if cell.annotator is not None), None)
    if taught is not None:
        rows = [label.get_text() for label in ax.get_yticklabels()]
        left, right = ax.get_xlim()
        error = min(max(1 - taught, right * 1.02), left)  # within the axis
        ax.plot([error], [len(rows)], ls="", ms=7, **method_style("annotator").points())
        ax.set_yticks(range(len(rows) + 1), [*rows, "Annotator"])
        ax.set_ylim(len(rows) + 0.6, -0.6)


_PLOTS = {"accuracy": _accuracy_with_annotator, "gamma": plot_gamma, "limited": plot_limited}


def _heat_maps(cells: Sequence[Cell], facets: dict[str, str]) -> Iterator[PageFigure]:
    for method, mine in grouped(cells, lambda cell: cell.method.title).items():
        limits = min(cell.mean for cell in cells), max(cell.mean for cell in cells)
        title = f"{mine[0].dataset_title}, {method}"
        alt = f"Accuracy by ε and σ: {title}. {_best(mine)}"
        drawing = draw(partial(plot_robustness_heatmap, mine, limits=limits), alt, (3.5, 2.6))
        note = "darkest {:.3f}, brightest {:.3f}".format(*limits)
        yield PageFigure(title, drawing, note, facets)


def _best(cells: Sequence[Cell]) -> str:
    best, worst = (pick(cells, key=lambda cell: cell.mean) for pick in (max, min))
    return (
        f"From {worst.mean:.3f} ({worst.method.title}) to {best.mean:.3f} ({best.method.title}); "
        "all numbers are in the table below"
    )


def _legend(summary: GridSummary) -> list[tuple[Markup, str]]:
    """What lines and markers of an experiment's figures mean."""
    methods = {line.cell.config.method: line.cell.method for line in summary.lines}
    titles = {name: method.title for name, method in methods.items()}
    if summary.grid not in _PLOTS:
        return []
    if summary.grid == "gamma":
        corrections = {c: Method("convex", None, c).correction_title for c in CORRECTIONS}
        titles = {f"convex-{c}": f"Convex, {title}" for c, title in corrections.items()}
    elif summary.grid == "accuracy":  # its rows say the rest
        titles = {f"{m.risk.partition('-')[0]}-abs": m.family_title for m in methods.values()}

    def swatch(name: str) -> Markup:
        def plot(ax: Any) -> None:
            ax.plot([0, 1, 2], [0, 0, 0], markevery=[1], ms=6, **method_style(name).line())
            ax.set_axis_off()

        return draw(plot, "", (0.48, 0.2), summary.grid)

    return [(swatch(name), title) for name, title in titles.items()]


def _cells_table(summary: GridSummary) -> HtmlTable:
    """Every configuration of an experiment, ours beside the published."""
    where = _WHERE[summary.grid]

    def row(line: Line) -> dict[str, TableCell]:
        cell, compared = line.cell, line.compared
        return {
            "data set": TableCell(cell.dataset_title),
            "prior π₊": number_cell(cell.config.prior),
            **{name: number_cell(value(cell)) for name, value in where.items()},
            "method": TableCell(cell.method.title),
            "published": _mean(line.published),
            "ours, paper's test subset": _mean(line.cells.get("paper")),
            "difference": difference_cell(compared.difference if compared else None),
            "within tolerance": TableCell(_verdict(line)),
            "ours, stratified test subset": _mean(line.cells.get("stratified")),
            "seeds": number_cell(len(cell.seeds)),
        }

    count = summary.to_dict()
    words = f"{_TITLES[summary.grid]}: {len(summary.lines):,} cells"
    if count["compared"]:
        words += f", {count['compared']:,} with a published number that counts"
    if count["not_run"] and summary.grid in PUBLISHED:
        words += f"; {count['not_run']:,} published cells were not run"
    facets = [_facets(line) for line in summary.lines]
    return _html_table(f"{words}. Mean {SPREAD}.", list(map(row, summary.lines)), facets)


def _html_table(
    caption: str, rows: Sequence[dict[str, TableCell]], facets: Sequence[dict[str, str]] = ()
) -> HtmlTable:
    return HtmlTable(
        caption, list(rows[0]) if rows else [], [list(row.values()) for row in rows], facets
    )


def _verdict(line: Line) -> str:
    if line.compared is None or line.published is None:
        return "–"
    if line.compared.is_copy:
        return f"copy of σ = {line.published.copy_of:g}, not counted"
    if not line.compared.counts:
        return "another network, not counted"
    return f"{'yes' if line.compared.ok else 'no'}, ±{line.compared.tolerance:.3f}"


def _mean(cell: Cell | PublishedCell | None) -> TableCell:
    return TableCell("–") if cell is None else TableCell(spread(cell.mean, cell.std), cell.mean)


def _runs_table(sources: Sequence[Source]) -> HtmlTable:
    """What ran, on what, and for how long."""
    notes = ("device", "precision", "version")

    def row(source: Source, group: Sequence[Record]) -> dict[str, TableCell]:
        runs = [record.run for record in group]
        noted = [str(group[0].notes.get(name, "–")) for name in notes]
        times = [record.notes.get("seconds") for record in group]
        seconds = [time for time in times if isinstance(time, int | float)]
        left_out = f" (without {source.repeated} runs in whose place another file has some)"
        return {
            "experiment": TableCell(source.grid),
            "data set": TableCell(dataset_title(runs[0].dataset)),
            "runs": number_cell(len(runs), "{:,}"),
            "methods": number_cell(len(_values(runs, "method")), "{:,}"),
            "seeds": number_cell(len(_values(runs, "seed")), "{:,}"),
            "epochs": TableCell(", ".join(map(str, _values(runs, "epochs")))),
            "network": TableCell(", ".join(_values(runs, "model"))),
            **dict(zip(notes, map(TableCell, noted), strict=True)),
            "time noted (s)": number_cell(sum(seconds), "{:,.0f}")
            if seconds
            else TableCell("not noted"),
            "file": TableCell(f"{source.path.name}{left_out if source.repeated else ''}"),
        }

    rows = [
        row(source, group)
        for source in sources
        for group in grouped(
            source.records,
            lambda record: (record.run.dataset, *(str(record.notes.get(n)) for n in notes)),
        ).values()
    ]
    return _html_table("The runs behind this page, by file and data set", rows)


def _values(runs: Sequence[Run], name: str) -> list[Any]:
    return sorted({getattr(run, name) for run in runs})
