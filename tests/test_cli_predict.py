"""The commands `predict` and `export`, and prediction from file to file."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.linear_model import LogisticRegression

from model_folders import answer, fitted, plain, probability, run, simulated
from pairlearn import progress as bars
from pairlearn.estimators import PairClassifier, files, predict_file
from pairlearn.io import ItemTable, write_items
from pairlearn.simulation import Simulation
from tables import pair_ids


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation, PairClassifier]:
    """A folder with items.csv, pairs.csv and model/; what they are; the classifier."""
    folder = tmp_path_factory.mktemp("made")
    simulation = simulated(folder, seed=0)
    classifier = fitted(simulation, target_prior=0.6)
    classifier.save(folder / "model")
    return folder, simulation, classifier


def predict(folder: Path, *more: object, items: Path | None = None) -> Any:
    return run("predict", folder / "model", items or folder / "items.csv", "--out", *more)


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(path: Path) -> np.ndarray[Any, Any]:
    return np.array(read(path)["probability"], dtype=np.float64)


def test_columns_and_values(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    out = tmp_path / "new" / "predictions.csv"
    result = predict(folder, out)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = read(out)
    assert list(rows) == ["id", "label", "probability"]
    assert rows["id"] == [str(i) for i in simulation.items.ids]
    expected = probability(classifier, simulation.items.features)
    assert numbers(out) == pytest.approx(expected, abs=1e-5)
    assert rows["label"] == ["1" if p > 0.5 else "-1" for p in numbers(out)]
    positive = int((expected > 0.5).sum())
    line = f"400 items, {positive} positive ({positive / 400:.1%}): {out}"
    assert plain(result.stdout) == plain(line)
    result = predict(folder, out, "--threshold", 0.9, "--json", "--force")
    fewer = json.loads(result.stdout)["positive"]
    assert fewer == (numbers(out) > 0.9).sum() == read(out)["label"].count("1")
    assert 0 < fewer < positive


def test_all_formats_and_orders_of_columns_agree(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    items = simulation.items
    turned = ItemTable(items.ids, items.features[:, ::-1], items.names[::-1])
    write_items(turned, tmp_path / "turned.parquet")
    np.save(tmp_path / "x.npy", items.features)
    np.save(tmp_path / "ids.npy", items.ids.astype(str))
    for name, source, *more in (
        ("one.csv", folder / "items.csv"),
        ("two.csv", tmp_path / "turned.parquet"),
        ("three.csv", tmp_path / "x.npy", "--ids", tmp_path / "ids.npy"),
        ("four.parquet", folder / "items.csv"),
    ):
        assert predict(folder, tmp_path / name, *more, items=source).exit_code == 0
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
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    predict_file(classifier, folder / "items.csv", one, progress=seen.append)
    monkeypatch.setattr(files, "NUMBERS", 1)  # then 64 rows, the least
    predict_file(classifier, folder / "items.csv", two, progress=seen.append)
    assert seen == [400, 64, 128, 192, 256, 320, 384, 400]
    assert read(one)["id"] == read(two)["id"]
    # Matrix products of other sizes round in another order.
    assert numbers(one) == pytest.approx(numbers(two), abs=1e-6)
    # A bad row late in the file leaves what was there.
    items = tmp_path / "items.csv"
    items.write_text("id,x1,x2\n" + "1,0.5,0.5\n" * 500 + "2,0.5,nan\n")
    before = one.read_bytes()
    result = predict(folder, one, "--force", items=items)
    assert (result.exit_code, "row 501" in result.stderr) == (2, True)
    assert one.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["items.csv", "one.csv", "two.csv"]


def test_ids_may_recur_and_be_text(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    x = simulation.items.features[:3]
    path, out = tmp_path / "items.csv", tmp_path / "p.csv"
    rows = [f"{name},{a:.9g},{b:.9g}" for name, (a, b) in zip("bab", x, strict=True)]
    path.write_text("\n".join(["id,x1,x2", *rows]))
    result = predict(folder, out, items=path)
    assert result.exit_code == 0
    assert read(out)["id"] == ["b", "a", "b"]
    assert numbers(out) == pytest.approx(probability(classifier, x), abs=1e-5)


def test_a_model_without_names_takes_features_as_they_come(made: Any, tmp_path: Path) -> None:
    folder, simulation, _ = made
    pairs = simulation.items.features[pair_ids(simulation.pairs)]
    classifier = PairClassifier(model="linear", epochs=1, random_state=0)
    classifier.fit(pairs, simulation.pairs.labels())
    predict_file(classifier, folder / "items.csv", tmp_path / "p.csv")
    expected = classifier.predict_proba(simulation.items.features)[:, 1]
    assert numbers(tmp_path / "p.csv") == pytest.approx(expected, abs=1e-6)
    np.save(tmp_path / "x.npy", np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"x\.npy has 5 features, and the model was fitted to 2$"):
        predict_file(classifier, tmp_path / "x.npy", tmp_path / "q.csv")


# ---- what is refused --------------------------------------------------------------------------


def test_features_that_overflow_are_named(made: Any, tmp_path: Path) -> None:
    classifier = fitted(made[1], epochs=1)
    classifier.fitted_ = replace(classifier.fitted_, scale=np.full(2, 1e-3))
    classifier.save(tmp_path / "model")
    items, out = tmp_path / "items.csv", tmp_path / "p.csv"
    items.write_text("id,x1,x2\nnear,1e-3,1e-3\nfar,3e38,3e38\n")
    result = predict(tmp_path, out, items=items)
    assert result.exit_code == 2
    assert f"{items}: the item 'far' gets log-odds of " in result.stderr
    assert "its features are far outside the range of the training" in result.stderr
    assert not out.exists()


# ---- bars and memory --------------------------------------------------------------------------


def test_a_bar_on_a_terminal(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "shows_bars", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "predict: 400 rows" in predict(made[0], tmp_path / "p.csv").stderr
    assert predict(made[0], tmp_path / "p.csv", "--force", "--quiet").output == ""


PEAK = """
import re, sys
from pathlib import Path
from pairlearn.cli.root import app
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
def test_memory_does_not_grow_with_the_file(made: Any, tmp_path: Path, suffix: str) -> None:
    rng, d = np.random.default_rng(0), 32
    names, pairs = [f"x{i}" for i in range(d)], made[1].pairs
    items = ItemTable(None, rng.normal(size=(400, d)), names)
    classifier = PairClassifier(model="mlp-bn", epochs=1, random_state=0, preprocessor=items)
    classifier.fit(pair_ids(pairs), pairs.labels()).save(tmp_path / "model")
    peaks = []
    for rows in (200_000, 500_000):
        path, out = tmp_path / f"items-{rows}.{suffix}", tmp_path / f"p-{rows}.{suffix}"
        write_items(ItemTable(None, rng.normal(size=(rows, d)), names), path)
        peaks.append(peak_memory("predict", tmp_path / "model", path, "--out", out))
    # Both have whole row groups. To keep the 300,000 rows more would take 37 MiB for features.
    assert peaks[1] - peaks[0] < 20, peaks


# ---- ONNX -------------------------------------------------------------------------------------


def onnx_outputs(path: Path, x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    values = session.run(None, {"x": x.astype(np.float32)})
    return dict(zip([output.name for output in session.get_outputs()], values, strict=True))


def test_an_exported_file_gives_the_probabilities(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    out, x = tmp_path / "new" / "model.onnx", simulation.items.features
    result = run("export", folder / "model", out)
    first, second = result.stdout.splitlines()
    assert first == f"{out}: x (n, 2) to logit and probability of class 1"
    assert second.startswith("  onnxruntime and torch differ by ")
    expected, outputs = probability(classifier, x), onnx_outputs(out, x)
    assert classifier.shift_ != 0
    assert outputs["probability"] == pytest.approx(expected, abs=1e-5)
    assert outputs["logit"] == pytest.approx(np.log(expected / (1 - expected)), rel=1e-3, abs=1e-4)
    summary = answer("export", folder / "model", out, "--force")
    assert (summary["features"], summary["classes"]) == (["x1", "x2"], [-1, 1])
    assert 0 <= summary["difference"] < 1e-5


def test_features_far_from_zero_keep_their_precision(tmp_path: Path) -> None:
    """A feature of a million ± 1: less its mean in float32, a sixteenth would be lost."""
    rng = np.random.default_rng(0)
    # Whole numbers and halves: exact in float32 at this size.
    x = 1e6 + np.round(2 * rng.normal(size=(300, 2, 2))) / 2
    r = 1 / (1 + np.exp(-2 * (x[:, :, 0] - 1e6 - 0.3)))
    labels = np.stack([r.prod(1) + (1 - r).prod(1), r[:, 1] - r[:, 0]], 1)
    classifier = PairClassifier(model="linear", epochs=10, random_state=0)
    classifier.fit(x, labels)
    classifier.export_onnx(tmp_path / "model.onnx")
    instances = x.reshape(-1, 2)
    exported = onnx_outputs(tmp_path / "model.onnx", instances)["probability"]
    assert exported == pytest.approx(probability(classifier, instances), abs=1e-5)
    classifier = PairClassifier(model=LogisticRegression(), random_state=0).fit(x - 1e6, labels)
    with pytest.raises(
        TypeError, match="a scikit-learn LogisticRegression: export it with skl2onnx"
    ):
        classifier.export_onnx(tmp_path / "other.onnx")


def test_images_of_a_model_that_reads_vectors(tmp_path: Path) -> None:
    pairs = np.random.default_rng(0).normal(2, 3, size=(40, 2, 1, 3, 3))
    classifier = PairClassifier(model="mlp", epochs=1, random_state=0)
    classifier.fit(pairs, np.tile([[0.6, 0.1], [0.7, -0.1]], (20, 1)))
    classifier.export_onnx(tmp_path / "model.onnx")
    images = pairs[:, 0]
    exported = onnx_outputs(tmp_path / "model.onnx", images.reshape(40, 9))["probability"]
    assert exported == pytest.approx(classifier.predict_proba(images)[:, 1], abs=1e-5)
