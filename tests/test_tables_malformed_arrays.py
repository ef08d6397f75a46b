"""Malformed arrays, each with the exact message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pairlearn.tables import ItemTable, PairTable, TableError

NAN = math.nan

ARRAYS: dict[str, tuple[Callable[[], Any], str]] = {
    "lengths": (
        lambda: PairTable([1, 2], [1], [0.5, 0.5], None),
        "right has 1 rows and left has 2",
    ),
    "weight length": (
        lambda: PairTable([1], [1], [0.5], None, weight=[1, 2]),
        "weight has 2 rows and left has 1",
    ),
    "shape": (
        lambda: PairTable([1], [1], [[0.5]], None),
        "similarity must have shape (n,); got (1, 1)",
    ),
    "ids of two axes": (
        lambda: PairTable([[1]], [1], [0.5], None),
        "left must have shape (n,); got (1, 1)",
    ),
    "words": (
        lambda: PairTable([1], [1], ["a"], None),
        "similarity must be numbers: could not convert string to float: 'a'",
    ),
    "float ids": (
        lambda: PairTable([1.0], [1], [0.5], None),
        "left must be integers or text; got float64",
    ),
    "boolean ids": (
        lambda: PairTable([1], [True], [0.5], None),
        "right must be integers or text; got bool",
    ),
    "None among ids": (
        lambda: PairTable([1, None], [1, 2], [0.5, 0.5], None),
        "row 2: left is None, of NoneType; give integers or text",
    ),
    "empty id": (
        lambda: PairTable(["a"], [""], [0.5], None),
        "row 1: right is empty; every row needs it",
    ),
    "NUL": (
        lambda: PairTable(["a\0"], ["b"], [0.5], None),
        "row 1: left is 'a\\x00', with a NUL; remove it",
    ),
    "NUL within": (
        lambda: PairTable(np.array(["a", "a\0b"]), ["b", "c"], [0.5, 0.5], None),
        "row 2: left is 'a\\x00b', with a control character; remove it",
    ),
    "surrogate": (
        lambda: PairTable(["\ud800"], ["b"], [0.5], None),
        "row 1: left is '\\ud800', with a control character; remove it",
    ),
    "nothing": (
        lambda: PairTable([1], [1], None, None),
        "row 1: no judgement; give similarity, difference or preference, or drop the row",
    ),
    "infinite": (
        lambda: PairTable([1], [1], None, [-math.inf], noisy=True),
        "row 1: difference is -inf, not a finite number",
    ),
    "weight NaN": (
        lambda: PairTable([1], [1], [0.5], None, weight=[NAN]),
        "row 1: weight is nan, not a finite number",
    ),
    "preference": (
        lambda: PairTable([1], [1], [0.5], None, preference=[2]),
        "row 1: preference is 2; give -1 (left), 1 (right) or 0",
    ),
    "preference shape": (
        lambda: PairTable([1], [1], [0.5], None, preference=[[1]]),
        "preference must have shape (n,); got (1, 1)",
    ),
    "preference type": (
        lambda: PairTable([1], [1], [0.5], None, preference=[True]),
        "preference must be numbers or text; got bool",
    ),
    "no labels": (
        lambda: PairTable([1] * 7, [2] * 7, None, None, ["left"] * 7).labels(),
        "neither similarity nor difference in row 1, 2, 3, 4, 5 and 2 more: "
        "take the labels of table[table.judged]",
    ),
    "unknown id": (
        lambda: PairTable([1, 1], [2, 4], [0.5, 0.5], None).positions([1, 2, 3]),
        "row 2: right 4 is not among the items",
    ),
    "unknown for a space": (
        lambda: PairTable(["a", "b "], ["b", "a"], [0.5, 0.5], None).positions(["a", "b"]),
        "row 2: left 'b ' is not among the items; 'b' is: remove the spaces around it",
    ),
    "no items": (
        lambda: PairTable([1], [2], [0.5], None).positions([]),
        "row 1: left 1 is not among the items",
    ),
    "items twice": (
        lambda: PairTable([1], [2], [0.5], None).positions([1, 2, 2]),
        "row 3: items 2 is in row 2 already; ids are unique",
    ),
    "nothing to join": (
        lambda: PairTable.concatenate([]),
        "parts is empty: give at least one PairTable",
    ),
    "no items to join": (
        lambda: ItemTable.concatenate([]),
        "parts is empty: give at least one ItemTable",
    ),
    "different features": (
        lambda: ItemTable.concatenate([ItemTable([1], [[1]], ["a"]), ItemTable([2], [[1]], ["b"])]),
        "parts have different features: ['a'] and ['b']",
    ),
    "joined ids": (
        lambda: ItemTable.concatenate([ItemTable([1], [[1]]), ItemTable([1], [[1]])]),
        "row 2: id 1 is in row 1 already; ids are unique",
    ),
    "selected twice": (
        lambda: ItemTable([7, 8], [[1], [2]])[[1, 1]],
        "row 2 of the selection: id 8 is in row 1 already; ids are unique",
    ),
    "feature shape": (lambda: ItemTable([1], [1.0]), "features must have shape (m, d); got (1,)"),
    "ragged features": (
        lambda: ItemTable([1, 2], [[1.0], [1.0, 2.0]]),
        "features must be numbers of shape (m, d): setting an array element with a sequence. "
        "The requested array has an inhomogeneous shape after 1 dimensions. "
        "The detected shape was (2,) + inhomogeneous part.",
    ),
    "feature type": (lambda: ItemTable([1], [["a"]]), "features must be numbers; got <U1"),
    "feature NaN": (
        lambda: ItemTable([1], [[NAN]]),
        "row 1: feature 'x0' is missing; fill it in or drop the row",
    ),
    "names": (lambda: ItemTable([1], [[1.0]], ["a", "b"]), "names has 2 names for 1 features"),
    "named id": (
        lambda: ItemTable([1], [[1.0]], ["id"]),
        "feature 1 is named 'id', which is the column of ids",
    ),
    "named with a space": (
        lambda: ItemTable([1], [[1.0]], ["a "]),
        "feature 1 is named 'a '; give it a name of printable text, without spaces around it",
    ),
    "named alike": (
        lambda: ItemTable([1], [[1.0, 2.0]], ["a", "a"]),
        "features 1 and 2 are both named 'a'",
    ),
    "item lengths": (lambda: ItemTable([1, 2], [[1.0]]), "ids has 2 rows and features has 1"),
    "items alike": (
        lambda: ItemTable(["a", "a"], [[1.0], [1.0]]),
        "row 2: id 'a' is in row 1 already; ids are unique",
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str) -> None:
    make, message = ARRAYS[name]
    with pytest.raises(TableError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize("index", ["a", 1.5, [[0]], (0, 1.0), True])
def test_row_selection(index: Any) -> None:
    with pytest.raises(IndexError, match="rows are selected by a slice, a mask or row numbers"):
        PairTable([1], [2], [0.5], None)[index]
