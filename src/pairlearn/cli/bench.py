"""``pairlearn bench``: run the paper's experiments and see what came out.

Exit codes: 0 all is well, 1 the comparison with the paper failed, 2 the request was wrong.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.atomic import replacing
from pairlearn.cli.bench_options import (
    AnnotatorOption,
    DatasetsOption,
    EpochsOption,
    GridArgument,
    GridName,
    JsonOption,
    MethodsOption,
    ModelOption,
    PriorsOption,
    SeedsOption,
    StoreOption,
    plain_errors,
    runs_of,
    store_of,
)
from pairlearn.cli.bench_report import report
from pairlearn.cli.bench_run import run
from pairlearn.cli.theory import theory
from pairlearn.experiments.better import improvements
from pairlearn.experiments.compare import compare_with_published
from pairlearn.experiments.figure_files import save_figures
from pairlearn.experiments.grids import GRIDS
from pairlearn.experiments.published import PUBLISHED
from pairlearn.experiments.render import aligned, to_csv, to_latex, to_markdown
from pairlearn.experiments.reports import passes, report_data, report_text
from pairlearn.experiments.results import result_rows
from pairlearn.experiments.selection import Selection
from pairlearn.experiments.summary import TEST_SUBSETS, Cell, dataset_title, summarize
from pairlearn.experiments.tables import TABLES

__all__ = ["app"]

app = typer.Typer(name="bench", help="Run the paper's experiments.", no_args_is_help=True)


class Subset(StrEnum):
    """How the test set is reduced to the class prior."""

    paper = "paper"
    stratified = "stratified"
    both = "both"


class TableFormat(StrEnum):
    """How a table is written."""

    markdown = "markdown"
    latex = "latex"
    csv = "csv"


SubsetOption = Annotated[Subset, typer.Option(help="Test subset.")]


app.command()(run)


@app.command()
def status(
    grid: GridArgument,
    store: StoreOption = None,
    datasets: DatasetsOption = None,
    priors: PriorsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    methods: MethodsOption = None,
    model: ModelOption = None,
    annotator: AnnotatorOption = None,
    as_json: JsonOption = False,
) -> None:
    """How much of an experiment is finished."""
    with plain_errors(ValueError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        wanted = runs_of(selection.of(GRIDS[grid.value]))
        finished = store_of(store, grid).finished()
    counts = {
        name: {
            "finished": sum(run.dataset == name and run.key() in finished for run in wanted),
            "wanted": sum(run.dataset == name for run in wanted),
        }
        for name in dict.fromkeys(run.dataset for run in wanted)
    }
    if as_json:
        typer.echo(json.dumps(counts))
    else:
        rows = [
            [dataset_title(name), str(count["finished"]), str(count["wanted"])]
            for name, count in counts.items()
        ]
        typer.echo(aligned(["data set", "finished", "wanted"], rows))


@app.command()
def table(
    grid: GridArgument,
    store: StoreOption = None,
    datasets: DatasetsOption = None,
    priors: PriorsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    methods: MethodsOption = None,
    model: ModelOption = None,
    annotator: AnnotatorOption = None,
    test_subset: SubsetOption = Subset.stratified,
    format: Annotated[TableFormat, typer.Option(help="How to write it.")] = TableFormat.markdown,
    out: Annotated[Path | None, typer.Option(help="File in place of the terminal.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Mean and standard deviation over seeds, laid out as in the paper."""
    with plain_errors(ValueError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        summaries = _summaries(selection, grid, store, test_subset)
        rows = result_rows(grid.value, [cell for cells in summaries for cell in cells])
        tables = [TABLES[grid.value](cells) for cells in summaries]
    if as_json:
        text = json.dumps(rows)
    elif format is TableFormat.csv:
        text = to_csv(rows).rstrip("\n")
    else:
        write = to_latex if format is TableFormat.latex else to_markdown
        text = "\n\n".join(map(write, tables))
    if out is None:
        typer.echo(text)
    else:
        with plain_errors(OSError), replacing(out) as part:
            part.write_text(f"{text}\n", encoding="utf-8")


@app.command()
def figure(
    grid: GridArgument,
    store: StoreOption = None,
    datasets: DatasetsOption = None,
    priors: PriorsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    methods: MethodsOption = None,
    model: ModelOption = None,
    annotator: AnnotatorOption = None,
    test_subset: SubsetOption = Subset.stratified,
    out: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("figures"),
    formats: Annotated[str, typer.Option(help="Endings, separated by commas.")] = "png,svg",
    as_json: JsonOption = False,
) -> None:
    """Draw the figures of an experiment."""
    if test_subset is Subset.both:
        raise typer.BadParameter("a figure shows one test subset: paper or stratified")
    with plain_errors(ValueError, OSError, ImportError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        (cells,) = _summaries(selection, grid, store, test_subset)
        files = save_figures(grid.value, cells, out, [kind.strip() for kind in formats.split(",")])
    names = [str(file) for file in files]
    typer.echo(json.dumps(names) if as_json else "\n".join(names))


@app.command()
def compare(
    grid: GridArgument,
    store: StoreOption = None,
    datasets: DatasetsOption = None,
    priors: PriorsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    methods: MethodsOption = None,
    model: ModelOption = None,
    annotator: AnnotatorOption = None,
    test_subset: SubsetOption = Subset.paper,
    as_json: JsonOption = False,
) -> None:
    """Compare with the published tables cell by cell; exit code 1 if they disagree."""
    if test_subset is Subset.both:
        raise typer.BadParameter("a comparison is on one test subset: paper or stratified")
    if grid.value not in PUBLISHED:
        raise typer.BadParameter(f"published are {' and '.join(PUBLISHED)}, not {grid.value}")
    published = PUBLISHED[grid.value]()
    with plain_errors(ValueError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        (cells,) = _summaries(selection, grid, store, test_subset)
        comparison = compare_with_published(cells, published)
        improved = improvements(cells, published)
        if not comparison.cells and not improved:
            raise ValueError("none of the runs has a counterpart in the published tables")
    if as_json:
        typer.echo(json.dumps(report_data(comparison, improved)))
    else:
        typer.echo(report_text(comparison, improved))
    if not passes(comparison, improved):
        raise typer.Exit(1)


app.command()(theory)
app.command()(report)


def _summaries(
    selection: Selection, grid: GridName, path: Path | None, test_subset: Subset
) -> list[list[Cell]]:
    """The cells on each test subset asked for; an error if there are none."""
    store = store_of(path, grid)
    records = selection.records(GRIDS[grid.value], store)
    if not records:
        raise ValueError(
            f"{store.path} has no such runs; `pairlearn bench run {grid.value}` makes them"
        )
    both = test_subset is Subset.both
    return [summarize(records, name) for name in TEST_SUBSETS if both or name == test_subset.value]
