"""Columns of any type: from CSV, Parquet and data frames to a model, its folder and ONNX."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.cli.root import app
from pairlearn.estimators import ItemKFold
from pairlearn.estimators.features import ColumnsWarning
from pairlearn.io import TableError, read_items

GOOD, BAD = ["quiet", "solid", "smooth"], ["Noisy", "broken", "loose"]
FILLER = ["the pump", "was", "here"]
COLUMNS = ["size", "colour", "member", "bought", "notes"]


def frame_of(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Items whose class is in every column, and their log-odds."""
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(size=n), rng.choice(["red", "green", "blue"], n)
    member, day, good = rng.random(n) < 0.5, rng.integers(0, 730, n), rng.random(n) < 0.5
    z = 2 * size + 2 * (colour == "red") + 2 * member - day / 365 + 4 * good - 3
    words = [[*rng.choice(FILLER, 3), *rng.choice(GOOD if g else BAD, 2)] for g in good]
    frame = pd.DataFrame({"id": [f"i{k}" for k in range(n)], "size": size, "colour": colour,
                          "member": member, "notes": map(" ".join, words)})  # fmt: skip
    frame.insert(4, "bought", pd.to_datetime("2023-01-01") + pd.to_timedelta(day, unit="D"))
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, z


def labels_of(z: np.ndarray, ends: np.ndarray) -> PairLabels:
    r = 1 / (1 + np.exp(-z[ends]))
    return PairLabels.from_posteriors(r[:, 0], r[:, 1])


def write_pairs(path: Path, names: Any, ends: np.ndarray, labels: PairLabels) -> None:
    pairs = pd.DataFrame(np.asarray(names)[ends], columns=["left", "right"])
    judgements = {"similarity": labels.similarity, "difference": labels.difference}
    pairs.assign(**judgements).to_csv(path, index=False)


def run(*words: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def probabilities(path: Path) -> np.ndarray:
    with path.open() as file:
        return np.array([float(row["probability"]) for row in csv.DictReader(file)])


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table as CSV, judgements, and the model that one command makes of them."""
    folder = tmp_path_factory.mktemp("columns")
    frame, z = frame_of(200, 0)
    frame.to_csv(folder / "items.csv", index=False, date_format="%Y-%m-%d")
    new, truth = frame_of(200, 1)
    new.to_csv(folder / "new.csv", index=False, date_format="%Y-%m-%d")
    np.save(folder / "truth.npy", truth)
    ends = np.random.default_rng(2).permuted(np.tile(np.arange(200), (300, 1)), axis=1)[:, :2]
    write_pairs(folder / "pairs.csv", frame["id"], ends, labels_of(z, ends))
    result = run("fit", folder / "items.csv", folder / "pairs.csv", "--out", folder / "model",
               "--model", "linear", "--epochs", 40)  # fmt: skip
    (folder / "told.txt").write_text(result.stdout)
    run("predict", folder / "model", folder / "new.csv", "--out", folder / "p.csv")
    return folder


def test_one_command_each_from_csv_to_predictions(fitted: Path) -> None:
    assert (fitted / "told.txt").read_text().splitlines()[1].strip() == (
        "columns: number size; boolean member; date bought; category colour; text notes (10 words)"
    )
    p, truth = probabilities(fitted / "p.csv"), np.load(fitted / "truth.npy")
    chance = 1 / (1 + np.exp(-truth))
    best = np.maximum(chance, 1 - chance).mean()
    assert np.where(p > 0.5, chance, 1 - chance).mean() > best - 0.03


def test_columns_that_are_no_numbers_are_not_exported(fitted: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    result = run("export", fitted / "model", tmp_path / "model.onnx", code=2)
    shown = " ".join(result.output.split())
    assert "an ONNX file takes numbers: encode the items with encoder_" in shown
    assert not (tmp_path / "model.onnx").exists()


def test_other_formats_orders_and_extra_columns_predict_the_same(
    fitted: Path, tmp_path: Path
) -> None:
    new = pd.read_csv(fitted / "new.csv", parse_dates=["bought"])
    expected = probabilities(fitted / "p.csv")
    turned = new[[*reversed(new.columns)]].assign(surplus=["?"] * 200)
    turned["colour"] = turned["colour"].astype("category")
    turned.to_parquet(tmp_path / "new.parquet")
    result = run("predict", fitted / "model", tmp_path / "new.parquet", "--out", tmp_path / "q.csv")
    assert "has the feature 'surplus' that the model was not fitted to: not used" in result.stderr
    assert probabilities(tmp_path / "q.csv") == pytest.approx(expected, abs=1e-6)
    classifier = PairClassifier.load(fitted / "model")
    assert list(classifier.feature_names_in_) == COLUMNS and classifier.n_features_in_ == 5
    with pytest.warns(ColumnsWarning, match="X has the feature 'surplus' that the model was"):
        predicted = classifier.predict_proba(turned)
    assert predicted[:, 1] == pytest.approx(expected, abs=1e-6)
    arrow = classifier.predict(pyarrow.Table.from_pandas(new, preserve_index=False))
    assert np.array_equal(arrow, np.where(expected > 0.5, 1, -1))
    with pytest.raises(ValueError, match="X lacks 2 features 'colour', 'notes' that the"):
        classifier.predict(new.drop(columns=["colour", "notes"]))
    with pytest.raises(ValueError, match="X has no column names"):
        classifier.predict(np.zeros((3, 5)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda new: new.drop(columns="bought"), " lacks the feature 'bought' that the model was"),
        (lambda new: new.assign(member="maybe"), ", row 1: member is 'maybe', not yes or no"),
        (lambda new: new.assign(bought="soon"), ", row 1: bought is 'soon', not a date such as"),
        (lambda new: new.assign(bought=""), ", row 1: feature 'bought' is missing; fill it in"),
        (lambda new: new.assign(size="inf"), ", row 1: size is 'inf', not a finite number"),
    ],
)
def test_cells_that_a_model_cannot_read(
    fitted: Path, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    path = tmp_path / "new.csv"
    change(pd.read_csv(fitted / "new.csv")).to_csv(path, index=False)
    result = run("predict", fitted / "model", path, "--out", tmp_path / "p.csv", code=2)
    assert f"pairlearn predict: {path}{message}" in result.stderr


def test_a_table_of_new_items_is_encoded_by_the_rules_of_the_model(
    fitted: Path, tmp_path: Path
) -> None:
    expected = probabilities(fitted / "p.csv")
    frame = pd.read_csv(fitted / "new.csv")
    rows = frame["size"].sort_values().index[-60:]  # other medians, words and categories
    frame.loc[rows].to_csv(tmp_path / "new.csv", index=False)
    model = PairClassifier.load(fitted / "model")
    items = read_items(tmp_path / "new.csv", columns=model.columns())
    assert items.encoder == model.encoder_ != read_items(tmp_path / "new.csv").encoder
    assert model.predict_proba(items)[:, 1] == pytest.approx(expected[rows], abs=1e-6)
    assert model.predict_proba(items[7:9])[:, 1] == pytest.approx(expected[rows][7:9], abs=1e-6)
    known = PairClassifier.load(fitted / "model", preprocessor=items)
    assert known.predict_proba(items.ids[5:1:-1])[:, 1] == pytest.approx(expected[rows][5:1:-1])
    # An accuracy, too, and known classes beside the items of a fit.
    ends = np.stack([items.ids, np.roll(items.ids, 1)], 1)
    labels = PairLabels.from_posteriors(*np.random.default_rng(0).random((2, len(ends))))
    by_frame = PairClassifier.load(fitted / "model", preprocessor=frame)
    accuracy = by_frame.estimate_accuracy(ends, labels)
    assert known.estimate_accuracy(ends, labels).value == pytest.approx(accuracy.value)


def test_a_table_that_cannot_be_encoded_by_the_rules_of_the_model(
    fitted: Path, tmp_path: Path
) -> None:
    model = PairClassifier.load(fitted / "model")
    pd.read_csv(fitted / "new.csv").drop(columns="notes").to_csv(tmp_path / "new.csv", index=False)
    part = read_items(tmp_path / "new.csv")
    advice = r"model's rules: pass a data frame, or read .* columns=classifier.columns\(\)"
    with pytest.raises(ValueError, match=advice):
        model.predict(part)
    with pytest.raises(ValueError, match=advice):
        PairClassifier.load(fitted / "model", preprocessor=part).predict(part.ids)


def test_evaluate_report_and_check_read_the_same_columns(fitted: Path, tmp_path: Path) -> None:
    ends = np.random.default_rng(3).permuted(np.tile(np.arange(200), (150, 1)), axis=1)[:, :2]
    truth = np.load(fitted / "truth.npy")
    names = [f"i{k}" for k in range(200)]
    write_pairs(tmp_path / "held.csv", names, ends, labels_of(truth, ends))
    model, items = fitted / "model", fitted / "new.csv"
    result = json.loads(run("evaluate", model, items, tmp_path / "held.csv", "--json").stdout)
    p, chance = probabilities(fitted / "p.csv"), 1 / (1 + np.exp(-truth))
    accuracy = np.where(p > 0.5, chance, 1 - chance).mean()
    assert result["accuracy"]["low"] < accuracy < result["accuracy"]["high"]
    run("check", tmp_path / "held.csv", "--items", items)
    run("compare", items, tmp_path / "held.csv", "--models", "linear", "--epochs", 2,
        "--folds", 2, "--risks", "likelihood-abs")  # fmt: skip
    pd.read_csv(tmp_path / "held.csv").to_parquet(tmp_path / "held.parquet")
    run("fit", items, tmp_path / "held.parquet", "--out", tmp_path / "other", "--force",
        "--epochs", 2, "--holdout", 0, "--ignore", "notes,size")  # fmt: skip
    result = PairClassifier.load(tmp_path / "other")
    assert list(result.feature_names_in_) == ["colour", "member", "bought"]


def test_a_folder_of_texts_to_predictions(frames: Any, tmp_path: Path) -> None:
    frame, ends, labels = frames
    texts = tmp_path / "texts"
    (texts / "more").mkdir(parents=True)
    names = np.array([f"more/{k}.txt" if k % 2 else f"{k}.md" for k in range(len(frame))])
    for name, text in zip(names, frame["notes"], strict=True):
        (texts / name).write_text(text)
    write_pairs(tmp_path / "pairs.csv", names, ends, labels)
    run("fit", texts, tmp_path / "pairs.csv", "--out", tmp_path / "model",
        "--epochs", 20, "--holdout", 0)  # fmt: skip
    assert PairClassifier.load(tmp_path / "model").model_ == "linear"
    run("predict", tmp_path / "model", texts, "--out", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        by_name = {row["id"]: float(row["probability"]) for row in csv.DictReader(file)}
    good = np.array([any(word in text for word in GOOD) for text in frame["notes"]])
    p = np.array([by_name[name] for name in names])
    assert p[good].min() > p[~good].max()
    (texts / "bad.txt").write_bytes(b"\xff")
    result = run("predict", tmp_path / "model", texts, "--out", tmp_path / "q.csv", code=2)
    assert f"{texts / 'bad.txt'} cannot be read as UTF-8" in result.stderr
    (tmp_path / "none").mkdir()
    with pytest.raises(TableError, match=r"none is a folder with neither texts nor images \(\.png"):
        read_items(tmp_path / "none")


# ---- data frames and steps of one's own -------------------------------------------------------


@pytest.fixture(scope="session")
def frames() -> tuple[pd.DataFrame, np.ndarray, PairLabels]:
    frame, z = frame_of(150, 4)
    ends = np.random.default_rng(5).permuted(np.tile(np.arange(150), (200, 1)), axis=1)[:, :2]
    return frame, ends, labels_of(z, ends)


def classifier(**options: Any) -> PairClassifier:
    return PairClassifier(model="linear", epochs=20, random_state=0, annotators="ideal", **options)


def test_data_frames_by_index_by_id_and_as_items(frames: Any, tmp_path: Path) -> None:
    frame, ends, labels = frames
    names, indexed = frame["id"].to_numpy()[ends], frame.set_index("id")
    by_index = classifier(preprocessor=indexed).fit(names, labels)
    by_id = classifier(preprocessor=frame).fit(names, labels)
    assert list(by_index.feature_names_in_) == list(by_id.feature_names_in_) == COLUMNS
    z = by_index.decision_function(frame)
    assert np.array_equal(z, by_id.decision_function(indexed[COLUMNS[::-1]]))
    assert z[:5] == pytest.approx(by_index.decision_function(frame["id"].to_numpy()[:5]), abs=1e-5)
    as_items = classifier().fit(frame, Judgements.from_pairs(ends, labels))
    assert list(as_items.feature_names_in_) == COLUMNS and as_items.predict(frame[:2]).shape == (2,)
    by_index.save(tmp_path / "model")
    assert np.array_equal(PairClassifier.load(tmp_path / "model").decision_function(frame), z)
    with pytest.warns(ColumnsWarning, match="'same' has one value, and is left out") as caught:
        without_constant = classifier(preprocessor=indexed.assign(same="a")).fit(names, labels)
    assert len(caught) == 1 and np.array_equal(without_constant.decision_function(frame), z)
    numeric = classifier(preprocessor=indexed[["size"]].fillna(0)).fit(names, labels)
    assert not hasattr(numeric, "encoder_")
    turned = numeric.decision_function(frame[["id", "size"]].fillna(0))
    assert turned == pytest.approx(numeric.decision_function(indexed[["size"]].fillna(0)))


@pytest.mark.parametrize("model", ["linear", "mlp-bn"])
def test_words_that_no_judged_item_has_do_not_decide(frames: Any, model: str) -> None:
    frame, ends, labels = frames
    rows = (ends < 140).all(1)
    items = frame[["size", "notes"]].copy()
    items.loc[140:, "notes"] += " zebra"
    model_of_words = classifier().set_params(model=model)
    model_of_words.fit(items, Judgements.from_pairs(ends[rows], labels[rows]))
    assert "zebra" in model_of_words.encoder_.columns[1].words
    changed = items[:100].assign(notes=items["notes"][:100] + " zebra")
    assert (
        abs(
            model_of_words.decision_function(changed)
            - model_of_words.decision_function(items[:100])
        ).mean()
        < 0.5
    )


def test_a_function_makes_features_of_texts(frames: Any, tmp_path: Path) -> None:
    frame, ends, labels = frames
    texts = frame["notes"].to_numpy()

    def embed(rows: Any) -> Any:
        return np.array([[sum(word in text for word in GOOD), 1.0] for text in rows])

    model = classifier(preprocessor=embed).fit(texts[ends], labels)
    z = model.decision_function(texts)
    assert np.corrcoef(z, [any(word in text for word in GOOD) for text in texts])[0, 1] > 0.9
    model.save(tmp_path / "model")
    loaded = PairClassifier.load(tmp_path / "model", preprocessor=embed)
    assert np.array_equal(loaded.decision_function(texts), z)
    good, bad = loaded.decision_function(["quiet solid", "Noisy"])
    assert good > 0 > bad
    with pytest.raises(ValueError, match="for 2 ids it gave an array of shape"):
        classifier(preprocessor=lambda rows: np.zeros(2)).fit([["a", "b"]], [[0.5, 0]])


def test_ids_of_a_frame_are_cross_validated(frames: Any) -> None:
    frame, ends, labels = frames
    names = frame["id"].to_numpy()[ends]
    model = classifier(preprocessor=frame)
    scores = cross_val_score(model, names, labels.to_array(), cv=ItemKFold(2))
    assert scores.mean() > 0.55
