"""What PairClassifier reaches with its defaults, and how long it takes.

    python bench/speed/practice.py --data DIR [--seeds 5] [--json]

Optdigits, Pendigits and Letter: 1,200, 2,500 and 4,000 pairs at prior 0.2, judged by the
paper's annotator, tested on the stratified test subset at 0.2. Then Pendigits with half of
the similarities and half of the differences removed, every pair keeping at least one;
breast cancer with few pairs; two moons whose annotator has a balanced population in mind,
while pairs and test are at prior 0.1; and Letter with gradient boosting as the model.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

from pairlearn import PairLabels
from pairlearn.estimators import PairClassifier
from pairlearn.randomness import permutation, stream
from pairlearn_bench.data import as_features, load, split_indices
from pairlearn_bench.data.sampling import sample_pairs, subset_at_prior
from pairlearn_bench.simulated import Annotator, judge, train_annotators

PRIOR = 0.2
Task = tuple[NDArray[Any], NDArray[np.int64], PairLabels, NDArray[Any], NDArray[np.bool_]]


def benchmark_task(
    name: str,
    data: Path | None,
    seed: int,
    *,
    prior: float = PRIOR,
    pairs: int | None = None,
    at_prior: bool = True,
) -> Task:
    """Features, pairs, labels, test instances and their classes, the last two at the prior."""
    dataset = load(name, data)
    spec = dataset.spec
    x, positive = as_features(dataset.x, spec), spec.is_positive(dataset.y)
    train, test = (np.arange(len(positive))[part] for part in split_indices(dataset, seed))
    (posteriors,) = train_annotators(
        x,
        [Annotator(train, positive[train], seed)],
        batch_size=spec.batch_size,
        learning_rate=spec.learning_rate,
        weight_decay=spec.weight_decay,
        device="cpu",
    )
    ends = train[sample_pairs(positive[train], pairs or spec.n_pairs, prior, seed)]
    if at_prior:
        test = test[subset_at_prior(positive[test], prior, classes=dataset.y[test], seed=seed)]
    return x, ends, judge(posteriors, ends), x[test], positive[test]


def halved(labels: PairLabels, seed: int) -> PairLabels:
    """Half of the similarities and half of the differences, at least one of each pair."""
    n = len(labels)
    order = permutation(stream(seed, "halved"), n)
    similarity, difference = np.array(labels.similarity), np.array(labels.difference)
    similarity[order[: n // 2]] = np.nan
    difference[order[n // 2 :]] = np.nan
    return PairLabels(similarity, difference)


def few_pairs_task(n: int, seed: int) -> Task:
    """Breast cancer, with an annotator that was trained on 400 of the instances."""
    x, y = load_breast_cancer(return_X_y=True)
    positive = y == 0
    order = permutation(stream(seed, "split"), len(y))
    train, test = order[:400], order[400:]
    scaled = ((x - x[train].mean(0)) / x[train].std(0)).astype(np.float32)
    annotator = Annotator(train, positive[train], seed)
    (posteriors,) = train_annotators(scaled, [annotator], epochs=20, batch_size=64, device="cpu")
    pairs = train[: 2 * n].reshape(n, 2)
    return x, pairs, judge(posteriors, pairs), x[test], positive[test]


def moons_task(seed: int, n: int = 2_000, prior: float = 0.1) -> dict[str, Any]:
    """Two moons judged by balanced posteriors, tested at prior 0.1."""
    x, y = make_moons(40_000, noise=0.3, random_state=seed)
    x, positive = x.astype(np.float32), y == 1
    balanced = MLPClassifier((50, 50), max_iter=60, random_state=seed).fit(x[:20_000], y[:20_000])
    rows = 20_000 + sample_pairs(positive[20_000:30_000], n, prior, seed)
    rest = 30_000 + subset_at_prior(positive[30_000:], prior, seed=seed)
    r = balanced.predict_proba(x)[:, 1]
    return {
        "pairs": x[rows],
        "labels": PairLabels.from_posteriors(*r[rows].T),
        "classes": y[rows],
        "test": x[rest],
        "positive": positive[rest],
        "ceiling": float(((r[rest] > 1 - prior) == positive[rest]).mean()),
    }


def accuracy(classifier: Any, x: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    return float(((classifier.predict(x) == 1) == positive).mean())


def fitted(task: Task, seed: int, labels: PairLabels | None = None, **options: Any) -> list[float]:
    """Accuracy and seconds."""
    x, pairs, judged, test, positive = task
    start = time.perf_counter()
    classifier = PairClassifier(preprocessor=x, random_state=seed, **options)
    classifier.fit(pairs, judged if labels is None else labels)
    seconds = time.perf_counter() - start
    return [accuracy(classifier, test, positive), seconds]


def moons(seed: int) -> list[float]:
    """Accuracy with target_prior, without, supervised, of the annotator."""
    task = moons_task(seed)
    pairs, labels = task["pairs"], task["labels"]
    shifted = PairClassifier(prior=0.1, target_prior=0.1, random_state=seed).fit(pairs, labels)
    plain = PairClassifier(prior=0.1, random_state=seed).fit(pairs, labels)
    instances, classes = pairs.reshape(-1, 2), task["classes"].reshape(-1)
    supervised = MLPClassifier((50, 50), max_iter=200, early_stopping=True, random_state=seed)
    supervised.fit(instances, classes)
    test = task["test"], task["positive"]
    three = [accuracy(classifier, *test) for classifier in (shifted, plain, supervised)]
    return [*three, task["ceiling"]]


def over_seeds(run: Callable[[int], list[float]], seeds: int) -> list[float]:
    return np.mean([run(seed) for seed in range(seeds)], axis=0).round(4).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("defaults", "halved", "few", "moons", "trees"))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    report: dict[str, list[float]] = {}

    def note(name: str, columns: str, run: Callable[[int], list[float]]) -> None:
        report[name] = over_seeds(run, args.seeds)
        if not args.json:
            print(f"{name:<24} {columns}: {report[name]}", flush=True)

    if args.only in (None, "defaults"):
        for name in ("optdigits", "pendigits", "letter"):
            note(
                name,
                "accuracy, seconds",
                lambda seed, name=name: fitted(benchmark_task(name, args.data, seed), seed),
            )
    if args.only in (None, "halved"):

        def half(seed: int) -> list[float]:
            task = benchmark_task("pendigits", args.data, seed)
            return fitted(task, seed, halved(task[2], seed))

        note("pendigits, half missing", "accuracy, seconds", half)
    if args.only in (None, "few"):
        for n in (30, 100, 200):
            note(
                f"breast cancer, {n} pairs",
                "accuracy, seconds",
                lambda seed, n=n: fitted(few_pairs_task(n, seed), seed),
            )
    if args.only in (None, "moons"):
        note("two moons", "target_prior, none, supervised, annotator at .1", moons)
    if args.only in (None, "trees"):
        trees = HistGradientBoostingClassifier(random_state=0)
        note(
            "letter, gradient boosting",
            "accuracy, seconds",
            lambda seed: fitted(benchmark_task("letter", args.data, seed), seed, model=trees),
        )
    if args.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
