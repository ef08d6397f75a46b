"""The commands `evaluate` and `compare`: how good a model is, and which one, without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import answer, fitted, plain, probability, run, simulated
from pairlearn import evaluate as evaluate_arrays
from pairlearn.comparison import compare as compare_candidates
from pairlearn.comparison import default_candidates
from pairlearn.estimators import PairClassifier
from pairlearn.evaluation import sensitivity
from pairlearn.io import write_pairs
from pairlearn.judgements import Judgements
from pairlearn.simulation import Simulation, simulate
from tables import pair_ids, pair_table

HEADER = "left,right,similarity,difference\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation, PairClassifier]:
    """A model, and a folder with pairs that it has not seen."""
    folder = tmp_path_factory.mktemp("held-out")
    classifier = fitted(simulate(pairs=200, prior=0.3, seed=0))
    classifier.save(folder / "model")
    return folder, simulated(folder, seed=1, pairs=400), classifier


def line(folder: Path, *more: object, pairs: Path | None = None) -> list[object]:
    files = folder / "model", folder / "items.csv", pairs or folder / "pairs.csv"
    return ["evaluate", *files, *more]


def evaluate(folder: Path, *more: object, pairs: Path | None = None) -> Any:
    return run(*line(folder, *more, pairs=pairs))


def measures(folder: Path, *more: object, pairs: Path | None = None) -> dict[str, Any]:
    return answer(*line(folder, *more, pairs=pairs))


def log_odds(made: tuple[Path, Simulation, PairClassifier]) -> Any:
    p = probability(made[2], made[1].items.features)
    return (np.log(p) - np.log1p(-p))[pair_ids(made[1].pairs)].T


def changed(pairs: Judgements, **columns: Any) -> Judgements:
    columns = {"similarity": pairs.similarity, "difference": pairs.difference} | columns
    return pair_table(pairs.left, pairs.right, **columns)


def test_the_figures_are_those_of_the_library_and_hold_the_truth(made: Any) -> None:
    folder, simulation, classifier = made
    result = measures(folder)
    expected = evaluate_arrays(*log_odds(made), simulation.pairs.labels()).to_dict()
    for name in ("accuracy", "true_positive_rate", "precision", "prior", "roc_auc"):
        for reading in ("informed", "independent"):
            assert result[name][reading] == pytest.approx(expected[name][reading], abs=1e-3), name
    r = simulation.posterior
    positive = probability(classifier, simulation.items.features) > 0.5
    truth = np.where(positive, r, 1 - r).mean()  # of this very table, as the annotator sees it
    informed = result["accuracy"]["informed"]
    assert informed["low"] < truth < informed["high"]
    assert (result["n"], result["ignored"], result["threshold"]) == (400, 0, 0.5)
    assert result["warnings"] == []
    other = measures(folder, "--threshold", 0.9, "--confidence", 0.8)
    expected = evaluate_arrays(
        *log_odds(made), simulation.pairs.labels(), threshold=np.log(9), confidence=0.8
    ).to_dict()
    for name in ("informed", "independent"):
        part, wanted = other["accuracy"][name], expected["accuracy"][name]
        assert part == pytest.approx(wanted, abs=1e-3)
    assert (other["threshold"], other["confidence"]) == (0.9, 0.8)


def test_all_that_can_be_asked_for_and_what_is_printed(made: Any) -> None:
    folder, simulation, _ = made
    more = ("--cost", "1,9", "--sensitivity")
    result = measures(folder, *more)
    labels = simulation.pairs.labels()
    informed, independent = result["thresholds"]
    assert informed == 0.1 < independent < 0.3
    band = sensitivity(*log_odds(made), labels)
    assert [row["slope"] for row in result["sensitivity"]] == [0.5, 0.75, 1, 1.5, 2]
    for row in result["sensitivity"]:
        assert row["low"] == pytest.approx(band[row["slope"]].low, abs=1e-3)
    text = plain(evaluate(folder, *more).stdout)
    for name, key in (("accuracy", "accuracy"), ("ROC AUC", "roc_auc"), ("F1", "f1")):
        estimate = result[key]
        assert "{} {value:.3f} {low:.3f} to {high:.3f}".format(name, **estimate) in text
    for part in (
        "on 400 pairs of ",
        "measure estimate 95% interval",
        f"always the larger class {1 - result['prior']['value']:.3f}",
        "false negative ",
        "expected cost",
        f"threshold on the probability is {informed:.2f} if the annotators knew",
        "if the true log-odds are 0.5 times the annotators': accuracy 0.",
    ):
        assert part in text


def test_weights_and_items_count(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs = simulation.pairs
    weight = np.where(np.arange(400) < 200, 1.0, 1e-9)
    tables = (changed(pairs, weight=weight), pairs[:200], Judgements.concatenate([pairs[:200]] * 4))
    accuracies = []
    for table in tables:
        write_pairs(table, tmp_path / "pairs.csv")
        accuracies.append(measures(folder, pairs=tmp_path / "pairs.csv")["accuracy"])
    assert accuracies[0]["value"] == pytest.approx(accuracies[1]["value"], abs=1e-3)
    assert accuracies[2]["value"] == pytest.approx(accuracies[1]["value"], abs=1e-3)
    width = [accuracy["high"] - accuracy["low"] for accuracy in accuracies]
    assert width[2] > 0.9 * width[1]  # four copies tell no more than one


def test_untouched_sliders_and_answers_of_several_are_said(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    held, names = simulation.pairs, np.repeat(["ann", "bob"], 200)
    first = np.tile(np.arange(200), 2)
    lazy = np.arange(400) % 4 == 0
    pairs = pair_table(
        held.left[first], held.right[first],
        np.where(lazy, 0.5, held.similarity[first]), np.where(lazy, 0, held.difference[first]),
        annotator=names,
    )  # fmt: skip
    write_pairs(pairs, tmp_path / "pairs.csv")
    result = evaluate(folder, pairs=tmp_path / "pairs.csv")
    assert "on 400 answers about 200 pairs of" in plain(result.stdout)
    for name in ("ann", "bob"):
        assert f"25% of 200 answers by {name} are exactly in the middle" in plain(result.stderr)


def test_the_sentence_of_the_library_is_printed(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    sentence = measures(folder)["accuracy"]["sentence"]
    assert sentence in plain(evaluate(folder).stdout)
    s = np.round(simulation.pairs.similarity)
    hard = changed(
        simulation.pairs, similarity=s, difference=np.sign(simulation.pairs.difference) * (s < 1)
    )
    write_pairs(hard, tmp_path / "pairs.csv")
    text = plain(evaluate(folder, pairs=tmp_path / "pairs.csv").stdout)
    assert "the answers do not show how much they knew" in text


def test_pairs_that_the_model_was_fitted_to(tmp_path: Path) -> None:
    simulated(tmp_path, seed=0)
    result = run(
        "fit", tmp_path / "items.csv", tmp_path / "pairs.csv", "--out", tmp_path / "model",
        "--model", "linear", "--epochs", 20, "--learning-rate", 0.02, "--holdout", 0, "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0
    result = evaluate(tmp_path)
    assert result.exit_code == 2
    wanted = "cannot measure an accuracy: the model was trained on items of 200 of its 200 pairs"
    assert wanted in plain(result.stderr)


def test_a_prior_that_the_pairs_do_not_have(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    simulation.write(tmp_path)
    fitted(simulate(pairs=200, prior=0.3, seed=2), target_prior=0.8).save(tmp_path / "model")
    (warned,) = measures(tmp_path)["warnings"]
    wanted = "the model is meant for a share of positives of 0.8, but these pairs imply 0."
    assert warned.startswith(wanted)
    (warned,) = measures(folder, "--prior", 0.7)["warnings"]
    assert warned.startswith("the stated prior is 0.7 and the judgements imply 0.")


def test_an_accuracy_that_must_be_reached(made: Any) -> None:
    folder, _, _ = made
    assert evaluate(folder, "--at-least", 0.5, "--quiet").exit_code == 0
    result = evaluate(folder, "--at-least", 0.999)
    assert result.exit_code == 1
    assert "the accuracy may be below 0.999: its interval begins at 0." in plain(result.stdout)
    result = evaluate(folder, "--at-least", 0.999, "--json")
    assert (result.exit_code, json.loads(result.stdout)["accuracy"]["value"] > 0.5) == (1, True)


def test_rows_that_say_too_little_are_left_out(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs, row = simulation.pairs, np.arange(400)
    table = changed(
        pairs,
        similarity=np.where(row < 100, np.nan, pairs.similarity),
        difference=np.where(row < 50, np.nan, pairs.difference),
        preference=np.ones(400),
    )
    write_pairs(table, tmp_path / "pairs.csv")
    result = measures(folder, pairs=tmp_path / "pairs.csv")
    assert (result["n"], result["ignored"]) == (350, 50)
    result = measures(folder, "--labelled", folder / "truth.csv", pairs=tmp_path / "pairs.csv")
    assert (result["n"], result["ignored"]) == (350, 50)


def test_same_and_different_are_similarities(made: Any, tmp_path: Path) -> None:
    """Also beside similarities, and in the report."""
    folder, simulation, _ = made
    pairs, row = simulation.pairs, np.arange(400)
    yes = np.where(row < 200, pairs.similarity > 0.5, np.nan)
    soft = np.where(row < 200, yes, pairs.similarity)
    tables = (
        changed(pairs, similarity=soft, difference=None),
        changed(pairs, similarity=np.where(row < 200, np.nan, soft), difference=None, same=yes),
    )
    results = []
    for table, name in zip(tables, ("soft.csv", "same.csv"), strict=True):
        write_pairs(table, tmp_path / name)
        result = measures(folder, "--prior", 0.3, pairs=tmp_path / name)
        assert (result["n"], result["ignored"]) == (400, 0)
        page = run("report", folder / "model", folder / "items.csv", tmp_path / name,
                   tmp_path / "page.html", "--prior", 0.3, "--force", "--json")  # fmt: skip
        results.append((result["accuracy"], json.loads(page.stdout)["accuracy"]))
    assert results[0] == results[1]


def test_noise_is_admitted_when_asked_for(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    lines = (folder / "pairs.csv").read_text().splitlines()
    left = lines[1].split(",")
    lines[1] = ",".join([*left[:2], "1.05", left[3]])
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(lines))
    assert evaluate(folder, pairs=pairs).exit_code == 2
    assert measures(folder, "--noisy", pairs=pairs)["n"] == 400
    files = (folder / "items.csv", pairs)
    result = run("compare", *files, *QUICK, "--noisy", "--quiet")
    assert result.stdout == "linear\n"
    nothing = run("compare", *files, *QUICK, "--risks", ",", "--noisy")
    assert nothing.exit_code == 2 and "--risks" in nothing.stderr and "','" in nothing.stderr


# ---- compare ----------------------------------------------------------------------------------

QUICK = ("--models", "linear", "--epochs", 4, "--folds", 2)
TWO = ("--risks", "likelihood-abs, confdiff-none")


def test_compare_is_that_of_the_library(tmp_path: Path) -> None:
    made = simulated(tmp_path, seed=2, pairs=60)
    files = (tmp_path / "items.csv", tmp_path / "pairs.csv")
    more = ("--prior", 0.3, "--seed", 4, "--majority", "negative")
    result = answer("compare", *files, *QUICK, *TWO, *more)
    candidates = default_candidates(
        ["linear"], ["likelihood-abs", "confdiff-none"], prior=0.3, random_state=4, epochs=4,
        majority="negative",
    )  # fmt: skip
    wanted = compare_candidates(
        candidates, made.pairs.ends, made.pairs.labels(), preprocessor=made.items, folds=2, seed=4
    )
    assert (result["best"], result["ties"]) == (wanted.best.name, list(wanted.ties))
    assert (result["folds"], result["tested"], result["judgements"]) == (2, 60, 60)
    values = [row["accuracy"]["value"] for row in result["rows"]]
    assert values == pytest.approx([row.accuracy.value for row in wanted.rows])
    assert [row["name"] for row in result["rows"]] == [row.name for row in wanted.rows]


def test_compare_prints_a_table_of_preferences_and_missing_answers_too(tmp_path: Path) -> None:
    simulated(tmp_path, seed=0, pairs=60, missing=0.3, preference=0.2)
    result = run("compare", tmp_path / "items.csv", tmp_path / "pairs.csv", *QUICK, *TWO)
    assert result.exit_code == 0, result.output
    text = plain(result.stdout)
    for part in (
        "difference from the best",
        "48 of 60 judgements held out in 2 folds; always naming the larger class: ",
        "Accuracy if the annotators knew everything that the models use; 95% intervals",
        "The model is right on ",
        "This assumes that the annotators' probabilities are right on average, given what they",
        "linear, confdiff-none",
        "best: linear",
    ):
        assert part in text


def test_compare_with_labelled_items(tmp_path: Path) -> None:
    """Accuracies and differences are those of labels; items of pairs count in their own fold."""
    made = simulated(tmp_path, seed=0, pairs=60)
    rows = [f"{name},{int(y)}" for name, y in zip(made.items.ids, made.positive, strict=True)]
    (tmp_path / "known.csv").write_text("\n".join(["id,class", *rows[:40]]) + "\n")
    files = (tmp_path / "items.csv", tmp_path / "pairs.csv", "--labelled", tmp_path / "known.csv")
    result = answer("compare", *files, *QUICK, *TWO)
    assert result["labelled"] == 40
    assert "of 40 labelled items are right" in result["sentences"][-1]
    text = plain(run("compare", *files, *QUICK, *TWO).stdout)
    assert "Accuracy by the labelled items; 95% intervals" in text
    refused = run("compare", *files[:2], *QUICK, "--positive", "1")
    assert "--positive names a class of --labelled" in refused.output


def test_same_with_preferences_is_measured(made: Any, tmp_path: Path) -> None:
    """Preferences told the model which class is which; the answers alone do not."""
    folder, simulation, classifier = made
    rng, rows = np.random.default_rng(0), ["left,right,same,preference"]
    r = simulation.posterior[pair_ids(simulation.pairs)]
    drawn = rng.random(r.shape) < r
    ids = zip(simulation.pairs.left, simulation.pairs.right, drawn, strict=True)
    for left, right, (one, other) in ids:
        side = "" if one == other else "right" if other else "left"
        rows.append(f"{left},{right},{'same' if one == other else 'different'},{side}")
    (tmp_path / "same.csv").write_text("\n".join(rows))
    accuracy = measures(folder, pairs=tmp_path / "same.csv")["accuracy"]
    positive = probability(classifier, simulation.items.features) > 0.5
    assert accuracy["low"] < np.mean(positive == simulation.positive) <= accuracy["high"]
    assert accuracy["low"] > 0.5


def test_rare_classes_are_not_taken_for_frequent_ones(made: Any) -> None:
    """Decisions that are nearly all negative do not tell the classes apart; the model does."""
    folder, simulation, _ = made
    accuracy = measures(folder, "--threshold", 0.9999999)["accuracy"]
    negative = 1 - np.mean(simulation.positive)
    assert accuracy["low"] > 0.5
    assert accuracy["low"] < negative < accuracy["high"]
