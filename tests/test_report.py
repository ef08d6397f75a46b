"""The report about a model."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from model_folders import answer, run
from pairlearn import PairLabels
from pairlearn.estimators import PairClassifier
from pairlearn.evaluation import CalibrationCurve, Estimate
from pairlearn.io import ItemTable, read_pairs, write_items, write_pairs
from pairlearn.io.item_files import digest
from pairlearn.report import build_report, compare_annotators, measure
from pairlearn.report.figures import plot_calibration, plot_histogram, plot_learning
from pairlearn.simulation import simulate
from tables import pair_ids, pair_table
from test_pages import HOSTILE, Reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with a history, its training pairs, and others, by two annotators."""
    folder = tmp_path_factory.mktemp("report")
    data = simulate(pairs=260, annotators=2, repeated=0.3, seed=1)
    held = np.arange(len(data.pairs)) % 2 == 0
    write_items(data.items, folder / "items.csv")
    write_pairs(data.pairs[held], folder / "held.csv")
    train = write_pairs(data.pairs[~held], folder / "train.csv")
    table = read_pairs(train)
    model = PairClassifier(model="linear", epochs=12, random_state=0)
    model.fit(data.items.features[table.located(data.items.ids).ends], table.labels())
    source = {"pairs": "train.csv", "pairs_sha256": digest(train)}
    model.fitted_ = replace(model.fitted_, trained_on=source)
    model.save(folder / "model")
    return folder


def line(folder: Path, out: Path, *more: str, pairs: Path | None = None) -> list[object]:
    files = folder / "items.csv", pairs or folder / "held.csv"
    return ["report", folder / "model", *files, out, *more]


def test_annotators_beside_a_model() -> None:
    rng = np.random.default_rng(0)
    n, who = 60, np.tile(["a", "b", ""], 20)
    s, c, z = rng.random(n), rng.uniform(-1, 1, n), rng.normal(size=(n, 2))
    s[1::6], c[::6] = np.nan, np.nan
    ends = np.arange(2 * n).reshape(2, n)
    a, b = compare_annotators(pair_table(*ends, s, c, annotator=who), z)
    p, q = 1 / (1 + np.exp(-z.T))
    apart = [np.abs(s - p * q - (1 - p) * (1 - q))[::3], np.abs(c - (q - p))[::3]]
    assert (a.name, b.name, a.judgements) == ("a", "b", 20)
    assert a.model_gap == pytest.approx(np.nanmean(apart))
    assert a.person is not None and a.words == a.person.sentence() and "guesses" in a.words


def test_page_says_what_evaluate_says(folder: Path, tmp_path: Path) -> None:
    summary = answer(*line(folder, tmp_path / "r.html"))
    model, items, held = folder / "model", folder / "items.csv", folder / "held.csv"
    evaluated = answer("evaluate", model, items, held)
    assert summary["accuracy"] == evaluated["accuracy"]
    assert summary["pairs"] == evaluated["n"] and summary["annotators"] == 2
    assert summary["bytes"] == (tmp_path / "r.html").stat().st_size
    page = (tmp_path / "r.html").read_text("utf-8")
    text = Reader(page).text
    accuracy = evaluated["accuracy"]
    assert accuracy["sentence"] in text and "No item had a known class" in text
    assert f"held.csv {digest(held)[:16]}…" in text and "torch 2" in text
    assert "`" not in page.split("<script>")[0]
    for name in ("precision", "f1", "roc_auc"):
        assert f"{evaluated[name]['value']:.3f}" in text
    for words in ("How training went", "Do probabilities mean", "Class prior", "annotator-1"):
        assert words in text
    assert "keeps no history" not in text and summary["epochs"] > 0


def test_pairs_of_items_that_the_model_was_trained_on(folder: Path, tmp_path: Path) -> None:
    out, train = tmp_path / "r.html", folder / "train.csv"
    refused = run(*line(folder, out, pairs=train))
    assert refused.exit_code == 2
    assert "cannot measure an accuracy: the model was trained on" in refused.output
    assert not out.exists()
    both = tmp_path / "both.csv"
    both.write_text((folder / "held.csv").read_text() + train.read_text().split("\n", 1)[1])
    alone = answer(*line(folder, out))
    summary = answer(*line(folder, out, "--force", pairs=both))
    assert summary["pairs"] == alone["pairs"] and summary["accuracy"] == alone["accuracy"]
    rows = len(read_pairs(both))
    expected = f"items of {rows - summary['pairs']} of the {rows} pairs"
    assert expected in summary["warnings"][0]
    assert expected in out.read_text("utf-8")
    assert "to read before relying on this" in out.read_text("utf-8")


def test_differences_alone_need_a_prior_and_a_folder_may_have_no_history(
    folder: Path, tmp_path: Path
) -> None:
    table, out = read_pairs(folder / "held.csv"), tmp_path / "r.html"
    only = pair_table(table.left, table.right, None, table.difference)
    path = write_pairs(only, tmp_path / "only.csv")
    refused = run(*line(folder, out, pairs=path))
    assert refused.exit_code == 2 and "--prior" in refused.output
    model = PairClassifier.load(folder / "model")
    assert len(model.history_) == 12, "the folder keeps it"
    model.fitted_ = replace(model.fitted_, history=[])
    model.save(tmp_path / "model")
    (tmp_path / "items.csv").symlink_to(folder / "items.csv")
    answer(*line(tmp_path, out, "--prior", "0.3", pairs=path))
    text = Reader(out.read_text("utf-8")).text
    assert "The table of pairs does not name its annotators" in text
    assert "keeps no history of the training" in text


@pytest.mark.parametrize("text", ["".join(filter(str.isprintable, HOSTILE)), HOSTILE[1]])
def test_hostile_names_are_text_and_scikit_learn_models_have_rounds(text: str) -> None:
    ids = np.array([f"{text}{k}" for k in range(40)])
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 2)).astype(np.float32)
    r = 1 / (1 + np.exp(-3 * features[:, 0]))
    ends = rng.permutation(40).reshape(20, 2)
    labels = PairLabels.from_posteriors(*r[ends].T)
    table = pair_table(ids[ends[:, 0]], ids[ends[:, 1]], labels.similarity, labels.difference,
                      annotator=[text] * 20)  # fmt: skip
    model = PairClassifier(model=LogisticRegression(), random_state=0)
    model.fit(features[ends] + 0.01, labels)
    model.classes_ = np.array(["no", text])
    evaluation = model.evaluate(features[ends], labels)
    items = ItemTable(ids, features, [text, "b"])
    measured = measure(model, items, table, evaluation, names=(text, text), warnings=[text])
    assert (np.diff([row["epoch"] for row in measured.history]) == 1).all()
    read = Reader(build_report(measured))
    names = [name for name, _ in read.elements]
    assert names.count("script") == 1 and "img" not in names and names.count("title") == 1
    assert not any(key.startswith("on") for _, a in read.elements for key in a)
    for shown in (f"positive ({text})", f"{text}: how good is it?", f"Warning: {text}"):
        assert shown in read.text
    assert "LogisticRegression" in read.text and "How training went" in read.text


def test_figures_show_the_numbers_they_are_given() -> None:
    ax = plot_histogram(np.array([0.0, 0.01, 0.5, 0.999, 1.0]), 0.5, Figure().subplots())
    heights = [bar.get_height() for bar in ax.patches]
    assert (heights[0], heights[10], heights[19], sum(heights)) == (2, 1, 2, 5)
    implied = (Estimate(0.4, 0.3, 0.5), Estimate(math.nan, math.nan, math.nan))
    middles, shares = np.array([0.3, 0.9]), np.array([0.5, 0.5])
    curve = CalibrationCurve(np.array([0.0, 0.5, 1.0]), middles, implied, shares)
    points = plot_calibration(curve, Figure().subplots()).containers[0][0].get_xydata()
    assert points.tolist() == [[0.3, 0.4]], "a bin that nothing is known of has no mark"
    history = [{"epoch": 1.0, "risk": 0.5}, {"epoch": 2.0, "risk": 0.4}]
    assert len(plot_learning(history, Figure().subplots()).get_lines()) == 1


def test_many_judgements_are_thinned() -> None:
    data = simulate(pairs=4_000)
    ends, labels = data.items.features[pair_ids(data.pairs)], data.pairs.labels()
    model = PairClassifier(model="linear", epochs=2, random_state=0).fit(ends[:200], labels[:200])
    evaluation = model.evaluate(ends[200:], labels[200:])
    page = build_report(measure(model, data.items, data.pairs, evaluation, names=("m", "p")))
    assert "4,000 judgements in the plane" in page and len(page) < 400_000
