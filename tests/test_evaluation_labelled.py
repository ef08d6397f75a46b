"""Measures from a few labelled items, against ppi-python and against labels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from pairlearn import PairClassifier, PairLabels
from pairlearn.estimators import SeenItemsWarning
from pairlearn.evaluation import (
    AccuracyEstimate,
    LabelledItems,
    estimate_accuracy,
    evaluate,
)
from pairlearn.evaluation.decisions import MEASURES, rank
from pairlearn.evaluation.judged import JudgedPairs, proportion
from pairlearn.evaluation.labelled import prediction_powered

Array = np.ndarray
ACCURACY = [MEASURES["accuracy"]]


def judged(z: Array, r: Array | None = None, **options: Any) -> JudgedPairs:
    """Pairs of consecutive items; the answers do not matter to labels."""
    r = expit(z) if r is None else r
    labels = PairLabels.from_posteriors(r[::2], r[1::2])
    return JudgedPairs.of(z[::2], z[1::2], labels, **options)


def assess(z: Array, known: Any, r: Array | None = None, **options: Any) -> AccuracyEstimate:
    r = expit(z) if r is None else r
    labels = PairLabels.from_posteriors(r[::2], r[1::2])
    return estimate_accuracy(z[::2], z[1::2], labels, labelled=known, **options)


def test_point_estimate_and_tuning_are_those_of_ppi_python() -> None:
    """ppi-python 0.2.3: ``ppi_mean_pointestimate`` of being right, by σ(|z|).

    It pools the variances of the predictions, which changes λ little for a large sample.
    """
    rng = np.random.default_rng(1)
    z, pool = rng.normal(0, 2, size=3000), rng.normal(0, 2, size=20_000)
    y = rng.random(3000) < expit(z)
    fit = prediction_powered(judged(pool), LabelledItems(z, y), ACCURACY)
    assert fit.tuning[0] == pytest.approx(0.8937749519419659, abs=0.02)
    assert fit.values[0] == pytest.approx(0.79055785, abs=1e-4)


def test_a_small_sample_beside_ppi_python() -> None:
    rng = np.random.default_rng(0)
    z, pool = rng.normal(0, 2, size=60).round(3), rng.normal(0, 2, size=400).round(3)
    y = rng.random(60) < expit(z)
    fit = prediction_powered(judged(pool), LabelledItems(z, y), ACCURACY)
    # The same package with λ = 0 and λ = 1; the estimate is linear in λ.
    none, whole = 0.78333333, 0.79966966
    expected = none + fit.tuning[0] * (whole - none)
    assert fit.values[0] == pytest.approx(expected, abs=1e-7)
    assert fit.tuning[0] == pytest.approx(0.7598452715704034, abs=0.1)


def test_useless_predictions_leave_wilson_of_the_labels() -> None:
    """All outputs are equally sure, so that they tell nothing about errors."""
    z = np.tile([2.0, -2.0], 200)
    known = np.repeat([2.0, -2.0], 50)
    y = (known > 0) ^ (np.arange(100) % 10 == 0)
    estimate = assess(z, (known, y))
    wilson = proportion(0.9, 0.09 / 100, 100, 1.959964)
    assert estimate.value == pytest.approx(0.9)
    assert (estimate.low, estimate.high) == pytest.approx((wilson.low, wilson.high), abs=2e-3)
    assert estimate.labelled is not None
    assert (estimate.labelled.right, estimate.labelled.n) == (90, 100)
    assert "90 of 100 labelled items are right" in estimate.sentence()
    assert estimate.to_dict()["labelled"]["right"] == 90


def test_no_error_among_labels_is_wilson() -> None:
    rng = np.random.default_rng(2)
    z, known = rng.normal(0, 3, 1000), rng.normal(0, 3, 50)
    estimate = assess(z, (known, known > 0))
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert estimate.low == pytest.approx(50 / (50 + 1.96**2), abs=1e-3)


def test_every_measure_from_labels_alone_with_constant_predictions() -> None:
    """With equal outputs within a decision and shares, the pool adds nothing but q."""
    rng = np.random.default_rng(3)
    known = np.repeat([2.0, -2.0], [60, 140])
    y = rng.random(200) < np.where(known > 0, 0.8, 0.1)
    z = np.tile(known, 2)
    labels = PairLabels.from_posteriors(expit(z[::2]), expit(z[1::2]))
    result = evaluate(z[::2], z[1::2], labels, labelled=(known, y), cost=(1, 4))
    h = known > 0
    expected = {
        "accuracy": np.mean(h == y),
        "precision": precision_score(y, h),
        "true_positive_rate": recall_score(y, h),
        "false_positive_rate": 1 - recall_score(~y, ~h),
        "f1": f1_score(y, h),
        "prior": y.mean(),
        "roc_auc": roc_auc_score(y, known),
        "expected_cost": np.mean(h & ~y) + 4 * np.mean(~h & y),
    }
    for name, value in expected.items():
        estimate = getattr(result, name)
        assert estimate.value == pytest.approx(value, abs=1e-9), name
        assert estimate.low < value < estimate.high
    assert result.confusion["true_positive"].value == pytest.approx(np.mean(h & y))


def world(size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Outputs that are right in 0.95 of the cases, and too sure."""
    y = rng.random(size) < 0.3
    x = rng.normal(np.where(y, 1.7, -1.7), 1)
    return 6 * (x - 0.25), y


@pytest.mark.parametrize("name", ["precision", "true_positive_rate", "f1", "roc_auc"])
def test_intervals_of_other_measures_hold(name: str) -> None:
    z, y = world(500_000, np.random.default_rng(0))
    h = z > 0
    truth = {
        "precision": np.mean(y[h]),
        "true_positive_rate": np.mean(h[y]),
        "f1": 2 * np.mean(h & y) / (np.mean(h) + np.mean(y)),
        "roc_auc": roc_auc_score(y, z),
    }[name]
    rng, held = np.random.default_rng(4), 0
    for _ in range(150):
        z, _ = world(400, rng)
        labels = PairLabels.from_posteriors(expit(z[::2]), expit(z[1::2]))
        estimate = getattr(evaluate(z[::2], z[1::2], labels, labelled=world(100, rng)), name)
        held += estimate.low <= truth <= estimate.high
    assert held >= 136


@pytest.mark.parametrize("labels", [30, 100])
def test_intervals_hold_whatever_the_annotators_do(labels: int) -> None:
    """Answers drawn at random, and a model that is too sure."""
    z, y = world(500_000, np.random.default_rng(0))
    truth = float(np.mean((z > 0) == y))
    rng, held, widths = np.random.default_rng(5), 0, []
    for _ in range(200):
        z, _ = world(400, rng)
        known, y = world(labels, rng)
        estimate = assess(z, (known, y), rng.random(400))
        held += estimate.low <= truth <= estimate.high
        share = float(np.mean((known > 0) == y))
        wilson = proportion(share, share * (1 - share) / labels, labels, 1.96)
        widths.append([estimate.high - estimate.low, wilson.high - wilson.low])
    assert held >= 181
    ours, others = np.mean(widths, axis=0)
    assert ours <= 1.02 * others


def test_items_that_recur_count_once() -> None:
    rng = np.random.default_rng(6)
    z, (known, y) = world(600, rng)[0], world(80, rng)
    once = assess(z, LabelledItems(known, y))
    twice = LabelledItems(np.tile(known, 2), np.tile(y, 2), items=np.tile(np.arange(80), 2))
    again = assess(z, twice)
    assert (again.value, again.low, again.high) == pytest.approx(
        (once.value, once.low, once.high), abs=1e-6
    )
    naive = assess(z, (np.tile(known, 2), np.tile(y, 2)))
    assert naive.high - naive.low < 0.8 * (once.high - once.low)


def test_labelled_items_may_be_items_of_the_pairs() -> None:
    """If all items of the pairs are labelled, predictions add nothing to the labels."""
    z, y = world(200, np.random.default_rng(7))
    ids = np.arange(200)
    estimate = assess(z, LabelledItems(z, y, items=ids), items=ids.reshape(-1, 2))
    share = float(np.mean((z > 0) == y))
    wilson = proportion(share, share * (1 - share) / 200, 200, 1.96)
    assert estimate.value == pytest.approx(share)
    assert (estimate.low, estimate.high) == pytest.approx((wilson.low, wilson.high), abs=1e-3)


def test_weights_undo_how_items_were_chosen() -> None:
    """Items near the threshold were labelled ten times as often."""
    rng = np.random.default_rng(8)
    z, y = world(200_000, rng)
    chance = np.where(abs(z) < 4, 0.2, 0.02)
    kept = rng.random(len(z)) < chance
    pool, truth = world(20_000, rng)[0], float(np.mean((z > 0) == y))
    plain = assess(pool, (z[kept], y[kept]))
    weighted = assess(pool, LabelledItems(z[kept], y[kept], weight=1 / chance[kept]))
    assert plain.high < truth - 0.02
    assert weighted.low < truth < weighted.high < weighted.low + 0.02


def test_items_that_were_chosen_by_the_model_are_no_random_sample() -> None:
    """Those that it is least sure of, or mostly of one class; a random sample is fine."""
    rng = np.random.default_rng(16)
    (z, _), (more, y) = world(1000, rng), world(4000, rng)
    rare = (more < 0) | (rng.random(4000) < 0.2)
    unsure = np.argsort(abs(more))[:100]
    labels = PairLabels.from_posteriors(expit(z[::2]), expit(z[1::2]))

    def warned(rows: Any, weight: Any = None, alone: bool = False) -> bool:
        known = LabelledItems(more[rows], y[rows], weight, alone=alone)
        found = evaluate(z[::2], z[1::2], labels, labelled=known).warnings
        return any("not a random sample" in text for text in found)

    assert warned(unsure) and warned(rare) and not warned(unsure, alone=True)
    assert not warned(np.arange(100)) and not warned(slice(None))
    weight = np.where(more > 0, 5.0, 1.0)[rare]
    assert not warned(rare, weight)


@pytest.mark.parametrize(
    ("sure", "support", "confidence"),
    [(1.0, "informed", None), (3.0, "below", "over"), (0.3, "between", None)],
)
def test_labels_tell_which_reading_they_support(sure: float, support: str, confidence: Any) -> None:
    """Annotators see what the model uses and say σ(sure · z) of it.

    Answers that are too unsure widen the bracket, so that it still holds.
    """
    rng = np.random.default_rng(9)
    z, known = rng.normal(0, 2, 4000), rng.normal(0, 2, 1000)
    y = rng.random(1000) < expit(known)
    check = assess(z, (known, y), expit(sure * z)).labelled
    assert check is not None and check.slope is None
    assert (check.supports, check.confidence) == (support, confidence)
    assert ("over-confident" in check.sentence()) == (confidence == "over")


def test_labels_tell_of_private_knowledge() -> None:
    rng = np.random.default_rng(10)

    def items(size: int) -> tuple[Array, Array, Array]:
        y = rng.random(size) < 0.5
        x, own = rng.normal(np.where(y, 1.5, -1.5), 1, size=(2, size))
        return 3 * x, y, expit(3 * own)

    z, _, r = items(4000)
    known, y, _ = items(2000)
    check = assess(z, (known, y), r).labelled
    assert check is not None and check.supports == "independent"


@pytest.mark.parametrize(
    ("sure", "confidence"), [(0.5, "under"), (1.0, None), (2.0, "over"), (None, None)]
)
def test_labelled_items_in_pairs_show_the_confidence(sure: float | None, confidence: Any) -> None:
    """Calibrated annotators have a slope of one; hard answers show none."""
    rng = np.random.default_rng(13)
    z = rng.normal(0.5, 2, 2000)
    y = rng.random(2000) < expit(z)
    some = rng.permutation(2000)[:600]
    r = (y * 1.0) if sure is None else expit(sure * z)
    known = LabelledItems(z[some], y[some], items=some)
    check = assess(z, known, r, items=np.arange(2000).reshape(-1, 2)).labelled
    assert check is not None and check.confidence == confidence
    assert (check.slope is None) == (sure is None)
    if sure == 1.0:
        assert check.slope is not None and check.slope.low < 1 < check.slope.high
    elif sure is not None:
        assert f"the annotators are {confidence}-confident" in check.sentence()


def test_rank_with_labels() -> None:
    rng = np.random.default_rng(11)
    z, _ = world(1000, rng)
    known, y = world(400, rng)
    noise, more = rng.normal(0, 8, 1000), rng.normal(0, 8, 400)
    outputs = np.stack([z, z + noise, z]).reshape(3, 500, 2)
    labels = PairLabels.from_posteriors(expit(z[::2]), expit(z[1::2]))
    both = np.stack([known, known + more, known])
    rows = rank(["good", "noisy", "same"], outputs, labels, labelled=(both, y))
    assert [row.name for row in rows] == ["good", "same", "noisy"]
    alone = assess(z, (known, y))
    assert rows[0].accuracy.value == pytest.approx(alone.value)
    assert rows[1].tie and rows[1].difference.value == 0
    assert not rows[2].tie and rows[2].difference.high < 0


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (3, r"labelled must be \(logits, y\), "),
        (([1.0], [1]), "labelled needs the logits of two or more items"),
        (([1.0, 2.0], [1, 2]), "classes of labelled must be 1, and 0 or -1; row 1 is 2"),
        (([1.0, 2.0, 3.0], [1, 0, -1]), "classes of labelled are -1, 0 and 1"),
        (([1.0, 2.0], [1, 0, 0]), "the classes of labelled must have shape"),
        (([1.0, np.nan], [1, 0]), "the logits of labelled is NaN in row 1"),
    ],
)
def test_errors_name_the_argument(known: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assess(np.linspace(-1, 1, 20), known)
    with pytest.raises(ValueError, match="items of labelled must have shape"):
        LabelledItems(np.zeros(2), np.ones(2), items=[1])


def test_labels_of_one_class_are_enough() -> None:
    z, known = np.linspace(-3, 3, 100), np.array([1.0, 2.0, -1.0])
    result = evaluate(
        z[::2],
        z[1::2],
        PairLabels.from_posteriors(expit(z[::2]), expit(z[1::2])),
        labelled=(known, np.ones(3)),
    )
    assert np.isnan(result.roc_auc.value)
    assert 0 <= result.accuracy.low < result.accuracy.value < result.accuracy.high <= 1


def test_a_classifier_takes_labelled_instances() -> None:
    rng = np.random.default_rng(14)
    y = rng.random(700) < 0.4
    x = rng.normal(np.where(y, 1.2, -1.2)[:, None], 1, size=(700, 2))
    r = expit(2.4 * x.sum(1) + np.log(0.4 / 0.6))
    ends = np.arange(600).reshape(-1, 2)
    labels = PairLabels.from_posteriors(*r[ends].T)
    model = PairClassifier(model="linear", epochs=30, random_state=0)
    model.fit(x[ends[:150]], labels[:150])
    held, known = (x[ends[150:]], labels[150:]), (x[600:], np.where(y[600:], 1, -1))
    estimate = model.estimate_accuracy(*held, labelled=known)
    right = int((model.predict(known[0]) == known[1]).sum())
    assert estimate.labelled is not None
    assert (estimate.labelled.right, estimate.labelled.n) == (right, 100)
    assert estimate.value == pytest.approx(right / 100, abs=0.03)
    assert model.evaluate(*held, labelled=known).accuracy.value == pytest.approx(estimate.value)
    with pytest.raises(ValueError, match="labelled has classes"):
        model.estimate_accuracy(*held, labelled=(x[600:], np.full(100, 7)))
    with pytest.warns(SeenItemsWarning, match="was trained on 50 of the 150 labelled items"):
        both = model.estimate_accuracy(
            *held,
            labelled=(np.concatenate([x[:50], known[0]]), np.where(np.r_[y[:50], y[600:]], 1, -1)),
        )
    assert both == estimate
    with pytest.raises(ValueError, match="was trained on 50 of the 50 labelled items"):
        model.estimate_accuracy(*held, labelled=(x[:50], np.where(y[:50], 1, -1)))
    weighted = model.estimate_accuracy(
        *held, labelled=(*known, np.r_[np.ones(50), np.full(50, 1e-9)])
    )
    first = model.estimate_accuracy(*held, labelled=(known[0][:50], known[1][:50]))
    assert weighted.value == pytest.approx(first.value, abs=1e-6)


def test_people_who_judged_the_same_pairs_with_yes_or_no_show_what_they_know() -> None:
    """κ of hard answers is E[c₁c₂]/E[1 − s] over two people, and not over one who answers twice."""
    rng = np.random.default_rng(15)
    y = rng.random(12_000) < 0.5
    x = rng.normal(np.where(y, 1.0, -1.0)[:, None], 1, size=(12_000, 2))
    seen = rng.normal(np.where(y, 1.5, -1.5))
    r = expit(3 * seen)
    answered = rng.random((2, len(r))) < r  # each person draws from the same belief
    ends = np.tile(np.arange(12_000).reshape(-1, 2), (2, 1))
    hard = np.concatenate([one[ends[:6000]] for one in answered]).astype(float)
    labels = PairLabels.from_posteriors(*hard.T)
    who = np.repeat(["ann", "bob"], 6000)
    train = np.tile(np.arange(6000) < 3000, 2)
    model = PairClassifier(model="linear", epochs=20, random_state=0, annotators="ideal")
    model.fit(x[ends[train]], labels[train])
    held = x[ends[~train]], labels[~train]
    estimate = model.estimate_accuracy(*held, annotator=who[~train])
    kappa = np.var(r) / 0.25
    assert estimate.knowledge.low < kappa < estimate.knowledge.high < kappa + 0.1
    truth = np.mean(model.predict(x) == np.where(y, 1, -1))
    assert estimate.low < truth < estimate.high < 1
    alone = model.estimate_accuracy(*held, annotator=np.repeat("ann", 6000))
    assert np.isnan(alone.independent.value)
    assert alone.high == 1
