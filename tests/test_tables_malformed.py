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

from pairlearn import tables
from pairlearn.tables import ItemTable, PairTable, TableError, read_items, read_pairs, sources

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


@every("pairs.csv", "items.csv", "pairs.parquet", "items.parquet", "items.npy")
def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, name: str) -> None:
    """Whole, as a stream, and CSV also by the csv module alone."""
    data, message = cases(of)[name]
    path = tmp_path / of
    path.write_bytes(contents(data, path.suffix))
    read, stream = getattr(tables, f"read_{path.stem}"), getattr(tables, f"iter_{path.stem}")
    for way in range(1 + (path.suffix == ".csv")):
        if way:
            monkeypatch.setattr(sources, "_plain_columns", lambda *_: None)
        refused(read, path, message)
        if "ids are unique" not in message:  # a stream keeps nothing of earlier batches
            refused(lambda path: list(stream(path)), path, message)


@every("ids.npy")
def test_ids(tmp_path: Path, of: str, name: str) -> None:
    data, message = cases(of)[name]
    items, path = tmp_path / "items.npy", tmp_path / of
    np.save(items, np.zeros((2, 2)))
    path.write_bytes(contents(data, ".npy"))
    refused(lambda path: read_items(items, path), path, message.replace("{items}", str(items)))


@every("arrays")
def test_arrays(of: str, name: str) -> None:
    expression, message = cases(of)[name]
    refused(lambda _: eval(expression, KNOWN), Path(), message)


@pytest.mark.parametrize("way", ["pyarrow", "csv module"])
def test_an_error_far_down_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Rows of several batches lie before it, and worse values in other columns after it."""
    if way == "csv module":
        monkeypatch.setattr(sources, "_plain_columns", lambda *_: None)
    lines = [b"%d,%d,0.5,0.1" % (row, row + 1) for row in range(30_000)]
    lines[20_000] = b"1,2,0.5,-2000"
    lines[20_001:20_004] = [b"1,2,2000,0", b",2,high,0", b"1,2"]
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"left,right,similarity,difference\n" + b"\n".join(lines))
    hint = "(noisy=True admits labels with noise)"
    message = f"{{path}}, row 20001: difference is -2000, outside [-1, 1] {hint}"
    refused(read_pairs, path, message)
    refused(lambda path: list(tables.iter_pairs(path, 100)), path, message)


def test_paths(tmp_path: Path) -> None:
    folder, link, items = tmp_path / "folder.csv", tmp_path / "null.csv", tmp_path / "items.npy"
    folder.mkdir()
    link.symlink_to("/dev/null")
    np.save(items, np.zeros((2, 2)))
    pairs_are = "pairs are .csv or .parquet"
    for read, path, message in (
        (read_pairs, folder, "{path} is a folder; give a file"),
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
