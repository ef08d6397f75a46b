"""``torchrun … -m pairlearn fit``: one model from several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pairlearn
from pairlearn.cli import app
from pairlearn.estimators import PairClassifier
from studio_processes import Command, free_port

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks")
    made = CliRunner().invoke(app, ["simulate", str(path), "--pairs", "601", "--seed", "2"])
    assert made.exit_code == 0, made.output
    return path


def words(folder: Path, out: Path, pairs: str = "pairs.csv") -> list[str]:
    return [
        *("fit", str(folder / "items.csv"), str(folder / pairs), "--out", str(out)),
        *("--model", "mlp-bn", "--batch-size", "64", "--seed", "1", "--device", "cpu", "--json"),
    ]


def told(folder: Path, out: Path, ranks: int) -> dict[str, Any]:
    """What the first process says; the others are silent."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    place["GLOO_SOCKET_IFNAME"] = "lo"
    started = [
        Command(
            out.with_name(f"said-{ranks}"),
            *words(folder, out),
            *("--epochs", 5, "--early-stopping"),
            module="pairlearn.cli",
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
    found: dict[str, Any] = json.loads(started[0].words())
    return found


def test_two_ranks_reach_what_one_does(folder: Path, tmp_path: Path) -> None:
    one, two = (told(folder, tmp_path / str(ranks), ranks) for ranks in (1, 2))
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
