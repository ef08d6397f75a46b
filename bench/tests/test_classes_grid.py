"""The grid of questions about a data set's own classes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pairlearn import PairClassifier, TrainingOptions
from pairlearn_bench import GRIDS, Record, RunStore, Selection, headline_counts, summarize
from pairlearn_bench.classes import ClassesBenchmark, _Asked
from pairlearn_bench.data import load
from pairlearn_bench.execute import execute
from pairlearn_bench.runs import CLASSES, Run
from pairlearn_bench.tables import classes_table

N = 60


def run_of(method: str, pairs: int = N, seed: int = 0) -> Run:
    shared = {"model": "linear", "epochs": 2, "batch_size": 32, "window": 1}
    return Run(dataset="digits", seed=seed, method=method, pairs=pairs, **shared)


@pytest.fixture(scope="module")
def benchmark() -> ClassesBenchmark:
    return ClassesBenchmark(load("digits"), "linear", "cpu", "float32")


@pytest.fixture
def posterior(benchmark: ClassesBenchmark) -> np.ndarray:
    """An annotator who gives the true class 0.82 and every other one 0.02."""
    found = np.full((len(benchmark.dataset.y), 10), 0.02)
    found[np.arange(len(found)), benchmark.dataset.y] = 0.82
    return found


def rows_of(benchmark, posterior, method):
    return _Asked(benchmark, run_of(method), posterior).rows()


def test_every_method_is_about_the_same_distinct_training_items(benchmark, posterior):
    train, _ = benchmark.rows(0)
    pairs = _Asked(benchmark, run_of("classes-all"), posterior).pairs
    assert len(np.unique(pairs)) == 2 * N and np.isin(pairs, train).all()
    counts = {"true": 2 * N, "labels": 2 * N, "label": N, "all": 10 * N, "confidences": 20 * N}
    for method in CLASSES:
        if "proposed" in method:
            continue  # which train models
        rows = rows_of(benchmark, posterior, method)
        name = method.removeprefix("classes-").removesuffix("-hard")
        assert len(rows) == counts.get(name, N)
        assert np.isin(rows.ends[rows.ends >= 0], pairs).all()


def test_soft_answers_are_those_of_the_posteriors(benchmark, posterior):
    rows = rows_of(benchmark, posterior, "classes-random")
    for (left, right), (s, c), k in zip(
        rows.ends, rows.values, rows.about.astype(int), strict=True
    ):
        r, q = posterior[left, k], posterior[right, k]
        assert (s, c) == pytest.approx((r * q + (1 - r) * (1 - q), q - r))
    assert rows.q.tolist() == [0.1] * N and len(np.unique(rows.about)) == 10
    half = rows_of(benchmark, posterior, "classes-half").of_classes(range(10))
    inside = half.members()
    assert (inside.sum(1) == 5).all() and 0.4 < inside[:, 0].mean() < 0.6
    r, q = (posterior[half.ends] * inside[:, None]).sum(-1).T
    assert half.values[:, 1] == pytest.approx(q - r)
    same = rows_of(benchmark, posterior, "classes-same")
    expected = [(posterior[left] * posterior[right]).sum() for left, right in same.ends]
    assert same.values[:, 0] == pytest.approx(expected)
    assert same.about is None


def test_hard_answers_and_drawn_labels_follow_the_posteriors(benchmark, posterior):
    labels = rows_of(benchmark, posterior, "classes-labels")
    right = labels.about.astype(int) == benchmark.dataset.y[labels.ends[:, 0]]
    assert 0.7 < right.mean() < 0.94  # 0.82, with a standard deviation of 0.035
    hard = rows_of(benchmark, posterior, "classes-random-hard")
    assert set(np.unique(hard.values)) <= {-1.0, 0.0, 1.0}
    assert set(np.unique(rows_of(benchmark, posterior, "classes-same-hard").values)) <= {0.0, 1.0}
    same = rows_of(benchmark, posterior, "classes-same-true")
    left, right = benchmark.dataset.y[same.ends].T
    assert same.values[:, 0].tolist() == (left == right).tolist()


def test_a_proposed_class_is_one_of_the_pair_far_more_often_than_a_random_one(benchmark, posterior):
    def share(method: str) -> float:
        run = replace(run_of(method, pairs=200), epochs=100)
        work = _Asked(benchmark, run, posterior).trainings()
        training = next(work)
        while len(training.rows) < 200:
            training = work.send(benchmark.fit([training])[0])
        rows = training.rows[150:]  # of the last round
        classes = benchmark.dataset.y[rows.ends]
        return float((classes == rows.about.astype(int)[:, None]).any(1).mean())

    assert share("classes-random") < 0.4  # 0.19 is expected
    assert share("classes-proposed") > share("classes-random") + 0.1


def test_sizes_end_at_half_of_the_items_and_take_the_usual_recipe():
    grid = GRIDS["classes"].select(datasets=["optdigits", "mnist"], seeds=[0])
    runs = grid.runs()
    sizes = {name: sorted({r.pairs for r in runs if r.dataset == name}) for name in grid.datasets}
    assert sizes == {"optdigits": [300, 1000, 2247], "mnist": [300, 1000, 3000, 10000, 30000]}
    assert all(1600 <= r.epochs * -(-r.pairs // r.batch_size) < 1800 for r in runs)
    assert all(run.prior is None and run.window == 1 for run in runs)
    chosen = Selection.parse(datasets="mnist", seeds="1", pairs=10_000).of(GRIDS["classes"]).runs()
    assert chosen == [r for r in runs if r.dataset == "mnist" and r.pairs == 10_000]
    with pytest.raises(ValueError, match="prior"):
        replace(runs[0], prior=0.2)
    with pytest.raises(ValueError, match="defined at the prior None"):
        replace(runs[0], method="supervised")


ABOUT_ITEMS, ABOUT_PAIRS = ("true",), ("all", "random-hard", "half", "same", "same-true")


@pytest.mark.parametrize("methods", [ABOUT_ITEMS, ABOUT_PAIRS], ids=["items", "pairs"])
def test_learners_train_together_as_pair_classifiers_do(benchmark, posterior, methods):
    """On the items of the pairs, as the classifier standardises with these where pairs are judged.

    Without pairs it standardises with all items.
    """
    exact = replace(benchmark, precision="float64", model="mlp-bn")
    pairs = _Asked(benchmark, run_of("classes-all"), posterior).pairs
    used = benchmark.features if methods is ABOUT_ITEMS else benchmark.features[pairs.ravel()]
    scale = np.where(used.std(0) > 0, used.std(0), 1)
    exact.features = ((benchmark.features - used.mean(0)) / scale).astype(np.float32)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))  # that of a classifier with seed 0
    trainings = []
    for method in methods:
        run = replace(run_of(f"classes-{method}"), model="mlp-bn")
        training = next(_Asked(exact, run, posterior).trainings())
        trainings.append(training._replace(recipe=replace(training.recipe, seed=seed)))
    found = exact.fit(trainings)
    for (rows, model, recipe), together in zip(trainings, found, strict=True):
        own = ("batch_size", "learning_rate", "weight_decay", "schedule", "device", "precision")
        options = TrainingOptions(**{name: getattr(recipe, name) for name in own})
        settings = {"epochs": recipe.epochs, "training": options, "random_state": 0}
        settings |= {"annotators": "ideal", "unjudged": "ignore", "classes": range(10)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "same" alone does not name the classes
            alone = PairClassifier(model=model, **settings).fit(exact.features, rows)
        expected = alone.predict_proba(exact.features[pairs.ravel()])
        np.testing.assert_allclose(together[pairs.ravel()], expected, atol=1e-4)


def test_the_grid_runs_resumes_and_is_tabulated(tmp_path: Path):
    runs = [run_of(m, pairs, s) for m in CLASSES for pairs in (40, N) for s in range(2)]
    store = RunStore(tmp_path / "classes.jsonl")
    for run, results in execute(runs, device="cpu", workers=1):
        store.append(run, results)
    assert store.missing(runs) == []
    again = dict(execute(runs[-1:], device="cpu", workers=1))
    assert again[runs[-1]] == next(r for r in store if r.run == runs[-1]).results
    store.to_parquet(tmp_path / "classes.parquet")
    records = Selection().records(GRIDS["classes"], list(store))
    table = classes_table(summarize(records, "stratified"))
    assert table.header[2:] == ("40 pairs", "60 pairs")
    assert [row[1] for row in table.rows] == list(CLASSES.values())
    assert not any("**" in cell for row in table.rows[:4] for cell in row)  # labels do not compete


def test_claims_compare_with_answers_about_the_same_items():
    def records(method, accuracy):
        runs = [run_of(method, pairs, s) for pairs in (40, N) for s in range(5)]
        return [Record(run, {"stratified": accuracy + 0.001 * run.seed}) for run in runs]

    found = [*records("classes-proposed", 0.9), *records("classes-label", 0.9)]
    tallies = headline_counts("classes", [*found, *records("classes-random", 0.8)])
    assert tallies["proposed-soft-label"].counts == "ahead in 0 of 2 cells, level in 2, behind in 0"
    assert (
        tallies["proposed-soft-random"].counts == "ahead in 2 of 2 cells, level in 0, behind in 0"
    )
    assert "proposed-soft-same" not in tallies
