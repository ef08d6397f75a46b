"""Runs of `bench run` on the embedded digits: the numbers that were kept."""

import json
from pathlib import Path

from model_folders import run
from test_golden import assert_close


def test_the_rows_of_a_grid(tmp_path: Path) -> None:
    store = tmp_path / "store.jsonl"
    done = run(
        *("bench", "run", "accuracy", "--datasets", "digits", "--priors", "0.2,0.5"),
        *("--seeds", 1, "--epochs", 2, "--model", "linear", "--device", "cpu", "--store", store),
        *("--methods", "likelihood-abs,sconf-abs,convex-0.5-relu,sconfconfdiff-none,supervised"),
    )
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in store.read_text().splitlines()]
    found = sorted(
        ({key: row[key] for key in ("prior", "seed", "method", "results")} for row in rows),
        key=lambda row: (row["prior"], row["method"]),
    )
    kept = json.loads(Path(__file__).with_name("golden_bench.json").read_text())
    assert_close(found, kept)
