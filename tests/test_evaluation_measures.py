"""Measures, curves and thresholds, against a small population enumerated exactly.

The population has six kinds of instances: an output, a posterior and a share each. The
table that holds every ordered couple of kinds, weighted by its probability, is that
population itself, so estimates must be the population's numbers.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from pairlearn import PairLabels
from pairlearn.evaluation import (
    Estimate,
    Evaluation,
    calibration_curve,
    evaluate,
)

OUTPUT = np.array([-2.0, -1.0, -1.0, 0.5, 0.5, 3.0])
POSTERIOR = np.array([0.05, 0.3, 0.1, 0.4, 0.7, 0.95])
SHARE = np.array([0.4, 0.1, 0.15, 0.15, 0.1, 0.1])
NEAR = 2e-3  # What the weak pseudo-observations can move in a table of 36 rows.


def population() -> tuple[np.ndarray, np.ndarray, PairLabels, np.ndarray]:
    left, right = np.array(list(itertools.product(range(6), repeat=2))).T
    labels = PairLabels.from_posteriors(POSTERIOR[left], POSTERIOR[right])
    return OUTPUT[left], OUTPUT[right], labels, SHARE[left] * SHARE[right]


def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, PairLabels]:
    left, right = rng.choice(6, size=(2, n), p=SHARE)
    labels = PairLabels.from_posteriors(POSTERIOR[left], POSTERIOR[right])
    return OUTPUT[left], OUTPUT[right], labels


def shares(threshold: float) -> dict[str, float]:
    """Confusion matrix of the population."""
    above = threshold < OUTPUT
    return {
        "true_positive": float((SHARE * POSTERIOR)[above].sum()),
        "false_positive": float((SHARE * (1 - POSTERIOR))[above].sum()),
        "false_negative": float((SHARE * POSTERIOR)[~above].sum()),
        "true_negative": float((SHARE * (1 - POSTERIOR))[~above].sum()),
    }


def truths(threshold: float) -> dict[str, float]:
    tp, fp, fn, tn = shares(threshold).values()
    tpr, fpr, precision = tp / (tp + fn), fp / (fp + tn), tp / (tp + fp)
    return {
        "accuracy": tp + tn,
        "true_positive_rate": tpr,
        "false_positive_rate": fpr,
        "precision": precision,
        "f1": 2 / (1 / precision + 1 / tpr),
        "balanced_accuracy": (tpr + 1 - fpr) / 2,
        "prior": tp + fn,
        "expected_cost": 2 * fp + 5 * fn,
    }


def true_auc() -> float:
    weight = np.outer(SHARE * POSTERIOR, SHARE * (1 - POSTERIOR))
    order = np.sign(np.subtract.outer(OUTPUT, OUTPUT))  # positive less negative
    return float((weight * (1 + order) / 2).sum() / weight.sum())


# ---- evaluate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [-1.5, 0.0, 1.0])
def test_the_population_has_its_own_measures(threshold: float) -> None:
    z, z_prime, labels, weight = population()
    evaluation = evaluate(z, z_prime, labels, weight=weight, threshold=threshold, cost=(2.0, 5.0))
    for name, truth in truths(threshold).items():
        assert getattr(evaluation, name).value == pytest.approx(truth, abs=NEAR * 5), name
    for name, truth in shares(threshold).items():
        assert evaluation.confusion[name].value == pytest.approx(truth, abs=NEAR), name
    assert evaluation.roc_auc.value == pytest.approx(true_auc(), abs=1e-12)


def test_every_interval_covers() -> None:
    rng = np.random.default_rng(0)
    expected = truths(0.0) | {"roc_auc": true_auc()}
    covered = dict.fromkeys(expected, 0)
    for _ in range(120):
        evaluation = evaluate(*sample(rng, 300), cost=(2.0, 5.0))
        for name, truth in expected.items():
            estimate: Estimate = getattr(evaluation, name)
            covered[name] += estimate.low <= truth <= estimate.high
    assert all(0.88 <= count / 120 <= 1 for count in covered.values()), covered


def test_missing_judgements_of_a_large_table() -> None:
    z, z_prime, labels = sample(np.random.default_rng(1), 100_000)
    half = np.arange(100_000) % 2 == 0
    halves = PairLabels(
        np.where(half, labels.similarity, np.nan), np.where(half, np.nan, labels.difference)
    )
    auc = evaluate(z, z_prime, halves).roc_auc
    assert auc.value == pytest.approx(true_auc(), abs=0.01)
    assert auc.low < true_auc() < auc.high
    alone, prior = PairLabels(None, labels.difference), truths(0.0)["prior"]
    evaluation = evaluate(z, z_prime, alone, prior=prior)
    assert evaluation.accuracy.value == pytest.approx(truths(0.0)["accuracy"], abs=0.01)
    assert np.isnan(evaluation.roc_auc.value)


def test_dictionary_text_and_undefined_measures() -> None:
    z, z_prime, labels = sample(np.random.default_rng(3), 300)
    evaluation = evaluate(z, z_prime, labels, cost=(1, 1))
    fields = json.loads(json.dumps(evaluation.to_dict()))
    assert fields["accuracy"]["value"] == evaluation.accuracy.value
    assert fields["confusion"]["true_negative"]["low"] == evaluation.confusion["true_negative"].low
    assert (fields["n"], fields["effective_pairs"]) == (300, pytest.approx(300))
    assert fields["expected_cost"]["value"] == pytest.approx(1 - evaluation.accuracy.value)
    text = str(evaluation)
    assert text.startswith("300 pairs, 0.95 intervals, threshold 0\naccuracy")
    assert "expected cost" in text
    never = evaluate(z, z_prime, labels, threshold=10.0)
    fields = never.to_dict()
    undefined = {"value": None, "low": 0, "high": 1}
    assert fields["precision"] == undefined | {"informed": undefined, "independent": undefined}
    assert (never.true_positive_rate.value, fields["expected_cost"]) == (0, None)
    assert warned(never, "do not tell which class is which")
    certain = [np.where(x > 0, np.inf, -np.inf) for x in (z, z_prime)]
    assert evaluate(*certain, labels).accuracy == evaluation.accuracy


def warned(evaluation: Evaluation, text: str) -> bool:
    return any(text in warning for warning in evaluation.warnings)


def test_warnings() -> None:
    rng = np.random.default_rng(4)
    z, z_prime, labels = sample(rng, 500)
    assert not evaluate(z, z_prime, labels).warnings
    assert not evaluate(z, z_prime, labels, prior=truths(0.0)["prior"]).warnings
    assert warned(evaluate(-z, -z_prime, labels), "the judgements contradict the decisions")
    assert warned(evaluate(z, z_prime, labels, prior=0.6), "the stated prior is 0.6 and the")
    assert warned(evaluate(z[:20], z_prime[:20], labels[:20]), "are worth only 20 independent ones")
    # Two items that meet everybody make many pairs worth few.
    items = np.stack([np.arange(500) % 2, np.arange(500) + 2], 1)
    assert warned(evaluate(z, z_prime, labels, items=items), "are worth only 4 independent ones")
    chance = rng.normal(size=(2, 500))
    silent = evaluate(*chance, labels)
    assert warned(silent, "which can be chance") or warned(silent, "which class is which")
    for constant in (np.ones(500), -np.ones(500)):  # exactly no difference, and no error of it
        same = evaluate(constant, constant, labels, side="negative")
        assert warned(same, "differ by only 0.000, which can be chance")


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_near_neighbours_are_warned_of(weighted: bool) -> None:
    """Similar ends bias the estimate: about 0.5, where 0.9 is true."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4000, 3))
    z = 2 * x[:, 0] + x[:, 1]  # a classifier that does not see the third feature
    r = 1 / (1 + np.exp(-2 * (z + x[:, 2])))
    truth = np.where(z > 0, r, 1 - r).mean()
    left, right = rng.permutation(4000).reshape(2, 2000)
    independent = evaluate(z[left], z[right], PairLabels.from_posteriors(r[left], r[right]))
    assert not independent.warnings
    assert independent.accuracy.low <= truth <= independent.accuracy.high
    distance = ((x[left[:300], None] - x[right]) ** 2).sum(2)
    near = right[distance.argmin(1)]
    pairs = np.stack([left[:300], near], 1)
    if weighted:  # near pairs among many others, with the weights that undo their choice
        pairs = np.concatenate([pairs[:60], np.stack([left[300:900], right[300:900]], 1)])
    weight = np.where(np.arange(len(pairs)) < 60, 1e-3, 1.0) if weighted else None
    labels = PairLabels.from_posteriors(*r[pairs].T)
    evaluation = evaluate(*z[pairs].T, labels, items=pairs, weight=weight)
    assert warned(evaluation, "not independent draws: pairs of near neighbours") == (not weighted)
    informed = evaluation.accuracy.informed
    assert (informed.low <= truth <= informed.high) == weighted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"cost": (1, -1)},
            r"cost must be two finite .*, not negative and not both zero; got \(1, -1\)",
        ),
        (
            {"cost": 3},
            r"cost must be two finite numbers, \(false positive, false negative\), .*; got 3",
        ),
        ({"threshold": float("nan")}, "threshold is NaN: give a finite number"),
    ],
)
def test_errors_of_evaluate(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(*sample(np.random.default_rng(5), 50), **options)


# ---- threshold ----------------------------------------------------------------------------------


def test_thresholds_of_costs_under_both_readings() -> None:
    """The least of the expected costs over all thresholds, for annotators of either sort."""
    rng = np.random.default_rng(7)
    y = rng.random(200_000) < 0.3
    seen = rng.normal(np.where(y, 1.0, -1.0))
    r = expit(2 * rng.normal(np.where(y, 1.0, -1.0)) + logit(0.3))
    grid = np.linspace(0.02, 0.9, 89)
    for own, place in ((False, 0), (True, 1)):  # they know what the model uses, or something else
        p = expit(2 * seen + logit(0.3))
        answers = r if own else p
        if own:  # what a model learns from answers of such annotators
            p = 0.3 + np.polyfit(y, r, 1)[0] * (p - 0.3)
        z, labels = logit(p), PairLabels.from_posteriors(answers[::2], answers[1::2])
        result = evaluate(z[::2], z[1::2], labels, cost=(1, 4))
        costs = [np.mean((p > t) & ~y) + 4 * np.mean((p <= t) & y) for t in grid]
        assert result.thresholds[place] == pytest.approx(grid[np.argmin(costs)], abs=0.03)
        assert (
            f"threshold on the probability is {result.thresholds[0]:.2f}" in result.sentences()[0]
        )
        known = z[:300], y[:300]
        labelled = evaluate(z[::2], z[1::2], labels, cost=(1, 4), labelled=known)
        assert labelled.fits == ("independent" if own else "informed")
        chosen = labelled.thresholds[place]
        assert f"is {chosen:.2f} by the labelled items" in labelled.sentences()[0]


def test_labels_without_a_positive_leave_the_thresholds_of_the_answers() -> None:
    z, z_prime, labels = sample(np.random.default_rng(3), 200)
    result = evaluate(z, z_prime, labels, labelled=(np.linspace(-3, -1, 20), np.zeros(20)))
    assert result.prior.value == 0
    assert 0 < result.thresholds[1] < 1


# ---- calibration --------------------------------------------------------------------------------


BY_OUTPUT = [z == OUTPUT for z in (-2.0, -1.0, 0.5, 3.0)]
RATES = [(SHARE * POSTERIOR)[kinds].sum() / SHARE[kinds].sum() for kinds in BY_OUTPUT]


def probabilities() -> tuple[np.ndarray, np.ndarray, PairLabels, np.ndarray]:
    z, z_prime, labels, weight = population()
    return 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z_prime)), labels, weight


def test_the_calibration_of_the_population() -> None:
    p, p_prime, labels, weight = probabilities()
    # Nothing lies in two of the bins: they join their neighbours.
    curve = calibration_curve(p, p_prime, labels, weight=weight, bins=50)
    assert curve.shares == pytest.approx([SHARE[kinds].sum() for kinds in BY_OUTPUT])
    outputs = np.array([OUTPUT[kinds][0] for kinds in BY_OUTPUT])
    assert curve.predicted == pytest.approx(1 / (1 + np.exp(-outputs)))
    assert [rate.value for rate in curve.implied] == pytest.approx(RATES, abs=5 * NEAR)


def test_calibration_intervals_cover() -> None:
    rng = np.random.default_rng(9)
    covered = np.zeros(4)
    for _ in range(80):
        z, z_prime, labels = sample(rng, 400)
        curve = calibration_curve(*(1 / (1 + np.exp(-x)) for x in (z, z_prime)), labels, bins=50)
        covered += [r.low <= e <= r.high for r, e in zip(curve.implied, RATES, strict=True)]
    assert (covered / 80 >= 0.88).all(), covered


def test_bins_hold_equal_shares() -> None:
    r = np.random.default_rng(10).random((2, 1000))
    labels = PairLabels.from_posteriors(*r)
    for options in ({}, {"prior": 0.5}):
        curve = calibration_curve(*r, labels, bins=5, **options)
        assert curve.shares == pytest.approx([0.2] * 5, abs=0.01)
        assert [e.value for e in curve.implied] == pytest.approx(curve.predicted, abs=0.03)
    assert len(calibration_curve(*np.round(r), labels, bins=10).shares) == 2
    assert len(calibration_curve(0 * r[0], 0 * r[1], labels).shares) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bins": 0}, "bins must be a whole number of at least 1; got 0"),
        ({"bins": 2.5}, "bins must be a whole number of at least 1; got 2.5"),
        ({"probabilities_prime": np.full(36, 2)}, r"_prime must lie in \[0, 1\]; row 0 is 2"),
    ],
)
def test_errors_of_calibration(change: dict[str, Any], message: str) -> None:
    p, p_prime, labels, _ = probabilities()
    arguments = {"probabilities": p, "probabilities_prime": p_prime, "labels": labels}
    with pytest.raises(ValueError, match=message):
        calibration_curve(**arguments | change)


def test_rare_positives_lead() -> None:
    """With 3% positives the recall comes first, and the threshold of the independent reading."""
    rng = np.random.default_rng(12)
    y = rng.random(4000) < 0.03
    z = 4 * (y - 0.5) + rng.normal(size=4000) - 2
    r = 1 / (1 + np.exp(-(3 * rng.normal(np.where(y, 1.5, -1.5)) + np.log(0.03 / 0.97))))
    labels = PairLabels.from_posteriors(r[::2], r[1::2])
    result = evaluate(z[::2], z[1::2], labels)
    first, threshold, accuracy = result.sentences()
    assert first.startswith(f"Positives are rare ({result.prior.value:.1%} of the items)")
    assert accuracy == result.accuracy.sentence()
    assert list(result.rows())[:4] == ["true positive rate", "precision", "roc auc", "accuracy"]
    # E[r | x] = π(1 − κ) + κ P(y = 1 | x), by the regression of r on y.
    kappa = np.polyfit(y, r, 1)[0]
    stated = float(threshold.split("and ")[1].split()[0])
    assert stated == pytest.approx(0.03 * (1 - kappa) + kappa / 2, abs=0.06)
    balanced = PairLabels.from_posteriors(*np.random.default_rng(1).random((2, 400)))
    (only,) = evaluate(*np.random.default_rng(1).random((2, 400)) - 0.5, balanced).sentences()
    assert "rare" not in only
