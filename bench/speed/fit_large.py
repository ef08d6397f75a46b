"""How fast PairClassifier trains on a large table, and in how much memory.

    python bench/speed/fit_large.py [--pairs 1000000] [--items 200000] [--features 32]
                                   [--model linear] [--epochs 3] [--annotators 3] [--json]

The table is made in memory: ids into a table of items, judged by a known posterior; with
--annotators by so many people in turn, the last of whom leans to "same".
Prints pairs per second in an epoch, seconds of wall clock and of CPU time in the epochs and in
all, the peak resident memory of the whole process, and the bound: how fast the two instances
of each pair alone can be gathered, which every epoch has to do once.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time

import numpy as np
import torch

from pairlearn import PairLabels
from pairlearn.estimators import PairClassifier, TrainingOptions
from pairlearn.estimators.parameters import automatic_batch_size
from pairlearn.training import Callback


class Clock(Callback):
    """CPU time of the epochs."""

    seconds = 0.0

    def before_epoch(self, learner: object) -> None:
        """Start."""
        self.seconds -= time.process_time()

    def after_epoch(self, learner: object, row: object) -> None:
        """Stop."""
        self.seconds += time.process_time()


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def gather_seconds(features: torch.Tensor, ends: torch.Tensor, batch: int) -> float:
    """Time to gather both instances of every pair, batch by batch."""
    order = torch.randperm(len(ends))
    start = time.perf_counter()
    for rows in order.split(batch):
        features[ends[rows].T.reshape(-1)].sum()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--model", default="linear")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--annotators", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(args.items, args.features)).astype(np.float32)
    r = 1 / (1 + np.exp(-2 * x[:, 0] - 1))
    pairs = rng.integers(0, args.items, (args.pairs, 2))
    labels = PairLabels.from_posteriors(r[pairs[:, 0]], r[pairs[:, 1]])
    who = None
    if args.annotators:
        number = np.arange(args.pairs) % args.annotators
        who = np.array([f"annotator {k}" for k in range(args.annotators)])[number]
        leaning = 0.1 * (number == args.annotators - 1)
        labels = PairLabels((labels.similarity + leaning).clip(0, 1), labels.difference)
    before, clock = peak_bytes(), Clock()

    classifier = PairClassifier(
        model=args.model,
        epochs=args.epochs,
        preprocessor=x,
        random_state=0,
        training=TrainingOptions(device="cpu"),
        callbacks=[clock],
    )
    start, cpu = time.perf_counter(), time.process_time()
    classifier.fit(pairs, labels, annotator=who)
    total, cpu = time.perf_counter() - start, time.process_time() - cpu
    epoch = statistics.median(row["seconds"] for row in classifier.history_)
    trained = args.pairs
    batch = automatic_batch_size(trained)
    bound = gather_seconds(torch.from_numpy(x), torch.from_numpy(pairs[:trained]), batch)
    report = {
        "threads": torch.get_num_threads(),
        "pairs_per_second": round(trained / epoch),
        "bound_pairs_per_second": round(trained / bound),
        "seconds_in_epochs": round(sum(row["seconds"] for row in classifier.history_), 2),
        "seconds_in_all": round(total, 2),
        "cpu_seconds_in_epochs": round(clock.seconds, 2),
        "cpu_seconds_in_all": round(cpu, 2),
        "peak_MiB": round(peak_bytes() / 2**20),
        "peak_MiB_before_fit": round(before / 2**20),
        "accuracy": round(float(((classifier.predict(x) > 0) == (r > 0.5)).mean()), 4),
    }
    print(json.dumps(report) if args.json else "\n".join(f"{k:>24} {v}" for k, v in report.items()))


if __name__ == "__main__":
    main()
