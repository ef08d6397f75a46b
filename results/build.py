"""Make the tables and figures under results/ from the runs in results/runs.

    python results/build.py [STORES]

STORES is a folder with stores such as accuracy.jsonl, as `pairlearn bench run GRID --store
STORES/GRID.jsonl` writes them, and cifar10.jsonl, the accuracy grid on that set: they take the
place of what is in results/runs first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import fmean, pstdev

from pairlearn.paper import GRIDS, Record, RunStore
from pairlearn.paper.cells import PUBLISHED
from pairlearn.paper.headline import summarize_grid
from pairlearn.paper.store import read_records, read_sources
from pairlearn.paper.tables import aligned

RESULTS = Path(__file__).parent
PAPER = RESULTS / "paper"
MARK = "<!-- made by build.py -->"
SHOWN = ("sconfconfdiff-abs", "likelihood-abs", "supervised")
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
    for store in sorted(stores.glob("*.jsonl")) if stores else ():
        RunStore(store).to_parquet(RESULTS / "runs" / f"{store.stem}.parquet")
    for grid in GRIDS:
        out = str(PAPER / f"{grid}.csv")
        bench("table", grid, "--format=csv", "--test-subset=both", f"--out={out}")
        (PAPER / f"{grid}.md").write_text(markdown(grid), encoding="utf-8")
        if grid in PUBLISHED:
            (PAPER / f"compare-{grid}.txt").write_text(bench("compare", grid), encoding="utf-8")
        for subset in ("paper", "stratified") if grid == "accuracy" else ("stratified",):
            folder = PAPER / "figures" / subset
            bench("figure", grid, f"--test-subset={subset}", f"--out={folder}", "--formats=png")
    cifar10(read_records(RESULTS / "runs" / "cifar10.parquet"))
    counts = pairlearn("bench", "headline", f"--results={RESULTS}")
    (RESULTS / "headline.txt").write_text(counts, encoding="utf-8")
    page = RESULTS / "README.md"
    before, _, after = page.read_text(encoding="utf-8").split(MARK)
    text = MARK.join([before, f"\n\n{leaderboard()}\n\n", after])
    page.write_text(text, encoding="utf-8")


def leaderboard() -> str:
    """The main methods at prior 0.2: published, and ours on both test subsets."""
    records = [r for s in read_sources([RESULTS]) if s.grid == "accuracy" for r in s.records]
    lines = [
        line
        for line in summarize_grid("accuracy", records).lines
        if line.cell.config.prior == 0.2 and line.cell.config.method in SHOWN
    ]
    header = ["data set", "method", "published", "ours, published subset", "ours, honest subset"]
    rows = [
        [
            line.cell.dataset_title,
            line.cell.method.title,
            *(
                f"{cell.mean:.3f} ± {cell.std:.3f}" if cell else "–"
                for cell in (line.published, line.cells["paper"], line.cells["stratified"])
            ),
        ]
        for line in lines
    ]
    return aligned(header, rows)


def cifar10(records: list[Record]) -> None:
    """Means over seeds of the runs on CIFAR-10, with and without the shift of the class prior."""
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


def bench(command: str, grid: str, *options: str) -> str:
    """The output of a `pairlearn bench` command about the runs of an experiment."""
    store = RESULTS / "runs" / f"{grid}.parquet"
    return pairlearn("bench", command, grid, f"--store={store}", *options)


def pairlearn(*words: str) -> str:
    """The output of a command; exit code 1 is a comparison that failed."""
    line = [sys.executable, "-m", "pairlearn", *words]
    done = subprocess.run(line, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(line)} failed")
    return done.stdout


def markdown(grid: str) -> str:
    """The tables of both test subsets; of the siblings, which one page shows, of the fair one."""
    if grid == "siblings":
        return bench("table", grid)
    title = f"# {grid.capitalize()}: {GRIDS[grid].description}"
    bold = BOLD.format(of="a column at one class prior" if grid == "accuracy" else "a row")
    tables = bench("table", grid, "--test-subset=both")
    return f"{title}\n\n{EXPLANATION}\n\n{bold}\n\n{tables}"


if __name__ == "__main__":
    main()
