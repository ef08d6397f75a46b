"""``Items.open``: a table of items in the studio; "P" first makes it Parquet."""

from __future__ import annotations

from typing import Any

from fuzz.sandbox import attempt, folder, same
from fuzz.table_property import CSV_WORDS
from pairlearn.studio.items import Items
from pairlearn.studio.project import Plan, Project, ProjectError

WORDS = [*CSV_WORDS, b"id", b"name", b"x0", b"\0", b"1", b"2.5"]


def one_input(data: bytes) -> Any:
    place = folder("studio_items")
    name = "items.parquet" if data[:1] == b"P" else "items.csv"
    path = place / name
    path.write_bytes(data)
    project = Project(place, "table", name, Plan(1))
    found = attempt(lambda: Items.open(project), path, ProjectError)
    if not isinstance(found, str):
        widths = {len(found.view(one).rows) for one in found.ids}
        same(len(widths), 1, "columns")
        same(len(set(found.ids)), len(found), "ids")
    path.unlink()
    return found
