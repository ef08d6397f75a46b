"""Tables in memory, against plain Python lists and dictionaries."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.tables import ItemTable, PairTable, TableError

NAN = math.nan


def full() -> PairTable:
    return PairTable(
        ["a", "b", "a"],
        ["b", "c", "a"],
        [0.5, NAN, 1.0],
        [0.1, -0.5, NAN],
        preference=["", "left", "right"],
        weight=[1, 2, 0.5],
        annotator=["ann", "", "bob"],
    )


def test_columns_have_their_types() -> None:
    table = full()
    kinds = {name: column.dtype.kind for name, column in table.columns().items()}
    assert kinds == {
        "left": "U",
        "right": "U",
        "similarity": "f",
        "difference": "f",
        "preference": "i",
        "weight": "f",
        "annotator": "U",
    }
    assert table.preference is not None
    assert table.preference.tolist() == [0, -1, 1]
    assert repr(table) == f"PairTable(n=3, columns={list(kinds)})"
    assert len(table) == 3


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([3, -1], [3, -1]),
        (np.array([3, 1], dtype=np.uint8), [3, 1]),
        (torch.tensor([3, 1]), [3, 1]),
        ([3, "a"], ["3", "a"]),
        (np.array([3, "a"], dtype=object), ["3", "a"]),
        ([2**70, 1], [str(2**70), "1"]),
        ([" a ", "a"], [" a ", "a"]),
        (np.array(["é", "日本"], dtype=">U4"), ["é", "日本"]),
    ],
)
def test_ids_are_integers_or_text(ids: Any, kept: list[Any]) -> None:
    assert PairTable(ids, ids, [0.5, 0.5], None).left.tolist() == kept


def test_preferences_from_numbers_and_words() -> None:
    for values in ([-1, 1, 0], [-1.0, 1.0, NAN], ["left", "right", ""], [" left", "right ", " "]):
        table = PairTable([1] * 3, [2] * 3, [0.5] * 3, None, preference=values)
        assert table.preference is not None
        assert table.preference.tolist() == [-1, 1, 0]


def test_labels_of_the_judged_rows() -> None:
    table = PairTable([1, 2], [2, 3], [NAN, 0.5], None, preference=["left", ""])
    assert table.judged.tolist() == [False, True]
    assert len(table[table.judged].labels()) == 1
    with pytest.raises(TableError, match="in row 1: take"):
        table.labels()


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (slice(1, None), [1, 2]),
        ([2, 0, 2], [2, 0, 2]),
        (np.array([True, False, True]), [0, 2]),
        (-1, [2]),
        ([], []),
    ],
)
def test_row_selection(index: Any, rows: list[int]) -> None:
    table = full()
    selected = table[index]
    for name, column in selected.columns().items():
        expected = [table.columns()[name].tolist()[row] for row in rows]
        np.testing.assert_array_equal(column, np.array(expected, dtype=column.dtype))


def test_equality() -> None:
    table = full()
    assert table == full()
    assert table != full()[:2]
    assert table != PairTable(table.left, table.right, table.similarity, table.difference)
    assert PairTable([1], [2], [0.5], None) != PairTable(["1"], ["2"], [0.5], None)
    assert table != "table"
    items = ItemTable([1], [[0.5]])
    assert items == ItemTable([1], [[0.5]])
    assert items != ItemTable([1], [[0.5]], ["a"])
    assert items != ItemTable(["1"], [[0.5]])
    assert items != ItemTable([1], [[0.25]])
    assert items != 1
    for one in (table, items):
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)


def test_concatenation_fills_up() -> None:
    plain = PairTable([1], [2], [0.5], None)
    joined = PairTable.concatenate([plain, full()])
    assert joined.left.tolist() == ["1", "a", "b", "a"]
    assert joined.preference is not None and joined.preference.tolist() == [0, 0, -1, 1]
    assert joined.weight is not None and joined.weight.tolist() == [1, 1, 2, 0.5]
    assert joined.annotator is not None and joined.annotator.tolist() == ["", "ann", "", "bob"]
    assert joined[1:] == full()
    assert PairTable.concatenate([plain]) == plain
    assert PairTable.concatenate([plain, plain]).weight is None


@settings(max_examples=30)
@given(
    ids=st.lists(st.integers(-50, 50), unique=True, min_size=1, max_size=30),
    data=st.data(),
    text=st.sampled_from(["neither", "items", "pairs"]),
)
def test_positions_are_those_of_a_dictionary(
    ids: list[int], data: st.DataObject, text: str
) -> None:
    """Also where one side has text and the other integers."""
    chosen = st.lists(st.sampled_from(ids), min_size=1, max_size=20)
    left = data.draw(chosen)
    right = data.draw(st.lists(st.sampled_from(ids), min_size=len(left), max_size=len(left)))
    where = {one: row for row, one in enumerate(ids)}
    expected = [[where[one], where[two]] for one, two in zip(left, right, strict=True)]
    kinds: dict[str, Any] = {"neither": (int, int), "items": (int, str), "pairs": (str, int)}
    of_pairs, of_items = kinds[text]
    table = PairTable(
        [of_pairs(one) for one in left], [of_pairs(one) for one in right], [0.5] * len(left), None
    )
    items = ItemTable([of_items(one) for one in ids], np.zeros((len(ids), 1)))
    assert table.positions(items).tolist() == expected
    assert table.positions(items.ids).tolist() == expected


def test_items() -> None:
    items = ItemTable(None, np.arange(6, dtype=np.int16).reshape(3, 2))
    assert items.ids.tolist() == [0, 1, 2]
    assert items.names == ("x0", "x1")
    assert items.features.dtype == np.float32
    assert items[[2, 0]].features.tolist() == [[4, 5], [0, 1]]
    assert items[np.array([False, True, False])].ids.tolist() == [1]
    assert repr(items) == "ItemTable(m=3, features=2)"
    more = ItemTable(["x"], [[9, 9]])
    assert ItemTable.concatenate([items, more]).ids.tolist() == ["0", "1", "2", "x"]


def test_the_room_loads_no_pyarrow() -> None:
    code = "import sys, pairlearn.tables; assert not {'pyarrow', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
