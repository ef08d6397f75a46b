"""`compare`: cross-validated ranking of classifiers without labels."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from pairlearn import PairClassifier, PairLabels, TrainingOptions
from pairlearn.comparison import compare, default_candidates
from pairlearn.estimators.splits import ItemKFold
from pairlearn.evaluation import estimate_accuracy
from pairlearn.evaluation.decisions import rank
from pairlearn.evaluation.judged import largest_difference
from pairlearn.simulation import simulate
from tables import pair_ids


def linear(epochs: int = 10, **options: Any) -> PairClassifier:
    quick = TrainingOptions(batch_size=32, learning_rate=0.05)
    usual: dict[str, Any] = {"model": "linear", "random_state": 0, "training": quick}
    return PairClassifier(epochs=epochs, **usual | options)


def table(n: int = 200, **options: Any) -> tuple[NDArray[Any], NDArray[Any], PairLabels]:
    made = simulate("gaussians", pairs=n, **{"prior": 0.3, "overlap": 0.1} | options)
    return made.items.features, pair_ids(made.pairs), made.pairs.labels()


def test_candidates_are_fitted_to_the_folds_of_item_k_fold() -> None:
    x, pairs, labels = table(90)
    found = compare({"one": linear()}, pairs, labels, preprocessor=x, folds=3, seed=2)
    folds = [*ItemKFold(3, random_state=2).split(pairs)]
    assert found.tested == sum(len(test) for _, test in folds) == found.judgements
    for (train, test), models in zip(folds, found.estimators, strict=True):
        again = linear(preprocessor=x).fit(pairs[train], labels[train])
        held_out = x[pairs[test].ravel()]
        assert models["one"].decision_function(held_out) == pytest.approx(
            again.decision_function(held_out), abs=1e-5
        )


def test_the_intervals_hold_the_true_accuracies_and_the_order_is_right() -> None:
    x, pairs, labels = table(400)
    fresh = simulate("gaussians", pairs=5000, prior=0.3, overlap=0.1, seed=9)
    candidates = {
        "untrained": linear(1, training=TrainingOptions(learning_rate=1e-6)),
        "linear": linear(30),
    }
    found = compare(candidates, pairs, labels, preprocessor=x)
    assert found.best.name == "linear"
    truth = [
        ((models["linear"].predict(fresh.items.features) > 0) == fresh.positive).mean()
        for models in found.estimators
    ]
    assert found.best.accuracy.low <= np.mean(truth) <= found.best.accuracy.high
    assert found.prior == pytest.approx(0.3, abs=0.06)


def test_judgements_with_ids_of_some_items_give_the_same_as_their_pairs() -> None:
    made = simulate("gaussians", pairs=60, items=200, prior=0.3)
    candidates = {"one": linear()}
    by_pairs = compare(
        candidates, pair_ids(made.pairs), made.pairs.labels(), preprocessor=made.items
    )
    by_ids = compare(candidates, None, made.pairs, preprocessor=made.items)
    assert by_ids.best.accuracy.value == pytest.approx(by_pairs.best.accuracy.value, abs=1e-6)


def test_the_best_candidate_is_measured_under_both_readings() -> None:
    """Annotators who know something else: the informed reading is too low, the range is not."""
    rng = np.random.default_rng(5)
    y = rng.random(1600) < 0.5
    x = rng.normal(np.where(y, 1.2, -1.2)[:, None], 1, size=(1600, 1))
    r = expit(3 * rng.normal(np.where(y, 1.5, -1.5)))
    labels = PairLabels.from_posteriors(r[::2], r[1::2])
    result = compare({"linear": linear()}, np.stack([x[::2], x[1::2]], 1), labels, folds=2)
    truth = float(np.mean((x[:, 0] > 0) == y))
    (sentence,) = result.sentences
    low, high = (float(part) / 100 for part in re.findall(r"([\d.]+)%", sentence)[:2])
    assert result.best.accuracy.high < truth
    assert low < truth < high < 1


def test_a_candidate_ties_with_its_copy() -> None:
    x, pairs, labels = table(90)
    found = compare({"one": linear(), "two": linear()}, pairs, labels, preprocessor=x)
    assert (found.ties, found.rows[1].same_as) == (("two",), "one")
    assert found.verdict == "best: one (tied with two)"
    assert json.loads(json.dumps(found.to_dict()))["best"] == "one"
    again = compare({"one": linear(), "two": linear()}, pairs, labels, preprocessor=x)
    assert again.rows == found.rows


def test_default_candidates_with_risks() -> None:
    names = list(default_candidates(["linear", "boosting"], ["likelihood-abs", "sconf-abs"]))
    assert names == ["linear", "linear, sconf-abs", "boosting"]
    with pytest.raises(ValueError, match="model 'magic' is unknown"):
        default_candidates(["magic"])


def test_gradient_boosting_is_compared_and_progress_counted() -> None:
    x, pairs, labels = table(120)
    steps: list[tuple[int, int]] = []
    candidates = {"linear": linear(), **default_candidates(["boosting"], random_state=0)}
    found = compare(
        candidates, pairs, labels, preprocessor=x, folds=2, progress=lambda *at: steps.append(at)
    )
    assert {row.name for row in found.rows} == {"linear", "boosting"}
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_one_kind_of_judgement_needs_the_prior() -> None:
    x, pairs, labels = table(300, prior=0.2)
    alike = PairLabels(labels.similarity, np.full(len(labels), np.nan))
    with pytest.raises(ValueError, match="--majority"):
        compare({"one": linear()}, pairs, alike, preprocessor=x)
    found = compare({"one": linear(prior=0.2)}, pairs, alike, preprocessor=x)
    assert found.best.accuracy.value > 0.75


def test_bad_requests() -> None:
    x, pairs, labels = table(20)
    with pytest.raises(ValueError, match="candidates is empty"):
        compare({}, pairs, labels, preprocessor=x)
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2"):
        compare({"one": linear()}, pairs, labels, preprocessor=x, folds=1)
    with pytest.raises(ValueError, match="row 3 pairs an item with itself"):
        same = np.where(np.arange(20)[:, None] == 3, pairs[:, :1], pairs)
        compare({"one": linear()}, same, labels, preprocessor=x)


# ---- ranking -----------------------------------------------------------------------------------


def posteriors(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-z))


def test_accuracies_are_those_of_estimate_accuracy() -> None:
    rng = np.random.default_rng(0)
    item_z = rng.normal(-1, 3, size=150)
    items = np.array([rng.choice(150, 2, replace=False) for _ in range(400)])
    labels = PairLabels.from_posteriors(*posteriors(item_z[items]).T)
    weight = rng.uniform(0.5, 2, size=400)
    logits = [(item_z + scale * rng.normal(size=150))[items] for scale in (0.5, 2.0, 0.0)]
    options: dict[str, Any] = {"weight": weight, "items": items, "confidence": 0.9}
    ranking = rank("012", logits, labels, **options)
    assert ranking[0].name == "2"
    for row in ranking:
        alone = estimate_accuracy(*logits[int(row.name)].T, labels, **options).informed
        assert (row.accuracy.value, row.accuracy.low, row.accuracy.high) == pytest.approx(
            (alone.value, alone.low, alone.high), abs=1e-12
        )
        gap = row.accuracy.value - ranking[0].accuracy.value
        assert row.difference.value == pytest.approx(gap, abs=1e-12)


def test_differences_of_outputs_that_decide_alike_are_zero() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 2))
    labels = PairLabels.from_posteriors(*posteriors(3 * z).T)
    first, *others = rank("abc", [z, 5 * z, z**3], labels)
    assert (first.name, first.same_as) == ("a", None)
    for row in others:
        assert (row.difference.value, row.same_as, row.tie) == (0, "a", True)
        # One more instance of 600 decided differently.
        assert row.difference.high == pytest.approx(1.96 / 600, rel=0.01)


def test_intervals_of_all_differences_hold_together() -> None:
    """Three classifiers with known accuracies: the noise that they add to the log-odds."""
    rng = np.random.default_rng(2)
    scales = (0.0, 0.6, 1.0)

    def population(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        z = rng.normal(-0.5, 3, size=(n, 2))
        outputs = np.stack([z + 2 * scale * rng.normal(size=z.shape) for scale in scales])
        return z, outputs

    z, outputs = population(200_000)
    r = posteriors(z)
    truth = np.where(outputs > 0, r, 1 - r).mean((1, 2))
    tables, held = 60, 0
    for _ in range(tables):
        z, outputs = population(150)
        ranking = rank("012", outputs, PairLabels.from_posteriors(*posteriors(z).T))
        gaps = [truth[int(row.name)] - truth[int(ranking[0].name)] for row in ranking]
        held += all(
            row.difference.low <= gap <= row.difference.high
            for row, gap in zip(ranking, gaps, strict=True)
        )
    # 95% at least, as these cover the differences to the best only; ±3 standard errors.
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / tables) <= held / tables


@pytest.mark.parametrize(("count", "range_"), [(2, 2.772), (3, 3.314), (5, 3.858), (10, 4.474)])
def test_quantiles_of_independent_variables_are_tukeys(count: int, range_: float) -> None:
    quantile = largest_difference(np.eye(count) * 4, 0.95, 1e9)
    assert quantile == pytest.approx(range_ / np.sqrt(2), rel=0.015)


def test_quantiles_ignore_copies_and_widen_for_few_items() -> None:
    one = np.array([[1.0, 0.3], [0.3, 2.0]])
    copied = one[np.ix_([0, 0, 1], [0, 0, 1])]
    for covariance, ends, wanted in (
        (copied, 1e9, 1.96),
        (np.zeros((3, 3)), 1e9, 1.96),
        (one, 12, 2.228),  # Student's t with 10 degrees of freedom
    ):
        quantile = largest_difference(covariance, 0.95, ends)
        assert quantile == pytest.approx(wanted, rel=0.015)


def test_a_classifier_that_never_decides_is_judged_by_the_prior_of_the_others() -> None:
    """Always negative is right for the negatives: .7, though alone it could as well be .3."""
    rng = np.random.default_rng(3)
    positive = rng.random((2000, 2)) < 0.3
    labels = PairLabels.from_posteriors(*positive.astype(float).T)
    z = np.where(positive, 1.0, -1.0)
    alone = estimate_accuracy(-np.ones(2000), -np.ones(2000), labels)
    assert alone.low < 0.35
    assert alone.high > 0.65
    ranking = rank(["never", "always", "right"], [-np.ones_like(z), np.ones_like(z), z], labels)
    assert [row.name for row in ranking] == ["right", "never", "always"]
    values = [row.accuracy.value for row in ranking]
    assert values == pytest.approx([1.0, 0.7, 0.3], abs=0.03)
    assert ranking[1].accuracy.low > 0.6
    assert ranking[1].difference.high < -0.2


# ---- with labelled instances ----------------------------------------------------------------


def private(size: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Two features of items, classes, and annotators who know something else."""
    y = rng.random(size) < 0.5
    x = rng.normal(np.where(y, 1.2, -1.2)[:, None], 1, size=(size, 2))
    return x, y, expit(3 * rng.normal(np.where(y, 1.5, -1.5)))


@pytest.mark.parametrize("among_pairs", [False, True])
def test_labels_measure_accuracies_and_their_difference(among_pairs: bool) -> None:
    """Differences of two models hold whatever the annotators knew; one feature is left out."""
    rng = np.random.default_rng(6)
    x, _, r = private(400, rng)
    more, y, _ = private(400, rng)
    ends = np.arange(400).reshape(-1, 2)
    labels = PairLabels.from_posteriors(*r[ends].T)
    both = {"two": linear(), "one": linear(1, training=TrainingOptions(learning_rate=1e-6))}
    known = (more, y) if not among_pairs else (np.concatenate([more[:200], x[:200]]), y)
    found = compare(both, x[ends], labels, labelled=known, folds=2)
    assert found.labelled == 400
    fresh, truth, _ = private(50_000, rng)
    right = {
        name: np.mean([(m[name].predict(fresh) > 0) == truth for m in found.estimators])
        for name in both
    }
    first, second = found.rows
    if among_pairs:  # their classes were drawn anew and mean nothing: half of them is right
        assert first.accuracy.high < right["two"]
        return
    assert [row.name for row in found.rows] == ["two", "one"]
    for row in found.rows:
        assert row.accuracy.low <= right[row.name] <= row.accuracy.high
    assert second.difference.low <= right["one"] - right["two"] <= second.difference.high < 0
    assert "of 400 labelled items are right" in found.sentences[0]
    informed = compare(both, x[ends], labels, folds=2).rows[0].accuracy
    assert informed.high < right["two"], "without labels the informed reading is too low"


def test_bad_labels() -> None:
    x, pairs, labels = table(60)
    one = {"one": linear(2)}
    with pytest.raises(ValueError, match=r"the classes of labelled must have shape \(3,\)"):
        compare(one, x[pairs], labels, labelled=(x[:3] + 9, [1, 0]), folds=2)
    with pytest.raises(ValueError, match="classes of labelled must be 1, and 0 or -1"):
        compare(one, x[pairs], labels, labelled=(x[:3] + 9, [1, 0, 2]), folds=2)
