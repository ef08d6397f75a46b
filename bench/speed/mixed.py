"""Statements of all kinds in one table, beside each kind alone.

    python bench/speed/mixed.py --data FOLDER [--seeds 5] [--sets optdigits pendigits letter]

Of 2,000 items: 100 pairs with soft answers, 100 with "the same class or not", 100 comparisons, 20
labels, and the shares of positives of two groups of 200 items each. Soft answers are those of a
network that was trained on all labels for ten epochs, hard ones are drawn from them. Accuracy is
that on the rest of the data set. Parts that leave the level or the side open are given the prior.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier

from pairlearn import Judgements, PairClassifier
from pairlearn.judgements.kinds import kind
from pairlearn_bench.data import as_features, load

ITEMS = 2000
PAIRS = {"both": 100, "same": 100, "comparison": 100}
LABELS, GROUPED = 20, 400


def parts_of(r: Any, rng: np.random.Generator) -> dict[str, Judgements]:
    """Each part of the table, about items of its own."""
    order = iter(rng.permutation(len(r)))
    parts = {}
    for name, count in PAIRS.items():
        ends = np.array([[next(order), next(order)] for _ in range(count)])
        u, v = kind(name).simulate(*r[ends].T, rng).T
        names = [column.name for column in kind(name).columns]
        parts[name] = Judgements.from_columns(ends, dict(zip(names, (u, v), strict=False)))
    for name, count in (("label", LABELS), ("group", GROUPED)):
        items = np.array([next(order) for _ in range(count)])
        values = kind(name).simulate(r[items], r[items], rng)
        parts[name] = Judgements.about_items(name, items, values)
    return parts


def accuracies(name: str, seed: int, data: str | None, options: dict[str, Any]) -> dict[str, float]:
    """Test accuracy of each part, and of all of them together."""
    loaded = load(name, data=data)
    x, positive = as_features(loaded.x, loaded.spec), loaded.spec.is_positive(loaded.y)
    scaled = (x - x.mean(0)) / np.maximum(x.std(0), 1e-6)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    items, test = order[:ITEMS], order[ITEMS:]
    teacher = MLPClassifier((300, 300, 300), max_iter=10, random_state=0).fit(scaled, positive)
    parts = parts_of(teacher.predict_proba(scaled[items])[:, 1], rng)
    tables = {**parts, "all": Judgements.concatenate(list(parts.values()))}
    results = {}
    for title, rows in tables.items():
        fixed = frozenset().union(*(kind(name).fixes(False) for name in rows.kinds()))
        known = {} if fixed >= {"level", "side"} else {"prior": float(positive[items].mean())}
        model = PairClassifier(random_state=seed, **options, **known).fit(x[items], rows)
        results[title] = float(((model.predict(x[test]) > 0) == positive[test]).mean())
    return results


def main() -> None:
    """Print a line for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sets", nargs="+", default=["optdigits", "pendigits", "letter"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--data", default=None, help="folder with the data sets")
    parser.add_argument("--unjudged", default="auto")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in args.sets:
        options = {"unjudged": args.unjudged}
        runs = [
            accuracies(name, seed, args.data, options)
            for seed in range(args.first, args.first + args.seeds)
        ]
        means = {title: np.mean([run[title] for run in runs]) for title in runs[0]}
        text = "  ".join(f"{title} {mean:.4f}" for title, mean in means.items())
        better = sum(run["all"] > max(v for k, v in run.items() if k != "all") for run in runs)
        print(f"{name:10} {text}  best in {better} of {len(runs)}", flush=True)


if __name__ == "__main__":
    main()
