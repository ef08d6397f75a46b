"""Behaviour of all commands, and the commands check, plan and simulate."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from model_folders import answer, fitted, plain, run, simulated
from pairlearn import cli
from pairlearn.check import plan as make_plan
from pairlearn.cli import command
from pairlearn.cli.root import app
from pairlearn.estimators import PairClassifier
from pairlearn.io import read_items, read_pairs, write_pairs
from pairlearn.simulation import simulate
from tables import pair_table

BOTH = "left,right,similarity,difference\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items, pairs and a model that has not seen them."""
    path = tmp_path_factory.mktemp("commands")
    simulated(path, seed=0, pairs=60, missing=0.4, annotators=2)
    fitted(simulate(pairs=200, prior=0.3, seed=1)).save(path / "model")
    return path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def call(line: str) -> Result:
    return run(*shlex.split(line))


def data_of(line: str) -> dict[str, Any]:
    return answer(*shlex.split(line))


# ---- what all have ----------------------------------------------------------------------------


def commands(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield name
    for key, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*name, key))


NAMES = [*commands(typer.main.get_command(app))]


@pytest.mark.parametrize("name", NAMES, ids=" ".join)
def test_help(name: tuple[str, ...]) -> None:
    """Flags take no value and do not look as if they did; examples and exit codes are there."""
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*name, "--help"])
    assert result.exit_code == 0
    assert "--help" in result.output
    assert "bool" not in result.output.lower()
    below = [line.rstrip() for line in result.output.partition("For example:")[2].splitlines()[1:]]
    examples = list(takewhile(bool, below))
    for above, line in pairwise(examples):  # none is broken in two
        assert line.startswith("   pairlearn ") or above.endswith("\\")
    if len(name) == 1 and name[0] not in ("annotate", "bench", "demo"):
        text = plain(result.output)
        assert f"For example: pairlearn {name[0]} " in text
        assert "Exit codes: 0 " in text


def test_help_shows_values_and_defaults_and_breaks_lines_once() -> None:
    text = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["fit", "--help"]).output
    assert "<float>" in text
    assert "<positive|negative>" in text
    assert "[default: (estimated)]" in text
    first, second = text.split("ITEMS has")[1].splitlines()[:2]
    assert len(first) + len(second.split()[0]) > 60  # as long as words allow


SHORT = [
    ("check pairs.csv --majority negative", {"ok", "findings", "summary"}, ""),
    ("plan --within 0.2 --accuracy 0.9 --pilot pairs.csv", {"pairs", "assumptions"}, "30"),
    ("evaluate model items.csv pairs.csv", {"accuracy", "n", "warnings"}, "0."),
    ("predict model items.csv --out {}.csv", {"rows", "positive", "threshold"}, ""),
    ("split pairs.csv {}.csv {}-held.csv", {"training", "held_out", "left_out"}, ""),
    ("simulate {} --pairs 20", {"files", "items", "best_accuracy"}, ""),
]


@pytest.mark.parametrize(("line", "keys", "short"), SHORT)
def test_json_and_quiet(here: Path, tmp_path: Path, line: str, keys: set[str], short: str) -> None:
    assert keys <= data_of(line.replace("{}", str(tmp_path / "one"))).keys()
    result = call(line.replace("{}", str(tmp_path / "two")) + " --quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(short) and len(result.stdout.splitlines()) == bool(short)


def test_an_import_that_fails_is_told_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    result = call("export model m.onnx")
    assert result.exit_code == 2
    assert result.stderr == (
        'pairlearn export: ONNX needs onnx: in a clone of pairlearn, pip install ".[onnx]"\n'
    )


def test_an_interrupt_ends_with_a_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pairlearn.io.read_pairs", interrupted)
    result = call("check pairs.csv")
    assert result.exit_code == 130
    assert result.stderr == "pairlearn check: interrupted before anything was written\n"
    monkeypatch.setattr("pairlearn.cli.root.app", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


def test_warnings_of_the_library_are_printed_once(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, or in the JSON, and not parsed or changed."""

    def warn(*arguments: Any, **options: Any) -> Any:
        for _ in range(2):
            warnings.warn("look twice", UserWarning, stacklevel=1)
        return load(*arguments, **options)

    load = PairClassifier.load
    monkeypatch.setattr(PairClassifier, "load", warn)
    line = "evaluate model items.csv pairs.csv"
    assert call(line).stderr.count("warning: look twice\n") == 1
    assert data_of(line)["warnings"].count("look twice") == 1
    assert call(f"{line} --quiet").stderr == ""


def test_version() -> None:
    assert re.fullmatch(r"pairlearn \d+\.\d+\.\S+\n", call("--version").stdout)
    assert "Show the version and exit." in call("--help").stdout


def test_lines_are_broken_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "word " * 39 + "word"
    command.Output(None, [line]).show(as_json=False, quiet=False)
    assert capsys.readouterr().out == f"{line}\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    command.Output(None, [line]).show(as_json=False, quiet=False)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


# ---- check ------------------------------------------------------------------------------------


def test_check_of_a_good_table(here: Path, tmp_path: Path) -> None:
    result = call("check pairs.csv --items items.csv --prior 0.3")
    assert result.exit_code == 0
    text = plain(result.stdout)
    assert "pairs.csv: 60 judgements of 60 pairs of 120 items by 2 annotators" in text
    assert "36 similarities with differences, 12 similarities, 12 differences" in text
    assert "a model can learn: everything" in text
    assert text.endswith("0 errors, 0 warnings: fine")
    assert "share of positives: 0.258 (95% interval" in text
    lines = ["left,right,preference", *(f"{k},{k + 100},left" for k in range(60))]
    (tmp_path / "ranked.csv").write_text("\n".join(lines))
    hidden = plain(run("check", tmp_path / "ranked.csv", "--prior", 0.3).stdout)
    assert hidden.endswith("(1 note: --notes)") and "not-measurable" not in hidden
    shown = run("check", tmp_path / "ranked.csv", "--prior", 0.3, "--notes").stdout
    assert "not-measurable" in shown


def test_check_of_one_pair(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(BOTH + "a,b,0.7,0.1\n")
    text = plain(run("check", tmp_path / "pairs.csv").stdout)
    assert "1 judgement of 1 pair of 2 items 1 similarity with a difference a model can" in text
    assert "a model can learn: hardly anything, as there are too few" in text
    (tmp_path / "pairs.csv").write_text("left,right,preference,same\na,b,left,\na,c,,same\n")
    text = plain(run("check", tmp_path / "pairs.csv").stdout)
    assert "1 preference, 1 answer “same” or “different” a model can" in text


def test_check_of_a_bad_table_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(BOTH + "a,[b],70,0.1\nc,c,1,0\nd,e,0.5,\n")
    result = run("check", path)
    assert (result.exit_code, result.stderr) == (1, "")
    for part in ("similarity-scale", "self-pair", "(row 2; c)", "2 errors, 1 warning: not usable"):
        assert part in plain(result.stdout)
    result = run("check", path, "--quiet")
    assert (result.exit_code, result.output) == (1, "")


def test_plan_from_assumptions() -> None:
    wanted = make_plan(0.03, accuracy=0.9, prior=0.3, strength=4.0)
    text = call("plan --within 0.03 --accuracy 0.9 --prior 0.3 --strength 4").stdout
    assert text.startswith(f"{wanted.pairs:,} pairs measure the accuracy within ±0.03 ")
    assert f"{wanted.pairs_independent:,} if their mistakes" in text
    assert f"\n{wanted.labels:,} labelled items" in text
    assert "keep them out of training" in text


def test_a_pilot_tells_prior_and_strength(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    # An overlap of 5% is a strength of 2·1.6449.
    write_pairs(simulate(pairs=2000, prior=0.2, overlap=0.05, missing=0.1).pairs, path)
    assumptions = data_of(f"plan --within 0.08 --accuracy 0.9 --pilot {path}")["assumptions"]
    assert assumptions["prior"] == pytest.approx(0.2, abs=0.03)
    assert assumptions["strength"] == pytest.approx(3.29, abs=0.15)


def test_a_pilot_on_another_scale(tmp_path: Path, here: Path) -> None:
    table, path = read_pairs(here / "pairs.csv"), tmp_path / "percent.csv"
    s, c = 100 * table.answers().T
    write_pairs(pair_table(table.left, table.right, s, c, noisy=True), path)
    scales = "--similarity-scale 0,100 --difference-scale=-100,100"
    line = "plan --within 0.08 --accuracy 0.9 --pilot pairs.csv"
    wanted = data_of(line)["pairs"]
    assert data_of(f"{line.replace('pairs.csv', str(path))} {scales}")["pairs"] == wanted


# ---- simulate ---------------------------------------------------------------------------------


def test_simulated_files_and_what_is_said_about_them(tmp_path: Path) -> None:
    for name in ("one", "two"):
        result = run("simulate", tmp_path / name, "--pairs", 50, "--prior", 0.2)
        assert "100 items (20 positive), 50 judgements" in result.stdout
    assert len(read_items(tmp_path / "one" / "items.csv")) == 100
    assert len(read_pairs(tmp_path / "one" / "pairs.csv")) == 50
    assert (tmp_path / "one" / "truth.csv").read_text().startswith("id,class,posterior\n")
    for file in ("items.csv", "pairs.csv", "truth.csv"):  # the same seed, the same bytes
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert run("simulate", tmp_path / "one", "--pairs", 20, "--force").exit_code == 0
    assert len(read_pairs(tmp_path / "one" / "pairs.csv")) == 20


def test_all_options_of_simulate(tmp_path: Path) -> None:
    summary = data_of(
        f"simulate {tmp_path} --from moons --pairs 40 --items 60 --annotators 3 --repeated 0.5 "
        "--noise 0.1 --missing 0.2 --preference 0.1 --annotator-prior 0.5 --overlap 0.1 --seed 3 "
        "--format parquet --also label=0.1"
    )
    assert (summary["items"], summary["positive"]) == (60, 18)
    assert 0.8 < summary["best_accuracy"] < 1
    files = [Path(path).name for path in summary["files"]]
    assert files == ["items.parquet", "pairs.parquet", "truth.csv"]
    names = read_pairs(tmp_path / "pairs.parquet").annotator
    assert names is not None
    assert {"annotator-1", "annotator-2", "annotator-3"} <= set(names)
