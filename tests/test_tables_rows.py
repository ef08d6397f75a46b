"""Written files appear whole or not at all, and refuse what they could not give back."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairlearn.tables import (
    ItemTable,
    PairTable,
    TableError,
    open_rows,
    read_items,
    read_pairs,
    write_items,
    write_pairs,
)

PLAIN = PairTable([1, 2], [2, 3], [0.5, math.nan], [math.nan, -0.25])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_appear_at_the_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"p{suffix}"
    with open_rows(path, ["id", "x"]) as rows:
        rows.write({"x": [0.5], "id": np.array([7])})
        assert not path.exists()
        rows.write({"id": [8, 9], "x": [0.25, -1.0]})
        assert (rows.count, rows.columns) == (3, ("id", "x"))
    assert read_items(path) == ItemTable([7, 8, 9], [[0.5], [0.25], [-1.0]], ["x"])
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
        ({"id": [1], "x": [1, 2]}, "column 'x' must have shape (1,); got (2,)"),
        ({"id": 1, "x": [1]}, "column 'id' must have shape (0,); got ()"),
        ({"id": [1], "x": [None]}, "column 'x' must be numbers, booleans or text; got object"),
        ({"id": ["a"], "x": [1.0]}, "column 'id' was of another kind in an earlier batch"),
        ({"id": ["\n"], "x": [1.0]}, "row 2: id is '\\n', with a control character; remove it"),
    ],
)
def test_bad_rows(tmp_path: Path, suffix: str, columns: dict[str, Any], message: str) -> None:
    path = tmp_path / f"p{suffix}"
    with pytest.raises(TableError) as caught, open_rows(path, ["id", "x"]) as rows:
        rows.write({"id": [1], "x": [0.5]})
        rows.write(columns)
    assert str(caught.value) == message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", [[], ["a", "a"]])
def test_bad_headers(tmp_path: Path, columns: list[str]) -> None:
    with pytest.raises(TableError) as caught, open_rows(tmp_path / "p.csv", columns):
        pass
    assert str(caught.value) == f"columns must be different names, at least one; got {columns}"


def test_what_cannot_be_written(tmp_path: Path) -> None:
    cases: list[tuple[Callable[[Path], Any], str, str]] = [
        (
            lambda path: write_pairs(PLAIN, path),
            "a.npy",
            "has the suffix '.npy'; pairs are .csv or .parquet",
        ),
        (
            lambda path: write_items(ItemTable([1], [[1]]), path),
            "a.npy",
            "has no room for ids; write .parquet or .csv",
        ),
        (
            lambda path: write_items(ItemTable([0], [[1]], ["height"]), path),
            "a.npy",
            "has no room for names; write .parquet or .csv",
        ),
        (
            lambda path: open_rows(path, ["a"]).__enter__(),
            "a.txt",
            "has the suffix '.txt'; rows are .csv or .parquet",
        ),
    ]
    for write, name, message in cases:
        with pytest.raises(TableError) as caught:
            write(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name} {message}"
    assert not list(tmp_path.iterdir())
