"""Tables in memory, against plain Python lists and dictionaries; writing of files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.io import (
    ItemTable,
    TableError,
    open_rows,
    read_items,
    read_pairs,
    write_items,
    write_pairs,
)
from pairlearn.judgements import Judgements
from tables import contents, pair_table

NAN = math.nan


def full() -> Judgements:
    return pair_table(
        ["a", "b", "a"],
        ["b", "c", "a"],
        [0.5, NAN, 1.0],
        [0.1, -0.5, NAN],
        preference=["", "left", "right"],
        weight=[1, 2, 0.5],
        annotator=["ann", "", "bob"],
    )


def test_rows_of_a_file_become_statements_in_order() -> None:
    table = full()
    assert "".join(column.dtype.kind for column in table.columns().values()) == "UUffffU"
    assert repr(table) == "Judgements(n=5, both=1, similarity=1, difference=1, preference=2)"
    assert table.left.tolist() == ["a", "b", "b", "a", "a"]
    assert table.file_rows().tolist() == [0, 1, 1, 2, 2]


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
    assert pair_table(ids, ids, [0.5, 0.5], None).left.tolist() == kept


def test_labels_of_the_judged_rows() -> None:
    table = pair_table([1, 2], [2, 3], [NAN, 0.5], None, preference=["left", ""])
    assert table.soft.tolist() == [False, True]
    assert len(table.labels()) == 1


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
    table = pair_table(["a", "b", "a"], ["b", "c", "a"], [0.5, 0.1, 1], annotator=["x", "", "y"])
    selected = table[index]
    for name in ("left", "right", "similarity", "annotator"):
        column = getattr(selected, name)
        expected = [getattr(table, name).tolist()[row] for row in rows]
        np.testing.assert_array_equal(column, np.array(expected, dtype=column.dtype))


def test_equality() -> None:
    table = full()
    assert table == full()
    assert table != full()[:2]
    assert table != replace(table, weight=None)
    assert pair_table([1], [2], [0.5], None) != pair_table(["1"], ["2"], [0.5], None)
    assert table != "table"
    with pytest.raises(TypeError, match="unhashable"):
        hash(table)


def test_concatenation_fills_up() -> None:
    plain = pair_table([1], [2], [0.5], None)
    joined = Judgements.concatenate([plain, full()])
    assert joined.left.tolist() == ["1", "a", "b", "b", "a", "a"]
    assert joined.weight.tolist() == [1, 1, 2, 2, 0.5, 0.5]
    assert joined.annotator is not None
    assert joined.annotator.tolist() == ["", "ann", "", "", "bob", "bob"]
    assert joined[1:] == full()
    assert Judgements.concatenate([plain]) == plain


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
    end = st.sampled_from(ids)
    pairs = data.draw(st.lists(st.tuples(end, end), min_size=1, max_size=20))
    position = {id_: row for row, id_ in enumerate(ids)}
    expected = [[position[left], position[right]] for left, right in pairs]
    pair_ids, item_ids = (np.array(pairs), np.array(ids))
    if text == "pairs":
        pair_ids = pair_ids.astype(str)
    if text == "items":
        item_ids = item_ids.astype(str)
    table = pair_table(*pair_ids.T, [0.5] * len(pairs), None)
    items = ItemTable(item_ids, np.zeros((len(ids), 1)))
    assert table.located(items.ids).ends.tolist() == expected


def test_items() -> None:
    items = ItemTable(None, np.arange(6, dtype=np.int16).reshape(3, 2))
    assert items.ids.tolist() == [0, 1, 2]
    assert items.names == ("x0", "x1")
    assert items.features.dtype == np.float32
    assert items[[2, 0]].features.tolist() == [[4, 5], [0, 1]]
    assert items[np.array([False, True, False])].ids.tolist() == [1]
    assert repr(items) == "ItemTable(m=3, features=2)"


# ---- files are written whole or not at all ----------------------------------------------------

PLAIN = pair_table([1, 2], [2, 3], [0.5, NAN], [NAN, -0.25])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_appear_at_the_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"p{suffix}"
    with open_rows(path, ["id", "x"]) as rows:
        rows.write({"x": [0.5], "id": np.array([7])})
        assert not path.exists()
        rows.write({"id": [8, 9], "x": [0.25, -1.0]})
        assert (rows.count, rows.columns) == (3, ("id", "x"))
    wanted = ItemTable([7, 8, 9], [[0.5], [0.25], [-1.0]], ["x"])
    assert contents(read_items(path)) == contents(wanted)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("written", [False, True])
def test_a_failure_leaves_the_old_file(tmp_path: Path, suffix: str, written: bool) -> None:
    path = tmp_path / f"p{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"), open_rows(path, ["id"]) as rows:
        if written:
            rows.write({"id": [1, 2]})
        raise RuntimeError("stop")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_rows_are_a_header(tmp_path: Path, suffix: str) -> None:
    path = write_pairs(PLAIN[:0], tmp_path / f"pairs{suffix}")
    with pytest.raises(TableError) as caught:
        read_pairs(path)
    assert str(caught.value) == f"{path} has a header but no rows"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1]}, "columns must be ['id', 'x']; got ['id']"),
        (
            {"id": [1], "x": [1, 2]},
            "columns must be of one length, and each of one type: Column 1 named x ",
        ),
        (
            {"id": 1, "x": [1]},
            "columns must be of one length, and each of one type: only handle 1-dimensional arrays",
        ),
        (
            {"id": ["a"], "x": [1.0]},
            "columns must be of one length, and each of one type: Failed to parse string: 'a'",
        ),
        ({"id": ["\n"], "x": [1.0]}, "row 2: id is '\\n', with a control character; remove it"),
    ],
)
def test_bad_rows(tmp_path: Path, suffix: str, columns: dict[str, Any], message: str) -> None:
    path = tmp_path / f"p{suffix}"
    with pytest.raises(TableError) as caught, open_rows(path, ["id", "x"]) as rows:
        rows.write({"id": [1], "x": [0.5]})
        rows.write(columns)
    assert str(caught.value).startswith(message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", [[], ["a", "a"]])
def test_bad_headers(tmp_path: Path, columns: list[str]) -> None:
    with pytest.raises(TableError) as caught, open_rows(tmp_path / "p.csv", columns):
        pass
    assert str(caught.value) == f"columns must be different names, at least one; got {columns}"


@pytest.mark.parametrize(
    ("write", "name", "message"),
    [
        (lambda path: write_pairs(PLAIN, path), "a.npy", "the suffix '.npy'; pairs are .csv or"),
        (
            lambda path: write_items(ItemTable([1], [[1]]), path),
            "a.npy",
            "the suffix '.npy'; items",
        ),
        (lambda path: open_rows(path, ["a"]).__enter__(), "a.txt", "the suffix '.txt'; rows are"),
    ],
)
def test_refused_paths(tmp_path: Path, write: Any, name: str, message: str) -> None:
    with pytest.raises(TableError) as caught:
        write(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name} has {message}")
    assert not list(tmp_path.iterdir())
