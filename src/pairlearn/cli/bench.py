"""``pairlearn bench``: run the paper's experiments and see what came out.

Exit codes: 0 all is well, 1 the comparison with the paper failed, 2 the request was wrong.
"""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlearn.cli.bench_run import Chosen, run
from pairlearn.cli.options import ForceOption, JsonOption, SeedOption, with_options
from pairlearn.cli.refusals import check_new_file, refusing
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.paper.cells import Cell

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


RunsOption = Annotated[
    list[Path] | None,
    typer.Option(help="File of finished runs, .jsonl or .parquet, or a folder; repeatable."),
]
ResultsOption = Annotated[
    Path | None, typer.Option(help="Folder of published results, with runs/*.parquet.")
]
SubsetOption = Annotated[Subset, typer.Option(help="Test subset.")]


app.command()(run)


@app.command()
@with_options(Chosen)
def status(chosen: Chosen, as_json: JsonOption = False) -> None:
    """How much of an experiment is finished."""
    from pairlearn.paper.cells import dataset_title
    from pairlearn.paper.tables import aligned

    with refusing("bench status"):
        wanted = chosen.runs()
        finished = chosen.open_store().finished()
    counts = {
        name: {
            "finished": sum(run.dataset == name and run.key() in finished for run in wanted),
            "wanted": sum(run.dataset == name for run in wanted),
        }
        for name in dict.fromkeys(run.dataset for run in wanted)
    }
    rows = [[dataset_title(name), *map(str, count.values())] for name, count in counts.items()]
    table = aligned(["data set", "finished", "wanted"], rows)
    typer.echo(json.dumps(counts) if as_json else table)


@app.command()
@with_options(Chosen)
def table(
    chosen: Chosen,
    test_subset: SubsetOption = Subset.stratified,
    format: Annotated[TableFormat, typer.Option(help="How to write it.")] = TableFormat.markdown,
    out: Annotated[Path | None, typer.Option(help="File in place of the terminal.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Mean and standard deviation over seeds, laid out as in the paper."""
    from pairlearn.atomic import replacing
    from pairlearn.paper.cells import result_rows
    from pairlearn.paper.store import to_csv
    from pairlearn.paper.tables import TABLES, to_latex, to_markdown

    with refusing("bench table"):
        summaries = _summaries(chosen, test_subset)
        rows = result_rows(chosen.grid.value, [cell for cells in summaries for cell in cells])
        if as_json:
            text = json.dumps(rows)
        elif format is TableFormat.csv:
            text = to_csv(rows).rstrip("\n")
        else:
            write = to_latex if format is TableFormat.latex else to_markdown
            text = "\n\n".join(write(TABLES[chosen.grid.value](cells)) for cells in summaries)
        if out is None:
            typer.echo(text)
        else:
            with replacing(out) as part:
                part.write_text(f"{text}\n", encoding="utf-8")


@app.command()
@with_options(Chosen)
def figure(
    chosen: Chosen,
    test_subset: SubsetOption = Subset.stratified,
    out: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("figures"),
    formats: Annotated[str, typer.Option(help="Endings, separated by commas.")] = "png,svg",
    as_json: JsonOption = False,
) -> None:
    """Draw the figures of an experiment."""
    from pairlearn.paper.figures import save_figures

    _one(test_subset, "a figure shows")
    with refusing("bench figure"):
        (cells,) = _summaries(chosen, test_subset)
        kinds = [kind.strip() for kind in formats.split(",")]
        names = list(map(str, save_figures(chosen.grid.value, cells, out, kinds)))
    typer.echo(json.dumps(names) if as_json else "\n".join(names))


@app.command()
@with_options(Chosen)
def compare(
    chosen: Chosen,
    test_subset: SubsetOption = Subset.paper,
    as_json: JsonOption = False,
) -> None:
    """Compare with the published tables cell by cell; exit code 1 if they disagree."""
    from pairlearn.paper import compare as comparing
    from pairlearn.paper.cells import PUBLISHED

    _one(test_subset, "a comparison is on")
    name = chosen.grid.value
    if name not in PUBLISHED:
        raise typer.BadParameter(f"published are {' and '.join(PUBLISHED)}, not {name}")
    published = PUBLISHED[name]()
    with refusing("bench compare"):
        (cells,) = _summaries(chosen, test_subset)
        comparison = comparing.compare_with_published(cells, published)
        improved = comparing.improvements(cells, published)
        if not comparison.cells and not improved:
            raise ValueError("none of the runs has a counterpart in the published tables")
    if as_json:
        typer.echo(json.dumps(comparing.report_data(comparison, improved)))
    else:
        typer.echo(comparing.report_text(comparison, improved))
    if not comparing.passes(comparison, improved):
        raise typer.Exit(1)


@app.command()
def theory(
    out: Annotated[Path, typer.Option(help="Folder of the tables and figures.")] = Path("theory"),
    seed: SeedOption = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions, in seconds.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Geometry of the labels, class prior, variances, and bounds beside measured errors."""
    from pairlearn.paper import theory as tables
    from pairlearn.paper.tables import aligned

    start = time.monotonic()
    with refusing("bench theory", ImportError, OSError):
        with bar("theory") as progress:
            plan = tables.QUICK if quick else tables.FULL
            made = tables.compute_theory(plan, seed=seed, progress=progress)
        files = tables.save_theory(made, out)
    summary = tables.summarize_theory(made)
    if as_json:
        seconds = round(time.monotonic() - start, 3)
        report = {"files": list(map(str, files)), "seconds": seconds, "summary": summary}
        typer.echo(json.dumps(report))
    else:
        rows = [[k, f"{v:,.0f}" if v >= 100 else f"{v:.3f}"] for k, v in summary.items()]
        typer.echo(aligned(["what", "value"], rows))
        typer.echo(f"\n{len(files)} files in {out}")


@app.command()
def report(
    out: Annotated[Path, typer.Argument(help="The page to write: .html.")],
    store: RunsOption = None,
    results: ResultsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one page with the paper's numbers and ours: tables, figures, what ran.

    The page needs no network and nothing beside itself. Without --store and --results it is
    made from the stores in the folder runs.

    \b
    Examples:
      pairlearn bench report bench.html
      pairlearn bench report bench.html --store runs/accuracy.jsonl --store runs/gamma.jsonl
      pairlearn bench report bench.html --results results/

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("bench report"):
        from pairlearn.paper.page import build_report, read_sources
        from pairlearn.report.html import write_page

        paths = _paths(store, results)
        check_new_file(out, "reports", (".html",), inputs=paths, force=force)
        made = build_report(read_sources(paths))
        size = write_page(out, made.page)
    told: dict[str, Any] = {"path": str(out), "bytes": size, **made.to_dict()}
    text = f"{out}: {made.runs:,} runs, {made.figures} figures, {size / 1e6:.1f} MB"
    typer.echo(json.dumps(told) if as_json else text)


@app.command()
def headline(
    store: RunsOption = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count where the paper's numbers are reproduced and the likelihood is ahead, and where not.

    \b
    Example: pairlearn bench headline --results results/

    Exit codes: 0 counted, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("bench headline"):
        from pairlearn.paper.grids import GRIDS
        from pairlearn.paper.headline import headline_counts
        from pairlearn.paper.store import read_sources

        sources = read_sources(_paths(store, results))
        counts = {
            grid: headline_counts(grid, [r for s in sources if s.grid == grid for r in s.records])
            for grid in GRIDS
        }
    if as_json:
        plain = {
            grid: {name: tally.to_dict() for name, tally in tallies.items()}
            for grid, tallies in counts.items()
        }
        typer.echo(json.dumps(plain))
        return
    for grid, tallies in counts.items():
        for name, tally in tallies.items():
            typer.echo(f"{grid}, {name}: {tally}")


def _paths(store: list[Path] | None, results: Path | None) -> list[Path]:
    return [*(store or []), *([results] if results is not None else [])] or [Path("runs")]


def _summaries(chosen: Chosen, test_subset: Subset) -> list[list[Cell]]:
    """The cells on each test subset asked for; an error if there are none."""
    from pairlearn.paper.cells import TEST_SUBSETS, summarize
    from pairlearn.paper.grids import GRIDS

    store = chosen.open_store()
    records = chosen.selection().records(GRIDS[chosen.grid.value], store)
    if not records:
        raise ValueError(
            f"{store.path} has no such runs; `pairlearn bench run {chosen.grid.value}` makes them"
        )
    wanted = TEST_SUBSETS if test_subset is Subset.both else (test_subset.value,)
    return [summarize(records, name) for name in TEST_SUBSETS if name in wanted]


def _one(test_subset: Subset, what: str) -> None:
    if test_subset is Subset.both:
        raise typer.BadParameter(f"{what} one test subset: paper or stratified")
