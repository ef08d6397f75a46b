"""Files of pairs, of items, of known classes and of win probabilities, whatever their bytes are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fuzz.sandbox import READERS, Broken, Harness, attempt, folder, harness, same
from pairlearn.studio.exchange import judgements_of, read_preferences
from pairlearn.tables import (
    ItemEncoder,
    ItemTable,
    PairTable,
    TableError,
    iter_items,
    iter_pairs,
    read_items,
    read_pairs,
    sources,
    write_items,
    write_pairs,
)
from pairlearn.tables.read import Labelled, read_labelled

TABLES: dict[str, Any] = {
    "pairs": (read_pairs, iter_pairs, write_pairs),
    "items": (read_items, iter_items, write_items),
}
PAIRS = b"left right similarity difference preference weight annotator 0.5 1 -1".split()
ITEMS = b"id x0 x1 0.5 -1 7 1e39".split()
CSV = [b",", b"\n", b"\r\n", b'"', b'""', b"\xef\xbb\xbf", b"nan", b"1e400", b"007"]
NPY = [b"'descr'", b"'shape'", b"'fortran_order'", b"True", b"'<f8'", b"'>i2'", b"'<U3'"]
NPY += [b"'|O'", b"'|b1'", b"'<U0'", b"('<f4', (2,))", b"[('a', '<f4')]", b"(1, 2)", b"(0, 9)"]
NPY += [b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"-1", b"9" * 20]


def table(what: str, suffix: str, data: bytes) -> Any:
    """Read a file whole, as a stream and without pyarrow; they agree, and it comes back equal."""
    place = folder(f"{what}{suffix}")
    path = place / f"{what}{suffix}"
    path.write_bytes(data)
    read, stream, write = TABLES[what]
    found = attempt(lambda: read(path), path, TableError)
    if suffix == ".csv":
        with mock.patch.multiple(sources, _plain_columns=lambda *_: None, BATCH=5):
            same(attempt(lambda: read(path), path, TableError), found, "without pyarrow")
        with mock.patch.object(sources, "BLOCK", 64):
            same(attempt(lambda: read(path), path, TableError), found, "in small blocks")
    known = {}
    if isinstance(found, ItemTable) and suffix != ".npy":
        known["columns"] = found.encoder or ItemEncoder.of_numbers(found.names)
    batches = attempt(lambda: list(stream(path, 3, **known)), path, TableError)
    if isinstance(found, str):
        # A stream keeps nothing of earlier batches, so it cannot know an id that comes twice,
        # nor a column that looks like one.
        whole = ("ids are unique", "cannot be learnt from")
        if what == "pairs":
            same(batches, found, "as a stream")
        elif not isinstance(batches, str) and not any(words in found for words in whole):
            raise Broken(f"read as a stream, but not whole: {found}")
        return found
    same(type(found).concatenate(batches), found, "as a stream")
    if isinstance(found, ItemTable) and found.encoder is not None:
        return found
    same(rebuilt(found), found, "checked once more")
    copy = place.parent / f"copy{suffix}"
    same(read(write(found, copy)), found, "written and read")
    return found


def rebuilt(found: Any) -> Any:
    """The same table through its public constructor, which checks everything."""
    for column in vars(found).values():
        if isinstance(column, np.ndarray):
            column.tolist()  # numpy keeps text that Python cannot
    if isinstance(found, ItemTable):
        if found.features.dtype != np.float32 or found.ids.dtype.kind not in "iU":
            raise Broken(f"types {found.features.dtype}, {found.ids.dtype}")
        return ItemTable(found.ids, found.features, found.names)
    return PairTable(**found.columns())


for what, suffix, words in (
    ("pairs", ".csv", PAIRS + CSV),
    ("pairs", ".parquet", PAIRS),
    ("items", ".csv", ITEMS + CSV),
    ("items", ".parquet", ITEMS),
    ("items", ".npy", NPY),
):
    READERS[f"{what}_{suffix[1:]}"] = Harness(partial(table, what, suffix), words)


@harness(NPY)
def npy_ids(data: bytes) -> Any:
    """Ids beside a file of features."""
    place = folder("npy_ids")
    np.save(place / "x.npy", np.arange(6.0).reshape(3, 2))
    path = place / "ids.npy"
    path.write_bytes(data)
    found = attempt(lambda: read_items(place / "x.npy", path), path, TableError)
    batches = attempt(lambda: list(iter_items(place / "x.npy", 2, path)), path, TableError)
    if not isinstance(found, str):
        same(type(found).concatenate(batches), found, "as a stream")
        same(rebuilt(found), found, "checked once more")
        np.save(place.parent / "copy.npy", found.ids)
        same(read_items(place / "x.npy", place.parent / "copy.npy"), found, "written and read")
    return found


def written(name: str, data: bytes) -> Path:
    """A file with these bytes, as CSV; "P" first makes it Parquet."""
    path = folder(name) / ("file.parquet" if data[:1] == b"P" else "file.csv")
    path.write_bytes(data)
    return path


@harness([*CSV, b"left", b"right", b"p", b"similarity", b"annotator", b"0.5", b"1"])
def preferences(data: bytes) -> Any:
    path = written("preferences", data)
    outcomes = [
        attempt(partial(read_preferences, path, "p", reading), path, TableError)
        for reading in ("ties-half", "given-different", "side-only")
    ]
    for found in outcomes:
        if not isinstance(found, str):
            stated = ~np.isnan([*found.statements().values()])
            found = found[stated.any(0)]
            same(rebuilt(found), found, "checked once more")
            copy = write_pairs(found, path.parent.parent / "copy.parquet")
            same(read_pairs(copy), found, "written and read")
            if found.annotator is None:
                same(len(judgements_of(found, "ann")), len(found), "judgements")
    path.unlink()
    return outcomes


CLASSIFIED = ItemTable(["1", "2", "3", "spam", "é", "-1", "0"], np.zeros((7, 1)))


@harness([*CSV, b"id", b"class", b"spam", b"ham", b"-1", b"0"])
def known_classes(data: bytes) -> Any:
    path = written("known_classes", data)
    outcomes = [
        attempt(partial(read_labelled, path, CLASSIFIED, positive), path, ValueError)
        for positive in (None, "spam", "1")
    ]
    for found in outcomes:
        if isinstance(found, Labelled):
            check_classes(found, path.parent.parent / "copy.csv")
    path.unlink()
    return outcomes


def check_classes(found: Labelled, copy: Path) -> None:
    if len(found.classes) != 2 or found.classes[0] == found.classes[1]:
        raise Broken(f"the classes are {found.classes}")
    if len(found.rows) != len(found.positive) or len(set(found.rows.tolist())) != len(found.rows):
        raise Broken(f"rows {found.rows}, positive {found.positive}")
    said = found.classes[found.positive.astype(int)]
    lines = [f'{CLASSIFIED.ids[row]},"{name}"' for row, name in zip(found.rows, said, strict=True)]
    if '"' not in str(found.classes) and len(set(said.tolist())) == 2:
        copy.write_text("\n".join(["id,class", *lines]) + "\n", "utf-8")
        again = read_labelled(copy, CLASSIFIED, str(found.classes[1]))
        same(again.rows.tolist(), found.rows.tolist(), "written and read")
        same(again.positive.tolist(), found.positive.tolist(), "written and read")
