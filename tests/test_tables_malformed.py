"""Malformed tables, each with the exact message.

Every case in ``malformed/`` is three lines: a name, a Python expression for the contents, and
the message, where ``{path}`` stands for the file.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from fuzz import READERS
from fuzz.sandbox import folder
from pairlearn import io as tables
from pairlearn.io import ItemTable, TableError, read_items, read_pairs
from pairlearn.judgements import Judgements
from tables import pair_table

TYPES = {
    "decimal": pyarrow.decimal128(3, 2),
    "list": pyarrow.list_(pyarrow.field("element", pyarrow.float64())),
    "struct": pyarrow.struct([("a", pyarrow.float64())]),
    "date": pyarrow.date32(),
    "uint64": pyarrow.uint64(),
    "binary": pyarrow.binary(),
}


class Loaded:
    """An object whose unpickling would be noticed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("the file was unpickled",))


def typed(values: list[Any], type_: str) -> Any:
    return pyarrow.array(values, TYPES[type_])


KNOWN = {"np": np, "inf": math.inf, "NAN": math.nan, "typed": typed, "Loaded": Loaded}
KNOWN |= {"Judgements": Judgements, "ItemTable": ItemTable, "pair_table": pair_table}


@cache
def cases(file: str) -> dict[str, tuple[str, str]]:
    text = (Path(__file__).parent / "malformed" / f"{file}.txt").read_text(encoding="utf-8")
    return {name: (data, text) for name, data, text in map(str.splitlines, text.split("\n\n"))}


def every_case(*files: str) -> Any:
    return pytest.mark.parametrize(
        ("file", "name"), [(file, name) for file in files for name in cases(file)]
    )


def contents(expression: str, suffix: str) -> bytes:
    data, stream = eval(expression, KNOWN), io.BytesIO()
    if suffix == ".parquet":
        parquet.write_table(pyarrow.table(data), stream)
    elif suffix == ".npy":
        np.save(stream, data)
    return data if suffix == ".csv" else stream.getvalue()


def assert_refused(read: Callable[[Any], Any], path: Path, message: str) -> None:
    with pytest.raises(TableError) as caught:
        read(path)
    assert str(caught.value) == message.replace("{path}", str(path))


@every_case("pairs.csv", "items.csv", "pairs.parquet", "items.parquet", "items.npy", "ids.npy")
def test_files(file: str, name: str) -> None:
    """In all the ways of reading of the fuzzer's harness."""
    data, message = cases(file)[name]
    what, suffix = file.split(".")
    reader = "npy_ids" if what == "ids" else f"{what}_{suffix}"
    outcome = READERS[reader].one_input(contents(data, f".{suffix}"))
    place = folder(reader if what == "ids" else file)
    expected = message.format(path=place / file, items=place / "x.npy")
    if expected.endswith("Also:…"):
        assert outcome.startswith(expected[:-1])
    else:
        assert outcome == expected
    if what == "items" and "ids are unique" not in message:  # a stream does not keep ids
        assert_refused(lambda path: list(tables.iter_items(path)), place / file, message)


@every_case("arrays")
def test_arrays(file: str, name: str) -> None:
    expression, message = cases(file)[name]
    assert_refused(lambda _: eval(expression, KNOWN), Path(), message)


def test_an_error_far_down_has_its_line() -> None:
    """Several batches of rows are before it, and worse values in other columns after it."""
    lines = [b"%d,%d,0.5,0.1" % (row, row + 1) for row in range(300)]
    lines[200:204] = [b"1,2,0.5,-2000", b"1,2,2000,0", b",2,high,0", b"1,2"]
    data = b"left,right,similarity,difference\n" + b"\n".join(lines)
    ragged = READERS["pairs_csv"].one_input(data)
    assert ragged.endswith("pairs.csv, row 204: 2 cells, but the header has 4")
    data = data.replace(b"\n1,2\n", b"\n")
    empty = READERS["pairs_csv"].one_input(data)
    assert empty.endswith("pairs.csv, row 203: left is empty; every row needs it")
    wrong = READERS["pairs_csv"].one_input(data.replace(b"\n,2,high,0", b""))
    first, second = wrong.splitlines()
    assert "pairs.csv, row 201: difference is -2000, outside [-1, 1]" in first
    assert second.startswith("  row 202: similarity is 2000, outside [0, 1]")


@pytest.mark.parametrize(
    ("read", "name", "message"),
    [
        (read_pairs, "folder.csv", "{path} is a folder; give a file"),
        (read_pairs, "null.csv", "{path} is not a regular file; save the table to one first"),
        (read_pairs, "null.csv/x.csv", "{path} does not exist"),
        (read_pairs, "none.parquet", "{path} does not exist"),
        (read_items, "none.npy", "{path} does not exist"),
        (read_pairs, "a.txt", "{path} has the suffix '.txt'; pairs are .csv or .parquet"),
        (read_pairs, "a", "{path} has the suffix ''; pairs are .csv or .parquet"),
        (read_pairs, "a.npy", "{path} has the suffix '.npy'; pairs are .csv or .parquet"),
        (read_items, "a.xls", "{path} has the suffix '.xls'; items are .csv, .parquet or .npy"),
        (
            lambda path: read_items(path.with_name("items.npy"), path),
            *("ids.csv", "{path} has the suffix '.csv'; ids of .npy features are .npy"),
        ),
        (
            lambda path: read_items(path, path.with_name("ids.npy")),
            *("items.csv", "ids is for .npy features; {path} has its ids in the column 'id'"),
        ),
    ],
)
def test_paths(tmp_path: Path, read: Callable[[Any], Any], name: str, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "null.csv").symlink_to("/dev/null")
    np.save(tmp_path / "items.npy", np.zeros((2, 2)))
    assert_refused(read, tmp_path / name, message)


def test_rows_of_a_batch(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^rows must be a whole number of at least 1; got 0$"):
        tables.iter_items(tmp_path / "a.csv", 0)
