"""Queries to the file of answers, from any thread."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import statistics
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import msgspec

from pairlearn_studio.items import Items
from pairlearn_studio.overview import AnnotatorOverview, agreement, infeasible_rows, overview_of
from pairlearn_studio.project import Project
from pairlearn_studio.records import Annotator, Known, Pair, Progress, StoredAnswer
from pairlearn_studio.store_file import connect, file_errors

#: The last forecast of the server, in the project's folder.
FORECAST = "forecast.json"
#: Number of last answers that the pace is computed from.
RECENT = 50
#: Whether the link of an annotator works: it was neither ended nor has it expired.
LINKED = "(retired_at IS NULL AND coalesce(expires_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 1))"
#: Setting with the name under which the supervisor settles pairs.
ADJUDICATOR = "adjudicator"
#: Setting with the end of the supervisor's link, empty for never.
UNTIL = "supervisor until"
#: Setting with the checks that are mixed in, and their share.
CHECKS = "checks"
#: Answers that were neither revised nor withdrawn.
STANDING = "assignment a JOIN answer x ON x.id = a.answer"
#: The standing answer of one annotator to one pair.
THEIRS = f"(SELECT x.* FROM {STANDING} WHERE a.annotator = ? AND a.pair = ?) x"
#: Action in the history for a pair that a model could not judge.
SKIPPED = "skipped by a model"
#: Fields of an answer that are stored as JSON, or as "" where they are empty.
AS_JSON: dict[str, Any] = {
    "others": dict[str, float], "orders": tuple[tuple[float, float], ...],
    "classes": tuple[str, ...],
}  # fmt: skip
_FIELDS = tuple(field.name for field in fields(StoredAnswer))
_OF_PAIRS = ("left", "right", "about", "q")
_COLUMNS = {"annotator": "n.name"} | {name: f"p.{name}" for name in _OF_PAIRS}


def token_hash(token: str) -> bytes:
    """Digest of a token: enough to recognise it, too little to forge it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Queries(ABC):
    """Queries that readers and the writer share."""

    @abstractmethod
    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query."""

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """First row of a query, or None."""
        return next(iter(self.rows(query, *values)), None)

    def setting(self, name: str) -> str | None:
        """A setting of the project, or None."""
        row = self.first("SELECT value FROM setting WHERE name = ?", name)
        return None if row is None else str(row[0])

    @property
    def adjudicator(self) -> str | None:
        """Name under which the supervisor settles pairs; None if none was settled."""
        return self.setting(ADJUDICATOR)

    def planned(self) -> int:
        """Number of pairs of the plan."""
        return int(self.rows("SELECT count(*) FROM pair WHERE origin = 'plan'")[0][0])

    def find_pair(self, left: str, right: str, about: str | None) -> tuple[int, bool] | None:
        """Id of a pair in either direction, and whether it is stored in the other order."""
        query = (
            "SELECT id, left <> ?1 FROM pair WHERE ((left = ?1 AND right = ?2) "
            "OR (left = ?2 AND right = ?1)) AND about IS ?3 ORDER BY id"
        )
        row = self.first(query, left, right, about)
        return None if row is None else (int(row[0]), bool(row[1]))

    def checks(self, project: Project) -> dict[int, Known]:
        """The checks of a project by the ids of their pairs, in the direction of these."""
        checks = {}
        for check in project.known_for("check"):
            about = check.about if project.classes else None
            if (found := self.find_pair(check.left, check.right, about)) is not None:
                checks[found[0]] = check.swapped() if found[1] else check
        return checks

    def given(self) -> int:
        """Number of answers, also of those revised or withdrawn."""
        return int(self.rows("SELECT coalesce(max(id), 0) FROM answer")[0][0])

    def standing(self) -> int:
        """Number of standing answers."""
        return int(self.rows("SELECT count(answer) FROM assignment")[0][0])

    def find_answers(self, source: str, *values: object) -> list[StoredAnswer]:
        """Answers of a part of a query, such as `STANDING`, in the order of being given."""
        query = (
            f"SELECT {', '.join(_COLUMNS.get(name, f'x.{name}') for name in _FIELDS)} "
            f"FROM {source} JOIN annotator n ON n.id = x.annotator JOIN pair p ON p.id = x.pair "
            "ORDER BY x.id"
        )
        answers = []
        for row in self.rows(query, *values):
            answer = dict(zip(_FIELDS, row, strict=True))
            for name, kind in AS_JSON.items():
                text = answer[name]
                answer[name] = msgspec.json.decode(text, type=kind) if text else kind()
            answer["cant_say"] = bool(answer["cant_say"])
            stored = object.__new__(StoredAnswer)  # a third of the time: checked when stored
            stored.__dict__.update(answer)
            answers.append(stored)
        return answers


class StoreReader(Queries):
    """Read access to the answers of a project; each thread has its own connection."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._local = threading.local()
        self._readers: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        self._guard = threading.Lock()

    def annotators(self) -> list[Annotator]:
        """All annotators, retired ones too, in the order of joining."""
        rows = self.rows(
            f"SELECT id, name, {LINKED}, origin, expires_at, quota FROM annotator ORDER BY id"
        )
        return [Annotator(row[0], row[1], bool(row[2]), *row[3:]) for row in rows]

    def by_token(self, token: str) -> Annotator | None:
        """The annotator with this token, or None.

        The file is searched for its hash: the time that this takes reveals nothing about tokens.
        """
        query = f"SELECT id, name FROM annotator WHERE token_hash = ? AND {LINKED}"
        row = self.first(query, token_hash(token))
        return None if row is None else Annotator(*row)

    def has_ended(self, token: str) -> bool:
        """Whether this is the token of a link that was ended or has expired."""
        query = f"SELECT 1 FROM annotator WHERE token_hash = ? AND NOT {LINKED}"
        return self.first(query, token_hash(token)) is not None

    def is_supervisor(self, token: str) -> bool:
        """Whether this is the supervisor's token, and has not expired."""
        late = "value <> '' AND value <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
        if self.first(f"SELECT 1 FROM setting WHERE name = ? AND {late}", UNTIL):
            return False
        return hmac.compare_digest(token_hash(token).hex(), self.setting("supervisor") or "")

    def progress(self, annotator_id: int) -> Progress:
        """Pairs done, and the time left by the median of the last answers."""
        done, total = self._counts(annotator_id)
        recent = "SELECT seconds FROM answer WHERE annotator = ? ORDER BY id DESC LIMIT ?"
        seconds = [row[0] for row in self.rows(recent, annotator_id, RECENT)]
        typical = statistics.median(seconds) if seconds else 0.0
        return Progress(done, total, (total - done) * typical if typical > 0 else None)

    def answers(self, current: bool = True) -> list[StoredAnswer]:
        """All standing answers; with ``current=False`` also those revised or withdrawn."""
        return self.find_answers(STANDING if current else "answer x")

    def skipped_pairs(self) -> list[tuple[str, int]]:
        """Model and pair of each pair that a model skipped and has not judged since."""
        return self.rows(
            "SELECT DISTINCT n.name, c.pair FROM change c JOIN annotator n ON n.id = c.annotator "
            "WHERE c.action = ? AND NOT EXISTS (SELECT 1 FROM assignment a "
            "WHERE a.annotator = n.id AND a.pair = c.pair AND a.answer IS NOT NULL)",
            SKIPPED,
        )

    def complete(self) -> bool:
        """Whether each pair of the plan has as many answers as it needs, or was settled."""
        lacking = self.first(
            "SELECT 1 FROM pair p LEFT JOIN assignment a ON a.pair = p.id "
            "AND a.answer IS NOT NULL LEFT JOIN annotator n ON n.id = a.annotator "
            "WHERE p.origin = 'plan' GROUP BY p.id "
            "HAVING count(CASE WHEN n.origin <> 'model' OR ?1 THEN 1 END) "
            "< CAST(p.id * ?2 AS INT) - CAST((p.id - 1) * ?2 AS INT) "
            "AND coalesce(max(n.name = ?3), 0) = 0 LIMIT 1",
            self.project.models_count,
            self.project.overlap,
            self.adjudicator or "",
        )
        return lacking is None

    def assignments(self) -> list[tuple[str, str, str, bool]]:
        """Left item, right item, annotator, and whether it is answered, of each assignment."""
        return self.rows(
            "SELECT p.left, p.right, n.name, a.answer IS NOT NULL FROM assignment a "
            "JOIN pair p ON p.id = a.pair JOIN annotator n ON n.id = a.annotator "
            "WHERE p.origin = 'plan' ORDER BY p.id, n.id"
        )

    def latest(self) -> int:
        """Id of the last change."""
        return int(self.rows("SELECT max(id) FROM change")[0][0])

    def practised(self, annotator_id: int) -> list[str]:
        """Results of an annotator's practice in order: "right", "wrong", and "done" at its end."""
        query = "SELECT detail FROM change WHERE annotator = ? AND action = 'practised' ORDER BY id"
        return [row[0] for row in self.rows(query, annotator_id)]

    @cached_property
    def items(self) -> Items:
        """The items of the project."""
        return Items.open(self.project)

    def pairs(self) -> list[Pair]:
        """All pairs, in the order in which they are judged; statements about one item are none."""
        names = ", ".join(field.name for field in fields(Pair))
        rows = self.rows(f"SELECT {names} FROM pair WHERE right <> '' ORDER BY id")
        return [Pair(*row) for row in rows]

    @property
    def mixed_in(self) -> frozenset[int]:
        """Checks outside of the plan: their answers are no random sample."""
        return frozenset(row[0] for row in self.rows("SELECT id FROM pair WHERE origin = 'check'"))

    @property
    def paused(self) -> bool:
        """Whether annotators get no further pairs for now."""
        return self.setting("paused") == "yes"

    def forecast(self) -> dict[str, Any]:
        """The stored forecast: its parts, and ``latest``, the last change that it knows of."""
        try:
            stored: dict[str, Any] = json.loads((self.project.folder / FORECAST).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return stored

    def overview(
        self, answers: Sequence[StoredAnswer], manners: Mapping[str, Any] = MappingProxyType({})
    ) -> list[AnnotatorOverview]:
        """Statistics of each annotator, from all standing answers."""
        totals = {annotator: self._counts(annotator.id)[1] for annotator in self.annotators()}
        return overview_of(answers, totals, self.checks(self.project), manners)

    def status(self, answers: Sequence[StoredAnswer]) -> dict[str, Any]:
        """Progress of the project, how its annotators work, and the stored forecast.

        ``answers`` are all standing ones.
        """
        project, author, forecast = self.project, self.adjudicator, self.forecast()
        drawn, manners = self.drawn(answers), forecast.get("manners", {})
        planned = {pair.id for pair in self.pairs() if pair.origin == "plan"}
        return {
            "title": project.title,
            "kind": project.kind,
            "items": len(self.items),
            "pairs": len(planned),
            "overlap": project.overlap,
            "paused": self.paused,
            "answers": len(answers),
            "cant_say": sum(answer.cant_say for answer in answers),
            "infeasible": int(infeasible_rows(answers).sum()),
            "pairs_answered": len(planned.intersection(answer.pair for answer in drawn)),
            "annotators": self.overview(answers, manners),
            "agreement": agreement([one for one in drawn if one.annotator != author]),
            "forecast": forecast.get("outlook"),
            "flagged": forecast.get("flagged", []),
            "forecast_is_current": forecast.get("latest") == self.latest(),
        }

    def drawn(self, answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
        """The answers without those to checks, which are no random sample."""
        mixed_in = self.mixed_in
        return [answer for answer in answers if answer.pair not in mixed_in]

    def find_answers(self, source: str, *values: object) -> list[StoredAnswer]:
        """Answers as by `Queries.find_answers`; StoreFileError if the file is damaged."""
        with file_errors(self.project.store_path):
            return super().find_answers(source, *values)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query, by the connection of this thread."""
        with file_errors(self.project.store_path):
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
        """Numbers of answered and of all pairs of an annotator."""
        query = "SELECT count(answer), count(*) FROM assignment WHERE annotator = ?"
        ((done, total),) = self.rows(query, annotator_id)
        return int(done), int(total)

    def close(self) -> None:
        """Close all connections."""
        with self._guard:
            for reader in list(self._readers):
                reader.close()
            self._readers.clear()
