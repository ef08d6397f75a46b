"""`compare`: cross-validated ranking without labels."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

from pairlearn import PairClassifier, PairLabels, comparison
from pairlearn.comparison import Decide, compare, default_methods
from pairlearn.estimators import PriorMismatchWarning
from pairlearn.evaluation import estimate_accuracy
from pairlearn.evaluation.decisions import rank
from pairlearn.evaluation.judged import largest_deviation
from pairlearn.simulation import simulate
from pairlearn_bench.simulated import add_noise

QUICK: dict[str, Any] = {
    "model": "linear",
    "epochs": 10,
    "batch_size": 32,
    "learning_rate": 0.05,
    "device": "cpu",
    "majority": "negative",
}
TWO = ["likelihood-abs", "confdiff-none"]


def table(n: int = 200, **options: Any) -> tuple[NDArray[Any], NDArray[Any], PairLabels]:
    made = simulate("gaussians", pairs=n, **{"prior": 0.3, "overlap": 0.1} | options)
    return made.items.features, made.pairs.ids(), made.pairs.labels()


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("model", ["linear", "mlp-bn", nn.Linear(2, 1)], ids=str)
def test_what_is_ranked_is_what_pair_classifier_trains(
    model: Any, mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fold by fold: the same log-odds, whether methods train together or apart."""
    options = {"model": model, "epochs": 3, "batch_size": 32, "learning_rate": 1e-3}
    some: dict[str, Any] = {"missing": 0.4, "preference": 0.2, "repeated": 0.2, "annotators": 2}
    made = simulate("gaussians", pairs=90, seed=3, **(some if mixed else {}))
    ends, answers, preference = made.pairs.ids(), made.pairs.to_array(), made.pairs.preference
    weight = np.random.default_rng(0).uniform(0.2, 3, len(ends))
    folds: list[Any] = []
    held_out = comparison._held_out

    def record(parts: Any, *rest: Any) -> Any:
        folds.extend(parts)
        return held_out(parts, *rest)

    monkeypatch.setattr(comparison, "_held_out", record)
    models: list[dict[str, Decide]] = []
    names = ["likelihood-abs", "sconfconfdiff-relu", "confdiff-none"]
    compare(
        made.items.features, ends, answers, weight=weight, preference=preference, methods=names,
        prior=0.3, folds=2, after_fold=lambda fitted: models.append(dict(fitted)), device="cpu",
        precision="float64", **options,
    )  # fmt: skip
    x = made.items.features
    for fold, by_name in zip(folds, models, strict=True):
        for name, decide in by_name.items():
            classifier = PairClassifier(
                risk=name, prior=0.3, device="cpu", precision="float64", preprocessor=x,
                random_state=fold.seed, **options,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PriorMismatchWarning)  # three epochs learn none
                z = classifier.fit(None, fold.training).decision_function(x)
            assert decide(x) == pytest.approx(z, abs=1e-5 * np.abs(z).max())


def test_intervals_hold_the_true_accuracies_of_the_models_and_the_order_is_right() -> None:
    """At prior .45 Sconf divides by −.1, and learns little from 400 noisy pairs."""
    x, pairs, labels = table(400, prior=0.45)
    fresh = simulate("gaussians", pairs=5000, prior=0.45, overlap=0.1, seed=9)
    right: dict[str, list[float]] = {}

    def look(models: Mapping[str, Decide]) -> None:
        for name, decide in models.items():
            decided = decide(fresh.items.features) > 0
            right.setdefault(name, []).append(float((decided == fresh.positive).mean()))

    ranking = compare(
        x, pairs, add_noise(labels, 0.5, seed=0), methods=["sconf-none", *TWO], prior=0.45,
        after_fold=look, folds=3, **QUICK,
    )  # fmt: skip
    assert [row.name for row in ranking.rows][2] == "sconf-none"
    assert not ranking.rows[2].tie
    assert ranking.rows[2].difference.high < 0
    for row in ranking.rows:
        assert len(right[row.name]) == 3
        assert row.accuracy.low <= np.mean(right[row.name]) <= row.accuracy.high


def test_ties_are_grouped_and_methods_that_coincide_are_shown_once() -> None:
    x, pairs, labels = table(150)
    ranking = compare(x, pairs, labels, methods=["nonnegative", "likelihood-abs"], **QUICK)
    # On feasible labels no partial risk of the non-negative member is negative.
    first, *others = [row for row in ranking.rows if row.name.startswith("nonnegative")]
    assert first.same_as is None
    assert [row.same_as for row in others] == [first.name] * 2
    assert {row.accuracy for row in others} == {first.accuracy}
    assert ranking.ties == tuple(row.name for row in ranking.rows[1:] if row.difference.high >= 0)
    assert not ranking.best.tie
    title = "nonnegative-abs (= nonnegative-relu, nonnegative-none)"
    assert {line[0] for line in ranking.table()} == {title, "likelihood-abs"}
    assert str(ranking).count("nonnegative-none") == ranking.verdict.count("nonnegative-none") == 1
    best, other = (line[0] for line in ranking.table())
    tied = f"cannot be told from it: {other}" if ranking.rows[-1].tie else "no other comes near it"
    assert ranking.verdict == f"best: {best}; {tied}"


def test_all_methods_by_default_and_the_same_again() -> None:
    x, pairs, labels = table(120)
    calls: list[tuple[int, int]] = []
    options = QUICK | {"epochs": 2, "folds": 2}
    ranking = compare(x, pairs, labels, progress=lambda *at: calls.append(at), **options)
    assert {row.name for row in ranking.rows} == set(default_methods())
    assert calls == [(50, 200), (100, 200), (150, 200), (200, 200)]
    assert (ranking.pairs, ranking.tested, ranking.dropped, ranking.folds) == (120, 120, 0, 2)
    assert ranking.prior == pytest.approx(0.3, abs=0.06)
    values = [row.accuracy.value for row in ranking.rows]
    assert values == sorted(values, reverse=True)
    # Who is the majority is ranking if it is not told.
    assert compare(x, pairs, labels, **options | {"majority": None}) == ranking
    assert compare(x, pairs, labels, seed=1, methods=TWO, **options) != ranking
    data = json.loads(json.dumps(ranking.to_dict()))
    assert (data["best"], data["methods"][0]["name"]) == (ranking.best.name,) * 2
    assert {"accuracy", "difference", "tie", "same_as"} < set(data["methods"][0])


def test_repeats_split_anew_and_count() -> None:
    x, pairs, labels = table(80)
    once, twice = (
        compare(x, pairs, labels, methods=TWO, folds=2, repeats=k, **QUICK) for k in (1, 2)
    )
    assert (twice.pairs, twice.tested, twice.repeats) == (80, 160, 2)
    wide = [row.accuracy.high - row.accuracy.low for row in (once.rows[0], twice.rows[0])]
    assert wide[1] > 0.7 * wide[0]  # the same judgements: twice is not twice as many


def test_what_tests_models_and_what_is_lost() -> None:
    """Preferences train and do not test; of recurring items pairs are lost, and that is said."""
    for options, dropped in (({"missing": 0.5, "preference": 0.2}, False), ({"items": 60}, True)):
        made = simulate("gaussians", pairs=200, overlap=0.1, **options)
        judged = made.pairs[made.pairs.left != made.pairs.right]
        ranking = compare(
            made.items, judged.ids(), judged.to_array(), preference=judged.preference,
            methods=TWO, folds=2, **QUICK,
        )  # fmt: skip
        assert (
            ranking.pairs == len(judged) and ranking.tested + ranking.dropped == judged.judged.sum()
        )
        assert bool(ranking.dropped) == dropped
        lost = [
            text for text in ranking.warnings if "in different folds and tested no model" in text
        ]
        assert bool(lost) == dropped
        assert all(row.accuracy.value > 0.75 for row in ranking.rows)


@pytest.mark.parametrize("kept", [0, 1])
def test_one_kind_of_judgement_needs_the_prior(kept: int) -> None:
    x, pairs, labels = table(120)
    answers = labels.to_array()
    answers[:, 1 - kept] = np.nan
    family = ("sconf-abs", "confdiff-abs")[kept]
    options = QUICK | {"methods": ["likelihood-abs", family], "folds": 2, "learning_rate": 0.05}
    with pytest.raises(ValueError, match="alone, which does not fix the accuracy"):
        compare(x, pairs, answers, **options)
    ranking = compare(x, pairs, answers, prior=0.3, **options)
    assert ranking.best.accuracy.value > 0.75


def test_methods_that_the_prior_rules_out() -> None:
    x, pairs, labels = table(60, prior=0.5)
    options = QUICK | {"epochs": 1, "folds": 2}
    ranking = compare(x, pairs, labels, prior=0.5, **options)
    assert not any(row.name.startswith(("sconf-", "convex")) for row in ranking.rows)
    assert len(ranking.rows) == 12
    assert "left out, because undefined at a class prior of ½: sconf-abs" in ranking.warnings[-2]
    wrong = compare(x, pairs, labels, prior=0.1, methods=TWO, **options)
    assert wrong.prior == 0.1 and "the stated class prior is 0.1" in wrong.warnings[0]
    with pytest.raises(ValueError, match="method 'sconf-abs': sconf is undefined at prior ½"):
        compare(x, pairs, labels, prior=0.5, methods=["sconf-abs"], **options)


def test_models_that_diverge_decide_negative_and_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = comparison._train_together

    def broken(*arguments: Any) -> list[Decide]:
        return [together(*arguments)[0], lambda x: np.full(len(x), np.nan)]

    monkeypatch.setattr(comparison, "_train_together", broken)
    x, pairs, labels = table(300)
    ranking = compare(x, pairs, labels, methods=TWO, **QUICK | {"folds": 2})
    assert ranking.rows[1].name == "confdiff-none"
    assert ranking.rows[1].accuracy.value == pytest.approx(0.7, abs=0.06)
    assert "confdiff-none: training diverged, some outputs are not numbers" in ranking.warnings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": 1}, "folds must be a whole number of at least 2; got 1"),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\); got 1.0"),
        ({"methods": []}, "methods is empty"),
        ({"methods": "sconf"}, "methods must be a sequence of names; got 'sconf'"),
        ({"methods": ["nonsense-abs"]}, "risk 'nonsense-abs' is unknown"),
        ({"methods": ["supervised"]}, "'supervised' reads classes"),
        ({"prior": 1.5}, "The 'prior' parameter of PairClassifier must be"),
        ({"folds": 41}, "folds is 41, and the 40 pairs cannot be split"),
    ],
)
def test_bad_requests(changes: dict[str, Any], message: str) -> None:
    x, pairs, labels = table(40)
    with pytest.raises(ValueError, match=message):
        compare(x, pairs, labels, **QUICK | {"methods": TWO} | changes)


def test_bad_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    x, pairs, labels = table(40)
    itself = pairs.copy()
    itself[3, 1] = itself[3, 0]
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="row 3 pairs an item wi"):
        patch.setattr(comparison, "_corrected", None)  # nothing is trained before
        compare(x, itself, labels, methods=TWO, **QUICK)
    star = np.stack([np.zeros(40, int), np.arange(1, 41)], 1)
    with pytest.raises(ValueError, match="pairs to train and to test the models of every fold"):
        compare(x, star, labels, methods=TWO, **QUICK | {"folds": 2})
    with pytest.raises(ValueError, match="scikit-learn classifier"):
        compare(x, pairs, labels, methods=TWO, **QUICK | {"model": PairClassifier()})


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
    quantile = largest_deviation(np.eye(count) * 4, 0.95, 1e9, differences=True)
    assert quantile == pytest.approx(range_ / np.sqrt(2), rel=0.015)


def test_quantiles_ignore_copies_and_widen_for_few_items() -> None:
    one = np.array([[1.0, 0.3], [0.3, 2.0]])
    copied = one[np.ix_([0, 0, 1], [0, 0, 1])]
    for covariance, ends, wanted in (
        (copied, 1e9, 1.96),
        (np.zeros((3, 3)), 1e9, 1.96),
        (one, 12, 2.228),  # Student's t with 10 degrees of freedom
    ):
        quantile = largest_deviation(covariance, 0.95, ends, differences=True)
        assert quantile == pytest.approx(wanted, rel=0.015)
    # Of ten independent variables themselves: Φ(x)^10 = 0.975 with both signs.
    assert largest_deviation(np.eye(10), 0.95, 1e9) == pytest.approx(2.80, rel=0.015)


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
