"""The command `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import fitted, plain, probability, run, simulated
from pairlearn import evaluate as evaluate_arrays
from pairlearn.data.simulation import Simulation
from pairlearn.estimators import PairClassifier
from pairlearn.evaluation import choose_threshold, sensitivity
from pairlearn.tables import PairTable, write_pairs


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation, PairClassifier]:
    """A model, and a folder with pairs that it has not seen."""
    first, folder = tmp_path_factory.mktemp("training"), tmp_path_factory.mktemp("held-out")
    classifier = fitted(simulated(first, seed=0))
    classifier.save(folder / "model")
    return folder, simulated(folder, seed=1, pairs=400), classifier


def evaluate(folder: Path, *more: object, pairs: Path | None = None) -> Any:
    return run(
        "evaluate", folder / "model", folder / "items.csv", pairs or folder / "pairs.csv", *more
    )


def told(folder: Path, *more: object, pairs: Path | None = None) -> dict[str, Any]:
    result = evaluate(folder, "--json", *more, pairs=pairs)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def log_odds(made: tuple[Path, Simulation, PairClassifier]) -> Any:
    p = probability(made[2], made[1].items.features)
    return (np.log(p) - np.log1p(-p))[made[1].pairs.ids()].T


# ---- figures ----------------------------------------------------------------------------------


def test_the_figures_are_those_of_the_library_and_hold_the_truth(made: Any) -> None:
    folder, simulation, classifier = made
    found = told(folder)
    expected = evaluate_arrays(*log_odds(made), simulation.pairs.labels()).to_dict()
    for name in ("accuracy", "true_positive_rate", "precision", "prior", "roc_auc"):
        assert found[name] == pytest.approx(expected[name], abs=1e-3), name
    positive = probability(classifier, simulation.items.features) > 0.5
    r = simulation.posterior
    truth = np.where(positive, r, 1 - r).mean()  # of this very table, as the annotator sees it
    assert found["accuracy"]["low"] < truth < found["accuracy"]["high"]
    assert (found["n"], found["ignored"], found["threshold"]) == (400, 0, 0.5)
    assert found["warnings"] == []


def test_what_is_printed(made: Any) -> None:
    folder, _, _ = made
    found = told(folder, "--cost", "1,5")
    result = evaluate(folder, "--cost", "1,5")
    text = plain(result.stdout)
    assert "on 400 pairs of " in text
    assert "measure estimate 95% interval" in text
    for name, key in (("accuracy", "accuracy"), ("ROC AUC", "roc_auc"), ("F1", "f1")):
        one = found[key]
        assert f"{name} {one['value']:.3f} {one['low']:.3f} to {one['high']:.3f}" in text
    for name in ("true positives", "false negatives", "expected cost"):
        assert name in text
    assert evaluate(folder, "--quiet").stdout == f"{found['accuracy']['value']:.4f}\n"


def test_weights_and_items_count(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs = simulation.pairs
    weight = np.where(np.arange(400) < 200, 1.0, 1e-9)
    weighted = PairTable(pairs.left, pairs.right, pairs.similarity, pairs.difference, weight=weight)
    write_pairs(weighted, tmp_path / "weighted.csv")
    write_pairs(pairs[:200], tmp_path / "half.csv")
    write_pairs(PairTable.concatenate([pairs[:200]] * 4), tmp_path / "fourfold.csv")
    names = ("weighted", "half", "fourfold")
    found = [told(folder, pairs=tmp_path / f"{name}.csv")["accuracy"] for name in names]
    assert found[0]["value"] == pytest.approx(found[1]["value"], abs=1e-3)
    assert found[2]["value"] == pytest.approx(found[1]["value"], abs=1e-3)
    width = [one["high"] - one["low"] for one in found]
    assert width[2] > 0.9 * width[1]  # four copies tell no more than one


def test_the_threshold_is_a_probability(made: Any) -> None:
    folder, simulation, _ = made
    found = told(folder, "--threshold", 0.9, "--confidence", 0.8)
    expected = evaluate_arrays(
        *log_odds(made), simulation.pairs.labels(), threshold=np.log(9), confidence=0.8
    )
    assert found["accuracy"]["value"] == pytest.approx(expected.accuracy.value, abs=1e-3)
    assert found["accuracy"]["low"] == pytest.approx(expected.accuracy.low, abs=1e-3)
    assert (found["threshold"], found["confidence"]) == (0.9, 0.8)


def test_cost_threshold_band_and_calibration(made: Any) -> None:
    folder, simulation, _ = made
    more = ("--cost", "1,9", "--choose-threshold", "--sensitivity", "--calibration")
    found = told(folder, *more)
    labels = simulation.pairs.labels()
    choice = choose_threshold(*log_odds(made), labels, cost=(1, 9))
    chosen = found["chosen_threshold"]
    assert chosen["log_odds"] == pytest.approx(choice.threshold, abs=1e-3)
    assert chosen["probability"] == pytest.approx(1 / (1 + np.exp(-choice.threshold)), abs=1e-4)
    assert chosen["expected_cost"]["value"] <= found["expected_cost"]["value"] + 1e-6
    band = sensitivity(*log_odds(made), labels)
    assert found["sensitivity"]["low"] == pytest.approx(band.low, abs=1e-3)
    assert found["sensitivity"]["low_end"] <= found["sensitivity"]["low"]
    assert [one["slope"] for one in found["sensitivity"]["by_slope"]] == [0.5, 0.75, 1, 1.5, 2]
    curve = found["calibration"]
    assert len(curve["predicted"]) == len(curve["implied"]) == len(curve["shares"]) == 10
    assert sum(curve["shares"]) == pytest.approx(1)
    text = plain(evaluate(folder, *more).stdout)
    assert f"threshold with the least cost: probability {chosen['probability']:.3f}" in text
    assert "if the true log-odds are 0.5 to 2 times the annotators', the accuracy is" in text
    assert "the share of positives that judgements imply: 0.0" in text


def test_known_classes_mend_an_annotator_who_is_too_sure(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    r = simulation.posterior
    sure = r**3 / (r**3 + (1 - r) ** 3)  # log-odds times three
    left, right = sure[simulation.pairs.ids()].T
    pairs = PairTable(
        simulation.pairs.left,
        simulation.pairs.right,
        left * right + (1 - left) * (1 - right),
        right - left,
    )
    write_pairs(pairs, tmp_path / "sure.csv")
    more = ("--labelled", folder / "truth.csv")
    found = told(folder, *more, pairs=tmp_path / "sure.csv")
    mended = found["recalibration"]
    assert mended["labels"] == 800
    assert mended["slope"] == pytest.approx(1 / 3, abs=0.1)
    positive = probability(classifier, simulation.items.features) > 0.5
    truth = np.mean(positive == simulation.positive)
    before = mended["accuracy_before"]["value"]
    assert before > truth + 0.03
    assert found["accuracy"]["value"] == pytest.approx(truth, abs=0.02)  # 800 labels
    text = plain(evaluate(folder, *more, pairs=tmp_path / "sure.csv").stdout)
    assert "judgements mended with 800 known classes: log-odds times 0." in text


# ---- warnings and exit codes ------------------------------------------------------------------


def test_pairs_that_the_model_was_fitted_to(tmp_path: Path) -> None:
    simulated(tmp_path, seed=0)
    result = run(
        "fit", tmp_path / "items.csv", tmp_path / "pairs.csv", "--out", tmp_path / "model",
        "--model", "linear", "--epochs", 20, "--learning-rate", 0.02, "--holdout", 0, "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0
    result = evaluate(tmp_path)
    assert result.exit_code == 2
    assert "measures no accuracy: the model was trained on items of 200 of its 200 pairs" in plain(
        result.output
    )
    # A folder of an earlier version knows the file alone.
    old = PairClassifier.load(tmp_path / "model")
    del old.training_items_
    old.save(tmp_path / "model")
    assert told(tmp_path)["warnings"] == [
        "the model was fitted to these very pairs, and does better on them than on others: "
        "measure on pairs that were held out"
    ]
    assert "warning: the model was fitted to these very pairs" in plain(evaluate(tmp_path).stderr)
    text = (tmp_path / "pairs.csv").read_text()
    (tmp_path / "others.csv").write_text("".join(text.splitlines(keepends=True)[:100]))
    assert told(tmp_path, pairs=tmp_path / "others.csv")["warnings"] == []


def test_a_prior_that_the_pairs_do_not_have(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    simulation.write(tmp_path)
    other = simulated(tmp_path / "other", seed=2)
    fitted(other, target_prior=0.8).save(tmp_path / "model")
    (warned,) = told(tmp_path)["warnings"]
    assert warned.startswith(
        "the model is meant for a share of positives of 0.8, and these pairs imply 0."
    )
    (warned,) = told(folder, "--prior", 0.7)["warnings"]
    assert warned.startswith("the stated prior is 0.7 and the judgements imply 0.")


def test_an_accuracy_that_must_be_reached(made: Any) -> None:
    folder, _, _ = made
    assert evaluate(folder, "--at-least", 0.5, "--quiet").exit_code == 0
    result = evaluate(folder, "--at-least", 0.999)
    assert result.exit_code == 1
    assert "the accuracy may be below 0.999: its interval begins at 0." in plain(result.stdout)
    result = evaluate(folder, "--at-least", 0.999, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["accuracy"]["value"] > 0.5


def test_rows_with_a_preference_alone_are_left_out(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs = simulation.pairs
    kept = np.where(np.arange(400) < 100, np.nan, pairs.similarity)
    both = np.where(np.arange(400) < 50, np.nan, pairs.difference)
    table = PairTable(pairs.left, pairs.right, kept, both, preference=np.ones(400))
    write_pairs(table, tmp_path / "pairs.csv")
    found = told(folder, pairs=tmp_path / "pairs.csv")
    assert (found["n"], found["ignored"]) == (350, 50)
    more = ("--labelled", folder / "truth.csv")  # for which one judgement is too little
    found = told(folder, *more, pairs=tmp_path / "pairs.csv")
    assert (found["n"], found["ignored"]) == (300, 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "left,right,similarity,difference\n1,2,0.5,0\n1,none,0.5,0\n",
            "{0}, row 2: right 'none' is not among the items in {1}",
        ),
        ("left,right,preference\n1,2,left\n", "{0}: 0 rows have a similarity or a difference;"),
        (
            "left,right,similarity\n1,2,0.5\n2,3,0.4\n",
            "labels have similarities only, which stay the same when the classes are swapped, so "
            "a classifier and its opposite look alike: give some differences, or --prior\n",
        ),
        (
            "left,right,difference\n1,2,0.5\n2,3,0.4\n",
            "labels have differences only, which fix the rates of the classifier's decisions up "
            "to a constant: give some similarities, or --prior\n",
        ),
        (
            "left,right,similarity,difference\n1,2,1.5,0\n2,3,0.5,0\n",
            "{0}, line 2: similarity is 1.5, outside [0, 1]; looks like percent",
        ),
        ("left,similarity\n1,0.5\n", "{0}, line 1: no column 'right'"),
    ],
)
def test_judgements_that_cannot_be_used(made: Any, tmp_path: Path, text: str, message: str) -> None:
    folder, _, _ = made
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(text)
    result = evaluate(folder, pairs=pairs)
    assert result.exit_code == 2
    expected = message.format(pairs, folder / "items.csv")
    assert result.stderr.startswith(f"pairlearn evaluate: {expected}")


def test_noise_is_admitted_when_asked_for(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    lines = (folder / "pairs.csv").read_text().splitlines()
    left = lines[1].split(",")
    lines[1] = ",".join([*left[:2], "1.05", left[3]])
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    assert evaluate(folder, pairs=tmp_path / "pairs.csv").exit_code == 2
    assert told(folder, "--noisy", pairs=tmp_path / "pairs.csv")["n"] == 400


def test_wrong_requests(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    known = tmp_path / "known.csv"
    known.write_text("id,class\n0,1\n1,-1\n")
    apart = tmp_path / "apart.csv"
    ends = simulation.pairs.ids()
    write_pairs(simulation.pairs[~np.isin(ends, [0, 1]).any(1)], apart)
    for arguments, message in (
        (("--threshold", 1), "--threshold must lie in (0, 1); got 1"),
        (("--at-least", 95), "--at-least must lie in (0, 1); got 95"),
        (("--confidence", 95), "confidence must lie in (0, 1); got 95.0"),
        (("--prior", 3), "prior must lie in (0, 1); got 3.0"),
        (("--positive", "1"), "--positive is a class of --labelled, which is not given"),
        (
            ("--cost", "1"),
            "--cost must be two numbers, of a false positive and of a false negative, as in 1,5; "
            "got '1'",
        ),
        (("--cost", "-1,2"), "cost must be finite, not negative and not all zero; got (-1.0, 2.0)"),
    ):
        result = evaluate(folder, *arguments)
        assert result.exit_code == 2
        assert result.stderr == f"pairlearn evaluate: {message}\n"
    result = evaluate(folder, "--labelled", known, pairs=apart)
    assert result.exit_code == 2
    assert "none of its items is in the pairs that are measured with" in result.stderr
    result = run("evaluate", tmp_path, folder / "items.csv", folder / "pairs.csv")
    assert result.exit_code == 2
    assert "config.json: there is no such file" in result.stderr


def test_items_with_other_features(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    items = tmp_path / "items.csv"
    items.write_text("id,x1\n" + "".join(f"{i},0.5\n" for i in range(800)))
    result = run("evaluate", folder / "model", items, folder / "pairs.csv")
    assert result.exit_code == 2
    assert result.stderr == (
        f"pairlearn evaluate: {items} lacks the feature 'x2' that the model was fitted to\n"
    )


def test_help_shows_examples_and_exit_codes() -> None:
    text = plain(run("evaluate", "--help").stdout)
    assert "pairlearn evaluate model items.csv held_out.csv --cost 1,5 --choose-threshold" in text
    assert "Exit codes: 0 done, 1 the accuracy does not reach --at-least, 2 wrong request" in text
