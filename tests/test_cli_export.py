"""The command `export`, and `PairClassifier.export_onnx`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from model_folders import fitted, plain, probability, run, simulated
from pairlearn.data.simulation import Simulation
from pairlearn.estimators import PairClassifier

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulation, PairClassifier]:
    folder = tmp_path_factory.mktemp("made")
    simulation = simulated(folder, seed=0)
    classifier = fitted(simulation, target_prior=0.6)
    classifier.save(folder / "model")
    return folder, simulation, classifier


def answers(path: Path, x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    values = session.run(None, {"x": x.astype(np.float32)})
    return dict(zip([one.name for one in session.get_outputs()], values, strict=True))


def test_the_file_gives_the_probabilities(made: Any, tmp_path: Path) -> None:
    folder, simulation, classifier = made
    assert classifier.shift_ != 0
    out = tmp_path / "new" / "model.onnx"
    result = run("export", folder / "model", out)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"{out}: x (n, 2) to logit and probability of class 1"
    assert lines[1].startswith("  onnxruntime and torch differ by ")
    x = simulation.items.features
    expected = probability(classifier, x)
    found = answers(out, x)
    assert found["probability"] == pytest.approx(expected, abs=1e-5)
    assert found["logit"] == pytest.approx(np.log(expected / (1 - expected)), rel=1e-3, abs=1e-4)


def test_json_and_quiet(made: Any, tmp_path: Path) -> None:
    folder, _, _ = made
    told = json.loads(run("export", folder / "model", tmp_path / "a.onnx", "--json").stdout)
    assert told["features"] == ["x1", "x2"]
    assert told["classes"] == [-1, 1]
    assert 0 <= told["difference"] < 1e-5
    assert run("export", folder / "model", tmp_path / "b.onnx", "--quiet").output == ""


def test_features_far_from_zero_keep_their_precision(tmp_path: Path) -> None:
    """A feature of a million ± 1: less its mean in float32, a sixteenth would be lost."""
    rng = np.random.default_rng(0)
    # Whole numbers and halves: exact in float32 at this size.
    x = 1e6 + np.round(2 * rng.normal(size=(300, 2, 2))) / 2
    r = 1 / (1 + np.exp(-2 * (x[:, :, 0] - 1e6 - 0.3)))
    labels = np.stack([r[:, 0] * r[:, 1] + (1 - r[:, 0]) * (1 - r[:, 1]), r[:, 1] - r[:, 0]], 1)
    classifier = PairClassifier(model="linear", epochs=10, learning_rate=0.02, random_state=0)
    classifier.fit(x, labels)
    classifier.export_onnx(tmp_path / "model.onnx")
    instances = x.reshape(-1, 2)
    found = answers(tmp_path / "model.onnx", instances)["probability"]
    assert found == pytest.approx(probability(classifier, instances), abs=1e-5)


@pytest.mark.parametrize("standardize", [True, False])
def test_images_of_a_model_that_reads_vectors(tmp_path: Path, standardize: bool) -> None:
    rng = np.random.default_rng(0)
    pairs = rng.normal(2, 3, size=(40, 2, 1, 3, 3))
    classifier = PairClassifier(model="mlp", epochs=1, standardize=standardize, random_state=0)
    classifier.fit(pairs, np.tile([0.6, 0.1], (40, 1)))
    classifier.export_onnx(tmp_path / "model.onnx")
    images = pairs[:, 0]
    found = answers(tmp_path / "model.onnx", images.reshape(40, 9))["probability"]
    assert found == pytest.approx(classifier.predict_proba(images)[:, 1], abs=1e-5)


def test_a_scikit_learn_model_is_not_exported_here(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(40, 2, 2))
    r = 1 / (1 + np.exp(-4 * pairs[:, :, 0]))
    labels = np.stack([r.prod(1) + (1 - r).prod(1), r[:, 1] - r[:, 0]], 1)
    classifier = PairClassifier(model=LogisticRegression(), random_state=0).fit(pairs, labels)
    with pytest.raises(TypeError, match="a scikit-learn LogisticRegression, which skl2onnx"):
        classifier.export_onnx(tmp_path / "model.onnx")


def test_an_exported_file_that_differs_exits_with_1(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pairlearn.estimators import onnx_export

    monkeypatch.setattr(onnx_export, "TOLERANCE", -1.0)
    folder, _, _ = made
    result = run("export", folder / "model", tmp_path / "model.onnx")
    assert result.exit_code == 1
    assert result.stderr.startswith("pairlearn export: the exported file differs from torch by ")
    assert not list(tmp_path.iterdir())


def test_refusals(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _, _ = made
    model = folder / "model"
    there = tmp_path / "there.onnx"
    there.write_text("precious")
    for arguments, message in (
        ((model, tmp_path / "m.pt"), "m.pt has the suffix '.pt'; exported models are .onnx"),
        ((model, there), f"{there} is there already: choose another file, or --force"),
        ((model, there / "m.onnx"), f"{there / 'm.onnx'} cannot be written: {there} is a file"),
        (
            (model, model / "m.onnx"),
            f"{model} holds nothing but its model: choose another folder",
        ),
        ((tmp_path / "none", tmp_path / "m.onnx"), "none: there is no such folder"),
    ):
        result = run("export", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr
    assert there.read_text() == "precious"
    assert run("export", model, there, "--force").exit_code == 0
    assert there.read_bytes() != b"precious"
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", model, tmp_path / "m.onnx")
    assert result.exit_code == 2
    assert result.stderr == (
        'pairlearn export: ONNX needs onnx: in a clone of pairlearn, pip install ".[onnx]"\n'
    )


def test_help_shows_examples_and_exit_codes() -> None:
    text = plain(run("export", "--help").stdout)
    assert "pairlearn export model model.onnx" in text
    assert "Exit codes: 0 done, 1 the answers differ, 2 wrong request." in text
