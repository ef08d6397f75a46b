"""The command `evaluate` with items of known class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import answer, plain, probability, run, simulated
from pairlearn.io import write_pairs
from tables import pair_ids
from test_cli_evaluate import changed, evaluate, made, measures

__all__ = ["made"]  # a fixture


def test_labels_hold_whatever_the_annotators_say(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    r = simulation.posterior
    sure = r**3 / (r**3 + (1 - r) ** 3)  # log-odds times three
    left, right = sure[pair_ids(simulation.pairs)].T
    both = left * right + (1 - left) * (1 - right)
    pairs = tmp_path / "sure.csv"
    write_pairs(changed(simulation.pairs, similarity=both, difference=right - left), pairs)
    positive = probability(classifier, simulation.items.features) > 0.5
    right_ones = int(np.sum(positive == simulation.positive))
    truth = right_ones / 800
    assert measures(folder, pairs=pairs)["accuracy"]["low"] > truth
    result = measures(folder, "--labelled", folder / "truth.csv", pairs=pairs)
    accuracy = result["accuracy"]
    assert accuracy["low"] < truth < accuracy["high"] < accuracy["low"] + 0.06
    assert accuracy["method"] == "prediction-powered"
    assert accuracy["labelled"]["confidence"] == "over"
    text = plain(evaluate(folder, "--labelled", folder / "truth.csv", pairs=pairs).stdout)
    assert f"{right_ones} of 800 labelled items are right" in text
    assert "by the labelled items; positive above 0.5" in text
    page = tmp_path / "page.html"
    run(
        "report",
        folder / "model",
        folder / "items.csv",
        pairs,
        page,
        "--labelled",
        folder / "truth.csv",
    )
    assert f"{right_ones} of 800 labelled items are right" in page.read_text()


def test_known_classes_that_contradict_the_model(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    rows = zip(simulation.items.ids, simulation.positive, strict=True)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("id,class\n" + "".join(f"{i},{0 if p else 1}\n" for i, p in rows))
    result = measures(folder, "--labelled", wrong)
    (text,) = result["warnings"]
    assert text.startswith("the known classes contradict the model") and "--positive" in text
    assert result["accuracy"]["high"] < 0.5
    quiet = evaluate(folder, "--labelled", wrong, "--at-least", 0.5, "--quiet")
    assert quiet.exit_code == 1 and "contradict the model" in plain(quiet.stderr)
    assert not measures(folder, "--labelled", folder / "truth.csv")["warnings"]
    files, model = (folder / "items.csv", folder / "pairs.csv"), tmp_path / "model"
    options = ("--model", "linear", "--epochs", 5, "--holdout", 0, "--labelled", wrong)
    (text,) = answer("fit", *files, "--out", model, *options)["warnings"]
    assert "classes contradict all annotators' differences" in plain(text)


def test_known_classes_that_contradict_the_model_and_not_the_differences(
    made: Any, tmp_path: Path
) -> None:
    """Where judgements and classes agree, the model is wrong, and that is its accuracy."""
    folder, simulation, classifier = made
    rows = zip(simulation.items.ids, simulation.positive, strict=True)
    classes, pairs = tmp_path / "classes.csv", tmp_path / "pairs.csv"
    classes.write_text("id,class\n" + "".join(f"{i},{0 if p else 1}\n" for i, p in rows))
    write_pairs(changed(simulation.pairs, difference=-simulation.pairs.difference), pairs)
    result = measures(folder, "--labelled", classes, pairs=pairs)
    *_, text = result["warnings"]
    assert text.startswith("the known classes contradict the model")
    wrong = (probability(classifier, simulation.items.features) > 0.5) != simulation.positive
    assert result["accuracy"]["low"] < np.mean(wrong) < result["accuracy"]["high"] < 0.5


def test_labelled_items_need_not_be_in_the_pairs(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs, known = tmp_path / "some.csv", tmp_path / "known.csv"
    write_pairs(simulation.pairs[:100], pairs)
    used = {*simulation.pairs.left[:100].tolist(), *simulation.pairs.right[:100].tolist()}
    classes = zip(simulation.items.ids.tolist(), simulation.positive.tolist(), strict=True)
    rows = [f"{i},{int(y)}\n" for i, y in classes if i not in used][:90]
    known.write_text("id,class\n" + "".join(rows))
    labelled = measures(folder, "--labelled", known, pairs=pairs)["accuracy"]["labelled"]
    assert labelled["n"] == 90 and labelled["slope"] is None


def test_known_classes_of_other_items(tmp_path: Path) -> None:
    pairs, known = simulated(tmp_path, seed=0).pairs, tmp_path / "known.csv"
    for name, rows in (("fit", slice(100)), ("pairs", slice(150, None))):
        write_pairs(pairs[rows], tmp_path / f"{name}.csv")
    lines = [f"{i},{k % 2}\n" for k, i in enumerate(pairs.left[96:102])]
    known.write_text("id,class\n" + "".join(lines[:4]))
    files = tmp_path / "items.csv", tmp_path / "fit.csv", "--out", tmp_path / "model"
    options = ("--model", "linear", "--epochs", 5, "--holdout", 0, "--labelled", known)
    assert run("fit", *files, *options).exit_code == 0
    known.write_text("id,class\n" + "".join(lines[:4]))
    text = plain(evaluate(tmp_path, "--labelled", known).stderr)
    assert "fit was trained on 4 of the 4 labelled items" in text
    known.write_text("id,class\n" + "".join(lines))
    result = measures(tmp_path, "--labelled", known)
    assert result["accuracy"]["labelled"]["n"] == 2
    said = "fit was trained on 4 of the 6 labelled items"
    assert any(warning.startswith(said) for warning in result["warnings"])


def test_weights_of_labelled_items_undo_how_they_were_chosen(made: Any, tmp_path: Path) -> None:
    """Wrong decisions are chosen ten times as often as right ones, and weigh a tenth."""
    folder, simulation, classifier = made
    right = (probability(classifier, simulation.items.features) > 0.5) == simulation.positive
    chosen = ~right | (np.arange(len(right)) % 10 == 0)
    rows = zip(simulation.items.ids, simulation.positive, right, chosen, strict=True)
    lines = [f"{i},{int(y)},{10 if ok else 1}\n" for i, y, ok, taken in rows if taken]
    known = tmp_path / "known.csv"
    known.write_text("id,class,weight\n" + "".join(lines))
    accuracy = measures(folder, "--labelled", known)["accuracy"]
    assert accuracy["value"] == pytest.approx(right.mean(), abs=0.02)
    known.write_text("id,class\n" + "".join(line.rsplit(",", 1)[0] + "\n" for line in lines))
    assert measures(folder, "--labelled", known)["accuracy"]["value"] < right.mean() - 0.1
