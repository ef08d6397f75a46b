"""The command `simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pairlearn.cli.simulate import simulate
from pairlearn.tables import read_items, read_pairs

app = typer.Typer()
app.command()(simulate)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_files_and_what_is_said_about_them(tmp_path: Path) -> None:
    result = run(tmp_path / "try", "--pairs", 50, "--prior", 0.2)
    assert result.exit_code == 0
    assert "100 items (20 positive), 50 judgements" in result.stdout
    assert len(read_items(tmp_path / "try" / "items.csv")) == 100
    assert len(read_pairs(tmp_path / "try" / "pairs.csv")) == 50
    assert (tmp_path / "try" / "truth.csv").read_text().startswith("id,class,posterior\n")


def test_json_and_all_options(tmp_path: Path) -> None:
    result = run(
        tmp_path, "--from", "moons", "--pairs", 40, "--items", 60, "--annotators", 3,
        "--repeated", 0.5, "--noise", 0.1, "--missing", 0.2, "--preference", 0.1,
        "--annotator-prior", 0.5, "--overlap", 0.1, "--seed", 3, "--format", "parquet", "--json",
    )  # fmt: skip
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["items"], told["judgements"], told["positive"]) == (60, 60, 18)
    assert 0.8 < told["best_accuracy"] < 1
    assert [Path(f).name for f in told["files"]] == ["items.parquet", "pairs.parquet", "truth.csv"]
    names = read_pairs(tmp_path / "pairs.parquet").annotator
    assert names is not None
    assert set(names) == {"annotator-1", "annotator-2", "annotator-3"}


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert run(tmp_path / name, "--pairs", 20, "--quiet").stdout == ""
    for file in ("items.csv", "pairs.csv", "truth.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_files_are_not_replaced_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("precious")
    result = run(tmp_path, "--pairs", 20)
    assert result.exit_code == 2
    assert "pairs.csv is there already: choose another folder, or --force" in result.stderr
    assert (tmp_path / "pairs.csv").read_text() == "precious"
    assert not (tmp_path / "items.csv").exists()
    assert run(tmp_path, "--pairs", 20, "--force").exit_code == 0
    assert len(read_pairs(tmp_path / "pairs.csv")) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prior", 2], "pairlearn simulate: prior must lie in (0, 1); got 2"),
        (["--overlap", 0.9], "pairlearn simulate: overlap must lie in (0, 0.45] for gaussians"),
        (["--from", "spirals"], "spirals"),
        (["--pairs", 0], "--pairs"),
    ],
)
def test_wrong_requests(arguments: list[object], message: str, tmp_path: Path) -> None:
    result = run(tmp_path / "new", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "new").exists()


def test_help_shows_examples() -> None:
    assert "pairlearn simulate cancer --from breast-cancer" in " ".join(
        run("--help").stdout.split()
    )
