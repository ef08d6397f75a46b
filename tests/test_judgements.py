"""The table of judgements: its rows, its weights, and which of them are held out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pairlearn import Judgements
from pairlearn.estimators import PairClassifier
from pairlearn.estimators.splits import held_out_rows
from pairlearn.kinds import KINDS

NAN = math.nan
NAMES = [one.name for one in KINDS]


def test_every_judgement_becomes_a_row_and_counts() -> None:
    ends = [[0, 1], [0, 1], [2, 3], [4, 5]]
    columns = {
        "similarity": [0.4, NAN, 0.9, NAN],
        "difference": [0.1, 0.2, NAN, NAN],
        "preference": [1.0, NAN, NAN, -1.0],
    }
    rows = Judgements.from_columns(ends, columns, [1.0, 2.0, 3.0, 4.0], ["a", "b", "a", "c"])
    said = [
        (NAMES[k], tuple(e), float(w), str(who))
        for k, e, w, who in zip(
            rows.kind, rows.ends.tolist(), rows.weight, rows.annotator, strict=True
        )
    ]
    assert said == [
        ("both", (0, 1), 1.0, "a"),
        ("difference", (0, 1), 2.0, "b"),
        ("similarity", (2, 3), 3.0, "a"),
        ("preference", (0, 1), 1.0, "a"),
        ("preference", (4, 5), 4.0, "c"),
    ]
    assert rows.counts() == {"both": 1, "similarity": 1, "difference": 1, "preference": 2}
    assert Judgements.concatenate([rows[:2], rows[2:]]).counts() == rows.counts()
    assert len(rows.labels()) == 3


@pytest.mark.parametrize("n", [1, 2, 7])
def test_labelled_instances_all_count_alike(n: int) -> None:
    positive = np.arange(n) % 2 == 0
    rows = Judgements.about_items("label", 10 + np.arange(n), positive).packed(seed=0)
    weight = np.zeros(n)
    for (one, two), w, (u, v) in zip(rows.ends - 10, rows.weight, rows.values, strict=True):
        assert (u, v) == (positive[one], positive[two])
        weight[one] += w / 2
        weight[two] += w / 2
    assert weight == pytest.approx(np.full(n, 0.5))


def test_labels_of_unequal_weight_keep_their_weights() -> None:
    rows = Judgements.about_items("label", [0, 1, 2, 3], [1, 0, 1, 0], [1.0, 2.0, 2.0, 5.0])
    packed = rows.packed(seed=0)
    weight = np.zeros(4)
    np.add.at(weight, packed.ends, packed.weight[:, None] / 2)
    assert weight.tolist() == [0.5, 1.0, 1.0, 2.5]


@pytest.mark.parametrize(
    ("items", "labels", "message"),
    [
        ([[0, 1]], [[0.5, 0.1], [0.5, 0.1]], "labels has 2 rows and items has 1"),
        ([["a", "b"]], [[0.5, 0.1]], "items must be positions"),
        ([[0, -1]], [[0.5, 0.1]], "at least 0"),
        ([[0, 1]], [[NAN, NAN]], "row 0"),
    ],
)
def test_bad_tables_are_refused(items: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Judgements.from_pairs(items, np.array(labels))


def test_a_table_fits_like_pairs_and_labels() -> None:
    rng = np.random.default_rng(0)
    x, ends = rng.normal(size=(60, 3)), rng.permutation(60).reshape(30, 2)
    labels = np.stack([rng.random(30) / 2, rng.random(30) / 2], 1)
    options: dict[str, Any] = {"model": "linear", "epochs": 3, "random_state": 0}
    one = PairClassifier(**options).fit(x[ends], labels)
    said = Judgements.from_pairs(ends, labels)
    two = PairClassifier(**options).fit(x, said)
    three = PairClassifier(**options, preprocessor=x).fit(None, said)
    four = PairClassifier(**options).fit(x[ends], said)
    for other in (two, three, four):
        assert other.decision_function(x) == pytest.approx(one.decision_function(x), abs=1e-5)


# --- what is held out ----------------------------------------------------------------------


def rows_of(ends: Any) -> Judgements:
    return Judgements.from_pairs(ends, np.tile([0.5, 0.0], (len(ends), 1)))


def test_held_out_items_are_in_no_other_row_where_that_is_possible() -> None:
    rng = np.random.default_rng(0)
    ends = np.concatenate([10 * k + rng.integers(0, 10, (6, 2)) for k in range(50)])
    mask = held_out_rows(rows_of(ends), 0.2, seed=1)
    assert 0.15 <= mask.mean() <= 0.2
    assert not set(ends[mask].ravel()) & set(ends[~mask].ravel())


def test_rows_of_one_pair_are_held_out_together_in_a_connected_table() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 40, (200, 2))
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    mask = held_out_rows(rows_of(ends), 0.1, seed=1)
    assert 0.08 <= mask.mean() <= 0.1
    unordered = {tuple(sorted(e)) for e in ends[mask].tolist()}
    assert not unordered & {tuple(sorted(e)) for e in ends[~mask].tolist()}
