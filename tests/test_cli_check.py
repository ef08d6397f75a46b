"""The command `check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pairlearn.cli.check import check
from pairlearn.data.simulation import simulate

app = typer.Typer()
app.command()(check)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulated")
    simulate(pairs=60, prior=0.3, missing=0.4, annotators=2).write(path)
    return path


def plain(result: Result) -> str:
    """What was printed, whatever the width of the terminal."""
    return " ".join(result.stdout.split())


def test_a_good_table(folder: Path) -> None:
    result = run(folder / "pairs.csv", "--items", folder / "items.csv", "--prior", 0.3)
    assert result.exit_code == 0
    text = plain(result)
    assert "pairs.csv: 60 judgements of 60 pairs of 120 items by 2 annotators" in text
    assert "36 both answers, 12 similarity only, 12 difference only" in text
    assert "they can teach: everything" in text
    assert text.endswith("0 errors, 0 warnings: fine")


def test_a_bad_table_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,similarity,difference\na,[b],70,0.1\nc,c,1,0\nd,e,0.5,\n")
    result = run(path)
    assert result.exit_code == 1
    text = plain(result)
    assert "similarity-scale" in text
    assert "self-pair" in text
    assert "(rows 2; c)" in text
    assert text.endswith("2 errors, 0 warnings: not usable as it is")


def test_percentages_are_told_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [f"a{k},b{k},{40 + k % 50},{(k % 9 - 4) / 10}" for k in range(100)]
    path.write_text("\n".join(["left,right,similarity,difference", *rows, ""]))
    result = run(path)
    assert (result.exit_code, result.stderr) == (1, "")
    text = plain(result)
    assert "error similarity-scale The similarities look like percentages, up to 89:" in text
    assert "divide them by 100, so that they lie in [0, 1]" in text
    assert text.endswith("1 error, 0 warnings: not usable as it is")


def test_json(folder: Path) -> None:
    result = run(folder / "pairs.csv", "--json", "--majority", "negative")
    told = json.loads(result.stdout)
    assert told["ok"] is True
    assert told["summary"]["rows"] == 60
    assert "learnable" in {finding["code"] for finding in told["findings"]}


def test_quiet_prints_nothing(folder: Path, tmp_path: Path) -> None:
    result = run(folder / "pairs.csv", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,similarity\na,b,0.5\n")
    result = run(path, "--quiet")
    assert (result.exit_code, result.output) == (1, "")
    assert run(path, "--quiet", "--majority", "positive").exit_code == 0


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_figure(folder: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"plane.{suffix}"
    result = run(folder / "pairs.csv", "--figure", path)
    assert result.exit_code == 0
    assert f"plane.{suffix}" in result.stdout
    assert path.stat().st_size > 1000


def test_wrong_requests(folder: Path, tmp_path: Path) -> None:
    pairs = folder / "pairs.csv"
    ranked = tmp_path / "ranked.csv"
    ranked.write_text("left,right,preference\na,b,left\n")
    for arguments, message in (
        ((tmp_path / "none.csv",), "none.csv"),
        ((pairs, "--items", tmp_path / "none.csv"), "none.csv"),
        ((pairs, "--prior", 7), "pairlearn check: prior must lie in (0, 1); got 7"),
        ((pairs, "--figure", "plane.jpg"), "--figure plane.jpg must end in .png, .svg or .pdf"),
        ((ranked, "--figure", tmp_path / "p.png"), "--figure shows similarities and differences"),
        ((pairs, "--majority", "none"), "none"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr


def test_help_shows_examples_and_exit_codes() -> None:
    text = plain(run("--help"))
    assert "pairlearn check pairs.csv --items items.csv --prior 0.3" in text
    assert (
        "Exit codes: 0 no errors, 1 errors were found, 2 wrong request or unreadable file." in text
    )
