"""Make the tables, figures and runs under results/ from the stores of finished runs.

    python results/build.py STORES

STORES is a folder with accuracy.jsonl, robustness.jsonl, gamma.jsonl, limited.jsonl and
siblings.jsonl, as `pairlearn bench run GRID --store STORES/GRID.jsonl` writes them, and
cifar10.jsonl, the accuracy grid on that set. What is not there stays as it is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from itertools import chain
from pathlib import Path
from statistics import fmean, pstdev

from pairlearn.paper import GRIDS, TABLES, RunStore, Selection, summarize, to_markdown
from pairlearn.paper.cells import PUBLISHED
from pairlearn.paper.store import write_parquet
from pairlearn.paper.tables import Row, Table

RESULTS = Path(__file__).parent
PAPER = RESULTS / "paper"
EXPLANATION = """\
Two columns beside each other are the same trained models on two test sets of the same class
prior. *Paper* is the test set of the published experiments: one class is kept whole and the other
truncated, on the image sets in the order of the original classes, so that at π₊ = 0.2 the
positives of MNIST are the zeros and some twos. *Stratified* draws the part that is kept at
random, spread evenly over the original classes. At π₊ = 0.5 next to nothing is cut away and
the two agree; on the UCI sets, whose instances were shuffled before the cut, they differ by
chance only. Compare with published numbers on *paper*; believe *stratified*."""
BOLD = "Bold: the best of {of}, for each test subset; supervised training does not compete."


def main() -> None:
    """Make all files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stores", type=Path)
    stores = parser.parse_args().stores
    for grid in GRIDS:
        store = stores / f"{grid}.jsonl"
        if not store.exists():
            continue
        out = str(PAPER / f"{grid}.csv")
        bench("table", grid, store, "--format=csv", "--test-subset=both", f"--out={out}")
        (PAPER / f"{grid}.md").write_text(markdown(grid, store), encoding="utf-8")
        if grid in PUBLISHED:
            report = bench("compare", grid, store)
            (PAPER / f"compare-{grid}.txt").write_text(report, encoding="utf-8")
        subsets = ("paper", "stratified") if grid == "accuracy" else ("stratified",)
        for subset in subsets:
            folder = PAPER / "figures" / subset
            chosen = (f"--test-subset={subset}", f"--out={folder}", "--formats=png")
            bench("figure", grid, store, *chosen)
        (RESULTS / "runs").mkdir(exist_ok=True)
        write_parquet(RunStore(store), RESULTS / "runs" / f"{grid}.parquet")
    if (stores / "cifar10.jsonl").exists():
        cifar10(stores / "cifar10.jsonl")
    line = [sys.executable, "-m", "pairlearn", "bench", "headline", f"--results={RESULTS}"]
    counts = subprocess.run(line, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    (RESULTS / "headline.txt").write_text(counts, encoding="utf-8")


def cifar10(store: Path) -> None:
    """Every run on CIFAR-10, and the means over its seeds, with and without the prior shift."""
    records = list(RunStore(store))
    write_parquet(records, RESULTS / "runs" / "cifar10.parquet")
    subsets = [f"{name}{shift}" for name in ("paper", "stratified") for shift in ("", "_shifted")]
    rows = {}
    for record in records:
        key = record.run.method, record.run.prior
        rows.setdefault(key, []).append([record.results[name] for name in subsets])
        key = "annotator", record.run.prior
        rows.setdefault(key, []).append([record.results[f"annotator_{name}"] for name in subsets])
    lines = ["method,prior,runs," + ",".join(f"{name}_mean,{name}_std" for name in subsets)]
    for (method, prior), results in rows.items():
        # The annotator of a seed is the same for all methods.
        different = sorted({tuple(result) for result in results})
        columns = list(zip(*different, strict=True))
        numbers = [f"{fmean(column):.6f},{pstdev(column):.6f}" for column in columns]
        lines.append(f"{method},{prior},{len(different)}," + ",".join(numbers))
    (PAPER / "cifar10.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def bench(command: str, grid: str, store: Path, *options: str) -> str:
    """The output of a `pairlearn bench` command; exit code 1 is a comparison that failed."""
    line = [sys.executable, "-m", "pairlearn", "bench", command, grid, f"--store={store}", *options]
    done = subprocess.run(line, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(line)} failed")
    return done.stdout


def markdown(grid: str, store: Path) -> str:
    """The tables of both test subsets, every column of one beside that of the other."""
    records = Selection().records(GRIDS[grid], RunStore(store))
    if grid == "siblings":  # one page shows it, of a fair test set
        return to_markdown(TABLES[grid](summarize(records, "stratified"))) + "\n"
    paper, stratified = (TABLES[grid](summarize(records, s)) for s in ("paper", "stratified"))
    title = f"# {grid.capitalize()}: {GRIDS[grid].description}"
    bold = BOLD.format(of="a column at one class prior" if grid == "accuracy" else "a row")
    table = to_markdown(side_by_side(paper, stratified))
    return "\n\n".join([title, EXPLANATION, bold, table]) + "\n"


def side_by_side(paper: Table, stratified: Table) -> Table:
    """Two tables with the same rows and columns as one."""
    if [row.labels for row in paper.rows] != [row.labels for row in stratified.rows]:
        raise SystemExit("the two test subsets do not have the same rows")
    columns = [(f"{name}, paper", f"{name}, stratified") for name in paper.columns]
    rows = iter(
        Row(one.labels, tuple(chain(*zip(one.entries, two.entries, strict=True))))
        for one, two in zip(paper.rows, stratified.rows, strict=True)
    )
    return Table(
        paper.caption.replace("paper test subset", "both test subsets"),
        paper.stubs,
        tuple(chain(*columns)),
        tuple(tuple(tuple(next(rows) for _ in group) for group in block) for block in paper.blocks),
    )


if __name__ == "__main__":
    main()
