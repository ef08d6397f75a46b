"""`compare` on Pendigits under label noise, beside the truth that it never sees.

    python bench/speed/compare_methods.py --data DIR [--seeds 5] [--epochs 15] [--json]

2,500 pairs at prior 0.2, judged by the paper's annotator, every judgement multiplied by a draw
from N(1, σ²), σ = 0.5, and not clipped. `compare` ranks candidates, by
three folds and 15 epochs, so that a table takes minutes on two cores.

The intervals are about the classifiers that were trained in the folds. The truth beside them
is therefore the mean, over the folds, of these classifiers' accuracies on the labelled test
split, at the same prior:

    0.2 × (share of positives decided positive) + 0.8 × (share of negatives decided negative),

all test instances of either class in use. That mean is itself from some 2,200 instances; its
standard error is reported, and coverage is counted twice: of the accuracy measured on the test
split, and with two of these standard errors allowed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from practice import PRIOR, benchmark_task

from pairlearn import PairClassifier, TrainingOptions
from pairlearn.comparison import compare, default_candidates
from pairlearn_bench.simulated import add_noise


class Truth:
    """Decisions of the folds' models on labelled instances."""

    def __init__(self, instances: NDArray[Any], positive: NDArray[np.bool_]) -> None:
        self.instances, self.positive = instances, positive
        self.right: dict[str, list[NDArray[np.bool_]]] = defaultdict(list)

    def add(self, models: Mapping[str, PairClassifier]) -> None:
        """Record the decisions of one fold's models."""
        for name, model in models.items():
            decided = model.decision_function(self.instances) > 0
            self.right[name].append(decided == self.positive)

    def of(self, name: str) -> tuple[float, float]:
        """Mean accuracy over the folds, and its standard error due to the test instances."""
        right = np.mean(self.right[name], axis=0)
        value = variance = 0.0
        for share, side in ((PRIOR, self.positive), (1 - PRIOR, ~self.positive)):
            value += share * right[side].mean()
            variance += share**2 * right[side].var() / side.sum()
        return float(value), float(np.sqrt(variance))


def study(data: Path | None, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """One comparison, with the truth beside every method."""
    x, pairs, labels, *test = benchmark_task("pendigits", data, seed, at_prior=False)
    truth = Truth(*test)
    start = time.perf_counter()
    training = TrainingOptions(batch_size=args.batch_size, device=args.device)
    options = {"epochs": args.epochs, "training": training}
    comparison = compare(
        default_candidates(risks=args.risks.split(","), random_state=seed, **options),
        pairs,
        add_noise(labels, args.sigma, seed),
        preprocessor=x,
        folds=args.folds,
        seed=seed,
    )
    for models in comparison.estimators:
        truth.add(models)
    rows = []
    for row in comparison.rows:
        value, error = truth.of(row.name)
        rows.append(row.to_dict() | {"truth": value, "standard_error": error})
    return {"seed": seed, "seconds": time.perf_counter() - start, "methods": rows}


def covers(row: dict[str, Any], allowed: float) -> bool:
    slack = allowed * row["standard_error"]
    interval = row["accuracy"]
    return bool(interval["low"] - slack <= row["truth"] <= interval["high"] + slack)


def summary(studies: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage over methods and seeds, the best methods, and the true gaps of ties."""
    rows = [row for study in studies for row in study["methods"]]
    best = [study["methods"][0] for study in studies]
    gaps = [
        (first["truth"] - row["truth"], row)
        for first, study in zip(best, studies, strict=True)
        for row in study["methods"][1:]
    ]
    inside = [row["difference"]["low"] <= -gap <= row["difference"]["high"] for gap, row in gaps]
    return {
        "first": [row["name"] for row in best],
        "accuracies": len(rows),
        "covered": float(np.mean([covers(row, 0) for row in rows])),
        "covered_with_test_error": float(np.mean([covers(row, 2) for row in rows])),
        "covered_of_the_first": float(np.mean([covers(row, 0) for row in best])),
        "differences_covered": float(np.mean(inside)),
        "ties_per_table": float(
            np.mean([sum(r["tie"] for r in study["methods"]) for study in studies])
        ),
        "largest_true_gap_of_a_tie": max((gap for gap, row in gaps if row["tie"]), default=0.0),
        "seconds": float(np.mean([study["seconds"] for study in studies])),
    }


def show(study: dict[str, Any]) -> None:
    print(f"\nseed {study['seed']} ({study['seconds']:.0f} s)")
    print(f"{'method':<20} {'accuracy':<20} {'less than the best by':<24}     truth")
    for row in study["methods"]:
        accuracy, difference = row["accuracy"], row["difference"]
        estimate = f"{accuracy['value']:.3f} [{accuracy['low']:.3f}, {accuracy['high']:.3f}]"
        lacks, least, most = (0 - difference[end] for end in ("value", "high", "low"))
        gap = f"{lacks:.3f} [{least:.3f}, {most:.3f}]"
        mark = "tie" if row["tie"] else "   "
        out = "" if covers(row, 0) else " outside"
        print(
            f"{row['name']:<20} {estimate:<20} {gap:<24} {mark} {row['truth']:.3f}{out}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--sigma", type=float, default=0.5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--risks", default="likelihood-abs,sconfconfdiff-abs,confdiff-abs")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    studies = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        studies.append(study(args.data, seed, args))
        if not args.json:
            show(studies[-1])
    report = {"summary": summary(studies), "studies": studies}
    print(json.dumps(report if args.json else report["summary"], indent=1))


if __name__ == "__main__":
    main()
