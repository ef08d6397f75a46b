"""``pairlearn fit`` killed and started again, or in several processes: the model is the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pairlearn
from pairlearn.cli.root import app
from pairlearn.estimators import PairClassifier
from processes import Command, free_port

EPOCHS = 4
TIMES = ("seconds", "checksum")  # a checksum of the seconds, too


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    result = CliRunner().invoke(app, ["simulate", str(path), "--pairs", "301", "--seed", "3"])
    assert result.exit_code == 0, result.output
    return path


def start(folder: Path, out: Path, *more: str) -> Command:
    return Command(
        out.with_name("words"),
        *("fit", folder / "items.csv", folder / "pairs.csv", "--out", out),
        *("--model", "mlp", "--epochs", EPOCHS, "--batch-size", 32, "--seed", 1),
        *("--checkpoint-seconds", 0, "--device", "cpu", "--json", *more),
    )


def finished(folder: Path, out: Path, *more: str) -> str:
    """Let the command end; what it said."""
    command = start(folder, out, *more)
    assert command.wait(300) == 0, command.words()
    return command.words()


def without_times(config: Any) -> Any:
    if isinstance(config, dict):
        return {name: without_times(value) for name, value in config.items() if name not in TIMES}
    return [without_times(value) for value in config] if isinstance(config, list) else config


def contents(out: Path) -> tuple[bytes, Any]:
    """What a model folder says, but for how long things took."""
    config = json.loads((out / "config.json").read_text())
    return (out / "model.safetensors").read_bytes(), without_times(config)


@pytest.fixture(scope="module")
def whole(folder: Path) -> tuple[Any, float]:
    """What an undisturbed run writes, and how long it takes."""
    begin = time.monotonic()
    finished(folder, folder / "whole")
    return contents(folder / "whole"), time.monotonic() - begin


def leave_nothing(folder: Path, out: Path) -> None:
    """Killed after the model was there: the next run cleans up. Then everything is removed."""
    if (rest := out.with_name("model.checkpoint")).exists():
        finished(folder, out, "--force")
    assert not rest.exists()
    for file in out.iterdir():
        file.unlink()
    out.rmdir()


@pytest.mark.long
def test_killed_a_hundred_times_and_finished(
    folder: Path, whole: tuple[Any, float], tmp_path: Path
) -> None:
    """At moments of a whole run's length."""
    rng, (expected, length) = random.Random(1), whole
    out, ends, done = tmp_path / "model", 0, 0
    while done < 100:
        command = start(folder, out)
        time.sleep(rng.uniform(0, 1.1 * length))
        code = command.end(signal.SIGKILL)
        done += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL), command.words()
        if out.exists():  # whole, whenever it is there
            assert contents(out) == expected
            PairClassifier.load(out)
        if code == 0 or out.exists():
            ends += 1
            leave_nothing(folder, out)
    finished(folder, out)
    assert contents(out) == expected
    leave_nothing(folder, out)
    assert ends >= 3, "a checkpoint that saves no work would never let it finish"


def test_going_on_takes_up_where_it_was(
    folder: Path, whole: tuple[Any, float], tmp_path: Path
) -> None:
    out, kept = tmp_path / "model", tmp_path / "model.checkpoint" / "fit"
    before = kept.with_name("fit.before")
    command = start(folder, out)
    while not before.exists() and command.process.is_alive():
        time.sleep(0.01)
    command.end(signal.SIGKILL)
    assert before.exists()
    kept.write_bytes(before.read_bytes()[:-9])
    summary = json.loads(finished(folder, out))
    assert any("damaged; resuming from" in text for text in summary["warnings"]), summary
    assert not before.exists()
    assert contents(out) == whole[0]


# ---- torchrun ---------------------------------------------------------------------------------


def words(folder: Path, out: Path, pairs: str = "pairs.csv") -> list[str]:
    return [
        *("fit", str(folder / "items.csv"), str(folder / pairs), "--out", str(out)),
        *("--model", "mlp-bn", "--batch-size", "64", "--seed", "1", "--device", "cpu", "--json"),
    ]


def fit_on_ranks(folder: Path, out: Path, ranks: int) -> dict[str, Any]:
    """What the first process says; the others are silent."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    place["GLOO_SOCKET_IFNAME"] = "lo"
    started = [
        Command(
            out.with_name(f"said-{ranks}"),
            *words(folder, out),
            *("--epochs", 5),
            environment=place | {"RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo"}
            if ranks > 1
            else {},
        )
        for rank in range(ranks)
    ]
    for command in started:
        assert command.wait(300) == 0, command.words()
    assert not any(command.words() for command in started[1:])
    PairClassifier.load(out)
    summary: dict[str, Any] = json.loads(started[0].words())
    return summary


def test_two_ranks_reach_what_one_does(folder: Path, tmp_path: Path) -> None:
    one, two = (fit_on_ranks(folder, tmp_path / str(ranks), ranks) for ranks in (1, 2))
    assert one["accuracy"]["value"] > 0.9
    assert two["accuracy"]["value"] == pytest.approx(one["accuracy"]["value"], abs=0.005)
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-3)
    assert (one["epochs"], one["prior"]) == (two["epochs"], pytest.approx(two["prior"], abs=1e-3))
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"1", "2"}


@pytest.mark.long
def test_torchrun_says_once_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    (folder / "bad.csv").write_text("left,right,similarity,difference\n0,1,2.5,0\n")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    source = str(Path(pairlearn.__file__).parents[1])
    for pairs, code, times in (("pairs.csv", 0, 0), ("bad.csv", 1, 1)):
        done = subprocess.run(
            [
                *(sys.executable, *launcher, "-m", "pairlearn"),
                *words(folder, tmp_path / "model", pairs),
                *("--epochs", "1", "--force"),
            ],
            env=os.environ | {"PYTHONPATH": source, "GLOO_SOCKET_IFNAME": "lo"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert bool(done.returncode) == bool(code), done.stderr
        assert done.stderr.count("pairlearn fit: ") == times
