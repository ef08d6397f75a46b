"""What holds for a file of pairs or of items, whatever its bytes are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fuzz.sandbox import Broken, attempt, folder, same
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

READERS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Path]]] = {
    "pairs": (read_pairs, iter_pairs, write_pairs),
    "items": (read_items, iter_items, write_items),
}
WORDS = {
    "pairs": b"left right similarity difference preference weight annotator 0.5 1 -1".split(),
    "items": b"id x0 x1 0.5 -1 7 1e39".split(),
}
CSV_WORDS = [b",", b"\n", b"\r\n", b'"', b'""', b"\xef\xbb\xbf", b"nan", b"1e400", b"007"]


def table(what: str, suffix: str, data: bytes) -> Any:
    """Read a file whole, as a stream and without pyarrow; they agree, and it comes back equal."""
    place = folder(f"{what}{suffix}")
    path = place / f"{what}{suffix}"
    path.write_bytes(data)
    read, stream, write = READERS[what]
    found = attempt(lambda: read(path), path, TableError)
    if suffix == ".csv":
        with mock.patch.object(sources, "_plain_columns", lambda *_: None):
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
        if not isinstance(batches, str) and not any(words in found for words in whole):
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
