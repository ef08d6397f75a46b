"""Files of items whose class is known, ``id`` and ``class``, and of shares of groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Ids, TableError, check_unique, find_rows, placed, shown
from pairlearn.judgements import Judgements
from pairlearn.tables.items import ItemTable
from pairlearn.tables.sources import Source, open_source

__all__ = ["Labelled", "read_groups", "read_labelled"]

USUAL = ((-1, 1), (0, 1))


@dataclass(frozen=True)
class Labelled:
    """Items of known class: which ``rows``, whether they are ``positive``, and the two classes.

    The positive class is the last one.
    """

    rows: NDArray[np.int64]
    positive: NDArray[np.bool_]
    classes: NDArray[Any]


def read_labelled(path: Path, items: ItemTable, positive: str | None = None) -> Labelled:
    """Read the classes of some items: columns ``id`` and ``class`` of a CSV or Parquet file.

    Classes are two whole numbers, of which the larger one is positive by default, or two words.
    """
    source, columns = _columns(path, "labelled items", {"id": "id", "class": "id"})
    ids, said = columns["id"], columns["class"]
    with placed(source.place):
        check_unique("id", ids)
    rows = find_rows(ids, items.ids)
    if (rows < 0).any():
        row = int((rows < 0).argmax())
        raise TableError(f"{source.place(row)}: id {shown(ids[row].item())} is not among the items")
    classes = _classes(path, said, positive)
    return Labelled(rows, np.asarray(said == classes[1]), classes)


def read_groups(path: Path, items: Path) -> Judgements:
    """Read how many items of each group are positive.

    ``path`` has the columns ``group``, ``share`` and perhaps ``uncertainty``, the standard error
    of the share; ``items`` has a column ``group``.
    """
    _, member = _columns(items, "items", {"group": "text"})
    wanted = {"group": "text", "share": "number", "uncertainty": "number"}
    if "uncertainty" not in open_source(path, "groups").names:
        wanted.pop("uncertainty")
    _, said = _columns(path, "groups", wanted)
    errors = np.nan_to_num(said.get("uncertainty", np.zeros(len(said["share"]))))
    stated = zip(said["share"].tolist(), errors.tolist(), strict=True)
    return Judgements.in_groups(
        member["group"], dict(zip(said["group"].tolist(), stated, strict=True))
    )


def _columns(path: Path, what: str, wanted: dict[str, Any]) -> tuple[Source, dict[str, Any]]:
    """A file, and these of its columns."""
    source = open_source(path, what)
    for name in wanted:
        if name not in source.names:
            found = ", ".join(map(shown, source.names[:8]))
            raise TableError(f"{source.path}: no column {name!r}; the columns are {found}")
    return source, source.whole(wanted)


def _classes(path: Path, said: Ids, positive: str | None) -> NDArray[Any]:
    """The negative and the positive class."""
    found = np.unique(said).tolist()
    if len(found) > 2:
        listed = ", ".join(shown(name) for name in found[:5])
        raise TableError(f"{path}: the column 'class' has {len(found)} classes, {listed}; give two")
    if len(found) == 1 and said.dtype.kind == "i":
        usual = [pair for pair in USUAL if found[0] in pair]
        found = list(usual[0]) if usual else found
    if len(found) == 1:
        raise TableError(
            f"{path}: all items are of the class {shown(found[0])}: give items of both classes"
        )
    if positive is None:
        if said.dtype.kind != "i":
            raise ValueError(
                f"{path}: the classes are {shown(found[0])} and {shown(found[1])}: say which one "
                f"is positive, as in --positive {found[1]}"
            )
        return np.array(found)
    named = [str(name) for name in found]
    if positive not in named:
        raise ValueError(
            f"--positive {positive} is not in {path}: the classes are {named[0]} and {named[1]}"
        )
    return np.array(found[::-1] if positive == named[0] else found)
