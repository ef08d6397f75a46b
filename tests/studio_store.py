"""A small project with its store, for the tests of the store."""

from __future__ import annotations

import sqlite3
from itertools import combinations
from pathlib import Path
from typing import Any

from pairlearn.studio import Answer, Plan, Project, Store, StoredAnswer


def make(folder: Path, items: int = 8, pairs: int = 12, **words: Any) -> Project:
    folder.mkdir(exist_ok=True)
    rows = "".join(f"i{k},{k}\n" for k in range(items))
    (folder / "items.csv").write_text(f"id,x\n{rows}")
    plan = Plan(pairs, mode=words.pop("mode", "uniform"))
    project = Project(folder, "table", "items.csv", plan, **words)
    project.save()
    return project


def said(key: str, similarity: float | None = 0.5, **rest: Any) -> Answer:
    return Answer(similarity, key=key, **rest)


def stored(
    who: str, pair: int, s: float | None, c: float | None = None, number: int = 1, **rest: Any
) -> StoredAnswer:
    """An answer as the store gives it."""
    words: dict[str, Any] = {
        "left": str(pair), "right": str(pair + 10), "preference": 0, "cant_say": False, "note": "",
        "seconds": 5.0, "at": "", "revision": 1,
    }  # fmt: skip
    return StoredAnswer(
        id=number, annotator=who, pair=pair, similarity=s, difference=c, **(words | rest)
    )


def free_pairs(store: Store) -> list[tuple[str, str]]:
    """Pairs of the items that are not in the store, in either direction."""
    taken = {frozenset((one.left, one.right)) for one in store.pairs()}
    ends = combinations(store.items.ids, 2)
    return [pair for pair in ends if frozenset(pair) not in taken]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a program that knows nothing of ours reads from the file."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
