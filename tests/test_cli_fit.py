"""The command `fit`, and pairs that are held out by their items."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import plain, run, simulated
from pairlearn import progress as bars
from pairlearn.estimators import PairClassifier, hold_out_items
from pairlearn.simulation import Simulation, simulate
from pairlearn.tables import PairTable, read_pairs, write_pairs

QUICK = ("--model", "linear", "--epochs", 10, "--learning-rate", 0.02)
HEADER = "left,right,similarity,difference\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation]:
    folder = tmp_path_factory.mktemp("made")
    return folder, simulated(folder, seed=0, missing=0.3, preference=0.1, annotators=2)


def fit(folder: Path, out: Path, *more: object, pairs: Path | None = None) -> Any:
    return run("fit", folder / "items.csv", pairs or folder / "pairs.csv", "--out", out, *more)


def told(folder: Path, out: Path, *more: object, pairs: Path | None = None) -> dict[str, Any]:
    result = fit(folder, out, *QUICK, "--json", *more, pairs=pairs)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def accuracy(model: Path, made: Simulation) -> float:
    found = PairClassifier.load(model).predict(made.items)
    return float(np.mean((found > 0) == made.positive))


# ---- what is learnt ---------------------------------------------------------------------------


def test_the_report_and_the_model(made: Any, tmp_path: Path) -> None:
    folder, simulation = made
    found = told(folder, tmp_path / "model")
    kinds = ("both", "similarity_only", "difference_only", "preference_only", "labelled")
    s, c = ~np.isnan(simulation.pairs.similarity), ~np.isnan(simulation.pairs.difference)
    assert [found[kind] for kind in kinds] == [
        (s & c).sum(), (s & ~c).sum(), (c & ~s).sum(), (~s & ~c).sum(), 0,
    ]  # fmt: skip
    assert (found["judgements"], found["items"], found["features"]) == (200, 400, 2)
    assert found["epochs"] == 10
    assert found["classes"] == [-1, 1]
    assert found["prior"] == pytest.approx(0.3, abs=0.1)
    assert found["warnings"] == []
    assert accuracy(tmp_path / "model", simulation) > 0.9
    assert found["accuracy"]["held_out"] + found["accuracy"]["training"] <= 200
    assert found["accuracy"]["dropped"] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model"]


def test_what_is_printed(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    result = fit(folder, tmp_path / "model", *QUICK)
    assert result.exit_code == 0
    text = plain(result.stdout)
    assert text.startswith("learnt from 200 judgements of 400 items with 2 features: ")
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"  10 epochs in \d+\.\d s", lines[1])
    assert re.fullmatch(r"  loss 0\.\d{4}, share of positives 0\.\d{3}", lines[2])
    assert "as the annotators see it, on " in text
    assert text.endswith(f"model: {tmp_path / 'model'}")
    assert result.stderr == ""
    assert fit(folder, tmp_path / "model", *QUICK, "--force", "--quiet").output == ""


def test_the_model_is_that_of_python_on_all_pairs(tmp_path: Path) -> None:
    """All columns count: compared with arrays that the csv module read."""
    made = simulate(pairs=80, prior=0.3, missing=0.3, preference=0.2, seed=3)
    rng = np.random.default_rng(0)
    pairs = PairTable(
        made.pairs.left, made.pairs.right, made.pairs.similarity, made.pairs.difference,
        made.pairs.preference, weight=rng.uniform(0.1, 3, 80),
    )  # fmt: skip
    made.write(tmp_path)
    write_pairs(pairs, tmp_path / "pairs.csv")
    with (tmp_path / "pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    labels = np.array(
        [[float(row[name] or "nan") for name in ("similarity", "difference")] for row in rows]
    )
    ends = np.array([[int(row["left"]), int(row["right"])] for row in rows])
    expected = PairClassifier(model="linear", epochs=5, learning_rate=0.02, random_state=7)
    expected.fit(
        made.items.features[ends],
        labels,
        sample_weight=[float(row["weight"]) for row in rows],
        preference=[row["preference"] or None for row in rows],
    )
    result = fit(tmp_path, tmp_path / "model", *QUICK, "--epochs", 5, "--seed", 7, "--holdout", 0.5)
    assert result.exit_code == 0, result.output
    found = PairClassifier.load(tmp_path / "model").predict_proba(made.items)
    assert found == pytest.approx(expected.predict_proba(made.items.features), abs=1e-6)


def test_options_reach_the_classifier(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    told(
        folder, tmp_path / "model", "--risk", "confdiff", "--correction", "0.5", "--prior", 0.3,
        "--target-prior", 0.2, "--annotator-prior", 0.4, "--batch-size", 16, "--weight-decay",
        1e-3, "--early-stopping", "--seed", 3, "--device", "cpu", "--model", "mlp", "--epochs", 2,
        "--learning-rate", 0.01, "--holdout", 0,
    )  # fmt: skip
    model = PairClassifier.load(tmp_path / "model")
    expected = {
        "risk": "confdiff", "correction": 0.5, "prior": 0.3, "target_prior": 0.2,
        "annotator_prior": 0.4, "batch_size": 16, "weight_decay": 1e-3, "early_stopping": True,
        "random_state": 3, "device": "cpu", "model": "mlp", "epochs": 2, "learning_rate": 0.01,
    }  # fmt: skip
    assert expected.items() <= model.get_params().items()
    assert model.shift_ == pytest.approx(np.log(0.2 / 0.8) - np.log(0.4 / 0.6))


def test_the_held_out_accuracy_is_near_the_truth(tmp_path: Path) -> None:
    made = simulated(tmp_path, seed=5, pairs=500)
    found = told(tmp_path, tmp_path / "model", "--epochs", 20)["accuracy"]
    assert found["low"] < accuracy(tmp_path / "model", made) < found["high"]
    assert found["high"] - found["low"] < 0.1


def test_no_accuracy_where_none_was_asked_for_or_can_be_told(made: Any, tmp_path: Path) -> None:
    folder, simulation = made
    found = told(folder, tmp_path / "one", "--holdout", 0)
    assert (found["accuracy"], found["not_measured"]) == (None, None)
    star = tmp_path / "star.csv"
    star.write_text(HEADER + "".join(f"0,{i},0.6,0.1\n0,{i},0.5,-0.1\n" for i in range(1, 20)))
    found = told(folder, tmp_path / "two", pairs=star)
    assert found["accuracy"] is None
    assert found["not_measured"] == (
        "there are too few pairs, or their items recur too often, to hold some out"
    )
    alike = tmp_path / "alike.csv"
    kept = simulation.pairs[~np.isnan(simulation.pairs.similarity)]
    write_pairs(PairTable(kept.left, kept.right, kept.similarity, None), alike)
    found = told(folder, tmp_path / "three", "--majority", "negative", pairs=alike)
    assert found["not_measured"] is None  # the majority tells the side
    found = told(folder, tmp_path / "four", "--prior", 0.3, pairs=alike)
    assert found["accuracy"]["value"] > 0.8
    text = plain(fit(folder, tmp_path / "two", *QUICK, "--force", pairs=star).stdout)
    assert "accuracy not measured: there are too few pairs" in text


def test_judgements_with_noise(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    pairs = tmp_path / "pairs.csv"
    lines = (folder / "pairs.csv").read_text().splitlines()
    left = lines[1].split(",")
    lines[1] = ",".join([*left[:2], "1.2", "-1.1", *left[4:]])
    pairs.write_text("\n".join(lines))
    result = fit(folder, tmp_path / "model", *QUICK, pairs=pairs)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"pairlearn fit: {pairs} cannot be used as it is:",
        "  similarity-range: The similarity must lie in [0, 1], and row 1 is 1.2: bring answers on "
        "another scale to this one. Noise that you know of is admitted by noisy=True, or --noisy. "
        "(rows 1)",
        "  difference-range: The difference must lie in [-1, 1], and row 1 is -1.1: bring answers "
        "on another scale to this one. Noise that you know of is admitted by noisy=True, or "
        "--noisy. (rows 1)",
        f"`pairlearn check {pairs} --items {folder / 'items.csv'}` says more",
    ]
    assert not (tmp_path / "model").exists()
    assert told(folder, tmp_path / "model", "--noisy", pairs=pairs)["judgements"] == 200


@pytest.mark.parametrize("options", [(), ("--noisy",)])
def test_percentages_are_refused(made: Any, tmp_path: Path, options: tuple[str, ...]) -> None:
    folder, simulation = made
    pairs, table = tmp_path / "pairs.csv", simulation.pairs
    both = table[~np.isnan(table.similarity) & ~np.isnan(table.difference)]
    percent = 100 * both.similarity
    write_pairs(PairTable(both.left, both.right, percent, both.difference, noisy=True), pairs)
    result = fit(folder, tmp_path / "model", *options, pairs=pairs)
    assert result.exit_code == 2
    assert "similarity-scale: The similarities look like percentages, up to" in result.stderr
    assert "divide them by 100" in result.stderr


def test_warnings_are_said_in_short(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    pairs = tmp_path / "pairs.csv"
    text = (folder / "pairs.csv").read_text()
    pairs.write_text(text + "".join(text.splitlines(keepends=True)[1:3]))
    result = fit(folder, tmp_path / "model", *QUICK, "--prior", 0.9, "--holdout", 0, pairs=pairs)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines[0].startswith("warning: duplicate: Rows repeat an answer to the same pair by ")
    assert lines[0].endswith("(rows 201, 202)")
    assert lines[1].startswith("warning: prior-disagrees: The stated prior 0.9 lies outside 0.")
    assert lines[1].endswith(" that the similarities imply")
    assert lines[2].startswith("warning: the stated class prior is 0.9, and the similarities imply")
    assert lines[2].endswith("pass --target-prior 0.9")
    told_by = told(folder, tmp_path / "two", "--prior", 0.9, "--holdout", 0, pairs=pairs)
    assert [f"warning: {text}" for text in told_by["warnings"]] == lines


# ---- known classes ----------------------------------------------------------------------------


def test_known_classes_decide_which_class_is_which(made: Any, tmp_path: Path) -> None:
    folder, simulation = made
    alike = tmp_path / "alike.csv"
    kept = simulation.pairs[~np.isnan(simulation.pairs.similarity)]
    write_pairs(PairTable(kept.left, kept.right, kept.similarity, None), alike)
    known = tmp_path / "known.csv"
    rows = [f"{i},{'spam' if simulation.positive[i] else 'ham'}" for i in range(40)]
    known.write_text("\n".join(["id,class", *rows]))
    found = told(
        folder, tmp_path / "model", "--labelled", known, "--positive", "spam", "--epochs", 30,
        pairs=alike,
    )  # fmt: skip
    assert found["classes"] == ["ham", "spam"]
    assert found["labelled"] == 40
    model = PairClassifier.load(tmp_path / "model")
    right = (model.predict(simulation.items) == "spam") == simulation.positive
    assert right.mean() > 0.85
    out = tmp_path / "p.csv"
    assert run("predict", tmp_path / "model", folder / "items.csv", "--out", out).exit_code == 0
    assert {line.split(",")[1] for line in out.read_text().splitlines()[1:]} == {"ham", "spam"}


def test_numbers_as_classes_and_the_smaller_one_positive(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    alone = ("--holdout", 0)
    truth = folder / "truth.csv"  # classes 1 and -1, and a column of posteriors that is ignored
    assert told(folder, tmp_path / "a", "--labelled", truth, *alone)["classes"] == [-1, 1]
    known = tmp_path / "known.csv"
    known.write_text("id,class\n3,1\n4,0\n")
    found = told(folder, tmp_path / "b", "--labelled", known, "--positive", 0, *alone)
    assert found["classes"] == [1, 0]
    known.write_text("id,class\n3,1\n")
    found = told(folder, tmp_path / "c", "--labelled", known, "--labelled-weight", 0.1)
    assert found["classes"] == [-1, 1]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("id,kind\n1,a\n", (), "{}, line 1: no column 'class'; the columns are 'id', 'kind'"),
        ("id,class\n", (), "{} has a header but no rows"),
        ("id,class\n1,a\nx,b\n", (), "{}, line 3: id 'x' is not among the items"),
        ("id,class\n1,a\n1,b\n", (), "{}, line 3: id 1 is in row 1 already; ids are unique"),
        ("id,class\n1,\n", (), "{}, line 2: class is empty; every row needs it"),
        (
            "id,class\n1,0\n2,1\n3,2\n",
            (),
            "{}: the column 'class' has 3 classes, 0, 1, 2; give two",
        ),
        (
            "id,class\n1,a\n2,a\n",
            (),
            "{}: all items are of the class 'a': give items of both classes",
        ),
        (
            "id,class\n1,a\n2,b\n",
            (),
            "{}: the classes are 'a' and 'b': say which one is positive, as in --positive b",
        ),
        (
            "id,class\n1,a\n2,b\n",
            ("--positive", "c"),
            "--positive c is not in {}: the classes are a and b",
        ),
    ],
)
def test_bad_files_of_known_classes(
    made: Any, tmp_path: Path, text: str, more: Any, message: str
) -> None:
    folder, _ = made
    known = tmp_path / "known.csv"
    known.write_text(text)
    result = fit(folder, tmp_path / "model", *QUICK, "--labelled", known, *more)
    assert result.exit_code == 2
    assert result.stderr == f"pairlearn fit: {message.format(known)}\n"
    assert list(tmp_path.iterdir()) == [known]


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("left,similarity\n1,0.5\n", "{0}, line 1: no column 'right'; the columns are 'left'"),
        ("left,right\n1,2\n", "{0}, line 1: no column of judgements"),
        (HEADER + "1,2,half,0\n", "{0}, line 2: similarity is 'half', not a number"),
        (
            HEADER + "1,2,0.5,0\n1,none,0.5,0\nnone,2,0.5,0.1\n",
            "{0} cannot be used as it is:\n  unknown-item: 1 ids are not among the 400 items. Ids "
            "are compared exactly, spaces included. (rows 2, 3; none)\n`pairlearn check {0} "
            "--items {1}` says more\n",
        ),
        (
            HEADER + "1,1,0.5,0\n",
            "{0} cannot be used as it is:\n  self-pair: Items are paired with themselves",
        ),
        (
            "left,right,similarity\n1,2,0.5\n",
            "{0} cannot be used as it is:\n  needs-majority: There are similarities only. They "
            "say which items belong together and nothing about which class is the positive one: "
            "say which is the larger (--majority).\n",
        ),
        (
            "left,right,difference\n1,2,0.5\n",
            "{0} cannot be used as it is:\n  needs-prior: There are differences only. They fix "
            "the posteriors up to an added constant: give the class prior (--prior).\n",
        ),
        (
            "left,right,preference\n1,2,left\n3,4,right\n",
            "labels have no similarity, and differences and preferences fix the posteriors up to "
            "an added constant only: pass --prior, the share of the positive class",
        ),
    ],
)
def test_judgements_that_cannot_be_used(made: Any, tmp_path: Path, text: str, message: str) -> None:
    folder, _ = made
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(text)
    result = fit(folder, tmp_path / "model", *QUICK, pairs=pairs)
    assert result.exit_code == 2
    expected = message.format(pairs, folder / "items.csv")
    assert result.stderr.startswith(f"pairlearn fit: {expected}")
    assert list(tmp_path.iterdir()) == [pairs]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--holdout", 1), "--holdout must lie in [0, 1); got 1"),
        (("--positive", "a"), "--positive is a class of --labelled, which is not given"),
        (
            ("--prior", 7),
            "--prior must be a str among {'estimate'}",
        ),
        (
            ("--target-prior", 0),
            "--target-prior must be a float in the range",
        ),
        (
            ("--annotator-prior", 0.5),
            "annotator_prior is the prior to shift from, and needs target_prior to shift to",
        ),
        (
            ("--learning-rate", -1),
            "--learning-rate must be a str among {'auto'}",
        ),
        (("--risk", "guess"), "guess"),
        (("--risk", "supervised"), "risk 'supervised' reads classes, not judgements"),
        (("--correction", "twice"), "twice"),
        (("--device", "abacus"), "--device abacus is unknown; say auto, cpu or cuda"),
        (
            ("--prior", 0.8, "--majority", "negative"),
            "prior 0.8 makes the positive class the majority, not negative",
        ),
        (
            ("--labelled-weight", 1),
            "--labelled-weight must be a str among {'auto'}",
        ),
        (("--model", "forest"), "forest"),
        (("--epochs", 0), "--epochs"),
        (("--ids", "ids.npy"), "ids is for .npy features"),
    ],
)
def test_wrong_requests(made: Any, tmp_path: Path, options: Any, message: str) -> None:
    folder, _ = made
    result = fit(folder, tmp_path / "model", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_places_that_are_refused_before_training(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    file = tmp_path / "file"
    file.write_text("precious")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("precious")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    told(folder, tmp_path / "model", "--holdout", 0)
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    for out, more, message in (
        (file, "--force", f"{file}: exists and is no folder; choose another place"),
        (file / "model", "--force", f"{file / 'model'} cannot be written: {file} is a file"),
        (full, "--force", f"{full}: holds 'notes.txt', which is no part of a model, and would be"),
        (other, "--force", f"{other}: exists and is not a pairlearn model; choose another folder"),
        (
            tmp_path / "model",
            "--json",
            f"{tmp_path / 'model'} is a model already: choose another folder, or --force",
        ),
        (folder, "--force", f"{folder}: holds 'items.csv', which is no part of a model"),
    ):
        result = fit(folder, out, *QUICK, more)
        assert result.exit_code == 2, out
        assert result.stderr.startswith(f"pairlearn fit: {message}"), result.stderr
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    told(folder, tmp_path / "model", "--holdout", 0, "--force", "--seed", 9)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != before


def test_training_that_diverges_exits_with_1_and_writes_nothing(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    out = tmp_path / "model"
    for holdout in (0, 0.2):
        result = fit(
            folder, out, *QUICK, "--model", "mlp", "--learning-rate", 1e38, "--holdout", holdout
        )
        assert result.exit_code == 1
        assert result.stderr.startswith("pairlearn fit: training diverged: the loss is nan in ")
        assert result.stderr.endswith("; try a lower --learning-rate\n")
        assert not out.exists()


# ---- bars and help ----------------------------------------------------------------------------


def test_a_bar_with_the_loss_on_a_terminal(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "shows_bars", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    folder, _ = made
    shown = fit(folder, tmp_path / "model", *QUICK).stderr
    assert "1/2 to measure: epoch 10 of 10, loss 0." in shown
    assert "2/2 to save: epoch 10 of 10, loss 0." in shown
    assert fit(folder, tmp_path / "model", *QUICK, "--force", "--json").stderr == ""


def test_help_shows_examples_and_exit_codes() -> None:
    text = plain(run("fit", "--help").stdout)
    assert "pairlearn fit items.csv pairs.csv --out model" in text
    assert "Scikit-learn classifiers cannot be saved without pickle" in text
    assert "Exit codes: 0 done, 1 training diverged, 2 wrong request or unusable file." in text


# ---- pairs that are held out ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("items", [12, 60, 5000])
def test_held_out_pairs_have_items_of_their_own(items: int, seed: int) -> None:
    ends = np.random.default_rng(seed).integers(0, items, (300, 2))
    training, held_out = hold_out_items(ends, 0.2, seed)
    assert not (training & held_out).any()
    seen = {item for row in ends[training].tolist() for item in row}
    measured = {item for row in ends[held_out].tolist() for item in row}
    assert not seen & measured
    for k, (one, other) in enumerate(ends.tolist()):
        if not training[k] and not held_out[k]:
            assert one in measured or other in measured
    assert held_out.sum() >= 60


def test_no_pair_is_lost_where_items_do_not_recur() -> None:
    training, held_out = hold_out_items(np.arange(400).reshape(-1, 2), 0.2, seed=1)
    assert (training.sum(), held_out.sum()) == (160, 40)


def test_where_all_pairs_hang_together() -> None:
    """A share f of the pairs takes √f of the items and leaves (1 − √f)² of the pairs."""
    ends = np.random.default_rng(0).integers(0, 300, (20_000, 2))
    training, held_out = hold_out_items(ends, 0.25, seed=0)
    assert held_out.mean() == pytest.approx(0.25, abs=0.02)
    assert training.mean() == pytest.approx(0.25, abs=0.02)


def test_the_choice_follows_from_the_seed() -> None:
    ends = np.random.default_rng(0).integers(0, 100, (200, 2))
    one, two, three = (hold_out_items(ends, 0.3, seed)[1] for seed in (1, 1, 2))
    assert (one == two).all()
    assert (one != three).any()


@pytest.mark.parametrize(
    ("ends", "fraction", "message"),
    [
        ([], 0.2, r"ends must be whole numbers from 0, two for each .* shape \(0,\)"),
        ([[0, -1]], 0.2, "ends must be whole numbers from 0"),
        ([[0, 1]], 0.0, r"fraction must lie in \(0, 1\); got 0.0"),
    ],
)
def test_bad_splits(ends: Any, fraction: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hold_out_items(ends, fraction, seed=0)


def test_a_table_is_labels_for_the_classifier(made: Any) -> None:
    folder, simulation = made
    table = read_pairs(folder / "pairs.csv")
    features = simulation.items.features[table.ids()]
    models = [
        PairClassifier(model="linear", epochs=2, random_state=0).fit(
            features, labels, preference=table.preference
        )
        for labels in (table, table.to_array())
    ]
    first, second = (model.predict_proba(simulation.items.features) for model in models)
    assert (first == second).all()


def test_no_simulation_for_a_note_that_fit_does_not_show(
    made: tuple[Path, Simulation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pairlearn.check.checking.expected_half_width", None)
    assert fit(made[0], tmp_path / "model", *QUICK).exit_code == 0


def test_preferences_tell_the_side_of_an_accuracy_from_similarities(tmp_path: Path) -> None:
    """A prior on the wrong side of ½ must not mirror the accuracy of a model that knows better."""
    folder = tmp_path / "made"
    made = simulated(folder, seed=3, pairs=300, prior=0.5)
    table = made.pairs
    preference = np.where(np.abs(table.difference) > 0.3, np.sign(table.difference), 0)
    write_pairs(
        PairTable(table.left, table.right, table.similarity, None, preference=preference),
        tmp_path / "pairs.csv",
    )
    found = told(folder, tmp_path / "model", "--prior", 0.48, pairs=tmp_path / "pairs.csv")
    assert found["accuracy"]["value"] > 0.8
