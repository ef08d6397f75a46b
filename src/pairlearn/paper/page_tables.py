"""The tables of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pairlearn.pages import Column, Html, TableCell, TableRow, spread, table
from pairlearn.pages.tables import difference_cell
from pairlearn.paper.page_summary import GridSummary, Line
from pairlearn.paper.runs import Record
from pairlearn.paper.sources import Source
from pairlearn.paper.summary import dataset_title

_WHERE: dict[str, tuple[str, ...]] = {
    "accuracy": (),
    "gamma": ("γ",),
    "limited": ("pairs",),
    "robustness": ("prior factor ε", "label noise σ"),
}


def cells_table(summary: GridSummary, caption: str) -> Html:
    """Every configuration of an experiment, ours beside the published.

    Parameters
    ----------
    summary : GridSummary
        The experiment.
    caption : str
        What the table shows.

    Returns
    -------
    Html

    Examples
    --------
    >>> from pairlearn.paper.page_summary import summarize_grid
    >>> "within tolerance" in cells_table(summarize_grid("accuracy", []), "accuracy")
    True
    """
    columns = [
        Column("data set"),
        Column("prior π₊", "number"),
        *(Column(title, "number") for title in _WHERE[summary.grid]),
        Column("method"),
        Column("published", "number"),
        Column("ours, paper's test subset", "number"),
        Column("difference", "number"),
        Column("within tolerance"),
        Column("ours, stratified test subset", "number"),
        Column("seeds", "number"),
    ]
    return table(caption, columns, (_row(summary.grid, line) for line in summary.lines))


def _row(grid: str, line: Line) -> TableRow:
    cell, config = line.cell, line.cell.config
    paper, stratified = (line.cells.get(subset) for subset in ("paper", "stratified"))
    cells = [
        TableCell(dataset_title(config.dataset)),
        _number(config.prior),
        *(_number(value) for value in _where(grid, line)),
        TableCell(cell.method.title),
        _mean(line.published),
        _mean(paper),
        difference_cell(None if line.compared is None else line.compared.difference),
        TableCell(_verdict(line)),
        _mean(stratified),
        TableCell(str(len(cell.seeds)), len(cell.seeds)),
    ]
    return TableRow(cells, line.facets)


def _where(grid: str, line: Line) -> Sequence[float]:
    cell, config = line.cell, line.cell.config
    if grid == "gamma":
        return () if cell.gamma is None else (cell.gamma,)
    if grid == "limited":
        return (config.n_training_pairs,)
    return (config.prior_factor, config.label_noise) if grid == "robustness" else ()


def _verdict(line: Line) -> str:
    if line.compared is None or line.published is None:
        return "–"
    if line.compared.is_copy:
        return f"copy of σ = {line.published.copy_of:g}, not counted"
    if not line.compared.counts:
        return "another network, not counted"
    return f"{'yes' if line.compared.ok else 'no'}, ±{line.compared.tolerance:.3f}"


def _number(value: float) -> TableCell:
    return TableCell(f"{value:g}", value)


def _mean(cell: Any) -> TableCell:
    return TableCell("–") if cell is None else TableCell(spread(cell.mean, cell.std), cell.mean)


def runs_table(sources: Sequence[Source]) -> Html:
    """What ran, on what, and for how long.

    Parameters
    ----------
    sources : sequence of Source
        Where the runs come from.

    Returns
    -------
    Html

    Examples
    --------
    >>> "not noted" in runs_table([])
    False
    """
    columns = [
        Column("experiment"),
        Column("data set"),
        Column("runs", "number"),
        Column("methods", "number"),
        Column("seeds", "number"),
        Column("epochs"),
        Column("network"),
        Column("device"),
        Column("precision"),
        Column("version"),
        Column("time noted (s)", "number"),
        Column("file"),
    ]
    rows = []
    for source in sources:
        groups: dict[Any, list[Record]] = defaultdict(list)
        for record in source.records:
            noted = tuple(record.notes.get(n, "–") for n in ("device", "precision", "version"))
            groups[record.run.dataset, *noted].append(record)
        rows += [_ran(source, dataset, noted, group) for (dataset, *noted), group in groups.items()]
    return table("The runs behind this page, by file and data set", columns, rows)


def _ran(source: Source, dataset: str, noted: Sequence[Any], group: list[Record]) -> TableRow:
    seconds = noted_seconds(group)
    total = sum(seconds)
    time = TableCell(f"{total:,.0f}", total) if seconds else TableCell("not noted")
    file = source.path.name
    if source.repeated:
        file += f" (without {source.repeated} runs in whose place another file has some)"
    cells = [
        TableCell(source.grid),
        TableCell(dataset_title(dataset)),
        TableCell(f"{len(group):,}", len(group)),
        _count({record.run.method for record in group}),
        _count({record.run.seed for record in group}),
        TableCell(", ".join(map(str, sorted({record.run.epochs for record in group})))),
        TableCell(", ".join(sorted({record.run.model for record in group}))),
        *(TableCell(str(value)) for value in noted),
        time,
        TableCell(file),
    ]
    return TableRow(cells)


def noted_seconds(records: Iterable[Record]) -> list[float]:
    """The times that are noted with the runs.

    Examples
    --------
    >>> noted_seconds([])
    []
    """
    noted = (record.notes.get("seconds") for record in records)
    return [float(seconds) for seconds in noted if isinstance(seconds, int | float)]


def _count(values: set[Any]) -> TableCell:
    return TableCell(str(len(values)), len(values))
