"""Predictions of other people's methods, scored on the fixed tasks."""

from pathlib import Path

import pyarrow
import pytest
from pyarrow import csv, parquet

from pairlearn_bench import StoreError
from pairlearn_bench.leaderboard import leaderboard, read_tasks, score
from paper_results import call

TASKS = Path(__file__).parents[1] / "results" / "tasks.parquet"


@pytest.fixture(scope="module")
def truth() -> dict:
    return read_tasks(TASKS)


def predictions(path: Path, truth: dict, wrong: int = 0) -> Path:
    """Right for all items but the first `wrong` of each task."""
    rows = [
        dict(zip(("dataset", "prior", "seed"), key, strict=True))
        | {"left": item, "positive": float(positive != (k < wrong))}
        for key, items in truth.items()
        for k, (item, positive) in enumerate(items.items())
    ]
    table = pyarrow.Table.from_pylist(rows)
    write = csv.write_csv if path.suffix == ".csv" else parquet.write_table
    write(table, path)
    return path


def test_the_file_has_the_tasks_of_the_paper(truth: dict) -> None:
    table = parquet.read_table(TASKS).to_pylist()
    assert len(truth) == 2 * 3 * 5
    for (dataset, prior, seed), items in truth.items():
        key = {"dataset": dataset, "prior": prior, "seed": seed}
        rows = [r for r in table if r["right"] is not None and key.items() <= r.items()]
        assert len(rows) == {"optdigits": 1200, "pendigits": 2500}[dataset]
        used = {r[side] for r in rows for side in ("left", "right")}
        assert len(used) == 2 * len(rows) and not used & items.keys()
        assert sum(items.values()) / len(items) == pytest.approx(prior, abs=0.03)
        for r in rows[:20]:
            assert r["difference"] == pytest.approx(r["posterior_right"] - r["posterior"], abs=2e-6)


def test_methods_are_ranked_by_their_mean_accuracy(tmp_path: Path, truth: dict) -> None:
    files = [
        predictions(tmp_path / name, truth, wrong)
        for name, wrong in (("mine.csv", 9), ("best.parquet", 0))
    ]
    scores = {path.stem: score(path, truth) for path in files}
    key = ("optdigits", 0.2, 0)
    assert scores["mine"][key] == pytest.approx(1 - 9 / len(truth[key]))
    done = call("score", *files, "--tasks", TASKS, "--out", tmp_path / "board.md")
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "board.md").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("|")[1:4] == [" method ", " Optdigits ", " Pendigits "]
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["best", "mine"]
    assert lines[3].split("|")[-2].strip() == "6", "behind in all data sets and priors"
    assert leaderboard(scores) in done.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["left"]), "lacks the columns left"),
        (lambda t: t.slice(1), "needs one prediction for each of its test items"),
        (lambda t: t.filter(pyarrow.compute.equal(t["seed"], 0)), "has no predictions for"),
        (lambda t: t.set_column(2, "seed", [[9] * len(t)]), "there is no task with"),
        (lambda t: t.set_column(4, "positive", [[1.5] * len(t)]), "positive=1.5 of"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path: Path, truth: dict, change, message: str) -> None:
    path = predictions(tmp_path / "mine.parquet", truth)
    parquet.write_table(change(parquet.read_table(path)), path)
    with pytest.raises(StoreError, match=message):
        score(path, truth)


def test_another_file_of_tasks_is_refused(tmp_path: Path) -> None:
    table = parquet.read_table(TASKS)
    parquet.write_table(table.slice(1), tmp_path / "tasks.parquet")
    with pytest.raises(StoreError, match="not the fixed file of tasks"):
        read_tasks(tmp_path / "tasks.parquet")
