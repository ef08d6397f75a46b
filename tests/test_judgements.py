"""The table of judgements: its rows, its weights, and which of them are held out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pairlearn import Judgements, PairClassifier
from pairlearn.estimators.splits import held_out_rows
from pairlearn.judgements.kinds import KINDS

NAN = math.nan
NAMES = [known.name for known in KINDS]


def test_every_judgement_becomes_a_row_and_counts() -> None:
    ends = [[0, 1], [0, 1], [2, 3], [4, 5]]
    columns = {
        "similarity": [0.4, NAN, 0.9, NAN],
        "difference": [0.1, 0.2, NAN, NAN],
        "preference": [1.0, NAN, NAN, -1.0],
    }
    rows = Judgements.from_columns(ends, columns, [1.0, 2.0, 3.0, 4.0], ["a", "b", "a", "c"])
    statements = [
        (NAMES[k], tuple(e), float(w), str(annotator))
        for k, e, w, annotator in zip(
            rows.kind, rows.ends.tolist(), rows.weight, rows.annotator, strict=True
        )
    ]
    assert statements == [
        ("both", (0, 1), 1.0, "a"),
        ("preference", (0, 1), 1.0, "a"),
        ("difference", (0, 1), 2.0, "b"),
        ("similarity", (2, 3), 3.0, "a"),
        ("preference", (4, 5), 4.0, "c"),
    ]
    assert rows.counts() == {"both": 1, "similarity": 1, "difference": 1, "preference": 2}
    assert Judgements.concatenate([rows[:2], rows[2:]]).counts() == rows.counts()
    assert len(rows.labels()) == 3


@pytest.mark.parametrize("weight", [[1.0], [1.0] * 7, [1.0, 2.0, 2.0, 5.0]])
def test_labels_keep_their_weights_two_to_a_row(weight: list[float]) -> None:
    positive = np.arange(len(weight)) % 2 == 0
    table = Judgements.about_items("label", 10 + np.arange(len(weight)), positive, weight)
    rows, total = table.packed(seed=0), np.zeros(len(weight))
    for (first, second), w, (u, v) in zip(rows.ends - 10, rows.weight, rows.values, strict=True):
        assert (u, v) == (positive[first], positive[second])
        total[first] += w / 2
        total[second] += w / 2
    assert total.tolist() == pytest.approx([w / 2 for w in weight])


TWO = [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        ("from_pairs", ([[0, 1]], [[0.5, 0.1], [0.5, 0.1]]), "labels has 2 rows and items has 1"),
        ("from_pairs", ([["a", "b"]], [[0.5, 0.1]]), "items must be positions"),
        ("from_pairs", ([[0, -1]], [[0.5, 0.1]]), "got 0 and -1"),
        ("from_pairs", ([[0, 1]], [[NAN, NAN]]), "row 0"),
        ("from_columns", (TWO, {"same": [0.5, 1]}), "row 0: same is 0.5; give"),
        ("from_columns", (TWO, {"comparison": [3, 1]}), "row 0: comparison is 3; give"),
        ("from_columns", (TWO, {"nope": [1, 1]}), "no column 'nope'; the kinds have similarity, "),
        ("from_columns", (TWO, {"closer": [1, 0]}), "row 0: has a closer alone: give closer and t"),
        (
            "from_columns",
            (TWO, {"share": [0.5, 0.5], "group": [1, NAN]}),
            "row 1: has a share alone: give share and",
        ),
        ("from_columns", (TWO, {"label": [1, 0]}), "row 0: 'label' is about one item; got 0 and 1"),
        ("from_columns", ([[4, -1]], {"same": [1]}), "row 0: 'same' is about two items; got 4 and"),
        ("from_columns", ([[-1, 4]], {"same": [1]}), "row 0: 'same' is about two items; got -1 a"),
        (
            "about_items",
            ("preference", [0], [1]),
            "row 0: 'preference' is about two items; got 0 and -1",
        ),
        ("about_items", ("label", [0, 1], [1, -1]), r"label must lie in \[0, 1\]; row 1 is -1"),
        ("about_items", ("positive", [0], [0]), r"positive must lie in \[1, 1\]; row 0 is 0"),
        (
            "about_items",
            ("confidence", [-5], [0.5]),
            "'confidence' is about one item; got -5 and -1",
        ),
    ],
)
def test_bad_tables_are_refused(make: str, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(Judgements, make)(*given)


@pytest.mark.parametrize(("name", "ends"), [("label", [0, 1]), ("similarity", [0, -1])])
def test_rows_about_the_wrong_number_of_items_never_train(name: str, ends: list[int]) -> None:
    code = np.full(8, NAMES.index(name), np.int8)
    rows = Judgements(np.tile(ends, (8, 1)), code, np.ones((8, 2)))
    with pytest.raises(ValueError, match=f"row 0: '{name}' is about"):
        PairClassifier(model="linear").fit(np.eye(2), rows)


def test_words_of_a_column_are_read_in_python() -> None:
    table = Judgements.from_columns([[0, 1]], {"comparison": ["much right"]})
    assert table.u.tolist() == [2]


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
