"""``torchrun … -m pairlearn fit``: one model from several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pairlearn
from pairlearn.cli import app
from pairlearn.estimators import PairClassifier

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks")
    made = CliRunner().invoke(app, ["simulate", str(path), "--pairs", "601", "--seed", "2"])
    assert made.exit_code == 0, made.output
    return path


def fit(
    folder: Path, out: Path, ranks: int, *more: str, pairs: str = "pairs.csv"
) -> subprocess.CompletedProcess[str]:
    launcher = [
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)),
        *("-m", "pairlearn"),
    ]
    source = str(Path(pairlearn.__file__).parents[1])
    return subprocess.run(
        [
            *(sys.executable, *(launcher if ranks > 1 else ["-m", "pairlearn"]), "fit"),
            *(str(folder / "items.csv"), str(folder / pairs), "--out", str(out)),
            *("--model", "mlp-bn", "--batch-size", "64", "--seed", "1"),
            *("--device", "cpu", "--json", *more),
        ],
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_two_ranks_reach_what_one_does(folder: Path, tmp_path: Path) -> None:
    told = {}
    for ranks in (1, 2):
        done = fit(folder, tmp_path / str(ranks), ranks, "--epochs", "5", "--early-stopping")
        assert done.returncode == 0, done.stderr
        told[ranks] = json.loads(done.stdout)  # one object: only the first rank prints
        PairClassifier.load(tmp_path / str(ranks))
    one, two = told[1], told[2]
    assert one["accuracy"]["value"] > 0.9
    assert two["accuracy"]["value"] == pytest.approx(one["accuracy"]["value"], abs=0.005)
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-3)
    assert (one["epochs"], one["prior"]) == (two["epochs"], pytest.approx(two["prior"], abs=1e-3))
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2"}


def test_what_is_wrong_is_said_once(folder: Path, tmp_path: Path) -> None:
    (folder / "bad.csv").write_text("left,right,similarity,difference\n0,1,2.5,0\n")
    done = fit(folder, tmp_path / "model", 2, pairs="bad.csv")
    assert done.returncode != 0
    assert done.stderr.count("pairlearn fit: ") == 1
    assert "similarity" in done.stderr
    assert not (tmp_path / "model").exists()
