"""A model's place among the annotators of a project."""

from __future__ import annotations

import math
import secrets
import sqlite3
from typing import TYPE_CHECKING

from pairlearn.annotate import changes
from pairlearn.annotate.models.errors import ModelError
from pairlearn.annotate.models.filling import PairToJudge
from pairlearn.annotate.models.judging import Judgement
from pairlearn.annotate.records import Answer

if TYPE_CHECKING:
    from pairlearn.annotate.store import Store

__all__ = ["Seat"]

_WHO = "model"


class Seat:
    r"""An annotator without a link, to whom no pairs are assigned.

    It comes to be with its first judgement. Its name cannot be that of a person. People
    keep the pairs that are theirs; when pairs are next shared out, its answers count
    towards the overlap as everybody's do.

    Parameters
    ----------
    store : Store
        The answers of the project.
    name : str
        Of the annotator.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pairlearn.annotate.project import Plan, Project
    >>> from pairlearn.annotate.store import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.csv").write_text("id,size\na,1\nb,2\nc,3\n")
    ...     with Store.create(Project(Path(folder), "table", "items.csv", Plan(3))) as store:
    ...         seat = Seat(store, "small model")
    ...         pairs = seat.open_pairs()
    ...         seat.keep(pairs[0], Judgement(0.8, 0.1, 0.02, 0.99), seconds=1.0)
    ...         len(pairs), len(seat.open_pairs()), store.answers()[0].note
    (3, 2, 'understood 0.990, position bias +0.020')
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        for one in store.annotators():
            if one.name == name and one.origin != "model":
                raise ModelError(f"{name!r} is an annotator, and no model: give another --name")

    def open_pairs(self) -> list[PairToJudge]:
        """Pairs of the project that it has not judged, in their order."""
        done = {one.pair for one in self._store.answers() if one.annotator == self._name}
        return [
            PairToJudge(pair.id, pair.left, pair.right)
            for pair in self._store.pairs()
            if pair.id not in done
        ]

    def keep(self, pair: PairToJudge, judgement: Judgement, seconds: float) -> None:
        """Put a judgement on disk; one that is there already stays."""
        note = f"understood {judgement.mass:.3f}"
        if not math.isnan(judgement.bias):
            note += f", position bias {judgement.bias:+.3f}"
        silent = judgement.cant_say
        answer = Answer(
            similarity=None if silent else judgement.similarity,
            difference=None if silent else judgement.difference,
            cant_say=silent,
            note=note,
            seconds=seconds,
            key=secrets.token_hex(8),
        )
        self._store.carry_out(lambda connection: self._write(connection, pair.pair, answer))

    def _write(self, connection: sqlite3.Connection, pair: int, answer: Answer) -> None:
        found = connection.execute(
            "SELECT id FROM annotator WHERE name = ?", (self._name,)
        ).fetchone()
        if found is None:
            ((added, _),) = changes.add_annotators(connection, [self._name], _WHO)
            # Retired from the start: nobody can judge in its name, and it gets no pairs.
            changes.retire(connection, added.id, _WHO)
            number = added.id
        else:
            number = int(found[0])
        changes.assign_pair(connection, number, pair)
        (before,) = connection.execute(
            "SELECT answer FROM assignment WHERE annotator = ? AND pair = ?", (number, pair)
        ).fetchone()
        if before is None:  # else another run was faster
            changes.keep(connection, number, pair, answer, _WHO)
