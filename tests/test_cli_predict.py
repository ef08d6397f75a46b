"""The command `predict`, and prediction from file to file."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import fitted, plain, probability, run, simulated
from pairlearn import progress as bars
from pairlearn.cli.predict import rows_in
from pairlearn.data.simulation import Simulation
from pairlearn.estimators import PairClassifier, predict_file, prediction
from pairlearn.tables import ItemTable, write_items


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation, PairClassifier]:
    """A folder with items.csv, pairs.csv and model/; what they are; the classifier."""
    folder = tmp_path_factory.mktemp("made")
    simulation = simulated(folder, seed=0)
    classifier = fitted(simulation)
    classifier.save(folder / "model")
    return folder, simulation, classifier


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(path: Path) -> np.ndarray[Any, Any]:
    return np.array(read(path)["probability"], dtype=np.float64)


def test_columns_and_values(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    out = tmp_path / "new" / "predictions.csv"
    result = run("predict", folder / "model", folder / "items.csv", "--out", out)
    assert result.exit_code == 0, result.output
    told = read(out)
    assert list(told) == ["id", "label", "probability"]
    assert told["id"] == [str(i) for i in simulation.items.ids]
    expected = probability(classifier, simulation.items.features)
    assert numbers(out) == pytest.approx(expected, abs=1e-5)
    assert told["label"] == ["1" if p > 0.5 else "-1" for p in numbers(out)]
    positive = int((expected > 0.5).sum())
    assert plain(result.stdout) == plain(
        f"400 items, {positive} positive ({positive / 400:.1%}): {out}"
    )
    assert result.stderr == ""


def test_the_threshold_is_a_probability(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    out = tmp_path / "p.csv"
    result = run(
        "predict", folder / "model", folder / "items.csv", "--out", out, "--threshold", 0.9,
        "--json",
    )  # fmt: skip
    told = json.loads(result.stdout)
    assert told["rows"] == 400
    assert told["positive"] == (numbers(out) > 0.9).sum() == read(out)["label"].count("1")
    assert 0 < told["positive"] < (numbers(out) > 0.5).sum()


def test_all_formats_and_orders_of_columns_agree(made: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder, simulation, _ = made
    items = simulation.items
    turned = ItemTable(items.ids, items.features[:, ::-1], items.names[::-1])
    write_items(turned, tmp_path / "turned.parquet")
    np.save(tmp_path / "x.npy", items.features)
    np.save(tmp_path / "ids.npy", items.ids.astype(str))
    for arguments in (
        (folder / "items.csv", "--out", tmp_path / "one.csv"),
        (tmp_path / "turned.parquet", "--out", tmp_path / "two.csv"),
        (tmp_path / "x.npy", "--ids", tmp_path / "ids.npy", "--out", tmp_path / "three.csv"),
        (folder / "items.csv", "--out", tmp_path / "four.parquet", "--quiet"),
    ):
        result = run("predict", folder / "model", *arguments)
        assert result.exit_code == 0, result.output
    assert result.output == ""
    one, two, three = (read(tmp_path / f"{name}.csv") for name in ("one", "two", "three"))
    assert one == two == three
    four = parquet.read_table(tmp_path / "four.parquet").to_pydict()
    assert [str(p) for p in four["probability"]] == one["probability"]
    assert four["label"] == [int(label) for label in one["label"]]


def test_batches_of_any_size_give_the_same_file(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, classifier = made
    seen: list[int] = []
    predict_file(classifier, folder / "items.csv", tmp_path / "one.csv", progress=seen.append)
    monkeypatch.setattr(prediction, "NUMBERS", 1)  # then 64 rows, the least
    predict_file(classifier, folder / "items.csv", tmp_path / "two.csv", progress=seen.append)
    assert seen == [400, 64, 128, 192, 256, 320, 384, 400]
    one, two = read(tmp_path / "one.csv"), read(tmp_path / "two.csv")
    assert one["id"] == two["id"]
    # Matrix products of other sizes round in another order.
    assert numbers(tmp_path / "one.csv") == pytest.approx(numbers(tmp_path / "two.csv"), abs=1e-6)


def test_ids_may_recur_and_be_text(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    x = simulation.items.features[:3]
    path = tmp_path / "items.csv"
    rows = [f"{name},{a:.9g},{b:.9g}" for name, (a, b) in zip("bab", x, strict=True)]
    path.write_text("\n".join(["id,x1,x2", *rows]))
    assert run("predict", folder / "model", path, "--out", tmp_path / "p.csv").exit_code == 0
    assert read(tmp_path / "p.csv")["id"] == ["b", "a", "b"]
    assert numbers(tmp_path / "p.csv") == pytest.approx(probability(classifier, x), abs=1e-5)


def test_a_model_without_names_takes_features_as_they_come(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs = simulation.items.features[simulation.pairs.ids()]
    classifier = PairClassifier(model="linear", epochs=1, random_state=0)
    classifier.fit(pairs, simulation.pairs.labels())
    predict_file(classifier, folder / "items.csv", tmp_path / "p.csv")
    expected = classifier.predict_proba(simulation.items.features)[:, 1]
    assert numbers(tmp_path / "p.csv") == pytest.approx(expected, abs=1e-6)
    np.save(tmp_path / "x.npy", np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"x\.npy has 5 features, and the model was fitted to 2$"):
        predict_file(classifier, tmp_path / "x.npy", tmp_path / "q.csv")


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x1\n1,0.5\n", "{} lacks the feature 'x2' that the model was fitted to"),
        ("id,a,b\n1,0.5,2\n", "{} lacks 2 features 'x1', 'x2' that the model was fitted to"),
        (
            "id,x1,x2,x3,x4\n1,1,2,3,4\n",
            "{} has 2 features 'x3', 'x4' that the model was not fitted to: drop them",
        ),
        (
            "id,x1,x2,y\n1,1,2,3\n",
            "{} has the feature 'y' that the model was not fitted to: drop it",
        ),
        ("x1,x2\n1,2\n", "{}, line 1: no column 'id'; the columns are 'x1', 'x2'"),
        ("id,x1,x2\n", "{} has a header but no rows"),
        ("id,x1,x2\n1,2,three\n", "{}, line 2: x2 is 'three', not a number"),
        ("id,x1,x2\n1,2,\n", "{}, line 2: feature 'x2' is missing; fill it in or drop the row"),
    ],
)
def test_items_that_do_not_fit(made: Any, tmp_path: Path, text: str, message: str) -> None:
    folder, _, _ = made
    items = tmp_path / "items.csv"
    items.write_text(text)
    result = run("predict", folder / "model", items, "--out", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert result.stderr == f"pairlearn predict: {message.format(items)}\n"
    assert list(tmp_path.iterdir()) == [items]


def test_features_that_overflow_are_named(made: Any, tmp_path: Path) -> None:
    _, simulation, _ = made
    classifier = fitted(simulation, epochs=1)
    classifier.scale_ = np.full(2, 1e-3)
    classifier.save(tmp_path / "model")
    items, out = tmp_path / "items.csv", tmp_path / "p.csv"
    items.write_text("id,x1,x2\nnear,1e-3,1e-3\nfar,3e38,3e38\n")
    result = run("predict", tmp_path / "model", items, "--out", out)
    assert result.exit_code == 2
    assert f"{items}: the item 'far' gets log-odds of " in result.stderr
    assert "its features are far outside of those in training" in result.stderr
    assert not out.exists()


def test_a_bad_row_late_in_the_file_leaves_the_old_file(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "NUMBERS", 1)
    folder, _, _ = made
    items, out = tmp_path / "items.csv", tmp_path / "p.csv"
    items.write_text("id,x1,x2\n" + "1,0.5,0.5\n" * 500 + "2,0.5,nan\n")
    out.write_text("precious")
    result = run("predict", folder / "model", items, "--out", out, "--force")
    assert result.exit_code == 2
    assert "line 502" in result.stderr
    assert out.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["items.csv", "p.csv"]


def test_places_that_are_refused(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    items = folder / "items.csv"
    there = tmp_path / "there.csv"
    there.write_text("precious")
    (tmp_path / "folder.csv").mkdir()
    linked = tmp_path / "linked.csv"
    linked.symlink_to(items)
    before = items.read_bytes()
    for out, more, message in (
        (items, "--force", f"{items} is what is read here: choose another file to write"),
        (linked, "--force", f"{linked} is what is read here: choose another file to write"),
        (there, "--json", f"{there} is there already: choose another file, or --force"),
        (tmp_path / "folder.csv", "--force", f"{tmp_path / 'folder.csv'} is a folder; give a file"),
        (
            there / "p.csv",
            "--json",
            f"{there / 'p.csv'} cannot be written: {there} is a file",
        ),
        (
            tmp_path / "p.txt",
            "--json",
            f"{tmp_path / 'p.txt'} has the suffix '.txt'; predictions are .csv or .parquet",
        ),
    ):
        result = run("predict", folder / "model", items, "--out", out, more)
        assert result.exit_code == 2, out
        assert result.stderr == f"pairlearn predict: {message}\n"
    assert items.read_bytes() == before
    assert there.read_text() == "precious"
    result = run("predict", folder / "model", items, "--out", there, "--force")
    assert result.exit_code == 0
    assert there.read_text().startswith("id,label,probability\n")


def test_wrong_numbers_and_missing_files(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    out = tmp_path / "p.csv"
    missing = tmp_path / "none.csv"
    for arguments, message in (
        ((folder / "items.csv", "--threshold", 1.5), "threshold must lie in (0, 1); got 1.5"),
        ((missing,), f"{missing} does not exist"),
        (
            (folder / "items.csv", "--ids", missing),
            f"ids is for .npy features; {folder / 'items.csv'} has its ids in the column 'id'",
        ),
    ):
        result = run("predict", folder / "model", *arguments, "--out", out)
        assert result.exit_code == 2
        assert result.stderr == f"pairlearn predict: {message}\n"
        assert not out.exists()


def damaged(folder: Path, model: Path, how: str) -> None:
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        (model / name).write_bytes((folder / "model" / name).read_bytes())
    tensors, config = model / "model.safetensors", model / "config.json"
    if how == "truncated":
        tensors.write_bytes(tensors.read_bytes()[:-10])
    elif how == "changed":
        data = bytearray(tensors.read_bytes())
        data[-1] ^= 1
        tensors.write_bytes(data)
    elif how == "newer":
        config.write_text(config.read_text().replace('"version": 1', '"version": 2'))
    elif how == "edited":
        config.write_text(config.read_text().replace('"shift_": 0.0', '"shift_": 9.0'))
    elif how == "half":
        tensors.unlink()
    elif how == "cut":
        config.write_text(config.read_text()[:200])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("truncated", "the file was cut short, or belongs to another model"),
        ("changed", "its SHA-256 is not the one in config.json"),
        ("newer", "version 2 of the format, written by pairlearn 0.1.0"),
        ("edited", "the checksum does not fit"),
        ("half", "there is no such file"),
        ("cut", "not readable as JSON"),
    ],
)
def test_damaged_models(made: Any, tmp_path: Path, how: str, message: str) -> None:
    folder, _, _ = made
    damaged(folder, tmp_path / "model", how)
    out = tmp_path / "p.csv"
    result = run("predict", tmp_path / "model", folder / "items.csv", "--out", out)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not out.exists()


def test_what_is_no_model(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    items = folder / "items.csv"
    for model, message in (
        (tmp_path / "none", f"{tmp_path / 'none'}: there is no such folder"),
        (items, f"{items}: is a file; a model is a folder"),
        (tmp_path, f"{tmp_path / 'config.json'}: there is no such file"),
    ):
        result = run("predict", model, items, "--out", tmp_path / "p.csv")
        assert result.exit_code == 2
        assert result.stderr == f"pairlearn predict: {message}\n"


# ---- bars, help, memory -----------------------------------------------------------------------


def test_a_bar_on_a_terminal(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "shows_bars", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    folder, _, _ = made
    arguments = ("predict", folder / "model", folder / "items.csv", "--out", tmp_path / "p.csv")
    assert "predict: 400 rows" in run(*arguments).stderr
    assert run(*arguments, "--force", "--quiet").output == ""


def test_rows_are_counted_for_the_bar(made: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder, simulation, _ = made
    write_items(simulation.items, tmp_path / "items.parquet")
    (tmp_path / "broken.parquet").write_text("no")
    assert rows_in(folder / "items.csv") == rows_in(tmp_path / "items.parquet") == 400
    assert rows_in(tmp_path / "broken.parquet") is None
    assert rows_in(tmp_path / "none.csv") is None
    assert rows_in(tmp_path / "x.npy") is None


def test_help_shows_examples_and_exit_codes() -> None:
    text = plain(run("predict", "--help").stdout)
    assert "pairlearn predict model items.csv --out predictions.csv" in text
    assert "Exit codes: 0 done, 2 wrong request or unusable file." in text


PEAK = """
import re, sys
from pathlib import Path
from pairlearn.cli import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def peak_memory(*arguments: object) -> int:
    """MiB at most, of a process of its own.

    From /proc, since a child's ru_maxrss begins at what its parent had; with allocators
    that give back what is freed, since what they keep for later varies by 50 MiB.
    """
    plainly = {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 18),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 18),
    }
    out = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, arguments), "--quiet"],
        capture_output=True, text=True, check=True, env=os.environ | plainly,
    )  # fmt: skip
    return int(out.stdout.split()[-1]) // 1024


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is asked")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("pyarrow")
    made = simulated(tmp_path, seed=0)
    rng = np.random.default_rng(0)
    d = 32
    names = [f"x{i}" for i in range(d)]
    items = ItemTable(None, rng.normal(size=(400, d)), names)
    classifier = PairClassifier(model="mlp-bn", epochs=1, random_state=0, preprocessor=items)
    classifier.fit(made.pairs.ids(), made.pairs.labels()).save(tmp_path / "model")
    peaks = []
    for rows in (100_000, 400_000):
        path = tmp_path / f"items-{rows}.{suffix}"
        write_items(ItemTable(None, rng.normal(size=(rows, d)), names), path)
        out = tmp_path / f"p-{rows}.{suffix}"
        peaks.append(peak_memory("predict", tmp_path / "model", path, "--out", out))
    # To keep the 300,000 rows more would take 37 MiB for their features alone.
    assert peaks[1] - peaks[0] < 20, peaks
