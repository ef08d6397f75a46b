"""Rare classes: which threshold suits which annotators, beside labels of the same items.

    python bench/speed/rare.py [--tables 10] [--pairs 2000]

Items have two features, N(±1, 1) by class. Calibrated annotators see these features (features),
something else (private), or one feature and something else (both). A linear `PairClassifier` learns
from their answers about pairs of distinct items. Its decisions on 100,000 other items are

informed      positive above ½: the annotators knew everything that the model uses (the default)
independent   positive above π(1 − κ) + κ/2: their mistakes are unrelated to the model's
100 labels    whichever of these two has the smaller Brier score on 100 labelled items
best          above the threshold with the highest accuracy on those other items

and "labels" are those of a logistic regression of the classes of all items of the pairs. Each cell
is the mean of accuracy, recall and F1 over the tables.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from pairlearn import PairClassifier, PairLabels, estimate_accuracy
from pairlearn.evaluation import independent_probability, independent_threshold

PRIVATE = 1.5
"""Signal of what annotators know on their own; by itself, 93.3% right for equal classes."""
TEST, KNOWN = 100_000, 100


def draw(sort: str, prior: float, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Features, classes, and the annotator's probabilities."""
    y = rng.random(size) < prior
    side = np.where(y, 1.0, -1.0)
    x = rng.normal(side[:, None], 1, size=(size, 2))
    own = 2 * PRIVATE * rng.normal(side * PRIVATE, 1)
    seen = {"features": 2 * x.sum(1), "private": own, "both": 2 * x[:, 0] + own}[sort]
    return x, y, expit(seen + logit(prior))


def measures(decided: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, recall and F1."""
    hits = np.mean(decided & y)
    return np.mean(decided == y), hits / y.mean(), 2 * hits / (decided.mean() + y.mean())


def table(sort: str, prior: float, n: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Measures of each way to decide, with one table of pairs."""
    rng = np.random.default_rng([seed, round(1000 * prior)])
    x, y, r = draw(sort, prior, 2 * n, rng)
    pairs, labels = np.stack([x[:n], x[n:]], 1), PairLabels.from_posteriors(r[:n], r[n:])
    model = PairClassifier(model="linear", random_state=seed).fit(pairs, labels)
    z = model.decision_function(x)
    knowledge = estimate_accuracy(z[:n], z[n:], labels).knowledge.value
    share = float(expit(z).mean())
    cut = independent_threshold(share, knowledge)
    x_known, y_known, _ = draw(sort, prior, KNOWN, rng)
    informed = model.predict_proba(x_known)[:, 1]
    independent = independent_probability(informed, share, knowledge)
    brier = [np.mean((p - y_known) ** 2) for p in (informed, independent)]
    x_new, y_new, _ = draw(sort, prior, TEST, rng)
    p = model.predict_proba(x_new)[:, 1]
    order = np.argsort(-p)
    gained = np.cumsum(np.where(y_new[order], 1, -1))
    best = p[order[gained.argmax()]] if gained.max() > 0 else math.inf
    supervised = LogisticRegression().fit(x, y).predict(x_new)
    ways = {
        "informed": p > 0.5,
        "independent": p > cut,
        "100 labels": p > (cut if brier[1] < brier[0] else 0.5),
        "best": p >= best,
        "labels": supervised,
    }
    return {name: measures(decided, y_new) for name, decided in ways.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=2000)
    options = parser.parse_args()
    start = time.perf_counter()
    print(f"{options.tables} tables of {options.pairs} pairs: accuracy / recall / F1")
    print("positives  annotators  decision     accuracy  recall     F1")
    for prior in (0.4, 0.1, 0.03):
        for sort in ("features", "private", "both"):
            tables = [table(sort, prior, options.pairs, seed) for seed in range(options.tables)]
            for name in tables[0]:
                means = np.mean([one[name] for one in tables], axis=0)
                numbers = "   ".join(f"{value:.3f}" for value in means)
                print(f"{prior:<9g}  {sort:<10}  {name:<11}     {numbers}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
