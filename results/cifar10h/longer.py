"""The two harder questions of CIFAR-10H in trainings of 60, 120 and 200 epochs.

    python results/cifar10h/longer.py DATA longer.csv [--epochs 60,120,200] [--seeds 2]

DATA is as in run.py, whose splits, pairs and networks these are. Rows of cells that the file has
already are kept.
"""

from __future__ import annotations

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import run

COLUMNS = ("epochs", "split", "method", "answers", "seed", "accuracy")
KINDS = (("likelihood-abs", "soft"), ("likelihood-abs", "hard"), ("supervised", "classes"))


def work(epochs: int, cell: run.Cell, device: str) -> dict[str, object]:
    """Train one network in a process that has the data."""
    part, held_out = run.parts(cell.split, cell.seed, run._classes, run._counts)
    z = run.train(cell, run._images, part, held_out, device=device, epochs=epochs)
    accuracy = float(np.mean((z > 0) == held_out.positive))
    values = (epochs, cell.split, cell.method, cell.answers, cell.seed, f"{accuracy:.4f}")
    return dict(zip(COLUMNS, values, strict=True))


def main() -> None:
    """Train what is missing, and add it to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--epochs", default="60,120,200")
    parser.add_argument("--splits", default="pets,three")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    known = []
    if options.table.exists():
        with options.table.open(encoding="utf-8", newline="") as file:
            known = list(csv.DictReader(file))
    done = {tuple(str(row[name]) for name in COLUMNS[:-1]) for row in known}
    cells = [
        (int(epochs), run.Cell(seed, split, method, answers))
        for seed, epochs, split, (method, answers) in product(
            range(options.seeds), options.epochs.split(","), options.splits.split(","), KINDS
        )
        if (epochs, split, method, answers, str(seed)) not in done
    ]
    settings = (options.data, options.device)
    with (
        options.table.open("a", encoding="utf-8", newline="") as file,
        ProcessPoolExecutor(
            options.workers, get_context("spawn"), run.start_worker, settings
        ) as pool,
    ):
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for future in as_completed([pool.submit(work, *cell, options.device) for cell in cells]):
            writer.writerow(future.result())
            file.flush()


if __name__ == "__main__":
    main()
