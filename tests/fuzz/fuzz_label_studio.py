"""``read_label_studio``: exports of Label Studio, and their way into the store of a project."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.mutation import json_mutation
from fuzz.sandbox import Broken, attempt, folder, same
from pairlearn.studio.changes import Changes
from pairlearn.studio.exchange import Statement, _import
from pairlearn.studio.label_studio import LabelStudioError, LabelStudioExport, read_label_studio
from pairlearn.studio.store_file import StoreError, migrate

WORDS = [f'"{name}":'.encode() for name in ("similarity", "annotations", "result", "number")]
WORDS += [b'"annotation_id":', b'"left_id":', b'"cannot_say":', b'"Can\'t say"', b"null", b"[{"]
mutate = json_mutation


def one_input(data: bytes) -> LabelStudioExport | str:
    path = folder("label_studio") / "export.json"
    path.write_bytes(data)
    found = attempt(lambda: read_label_studio(path), path, LabelStudioError)
    if isinstance(found, str):
        return found
    again = read_label_studio(path)
    same(without_keys(again.judgements), without_keys(found.judgements), "read once more")
    for one in found.judgements:
        check(one)
    imported(found.judgements)
    return found


def check(one: Statement) -> None:
    answer = one.answer
    replace(answer)  # its checks run again
    given = (answer.similarity, answer.difference, answer.preference or None)
    if answer.cant_say != (given == (None, None, None)):
        raise Broken(f"{answer} says both something and nothing")
    if not (one.left and one.right and one.annotator and one.place):
        raise Broken(f"{one} has an empty field")


def imported(rows: list[Statement]) -> None:
    """Whatever was read goes into the store, or is refused by it."""
    connection = store()
    connection.execute("BEGIN")
    try:
        _import(Changes(connection, "import"), rows)
    except StoreError:
        pass
    finally:
        connection.execute("ROLLBACK")


@cache
def store() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path("memory"))
    return connection


def without_keys(rows: list[Statement]) -> list[Any]:
    return [replace(one, answer=replace(one.answer, key="k")) for one in rows]
