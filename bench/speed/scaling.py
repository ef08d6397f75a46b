"""How time and memory grow with pairs and with workers, and what that predicts.

    python bench/speed/scaling.py pairs [--sizes 1e3,1e4,…] [--out bench/results/scaling/pairs.csv]
    python bench/speed/scaling.py workers [--out bench/results/scaling/workers.csv]
    python bench/speed/scaling.py model [--folder bench/results/scaling] [--json]

`pairs` fits the linear model for one epoch, each fit in a process of its own. `workers` runs
twelve trainings of the digits grid in one and in two processes, and one training under torchrun
with one and with two ranks. Both add rows to a CSV file. `model` reads these files, takes the
least of repeated measurements, fits a line to them without the held-out points, and prints its
error at those.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ITEMS, FEATURES, ROW_GROUP = 200_000, 16, 131_072
MOST_REPEATED = 10**6
HELD_OUT_MODELS = {
    "linear, CPU": 600,
    "mlp, CPU": 60,
    "mlp, H200, bf16": 0,
    "mlp, H200, float32": 120,
}
"""Sizes that the lines are not fitted to; 0 where there are two points only."""
CPU_AT_START = time.process_time()
FOLDER = Path(__file__).parents[1] / "results" / "scaling"
Row = dict[str, Any]
Points = dict[int, float]


# --- pairs ----------------------------------------------------------------------------------


def write_tables(folder: Path, pairs: int) -> None:
    """Items, and pairs judged by a known posterior, a row group at a time."""
    from pairlearn import PairLabels
    from pairlearn.io import open_rows

    rng = np.random.default_rng(0)
    x = rng.normal(size=(ITEMS, FEATURES)).astype(np.float32)
    np.save(folder / "items.npy", x)
    r = 1 / (1 + np.exp(-2 * x[:, 0] - 1))
    columns = ["left", "right", "similarity", "difference"]
    with open_rows(folder / "pairs.parquet", columns) as rows:
        for start in range(0, pairs, ROW_GROUP):
            left = rng.integers(0, ITEMS, min(ROW_GROUP, pairs - start))
            # Any other item: no item is paired with itself.
            right = (left + rng.integers(1, ITEMS, len(left))) % ITEMS
            ends = np.stack([left, right], 1)
            labels = PairLabels.from_posteriors(*r[ends].T).to_array()
            rows.write(dict(zip(columns, (*ends.T, *labels.T), strict=True)))


def fit_in_memory(folder: Path) -> Row:
    """Read both tables, then train."""
    from pairlearn.estimators import PairClassifier, TrainingOptions
    from pairlearn.io import read_items, read_pairs

    start = time.perf_counter()
    table = read_pairs(folder / "pairs.parquet")
    items = read_items(folder / "items.npy")
    read = time.perf_counter() - start
    classifier = PairClassifier(
        model="linear",
        epochs=1,
        random_state=0,
        preprocessor=items,
        training=TrainingOptions(device="cpu"),
    )
    classifier.fit(table)
    return measurements(classifier, read, time.perf_counter() - start)


def peak_mib() -> float:
    """Peak memory of this process."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def measurements(classifier: Any, read: float, total: float) -> Row:
    epoch = sum(row["seconds"] for row in classifier.history_)
    return {
        "read_seconds": round(read, 4),
        "epoch_seconds": round(epoch, 4),
        "other_seconds": round(total - read - epoch, 4),
        "total_seconds": round(total, 4),
        "cpu_seconds": round(time.process_time() - CPU_AT_START, 4),
        "peak_mib": peak_mib(),
    }


def measure_pairs(sizes: Iterable[int], repeats: int, out: Path) -> None:
    for pairs in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_tables(folder, pairs)
            file_mib = (folder / "pairs.parquet").stat().st_size / 2**20
            for _ in range(repeats if pairs <= MOST_REPEATED else 1):
                row = {"pairs": pairs, "file_mib": round(file_mib, 2)}
                add_row(out, row | apart("fit_in_memory", str(folder)))


# --- workers --------------------------------------------------------------------------------


def run_grid(workers: str) -> Row:
    """Twelve trainings of digits; the seconds from the first call to the last result."""
    from pairlearn_bench.execute import execute
    from pairlearn_bench.grids import GRIDS, Selection

    methods = "likelihood-abs,sconfconfdiff-abs,confdiff-abs,supervised"
    chosen = Selection.parse(
        datasets="digits", priors="0.2", seeds="3", methods=methods, epochs=100
    )
    runs = list(chosen.of(GRIDS["accuracy"]).runs())
    start = time.perf_counter()
    done = sum(1 for _ in execute(runs, device="cpu", workers=int(workers)))
    return {"trainings": done, "seconds": round(time.perf_counter() - start, 2)}


def fit_ranks(model: str, ranks: int, folder: Path) -> Row:
    """One training by as many processes as there are ranks; seconds in its epochs."""
    words = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    words += ["-m", "pairlearn", "fit", str(folder / "items.npy"), str(folder / "pairs.parquet")]
    words += ["--out", str(folder / f"{model}-{ranks}"), "--model", model, "--epochs", "10"]
    words += ["--holdout", "0", "--seed", "0", "--device", "cpu", "--force", "--json"]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], check=True, stdout=subprocess.PIPE, env=environment(), text=True
    )
    wall = time.perf_counter() - started
    summary = json.loads(done.stdout.splitlines()[-1])
    return {"trainings": 1, "seconds": round(summary["seconds"], 2), "wall_seconds": round(wall, 2)}


def measure_workers(repeats: int, out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name), 20_000)
        for _ in range(repeats):
            for workers in (1, 2):
                row = {"what": "grid", "workers": workers, "wall_seconds": ""}
                add_row(out, row | apart("run_grid", str(workers)))
                for model in ("linear", "mlp-bn"):
                    row = {"what": f"torchrun {model}", "workers": workers}
                    add_row(out, row | load() | fit_ranks(model, workers, Path(name)))


# --- processes and files --------------------------------------------------------------------


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def load() -> Row:
    """Load of the machine over the last minute."""
    return {"load": round(os.getloadavg()[0], 2)}


def apart(function: str, argument: str) -> Row:
    """Call a function of this file in a separate process, and return its row."""
    words = [sys.executable, __file__, "call", function, argument]
    load_before = load()
    done = subprocess.run(
        words, check=True, stdout=subprocess.PIPE, env=environment(), text=True
    ).stdout
    return load_before | json.loads(done.splitlines()[-1])


def add_row(out: Path, row: Row) -> None:
    """Add a row to a CSV file, which gets its header from the first."""
    print(json.dumps(row), flush=True)
    new = not out.exists()
    with out.open("a", newline="") as file:
        columns = list(row) if new else next(csv.reader([out.read_text().splitlines()[0]]))
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


# --- the model of cost ----------------------------------------------------------------------


def least(path: Path, by: str, only: Row, key: str) -> Points:
    """The least value of a column for each size, among rows that have the values asked for."""
    minima: Points = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row[key] and all(row[name] == value for name, value in only.items()):
                size = int(row[by])
                minima[size] = min(float(row[key]), minima.get(size, np.inf))
    return dict(sorted(minima.items()))


def line(points: Points) -> tuple[float, float]:
    """Intercept a and slope b of a + b·n, with equal weights on relative errors."""
    n, value = (np.array(side, float) for side in (list(points), list(points.values())))
    design = np.stack([np.ones_like(n), n], 1) / value[:, None]
    a, b = np.linalg.lstsq(design, np.ones_like(n), rcond=None)[0]
    return float(a), float(b)


def checked(points: Points, held_out: int = 0) -> Row:
    """The line without the held-out point, and its prediction there."""
    a, b = line({n: value for n, value in points.items() if n != held_out})
    row = {"fixed": a, "each": b}
    if held_out in points:
        predicted, measured = a + b * held_out, points[held_out]
        row |= {"held_out": held_out, "predicted": predicted, "measured": measured}
        row |= {"error": predicted / measured - 1}
    return row


def cost_model(folder: Path) -> dict[str, Row]:
    """Every line: fits over pairs, steps and memory of fleets over models."""
    lines = {}
    for key in ("read_seconds", "epoch_seconds", "total_seconds", "cpu_seconds", "peak_mib"):
        lines[f"pairs: {key}"] = checked(least(folder / "pairs.csv", "pairs", {}, key))
    for fleet, held_out in HELD_OUT_MODELS.items():
        for key in ("ms_per_step", "cpu_ms_per_step", "memory_gib"):
            points = least(folder / "fleets.csv", "models", {"what": fleet}, key)
            if points:
                lines[f"{fleet}: {key}"] = checked(points, held_out)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("pairs", "workers", "model", "call"))
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6,1e7")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.what == "call":
        name, argument = args.words
        functions: Any = {
            "run_grid": run_grid,
            "fit_in_memory": lambda folder: fit_in_memory(Path(folder)),
        }
        print(json.dumps(functions[name](argument)))
    elif args.what == "model":
        lines = cost_model(args.folder)
        for name, row in [] if args.json else lines.items():
            print(f"{name:>32}  " + ", ".join(f"{k} {v:.4g}" for k, v in row.items()))
        if args.json:
            print(json.dumps(lines))
    else:
        out = args.out or args.folder / f"{args.what}.csv"
        out.parent.mkdir(parents=True, exist_ok=True)
        if args.what == "pairs":
            sizes = [int(float(size)) for size in args.sizes.split(",")]
            measure_pairs(sizes, args.repeats, out)
        else:
            measure_workers(args.repeats, out)


if __name__ == "__main__":
    main()
