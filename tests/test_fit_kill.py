"""``pairlearn fit`` killed at any moment and started again: the model is the same."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairlearn.cli import app
from pairlearn.estimators import PairClassifier
from studio_processes import Command

pytest.importorskip("sklearn")
EPOCHS = 4
TIMES = ("seconds", "checksum")  # a checksum of the seconds, too


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("killed")
    made = CliRunner().invoke(app, ["simulate", str(path), "--pairs", "300", "--seed", "3"])
    assert made.exit_code == 0, made.output
    return path


def start(folder: Path, out: Path, *more: str) -> Command:
    return Command(
        out.with_name("words"),
        *("fit", folder / "items.csv", folder / "pairs.csv", "--out", out),
        *("--model", "mlp", "--epochs", EPOCHS, "--batch-size", 32, "--seed", 1),
        *("--checkpoint-seconds", 0, "--device", "cpu", "--json", *more),
        module="pairlearn.cli",
    )


def finished(folder: Path, out: Path, *more: str) -> str:
    """Let the command end; what it said."""
    command = start(folder, out, *more)
    assert command.wait(300) == 0, command.words()
    return command.words()


def without_times(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_times(value) for name, value in told.items() if name not in TIMES}
    return [without_times(value) for value in told] if isinstance(told, list) else told


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
    told = json.loads(finished(folder, out))
    assert any("damaged; going on from" in text for text in told["warnings"]), told
    assert not before.exists()
    assert contents(out) == whole[0]
