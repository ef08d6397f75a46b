"""The command `fit`."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import answer, plain, run, simulated
from pairlearn import progress as bars
from pairlearn.estimators import PairClassifier, learning
from pairlearn.io import ItemTable, write_items, write_pairs
from pairlearn.simulation import Simulation, simulate
from tables import changed, pair_table

QUICK = ("--model", "linear", "--epochs", 10, "--learning-rate", 0.02)
ALONE = (*QUICK, "--holdout", 0)
HEADER = "left,right,similarity,difference\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation]:
    folder = tmp_path_factory.mktemp("made")
    made = simulated(folder, seed=0, missing=0.3, preference=0.1)
    kept = made.pairs[~np.isnan(made.pairs.similarity)]
    write_pairs(pair_table(kept.left, kept.right, kept.similarity, None), folder / "alike.csv")
    return folder, made


def fit(folder: Path, out: Path, *more: object, pairs: Path | None = None) -> Any:
    return run("fit", folder / "items.csv", pairs or folder / "pairs.csv", "--out", out, *more)


def summarise(folder: Path, out: Path, *more: object, pairs: Path | None = None) -> dict[str, Any]:
    files = folder / "items.csv", pairs or folder / "pairs.csv"
    return answer("fit", *files, "--out", out, *(more or QUICK))


def accuracy(model: Path, made: Simulation) -> float:
    predicted = PairClassifier.load(model).predict(made.items)
    return float(np.mean((predicted > 0) == made.positive))


# ---- what is learnt ---------------------------------------------------------------------------


def test_the_report_and_the_model(made: Any, tmp_path: Path) -> None:
    folder, simulation = made
    summary = summarise(folder, tmp_path / "model")
    counts = simulation.pairs.located(simulation.items.ids).counts()
    assert summary["statements"] == counts
    assert (summary["judgements"], summary["items"], summary["features"]) == (200, 400, 2)
    assert (summary["epochs"], summary["classes"], summary["warnings"]) == (10, [-1, 1], [])
    assert summary["prior"] == pytest.approx(0.3, abs=0.1)
    right = accuracy(tmp_path / "model", simulation)
    assert right > 0.9 and summary["accuracy"]["low"] < right < summary["accuracy"]["high"]
    assert summary["accuracy"]["held_out"] + summary["accuracy"]["training"] <= 200
    assert summary["accuracy"]["dropped"] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model"]
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert fit(folder, tmp_path / "model", *ALONE, "--force", "--quiet", "--seed", 9).output == ""
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != before


def test_what_is_printed(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = made
    result = fit(folder, tmp_path / "model", *QUICK)
    assert (result.exit_code, result.stderr) == (0, "")
    first, second, third, *rest = result.stdout.splitlines()
    assert first.startswith("trained on 200 judgements of 400 items with 2 features: ")
    assert re.fullmatch(
        r"  linear, 10 epochs in \d+\.\d s; \d+\.\d s including .* measuring", second
    )
    assert re.fullmatch(r"  loss 0\.\d{4}, share of positives among .* items 0\.\d{3}", third)
    measured = plain(" ".join(rest))
    assert re.search(r"The model is right on \d+\.\d% to \d+\.\d% of new items", measured)
    assert "if the annotators knew everything" in measured
    assert re.search(r"; always naming the larger class: [67]\d\.\d% ", measured)
    assert rest[-1] == f"model: {tmp_path / 'model'}"
    monkeypatch.setattr(bars, "shows_bars", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    shown = fit(folder, tmp_path / "model", *QUICK, "--epochs", 2, "--force").stderr
    assert "1/2 to measure: epoch 2 of 2, loss 0." in shown
    assert "2/2 to save: epoch 2 of 2, loss 0." in shown
    assert fit(folder, tmp_path / "model", *ALONE, "--force", "--json").stderr == ""


@pytest.mark.parametrize(("people", "hard", "most"), [(1, False, 2), (1, True, 3), (3, False, 6)])
def test_a_fit_trains_few_models(
    people: int, hard: bool, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one to keep and the one that is measured; a trial, or folds to learn annotators with."""
    trained, train = [], learning.train

    def count(x: Any, rows: Any, risk: Any, model: Any, recipe: Any, **options: Any) -> Any:
        trained.append(model)
        return train(x, rows, risk, model, replace(recipe, epochs=3), **options)

    monkeypatch.setattr(learning, "train", count)
    made = simulated(tmp_path, seed=0, pairs=120, annotators=people)
    if hard:
        alike = (made.pairs.similarity > 0.5).astype(float)
        c = np.sign(made.pairs.difference) * (1 - alike)
        write_pairs(changed(made.pairs, similarity=alike, difference=c), tmp_path / "pairs.csv")
    fit(tmp_path, tmp_path / "model")
    assert 2 <= len(trained) <= most


def test_the_model_is_that_of_python_on_all_pairs(tmp_path: Path) -> None:
    """All columns count: compared with arrays that the csv module read."""
    made = simulate(pairs=80, prior=0.3, missing=0.3, preference=0.2, seed=3)
    made.write(tmp_path)
    weight = np.random.default_rng(0).uniform(0.1, 3, 80)
    write_pairs(replace(made.pairs, weight=weight), tmp_path / "pairs.csv")
    with (tmp_path / "pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = ("similarity", "difference")
    labels = np.array([[float(row[name] or "nan") for name in names] for row in rows])
    ends = np.array([[int(row["left"]), int(row["right"])] for row in rows])
    expected = PairClassifier(model="linear", epochs=5, random_state=7)
    expected.set_params(training__learning_rate=0.02)
    expected.fit(
        made.items.features[ends],
        labels,
        sample_weight=[float(row["weight"]) for row in rows],
        preference=[row["preference"] or None for row in rows],
    )
    summarise(tmp_path, tmp_path / "model", *QUICK, "--epochs", 5, "--seed", 7, "--holdout", 0.5)
    predicted = PairClassifier.load(tmp_path / "model").predict_proba(made.items)
    assert predicted == pytest.approx(expected.predict_proba(made.items.features), abs=1e-6)


def test_options_reach_the_classifier(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    expected = {
        "risk": "confdiff-relu", "prior": 0.3, "target_prior": 0.2,
        "annotator_prior": 0.4, "model": "mlp", "epochs": 2,
    }  # fmt: skip
    training = {"batch_size": 16, "device": "cpu", "learning_rate": 0.01}
    options = [part for name, value in (expected | training).items()
               for part in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    more = ("--seed", 3, "--holdout", 0)
    summarise(folder, tmp_path / "model", *options, *more)
    model = PairClassifier.load(tmp_path / "model")
    expected |= {f"training__{name}": value for name, value in training.items()}
    expected |= {"random_state": 3}
    assert expected.items() <= model.get_params().items()
    assert model.shift_ == pytest.approx(np.log(0.2 / 0.8) - np.log(0.4 / 0.6))


def test_no_accuracy_where_none_was_asked_for_or_can_be_told(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    summary = summarise(folder, tmp_path / "one", *ALONE)
    assert (summary["accuracy"], summary["not_measured"]) == (None, None)
    star = tmp_path / "star.csv"
    star.write_text(HEADER + "".join(f"0,{i},0.6,0.1\n0,{i},0.5,-0.1\n" for i in range(1, 20)))
    result = fit(folder, tmp_path / "two", *QUICK, pairs=star)
    assert (
        "accuracy not measured: there are too few pairs to hold some out, or their items recur too "
        "often" in plain(result.stdout)
    )
    for name, more in (("three", ("--majority", "negative")), ("four", ("--prior", 0.3))):
        summary = summarise(folder, tmp_path / name, *QUICK, *more, pairs=folder / "alike.csv")
        assert (
            summary["accuracy"]["value"] > 0.8
        )  # similarities alone: what is stated tells the side


def test_preferences_tell_the_side_of_an_accuracy_from_similarities(tmp_path: Path) -> None:
    """A prior on the wrong side of ½ must not mirror the accuracy of a model that knows better."""
    table = simulated(tmp_path, seed=3, pairs=300, prior=0.5).pairs
    preference = np.where(np.abs(table.difference) > 0.3, np.sign(table.difference), np.nan)
    judged = pair_table(table.left, table.right, table.similarity, None, preference=preference)
    write_pairs(judged, tmp_path / "side.csv")
    summary = summarise(
        tmp_path, tmp_path / "model", *QUICK, "--prior", 0.48, pairs=tmp_path / "side.csv"
    )
    assert summary["accuracy"]["value"] > 0.8


def test_an_accuracy_that_tells_nothing_is_said_to(tmp_path: Path) -> None:
    """Features that have nothing to do with the judgements; `evaluate` says so as well."""
    simulation = simulate(pairs=200, prior=0.3, seed=0)
    features = np.random.default_rng(0).permutation(simulation.items.features)
    items = ItemTable(simulation.items.ids, features)
    write_items(items, tmp_path / "items.csv")
    for name in ("pairs.csv", "held.csv"):
        rows = slice(0, 150) if name == "pairs.csv" else slice(150, None)
        write_pairs(simulation.pairs[rows], tmp_path / name)
    summary = summarise(tmp_path, tmp_path / "model")
    told = "the judgements do not tell which class is which: there are too few, or the decisions"
    assert summary["accuracy"]["low"] < 0.5 < summary["accuracy"]["high"]
    assert [told in warning for warning in summary["warnings"]].count(True) == 1
    files = [tmp_path / name for name in ("model", "items.csv", "held.csv")]
    # These pairs agree with the model about the larger class, and with nothing else.
    unrelated = "the decisions may be unrelated to the classes"
    assert any(unrelated in warning for warning in answer("evaluate", *files)["warnings"])


def test_rare_positives_lead_and_are_not_taken_for_frequent_ones(tmp_path: Path) -> None:
    simulate(pairs=600, prior=0.04, seed=4).write(tmp_path)
    options = ("--model", "linear", "--epochs", 30, "--learning-rate", 0.05, "--seed", 1)
    summary = summarise(tmp_path, tmp_path / "model", *options)
    found = summary["accuracy"]
    assert found["low"] > 0.9
    assert found["sentences"][0].startswith("Positives are rare (")
    assert found["sentences"][-1] == found["sentence"]


def test_findings_about_the_side_are_shown_and_others_are_not(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    pairs = tmp_path / "pairs.csv"
    head, *rows = (folder / "pairs.csv").read_text().splitlines()
    pairs.write_text("\n".join([f"{head},annotator", *(f"{row},ann" for row in rows + rows[:2])]))
    result = fit(folder, tmp_path / "model", *ALONE, "--prior", 0.9, pairs=pairs)
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: The stated prior 0.9 is more than four standard errors")
    assert "(range 0.500 to 0.843)" in line


def test_the_summary_has_at_most_ten_lines(tmp_path: Path) -> None:
    simulated(tmp_path, seed=0, pairs=120, annotators=5, repeated=0.5)
    more = ("--annotators", "learn", "--holdout", 0.3)
    result = fit(tmp_path, tmp_path / "model", *QUICK, *more)
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) <= 10
    assert "annotators: " in result.stdout


# ---- known classes ----------------------------------------------------------------------------


def test_known_classes_decide_which_class_is_which(made: Any, tmp_path: Path) -> None:
    folder, simulation = made
    known = tmp_path / "known.csv"
    rows = [f"{i},{'spam' if simulation.positive[i] else 'ham'}" for i in range(40)]
    known.write_text("\n".join(["id,class", *rows]))
    more = ("--labelled", known, "--positive", "spam", "--epochs", 30)
    summary = summarise(folder, tmp_path / "model", *QUICK, *more, pairs=folder / "alike.csv")
    assert (summary["classes"], summary["statements"]["label"]) == (["ham", "spam"], 40)
    model = PairClassifier.load(tmp_path / "model")
    right = (model.predict(simulation.items) == "spam") == simulation.positive
    assert right.mean() > 0.85
    out = tmp_path / "p.csv"
    assert run("predict", tmp_path / "model", folder / "items.csv", "--out", out).exit_code == 0
    assert {line.split(",")[1] for line in out.read_text().splitlines()[1:]} == {"ham", "spam"}


def test_numbers_as_classes_and_the_smaller_one_positive(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    known = tmp_path / "known.csv"
    for text, more, classes in (
        ((folder / "truth.csv").read_text(), (), [-1, 1]),  # its posteriors are ignored
        ("id,class\n3,1\n4,0\n", ("--positive", 0), [1, 0]),
        ("id,class\n3,1\n", (), [-1, 1]),
    ):
        known.write_text(text)
        summary = summarise(folder, tmp_path / "m", *ALONE, "--force", "--labelled", known, *more)
        assert summary["classes"] == classes


# ---- what is refused --------------------------------------------------------------------------


def test_a_refusal_names_the_places_and_where_there_is_more(made: Any, tmp_path: Path) -> None:
    pairs, items = tmp_path / "pairs.csv", made[0] / "items.csv"
    pairs.write_text(HEADER + "1,2,0.5,0\n1,none,0.5,0\n3,3,0.5,0.1\n")
    assert fit(made[0], tmp_path / "model", *QUICK, pairs=pairs).stderr.splitlines() == [
        f"pairlearn fit: {pairs} cannot be used as it is:",
        "  self-pair: Items are paired with themselves. Such a pair teaches nothing, and its two "
        "classes are not independent, although every estimator assumes that they are. Drop these "
        "rows. (row 3; 3)",
        "  unknown-item: 1 of the ids are not among the 400 items: add these items, or drop the "
        "rows. Ids are compared exactly, spaces included. (row 2; none)",
        f"`pairlearn check {pairs} --items {items}` shows all findings",
    ]


def test_places_that_are_refused_before_training(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    file, other, model = (tmp_path / name for name in ("file", "other", "model"))
    file.write_text("precious")
    other.mkdir()
    (other / "config.json").write_text("{}")
    summarise(folder, model, *ALONE)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for out, more, message in (
        (file, "--force", f"{file}: exists and is not a folder; choose another path"),
        (file / "model", "--force", f"{file / 'model'} cannot be written: {file} is a file"),
        (other, "--force", f"{other}: exists and is not a pairlearn model; choose another folder"),
        (model, "--json", f"{model} is a model already: choose another folder, or replace it"),
        (folder, "--force", f"{folder}: holds 'alike.csv', which is not part of a model"),
    ):
        result = fit(folder, out, *QUICK, more)
        assert result.exit_code == 2, out
        assert result.stderr.startswith(f"pairlearn fit: {message}"), result.stderr
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(("holdout", "rate", "loss"), [(0, 1e38, "nan"), (0.2, 1e5, "[0-9.]+e")])
def test_training_that_diverges_exits_with_1(
    made: Any, tmp_path: Path, holdout: float, rate: float, loss: str
) -> None:
    more = ("--model", "mlp", "--learning-rate", rate, "--holdout", holdout)
    result = fit(made[0], tmp_path / "model", *QUICK, *more)
    assert result.exit_code == 1
    assert re.match(f"pairlearn fit: training diverged: the loss is {loss}", result.stderr)
    assert result.stderr.endswith(
        "; try a lower learning rate (learning_rate=, or --learning-rate)\n"
    )
    assert not (tmp_path / "model").exists()


def test_an_interrupt_says_what_is_kept(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "model"

    def interrupt(epochs: int, row: dict[str, float]) -> None:
        if row["epoch"] == 5 and epochs == 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pairlearn.estimators.learning.refuse_divergence", interrupt)
        patched.setattr("pairlearn.training.checkpoint.FIRST", 60.0)
        first = fit(made[0], out, *ALONE)
        second = fit(made[0], out, *ALONE, "--checkpoint-seconds", 0)
    assert (first.exit_code, second.exit_code) == (130, 130)
    assert "run the same command to start again" in first.stderr
    kept = tmp_path / "model.checkpoint"
    wanted = f"interrupted: the training so far is in {kept}; run the same command to continue"
    assert second.stderr == f"pairlearn fit: {wanted}\n"
    assert summarise(made[0], out, *ALONE)["epochs"] == 10
    assert not kept.exists()
