"""Every way in which the file of answers changes, each inside the writer's transaction."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from pairlearn.studio.choosing import assign
from pairlearn.studio.known import share_out
from pairlearn.studio.records import Annotator, Answer, Receipt, StoredAnswer
from pairlearn.studio.store_file import StoreError

MAX_NAME = 80

OTHERS = "statement"
"""The table of what answers say in further columns; it is there from the first such answer on."""


ADJUDICATOR = "adjudicator"
"""The setting with the name under which the supervisor settles pairs."""

STANDING = "assignment a JOIN answer x ON x.id = a.answer"
"""The answers that stand."""
THEIRS = f"(SELECT x.* FROM {STANDING} WHERE a.annotator = ? AND a.pair = ?) x"
"""The answer of one annotator to one pair."""


def stored_answers(
    connection: sqlite3.Connection, source: str, *values: object
) -> list[StoredAnswer]:
    """The answers of a part of a query, such as `STANDING`, in the order of being given."""
    others, more = "NULL", ""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (OTHERS,)).fetchone():
        others, more = "o.said", f"LEFT JOIN {OTHERS} o ON o.answer = x.id"
    query = (
        "SELECT x.id, n.name, x.pair, p.left, p.right, x.similarity, x.difference, x.preference, "
        f"x.cant_say, x.note, x.seconds, x.at, x.revision, p.weight, x.level, {others} "
        f"FROM {source} JOIN annotator n ON n.id = x.annotator JOIN pair p ON p.id = x.pair {more} "
        "ORDER BY x.id"
    )
    found = []
    for *row, level, said in connection.execute(query, values):
        besides = msgspec.json.decode(said, type=dict[str, float]) if said else {}
        row[8] = bool(row[8]) and not besides
        found.append(StoredAnswer(*row, besides, level))  # type: ignore[call-arg]
    return found


def now() -> str:
    """The time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def token_hash(token: str) -> bytes:
    """The digest kept of a token: enough to recognise it, too little to forge it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def fresh_token() -> str:
    """32 random bytes in letters that a link may hold."""
    return secrets.token_urlsafe(32)


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an annotator."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise StoreError(
            f"name is {name!r}: give 1 to {MAX_NAME} printable characters, "
            "without spaces around them"
        )


class Changes:
    """Every change of the answers, made in a transaction of the writer and logged for ``who``."""

    def __init__(self, connection: sqlite3.Connection, who: str) -> None:
        self.connection, self.who = connection, who

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query finds."""
        return self.connection.execute(query, values).fetchall()

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        return next(iter(self.rows(query, *values)), None)

    def _insert(self, table: str, **values: object) -> int:
        """Add a row; its number."""
        marks = ", ".join("?" * len(values))
        number = self.connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()]
        ).lastrowid
        assert number is not None
        return number

    def log(self, action: str, detail: str = "", **about: int | None) -> int:
        """Add a line to the history, about an annotator, a pair, answers; its number."""
        return self._insert("change", at=now(), who=self.who, action=action, detail=detail, **about)

    def record_answer(self, annotator: int, pair: int, answer: Answer) -> Receipt:
        """Keep an answer, as the first or a further one to its pair.

        A key that was seen before, with this annotator and pair, changes nothing and returns
        the first receipt.
        """
        whose = (annotator, pair)
        key = "SELECT id, revision FROM answer WHERE annotator = ? AND pair = ? AND key = ?"
        if (seen := self.first(key, *whose, answer.key)) is not None:
            return Receipt(*seen)
        found = self.first(
            "SELECT name, retired_at FROM assignment a JOIN annotator n ON n.id = a.annotator "
            "JOIN pair p ON p.id = a.pair "
            "WHERE a.annotator = ? AND a.pair = ? AND p.right <> ''",
            *whose,
        )
        if found is None:
            raise StoreError(f"pair {pair} is not assigned to annotator {annotator}")
        name, retired = found
        if retired is not None:
            raise StoreError(f"annotator {name!r} has retired")
        return Changes(self.connection, name).keep(annotator, pair, answer)

    def keep(self, annotator: int, pair: int, answer: Answer) -> Receipt:
        """Add an answer to an assignment that is there.

        What it says in further columns goes into a table of its own: an earlier version takes
        an answer that says nothing else for "can't say".
        """
        whose = {"annotator": annotator, "pair": pair}
        ((before, latest),) = self.rows(
            "SELECT answer, (SELECT max(revision) FROM answer x "
            "WHERE x.annotator = a.annotator AND x.pair = a.pair) "
            "FROM assignment a WHERE a.annotator = ? AND a.pair = ?",
            *whose.values(),
        )
        columns = vars(answer) | {"cant_say": not answer.compares}
        others = columns.pop("others")
        receipt = Receipt(
            self._insert("answer", revision=(latest or 0) + 1, at=now(), **whose, **columns),
            (latest or 0) + 1,
        )
        if others:
            self.connection.execute(
                f"CREATE TABLE IF NOT EXISTS {OTHERS} "
                "(answer INTEGER PRIMARY KEY REFERENCES answer, said TEXT NOT NULL)"
            )
            self._insert(OTHERS, answer=receipt.answer_id, said=json.dumps(others))
        action = "answered" if before is None else "revised"
        self._touch(receipt.answer_id, action, before=before, **whose)
        return receipt

    def adjudicate(self, pair: int, answer: Answer) -> Receipt:
        """Keep the supervisor's answer to a pair, under a name that nobody else has."""
        if not self.first("SELECT 1 FROM pair WHERE id = ? AND right <> ''", pair):
            raise StoreError(f"there is no pair {pair}")
        name = self.adjudicator()
        if name is None:
            taken = {name for (name,) in self.rows("SELECT name FROM annotator")}
            name = "supervisor"
            while name in taken:
                name = f"{name} (settles pairs)"
            Changes(self.connection, ADJUDICATOR).seat(name)
            self.set_setting(ADJUDICATOR, name)
        number = self.seat(name)
        self.assign_pair(number, pair)
        return Changes(self.connection, name).keep(number, pair, answer)

    def adjudicator(self) -> str | None:
        """The name under which the supervisor settles pairs, if any was."""
        return self.setting(ADJUDICATOR)

    def check_author(self, name: str) -> None:
        """Refuse answers from elsewhere in the name that overrules everybody."""
        if name == self.adjudicator():
            raise StoreError(
                f"the annotator {name!r} settles pairs here, and overrules all others: "
                "give these judgements another name"
            )

    def withdraw_last(self, annotator: int, answer_id: int | None) -> int | None:
        """Reopen the pair that an annotator answered last; its id, or None if there is none.

        With ``answer_id``, only if that is still their last answer: so a request that is
        delivered twice takes back one answer, not two.
        """
        found = self.first(
            "SELECT a.pair, a.answer, n.name FROM assignment a "
            "JOIN annotator n ON n.id = a.annotator JOIN pair p ON p.id = a.pair "
            "WHERE a.annotator = ? AND a.answer IS NOT NULL AND p.right <> '' "
            "ORDER BY a.touched DESC LIMIT 1",
            annotator,
        )
        if found is None or (answer_id is not None and found[1] != answer_id):
            return None
        pair, before, name = found
        Changes(self.connection, name)._touch(
            None, "withdrawn", annotator=annotator, pair=pair, before=before
        )
        return int(pair)

    def _touch(
        self, answer: int | None, action: str, *, annotator: int, pair: int, before: int | None
    ) -> None:
        """Have an answer stand, or none, with a line in the history."""
        change = self.log(action, annotator=annotator, pair=pair, before=before, after=answer)
        self.connection.execute(
            "UPDATE assignment SET answer = ?, touched = ? WHERE annotator = ? AND pair = ?",
            (answer, change, annotator, pair),
        )

    def add_annotators(self, names: Sequence[str]) -> list[tuple[Annotator, str]]:
        """Add annotators, each with a token that is told this once."""
        added = []
        for name in names:
            check_name(name)
            if self.first("SELECT 1 FROM annotator WHERE name = ?", name):
                raise StoreError(f"an annotator {name!r} is there already: choose another name")
            token = fresh_token()
            number = self._insert(
                "annotator", name=name, token_hash=token_hash(token), added_at=now()
            )
            self.log("annotator added", annotator=number)
            added.append((Annotator(number, name), token))
        return added

    def seat(self, name: str) -> int:
        """The number of an annotator without a link, for a model or an import.

        One that is new has retired from the start: nobody can judge in their name, and they get
        no pairs.
        """
        if (found := self.first("SELECT id FROM annotator WHERE name = ?", name)) is not None:
            return int(found[0])
        ((added, _),) = self.add_annotators([name])
        self.retire(added.id)
        return added.id

    def retire(self, annotator: int) -> None:
        """End somebody's part: their link is void, their answers stay."""
        changed = self.connection.execute(
            "UPDATE annotator SET retired_at = ? WHERE id = ? AND retired_at IS NULL",
            (now(), annotator),
        ).rowcount
        if not changed:
            raise StoreError(f"no annotator {annotator} takes part")
        self.log("annotator retired", annotator=annotator)

    def renew_token(self, annotator: int) -> str:
        """A new token in place of the old one, which is void; who retired takes part again."""
        token = fresh_token()
        changed = self.connection.execute(
            "UPDATE annotator SET token_hash = ?, retired_at = NULL WHERE id = ?",
            (token_hash(token), annotator),
        ).rowcount
        if not changed:
            raise StoreError(f"there is no annotator {annotator}")
        self.log("token renewed", annotator=annotator)
        return token

    def setting(self, name: str) -> str | None:
        """A setting of the project, if there is one."""
        found = self.first("SELECT value FROM setting WHERE name = ?", name)
        return None if found is None else str(found[0])

    def set_setting(self, name: str, value: str) -> None:
        """Write a setting of the project."""
        self.connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    def find_pair(self, left: str, right: str) -> tuple[int, bool] | None:
        """A pair in either direction, and whether it is the other one."""
        found = self.first(
            "SELECT id, left <> ?1 FROM pair "
            "WHERE (left = ?1 AND right = ?2) OR (left = ?2 AND right = ?1) ORDER BY id",
            *(left, right),
        )
        return None if found is None else (int(found[0]), bool(found[1]))

    def add_pairs(self, pairs: Iterable[tuple[str, str, float]], origin: str) -> list[int]:
        """Add pairs, none of which is there in either direction; their ids."""
        ids = []
        for left, right, weight in pairs:
            if left == right:
                raise StoreError(f"the pair ({left!r}, {right!r}) is an item with itself")
            if known := self.find_pair(left, right):
                raise StoreError(
                    f"the pair ({left!r}, {right!r}) is there already, as pair {known[0]}"
                )
            if not 0 < weight < float("inf"):
                raise StoreError(
                    f"weight of ({left!r}, {right!r}) must be positive; got {weight:g}"
                )
            ids.append(self._insert("pair", left=left, right=right, weight=weight, origin=origin))
        self.log("pairs added", f"{len(ids)} pairs, origin {origin}")
        return ids

    def add_repeat(self, left: str, right: str) -> int:
        """Add a pair that is there the other way round; its id."""
        return self._insert("pair", left=left, right=right, weight=1.0, origin="import")

    def assign_pair(self, annotator: int, pair: int) -> None:
        """Give one pair to one annotator, if it is not theirs already."""
        self.connection.execute(
            "INSERT OR IGNORE INTO assignment (annotator, pair) VALUES (?, ?)", (annotator, pair)
        )

    def reassign(self, overlap: int, seed: int) -> None:
        """Share the pairs out again; what somebody answered or has on the screen stays theirs."""
        active = [
            row[0]
            for row in self.rows("SELECT id FROM annotator WHERE retired_at IS NULL ORDER BY id")
        ]
        pairs = [
            row[0] for row in self.rows("SELECT id FROM pair WHERE origin <> 'import' ORDER BY id")
        ]
        kept: dict[int, list[int]] = {}
        for annotator, pair in self.rows(_KEPT):
            kept.setdefault(pair, []).append(annotator)
        given = assign(pairs, active, overlap, seed, kept)
        wanted = {(who, pair) for pair, whose in given.items() for who in whose}
        there = set(
            self.rows(
                "SELECT annotator, pair FROM assignment WHERE pair IN "
                "(SELECT id FROM pair WHERE origin <> 'import')"
            )
        )
        for statement, rows in (
            ("DELETE FROM assignment WHERE annotator = ? AND pair = ?", there - wanted),
            ("INSERT INTO assignment (annotator, pair) VALUES (?, ?)", wanted - there),
        ):
            self.connection.executemany(statement, sorted(rows))
        share_out(self, wanted, active)
        self.set_setting("overlap", str(overlap))
        detail = f"{len(pairs)} pairs, {len(active)} annotators, overlap {overlap}"
        self.log("pairs assigned", detail)


_KEPT = (
    "SELECT annotator, pair FROM assignment WHERE answer IS NOT NULL "
    "UNION SELECT a.annotator, a.pair FROM assignment a JOIN annotator n ON n.id = a.annotator "
    "WHERE a.touched IS NOT NULL AND n.retired_at IS NULL "
    "UNION SELECT a.annotator, min(a.pair) FROM assignment a "
    "JOIN annotator n ON n.id = a.annotator JOIN pair p ON p.id = a.pair "
    "WHERE a.answer IS NULL AND n.retired_at IS NULL AND p.origin <> 'import' "
    "GROUP BY a.annotator"
)
"""Assignments that stay: answered, reopened, or next in somebody's hands."""
