"""Data sets, models and risks of a file of one's own, in the grids and in their workers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pages import read_page
from pairlearn.models import register_model
from pairlearn_bench import get_grid
from pairlearn_bench.data import get_spec, load, register_dataset

EXTEND = Path(__file__).parents[2] / "docs" / "extend"
FILES = {
    block.file: block.text
    for page in ("add_a_data_set.md", "add_a_model.md", "add_a_risk.md")
    for block in read_page(EXTEND / page)
    if block.file is not None
}


def test_the_files_are_short() -> None:
    assert {*FILES} == {"large_digits.py", "wide.py", "halfway.py"}
    assert all(len(text.splitlines()) < 60 for text in FILES.values())


def test_all_three_in_a_grid_trained_by_two_workers(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    plugins = [word for name in FILES for word in ("--plugin", name)]
    done = subprocess.run(
        [sys.executable, "-m", "pairlearn", *plugins, "bench", "run", "accuracy",
         "--datasets", "large-digits", "--priors", "0.4,0.5", "--seeds", "1", "--model", "wide",
         "--methods", "halfway-abs,likelihood-abs", "--epochs", "2", "--store", "runs.jsonl",
         "--workers", "2", "--device", "cpu"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert len(runs) == 4
    assert {run["method"] for run in runs} == {"halfway-abs", "likelihood-abs"}
    assert {(run["dataset"], run["model"]) for run in runs} == {("large-digits", "wide")}


@pytest.mark.usefixtures("forgetful")
def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="data set 'digits' is built in; choose another name"):
        register_dataset(get_spec("digits"))
    with pytest.raises(ValueError, match=r"letters, digits, _ and -; got '\.\./mine'"):
        register_dataset(replace(get_spec("digits"), name="../mine"))
    with pytest.raises(ValueError, match="model 'mlp' is built in; choose another name"):
        register_model("mlp", hidden=(3,))
    with pytest.raises(ValueError, match="every width must be at least 1"):
        register_model("odd", hidden=(0,))
    with pytest.raises(ValueError, match="model='odd' must be the name of a model"):
        replace(get_grid("accuracy").select(datasets=["digits"]).runs()[0], model="odd")
    bad = replace(get_spec("digits"), name="bad", digest=None, source=lambda: {"x": np.zeros(3)})
    register_dataset(bad)
    with pytest.raises(ValueError, match="the source of bad"):
        load("bad")
