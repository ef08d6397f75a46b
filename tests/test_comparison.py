"""`compare`: cross-validated ranking without labels."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import add_noise
from pairlearn.comparison import Decide, compare, default_methods
from pairlearn.comparison import study as study_module
from pairlearn.comparison.training import train_apart, train_together
from pairlearn.data.simulation import simulate
from pairlearn.estimators import PriorMismatchWarning
from pairlearn.estimators.table import read_table
from pairlearn.judgements import Judgements
from pairlearn.tables import ItemTable

QUICK: dict[str, Any] = {
    "model": "linear",
    "epochs": 30,
    "batch_size": 64,
    "learning_rate": 0.03,
    "device": "cpu",
    "majority": "negative",
}
TWO = ["likelihood-abs", "confdiff-none"]


def table(n: int = 200, **options: Any) -> tuple[NDArray[Any], NDArray[Any], PairLabels]:
    made = simulate("gaussians", pairs=n, **{"prior": 0.3, "overlap": 0.1} | options)
    return made.items.features, made.pairs.ids(), made.pairs.labels()


def judgements(n: int, weight: NDArray[Any] | None = None) -> tuple[NDArray[Any], Judgements]:
    x, pairs, labels = table(n)
    read = read_table(pairs, labels, weight, None, None, x)
    return read.features, read.judged


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", ["linear", "mlp-bn"])
def test_methods_train_together_as_they_train_alone(model: str, weighted: bool) -> None:
    weight = np.random.default_rng(0).uniform(0.2, 3, 90) if weighted else None
    features, said = judgements(90, weight)
    names = ["likelihood-abs", "sconfconfdiff-relu", "sconf-none"]
    classifier = PairClassifier(
        model=model, epochs=4, batch_size=32, learning_rate=1e-3, device="cpu", precision="float64"
    )
    ticks: list[None] = []
    together = train_together(features, said, names, 0.3, classifier, 7, lambda: ticks.append(None))
    assert len(ticks) == 4
    for name, decide in zip(names, together, strict=True):
        alone = clone(classifier).set_params(risk=name, prior=0.3, random_state=7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorMismatchWarning)
            z = alone.fit(features, said).decision_function(features)
        assert decide(features) == pytest.approx(z, abs=1e-5 * np.abs(z).max())


def test_methods_of_a_mixed_table_are_those_of_pair_classifier() -> None:
    made = simulate("gaussians", pairs=80, missing=0.4, preference=0.2, repeated=0.2, annotators=2)
    read = read_table(
        made.pairs.ids(), made.pairs.to_array(), None, made.pairs.preference, None,
        made.items.features,
    )  # fmt: skip
    classifier = PairClassifier(model="linear", epochs=3, device="cpu")
    names = ["likelihood-relu", "sconfconfdiff-abs"]
    for train in (train_apart, train_together):
        parts = train(read.features, read.judged, names, 0.3, classifier, 5, lambda: None)
        for name, decide in zip(names, parts, strict=True):
            alone = PairClassifier(
                risk=name, prior=0.3, model="linear", epochs=3, device="cpu", random_state=5,
                preprocessor=made.items.features,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PriorMismatchWarning)  # three epochs learn none
                alone.fit(made.pairs.ids(), made.pairs.to_array(), preference=made.pairs.preference)
            z = alone.decision_function(read.features)
            assert decide(read.features) == pytest.approx(z, abs=1e-4)


def test_intervals_hold_the_true_accuracies_of_the_models_and_the_order_is_right() -> None:
    """At prior .45 Sconf divides by −.1, and learns little from 400 noisy pairs."""
    x, pairs, labels = table(400, prior=0.45)
    fresh = simulate("gaussians", pairs=5000, prior=0.45, overlap=0.1, seed=9)
    right: dict[str, list[float]] = {}

    def look(models: Mapping[str, Decide]) -> None:
        for name, decide in models.items():
            decided = decide(fresh.items.features) > 0
            right.setdefault(name, []).append(float((decided == fresh.positive).mean()))

    found = compare(
        x, pairs, add_noise(labels, 0.5, seed=0), methods=["sconf-none", *TWO], prior=0.45,
        after_fold=look, **QUICK,
    )  # fmt: skip
    assert [row.name for row in found.rows][2] == "sconf-none"
    assert not found.rows[2].tie
    assert found.rows[2].difference.high < 0
    for row in found.rows:
        assert len(right[row.name]) == 5
        assert row.accuracy.low <= np.mean(right[row.name]) <= row.accuracy.high


def test_ties_are_marked() -> None:
    x, pairs, labels = table(150)
    found = compare(x, pairs, labels, methods=["nonnegative", "likelihood-abs"], **QUICK)
    # On feasible labels no partial risk of the non-negative member is negative.
    same = [row for row in found.rows if row.name.startswith("nonnegative")]
    assert len({row.accuracy for row in same}) == 1
    assert found.ties == tuple(row.name for row in found.rows[1:] if row.difference.high >= 0)
    assert not found.best.tie
    second = found.rows[1] if found.best in same else same[1]
    assert second.tie or found.best not in same
    assert str(found).count(" tie") == len(found.ties)


def test_all_methods_by_default_and_the_same_again() -> None:
    x, pairs, labels = table(120)
    calls: list[tuple[int, int]] = []
    options = QUICK | {"epochs": 3, "folds": 3}
    found = compare(x, pairs, labels, progress=lambda *at: calls.append(at), **options)
    assert {row.name for row in found.rows} == set(default_methods())
    assert calls == [(i, 9) for i in range(1, 10)]
    assert (found.pairs, found.tested, found.dropped, found.folds) == (120, 120, 0, 3)
    assert found.prior == pytest.approx(0.3, abs=0.06)
    values = [row.accuracy.value for row in found.rows]
    assert values == sorted(values, reverse=True)
    torch.manual_seed(123)  # what others draw does not matter
    assert compare(x, pairs, labels, **options) == found
    assert compare(x, pairs, labels, seed=1, **options) != found
    # Who is the majority is found if it is not told.
    assert compare(x, pairs, labels, **options | {"majority": None}) == found
    assert json.loads(json.dumps(found.to_dict()))["best"] == found.best.name


def test_repeats_split_anew_and_count() -> None:
    x, pairs, labels = table(80)
    found = compare(x, pairs, labels, methods=TWO, repeats=2, **QUICK)
    assert (found.pairs, found.tested, found.repeats) == (80, 160, 2)
    once = compare(x, pairs, labels, methods=TWO, **QUICK)
    wide = [row.accuracy.high - row.accuracy.low for row in (once.rows[0], found.rows[0])]
    assert wide[1] > 0.7 * wide[0]  # the same judgements: twice is not twice as many


def test_recurring_items_lose_pairs_and_that_is_said() -> None:
    made = simulate("gaussians", pairs=300, items=60, overlap=0.1)
    ends = made.pairs.ids()
    selves = ends[:, 0] == ends[:, 1]
    found = compare(made.items, ends[~selves], made.pairs.labels()[~selves], methods=TWO, **QUICK)
    assert found.tested + found.dropped == int((~selves).sum())
    assert found.dropped > 0
    assert any("in different folds and tested no model" in text for text in found.warnings)


def test_missing_judgements_all_count() -> None:
    made = simulate("gaussians", pairs=200, missing=0.5, preference=0.2, overlap=0.1)
    found = compare(
        made.items, made.pairs.ids(), made.pairs.to_array(), preference=made.pairs.preference,
        methods=TWO, folds=2, **QUICK,
    )  # fmt: skip
    # Preferences train and do not test.
    assert (found.pairs, found.tested, found.dropped) == (200, 160, 0)
    assert all(row.accuracy.value > 0.8 for row in found.rows)


@pytest.mark.parametrize("kept", [0, 1])
def test_one_kind_of_judgement_needs_the_prior(kept: int) -> None:
    x, pairs, labels = table(120)
    told = labels.to_array()
    told[:, 1 - kept] = np.nan
    family = ("sconf-abs", "confdiff-abs")[kept]
    options = QUICK | {"methods": ["likelihood-abs", family], "folds": 2, "learning_rate": 0.05}
    with pytest.raises(ValueError, match="alone, which does not fix the accuracy"):
        compare(x, pairs, told, **options)
    found = compare(x, pairs, told, prior=0.3, **options)
    assert found.best.accuracy.value > 0.75


def test_methods_that_the_prior_rules_out() -> None:
    x, pairs, labels = table(60, prior=0.5)
    options = QUICK | {"epochs": 1, "folds": 2}
    found = compare(x, pairs, labels, prior=0.5, **options)
    assert not any(row.name.startswith(("sconf-", "convex")) for row in found.rows)
    assert len(found.rows) == 12
    assert "left out, because undefined at a class prior of ½: sconf-abs" in found.warnings[-2]
    with pytest.raises(ValueError, match="method 'sconf-abs': sconf is undefined at prior ½"):
        compare(x, pairs, labels, prior=0.5, methods=["sconf-abs"], **options)


def test_a_stated_prior_that_does_not_fit_is_warned_of() -> None:
    x, pairs, labels = table(300)
    found = compare(x, pairs, labels, prior=0.1, methods=TWO, folds=2, **QUICK)
    assert any("the stated class prior is 0.1" in text for text in found.warnings)
    assert found.prior == 0.1


def test_models_that_diverge_decide_negative_and_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*arguments: Any) -> list[Decide]:
        models = train_together(*arguments)
        return [models[0], lambda x: np.full(len(x), np.nan)]

    monkeypatch.setattr(study_module, "train_together", broken)
    x, pairs, labels = table(300)
    found = compare(x, pairs, labels, methods=TWO, **QUICK)
    assert found.rows[1].name == "confdiff-none"
    assert found.rows[1].accuracy.value == pytest.approx(0.7, abs=0.06)
    assert "confdiff-none: training diverged, some outputs are not numbers" in found.warnings


def test_labels_out_of_range_are_admitted_as_noisy_and_refused_otherwise() -> None:
    x, pairs, labels = table(80)
    noisy = add_noise(labels, 0.5, seed=1)
    compare(x, pairs, noisy, methods=TWO, **QUICK)
    with pytest.raises(ValueError, match=r"similarity must lie in \[0, 1\]"):
        compare(x, pairs, noisy.to_array(), methods=TWO, **QUICK)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": 1}, "folds must be a whole number of at least 2; got 1"),
        ({"folds": 2.5}, "folds must be a whole number of at least 2; got 2.5"),
        ({"repeats": 0}, "repeats must be a whole number of at least 1; got 0"),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1.0"),
        ({"methods": []}, "methods is empty"),
        ({"methods": "sconf"}, "methods must be a sequence of names; got 'sconf'"),
        ({"methods": ["nonsense-abs"]}, "risk 'nonsense-abs' is unknown"),
        ({"methods": ["supervised"]}, "'supervised' reads classes"),
        ({"model": "tree"}, "model 'tree' is unknown"),
        ({"epochs": 0}, "The 'epochs' parameter of PairClassifier must be"),
        ({"prior": 1.5}, "The 'prior' parameter of PairClassifier must be"),
        ({"majority": "both"}, "The 'majority' parameter of PairClassifier must be"),
        ({"weight": np.zeros(40)}, "sample_weight is zero for every pair"),
        ({"folds": 41}, "folds is 41, and the 40 pairs cannot be split"),
    ],
)
def test_bad_requests(changes: dict[str, Any], message: str) -> None:
    x, pairs, labels = table(40)
    with pytest.raises(ValueError, match=message):
        compare(x, pairs, labels, **QUICK | {"methods": TWO} | changes)


def test_bad_pairs() -> None:
    x, pairs, labels = table(40)
    itself = pairs.copy()
    itself[3, 1] = itself[3, 0]
    with pytest.raises(ValueError, match="pairs row 3 pairs an item with itself"):
        compare(x, itself, labels, methods=TWO, **QUICK)
    star = np.stack([np.zeros(40, int), np.arange(1, 41)], 1)
    with pytest.raises(ValueError, match="pairs to train and to test the models of every fold"):
        compare(x, star, labels, methods=TWO, **QUICK | {"folds": 2})
    with pytest.raises(ValueError, match="scikit-learn classifier"):
        compare(x, pairs, labels, methods=TWO, **QUICK | {"model": PairClassifier()})


def test_features_by_id_and_in_the_pairs_are_the_same() -> None:
    x, pairs, labels = table(60)
    names = np.array([f"item {i}" for i in range(len(x))])
    one = compare(ItemTable(names, x), names[pairs], labels, methods=TWO, **QUICK)
    other = compare(None, x[pairs], labels, methods=TWO, **QUICK)
    assert one.best.accuracy.value == pytest.approx(other.best.accuracy.value, abs=0.05)
