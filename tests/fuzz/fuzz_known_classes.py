"""``read_labelled``: files of items whose class is known; "P" first makes it Parquet."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fuzz.sandbox import Broken, attempt, folder, same
from fuzz.table_property import CSV_WORDS
from pairlearn.tables import ItemTable
from pairlearn.tables.read import Labelled, read_labelled

WORDS = [*CSV_WORDS, b"id", b"class", b"spam", b"ham", b"-1", b"0"]
ITEMS = ItemTable(["1", "2", "3", "spam", "é", "-1", "0"], np.zeros((7, 1)))


def one_input(data: bytes) -> Any:
    path = folder("known_classes") / ("known.parquet" if data[:1] == b"P" else "known.csv")
    path.write_bytes(data)
    outcomes = [
        attempt(partial(read_labelled, path, ITEMS, positive), path, ValueError)
        for positive in (None, "spam", "1")
    ]
    for found in outcomes:
        if isinstance(found, Labelled):
            check(found, data)
    path.unlink()
    return outcomes


def check(found: Labelled, data: bytes) -> None:
    if len(found.classes) != 2 or found.classes[0] == found.classes[1]:
        raise Broken(f"the classes are {found.classes}")
    if len(found.rows) != len(found.positive) or len(set(found.rows.tolist())) != len(found.rows):
        raise Broken(f"rows {found.rows}, positive {found.positive}")
    copy = folder("known_classes").parent / "copy.csv"
    said = found.classes[found.positive.astype(int)]
    lines = [f'{ITEMS.ids[row]},"{name}"' for row, name in zip(found.rows, said, strict=True)]
    if '"' in str(found.classes):
        return
    copy.write_text("\n".join(["id,class", *lines]) + "\n", "utf-8")
    if len(set(said.tolist())) == 2:
        again = read_labelled(copy, ITEMS, str(found.classes[1]))
        same(again.rows.tolist(), found.rows.tolist(), "written and read")
        same(again.positive.tolist(), found.positive.tolist(), "written and read")
