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
from pairlearn import tables
from pairlearn.tables import ItemTable, PairTable, TableError, read_items, read_pairs

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
KNOWN |= {"PairTable": PairTable, "ItemTable": ItemTable}


@cache
def cases(of: str) -> dict[str, tuple[str, str]]:
    text = (Path(__file__).parent / "malformed" / f"{of}.txt").read_text(encoding="utf-8")
    return {name: (data, said) for name, data, said in map(str.splitlines, text.split("\n\n"))}


def every(*of: str) -> Any:
    return pytest.mark.parametrize(
        ("of", "name"), [(one, name) for one in of for name in cases(one)]
    )


def contents(expression: str, suffix: str) -> bytes:
    found, stream = eval(expression, KNOWN), io.BytesIO()
    if suffix == ".parquet":
        parquet.write_table(pyarrow.table(found), stream)
    elif suffix == ".npy":
        np.save(stream, found)
    return found if suffix == ".csv" else stream.getvalue()


def refused(read: Callable[[Any], Any], path: Path, message: str) -> None:
    with pytest.raises(TableError) as caught:
        read(path)
    assert str(caught.value) == message.replace("{path}", str(path))


@every("pairs.csv", "items.csv", "pairs.parquet", "items.parquet", "items.npy", "ids.npy")
def test_files(of: str, name: str) -> None:
    """In all ways of reading that the harness of the fuzzer knows."""
    data, message = cases(of)[name]
    what, suffix = of.split(".")
    reader = "npy_ids" if what == "ids" else f"{what}_{suffix}"
    found = READERS[reader].one_input(contents(data, f".{suffix}"))
    place = folder(reader if what == "ids" else of)
    assert found == message.format(path=place / of, items=place / "x.npy")
    if what == "items" and "ids are unique" not in message:  # of which a stream keeps none
        refused(lambda path: list(tables.iter_items(path)), place / of, message)


@every("arrays")
def test_arrays(of: str, name: str) -> None:
    expression, message = cases(of)[name]
    refused(lambda _: eval(expression, KNOWN), Path(), message)


def test_an_error_far_down_has_its_line() -> None:
    """Rows of several batches lie before it, and worse values in other columns after it."""
    lines = [b"%d,%d,0.5,0.1" % (row, row + 1) for row in range(300)]
    lines[200:204] = [b"1,2,0.5,-2000", b"1,2,2000,0", b",2,high,0", b"1,2"]
    data = b"left,right,similarity,difference\n" + b"\n".join(lines)
    said = "row 201: difference is -2000, outside [-1, 1] (noisy=True admits labels with noise)"
    assert READERS["pairs_csv"].one_input(data).endswith(f"pairs.csv, {said}")


def test_paths(tmp_path: Path) -> None:
    there, link, items = tmp_path / "folder.csv", tmp_path / "null.csv", tmp_path / "items.npy"
    there.mkdir()
    link.symlink_to("/dev/null")
    np.save(items, np.zeros((2, 2)))
    pairs_are = "pairs are .csv or .parquet"
    for read, path, message in (
        (read_pairs, there, "{path} is a folder; give a file"),
        (read_items, tmp_path / "none.npy", "{path} does not exist"),
        (read_pairs, tmp_path / "none.parquet", "{path} does not exist"),
        (read_pairs, Path("/dev/null/x.csv"), "{path} does not exist"),
        (read_pairs, tmp_path / "a.txt", "{path} has the suffix '.txt'; " + pairs_are),
        (read_pairs, tmp_path / "a", "{path} has the suffix ''; " + pairs_are),
        (read_pairs, tmp_path / "a.npy", "{path} has the suffix '.npy'; " + pairs_are),
        (
            read_items,
            tmp_path / "a.xls",
            "{path} has the suffix '.xls'; items are .csv, .parquet or .npy",
        ),
        (read_pairs, link, "{path} is not a regular file; save the table to one first"),
        (
            lambda path: read_items(items, path),
            tmp_path / "ids.csv",
            "{path} has the suffix '.csv'; ids of .npy features are .npy",
        ),
        (
            lambda path: read_items(path, tmp_path / "ids.npy"),
            tmp_path / "items.csv",
            "ids is for .npy features; {path} has its ids in the column 'id'",
        ),
    ):
        refused(read, path, message)


def test_rows_of_a_batch(tmp_path: Path) -> None:
    for read in (tables.iter_pairs, tables.iter_items):
        with pytest.raises(ValueError, match=r"^rows must be at least 1; got 0$"):
            read(tmp_path / "a.csv", 0)
