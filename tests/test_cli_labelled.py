"""The command `evaluate` with items of known class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import answer, plain, probability, run, simulated
from pairlearn.io import write_pairs
from tables import pair_ids
from test_cli_evaluate import changed, evaluate, made, measures

__all__ = ["made"]  # a fixture


def test_known_classes_correct_an_annotator_who_is_too_sure(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    r = simulation.posterior
    sure = r**3 / (r**3 + (1 - r) ** 3)  # log-odds times three
    left, right = sure[pair_ids(simulation.pairs)].T
    both = left * right + (1 - left) * (1 - right)
    pairs = tmp_path / "sure.csv"
    write_pairs(changed(simulation.pairs, similarity=both, difference=right - left), pairs)
    more = ("--labelled", folder / "truth.csv")
    result = measures(folder, *more, pairs=pairs)
    recalibration = result["recalibration"]
    assert recalibration["labels"] == 800
    assert recalibration["slope"] == pytest.approx(1 / 3, abs=0.1)
    positive = probability(classifier, simulation.items.features) > 0.5
    truth = np.mean(positive == simulation.positive)
    assert recalibration["accuracy_before"]["value"] > truth + 0.03
    assert result["accuracy"]["value"] == pytest.approx(truth, abs=0.02)  # 800 labels
    text = plain(evaluate(folder, *more, pairs=pairs).stdout)
    assert "judgements corrected with 800 known classes: log-odds times 0." in text
    hard = np.where(both > 0.5, 1.0, 0.0), np.where(both > 0.5, 0.0, np.sign(right - left))
    write_pairs(changed(simulation.pairs, similarity=hard[0], difference=hard[1]), pairs)
    result = evaluate(folder, *more, pairs=pairs)
    assert result.exit_code == 2 and "the answers are yes or no" in plain(result.output)
    assert measures(folder, pairs=pairs)["accuracy"]["independent"]["value"] is None


def test_known_classes_that_contradict_the_model_or_its_differences(
    made: Any, tmp_path: Path
) -> None:
    folder, simulation, _ = made
    rows = zip(simulation.items.ids, simulation.positive, strict=True)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("id,class\n" + "".join(f"{i},{0 if p else 1}\n" for i, p in rows))
    before, result = measures(folder)["accuracy"], measures(folder, "--labelled", wrong)
    for what, text in zip(("differences", "model"), result["warnings"], strict=True):
        assert text.startswith(f"the known classes contradict the {what}") and "--positive" in text
    assert result["recalibration"] is None
    low, high, least, most = map(float, re.findall(r"[01]\.\d{3}", result["not_measured"]))
    assert (low, high) == pytest.approx((before["low"], before["high"]), abs=1e-3)
    assert (least, most) == pytest.approx((1 - high, 1 - low))
    quiet = evaluate(folder, "--labelled", wrong, "--at-least", 0.5, "--quiet")
    assert quiet.exit_code == 1 and "contradict the differences" in plain(quiet.stderr)
    assert float(quiet.stdout) == pytest.approx(1 - result["accuracy"]["value"], abs=1e-4)
    assert not measures(folder, "--labelled", folder / "truth.csv")["warnings"]
    files, model = (folder / "items.csv", folder / "pairs.csv"), tmp_path / "model"
    options = ("--model", "linear", "--epochs", 5, "--holdout", 0, "--labelled", wrong)
    (text,) = answer("fit", *files, "--out", model, *options)["warnings"]
    assert "known classes contradict the differences" in plain(text)


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
    assert "contradict the differences" not in str(result["warnings"])
    wrong = (probability(classifier, simulation.items.features) > 0.5) != simulation.positive
    assert result["accuracy"]["low"] < np.mean(wrong) < result["accuracy"]["high"] < 0.5
    assert result["not_measured"] is None


def test_known_classes_are_counted_by_items(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs, known = tmp_path / "twice.csv", tmp_path / "known.csv"
    write_pairs(simulation.pairs[np.tile(np.arange(100), 2)], pairs)
    classes = dict(zip(simulation.items.ids, simulation.positive, strict=True))
    of = simulation.pairs.left[:30].tolist()
    known.write_text("id,class\n" + "".join(f"{i},{int(classes[i])}\n" for i in of))
    assert measures(folder, "--labelled", known, pairs=pairs)["recalibration"]["labels"] == 30


def test_known_classes_of_other_items(tmp_path: Path) -> None:
    pairs, known = simulated(tmp_path, seed=0).pairs, tmp_path / "known.csv"
    for name, rows in (("fit", slice(100)), ("pairs", slice(150, None))):
        write_pairs(pairs[rows], tmp_path / f"{name}.csv")
    lines = [f"{i},{k % 2}\n" for k, i in enumerate(pairs.left[96:102])]
    known.write_text("id,class\n" + "".join(lines[:4]))
    files = tmp_path / "items.csv", tmp_path / "fit.csv", "--out", tmp_path / "model"
    options = ("--model", "linear", "--epochs", 5, "--holdout", 0, "--labelled", known)
    assert run("fit", *files, *options).exit_code == 0
    for classes, why in ((4, "these are left out. Give"), (6, "left out; 2 are not in these")):
        known.write_text("id,class\n" + "".join(lines[:classes]))
        text = plain(evaluate(tmp_path, "--labelled", known).stderr)
        assert (
            f"{classes} items is in the pairs that are measured with: fit has learnt from 4" in text
        )
        assert why in text
