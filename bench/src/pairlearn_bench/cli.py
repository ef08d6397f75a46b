"""``pairlearn bench``: run the paper's experiments and show the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn import __version__
from pairlearn.atomic import replacing
from pairlearn.cli.command import (
    INTERRUPTED,
    Command,
    CommandError,
    Output,
    counted,
    json_text,
    new_app,
)
from pairlearn.cli.options import (
    FIGURES,
    CheckpointSeconds,
    Force,
    Json,
    Seed,
    argument,
    check_new_file,
    option,
    parse_names,
)
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn_bench import Cell, Record, Run, RunStore, Selection, Source

app = new_app(
    name="bench", help="Run the paper's experiments and show the results.", no_args_is_help=True
)
_SUBSET = "How the test set is reduced to the class prior."
Subset = Annotated[Literal["paper", "stratified"], option(_SUBSET)]
GridName = Literal["accuracy", "gamma", "limited", "robustness", "siblings", "classes"]
Experiment = Annotated[GridName, argument("The experiment.")]
Store = Annotated[
    Path | None,
    option(
        "File of finished runs, .jsonl; to read, also a folder of such files, or their export to "
        "Parquet.",
        default="runs/GRID.jsonl",
    ),
]
_PAPER = "to run: those of the paper"
Datasets = Annotated[str | None, option("Data sets, separated by commas.", default=_PAPER)]
Priors = Annotated[str | None, option("Class priors, separated by commas.", default=_PAPER)]
Seeds = Annotated[
    str | None,
    option("How many seeds (5 is 0 to 4), or a range 3-5, or a list 0,2.", default="to run: 5"),
]
RunEpochs = Annotated[
    int | None, option("Epochs of every training.", default=f"{_PAPER}; to read: any")
]
Methods = Annotated[
    str | None,
    option("Methods such as likelihood-abs, separated by commas.", default="to run: all"),
]
Fractions = Annotated[
    str | None,
    option(
        "Shares of the pairs, separated by commas.", default="to run: 0.1 to 1 if limited, else 1"
    ),
]
_BY_SET = "to run: by the data set"
Pairs = Annotated[int | None, option("Pairs of every training.", default=_BY_SET, min=1)]
Network = Annotated[
    str | None,
    option("One of mlp, mlp-bn, mlp-small, linear, resnet34, resnet32.", default=_BY_SET),
]
AnnotatorName = Annotated[
    str | None, option("One of paper, calibrated, drawn.", default="to run: paper")
]
Images = Annotated[
    str | None,
    option(
        "CIFAR-10's: proper, or published, scrambled as in the public code.",
        default="to run: proper",
    ),
]
Stores = Annotated[
    list[Path] | None,
    option("File of finished runs, .jsonl or .parquet, or a folder; repeatable.", default="runs"),
]
Results = Annotated[Path | None, option("Folder of published results, with runs/*.parquet.")]
#: How often `run` says in a log, where it has no bar, how far it is.
LOG_SECONDS = 60


@dataclass(frozen=True)
class RunOptions:
    """A selection of the runs of one experiment, and their store.

    The defaults are those of what is run; of what is read all is shown.
    """

    grid: Experiment
    _: KW_ONLY
    store: Store = None
    datasets: Datasets = None
    priors: Priors = None
    seeds: Seeds = None
    epochs: RunEpochs = None
    methods: Methods = None
    fractions: Fractions = None
    pairs: Pairs = None
    model: Network = None
    annotator: AnnotatorName = None
    images: Images = None

    def selection(self) -> Selection:
        """The selection from the experiment."""
        from pairlearn_bench import Selection

        return Selection.parse(
            **{k: v for k, v in vars(self).items() if k not in ("grid", "store")}
        )

    def runs(self) -> list[Run]:
        """The selected runs; an error if there are none."""
        from pairlearn_bench import GRIDS

        runs = self.selection().of(GRIDS[self.grid]).runs()
        if not runs:
            raise ValueError(
                "no runs are selected, or no selected method is defined at a selected prior"
            )
        return runs

    @property
    def path(self) -> Path:
        """The file, or to read also the folder, of finished runs."""
        return self.store or Path("runs", f"{self.grid}.jsonl")

    def open_store(self) -> RunStore:
        """The store to add finished runs to."""
        from pairlearn_bench import RunStore

        if self.path.is_dir():
            example = self.path / f"{self.grid}.jsonl"
            raise ValueError(f"--store {self.path} is a folder; give a file, such as {example}")
        if self.path.suffix != ".jsonl":
            raise ValueError(f"--store {self.path.name} must end in .jsonl")
        return RunStore(self.path)

    def stored(self) -> list[Record]:
        """All finished runs, of one file or of the files of this experiment."""
        from pairlearn_bench import read_sources

        if self.path.is_dir() or self.path.suffix != ".jsonl":
            sources = read_sources([self.path])
            return [r for source in sources if source.grid == self.grid for r in source.records]
        return list(self.open_store())

    def records(self) -> list[Record]:
        """The selected runs that are finished; an error if there are none."""
        from pairlearn_bench import GRIDS

        stored = self.stored()
        records = self.selection().records(GRIDS[self.grid], stored)
        if not records:
            others = self.others(record.run for record in stored)
            command = f"`pairlearn bench run {self.grid}`"
            has = f"has no such runs, but {others}" if others else "has no such runs"
            raise ValueError(f"{self.path} {has}; {command} with the same options makes them")
        return records

    def others(self, stored: Iterable[Run]) -> str:
        """How many of these runs are not selected to be run, and what sets them apart."""
        runs = self.runs()
        if not (others := set(stored).difference(runs)):
            return ""
        apart = _differences(others, runs)
        return f"{counted(len(others), 'other run')}{f': {apart}' if apart else ''}"


def selects_runs(command: Callable[..., Output | None]) -> Callable[..., Output | None]:
    """Give a command the fields of its first parameter, a dataclass, as parameters of its own."""
    first, *own = signature(command, eval_str=True).parameters.values()
    shared = signature(first.annotation, eval_str=True).parameters.values()
    parameters = sorted([*shared, *own], key=lambda parameter: parameter.kind)

    @wraps(command)
    def with_options(**given: Any) -> Output | None:
        return command(first.annotation(**{p.name: given.pop(p.name) for p in shared}), **given)

    with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


@app.command(cls=Command)
@selects_runs
def run(
    options: RunOptions,
    *,
    data: Annotated[Path | None, option("Folder of data sets.", envvar="PAIRLEARN_DATA")] = None,
    device: Annotated[Literal["auto", "cpu", "cuda"], option("Where to train.")] = "auto",
    precision: Annotated[
        Literal["float32", "tf32", "bf16"], option("Precision of the matrix products.")
    ] = "float32",
    workers: Annotated[
        int | None, option("Processes on a CPU.", default="one per core", min=1)
    ] = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    as_json: Json = False,
) -> Output:
    """Train the runs that are not in the store; can be stopped and resumed at any time.

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    runs, kept = options.runs(), options.open_store()
    missing = kept.missing(runs)
    start, finished = time.monotonic(), 0
    training = {"data": data, "device": device, "precision": precision, "workers": workers}
    if missing:
        try:
            finished = _train(missing, kept, checkpoint_seconds, among=runs, **training)
        except KeyboardInterrupt:
            message = f"interrupted: finished runs are in {kept.path}; the same command continues"
            raise CommandError(message, INTERRUPTED) from None
    report = {
        "grid": options.grid,
        "store": str(kept.path),
        "wanted": len(runs),
        "found": len(runs) - len(missing),
        "finished": finished,
        "seconds": round(time.monotonic() - start, 3),
    }
    text = "{finished} runs finished, {found} of {wanted} were there before: {store}"
    return Output(report, [text.format(**report)])


def _train(runs: list[Run], store: RunStore, checkpoint_seconds: float, **options: Any) -> int:
    """Train the runs, store the results, and return their number."""
    from pairlearn.training import choose_device
    from pairlearn_bench.benchmark import Checkpoints
    from pairlearn_bench.execute import execute

    finished, start = 0, time.monotonic()
    logged = start
    folder = store.path.absolute().with_suffix(".checkpoints")
    device = choose_device(options["device"]).type
    notes = {"device": device, "precision": options["precision"], "version": __version__}
    with store, bar("starting") as progress:
        checkpoints = Checkpoints(folder, checkpoint_seconds)
        results = execute(runs, progress=progress, checkpoints=checkpoints, **options)
        # Closed before the store, which cancels the training.
        with closing(results):
            for run, result in results:
                store.append(run, result, **notes)
                finished += 1
                if progress is None and time.monotonic() - logged > LOG_SECONDS:
                    logged = time.monotonic()
                    left = (logged - start) / finished * (len(runs) - finished) / 60
                    text = f"{finished} of {len(runs)} runs finished, about {left:.0f} minutes left"
                    typer.echo(text, err=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return finished


@app.command(cls=Command)
@selects_runs
def status(options: RunOptions, *, as_json: Json = False) -> Output:
    """Show how many runs of an experiment are finished, and what other ones the store has.

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_bench.cells import dataset_title
    from pairlearn_bench.tables import aligned

    covers = options.selection().covers
    finished = {record.run for record in options.stored() if covers(record.run)}
    counts: dict[str, dict[str, int]] = {}
    for run in options.runs():
        count = counts.setdefault(run.dataset, {"finished": 0, "wanted": 0})
        count["finished"] += run in finished
        count["wanted"] += 1
    rows = [[dataset_title(name), *map(str, count.values())] for name, count in counts.items()]
    text = [aligned(["data set", "finished", "wanted"], rows)]
    if others := options.others(finished):
        text.append(f"the store also has {others}")
    return Output(counts, text)


def _differences(others: Collection[Run], runs: Collection[Run]) -> str:
    """Values that other runs have, and none of these on the same data set."""
    wanted = {(run.dataset, *item) for run in runs for item in run.fields().items()}
    values: dict[str, set[Any]] = {}
    for run in others:
        new = {k: v for k, v in run.fields().items() if (run.dataset, k, v) not in wanted}
        for name in ["dataset"] if "dataset" in new else new:
            values.setdefault(name, set()).add(new[name])
    return "; ".join(
        f"{name} {', '.join(map(str, sorted(values[name])))}" for name in sorted(values)
    )


@app.command(cls=Command)
@selects_runs
def table(
    options: RunOptions,
    *,
    test_subset: Annotated[Literal["paper", "stratified", "both"], option(_SUBSET)] = "stratified",
    format: Annotated[
        Literal["markdown", "latex", "csv"], option("Format of the table.")
    ] = "markdown",
    out: Annotated[Path | None, option("File to write to instead of the terminal.")] = None,
    as_json: Json = False,
) -> Output | None:
    """Show means and standard deviations over seeds in the layout of the paper.

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_bench import TABLES, result_rows, to_csv
    from pairlearn_bench.cells import departures
    from pairlearn_bench.tables import to_latex, to_markdown

    summaries = _summaries(options, test_subset)
    rows = result_rows(options.grid, [cell for cells in summaries for cell in cells])
    if format == "csv":
        text = to_csv(rows).rstrip("\n")
    else:
        written = to_latex if format == "latex" else to_markdown
        tables = [written(TABLES[options.grid](cells)) for cells in summaries]
        text = "\n\n".join([*tables, *departures(options.grid, (c.config for c in summaries[0]))])
    if out is None:
        return Output(rows, [text])
    with replacing(out) as part:
        part.write_text(f"{json_text(rows) if as_json else text}\n", encoding="utf-8")
    return None


@app.command(cls=Command)
@selects_runs
def figure(
    options: RunOptions,
    *,
    test_subset: Subset = "stratified",
    out: Annotated[Path, option("Folder of the figures.")] = Path("figures"),
    formats: Annotated[str, option("Any of png, svg and pdf, separated by commas.")] = "png,svg",
    as_json: Json = False,
) -> Output:
    """Draw the figures of an experiment.

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_bench.figures import DRAWN, save_figures

    if options.grid not in DRAWN:
        advice = f"`pairlearn bench table {options.grid}` shows it"
        raise ValueError(f"{options.grid} has no figures, only a table; {advice}")
    endings = parse_names(formats, "--formats")
    for ending in endings:
        if f".{ending}" not in FIGURES:
            known = ", ".join(name.removeprefix(".") for name in FIGURES)
            raise ValueError(f"--formats {ending} must be among {known}")
    (cells,) = _summaries(options, test_subset)
    names = list(map(str, save_figures(options.grid, cells, out, endings)))
    return Output(names, names)


@app.command(cls=Command)
@selects_runs
def compare(options: RunOptions, *, test_subset: Subset = "paper", as_json: Json = False) -> Output:
    """Compare the results with the published tables cell by cell.

    A cell is within its tolerance if the means differ by at most the sum of both standard
    deviations over seeds. Cells with ABS and supervised ones, the others, and those with a
    published deviation above 0.05 are counted apart. Runs with other epochs than the paper's are
    also compared, and the last lines say so.

    Exit codes: 0 all cells with ABS and supervised are within, 1 some are not, 2 wrong request or
    unusable file.
    """
    from pairlearn_bench.cells import PUBLISHED
    from pairlearn_bench.reproduction import compare_with_published

    if options.grid not in PUBLISHED:
        raise ValueError(f"published are {' and '.join(PUBLISHED)}, not {options.grid}")
    (cells,) = _summaries(options, test_subset)
    comparison = compare_with_published(cells, PUBLISHED[options.grid]())
    if not comparison.cells:
        raise ValueError(
            "none of the runs has a counterpart in the published tables; those of the likelihood "
            "are counted by `pairlearn bench headline`"
        )
    return Output(comparison.to_dict(), [str(comparison)], code=0 if comparison.ok else 1)


@app.command(cls=Command)
def theory(
    *,
    out: Annotated[Path, option("Folder of the tables and figures.")] = Path("theory"),
    seed: Seed = 0,
    quick: Annotated[bool, option("Few repetitions, in seconds.", "--quick")] = False,
    as_json: Json = False,
) -> Output:
    """Compute errors of the class prior, variances, and bounds with measured errors.

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_bench import theory
    from pairlearn_bench.tables import aligned

    start = time.monotonic()
    with bar("theory") as progress:
        settings = theory.QUICK if quick else theory.FULL
        computed = theory.compute_theory(settings, seed=seed, progress=progress)
    files, summary = theory.save_theory(computed, out), theory.summarize_theory(computed)
    seconds = round(time.monotonic() - start, 3)
    rows = [[k, f"{v:,.0f}" if v >= 100 else f"{v:.3f}"] for k, v in summary.items()]
    return Output(
        {"files": list(map(str, files)), "seconds": seconds, "summary": summary},
        [aligned(["quantity", "value"], rows), f"\n{len(files)} files in {out}"],
    )


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Files and folders with finished runs."""

    store: Stores = None
    results: Results = None
    epochs: RunEpochs = None
    model: Network = None
    annotator: AnnotatorName = None

    def paths(self) -> list[Path]:
        """All files and folders."""
        return [*(self.store or []), *filter(None, [self.results])] or [Path("runs")]

    def read(self) -> list[Source]:
        """The chosen runs."""
        from pairlearn_bench import Selection, read_sources

        chosen = Selection(epochs=self.epochs, model=self.model, annotator=self.annotator)
        return read_sources(self.paths(), chosen)


@app.command(cls=Command)
@selects_runs
def report(
    sources: Sources,
    out: Annotated[Path, argument("The page to write: .html.")],
    *,
    force: Force = False,
    as_json: Json = False,
) -> Output:
    """Write one page with the paper's numbers and ours: tables, figures, and the runs.

    The page needs no network and no other files. Without --store and --results it is made from
    the stores in the folder runs.


    For example:
      pairlearn bench report bench.html
      pairlearn bench report bench.html --store accuracy.jsonl --store gamma.jsonl
      pairlearn bench report bench.html --results results/

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.report.html import write_page
    from pairlearn_bench.page import build_report

    check_new_file(out, "reports", (".html",), inputs=sources.paths(), force=force)
    inputs = sources.read()
    page = build_report(inputs)
    size = write_page(out, page.page, [source.path for source in inputs])
    text = f"{out}: {page.runs:,} runs, {page.figures} figures, {size / 1e6:.1f} MB"
    return Output({"path": out, "bytes": size, "runs": page.runs, "figures": page.figures}, [text])


@app.command(cls=Command)
@selects_runs
def headline(sources: Sources, *, as_json: Json = False) -> Output:
    """Count the cells that reproduce the paper, and those where the likelihood is ahead.

    Ahead and behind are t-tests, paired over seeds, with Holm's correction for the cells of a
    claim, at 5%; effect sizes are mean differences in standard deviations, the median cell.

    For example:
      pairlearn bench headline --results results/

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_bench import GRIDS, headline_counts
    from pairlearn_bench.cells import departures

    inputs = sources.read()
    data, lines = {}, []
    for grid in GRIDS:
        records = [record for source in inputs if source.grid == grid for record in source.records]
        tallies = headline_counts(grid, records)
        data[grid] = {name: tally.to_dict() for name, tally in tallies.items()}
        lines += [f"{grid}, {name}: {tally}" for name, tally in tallies.items()]
        lines += [f"{grid}: {line}" for line in departures(grid, (r.run for r in records))]
    return Output(data, lines)


@app.command(cls=Command)
def score(
    predictions: Annotated[
        list[Path], argument("Files of predictions, .parquet or .csv; their names are the methods.")
    ],
    *,
    tasks: Annotated[Path, option("The fixed tasks.")] = Path("bench/results/tasks.parquet"),
    out: Annotated[Path | None, option("File to write the leaderboard to.")] = None,
    as_json: Json = False,
) -> Output:
    """Score predictions of other methods on the fixed tasks, and rank them.

    A file has the columns dataset, prior, seed, left (the item) and positive (a probability), one
    row for each test item of the tasks.

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn_bench import leaderboard

    truth = leaderboard.read_tasks(tasks)
    entries = {path.stem: leaderboard.score(path, truth) for path in predictions}
    if len(entries) < len(predictions):
        raise ValueError("two files of predictions have the same name, which is that of the method")
    text = leaderboard.leaderboard(entries)
    if out is not None:
        with replacing(out) as part:
            part.write_text(f"{text}\n", encoding="utf-8")
    means = {name: sum(scores.values()) / len(scores) for name, scores in entries.items()}
    return Output(means, [text])


def _summaries(options: RunOptions, test_subset: str) -> list[list[Cell]]:
    """The cells on each selected test subset."""
    from pairlearn_bench.cells import TEST_SUBSETS, summarize

    records = options.records()
    return [summarize(records, name) for name in TEST_SUBSETS if test_subset in (name, "both")]
