"""Malformed Parquet and NPY files, and paths, each with the exact message.

``{path}`` stands for the file.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairlearn.tables import TableError, iter_items, iter_pairs, read_items, read_pairs

HINT = "(noisy=True admits labels with noise)"
PERCENT = f"looks like percent: divide by 100 {HINT}"
NAN = math.nan


def refused(read: Callable[[Any], Any], path: Path, message: str) -> None:
    with pytest.raises(TableError) as caught:
        read(path)
    assert str(caught.value) == message.replace("{path}", str(path))


# ---- Parquet ----------------------------------------------------------------------------------


def parquet(columns: dict[str, Any]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    stream = io.BytesIO()
    files.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def typed(values: list[Any], type_: str) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    types = {
        "decimal": pyarrow.decimal128(3, 2),
        "list": pyarrow.list_(pyarrow.field("element", pyarrow.float64())),
        "struct": pyarrow.struct([("a", pyarrow.float64())]),
        "date": pyarrow.date32(),
        "uint64": pyarrow.uint64(),
        "binary": pyarrow.binary(),
    }
    return pyarrow.array(values, types[type_])


PARQUET_PAIRS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "text numbers": (
        lambda: {"left": [1], "right": [2], "similarity": ["0.5"]},
        "{path}: column 'similarity' has the type string; it must hold numbers",
    ),
    "decimals": (
        lambda: {"left": [1], "right": [2], "similarity": typed([None], "decimal")},
        "{path}: column 'similarity' has the type decimal128(3, 2); it must hold numbers",
    ),
    "lists": (
        lambda: {"left": [1], "right": [2], "similarity": typed([[0.5]], "list")},
        "{path}: column 'similarity' has the type list<element: double>; it must hold numbers",
    ),
    "structs": (
        lambda: {"left": typed([{"a": 1.0}], "struct"), "right": [2], "similarity": [0.5]},
        "{path}: column 'left' has the type struct<a: double>; it must hold integers or text",
    ),
    "float ids": (
        lambda: {"left": [1.0], "right": [2], "similarity": [0.5]},
        "{path}: column 'left' has the type double; it must hold integers or text",
    ),
    "binary ids": (
        lambda: {"left": [1], "right": typed([b"a"], "binary"), "similarity": [0.5]},
        "{path}: column 'right' has the type binary; it must hold integers or text",
    ),
    "numeric preference": (
        lambda: {"left": [1], "right": [2], "preference": [-1.0]},
        "{path}: column 'preference' has the type double; it must hold text",
    ),
    "date annotator": (
        lambda: {"left": [1], "right": [2], "similarity": [0.5], "annotator": typed([9], "date")},
        "{path}: column 'annotator' has the type date32[day]; it must hold text",
    ),
    "null id": (
        lambda: {"left": [1, None], "right": [2, 3], "similarity": [0.5, 0.5]},
        "{path}, row 2: left is empty; every row needs it",
    ),
    "large id": (
        lambda: {"left": typed([1, 2**63], "uint64"), "right": [1, 2], "similarity": [0.5, 0.5]},
        "{path}, row 2: left is 9223372036854775808, too large for int64; give ids as text",
    ),
    "NUL in an id": (
        lambda: {"left": ["a", "b\0"], "right": ["a", "b"], "similarity": [0.5, 0.5]},
        "{path}, row 2: left is 'b\\x00', with a NUL; remove it",
    ),
    "infinite": (
        lambda: {"left": [1], "right": [2], "similarity": [math.inf]},
        "{path}, row 1: similarity is inf, not a finite number",
    ),
    "out of range": (
        lambda: {"left": [1, 2], "right": [2, 1], "similarity": [0.5, 1.25]},
        "{path}, row 2: similarity is 1.25, outside [0, 1]; " + PERCENT,
    ),
    "no judgement": (
        lambda: {"left": [1, 2], "right": [2, 1], "similarity": [NAN, None]},
        "{path}, row 1: no judgement; give similarity, difference or preference, or drop the row",
    ),
    "misspelt": (
        lambda: {"left": [1], "right": [2], "simmilarity": [0.5]},
        "{path}: column 'simmilarity' looks like 'similarity'; rename it so, or otherwise",
    ),
    "no rows": (
        lambda: {"left": [], "right": [], "similarity": []},
        "{path} has a header but no rows",
    ),
}


@pytest.mark.parametrize("name", PARQUET_PAIRS)
def test_pairs_parquet(tmp_path: Path, name: str) -> None:
    columns, message = PARQUET_PAIRS[name]
    path = tmp_path / "pairs.parquet"
    path.write_bytes(parquet(columns()))
    refused(read_pairs, path, message)
    refused(lambda path: list(iter_pairs(path)), path, message)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"id": [1, 2, 1], "x": [1.0, 2.0, 3.0]},
            "{path}, row 3: id 1 is in row 1 already; ids are unique",
        ),
        (
            {"id": [1, 2], "x": [1.0, None]},
            "{path}, row 2: feature 'x' is missing; fill it in or drop the row",
        ),
        ({"id": [1], "x": ["a"]}, "{path}: column 'x' has the type string; it must hold numbers"),
        ({"id": [1]}, "{path}: no features; an item has at least one"),
    ],
    ids=["id twice", "missing feature", "text feature", "no features"],
)
def test_items_parquet(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = tmp_path / "items.parquet"
    path.write_bytes(parquet(columns))
    refused(read_items, path, message)


def test_damaged_parquet(tmp_path: Path) -> None:
    """The reason in brackets is pyarrow's own, so only the rest is held to its words."""
    path = tmp_path / "pairs.parquet"
    good = parquet({"left": [1], "right": [2], "similarity": [0.5]})
    for data in (
        b"",
        b"left,right\n1,2\n",
        good[:-20],
        good[: len(good) // 2],
        good[:4] + good[9:],
    ):
        path.write_bytes(data)
        with pytest.raises(TableError) as caught:
            read_pairs(path)
        start = f"{path} is not a Parquet file, or is damaged ("
        assert str(caught.value).startswith(start) and str(caught.value).endswith(")")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pairs.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError) as caught:
        read_pairs(tmp_path / "pairs.parquet")
    assert str(caught.value) == (
        'Parquet needs pyarrow: in a clone of pairlearn, pip install ".[files]"'
    )


# ---- NPY --------------------------------------------------------------------------------------


class Loaded:
    """An object whose unpickling would be noticed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("the file was unpickled",))


NPY_FILES: dict[str, tuple[Any, str]] = {
    "one axis": (np.zeros(3), "{path} has shape (3,); features have shape (m, d)"),
    "no axis": (np.float64(3), "{path} has shape (); features have shape (m, d)"),
    "three axes": (np.zeros((2, 2, 2)), "{path} has shape (2, 2, 2); features have shape (m, d)"),
    "no rows": (np.zeros((0, 3)), "{path} has no rows"),
    "no features": (np.zeros((3, 0)), "{path} has no features"),
    "complex": (np.zeros((2, 2), complex), "{path} has the type complex128; features are numbers"),
    "text": (np.array([["a"]]), "{path} has the type <U1; features are numbers"),
    "records": (
        np.zeros((2, 2), dtype=[("a", "f4")]),
        "{path} has the type [('a', '<f4')]; features are numbers",
    ),
    "objects": (
        np.array([[Loaded()]], dtype=object),
        "{path} holds Python objects, which could run code when read; save plain numbers",
    ),
    "NaN": (
        np.array([[1.0, 2.0], [3.0, NAN]]),
        "{path}, row 2: feature 'x1' is missing; fill it in or drop the row",
    ),
    "infinite": (
        np.array([[1.0], [-math.inf]], dtype=np.float32),
        "{path}, row 2: feature 'x0' is -inf, not a finite number",
    ),
    "beyond float32": (
        np.array([[1e39]]),
        "{path}, row 1: feature 'x0' is 1e+39, too large for float32; rescale",
    ),
}


@pytest.mark.parametrize("name", NPY_FILES)
def test_items_npy(tmp_path: Path, name: str) -> None:
    array, message = NPY_FILES[name]
    path = tmp_path / "items.npy"
    np.save(path, array)
    refused(read_items, path, message)
    refused(lambda path: list(iter_items(path)), path, message)


def test_damaged_npy(tmp_path: Path) -> None:
    path = tmp_path / "items.npy"
    np.save(path, np.zeros((4, 4)))
    good = path.read_bytes()
    zipped = io.BytesIO()
    np.savez(zipped, np.zeros((4, 4)))
    for data in (b"", b"id,x\n", good[:5], good[:60], good[:-1], zipped.getvalue()):
        path.write_bytes(data)
        with pytest.raises(TableError) as caught:
            read_items(path)
        start = f"{path} is not an NPY file, or is damaged ("
        assert str(caught.value).startswith(start) and str(caught.value).endswith(")")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([1.0, 2.0]), "{path} has the type float64; ids are integers or text"),
        (np.array([1, 2, 3]), "{path} has 3 ids, but {items} has 2 rows"),
        (np.array([[1, 2]]), "{path} has shape (1, 2); ids have shape (m,)"),
        (np.array([5, 5]), "{path}, row 2: id 5 is in row 1 already; ids are unique"),
        (np.array(["a", ""]), "{path}, row 2: id is empty; every row needs it"),
        (
            np.array([1, Loaded()], dtype=object),
            "{path} holds Python objects, which could run code when read; save plain numbers",
        ),
    ],
    ids=["floats", "length", "shape", "twice", "empty", "objects"],
)
def test_ids_npy(tmp_path: Path, ids: Any, message: str) -> None:
    items, path = tmp_path / "items.npy", tmp_path / "ids.npy"
    np.save(items, np.zeros((2, 2)))
    np.save(path, ids)
    refused(lambda path: read_items(items, path), path, message.replace("{items}", str(items)))


# ---- paths ------------------------------------------------------------------------------------


def test_paths(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    refused(read_pairs, folder, "{path} is a folder; give a file")
    refused(read_items, tmp_path / "none.npy", "{path} does not exist")
    refused(read_pairs, tmp_path / "none.parquet", "{path} does not exist")
    refused(read_pairs, Path("/dev/null/x.csv"), "{path} does not exist")
    refused(
        read_pairs, tmp_path / "a.txt", "{path} has the suffix '.txt'; pairs are .csv or .parquet"
    )
    refused(read_pairs, tmp_path / "a", "{path} has the suffix ''; pairs are .csv or .parquet")
    refused(
        read_pairs, tmp_path / "a.npy", "{path} has the suffix '.npy'; pairs are .csv or .parquet"
    )
    refused(
        read_items,
        tmp_path / "a.xls",
        "{path} has the suffix '.xls'; items are .csv, .parquet or .npy",
    )
    link = tmp_path / "null.csv"
    link.symlink_to("/dev/null")
    refused(read_pairs, link, "{path} is not a regular file; save the table to one first")
    np.save(tmp_path / "items.npy", np.zeros((2, 2)))
    refused(
        lambda path: read_items(tmp_path / "items.npy", path),
        tmp_path / "ids.csv",
        "{path} has the suffix '.csv'; ids of .npy features are .npy",
    )
    refused(
        lambda path: read_items(path, tmp_path / "ids.npy"),
        tmp_path / "items.csv",
        "ids is for .npy features; {path} has its ids in the column 'id'",
    )


def test_rows_of_a_batch(tmp_path: Path) -> None:
    for read in (iter_pairs, iter_items):
        with pytest.raises(ValueError, match=r"^rows must be at least 1; got 0$"):
            read(tmp_path / "a.csv", 0)
