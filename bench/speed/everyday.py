"""The cost of a fit beside a hand-written loop, and its time to the accuracy of 0.1.

    python bench/speed/everyday.py [--rounds 5] [--json]
    python bench/speed/everyday.py --command                 # `pairlearn fit` as a whole
    python bench/speed/everyday.py --data DIR --seeds 5      # time to the same accuracy as well

First, in turns within one run and on one thread: seconds of CPU time for each step of
`PairClassifier.fit`, everything included, beside the plain loop below on the same pairs with
the same batches. Then, with `--data`, Optdigits, Pendigits and Letter as in `practice.py`:
accuracy and seconds of the defaults, and of the schedule that 0.1 had (2,000 steps at a
constant rate of 0.001) in the same run. What 0.1 itself takes is measured by its own code.

With `--command`, the whole command `pairlearn fit`, in processes that have imported torch and
scikit-learn: from the files to the model folder, with the accuracy on pairs held out. Beside it,
the plain loop of 200 epochs on all pairs, in the same batches; and how many functions of pairlearn
the command calls.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from practice import benchmark_task

from pairlearn import PairClassifier, PairLabels, TrainingOptions, make_risk
from pairlearn.estimators.parameters import automatic_batch_size
from pairlearn.models import make_model
from pairlearn.simulation import simulate

FEATURES, EPOCHS = 64, 8
CASES = {
    "linear, 1,000 pairs": ("linear", 1_000),
    "default network, 1,000 pairs": ("mlp-bn", 1_000),
    "default network, 4,000 pairs": ("mlp-bn", 4_000),
}
WHOLE = {
    "breast cancer, 200 pairs": ("linear", {"pairs": 200}),
    "three annotators, 300 pairs": ("mlp-bn", {"pairs": 300, "annotators": 3}),
}
"""Cases of the whole command: the model of the loop beside it, and the table."""
RUN = """
import inspect, sys, time, torch, sklearn.linear_model
torch.set_num_threads(1)
from pathlib import Path
called = set()
def note(frame, event, _):
    if event == "call" and "/pairlearn/" in frame.f_code.co_filename:
        called.add(frame.f_code)
start = time.process_time()
from pairlearn.cli.root import app
if sys.argv[1] == "count":
    sys.setprofile(note)
try:
    app(["fit", *sys.argv[2:]])
except SystemExit as end:
    assert not end.code, end.code
sys.setprofile(None)
named = [
    code for code in called
    if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
]
Path("measured").write_text(f"{time.process_time() - start} {len(named)}")
"""
"""One command in a process of its own. Bodies of comprehensions and classes are no functions."""


def task(n: int) -> tuple[Any, Any, PairLabels]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * n, FEATURES)).astype(np.float32)
    pairs = rng.permutation(2 * n).reshape(n, 2)
    r = 1 / (1 + np.exp(-x[:, :8].sum(1)))
    return x, pairs, PairLabels.from_posteriors(*r[pairs].T)


def plain_loop(
    x: Any, pairs: Any, labels: PairLabels, model: str, batch: int, epochs: int = EPOCHS
) -> None:
    """The loop of the README, with batches."""
    network, risk = make_model(model, x.shape[1:], seed=0), make_risk("likelihood-abs")
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-5)
    left, right = (torch.from_numpy(x[end]) for end in pairs.T)
    s, c = (torch.from_numpy(column).float() for column in labels.to_array().T)
    for _ in range(epochs):
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
            training = TrainingOptions(batch_size=batch, learning_rate=1e-3, device="cpu")
            classifier = PairClassifier(
                model=model, epochs=EPOCHS, training=training, random_state=0
            )
            start = time.process_time()
            classifier.fit(x[pairs], labels)
            middle = time.process_time()
            plain_loop(x, pairs, labels, model, batch)
            fit.append(1e3 * (middle - start) / count)
            loop.append(1e3 * (time.process_time() - middle) / count)
        ours, theirs = statistics.median(fit), statistics.median(loop)
        times[name] = {"fit_ms": ours, "loop_ms": theirs, "ratio": ours / theirs}
    return times


def command(rounds: int) -> dict[str, Any]:
    """Seconds of CPU time of the whole command and of the plain loop, and functions called."""
    found = {}
    for name, (model, options) in WHOLE.items():
        made = simulate("breast-cancer", prior=0.37, seed=0, **options)
        x, pairs = np.asarray(made.items.features, np.float32), made.pairs.ends
        x, labels = (x - x.mean(0)) / x.std(0), made.pairs.labels()
        fit, loop = [], []
        with tempfile.TemporaryDirectory() as folder:
            made.write(Path(folder))
            files = [sys.executable, "-c", RUN, "time", "items.csv", "pairs.csv", "--out", "model"]
            options = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
            for _ in range(rounds):
                subprocess.run([*files, "--force"], **options)
                fit.append(float((Path(folder) / "measured").read_text().split()[0]))
                start = time.process_time()
                plain_loop(x, pairs, labels, model, automatic_batch_size(len(pairs)), epochs=200)
                loop.append(time.process_time() - start)
            files[3] = "count"
            subprocess.run([*files, "--force"], **options)
            functions = float((Path(folder) / "measured").read_text().split()[1])
        ours, theirs = statistics.median(fit), statistics.median(loop)
        row = {"fit_s": ours, "loop_s": theirs, "ratio": ours / theirs, "functions": functions}
        found[name] = row
    return found


def accuracy(data: Path, seeds: int) -> dict[str, Any]:
    """Accuracy and seconds with the defaults of today and of 0.1."""
    means = {}
    for name in ("optdigits", "pendigits", "letter"):
        runs: dict[str, list[tuple[float, float]]] = {"now": [], "then": []}
        for seed in range(seeds):
            x, pairs, labels, test, positive = benchmark_task(name, data, seed)
            batch = automatic_batch_size(len(pairs))
            epochs = -(-2_000 // -(-len(pairs) // batch))
            old = {"epochs": epochs, "training": TrainingOptions(learning_rate=1e-3)}
            for which, options in (("now", {}), ("then", old)):
                start = time.perf_counter()
                classifier = PairClassifier(random_state=seed, **options)
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
    parser.add_argument("--command", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.command:
        report = {"command": command(options.rounds)}
    else:
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
