"""``pairlearn bench``: run the paper's experiments and see what came out.

Exit codes: 0 all is well, 1 the comparison with the paper failed, 2 the request was wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pairlearn import __version__
from pairlearn.atomic import replacing
from pairlearn.cli.theory import theory
from pairlearn.datasets.errors import DatasetCorruptError, DatasetNotFoundError, DownloadFailedError
from pairlearn.experiments.better import improvements
from pairlearn.experiments.compare import compare_with_published
from pairlearn.experiments.figure_files import save_figures
from pairlearn.experiments.grids import GRIDS, Grid
from pairlearn.experiments.published import PUBLISHED
from pairlearn.experiments.records import StoreError
from pairlearn.experiments.render import aligned, to_csv, to_latex, to_markdown
from pairlearn.experiments.reports import passes, report_data, report_text
from pairlearn.experiments.results import result_rows
from pairlearn.experiments.selection import Selection
from pairlearn.experiments.spec import ANNOTATORS, MODELS, Run
from pairlearn.experiments.store import RunStore
from pairlearn.experiments.summary import TEST_SUBSETS, Cell, dataset_title, summarize
from pairlearn.experiments.tables import TABLES

if TYPE_CHECKING:
    from pairlearn.training import Precision

__all__ = ["app"]

app = typer.Typer(name="bench", help="Run the paper's experiments.", no_args_is_help=True)

Progress = Callable[[int, int, str], None]


class GridName(StrEnum):
    """The experiments."""

    accuracy = "accuracy"
    gamma = "gamma"
    limited = "limited"
    robustness = "robustness"


class Device(StrEnum):
    """Where to train."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class PrecisionName(StrEnum):
    """Of the matrix products."""

    float32 = "float32"
    tf32 = "tf32"
    bf16 = "bf16"


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


GridArgument = Annotated[GridName, typer.Argument(help="The experiment.")]
StoreOption = Annotated[
    Path | None, typer.Option(help="File of finished runs; runs/GRID.jsonl if not given.")
]
DatasetsOption = Annotated[str | None, typer.Option(help="Data sets, separated by commas.")]
PriorsOption = Annotated[str | None, typer.Option(help="Class priors, separated by commas.")]
SeedsOption = Annotated[
    str | None, typer.Option(help="How many seeds (5 is 0 to 4), or a range 3-5, or a list 0,2.")
]
EpochsOption = Annotated[int | None, typer.Option(help="Epochs of every training.")]
MethodsOption = Annotated[
    str | None, typer.Option(help="Methods such as likelihood-abs, separated by commas.")
]
ModelOption = Annotated[str | None, typer.Option(help=f"One of {', '.join(MODELS)}.")]
AnnotatorOption = Annotated[str | None, typer.Option(help=f"One of {', '.join(ANNOTATORS)}.")]
SubsetOption = Annotated[Subset, typer.Option(help="Test subset.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def run(
    grid: GridArgument,
    store: StoreOption = None,
    data: Annotated[
        Path | None, typer.Option(envvar="PAIRLEARN_DATA", help="Folder of data sets.")
    ] = None,
    datasets: DatasetsOption = None,
    priors: PriorsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    methods: MethodsOption = None,
    model: ModelOption = None,
    annotator: AnnotatorOption = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.auto,
    precision: Annotated[
        PrecisionName, typer.Option(help="Of the matrix products.")
    ] = PrecisionName.float32,
    as_json: JsonOption = False,
) -> None:
    """Train what is not in the store yet; stop it at any time and start it again."""
    with _plain_errors(ValueError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        wanted = _runs(selection.of(GRIDS[grid.value]))
        kept = _store(store, grid)
        missing = kept.missing(wanted)
    start = time.monotonic()
    with _plain_errors(*_TRAINING_ERRORS):
        finished = _train(missing, wanted, kept, data, device.value, precision.value)
    report = {
        "grid": grid.value,
        "store": str(kept.path),
        "wanted": len(wanted),
        "found": len(wanted) - len(missing),
        "finished": finished,
        "seconds": round(time.monotonic() - start, 3),
    }
    text = "{finished} runs finished, {found} of {wanted} were there before: {store}"
    typer.echo(json.dumps(report) if as_json else text.format(**report))


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
    with _plain_errors(ValueError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        wanted = _runs(selection.of(GRIDS[grid.value]))
        finished = _store(store, grid).finished()
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
    with _plain_errors(ValueError):
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
        with _plain_errors(OSError), replacing(out) as part:
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
    with _plain_errors(ValueError, OSError, ImportError):
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
    with _plain_errors(ValueError):
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


_TRAINING_ERRORS = (
    StoreError,
    DatasetNotFoundError,
    DatasetCorruptError,
    DownloadFailedError,
    NotADirectoryError,
    ImportError,
)


@contextmanager
def _plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds end the program with their message, not with a traceback."""
    try:
        yield
    except kinds as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def _runs(grid: Grid) -> list[Run]:
    runs = grid.runs()
    if not runs:
        raise ValueError("nothing is chosen, or no method that is defined at a prior chosen")
    return runs


def _store(path: Path | None, grid: GridName) -> RunStore:
    return RunStore(path or Path("runs", f"{grid.value}.jsonl"))


def _summaries(
    selection: Selection, grid: GridName, path: Path | None, test_subset: Subset
) -> list[list[Cell]]:
    """The cells on each test subset asked for; an error if there are none."""
    store = _store(path, grid)
    records = selection.records(GRIDS[grid.value], store)
    if not records:
        raise ValueError(
            f"{store.path} has no such runs; `pairlearn bench run {grid.value}` makes them"
        )
    both = test_subset is Subset.both
    return [summarize(records, name) for name in TEST_SUBSETS if both or name == test_subset.value]


def _train(
    runs: list[Run],
    among: list[Run],
    store: RunStore,
    data: Path | None,
    device: str,
    precision: str,
) -> int:
    """Run and keep the runs, and say how many were kept."""
    if not runs:
        return 0
    from pairlearn.experiments.execute import execute
    from pairlearn.training import choose_device

    finished = 0
    notes = {
        "device": choose_device(device).type,
        "precision": precision,
        "version": __version__,
    }
    with store, _progress_bar() as progress:
        results = execute(
            runs,
            among=among,
            data=data,
            device=device,
            precision=cast("Precision", precision),
            progress=progress,
        )
        for run, result in results:
            store.append(run, result, **notes)
            finished += 1
    return finished


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """One bar with the time that is left; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def update(done: int, total: int, text: str) -> None:
            bars.update(task, completed=done, total=total, description=text)

        yield update
