"""What items that nobody judged are worth: 100 pairs and 5,000 items of three data sets.

Pairs of 200 of the items are judged by a network that was trained on all labels for ten epochs.
One classifier is fitted to them alone and one with the other items too; both are measured on the
rest of the data set. "linear" has 20 normal features and a linear rule: neighbours are of little
use there, and the held-out check should say so.

    python bench/speed/unjudged.py --data FOLDER --seeds 10
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier

from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn_bench.data import as_features, load

ITEMS = 5000


def instances(name: str, data: str | None) -> tuple[Any, Any]:
    """Features and classes of a whole data set."""
    if name == "linear":
        rng = np.random.default_rng(0)
        x = rng.normal(size=(8000, 20)).astype(np.float32)
        return x, x @ rng.normal(size=20) > 0
    dataset = load(name, data=data)
    return as_features(dataset.x, dataset.spec), dataset.spec.is_positive(dataset.y)


def accuracies(name: str, seed: int, pairs: int, data: str | None) -> tuple[float, float, int]:
    """Accuracy without and with unjudged items, and how many of these were used."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # ten epochs are as in the paper's protocol
    x, positive = instances(name, data)
    scaled = (x - x.mean(0)) / np.maximum(x.std(0), 1e-6)
    teacher = MLPClassifier((300, 300, 300), max_iter=10, random_state=0)
    order = np.random.default_rng(seed).permutation(len(x))
    items, test = order[:ITEMS], order[ITEMS:]
    r = teacher.fit(scaled, positive).predict_proba(scaled[items])[:, 1]
    ends = np.arange(2 * pairs).reshape(-1, 2)
    judgements = Judgements.from_pairs(ends, PairLabels.from_posteriors(*r[ends].T))
    values = []
    for unjudged in ("ignore", "auto"):
        model = PairClassifier(unjudged=unjudged, random_state=seed).fit(x[items], judgements)
        values.append(float(((model.predict(x[test]) > 0) == positive[test]).mean()))
    return values[0], values[1], model.unjudged_


def main() -> None:
    """Print a row for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sets", nargs="+", default=["optdigits", "pendigits", "letter", "linear"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--data", default=None, help="folder with the data sets")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.workers, get_context("spawn")) as pool:
        for name in args.sets:
            runs = [
                pool.submit(accuracies, name, seed, args.pairs, args.data)
                for seed in range(args.first, args.first + args.seeds)
            ]
            without, with_them, used = np.array([run.result() for run in runs]).T
            gain = with_them - without
            print(
                f"{name:10} without {without.mean():.4f}  with {with_them.mean():.4f}  gain "
                f"{gain.mean():+.4f} (least {gain.min():+.4f})  used in {int((used > 0).sum())} "
                f"of {len(used)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
