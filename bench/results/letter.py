"""Letter with other scalings, splits and without batch norm: what lowers the unbiased rows.

    python bench/results/letter.py DATA [--device cuda]

DATA is the folder of the data sets. Writes runs/letter-variants.csv: float32, five seeds, 200
epochs, the paper's test subset; about ten seconds a variant on one H200, which made it.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np

from pairlearn import make_risk
from pairlearn.models import MLP, make_model
from pairlearn_bench.data import Dataset, as_features, load, split_indices
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.fleet import Fleet, Group, Member, TestSet, fleet
from pairlearn_bench.simulated import Annotator, judge, train_annotators

METHODS = (
    *("sconfconfdiff-none", "confdiff-none", "convex-0.5-none", "convex-0.5-relu"),
    *("sconfconfdiff-abs", "confdiff-abs", "likelihood-abs", "supervised"),
)
PRIORS, SEEDS, EPOCHS, PAIRS = (0.2, 0.5), range(5), 200, 4000


@dataclass(frozen=True)
class Variant:
    """A variant: scale of the features, batch norm of the input, split."""

    name: str
    scale: str = "raw"
    norm: bool = True
    split: str = "by class"


VARIANTS = (
    Variant("as published by us"),
    Variant("no batch norm, features 0 to 15", norm=False),
    Variant("no batch norm, features 0 to 1", "unit", norm=False),
    Variant("no batch norm, standardised", "standard", norm=False),
    Variant("features 0 to 1", "unit"),
    Variant("first 16,000 rows for training", split="first"),
)


def main() -> None:
    """Train and measure every variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    dataset = load("letter", args.data)
    rows = [row for variant in VARIANTS for row in measured(dataset, variant, args.device)]
    out = Path(__file__).parent / "runs" / "letter-variants.csv"
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def measured(
    dataset: Dataset, variant: Variant, device: str
) -> Iterator[dict[str, str | float | int]]:
    """Means and standard deviations over the seeds, of the annotator and of every method."""
    x = scaled(as_features(dataset.x, dataset.spec), variant.scale)
    positive = dataset.spec.is_positive(dataset.y)
    splits = [split(dataset, variant.split, seed) for seed in SEEDS]
    with batch_norm(variant.norm):
        who = [Annotator(train, positive[train], s) for s, (train, _) in enumerate(splits)]
        posteriors = train_annotators(x, who, "mlp", device=device)
        for prior in PRIORS:
            methods = [m for m in METHODS if prior != 0.5 or not m.startswith("convex")]
            groups, annotators = [], []
            for seed, (train, test) in enumerate(splits):
                pairs = train[sample_pairs(positive[train], PAIRS, prior, seed)]
                labels = judge(posteriors[seed], pairs).to_array()
                subset = subset_at_prior(positive[test], prior, "paper")
                right = (posteriors[seed][test[subset]] > 0.5) == positive[test[subset]]
                annotators.append(float(right.mean()))
                members = [
                    Member(
                        make_risk(name, prior=prior),
                        positive[pairs] if name == "supervised" else labels,
                        seed=seed,
                    )
                    for name in methods
                ]
                test_set = TestSet(test, positive[test], {"paper": subset})
                groups.append(Group(pairs, members, seed, test_set))
            trained = Fleet(x, groups, "mlp", batch_size=256, device=device, compiled=False)
            accuracy = trained.fit(EPOCHS, window=10)["paper"].mean(0)
            for k, name in enumerate(["annotator", *methods]):
                values = annotators if k == 0 else accuracy[:, k - 1].tolist()
                yield {
                    "variant": variant.name,
                    "prior": prior,
                    "method": name,
                    "mean": f"{fmean(values):.4f}",
                    "std": f"{pstdev(values):.4f}",
                    "seeds": len(values),
                    "epochs": EPOCHS,
                    "test_subset": "paper",
                }


def scaled(x: np.ndarray, scale: str) -> np.ndarray:
    """The features on another scale."""
    if scale == "unit":
        return (x / x.max()).astype(np.float32)
    if scale == "standard":
        return ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    return x


def split(dataset: Dataset, how: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for testing."""
    rows = np.arange(len(dataset.y))
    if how == "first":
        return rows[: dataset.spec.n_train], rows[dataset.spec.n_train :]
    train, test = split_indices(dataset, seed)
    return rows[train], rows[test]


@contextmanager
def batch_norm(kept: bool) -> Iterator[None]:
    """Fleets of the paper's network, or of the same one without batch norm."""

    def without(name: str, shape: tuple[int, ...], seed: int) -> MLP:
        state = make_model(name, shape, seed).state_dict()
        model = MLP(shape[0], norm="none")
        model.load_state_dict({key: state[key] for key in model.state_dict()})
        return model

    fleet.make_model = make_model if kept else without  # type: ignore[attr-defined]
    yield
    fleet.make_model = make_model  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
