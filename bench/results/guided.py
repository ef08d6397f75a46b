"""The likelihood alone and guided, on pairs with which a run of it ended mirrored.

    python bench/results/guided.py DATA

DATA is the folder of the data sets. On the pairs of each such run both train from other initial
weights, as `likelihood-abs` and `likelihood-guided` of `pairlearn bench run` do; from which is in
`CASES`. Writes runs/guided.csv; float32, on a CPU, some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pairlearn import make_risk
from pairlearn.estimators.orientation import guiding_prior
from pairlearn.judgements import Judgements
from pairlearn_bench import to_csv
from pairlearn_bench.benchmark import Benchmark
from pairlearn_bench.data import load
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.fleet import Fleet, Group, Member, TestSet
from pairlearn_bench.simulated import judge

CASES = [
    ("optdigits", 0.2, 2, 120, range(6)),
    ("kmnist", 0.8, 1, 1500, (1,)),
    ("kmnist", 0.8, 0, 1500, (1, 5)),
]
"""Data set, class prior, seed, pairs, and initial weights."""
EPOCHS, BATCH, WINDOW = 200, 256, 10
RISK = make_risk("likelihood-abs")


def main() -> None:
    """Train and measure every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    rows: list[dict[str, float | str]] = []
    for case in CASES:
        rows += measured(*case, data)
        out = Path(__file__).parent / "runs" / "guided.csv"
        out.write_text(to_csv(rows), encoding="utf-8")


def measured(
    name: str, prior: float, seed: int, n: int, initials: Sequence[int], data: Path
) -> Iterator[dict[str, float | str]]:
    """One row for each method and set of initial weights, on the same pairs and judgements."""
    benchmark = Benchmark(load(name, data), "mlp", "cpu", "float32")
    (posteriors,) = benchmark.annotate([(seed, None)]).values()
    train, test = benchmark.rows(seed)
    pairs = train[sample_pairs(benchmark.positive[train], n, prior, seed)]
    judgements = judge(posteriors, pairs).to_array()
    classes = benchmark.dataset.y[test]
    chosen = subset_at_prior(
        benchmark.positive[test], prior, "stratified", classes=classes, seed=seed
    )
    subset = TestSet(test, benchmark.positive[test], {"stratified": chosen})
    guide = guiding_prior(
        np.asarray(benchmark.features), Judgements.from_pairs(pairs, judgements), seed
    )
    methods = {"likelihood-abs": None, "likelihood-guided": guide}
    kinds = [(method, initial) for method in methods for initial in initials]
    members = [Member(RISK, judgements, 1e-3, 1e-5, k, guiding_prior=methods[m]) for m, k in kinds]
    fleet = Fleet(benchmark.features, [Group(pairs, members, seed, subset)], batch_size=BATCH)
    accuracy = fleet.fit(EPOCHS, window=WINDOW)["stratified"].mean(0)[0]
    positive = benchmark.positive[pairs]
    same = positive[:, 0] == positive[:, 1]
    logits = fleet.logits(pairs.ravel())[0].cpu().numpy().reshape(len(kinds), -1, 2)
    for (method, initial), score, z in zip(kinds, accuracy, logits, strict=True):
        right = (z > 0) == positive
        yield {
            "dataset": name,
            "prior": prior,
            "seed": seed,
            "pairs": n,
            "method": method,
            "initial_weights": initial,
            "accuracy_stratified": f"{score:.4f}",
            "right_in_pairs_of_same_class": f"{right[same].mean():.4f}",
            "right_in_pairs_of_different_class": f"{right[~same].mean():.4f}",
        }


if __name__ == "__main__":
    main()
