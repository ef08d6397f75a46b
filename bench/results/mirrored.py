"""Where the likelihood ends from other initial weights, on pairs with which a run ended mirrored.

    python bench/results/mirrored.py DATA

DATA is the folder of the data sets. Writes runs/mirrored.csv; float32, on a CPU, some minutes.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pairlearn import make_risk
from pairlearn.models import make_model
from pairlearn_bench.benchmark import Benchmark
from pairlearn_bench.data import load
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.simulated import judge

CASES = [("optdigits", 0.2, 2, 120), ("kmnist", 0.8, 0, 1500), ("kmnist", 0.8, 1, 1500)]
INITIAL_WEIGHTS = range(6)
EPOCHS, BATCH = 200, 256
RISK = make_risk("likelihood-abs")


def main() -> None:
    """Train and measure every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    rows = [row for case in CASES for row in measured(*case, data)]
    out = Path(__file__).parent / "runs" / "mirrored.csv"
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def measured(
    name: str, prior: float, seed: int, n: int, data: Path
) -> Iterator[dict[str, float | str]]:
    """One row for each set of initial weights, on the same pairs and judgements."""
    benchmark = Benchmark(load(name, data), "mlp", "cpu", "float32")
    (posteriors,) = benchmark.annotate([(seed, None)]).values()
    train, test = benchmark.rows(seed)
    pairs = train[sample_pairs(benchmark.positive[train], n, prior, seed)]
    judgements = torch.tensor(judge(posteriors, pairs).to_array(), dtype=torch.float32)
    features = torch.tensor(benchmark.features)
    classes = benchmark.dataset.y[test]
    test = test[
        subset_at_prior(benchmark.positive[test], prior, "stratified", classes=classes, seed=seed)
    ]
    positive = benchmark.positive[pairs]
    same = positive[:, 0] == positive[:, 1]
    for initial in INITIAL_WEIGHTS:
        model = make_model("mlp", features.shape[1:], initial)
        fit(model, features[pairs], judgements, initial)
        with torch.no_grad():
            logits = model(features[pairs].flatten(0, 1)).reshape(-1, 2)
            loss = RISK(logits[:, 0], logits[:, 1], judgements[:, 0], judgements[:, 1])
            right = (logits.numpy() > 0) == positive
            predicted = model(features[test]).flatten().numpy() > 0
        truth = benchmark.positive[test]
        yield {
            "dataset": name,
            "prior": prior,
            "seed": seed,
            "pairs": n,
            "initial_weights": initial,
            "accuracy_stratified": f"{np.mean(predicted == truth):.4f}",
            "right_of_positives": f"{np.mean(predicted[truth]):.4f}",
            "right_of_negatives": f"{np.mean(~predicted[~truth]):.4f}",
            "right_in_pairs_of_same_class": f"{right[same].mean():.4f}",
            "right_in_pairs_of_different_class": f"{right[~same].mean():.4f}",
            "training_loss": f"{float(loss):.5f}",
        }


def fit(model: nn.Module, ends: torch.Tensor, judgements: torch.Tensor, seed: int) -> None:
    """An ordinary training loop; the seed determines the batches."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-5)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        order = torch.randperm(len(ends), generator=generator)
        for start in range(0, len(ends), BATCH):
            rows = order[start : start + BATCH]
            logits = model(ends[rows].flatten(0, 1)).reshape(-1, 2)
            loss = RISK(logits[:, 0], logits[:, 1], judgements[rows, 0], judgements[rows, 1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()


if __name__ == "__main__":
    main()
