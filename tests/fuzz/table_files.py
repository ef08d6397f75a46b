"""Harnesses for files of pairs, items and known classes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.sandbox import READERS, Broken, Harness, attempt, folder, harness, same
from pairlearn.io import (
    ItemEncoder,
    ItemTable,
    TableError,
    iter_items,
    read_items,
    read_pairs,
    write_items,
    write_pairs,
)
from pairlearn.io.item_files import join_batches
from pairlearn.io.pairs import read_labelled
from pairlearn.judgements import Judgements

TABLES: dict[str, Any] = {
    "pairs": (read_pairs, None, write_pairs),
    "items": (read_items, iter_items, write_items),
}
PAIRS = b"left right similarity difference preference weight annotator 0.5 1 -1".split()
ITEMS = b"id x0 x1 0.5 -1 7 1e39".split()
CSV = [b",", b"\n", b"\r\n", b'"', b'""', b"\xef\xbb\xbf", b"nan", b"1e400", b"007"]
NPY = [b"'descr'", b"'shape'", b"'fortran_order'", b"True", b"'<f8'", b"'>i2'", b"'<U3'"]
NPY += [b"'|O'", b"'|b1'", b"'<U0'", b"('<f4', (2,))", b"[('a', '<f4')]", b"(1, 2)", b"(0, 9)"]
NPY += [b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"-1", b"9" * 20]


def read_table(what: str, suffix: str, data: bytes) -> Any:
    """Read a file whole and, if of items, as a stream; both agree, and it round-trips."""
    place = folder(f"{what}{suffix}")
    path = place / f"{what}{suffix}"
    path.write_bytes(data)
    read, stream, write = TABLES[what]
    table = attempt(lambda: read(path), path, TableError)
    if what == "pairs":
        if isinstance(table, Judgements):
            same(rebuilt(table), table, "checked once more")
            same(read(write(table, place.parent / f"copy{suffix}")), table, "written and read")
        return table
    options = {}
    if isinstance(table, ItemTable) and suffix != ".npy":
        options["columns"] = table.encoder or ItemEncoder.of_numbers(table.names)
    batches = attempt(lambda: list(stream(path, 3, **options)), path, TableError)
    if isinstance(table, str):
        # A stream forgets earlier batches, and so cannot notice an id that occurs twice, or a
        # column that looks like one.
        unnoticed = ("ids are unique", "cannot be learnt from")
        if not isinstance(batches, str) and not any(words in table for words in unnoticed):
            raise Broken(f"read as a stream, but not whole: {table}")
        return table
    same(join_batches(batches), table, "as a stream")
    if table.encoder is None:
        same(rebuilt(table), table, "checked once more")
        if suffix != ".npy":
            copy = place.parent / f"copy{suffix}"
            same(read(write(table, copy)), table, "written and read")
    return table


def rebuilt(table: Any) -> Any:
    """The same table through its public constructor, which checks everything."""
    for column in vars(table).values():
        if isinstance(column, np.ndarray):
            column.tolist()  # numpy can hold text that Python cannot
    if isinstance(table, ItemTable):
        if table.features.dtype != np.float32 or table.ids.dtype.kind not in "iU":
            raise Broken(f"types {table.features.dtype}, {table.ids.dtype}")
        return ItemTable(table.ids, table.features, table.names)
    return read_pairs(table.columns())


for what, suffix, words in (
    ("pairs", ".csv", PAIRS + CSV),
    ("pairs", ".parquet", PAIRS),
    ("items", ".csv", ITEMS + CSV),
    ("items", ".parquet", ITEMS),
    ("items", ".npy", NPY),
):
    READERS[f"{what}_{suffix[1:]}"] = Harness(partial(read_table, what, suffix), words)


@harness(NPY)
def npy_ids(data: bytes) -> Any:
    """Ids beside a file of features."""
    place = folder("npy_ids")
    features, path = place / "x.npy", place / "ids.npy"
    np.save(features, np.arange(6.0).reshape(3, 2))
    path.write_bytes(data)
    items = attempt(lambda: read_items(features, path), path, TableError)
    batches = attempt(lambda: list(iter_items(features, 2, path)), path, TableError)
    if not isinstance(items, str):
        same(join_batches(batches), items, "as a stream")
        same(rebuilt(items), items, "checked once more")
        copy = place.parent / "copy.npy"
        np.save(copy, items.ids)
        same(read_items(features, copy), items, "written and read")
    return items


def written(name: str, data: bytes) -> Path:
    """Write a file with these bytes: Parquet if the first is "P", else CSV."""
    path = folder(name) / ("file.parquet" if data[:1] == b"P" else "file.csv")
    path.write_bytes(data)
    return path


CLASSIFIED = ItemTable(["1", "2", "3", "spam", "é", "-1", "0"], np.zeros((7, 1)))


@harness([*CSV, b"id", b"class", b"spam", b"ham", b"-1", b"0"])
def known_classes(data: bytes) -> Any:
    path = written("known_classes", data)
    outcomes = [
        attempt(partial(read_labelled, path, CLASSIFIED, positive), path, ValueError)
        for positive in (None, "spam", "1")
    ]
    for labelled in outcomes:
        if isinstance(labelled, tuple):
            check_classes(*labelled, path.parent.parent / "copy.csv")
    path.unlink()
    return outcomes


def check_classes(labels: Judgements, classes: Any, copy: Path) -> None:
    rows, positive = labels.ends[:, 0], labels.u
    if len(classes) != 2 or classes[0] == classes[1]:
        raise Broken(f"the classes are {classes}")
    if len(rows) != len(positive) or len(set(rows.tolist())) != len(rows):
        raise Broken(f"rows {rows}, positive {positive}")
    names = classes[positive.astype(int)]
    if '"' not in str(classes) and len(set(names.tolist())) == 2:
        lines = [f'{id_},"{label}"' for id_, label in zip(CLASSIFIED.ids[rows], names, strict=True)]
        copy.write_text("\n".join(["id,class", *lines]) + "\n", "utf-8")
        again, _ = read_labelled(copy, CLASSIFIED, str(classes[1]))
        same(again.ends.tolist(), labels.ends.tolist(), "written and read")
        same(again.u.tolist(), positive.tolist(), "written and read")
