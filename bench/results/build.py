"""Make the tables and figures under results/ from the runs in bench/results/runs.

    python bench/results/build.py [STORES]

STORES is a folder with stores such as accuracy.jsonl, as `pairlearn bench run GRID --store
STORES/GRID.jsonl` writes them, and of CIFAR-10 cifar10.jsonl, the accuracy grid on proper images,
and on published ones published.jsonl, the accuracy grid, published-noise.jsonl, robustness,
published-gamma.jsonl and published-limited.jsonl: they take the place of what is in results first.
So do the stores of `fair.py`, fair.jsonl, fair-limited.jsonl, fair-noise.jsonl, calibrated.jsonl.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import classes
import fair
import starts

from pairlearn.cli.root import app
from pairlearn_bench import GRIDS, TABLES, Record, RunStore, Tally, headline_counts
from pairlearn_bench.cells import PUBLISHED, Cell, format_cell, summarize, table_order
from pairlearn_bench.headline import Line, summarize_grid
from pairlearn_bench.reproduction import GROUPS
from pairlearn_bench.runs import CORRECTIONS, Method, Run
from pairlearn_bench.store import read_records, read_sources
from pairlearn_bench.tables import aligned

RESULTS = Path(__file__).parent
PAPER = RESULTS / "paper"
PUBLISHED_RUNS = RESULTS / "cifar10" / "published.parquet"
MARK = "<!-- made by build.py -->"
SHOWN = ("sconfconfdiff-abs", "likelihood-abs", "likelihood-guided", "supervised")
EXPLANATION = """\
The two tables are the same trained models on two test sets of the same class prior. *Paper* is
the test set of the published experiments: one class is kept whole and the other
truncated, on the image sets in the order of the original classes, so that at π₊ = 0.2 the
positives of MNIST are the zeros and some twos. *Stratified* draws the part that is kept at
random, spread evenly over the original classes. At π₊ = 0.5 next to nothing is cut away and
the two agree; on the UCI sets, whose instances were shuffled before the cut, they differ by
chance only. Compare with published numbers on *paper*; believe *stratified*."""
BOLD = "Bold: the best of {of}; supervised training does not compete."


def main() -> None:
    """Make all files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stores", type=Path, nargs="?")
    stores = parser.parse_args().stores
    found = sorted(stores.glob("*.jsonl"), key=lambda path: path.stem) if stores else []
    if stores and not found:
        parser.error(f"{stores} is not a folder with stores")
    for store in found:
        if store.stem in fair.PARTS:
            continue  # below
        folder = "cifar10" if store.stem.startswith("published") else "runs"
        if store.stem == "published-limited":
            add_all_pairs(RunStore(store))
        RunStore(store).to_parquet(RESULTS / folder / f"{store.stem}.parquet")
    for grid in ("accuracy", "gamma", "limited", "robustness", "siblings", "classes"):
        out = str(PAPER / f"{grid}.csv")
        bench("table", grid, "--format=csv", "--test-subset=both", f"--out={out}")
        (PAPER / f"{grid}.md").write_text(markdown(grid), encoding="utf-8")
        if grid in PUBLISHED:
            (PAPER / f"compare-{grid}.txt").write_text(bench("compare", grid), encoding="utf-8")
        if grid in ("siblings", "classes"):
            continue  # they have only a table
        for subset in ("paper", "stratified") if grid == "accuracy" else ("stratified",):
            folder = PAPER / "figures" / subset
            bench("figure", grid, f"--test-subset={subset}", f"--out={folder}", "--formats=png")
    cifar10()
    classes.main()
    counts = pairlearn("bench", "headline", f"--results={RESULTS}")
    (RESULTS / "headline.txt").write_text(counts, encoding="utf-8")
    entries = sorted(map(str, (RESULTS.parent / "predictions").glob("*.parquet")))
    options = f"--tasks={RESULTS / 'tasks.parquet'}", f"--out={RESULTS / 'leaderboard.md'}"
    pairlearn("bench", "score", *entries, *options)
    with redirect_stdout(io.StringIO()):
        fair.write_tables(stores)
    pages = {
        "README.md": [leaderboard(), starts.table()],
        "cifar10/README.md": [other_priors(), published_images(), noise(), gamma(), limited()],
    }
    for page, made in pages.items():
        parts = (RESULTS / page).read_text(encoding="utf-8").split(MARK)
        parts[1::2] = [f"\n\n{part}\n\n" for part in made]
        (RESULTS / page).write_text(MARK.join(parts), encoding="utf-8")


def add_all_pairs(limited: RunStore) -> None:
    """Add the trainings with all pairs of the same methods and seeds, from the accuracy grid."""

    def kind(run: Run) -> tuple[str, str, float, int]:
        return run.method, run.model, run.prior, run.seed

    wanted = {kind(record.run) for record in limited}
    whole = [r for r in read_records(PUBLISHED_RUNS) if kind(r.run) in wanted]
    for record in whole:
        if record.run in limited.missing([record.run]):
            limited.append(record.run, record.results, **record.notes)


def leaderboard() -> str:
    """The main methods at prior 0.2, published and ours on both test subsets; what is absent."""
    sources = read_sources([RESULTS])
    accuracy, robustness = (
        summarize_grid(grid, [r for s in sources if s.grid == grid for r in s.records])
        for grid in ("accuracy", "robustness")
    )
    header = ["data set", "method", "published", "ours, published subset", "ours, stratified"]
    rows = [
        [
            line.cell.dataset_title,
            line.cell.method.title,
            *map(format_cell, (line.published, line.cells["paper"], line.cells["stratified"])),
        ]
        for line in accuracy.lines
        if line.cell.config.prior == 0.2 and line.cell.config.method in SHOWN
    ]
    absent = (
        "**Not run**: PMU-UD, whose data were not available: "
        f"{accuracy.comparison.absent} of the 360 published accuracy cells and "
        f"{robustness.comparison.absent} of the\n600 robustness cells."
    )
    return f"{aligned(header, rows)}\n\n{absent}"


def published_images() -> str:
    """CIFAR-10 as published: every cell with each network, and how many are within tolerance."""
    records = read_records(PUBLISHED_RUNS)
    networks = sorted({record.run.model for record in records})
    lines = summarize_grid("accuracy", records).lines
    places: dict[tuple[float, str], dict[str, Line]] = {}
    for line in sorted(lines, key=lambda line: table_order(line.cell.config)[2:]):
        run = line.cell.config
        places.setdefault((run.prior, line.cell.method.title), {})[run.model] = line
    rows = []
    for (prior, method), here in places.items():
        published = next(iter(here.values())).published
        cells = [f"{prior:g}", method, format_cell(published)]
        for line in map(here.get, networks):
            compared = line.compared if line else None
            text = format_cell(line.cells["paper"] if line else None)
            cells.append(f"**{text}**" if compared and not compared.ok else text)
            cells.append(f"{compared.tolerance:.3f}" if compared else "–")
        rows.append(cells)
    titles = [network.replace("resnet", "ResNet-") for network in networks]
    header = ["prior", "method", "published", *(w for t in titles for w in (t, "tolerance"))]
    tallies = headline_counts("accuracy", records)
    counts = [
        f"{title}: {within(tallies, f'cifar10-{network}-')}."
        for network, title in zip(networks, titles, strict=True)
    ]
    return f"{aligned(header, rows)}\n\nCells within tolerance. {' '.join(counts)}"


def within(tallies: dict[str, Tally], prefix: str) -> str:
    """How many cells of each group are within tolerance."""
    found = {title: tallies.get(f"{prefix}{name}") for name, title in GROUPS.items()}
    return ", ".join(f"{title} {t.holds} of {t.cells}" for title, t in found.items() if t)


def noise() -> str:
    """CIFAR-10 as published, with wrong priors and noise."""
    grid, records = "robustness", read_records(RESULTS / "cifar10" / "published-noise.parquet")
    table = by_correction(grid, records, lambda c: (c.config.prior_factor, c.config.label_noise))
    counts = within(headline_counts(grid, records), "cifar10-resnet32-40-epochs-")
    counts = f"Cells within tolerance, copies left out: {counts}."
    return f"{aligned(['ε', 'σ', *table[0]], table[1:])}\n\n{counts}"


def gamma() -> str:
    """CIFAR-10 as published, the convex combination."""
    records = read_records(RESULTS / "cifar10" / "published-gamma.parquet")
    header, *rows = by_correction("gamma", records, lambda c: (c.gamma,))
    return aligned(["γ", *header], rows)


def limited() -> str:
    """CIFAR-10 as published, with a part of the pairs."""
    records = read_records(RESULTS / "cifar10" / "published-limited.parquet")
    table = TABLES["limited"](summarize(records, "stratified"))
    rows = [[block.rpartition(" ")[2], *row] for block, *row in table.rows]
    return aligned(["π₊", "pairs", *table.header[2:]], rows)


def by_correction(
    grid: str, records: Sequence[Record], place: Callable[[Cell], tuple[Any, ...]]
) -> list[list[str]]:
    """A header, and rows with the published number and ours (paper subset) by correction."""
    rows: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for line in summarize_grid(grid, records).lines:
        compared, ours = line.compared, format_cell(line.cells["paper"])
        is_copy, misses = compared and compared.is_copy, compared and not compared.ok
        published = "copy" if is_copy else format_cell(line.published)
        cells = [published, f"**{ours}**" if misses and not is_copy else ours]
        rows.setdefault(place(line.cell), {})[line.cell.method.correction] = cells
    titles = [Method("convex", None, c).correction_title for c in CORRECTIONS]
    header = [word for title in titles for word in (f"{title}, published", "ours")]
    body = [
        [*(f"{value:g}" for value in key), *(text for c in CORRECTIONS for text in cells[c])]
        for key, cells in sorted(rows.items())
    ]
    return [header, *body]


SHIFTS = [f"{name}{shift}" for name in ("paper", "stratified") for shift in ("", "_shifted")]
Places = dict[tuple[str, float, str], list[list[float]]]  # accuracies by network, prior and method


def proper_images() -> Places:
    """Accuracies of every run on CIFAR-10's proper images, with and without the prior's shift."""
    places: Places = {}
    for record in read_records(RESULTS / "runs" / "cifar10.parquet"):
        run = record.run
        for method, who in ((run.method, ""), ("annotator", "annotator_")):
            results = [record.results[f"{who}{name}"] for name in SHIFTS]
            # Methods that were run together have the same annotator.
            if results not in (place := places.setdefault((run.model, run.prior, method), [])):
                place.append(results)
    return places


def cifar10() -> None:
    """Means over seeds of the runs on proper images, in full."""
    lines = ["method,network,prior,runs," + ",".join(f"{name}_mean,{name}_std" for name in SHIFTS)]
    for (network, prior, method), results in proper_images().items():
        columns = zip(*results, strict=True)
        numbers = [f"{fmean(column):.6f},{pstdev(column):.6f}" for column in columns]
        lines.append(",".join([method, network, str(prior), str(len(results)), *numbers]))
    (PAPER / "cifar10.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def other_priors() -> str:
    """Proper images at the priors with one seed: every method and the annotator."""
    header = ["prior", "method", "paper", "paper, shifted", "stratified", "stratified, shifted"]
    rows = []
    for (network, prior, method), (results, *more) in sorted(
        proper_images().items(), key=lambda place: (place[0][1], place[0][2] == "annotator")
    ):
        if network == "resnet32":
            assert not more, "one seed"
            title = "the annotator" if method == "annotator" else Method.parse(method).title
            rows.append([f"{prior:g}", title, *(f"{value:.3f}" for value in results)])
    return aligned(header, rows)


def bench(command: str, grid: str, *options: str) -> str:
    """The output of a `pairlearn bench` command about the runs of an experiment.

    CIFAR-10's accuracy and robustness have a page of their own.
    """
    one = grid in PUBLISHED
    store = RESULTS / "runs" / f"{grid}.parquet" if one else RESULTS
    return pairlearn("bench", command, grid, f"--store={store}", *options)


def pairlearn(*words: str) -> str:
    """What a command prints; a comparison that failed prints as well."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        app(words, standalone_mode=False)
    return printed.getvalue()


def markdown(grid: str) -> str:
    """The tables of both test subsets; of the siblings, which one page shows, of the fair one."""
    if grid in ("siblings", "classes"):
        return bench("table", grid)
    title = f"# {grid.capitalize()}: {GRIDS[grid].description}"
    bold = BOLD.format(of="a column at one class prior" if grid == "accuracy" else "a row")
    tables = bench("table", grid, "--test-subset=both")
    return f"{title}\n\n{EXPLANATION}\n\n{bold}\n\n{tables}"


if __name__ == "__main__":
    main()
