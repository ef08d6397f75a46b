"""Items that recur: no figure on items of the training is called an accuracy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

from model_folders import answer, plain, run
from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.estimators import ItemKFold, SeenItemsWarning
from pairlearn.estimators.fit_input import Table
from pairlearn.estimators.instances import DependentPairsWarning, fingerprints, places_of
from pairlearn.io import ItemTable, read_items, read_pairs, write_items, write_pairs
from pairlearn.simulation import simulate
from tables import pair_table

NAN = float("nan")


def hard_items(seed: int = 0, items: int = 80, features: int = 120) -> tuple[Any, Any]:
    """Features and posteriors of items: more features than 80 items can teach."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, features))
    w = np.random.default_rng(1).normal(size=features)
    r = 1 / (1 + np.exp(-40 * x @ w / np.linalg.norm(w)))
    return x, r


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 items in 500 judgements, and their rows split in two, 400 and 100."""
    folder = tmp_path_factory.mktemp("recurring")
    x, r = hard_items()
    rng = np.random.default_rng(2)
    ends = np.array([rng.choice(80, 2, replace=False) for _ in range(500)])
    labels = PairLabels.from_posteriors(*r[ends].T)
    ids = np.array([f"i{k}" for k in range(80)])
    write_items(ItemTable(ids, x), folder / "items.csv")
    table = pair_table(*ids[ends].T, labels.similarity, labels.difference)
    for name, rows in (("pairs", slice(None)), ("rows", slice(400)), ("rest", slice(400, 500))):
        write_pairs(table[rows], folder / f"{name}.csv")
    done = run("fit", folder / "items.csv", folder / "rows.csv", "--out", folder / "model",
               "--model", "mlp", "--epochs", 20, "--quiet")  # fmt: skip
    assert done.exit_code == 0, done.output
    return folder


def test_rows_of_the_same_items_measure_no_accuracy(judged: Path) -> None:
    """Split by rows, the figure was 1.000 (0.935 to 1.000); on unseen items it is far lower."""
    model = PairClassifier.load(judged / "model")
    x, _ = hard_items()
    new, r_new = hard_items(seed=5, items=4000)
    positive = model.decision_function(ItemTable(None, new)) > 0
    truth = np.where(positive, r_new, 1 - r_new).mean()
    table = read_pairs(judged / "rest.csv")
    ends = table.located([f"i{k}" for k in range(80)]).ends
    with pytest.warns(SeenItemsWarning, match="this is not an accuracy"):
        estimate = model.estimate_accuracy(x[ends], table)
    assert estimate.value > 0.9 and truth < 0.75 < estimate.low, "what this is about"
    assert estimate.low > truth, "the interval is confidently wrong"
    assert estimate.method == "likelihood, on items seen in training"
    # The command measures the model that fit has fitted without some items, on pairs of these.
    result = answer("evaluate", judged / "model", judged / "items.csv", judged / "rest.csv")
    informed = result["accuracy"]["informed"]
    assert informed["low"] < truth < informed["high"] + 0.1 and informed["high"] < estimate.low
    assert 2 <= result["n"] < 100
    assert "whose items fit held out" in result["seen"]


def test_evaluate_and_report_measure_what_fit_measured(tmp_path: Path) -> None:
    """After `fit` on all pairs, with the files that it was given."""
    simulate(pairs=150, seed=1).write(tmp_path)
    files = tmp_path / "items.csv", tmp_path / "pairs.csv"
    fitted = answer("fit", *files, "--out", tmp_path / "model", "--model", "linear", "--epochs", 20)
    measured = answer("evaluate", tmp_path / "model", *files)
    assert measured["accuracy"]["sentence"] == fitted["accuracy"]["sentence"]
    assert measured["n"] == fitted["accuracy"]["n"] == 30
    page = answer("report", tmp_path / "model", *files, tmp_path / "report.html")
    assert page["accuracy"] == measured["accuracy"]
    assert "fit held out" in (tmp_path / "report.html").read_text()
    # Known classes count alone: they are decided by the final model, the pairs by the first one.
    known = tmp_path / "known.csv"
    more = simulate(pairs=50, seed=2)
    ids = np.array([f"n{k}" for k in range(100)])
    columns = np.concatenate([read_items(files[0]).features, more.items.features])
    both = np.concatenate([read_items(files[0]).ids.astype("U9"), ids])
    write_items(ItemTable(both, columns, read_items(files[0]).names), tmp_path / "more.csv")
    rows = [f"{name},{int(y)}" for name, y in zip(ids, more.positive, strict=True)]
    known.write_text("\n".join(["id,class", *rows]) + "\n")
    powered = answer("evaluate", tmp_path / "model", tmp_path / "more.csv", files[1],
                     "--labelled", known)["accuracy"]  # fmt: skip
    assert powered["value"] == pytest.approx(powered["labelled"]["right"] / 100, abs=1e-12)


def test_unseen_pairs_are_measured_and_the_headline_says_so(judged: Path, tmp_path: Path) -> None:
    x, r = hard_items()
    new, r_new = hard_items(seed=6, items=400)
    ids = np.array([f"i{k}" for k in range(80)] + [f"n{k}" for k in range(400)])
    write_items(ItemTable(ids, np.concatenate([x, new])), tmp_path / "items.csv")
    ends = 80 + np.arange(400).reshape(200, 2)
    labels = PairLabels.from_posteriors(*np.concatenate([r, r_new])[ends].T)
    fresh = pair_table(*ids[ends].T, labels.similarity, labels.difference)
    both = Judgements.concatenate([read_pairs(judged / "rest.csv"), fresh])
    write_pairs(both, tmp_path / "both.csv")
    write_pairs(fresh, tmp_path / "fresh.csv")

    def evaluated(name: str) -> Any:
        return answer("evaluate", judged / "model", tmp_path / "items.csv", tmp_path / name)

    alone, mixed = evaluated("fresh.csv"), evaluated("both.csv")
    assert mixed["accuracy"] == alone["accuracy"] and mixed["n"] == 200
    assert alone["seen"] is None
    head = "the model was trained on items of 100 of the 300 pairs, and does better on those"
    assert mixed["seen"].startswith(head)
    result = run("evaluate", judged / "model", tmp_path / "items.csv", tmp_path / "both.csv")
    assert plain(result.stdout).startswith(head)


def test_folds_of_items() -> None:
    rng = np.random.default_rng(0)
    x, r = rng.normal(size=(120, 3)), rng.random(120)
    ends = np.array([rng.choice(120, 2, replace=False) for _ in range(300)])
    for pairs in (ends, np.array([f"i{k}" for k in range(120)])[ends], x[ends]):
        rows = list(ItemKFold(3).split(pairs))
        assert len(rows) == ItemKFold(3).get_n_splits() == 3
        for train, test in rows:
            assert not set(ends[train].ravel()) & set(ends[test].ravel())
            assert len(train) and len(test)
    labels = PairLabels.from_posteriors(*r[ends].T).to_array()
    classifier = PairClassifier(model="linear", epochs=2, preprocessor=x, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeenItemsWarning)
        assert len(cross_val_score(classifier, ends, labels, cv=ItemKFold(3))) == 3
    with pytest.warns(SeenItemsWarning):
        cross_val_score(classifier, ends, labels, cv=KFold(3))
    with pytest.raises(ValueError, match="recur too often"):
        list(ItemKFold(5).split([[0, 1], [0, 1]]))
    with pytest.raises(ValueError, match="n_splits must be"):
        ItemKFold(1)


def test_equal_features_are_one_item() -> None:
    """Pairs as features have the intervals of pairs as ids."""
    x, r = hard_items(features=3)
    rng = np.random.default_rng(3)
    ends = np.array([rng.choice(80, 2, replace=False) for _ in range(400)])
    judgements = PairLabels.from_posteriors(*r[ends].T)
    other = hard_items(seed=9, features=3)[0][: 2 * 60].reshape(-1, 2, 3)
    labels = PairLabels(rng.uniform(0.5, 0.7, len(other)), rng.uniform(-0.3, 0.3, len(other)))
    classifier = PairClassifier(model="linear", epochs=5, random_state=0).fit(other, labels)
    by_features = classifier.estimate_accuracy(x[ends], judgements)
    by_id = classifier.set_params(preprocessor=x).estimate_accuracy(ends, judgements)
    assert (by_features.low, by_features.high) == pytest.approx((by_id.low, by_id.high), abs=1e-9)


def test_ids_tell_items_with_equal_features_apart() -> None:
    kept = fingerprints(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([7, 8]))
    same = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]])
    assert places_of(kept, same, np.array(["7", "9", "7"])).tolist() == [0, -1, -1]
    assert places_of(kept, same).tolist() == [0, 0, 1]
    assert places_of(kept[:0], same).tolist() == [-1, -1, -1]
    with pytest.raises(ValueError, match="must be int64 of shape"):
        places_of(np.zeros(3), same)


def test_pairs_of_near_neighbours_are_told_of():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    apart = np.arange(600).reshape(-1, 2)
    model = PairClassifier(model="linear", epochs=10, preprocessor=x, random_state=0)
    model.fit(apart[:150], PairLabels.from_posteriors(*r[apart[:150]].T))
    near = 300 + np.argsort(x[300:, 0]).reshape(-1, 2)
    with pytest.warns(DependentPairsWarning, match="pairs of near neighbours"):
        model.estimate_accuracy(near, PairLabels.from_posteriors(*r[near].T))
    model.estimate_accuracy(apart[150:], PairLabels.from_posteriors(*r[apart[150:]].T))


def test_triplets_are_held_out_whole_or_not_at_all() -> None:
    rng = np.random.default_rng(0)
    numbers = np.repeat(np.arange(60), 2)
    ends = np.concatenate([[(a, b), (a, c)] for a, b, c in rng.permuted(
        np.tile(np.arange(40), (60, 1)), axis=1)[:, :3]])  # fmt: skip
    rows = Judgements.from_columns(ends, {"closer": [1, 0] * 60, "triplet": numbers})
    held = Table.of(np.zeros((40, 1)), rows).hold_out(0.2, seed=0)
    assert len(held.training) == len(rows) and held.training.sum() == len(held.rest.judged)
    for part in (held.rest.statements, held.judged):
        assert len(part) and (np.unique(part.v, return_counts=True)[1] == 2).all()


def test_a_share_of_a_group_does_not_make_its_items_known() -> None:
    triplet = {"closer": [1, 0], "triplet": [0, 0]}
    parts = [Judgements.from_columns([[0, 1], [0, 2]], triplet)]
    parts.append(Judgements.in_groups(["a"] * 5, {"a": 0.5}))
    table = Table.of(np.zeros((5, 1)), Judgements.concatenate(parts))
    assert table.used.tolist() == [0, 1, 2]
