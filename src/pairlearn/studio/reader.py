"""What the file of answers tells: every question that changes nothing, from any thread."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import statistics
import threading
import weakref
from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any, get_args

import msgspec

from pairlearn.studio.items import Items
from pairlearn.studio.overview import (
    AnnotatorOverview,
    Quality,
    crowd_of,
    overview_of,
    quality_of,
)
from pairlearn.studio.project import Project
from pairlearn.studio.records import (
    Annotator,
    Change,
    Known,
    Mixed,
    Origin,
    Pair,
    Progress,
    StoredAnswer,
)
from pairlearn.studio.store_file import connect, reading

RECENT = 50
"""Answers that the pace is taken from."""
OTHERS = "statement"
"""The table of what answers say in further columns; it is there from the first such answer on."""
ADJUDICATOR = "adjudicator"
"""The setting with the name under which the supervisor settles pairs."""
MIXED = "mixed in"
"""The setting with the known pairs and repeats."""
STANDING = "assignment a JOIN answer x ON x.id = a.answer"
"""The answers that stand."""
THEIRS = f"(SELECT x.* FROM {STANDING} WHERE a.annotator = ? AND a.pair = ?) x"
"""The answer of one annotator to one pair."""
_FIELDS = tuple(one.name for one in fields(StoredAnswer))
_COLUMNS = {"annotator": "n.name", "left": "p.left", "right": "p.right", "weight": "p.weight"}


def token_hash(token: str) -> bytes:
    """The digest kept of a token: enough to recognise it, too little to forge it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Rows(ABC):
    """Questions to the file of answers."""

    @abstractmethod
    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query finds."""

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        return next(iter(self.rows(query, *values)), None)

    def setting(self, name: str) -> str | None:
        """A setting of the project, if there is one."""
        found = self.first("SELECT value FROM setting WHERE name = ?", name)
        return None if found is None else str(found[0])

    @property
    def adjudicator(self) -> str | None:
        """The name under which the supervisor settles pairs, if any was."""
        return self.setting(ADJUDICATOR)

    def standing(self) -> int:
        """How many answers stand."""
        return int(self.rows("SELECT count(answer) FROM assignment")[0][0])

    def find_answers(self, source: str, *values: object) -> list[StoredAnswer]:
        """The answers of a part of a query, such as `STANDING`, in the order of being given."""
        others, more = "NULL", ""
        if self.first("SELECT 1 FROM sqlite_master WHERE name = ?", OTHERS):
            others, more = "o.said", f"LEFT JOIN {OTHERS} o ON o.answer = x.id"
        columns = _COLUMNS | {"others": others}
        query = (
            f"SELECT {', '.join(columns.get(name, f'x.{name}') for name in _FIELDS)} FROM {source} "
            f"JOIN annotator n ON n.id = x.annotator JOIN pair p ON p.id = x.pair {more} "
            "ORDER BY x.id"
        )
        found = []
        for row in self.rows(query, *values):
            said = dict(zip(_FIELDS, row, strict=True))
            others = said["others"]
            said["others"] = msgspec.json.decode(others, type=dict[str, float]) if others else {}
            said["cant_say"] = bool(said["cant_say"]) and not others
            found.append(StoredAnswer(**said))
        return found


class StoreReader(Rows):
    """Every question to the answers that changes nothing; each thread has its own connection."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._local = threading.local()
        self._readers: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        self._guard = threading.Lock()

    def annotators(self) -> list[Annotator]:
        """All of them, those that retired too, in the order of joining."""
        rows = self.rows(
            "SELECT n.id, n.name, n.retired_at IS NULL, c.who FROM annotator n LEFT JOIN change c "
            "ON c.annotator = n.id AND c.action = 'annotator added' ORDER BY n.id"
        )
        return [
            Annotator(number, name, bool(active), who if who in get_args(Origin) else "person")
            for number, name, active, who in rows
        ]

    def by_token(self, token: str) -> Annotator | None:
        """Whose token this is; None if nobody's.

        The file is searched for its hash: how long that takes tells nothing about the tokens.
        """
        query = "SELECT id, name FROM annotator WHERE token_hash = ? AND retired_at IS NULL"
        found = self.first(query, token_hash(token))
        return None if found is None else Annotator(*found)

    def is_supervisor(self, token: str) -> bool:
        """Whether this is the supervisor's token."""
        return hmac.compare_digest(token_hash(token).hex(), self.setting("supervisor") or "")

    def link_of(self, annotator_id: int) -> Any:
        """What tells somebody's link from another (0: the supervisor's); None if it has ended."""
        if annotator_id == 0:
            return self.setting("supervisor")
        link = "SELECT token_hash FROM annotator WHERE id = ? AND retired_at IS NULL"
        found = self.first(link, annotator_id)
        return found and found[0]

    def current(self, annotator_id: int, pair: int) -> StoredAnswer | None:
        """Their answer to a pair as it stands, or None."""
        return next(iter(self.find_answers(THEIRS, annotator_id, pair)), None)

    def progress(self, annotator_id: int) -> Progress:
        """How far they are, how fast (by the median of their last answers), how long still."""
        done, total = self._counts(annotator_id)
        recent = "SELECT seconds FROM answer WHERE annotator = ? ORDER BY id DESC LIMIT ?"
        seconds = [row[0] for row in self.rows(recent, annotator_id, RECENT)]
        typical = statistics.median(seconds) if seconds else 0.0
        if typical <= 0:
            return Progress(done, total, None, None)
        return Progress(done, total, 3600 / typical, (total - done) * typical)

    def answers(self, current: bool = True) -> list[StoredAnswer]:
        """All answers that stand; with ``current=False`` also those revised or withdrawn."""
        return self.find_answers(STANDING if current else "answer x")

    def history(self, annotator_id: int | None = None, pair: int | None = None) -> list[Change]:
        """Every change, or those of one annotator or pair, in order."""
        rows = self.rows(
            "SELECT c.id, c.at, c.who, c.action, n.name, c.pair, c.before, c.after, c.detail "
            "FROM change c LEFT JOIN annotator n ON n.id = c.annotator "
            "WHERE (?1 IS NULL OR c.annotator = ?1) AND (?2 IS NULL OR c.pair = ?2) ORDER BY c.id",
            annotator_id,
            pair,
        )
        return [Change(*row) for row in rows]

    def complete(self) -> bool:
        """Whether each pair of the plan has as many answers as it needs, or was settled."""
        lacking = self.first(
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
        return int(self.rows("SELECT max(id) FROM change")[0][0])

    def created_at(self) -> str:
        """When the project was made."""
        return str(self.rows("SELECT at FROM change WHERE id = 1")[0][0])

    def practised(self, annotator_id: int) -> list[str]:
        """Their practice in order: "right", "wrong", and "done" where they could begin."""
        query = "SELECT detail FROM change WHERE annotator = ? AND action = 'practised' ORDER BY id"
        return [row[0] for row in self.rows(query, annotator_id)]

    @cached_property
    def items(self) -> Items:
        """The items of the project."""
        return Items.open(self.project)

    def pairs(self) -> list[Pair]:
        """All pairs, in the order in which they are judged; not what is said of one item."""
        rows = self.rows(
            "SELECT id, left, right, weight, origin FROM pair WHERE right <> '' ORDER BY id"
        )
        return [Pair(*row) for row in rows]

    @cached_property
    def mixed(self) -> Mixed:
        """The known pairs and the repeats."""
        return Mixed.read(self.setting(MIXED))

    @property
    def known(self) -> dict[int, Known]:
        """The checks, by the numbers of their pairs."""
        return self.mixed.pairs

    @property
    def repeats(self) -> dict[int, int]:
        """Pairs of the plan, by the numbers of their repeats the other way round."""
        return self.mixed.repeats

    @cached_property
    def mixed_in(self) -> frozenset[int]:
        """Those among both that are not of the plan: their answers are no random sample."""
        drawn = {pair.id for pair in self.pairs() if pair.origin != "import"} if self.known else ()
        return frozenset({*self.known, *self.repeats}.difference(drawn))

    def quality(self) -> dict[str, Quality]:
        """How good the answers of everybody are, by simple rules."""
        return quality_of(self.answers(), self.known, self.project.levels, self.repeats)

    def overview(self, *, manners: bool = True) -> list[AnnotatorOverview]:
        """Speed, drift and infeasible share of each annotator, and how they answer.

        The last takes seconds to learn, and may be left out.
        """
        totals = {one: self._counts(one.id)[1] for one in self.annotators()}
        answers = self.answers()
        return overview_of(answers, totals, crowd_of(answers if manners else []))

    def find_answers(self, source: str, *values: object) -> list[StoredAnswer]:
        """As `Rows.find_answers`; damage is told."""
        with reading(self.project.store_path):
            return super().find_answers(source, *values)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query finds, by the connection of this thread."""
        with reading(self.project.store_path):
            return self._reader().execute(query, values).fetchall()

    def _reader(self) -> sqlite3.Connection:
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = connect(self.project.store_path)
            self._local.reader = reader
            with self._guard:
                self._readers.add(reader)
        return reader

    def _counts(self, annotator_id: int) -> tuple[int, int]:
        """Answered and all pairs of an annotator."""
        query = "SELECT count(answer), count(*) FROM assignment WHERE annotator = ?"
        ((done, total),) = self.rows(query, annotator_id)
        return int(done), int(total)

    def close(self) -> None:
        """Let the file go."""
        with self._guard:
            for reader in list(self._readers):
                reader.close()
            self._readers.clear()
