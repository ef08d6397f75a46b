"""Measure what statements about classes teach, beside labels drawn from the same annotator.

    python bench/speed/classes.py optdigits pendigits --pairs 1000 --seeds 5
    python bench/speed/classes.py --steps --coverage

The annotator is the network of the paper with one output for each class, after ten epochs on all
training labels; its posteriors are what is asked for. A quarter of the questions is about a class
drawn uniformly; before each other quarter a quick model of the answers so far proposes the class
of each question (`propose_sets`). "Half the classes" is a random set of half of them for each pair,
which needs no model. All networks are "mlp-bn" with the recipe that `PairClassifier` takes.
Accuracies are those on the test split. ``--steps`` times a step with ten classes beside one with
two. ``--coverage`` counts how often intervals without labels contain the accuracy, over 1,000
tables of 500 statements about items whose posteriors are drawn from a Dirichlet distribution.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from pairlearn import PairClassifier
from pairlearn.estimators.parameters import recipe_of
from pairlearn.evaluation import estimate_class_accuracy
from pairlearn.judgements import Judgements
from pairlearn.judgements.sets import join_set, propose_sets
from pairlearn.labels import PairLabels
from pairlearn.risks import PairLikelihood
from pairlearn.training import Objective, Recipe, train
from pairlearn.training.learner import Learner
from pairlearn.training.trainer import module_logits
from pairlearn_bench.data import load, split_indices
from pairlearn_bench.data.dataset import as_features

UNIFORM = 0.1
"""Share of uniform questions among those that a model proposes, as `propose_sets` has it."""
ROUNDS = 4
"""Rounds of questions: the first is uniform, and a quick model of all before proposes the next."""
QUICK = 0.3
"""Share of the epochs that a quick model trains for."""


def labels_of(items: Any, y: Any, classes: int) -> Judgements:
    """Ordinary labels of items."""
    rows = Judgements.about_items("label", items, np.ones(len(items)), about=y)
    return rows.of_classes(range(classes))


def soft_labels_of(items: Any, r: Any) -> Judgements:
    """The posteriors of items: each class with its probability as a weight."""
    n, k = r.shape
    place, about = (index.ravel() for index in np.indices((n, k)))
    weight = r[place, about] * k
    kept = weight > 1e-3
    rows = Judgements.about_items(
        "label", items[place[kept]], np.ones(int(kept.sum())), weight[kept], about=about[kept]
    )
    return rows.of_classes(range(k))


def asked(ends: Any, about: Any, q: Any, r: Any, rng: np.random.Generator | None) -> Judgements:
    """Answers about one class of each pair: soft, or drawn where there is a generator."""
    return _answers(r[ends, about[:, None]], ends, about, q, r, rng)


def asked_half(ends: Any, members: Any, r: Any, rng: np.random.Generator | None) -> Judgements:
    """The same about a set of classes of each pair, given by masks (n, K)."""
    about = [join_set(map(str, np.flatnonzero(mask))) for mask in members]
    p = (r[ends] * members[:, None]).sum(-1).clip(0, 1)
    return _answers(p, ends, about, None, r, rng)


def _answers(p: Any, ends: Any, about: Any, q: Any, r: Any, rng: Any) -> Judgements:
    if rng is not None:
        p = (rng.random(p.shape) < p).astype(np.float64)
    labels = PairLabels.from_posteriors(*p.T)
    return Judgements.from_pairs(ends, labels, about=about, q=q).of_classes(range(r.shape[1]))


def fit(x: Any, rows: Judgements, seed: int, model: str = "mlp-bn", passes: float = 1.0) -> Any:
    """Posteriors of all items by a network trained with the likelihood."""
    packed = rows.packed(seed)
    recipe = recipe_of(PairClassifier(), model, len(packed), seed, passes)
    trained = train(x, packed, PairLikelihood(correction="abs"), model, recipe)
    return softmax(module_logits(trained.module, x)[:, trained.order], 1)


def measure(
    name: str, pairs: int, seed: int, only: list[str], share: float = UNIFORM
) -> dict[str, float]:
    """Test accuracies of one seed, of all tables or `only` some."""
    dataset = load(name)
    order = np.concatenate([np.arange(len(dataset.y))[p] for p in split_indices(dataset, seed)])
    x = as_features(dataset.x[order], dataset.spec)
    x = (x - x.mean(0)) / (x.std(0) + 1e-3)
    y, train_items = dataset.y[order].astype(int), np.arange(dataset.spec.n_train)
    classes, test = int(y.max()) + 1, np.arange(len(train_items), len(y))
    rng = np.random.default_rng(seed)
    recipe = Recipe(10, 256, 1e-3, 0.0, 20, seed=seed)
    annotator = train(
        x, labels_of(train_items, y[train_items], classes).packed(seed), PairLikelihood(), "mlp",
        recipe,
    )  # fmt: skip
    r = softmax(module_logits(annotator.module, x), 1)
    ends = rng.permutation(train_items)[: 2 * pairs].reshape(pairs, 2)
    about, q = rng.integers(classes, size=pairs), np.full(pairs, 1 / classes)
    proposed, q_proposed = about.copy(), q.copy()
    rounds = ROUNDS if not only or any("proposed" in title for title in only) else 0
    for past in np.arange(1, rounds) * (pairs // ROUNDS):
        answers = asked(ends[:past], proposed[:past], q_proposed[:past], r, None)
        quick = fit(x, answers, seed, "mlp-small", QUICK)
        rest = propose_sets(quick, ends[past:], share, seed)
        proposed[past:], q_proposed[past:] = rest
    drawn = (rng.random((len(r), 1)) > r.cumsum(1)).sum(1).clip(0, classes - 1)
    other = np.random.default_rng([seed, 1])
    half = other.random((pairs, classes)).argsort(1) < classes // 2
    several = [asked(ends, np.full(pairs, k), np.ones(pairs), r, None) for k in range(classes)]
    tables: dict[str, Callable[[], Judgements]] = {
        "labels of n": lambda: labels_of(ends[:, 0], drawn[ends[:, 0]], classes),
        "labels of 2n": lambda: labels_of(ends.ravel(), drawn[ends.ravel()], classes),
        "soft labels of 2n": lambda: soft_labels_of(ends.ravel(), r[ends.ravel()]),
        "proposed, soft": lambda: asked(ends, proposed, q_proposed, r, None),
        "proposed, hard": lambda: asked(ends, proposed, q_proposed, r, rng),
        "uniform, soft": lambda: asked(ends, about, q, r, None),
        "half the classes, soft": lambda: asked_half(ends, half, r, None),
        "half the classes, hard": lambda: asked_half(ends, half, r, other),
        "all classes, soft": lambda: Judgements.concatenate(several),
    }
    found = {"annotator": float((r[test].argmax(1) == y[test]).mean())}
    for title, make in tables.items():
        if only and title not in only:
            continue
        found[title] = float((fit(x, make(), seed)[test].argmax(1) == y[test]).mean())
    return found


def steps() -> None:
    """Time of a step of mlp-bn, batch 256, with ten classes and with two."""
    rng, n = np.random.default_rng(0), 256 * 40
    x = rng.normal(size=(2 * n, 64)).astype(np.float32)
    ends, labels = np.arange(2 * n).reshape(n, 2), PairLabels.from_posteriors(*rng.random((2, n)))
    binary = Judgements.from_pairs(ends, labels)
    ten = Judgements.from_pairs(ends, labels, about=rng.integers(10, size=n)).of_classes(range(10))
    learners = [
        Learner(
            x, rows, Objective(PairLikelihood(correction="abs"), rows.kinds()), "mlp-bn",
            Recipe(1, 256, 1e-3, 0.0, 20),
        )
        for rows in (binary, ten)
    ]  # fmt: skip
    times: list[list[float]] = [[], []]
    for _ in range(7):  # alternating, so that a busy machine slows both
        for learner, seconds in zip(learners, times, strict=True):
            start = time.perf_counter()
            learner.train_epoch()
            seconds.append((time.perf_counter() - start) / 40)
    two, several = (float(np.min(seconds)) for seconds in times)
    print(f"a step: {1e3 * two:.2f} ms with two classes, {1e3 * several:.2f} ms with ten, "
          f"{several / two:.2f} times")  # fmt: skip


def coverage(tables: int = 1000, statements: int = 500) -> None:
    """How often the interval contains the accuracy, for classes drawn uniformly and proposed."""
    for classes, sharpness in ((3, 0.9), (5, 0.9), (10, 1.0)):
        rng = np.random.default_rng(classes)
        shares = rng.dirichlet(np.full(classes, 4.0)) * sharpness

        def draw(count: int, shares: Any = shares, rng: Any = rng) -> tuple[Any, Any]:
            r = rng.dirichlet(shares, count)
            return r, softmax(np.log(r + 1e-9) + 1.5 * rng.normal(size=r.shape), 1)

        r, p = draw(400_000)
        truth = float(r[np.arange(len(r)), p.argmax(1)].mean())
        for way in ("uniform", "proposed"):
            held, widths, values = 0, 0.0, []
            for table in range(tables):
                r, p = draw(2 * statements)
                ends = np.arange(2 * statements).reshape(-1, 2)
                k, q = rng.integers(classes, size=statements), np.full(statements, 1 / classes)
                if way == "proposed":
                    k, q = propose_sets(p, ends, 0.3, table)
                found = estimate_class_accuracy(*p[ends.T], asked(ends, k, q, r, None))
                held += found.low <= truth <= found.high
                widths += (found.high - found.low) / tables
                values.append(found.value)
            print(
                f"{classes:>2} classes, {way:<8}  true {truth:.3f}, mean estimate "
                f"{np.mean(values):.3f}, width {widths:.3f}, coverage {held / tables:.1%}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="tables, by title")
    parser.add_argument("--share", type=float, default=UNIFORM, help="of uniform questions")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.steps:
        steps()
    if options.coverage:
        coverage()
    for name in options.datasets:
        rows = []
        for seed in range(options.seeds):
            rows.append(measure(name, options.pairs, seed, options.only, options.share))
            print(f"{name} seed {seed}: {rows[-1]}", flush=True)
        base = np.array([row["labels of n"] for row in rows])
        print(f"{name}, {options.pairs:,} pairs, {len(rows)} seeds: accuracy, less labels of n")
        for title in rows[0]:
            values = np.array([row[title] for row in rows])
            error = (values - base).std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
            print(f"  {title:<22} {values.mean():.4f}  {(values - base).mean():+.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()
