"""The command `plan`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from model_folders import fitted, probability, simulated
from pairlearn import PairClassifier, estimate_accuracy
from pairlearn.check import plan as make_plan
from pairlearn.cli.plan import plan
from pairlearn.data.simulation import simulate
from pairlearn.tables import write_pairs

app = typer.Typer()
app.command()(plan)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_from_assumptions() -> None:
    arguments = ("--within", 0.03, "--accuracy", 0.9, "--prior", 0.3, "--strength", 4)
    wanted = make_plan(0.03, accuracy=0.9, prior=0.3, strength=4.0)
    assert json.loads(run(*arguments, "--json").stdout) == wanted.to_dict()
    result = run(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{wanted.pairs:,} pairs for an accuracy within ±0.03\n")
    assert f"between {wanted.low:,} and {wanted.high:,}" in result.stdout
    assert "keep these pairs out of training" in result.stdout


def test_quiet_prints_the_number_alone() -> None:
    result = run("--within", 0.2, "--accuracy", 0.9, "--prior", 0.3, "--quiet")
    assert result.stdout == "30\n"


def test_a_pilot_tells_prior_and_strength(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    # An overlap of 5% is a strength of 2·1.6449.
    write_pairs(simulate(pairs=2000, prior=0.2, overlap=0.05, missing=0.1).pairs, path)
    result = run("--within", 0.04, "--accuracy", 0.9, "--pilot", path, "--json")
    told = json.loads(result.stdout)["assumptions"]
    assert told["prior"] == pytest.approx(0.2, abs=0.03)
    assert told["strength"] == pytest.approx(3.29, abs=0.15)


def test_a_pilot_and_a_model(tmp_path: Path) -> None:
    """The interval of the model on the pilot is what is planned by."""
    made = simulated(tmp_path, seed=3, pairs=300)
    fitted(simulate(pairs=300, prior=0.3, seed=4)).save(tmp_path / "model")
    files = ("--pilot", tmp_path / "pairs.csv", "--items", tmp_path / "items.csv")
    result = run("--within", 0.005, *files, "--model", tmp_path / "model")
    assert result.exit_code == 0
    assert "pilot: 300 pairs, accuracy 0." in result.stdout
    told = json.loads(
        run("--within", 0.005, *files, "--model", tmp_path / "model", "--json").stdout
    )
    classifier = PairClassifier.load(tmp_path / "model")
    p = probability(classifier, made.items.features)[made.pairs.positions(made.items)]
    logits = np.log(p / (1 - p))
    known = estimate_accuracy(*logits.T, made.pairs.labels())
    assert told["assumptions"]["low"] == pytest.approx(known.low)
    half = (told["assumptions"]["high"] - told["assumptions"]["low"]) / 2
    assert told["pairs"] == pytest.approx(300 * (half / 0.005) ** 2, abs=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prior", 0.3], "say --accuracy, as a guess, or --model with --pilot and --items"),
        (["--accuracy", 0.9], "say --prior, or --pilot with judged pairs that tell it"),
        (["--accuracy", 0.9, "--prior", 3], "prior must lie in (0, 1); got 3"),
        (["--model", "model"], "--model needs --pilot, the judged pairs, and --items"),
        (["--items", "items.csv"], "--items is for --model, which predicts them"),
        (
            ["--model", "m", "--pilot", "p.csv", "--items", "i.csv", "--prior", 0.3],
            "--model tells its accuracy: leave out the assumptions",
        ),
        (["--accuracy", 0.9, "--pilot", "none.csv"], "none.csv"),
    ],
)
def test_wrong_requests(arguments: list[object], message: str) -> None:
    result = run("--within", 0.02, *arguments)
    assert result.exit_code == 2
    assert f"pairlearn plan: {message}" in result.stderr or message in result.stderr
