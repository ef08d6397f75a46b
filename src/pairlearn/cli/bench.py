"""``pairlearn bench``: run the paper's experiments and see what came out."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn import __version__
from pairlearn.cli.command import INTERRUPTED, CommandError, Output, command, register
from pairlearn.cli.options import Seed, check_new_file, parse_names
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.paper import Cell, Record, Run, RunStore, Selection

Subset = Literal["paper", "stratified"]


GridName = Literal["accuracy", "gamma", "limited", "robustness", "siblings"]
PLACES = ("grid", "store")


@dataclass(frozen=True)
class Chosen:
    """Runs of one experiment, and where they are kept: options of most commands.

    Parameters
    ----------
    grid
        The experiment.
    store
        File of finished runs; to read, also a folder of such files, or their export to
        Parquet. [default: runs/GRID.jsonl]
    datasets
        Data sets, separated by commas. [default: those of the paper]
    priors
        Class priors, separated by commas. [default: those of the paper]
    seeds
        How many seeds (5 is 0 to 4), or a range 3-5, or a list 0,2. [default: 5]
    epochs
        Epochs of every training. [default: those of the paper]
    methods
        Methods such as likelihood-abs, separated by commas. [default: all]
    model
        One of mlp, mlp-bn, mlp-small, linear, resnet34, resnet32. [default: by the data set]
    annotator
        One of paper, calibrated. [default: paper]
    images
        CIFAR-10's: proper, or published, mixed up as in the public code. [default: proper]
    """

    grid: Annotated[GridName, typer.Argument()]
    store: Path | None = None
    datasets: str | None = None
    priors: str | None = None
    seeds: str | None = None
    epochs: int | None = None
    methods: str | None = None
    model: str | None = None
    annotator: str | None = None
    images: str | None = None

    def selection(self) -> Selection:
        """Which runs of the experiment."""
        from pairlearn.paper import Selection

        which = {name: value for name, value in vars(self).items() if name not in PLACES}
        return Selection.parse(**which)

    def runs(self) -> list[Run]:
        """The runs themselves; an error if there are none."""
        from pairlearn.paper import GRIDS

        runs = self.selection().of(GRIDS[self.grid]).runs()
        if not runs:
            raise ValueError("nothing is chosen, or no method that is defined at a prior chosen")
        return runs

    def open_store(self) -> RunStore:
        """Where finished runs are kept."""
        from pairlearn.paper import RunStore

        return RunStore(self._path())

    def records(self) -> list[Record]:
        """The finished runs of the experiment that are chosen, of one file or of several."""
        from pairlearn.paper import GRIDS, read_sources

        path = self._path()
        if path.is_dir() or path.suffix == ".parquet":
            found = [r for s in read_sources([path]) if s.grid == self.grid for r in s.records]
        else:
            found = list(self.open_store())
        return self.selection().records(GRIDS[self.grid], found)

    def _path(self) -> Path:
        return self.store or Path("runs", f"{self.grid}.jsonl")


@command("bench run", Chosen)
def run(
    chosen: Chosen,
    *,
    data: Annotated[Path | None, typer.Option(envvar="PAIRLEARN_DATA")] = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Literal["float32", "tf32", "bf16"] = "float32",
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    checkpoint_seconds: Annotated[float, typer.Option(min=0)] = 60.0,
) -> Output:
    """Train what is not in the store yet; stop it at any time and start it again.

    Parameters
    ----------
    data
        Folder of data sets.
    precision
        Precision of the matrix products.
    workers
        Processes on a CPU. [default: one a core]
    """
    wanted, kept = chosen.runs(), chosen.open_store()
    missing = kept.missing(wanted)
    start, finished = time.monotonic(), 0
    options = {"data": data, "device": device, "precision": precision, "workers": workers}
    if missing:
        try:
            finished = _train(missing, kept, checkpoint_seconds, among=wanted, **options)
        except KeyboardInterrupt:
            where = f"interrupted: finished runs are in {kept.path}; the same command goes on"
            raise CommandError(where, INTERRUPTED) from None
    report = {
        "grid": chosen.grid,
        "store": str(kept.path),
        "wanted": len(wanted),
        "found": len(wanted) - len(missing),
        "finished": finished,
        "seconds": round(time.monotonic() - start, 3),
    }
    text = "{finished} runs finished, {found} of {wanted} were there before: {store}"
    return Output(report, [text.format(**report)])


def _train(runs: list[Run], store: RunStore, checkpoint_seconds: float, **options: Any) -> int:
    """Run and keep the runs, and say how many were kept."""
    from pairlearn.paper.benchmark import Checkpoints
    from pairlearn.paper.execute import execute
    from pairlearn.training import choose_device

    finished = 0
    folder = store.path.absolute().with_suffix(".checkpoints")
    notes = {
        "device": choose_device(options["device"]).type,
        "precision": options["precision"],
        "version": __version__,
    }
    with store, bar("starting") as progress:
        checkpoints = Checkpoints(folder, checkpoint_seconds)
        results = execute(runs, progress=progress, checkpoints=checkpoints, **options)
        # Closed before the store is: what is under way is cancelled.
        with closing(results):
            for run, result in results:
                store.append(run, result, **notes)
                finished += 1
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return finished


@command("bench status", Chosen)
def status(chosen: Chosen) -> Output:
    """How much of an experiment is finished."""
    from pairlearn.paper.cells import dataset_title
    from pairlearn.paper.tables import aligned

    wanted, finished = chosen.runs(), {record.run for record in chosen.records()}
    counts: dict[str, dict[str, int]] = {}
    for one in wanted:
        count = counts.setdefault(one.dataset, {"finished": 0, "wanted": 0})
        count["finished"] += one in finished
        count["wanted"] += 1
    rows = [[dataset_title(name), *map(str, count.values())] for name, count in counts.items()]
    return Output(counts, [aligned(["data set", "finished", "wanted"], rows)])


@command("bench table", Chosen)
def table(
    chosen: Chosen,
    *,
    test_subset: Literal["paper", "stratified", "both"] = "stratified",
    format: Literal["markdown", "csv"] = "markdown",
    out: Path | None = None,
) -> Output:
    """Mean and standard deviation over seeds, laid out as in the paper.

    Parameters
    ----------
    format
        How to write it.
    out
        File in place of the terminal.
    """
    from pairlearn.paper import TABLES, result_rows, to_csv, to_markdown

    summaries = _summaries(chosen, test_subset)
    rows = result_rows(chosen.grid, [cell for cells in summaries for cell in cells])
    if format == "csv":
        text = to_csv(rows).rstrip("\n")
    else:
        text = "\n\n".join(to_markdown(TABLES[chosen.grid](cells)) for cells in summaries)
    return Output(rows, [text], file=out)


@command("bench figure", Chosen)
def figure(
    chosen: Chosen,
    *,
    test_subset: Subset = "stratified",
    out: Path = Path("figures"),
    formats: str = "png,svg",
) -> Output:
    """Draw the figures of an experiment.

    Parameters
    ----------
    out
        Folder of the figures.
    formats
        Endings, separated by commas.
    """
    from pairlearn.paper.figures import save_figures

    (cells,) = _summaries(chosen, test_subset)
    names = list(map(str, save_figures(chosen.grid, cells, out, parse_names(formats, "--formats"))))
    return Output(names, names)


@command("bench compare", Chosen, exits="0 they agree, 1 they do not")
def compare(chosen: Chosen, *, test_subset: Subset = "paper") -> Output:
    """Compare with the published tables cell by cell."""
    from pairlearn.paper.cells import PUBLISHED
    from pairlearn.paper.reproduction import compare_with_published

    if chosen.grid not in PUBLISHED:
        raise ValueError(f"published are {' and '.join(PUBLISHED)}, not {chosen.grid}")
    (cells,) = _summaries(chosen, test_subset)
    comparison = compare_with_published(cells, PUBLISHED[chosen.grid]())
    if not comparison.cells:
        raise ValueError(
            "none of the runs has a counterpart in the published tables; those of the likelihood "
            "are counted by `pairlearn bench headline`"
        )
    return Output(comparison.to_dict(), [str(comparison)], code=0 if comparison.passes else 1)


@command("bench theory")
def theory(*, out: Path = Path("theory"), seed: Seed = 0, quick: bool = False) -> Output:
    """Class prior, variances, and bounds beside measured errors.

    Parameters
    ----------
    out
        Folder of the tables and figures.
    quick
        Few repetitions, in seconds.
    """
    from pairlearn.paper import theory as tables
    from pairlearn.paper.tables import aligned

    start = time.monotonic()
    with bar("theory") as progress:
        plan = tables.QUICK if quick else tables.FULL
        made = tables.compute_theory(plan, seed=seed, progress=progress)
    files, summary = tables.save_theory(made, out), tables.summarize_theory(made)
    seconds = round(time.monotonic() - start, 3)
    rows = [[k, f"{v:,.0f}" if v >= 100 else f"{v:.3f}"] for k, v in summary.items()]
    return Output(
        {"files": list(map(str, files)), "seconds": seconds, "summary": summary},
        [aligned(["what", "value"], rows), f"\n{len(files)} files in {out}"],
    )


@dataclass(frozen=True)
class Sources:
    """Where runs are.

    Parameters
    ----------
    store
        File of finished runs, .jsonl or .parquet, or a folder; repeatable. [default: runs]
    results
        Folder of published results, with runs/*.parquet.
    """

    store: list[Path] | None = None
    results: Path | None = None

    def paths(self) -> list[Path]:
        """All of them."""
        return [*(self.store or []), *filter(None, [self.results])] or [Path("runs")]


@command("bench report", Sources)
def report(sources: Sources, out: Path, *, force: bool = False) -> Output:
    """Write one page with the paper's numbers and ours: tables, figures, what ran.

    The page needs no network and nothing beside itself. Without --store and --results it is
    made from the stores in the folder runs.

    Parameters
    ----------
    out
        The page to write: .html.

    For example:
      pairlearn bench report bench.html
      pairlearn bench report bench.html --store accuracy.jsonl --store gamma.jsonl
      pairlearn bench report bench.html --results results/
    """
    from pairlearn.paper import read_sources
    from pairlearn.paper.page import build_report
    from pairlearn.report.html import write_page

    check_new_file(out, "reports", (".html",), inputs=sources.paths(), force=force)
    found = read_sources(sources.paths())
    made = build_report(found)
    size = write_page(out, made.page, [source.path for source in found])
    text = f"{out}: {made.runs:,} runs, {made.figures} figures, {size / 1e6:.1f} MB"
    return Output({"path": out, "bytes": size, **made.to_dict()}, [text])


@command("bench headline", Sources)
def headline(sources: Sources) -> Output:
    """Count where the paper's numbers are reproduced and the likelihood is ahead, and where not.

    For example: pairlearn bench headline --results results/
    """
    from pairlearn.paper import GRIDS, headline_counts, read_sources

    found = read_sources(sources.paths())
    data, lines = {}, []
    for grid in GRIDS:
        records = [record for one in found if one.grid == grid for record in one.records]
        tallies = headline_counts(grid, records)
        data[grid] = {name: tally.to_dict() for name, tally in tallies.items()}
        lines += [f"{grid}, {name}: {tally}" for name, tally in tallies.items()]
    return Output(data, lines)


def _summaries(chosen: Chosen, test_subset: str) -> list[list[Cell]]:
    """The cells on each test subset asked for; an error if there are none."""
    from pairlearn.paper.cells import TEST_SUBSETS, summarize

    records = chosen.records()
    if not records:
        path = chosen.open_store().path
        raise ValueError(f"{path} has no such runs; `pairlearn bench run {chosen.grid}` makes them")
    return [summarize(records, name) for name in TEST_SUBSETS if test_subset in (name, "both")]


app = register(
    typer.Typer(name="bench", help="Run the paper's experiments.", no_args_is_help=True),
    *(run, status, table, figure, compare, theory, report, headline),
)
