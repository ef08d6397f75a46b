"""The command `compare`."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner, Result

from pairlearn.cli.compare import compare
from pairlearn.comparison import compare as compare_methods
from pairlearn.data.simulation import simulate

app = typer.Typer()
app.command()(compare)

QUICK = ("--model", "linear", "--epochs", 5, "--learning-rate", 0.05, "--majority", "negative")
TWO = ("--methods", "likelihood-abs, confdiff-none")


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, [str(a) for a in arguments])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    simulate("gaussians", pairs=100, prior=0.3, seed=2).write(tmp_path)
    return tmp_path / "items.csv", tmp_path / "pairs.csv"


def test_json_is_the_comparison(files: tuple[Path, Path]) -> None:
    result = run(*files, *QUICK, *TWO, "--folds", 3, "--prior", 0.3, "--seed", 4, "--json")
    assert result.exit_code == 0
    made = simulate("gaussians", pairs=100, prior=0.3, seed=2)
    wanted = compare_methods(
        made.items, made.pairs.ids(), made.pairs.labels(),
        methods=["likelihood-abs", "confdiff-none"], folds=3, prior=0.3, seed=4,
        model="linear", epochs=5, learning_rate=0.05, majority="negative",
    )  # fmt: skip
    told = json.loads(result.stdout)
    assert told["best"] == wanted.best.name
    assert told["ties"] == list(wanted.ties)
    assert (told["folds"], told["tested"], told["dropped"], told["prior"]) == (3, 100, 0, 0.3)
    values = [row["accuracy"]["value"] for row in told["methods"]]
    assert values == pytest.approx([row.accuracy.value for row in wanted.rows])


def test_the_table_and_a_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "ranking.csv"
    result = run(*files, *QUICK, *TWO, "--out", out)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for part in (
        "less than the best by",
        "100 judgements, 100 held out in 5 folds × 1; class prior",
        "Accuracy as the annotator sees it; 95% intervals",
        "best: ",
        f"ranking: {out}"[:20],
    ):
        assert part in text
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"likelihood-abs", "confdiff-none"}
    assert f"best: {rows[0]['method']}" in text
    assert float(rows[0]["accuracy_low"]) < float(rows[0]["accuracy"])
    assert float(rows[0]["difference"]) == 0
    assert rows[1]["tie"] == str(float(rows[1]["difference_high"]) >= 0).lower()
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_quiet_prints_the_best_alone(files: tuple[Path, Path]) -> None:
    result = run(*files, *QUICK, "--methods", "likelihood-abs", "--quiet")
    assert result.stdout == "likelihood-abs\n"


def test_preferences_and_missing_answers_are_read(tmp_path: Path) -> None:
    made = simulate("gaussians", pairs=60, missing=0.3, preference=0.2)
    made.write(tmp_path)
    result = run(
        tmp_path / "items.csv", tmp_path / "pairs.csv", *QUICK, *TWO, "--folds", 2, "--json"
    )
    told = json.loads(result.stdout)
    assert (told["pairs"], told["tested"]) == (60, 48)


def test_noise_out_of_range_is_admitted_when_asked(files: tuple[Path, Path]) -> None:
    items, pairs = files
    lines = pairs.read_text().splitlines()
    cells = lines[1].split(",")
    cells[2] = "1.25"
    pairs.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    refused = run(items, pairs, *QUICK, *TWO)
    assert refused.exit_code == 2
    assert "similarity is 1.25" in refused.stderr
    assert run(items, pairs, *QUICK, *TWO, "--noisy", "--quiet").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "ranking.txt"), "--out ranking.txt must end in .csv"),
        (("--methods", "magic"), "risk 'magic' is unknown"),
        (("--folds", 1), "folds must be a whole number of at least 2; got 1"),
        (
            ("--prior", 2),
            "must be a str among {'estimate'}",
        ),
        (("--confidence", 0), "confidence must lie in (0, 1); got 0.0"),
    ],
)
def test_refusals(files: tuple[Path, Path], arguments: tuple[object, ...], message: str) -> None:
    result = run(*files, *QUICK, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("pairlearn compare: ")
    assert message in result.stderr


def test_ids_that_are_not_among_the_items(files: tuple[Path, Path]) -> None:
    items, pairs = files
    pairs.write_text("left,right,similarity,difference\n0,999999,0.5,0.1\n")
    result = run(items, pairs, *QUICK)
    assert result.exit_code == 2
    assert "right 999999 is not among the items" in result.stderr


def test_an_error_in_an_import_is_told_as_it_is(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pairlearn.comparison", ModuleType("broken"))
    result = run(*files)
    assert result.exit_code == 2
    assert "cannot import name 'compare' from 'broken'" in result.stderr
    assert "scikit-learn" not in result.stderr
