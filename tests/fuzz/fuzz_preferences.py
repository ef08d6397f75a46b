"""``read_preferences``: tables of win probabilities; "P" first makes it Parquet."""

from __future__ import annotations

from functools import partial
from typing import Any

from fuzz.sandbox import attempt, folder, same
from fuzz.table_property import CSV_WORDS, rebuilt
from pairlearn.studio.exchange import judgements_of, read_preferences
from pairlearn.tables import TableError, read_pairs, write_pairs

WORDS = [*CSV_WORDS, b"left", b"right", b"p", b"similarity", b"annotator", b"0.5", b"1"]


def one_input(data: bytes) -> Any:
    place = folder("preferences")
    path = place / ("wins.parquet" if data[:1] == b"P" else "wins.csv")
    path.write_bytes(data)
    outcomes = [
        attempt(partial(read_preferences, path, "p", reading), path, TableError)
        for reading in ("ties-half", "given-different", "side-only")
    ]
    for found in outcomes:
        if not isinstance(found, str):
            same(rebuilt(found), found, "checked once more")
            copy = write_pairs(found, place.parent / "copy.parquet")
            same(read_pairs(copy), found, "written and read")
            if found.annotator is None:
                same(len(judgements_of(found, "ann")), len(found), "judgements")
    path.unlink()
    return outcomes
