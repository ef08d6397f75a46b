"""``pairlearn bench``: run the paper's experiments and see what came out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from pairlearn.cli.bench_run import Chosen, run
from pairlearn.cli.command import Told, command, register
from pairlearn.cli.options import Seed, check_new_file
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.paper.cells import Cell

Subset = Literal["paper", "stratified"]


@command("bench status", Chosen)
def status(chosen: Chosen) -> Told:
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
    return Told(counts, [aligned(["data set", "finished", "wanted"], rows)])


@command("bench table", Chosen)
def table(
    chosen: Chosen,
    *,
    test_subset: Literal["paper", "stratified", "both"] = "stratified",
    format: Literal["markdown", "latex", "csv"] = "markdown",
    out: Path | None = None,
) -> Told:
    """Mean and standard deviation over seeds, laid out as in the paper.

    Parameters
    ----------
    test_subset
        How the test set is reduced to the class prior.
    format
        How to write it.
    out
        File in place of the terminal.
    """
    from pairlearn.paper.cells import result_rows
    from pairlearn.paper.store import to_csv
    from pairlearn.paper.tables import TABLES, to_latex, to_markdown

    summaries = _summaries(chosen, test_subset)
    rows = result_rows(chosen.grid, [cell for cells in summaries for cell in cells])
    if format == "csv":
        text = to_csv(rows).rstrip("\n")
    else:
        write = to_latex if format == "latex" else to_markdown
        text = "\n\n".join(write(TABLES[chosen.grid](cells)) for cells in summaries)
    return Told(rows, [text], file=out)


@command("bench figure", Chosen)
def figure(
    chosen: Chosen,
    *,
    test_subset: Subset = "stratified",
    out: Path = Path("figures"),
    formats: str = "png,svg",
) -> Told:
    """Draw the figures of an experiment.

    Parameters
    ----------
    test_subset
        How the test set is reduced to the class prior.
    out
        Folder of the figures.
    formats
        Endings, separated by commas.
    """
    from pairlearn.paper.figures import save_figures

    (cells,) = _summaries(chosen, test_subset)
    kinds = [kind.strip() for kind in formats.split(",")]
    names = list(map(str, save_figures(chosen.grid, cells, out, kinds)))
    return Told(names, names)


@command("bench compare", Chosen)
def compare(chosen: Chosen, *, test_subset: Subset = "paper") -> Told:
    """Compare with the published tables cell by cell; exit code 1 if they disagree.

    Parameters
    ----------
    test_subset
        How the test set is reduced to the class prior.
    """
    from pairlearn.paper.cells import PUBLISHED
    from pairlearn.paper.headline import passes, report_data, report_text
    from pairlearn.paper.reproduction import compare_with_published, improvements

    if chosen.grid not in PUBLISHED:
        raise ValueError(f"published are {' and '.join(PUBLISHED)}, not {chosen.grid}")
    published = PUBLISHED[chosen.grid]()
    (cells,) = _summaries(chosen, test_subset)
    comparison = compare_with_published(cells, published)
    improved = improvements(cells, published)
    if not comparison.cells and not improved:
        raise ValueError("none of the runs has a counterpart in the published tables")
    return Told(
        report_data(comparison, improved),
        [report_text(comparison, improved)],
        code=0 if passes(comparison, improved) else 1,
    )


@command("bench theory")
def theory(*, out: Path = Path("theory"), seed: Seed = 0, quick: bool = False) -> Told:
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
    return Told(
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
def report(sources: Sources, out: Path, *, force: bool = False) -> Told:
    """Write one page with the paper's numbers and ours: tables, figures, what ran.

    The page needs no network and nothing beside itself. Without --store and --results it is
    made from the stores in the folder runs.

    Parameters
    ----------
    out
        The page to write: .html.

    \b
    Examples:
      pairlearn bench report bench.html
      pairlearn bench report bench.html --store accuracy.jsonl --store gamma.jsonl
      pairlearn bench report bench.html --results results/

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    from pairlearn.paper import read_sources
    from pairlearn.paper.page import build_report
    from pairlearn.report.html import write_page

    check_new_file(out, "reports", (".html",), inputs=sources.paths(), force=force)
    found = read_sources(sources.paths())
    made = build_report(found)
    size = write_page(out, made.page, [source.path for source in found])
    text = f"{out}: {made.runs:,} runs, {made.figures} figures, {size / 1e6:.1f} MB"
    return Told({"path": out, "bytes": size, **made.to_dict()}, [text])


@command("bench headline", Sources)
def headline(sources: Sources) -> Told:
    """Count where the paper's numbers are reproduced and the likelihood is ahead, and where not.

    \b
    Example: pairlearn bench headline --results results/

    Exit codes: 0 counted, 2 wrong request or unusable file.
    """  # noqa: D301
    from pairlearn.paper.grids import GRIDS
    from pairlearn.paper.headline import headline_counts
    from pairlearn.paper.store import read_sources

    found = read_sources(sources.paths())
    data, lines = {}, []
    for grid in GRIDS:
        records = [record for one in found if one.grid == grid for record in one.records]
        tallies = headline_counts(grid, records)
        data[grid] = {name: tally.to_dict() for name, tally in tallies.items()}
        lines += [f"{grid}, {name}: {tally}" for name, tally in tallies.items()]
    return Told(data, lines)


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
