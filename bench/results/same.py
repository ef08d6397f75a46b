"""Classes from "the same or not" alone: ours beside MCL, VolMaxDCC, SpherePair and ECI-PP.

    python bench/results/same.py DATA [--seeds 3]    # without DATA: only the table

The setting is that of ECI-PP (arXiv 2608.12027). One expert of each set, a network trained on 1% of
each class, answers 9,000 random pairs with <p_a, p_b>; 30% of the answers are replaced by uniform
numbers. Adds the rows that are missing to same.csv; those of public code are by `same_rivals.py`.
same.txt is the table of both, of runs/classes.parquet, and of published figures: mean, standard
deviation, number of seeds, and p of Welch's test against ours with the same answers.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import ttest_ind
from sklearn.metrics import confusion_matrix
from torch import nn

from pairlearn import Judgements, PairLabels
from pairlearn_bench import get_grid
from pairlearn_bench.classes import ClassesBenchmark, Training
from pairlearn_bench.data import load
from pairlearn_bench.store import read_records
from pairlearn_bench.tables import aligned

HERE = Path(__file__).parent
FILE = HERE / "same.csv"
FIELDS = ["method", "dataset", "seed", "setting", "accuracy", "expert_accuracy", "source"]
SETS, PAIRS, ITEMS = ("mnist", "fashion-mnist"), 9000, 60_000
HARD, SOFT, NOISY = "true classes", "expert", "expert, 30% uniform"
OURS, KNOWN, EXPERT = "ours", "ours, share known", "the expert"
#: Mean of five trials on both sets: arXiv 2510.06907, table 1; with noise 2608.12027, table 1.
PUBLISHED = {
    (HARD, "MCL"): (0.926, 0.790),
    (HARD, "VolMaxDCC"): (0.913, 0.787),
    (HARD, "SpherePair"): (0.970, 0.836),
    (NOISY, "MCL"): (0.403, 0.402),
    (NOISY, "VolMaxDCC"): (0.769, 0.655),
    (NOISY, "SpherePair"): (0.891, 0.712),
    (NOISY, "ECI-PP"): (0.910, 0.711),
    (NOISY, EXPERT): (0.888, 0.748),
}


def expert(x: Any, y: Any, seed: int = 0) -> Any:
    """Posteriors of all items by a network trained on 1% of each class of the training split."""
    rng = np.random.default_rng([seed, 77])
    torch.manual_seed(seed)
    own = (rng.permutation(np.flatnonzero(y[:ITEMS] == k)) for k in range(10))
    rows = np.concatenate([each[: len(each) // 100] for each in own])
    pixels = torch.tensor(x.reshape(len(x), -1)).float() * 0.02
    hidden = nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 10)
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), *hidden)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    best, best_epoch = -1, 0
    for epoch in range(100):
        right = 0
        for batch in torch.randperm(len(rows)).split(256):
            optimizer.zero_grad()
            out, labels = net(pixels[rows[batch]]), torch.tensor(y[rows[batch]]).long()
            nn.functional.cross_entropy(out, labels).backward()
            optimizer.step()
            right += int((out.argmax(1) == labels).sum())
        best, best_epoch = (right, epoch) if right > best else (best, best_epoch)
        if epoch - best_epoch == 10:
            break
    with torch.no_grad():
        return net.eval()(pixels).softmax(1).double().numpy()


def ask(posterior: Any, n: int, seed: int, share: float) -> tuple[Any, Any]:
    """Distinct random pairs of items, and the answers about them, a share of which is uniform."""
    rng, pairs = np.random.default_rng([seed, 1]), np.empty((0, 2), np.int64)
    while len(pairs) < n:
        drawn = np.sort(rng.integers(len(posterior), size=(n, 2)), axis=1)
        pairs = np.concatenate([pairs, drawn[drawn[:, 0] != drawn[:, 1]]])
        pairs = pairs[np.sort(np.unique(pairs, axis=0, return_index=True)[1])][:n]
    answers = posterior[pairs].prod(1).sum(1).clip(0, 1)
    return pairs, np.where(rng.random(n) < share, rng.random(n), answers)


def matched(truth: Any, found: Any) -> float:
    """Accuracy after matching the groups that were found to the classes."""
    counts = confusion_matrix(truth, found, labels=range(10))
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / counts.sum())


@cache
def prepared(name: str, data: Path) -> tuple[ClassesBenchmark, Any]:
    """A data set, and the posteriors of its expert."""
    benchmark = ClassesBenchmark(load(name, data), "mlp-bn", "cpu", "float32")
    return benchmark, expert(benchmark.dataset.x, benchmark.dataset.y)


def measure(name: str, data: Path, seed: int, method: str, share: float) -> None:
    """Train on answers, a share of which is uniform, and add the row."""
    benchmark, posterior = prepared(name, data)
    run = get_grid("classes").select(datasets=(name,), pairs=PAIRS, seeds=(seed,)).runs()[0]
    pairs, same = ask(posterior[:ITEMS], PAIRS, seed, share)
    if method == KNOWN:  # a uniform answer is 1/2 on average
        same = (same - share / 2) / (1 - share)
    rows = Judgements.from_pairs(pairs, PairLabels(same, np.full(PAIRS, np.nan), noisy=True))
    rates = run.epochs, run.batch_size, run.learning_rate, run.weight_decay, seed
    recipe = benchmark.recipe(*rates, schedule="cosine")
    (found,) = benchmark.fit([Training(rows, run.model, recipe)])
    y = benchmark.dataset.y
    right = [matched(y[ITEMS:], each[ITEMS:].argmax(1)) for each in (found, posterior)]
    add([method, name, seed, NOISY if share else SOFT, *right, "ours, CPU"])


def add(row: Sequence[Any]) -> None:
    """Add a row to same.csv, which replaces that of the same run."""
    told = [f"{each:.4f}" if isinstance(each, float) else str(each) for each in row]
    ROWS[:] = sorted([told, *(one for one in ROWS if one[:4] != told[:4])])
    with FILE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *ROWS])


def table() -> str:
    """Every method beside what is published: mean, standard deviation and number of seeds."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {key: {} for key in PUBLISHED}
    for record in read_records(HERE / "runs" / "classes.parquet"):
        run = record.run
        if run.method == "classes-same-true" and run.pairs == 10_000 and run.dataset in SETS:
            own = found.setdefault((HARD, OURS), {}).setdefault(run.dataset, [])
            own.append(record.results["stratified"])
    for method, name, _, setting, accuracy, of_expert, _ in ROWS:
        found.setdefault((setting, method), {}).setdefault(name, []).append(float(accuracy))
        if method == OURS:
            found.setdefault((setting, EXPERT), {})[name] = [float(of_expert)]
    lines = []
    for key in sorted(found, key=lambda key: ((HARD, SOFT, NOISY).index(key[0]), key[1])):
        line = list(key)
        for name, published in zip(SETS, PUBLISHED.get(key, (0, 0)), strict=True):
            own = found[key].get(name, [])
            spread = f" ± {pstdev(own):.3f} ({len(own)})" if len(own) > 1 else ""
            ours = found.get((key[0], OURS), {}).get(name, [])
            if key[1] != OURS and min(len(own), len(ours)) > 1:
                spread += f", p = {ttest_ind(own, ours, equal_var=False).pvalue:.2g}"
            shown = f"{fmean(own):.3f}{spread}" if own else ""
            line += [shown, f"{published:.3f}" if published else ""]
        lines.append(line)
    return aligned(["answers", "method", "MNIST", "published", "Fashion", "published"], lines)


with FILE.open(encoding="utf-8", newline="") as given:
    ROWS = [*csv.reader(given)][1:]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    ways = (OURS, 0.3), (KNOWN, 0.3), (OURS, 0.0)
    for seed, way, name in product(range(args.seeds if args.data else 0), ways, SETS):
        setting = NOISY if way[1] else SOFT
        if [way[0], name, str(seed), setting] not in [row[:4] for row in ROWS]:
            measure(name, args.data, seed, *way)
    FILE.with_suffix(".txt").write_text(table() + "\n", encoding="utf-8")
