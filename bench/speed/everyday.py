"""The cost of a fit beside a hand-written loop, and its time to the accuracy of 0.1.

    python bench/speed/everyday.py [--rounds 5] [--json]
    python bench/speed/everyday.py --data DIR --seeds 5      # time to the same accuracy as well

First, in turns within one run and on one thread: seconds of CPU time for each step of
`PairClassifier.fit`, everything included, beside the plain loop below on the same pairs with
the same batches. Then, with `--data`, Optdigits, Pendigits and Letter as in `practice.py`:
accuracy and seconds of the defaults, and of the schedule that 0.1 had (2,000 steps at a
constant rate of 0.001) in the same run. What 0.1 itself takes is measured by its own code.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from practice import benchmark_task

from pairlearn import PairClassifier, PairLabels, make_risk
from pairlearn.estimators.parameters import automatic_batch_size
from pairlearn.models import make_model

FEATURES, EPOCHS = 64, 8
CASES = {
    "linear, 1,000 pairs": ("linear", 1_000),
    "default network, 1,000 pairs": ("mlp-bn", 1_000),
    "default network, 4,000 pairs": ("mlp-bn", 4_000),
}


def task(n: int) -> tuple[Any, Any, PairLabels]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * n, FEATURES)).astype(np.float32)
    pairs = rng.permutation(2 * n).reshape(n, 2)
    r = 1 / (1 + np.exp(-x[:, :8].sum(1)))
    return x, pairs, PairLabels.from_posteriors(*r[pairs].T)


def plain_loop(x: Any, pairs: Any, labels: PairLabels, model: str, batch: int) -> None:
    """The loop of the README, with batches."""
    network, risk = make_model(model, (FEATURES,), seed=0), make_risk("likelihood-abs")
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-5)
    left, right = (torch.from_numpy(x[end]) for end in pairs.T)
    s, c = (torch.from_numpy(column).float() for column in labels.to_array().T)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(s)).split(batch):
            optimiser.zero_grad()
            risk(network(left[rows]), network(right[rows]), s[rows], c[rows]).backward()
            optimiser.step()


def steps(rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU time a step of both, and their ratio."""
    times = {}
    for name, (model, n) in CASES.items():
        x, pairs, labels = task(n)
        batch = automatic_batch_size(n)
        count = EPOCHS * -(-n // batch)
        fit, loop = [], []
        for _ in range(rounds):
            classifier = PairClassifier(
                model=model, epochs=EPOCHS, batch_size=batch, learning_rate=1e-3, random_state=0,
                device="cpu",
            )  # fmt: skip
            start = time.process_time()
            classifier.fit(x[pairs], labels)
            middle = time.process_time()
            plain_loop(x, pairs, labels, model, batch)
            fit.append(1e3 * (middle - start) / count)
            loop.append(1e3 * (time.process_time() - middle) / count)
        ours, theirs = statistics.median(fit), statistics.median(loop)
        times[name] = {"fit_ms": ours, "loop_ms": theirs, "ratio": ours / theirs}
    return times


def accuracy(data: Path, seeds: int) -> dict[str, Any]:
    """Accuracy and seconds with the defaults of today and of 0.1."""
    means = {}
    for name in ("optdigits", "pendigits", "letter"):
        runs: dict[str, list[tuple[float, float]]] = {"now": [], "then": []}
        for seed in range(seeds):
            x, pairs, labels, test, positive = benchmark_task(name, data, seed)
            batch = automatic_batch_size(len(pairs))
            old = {"epochs": -(-2_000 // -(-len(pairs) // batch)), "learning_rate": 1e-3}
            for which, options in (("now", {}), ("then", old)):
                start = time.perf_counter()
                classifier = PairClassifier(random_state=seed, device="cpu", **options)
                classifier.fit(x[pairs], labels)
                seconds = time.perf_counter() - start
                right = float(np.mean((classifier.predict(test) > 0) == positive))
                runs[which].append((right, seconds))
        means[name] = {
            f"{measure}_{which}": statistics.mean(run[i] for run in runs[which])
            for which in runs
            for i, measure in enumerate(("accuracy", "seconds"))
        }
    return means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    report = {"steps": steps(options.rounds)}
    if options.data:
        report["accuracy"] = accuracy(options.data, options.seeds)
    if options.json:
        print(json.dumps(report, indent=1))
        return
    for rows in report.values():
        for name, row in rows.items():
            print(f"{name:30}", *(f"{key} {value:.3f}" for key, value in row.items()), sep="  ")


if __name__ == "__main__":
    main()
