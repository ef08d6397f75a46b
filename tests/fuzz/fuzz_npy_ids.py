"""``read_items`` on .npy features with a .npy file of ids; two files in an input."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.fuzz_items_npy import WORDS as WORDS
from fuzz.sandbox import attempt, folder, same
from fuzz.table_property import rebuilt
from pairlearn.tables import TableError, iter_items, read_items


def one_input(data: bytes) -> Any:
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
