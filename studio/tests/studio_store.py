"""A small project with its store, for the tests of the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from pairlearn_studio import Answer, Plan, Project, Receipt, Store, StoredAnswer


def make(folder: Path, items: int = 8, pairs: int = 12, **words: Any) -> Project:
    folder.mkdir(exist_ok=True)
    rows = "".join(f"i{k},{k}\n" for k in range(items))
    (folder / "items.csv").write_text(f"id,x\n{rows}")
    project = Project(folder, "table", "items.csv", Plan(pairs), **words)
    project.save()
    return project


def submit(
    store: Store, who: int, pair: int, key: str = "k", similarity: float | None = 0.5, **rest: Any
) -> Receipt:
    """Submit an answer, and wait until it is on disk."""
    return store.submit(who, pair, Answer(similarity, key=key, **rest)).result()


def stored(
    who: str, pair: int, s: float | None, c: float | None = None, number: int = 1, **rest: Any
) -> StoredAnswer:
    """An answer as the store returns it."""
    rest = {"left": str(pair), "right": str(pair + 10), "seconds": 5.0, "at": ""} | rest
    return StoredAnswer(s, c, id=number, annotator=who, pair=pair, revision=1, **rest)


def free_pairs(store: Store) -> list[tuple[str, str]]:
    """Pairs of the items that are not in the store, in either direction."""
    taken = {frozenset((pair.left, pair.right)) for pair in store.pairs()}
    ends = combinations(store.items.ids, 2)
    return [pair for pair in ends if frozenset(pair) not in taken]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of a query by plain SQLite, independent of our code."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


class Change(NamedTuple):
    """A line of the history of the answers."""

    who: str
    action: str
    pair: int | None
    before: int | None
    after: int | None


def history(store: Store, pair: int | None = None) -> list[Change]:
    """All changes, or those of one pair, in order."""
    rows = store.rows("SELECT who, action, pair, before, after FROM change ORDER BY id")
    changes = [Change(*row) for row in rows]
    return [change for change in changes if pair in (None, change.pair)]
