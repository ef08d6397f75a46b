"""Guidance against one and two unguided starts, on sets and questions it was not chosen on.

    python bench/results/starts.py run DATA
    python bench/results/starts.py table

On every table of pairs three networks learn: the likelihood from two sets of initial weights, and
the guided one from the first of them. Of the two starts, the one with the smaller loss on the pairs
is kept. The network has two hidden layers of 100, and 200 epochs; the annotator is one like it,
trained for 50 epochs on the classes of the training split. ``run`` writes runs/starts.csv in
float32 on a CPU, in two minutes; ``table`` prints the counts that build.py puts into README.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, make_classification

from pairlearn import make_risk
from pairlearn.estimators.orientation import guiding_prior
from pairlearn.judgements import Judgements
from pairlearn_bench import to_csv
from pairlearn_bench.data import load
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.fleet import Fleet, Group, Member, TestSet
from pairlearn_bench.runs import grouped
from pairlearn_bench.simulated import Annotator, judge, train_annotators
from pairlearn_bench.tables import aligned

RESULTS = Path(__file__).parent
FILE = RESULTS / "runs" / "starts.csv"
PRIORS, SIZES, SEEDS = (0.2, 0.8), (40, 90), range(12)
MODEL, ANNOTATOR_EPOCHS, EPOCHS, BATCH, WINDOW = "mlp-small", 50, 200, 256, 10
STARTS = {"first": 0, "second": 1, "guided": 0}
"""The networks of a table, and the number of their initial weights."""
RISK = make_risk("likelihood-abs")


def main() -> None:
    """Run or tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("data", type=Path)
    commands.add_parser("table")
    args = parser.parse_args()
    if args.command == "table":
        print(table())
        return
    rows: list[dict[str, float | str]] = []
    for name, (x, positive) in data_sets(args.data).items():
        rows += measured(name, x.astype(np.float32), positive)
        FILE.write_text(to_csv(rows), encoding="utf-8")
        print(name, "done", flush=True)


def data_sets(data: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features, and which items are positive."""
    cancer, digits = load_breast_cancer(), load_digits()
    pens = load("pendigits", data)
    made = make_classification(
        4000, 20, n_informative=6, n_clusters_per_class=3, class_sep=1.5, random_state=0
    )
    return {
        "Breast cancer": (cancer.data, cancer.target == 0),
        "Digits, 5 or more": (digits.data, digits.target > 4),
        "Pendigits, 5 or more": (pens.x, pens.y > 4),
        "Three clusters a class": (made[0], made[1] == 1),
    }


def measured(
    name: str, features: np.ndarray, positive: np.ndarray
) -> Iterator[dict[str, float | str]]:
    """One row for each table of pairs: accuracies of the networks, and losses of the two starts."""
    splits = []
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(positive))
        splits.append(np.split(order, [len(order) * 4 // 5]))
    annotators = [
        Annotator(train, positive[train], seed)
        for seed, (train, _) in zip(SEEDS, splits, strict=True)
    ]
    posteriors = train_annotators(
        features, annotators, MODEL, epochs=ANNOTATOR_EPOCHS, device="cpu"
    )
    for prior in PRIORS:
        for n in SIZES:
            groups = []
            for seed, (train, test), r in zip(SEEDS, splits, posteriors, strict=True):
                pairs = train[sample_pairs(positive[train], n, prior, seed)]
                labels = judge(r, pairs).to_array()
                guide = guiding_prior(features, Judgements.from_pairs(pairs, labels), seed)
                members = [
                    Member(
                        *(RISK, labels),
                        seed=len(SEEDS) * start + seed,
                        guiding_prior=guide if start_name == "guided" else None,
                    )
                    for start_name, start in STARTS.items()
                ]
                kept = subset_at_prior(
                    positive[test], prior, "stratified", classes=positive[test], seed=seed
                )
                subset = TestSet(test, positive[test], {"stratified": kept})
                groups.append(Group(pairs, members, seed, subset))
            place = {"dataset": name, "prior": prior, "pairs": n}
            yield from ({**place, **row} for row in trained(features, groups))


def trained(features: np.ndarray, groups: list[Group]) -> Iterator[dict[str, float | str]]:
    """Train the networks of some tables together."""
    fleet = Fleet(features, groups, MODEL, batch_size=BATCH, device="cpu")
    accuracies = fleet.fit(EPOCHS, window=WINDOW)["stratified"].mean(0)
    for g, (group, accuracy) in enumerate(zip(groups, accuracies, strict=True)):
        logits = fleet.logits(group.pairs.ravel())[g].double().reshape(len(STARTS), -1, 2)
        labels = torch.as_tensor(np.asarray(group.members[0].labels), dtype=torch.float64)
        losses = [float(RISK(z[:, 0], z[:, 1], *labels.T)) for z in logits]
        scores = {f"accuracy_{k}": f"{a:.4f}" for k, a in zip(STARTS, accuracy, strict=True)}
        on_pairs = {f"loss_{k}": f"{v:.6f}" for k, v in zip(STARTS, losses, strict=True)}
        yield {"seed": group.seed} | scores | on_pairs


def table() -> str:
    """How many networks of each kind ended mirrored, and their mean accuracy."""
    with FILE.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    for row in found:
        better = min(("first", "second"), key=lambda start: float(row[f"loss_{start}"]))
        row["accuracy_better"] = row[f"accuracy_{better}"]
    titles = {"first": "one start", "better": "better of two", "guided": "guided"}
    rows = []
    for name, here in [*grouped(found, lambda row: row["dataset"]).items(), ("All", found)]:
        cells = []
        for kind in titles:
            values = [float(row[f"accuracy_{kind}"]) for row in here]
            cells += [str(sum(value < 0.5 for value in values)), f"{fmean(values):.4f}"]
        both = [(float(r["accuracy_guided"]), float(r["accuracy_first"])) for r in here]
        gaps = [guided - first for guided, first in both if min(guided, first) >= 0.5]
        rows.append([name, str(len(here)), *cells, f"{fmean(gaps):+.4f}"])
    header = ["data set", "tables"]
    header += [word for title in titles.values() for word in (f"{title}: mirrored", "accuracy")]
    header.append("guided less one start, neither mirrored")
    return aligned(header, rows)


if __name__ == "__main__":
    main()
