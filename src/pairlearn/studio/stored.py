"""What the file of answers tells: every question that changes nothing, from any thread."""

from __future__ import annotations

import hmac
import sqlite3
import statistics
import threading
import weakref
from functools import cached_property
from typing import Any, get_args

from pairlearn.studio.changes import (
    ADJUDICATOR,
    STANDING,
    THEIRS,
    stored_answers,
    token_hash,
)
from pairlearn.studio.items import Items
from pairlearn.studio.known import SETTING, Known, Mixed
from pairlearn.studio.overview import Quality, quality_of
from pairlearn.studio.project import Project
from pairlearn.studio.records import Annotator, Change, Origin, Pair, Progress, StoredAnswer
from pairlearn.studio.store_file import connect, reading

RECENT = 50
"""Answers that the pace is taken from."""


class Stored:
    """The questions that `Store` answers; each thread reads by a connection of its own."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._local = threading.local()
        self._readers: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        self._guard = threading.Lock()

    def annotators(self) -> list[Annotator]:
        """All of them, those that retired too, in the order of joining."""
        rows = self._all(
            "SELECT n.id, n.name, n.retired_at IS NULL, c.who FROM annotator n LEFT JOIN change c "
            "ON c.annotator = n.id AND c.action = 'annotator added' ORDER BY n.id"
        )
        return [
            Annotator(number, name, bool(active), who if who in get_args(Origin) else "person")
            for number, name, active, who in rows
        ]

    def by_token(self, token: str) -> Annotator | None:
        """Whose token this is; None if nobody's.

        The file is searched for its hash, which nobody can steer: how long that takes
        tells nothing about the tokens.
        """
        digest = token_hash(token)
        found = self._one(
            "SELECT id, name, token_hash FROM annotator "
            "WHERE token_hash = ? AND retired_at IS NULL",
            digest,
        )
        if found is None or not hmac.compare_digest(digest, found[2]):
            return None
        return Annotator(found[0], found[1])

    def is_supervisor(self, token: str) -> bool:
        """Whether this is the supervisor's token."""
        return hmac.compare_digest(token_hash(token).hex(), self._setting("supervisor") or "")

    def link_of(self, annotator_id: int) -> Any:
        """What tells somebody's link from another (0: the supervisor's); None if it has ended."""
        if annotator_id == 0:
            return self._setting("supervisor")
        link = "SELECT token_hash FROM annotator WHERE id = ? AND retired_at IS NULL"
        found = self._one(link, annotator_id)
        return found and found[0]

    def current(self, annotator_id: int, pair: int) -> StoredAnswer | None:
        """Their answer to a pair as it stands, or None."""
        return next(iter(self._stored(THEIRS, annotator_id, pair)), None)

    def progress(self, annotator_id: int) -> Progress:
        """How far they are, how fast (by the median of their last answers), how long still."""
        done, total = self._counts(annotator_id)
        recent = "SELECT seconds FROM answer WHERE annotator = ? ORDER BY id DESC LIMIT ?"
        seconds = [row[0] for row in self._all(recent, annotator_id, RECENT)]
        typical = statistics.median(seconds) if seconds else 0.0
        if typical <= 0:
            return Progress(done, total, None, None)
        return Progress(done, total, 3600 / typical, (total - done) * typical)

    def answers(self, current: bool = True) -> list[StoredAnswer]:
        """All answers that stand; with ``current=False`` also those revised or withdrawn."""
        return self._stored(STANDING if current else "answer x")

    def history(self, annotator_id: int | None = None, pair: int | None = None) -> list[Change]:
        """Every change, or those of one annotator or pair, in order."""
        rows = self._all(
            "SELECT c.id, c.at, c.who, c.action, n.name, c.pair, c.before, c.after, c.detail "
            "FROM change c LEFT JOIN annotator n ON n.id = c.annotator "
            "WHERE (?1 IS NULL OR c.annotator = ?1) AND (?2 IS NULL OR c.pair = ?2) ORDER BY c.id",
            annotator_id,
            pair,
        )
        return [Change(*row) for row in rows]

    def complete(self) -> bool:
        """Whether each pair of the plan has as many answers as it needs, or was settled."""
        lacking = self._one(
            "SELECT 1 FROM pair p LEFT JOIN assignment a ON a.pair = p.id "
            "AND a.answer IS NOT NULL LEFT JOIN annotator n ON n.id = a.annotator "
            "WHERE p.origin <> 'import' GROUP BY p.id "
            "HAVING count(a.answer) < ? AND coalesce(max(n.name = ?), 0) = 0 LIMIT 1",
            self.project.overlap,
            self.adjudicator or "",
        )
        return lacking is None

    def latest(self) -> int:
        """The number of the last change."""
        return int(self._all("SELECT max(id) FROM change")[0][0])

    def created_at(self) -> str:
        """When the project was made."""
        return str(self._all("SELECT at FROM change WHERE id = 1")[0][0])

    @cached_property
    def items(self) -> Items:
        """The items of the project."""
        return Items.open(self.project)

    def pairs(self) -> list[Pair]:
        """All pairs, in the order in which they are judged; not what is said of one item."""
        rows = self._all(
            "SELECT id, left, right, weight, origin FROM pair WHERE right <> '' ORDER BY id"
        )
        return [Pair(*row) for row in rows]

    @cached_property
    def _mixed(self) -> Mixed:
        return Mixed.read(self._setting(SETTING))

    @cached_property
    def known(self) -> dict[int, Known]:
        """The checks, by the numbers of their pairs."""
        return self._mixed.known

    @cached_property
    def repeats(self) -> dict[int, int]:
        """Pairs of the plan, by the numbers of their repeats the other way round."""
        return self._mixed.originals

    @cached_property
    def mixed_in(self) -> frozenset[int]:
        """Those among both that are not of the plan: their answers are no random sample."""
        drawn = {pair.id for pair in self.pairs() if pair.origin != "import"} if self.known else ()
        return frozenset({*self.known, *self.repeats}.difference(drawn))

    def quality(self) -> dict[str, Quality]:
        """How good the answers of everybody are, by simple rules."""
        return quality_of(self.answers(), self.known, self.project.levels, self.repeats)

    @property
    def adjudicator(self) -> str | None:
        """The name under which the supervisor settles pairs, if any was."""
        return self._setting(ADJUDICATOR)

    def _stored(self, source: str, *values: object) -> list[StoredAnswer]:
        with reading(self.project.store_path):
            return stored_answers(self._reader(), source, *values)

    def _reader(self) -> sqlite3.Connection:
        """The reading connection of this thread."""
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = connect(self.project.store_path)
            self._local.reader = reader
            with self._guard:
                self._readers.add(reader)
        return reader

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with reading(self.project.store_path):
            return self._reader().execute(query, values).fetchall()

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        rows = self._all(query, *values)
        return rows[0] if rows else None

    def _setting(self, name: str) -> str | None:
        found = self._one("SELECT value FROM setting WHERE name = ?", name)
        return None if found is None else str(found[0])

    def _counts(self, annotator_id: int) -> tuple[int, int]:
        """Answered and all pairs of an annotator."""
        query = "SELECT count(answer), count(*) FROM assignment WHERE annotator = ?"
        ((done, total),) = self._all(query, annotator_id)
        return int(done), int(total)

    def _close_readers(self) -> None:
        with self._guard:
            for reader in list(self._readers):
                reader.close()
            self._readers.clear()
