"""Every change of the file of answers, each inside the writer's transaction.

Checks, the known pairs that are mixed in, get a row among the pairs outside of the plan, and are
``known_share`` of what every annotator judges. Repeats are pairs of the plan the other way round,
some time after the first answer. Which of the next tasks is one of these follows from the
annotator and how many they have answered: it cannot be guessed, and stays the same when a page is
reloaded.
"""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from pairlearn.studio.choosing import assign
from pairlearn.studio.reader import ADJUDICATOR, MIXED, OTHERS, THEIRS, Rows, token_hash
from pairlearn.studio.records import Annotator, Answer, Known, Mixed, Receipt
from pairlearn.studio.store_file import StoreError

MAX_NAME = 80


def now() -> str:
    """The time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


class Changes(Rows):
    """Every change of the answers, made in a transaction of the writer and logged for ``who``."""

    def __init__(self, connection: sqlite3.Connection, who: str) -> None:
        self.connection, self.who = connection, who

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query finds."""
        return self.connection.execute(query, values).fetchall()

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
        """Keep an answer, unless it came before: with its key, of this annotator, to this pair."""
        whose = (annotator, pair)
        seen = self.first(
            "SELECT id, revision, similarity, difference, preference, level FROM answer "
            "WHERE annotator = ? AND pair = ? AND key = ?",
            *whose,
            answer.key,
        )
        if seen is not None:
            said = (answer.similarity, answer.difference, answer.preference, answer.level)
            if seen[2:] != said:
                raise StoreError(
                    f"key {answer.key!r} came before with another answer to pair {pair}: give "
                    "every answer a key of its own"
                )
            return Receipt(*seen[:2])
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
        said = vars(answer) | {"cant_say": not answer.compares, "revision": (latest or 0) + 1}
        others = said.pop("others")
        number = self._insert("answer", at=now(), **whose, **said)
        if others:
            columns = "answer INTEGER PRIMARY KEY REFERENCES answer, said TEXT NOT NULL"
            self.rows(f"CREATE TABLE IF NOT EXISTS {OTHERS} ({columns})")
            self._insert(OTHERS, answer=number, said=json.dumps(others))
        self._touch(number, "answered" if before is None else "revised", before=before, **whose)
        return Receipt(number, said["revision"])

    def adjudicate(self, pair: int, answer: Answer) -> Receipt:
        """Keep the supervisor's answer to a pair, under a name that nobody else has."""
        if not self.first("SELECT 1 FROM pair WHERE id = ? AND right <> ''", pair):
            raise StoreError(f"there is no pair {pair}")
        name = self.adjudicator
        if name is None:
            taken = {name for (name,) in self.rows("SELECT name FROM annotator")}
            name = "supervisor"
            while name in taken:
                name = f"{name} (settles pairs)"
            Changes(self.connection, ADJUDICATOR).seat(name)
            self.set_setting(ADJUDICATOR, name)
        return Changes(self.connection, name).keep_for(name, pair, answer)

    def keep_for(self, name: str, pair: int, answer: Answer) -> Receipt:
        """Keep an answer that came by no link, of an annotator who is added if new."""
        number = self.seat(name)
        self.assign_pair(number, pair)
        return self.keep(number, pair, answer)

    def import_answer(self, name: str, pair: int, answer: Answer, *, revise: bool = True) -> str:
        """Keep an answer from elsewhere: whether it is "new", "revised", or the "same" as before.

        Without ``revise`` one that is there stays. Nobody else's name may overrule everybody.
        """
        before = self.find_answers(THEIRS, self.seat(name), pair)
        if before and (not revise or answer.same_judgement(before[0])):
            return "same"
        if name == self.adjudicator:
            raise StoreError(
                f"the annotator {name!r} settles pairs here, and overrules all others: "
                "give these judgements another name"
            )
        self.keep_for(name, pair, answer)
        return "revised" if before else "new"

    def withdraw_last(self, annotator: int, answer_id: int | None) -> int | None:
        """Reopen the pair that an annotator answered last; its id, or None, as in `Store.undo`."""
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
        update = "UPDATE assignment SET answer = ?, touched = ? WHERE annotator = ? AND pair = ?"
        self.rows(update, answer, change, annotator, pair)

    def add_annotators(self, names: Sequence[str]) -> list[tuple[Annotator, str]]:
        """Add annotators, each with a token that is told this once."""
        added = []
        for name in names:
            check_name(name)
            if self.first("SELECT 1 FROM annotator WHERE name = ?", name):
                raise StoreError(
                    f"an annotator {name!r} is there already: choose another name, or make another "
                    "link for them with `pairlearn annotate link --renew`"
                )
            token = fresh_token()
            values = {"name": name, "token_hash": token_hash(token), "added_at": now()}
            number = self._insert("annotator", **values)
            self.log("annotator added", annotator=number)
            added.append((Annotator(number, name), token))
        return added

    def seat(self, name: str) -> int:
        """The number of an annotator for a model or an import, without link and open pairs."""
        if (found := self.first("SELECT id FROM annotator WHERE name = ?", name)) is not None:
            return int(found[0])
        ((added, _),) = self.add_annotators([name])
        self.retire(added.id)
        return added.id

    def retire(self, annotator: int) -> None:
        """End somebody's part: their link is void, their answers stay."""
        update = "UPDATE annotator SET retired_at = ? WHERE id = ? AND retired_at IS NULL"
        if not self.connection.execute(update, (now(), annotator)).rowcount:
            raise StoreError(f"no annotator {annotator} takes part")
        self.log("annotator retired", annotator=annotator)

    def renew_token(self, annotator: int) -> str:
        """A new token in place of the old one, which is void; who retired takes part again."""
        token = fresh_token()
        update = "UPDATE annotator SET token_hash = ?, retired_at = NULL WHERE id = ?"
        if not self.connection.execute(update, (token_hash(token), annotator)).rowcount:
            raise StoreError(f"there is no annotator {annotator}")
        self.log("token renewed", annotator=annotator)
        return token

    def adopt_links(self, present: Rows) -> list[str]:
        """Take the links of another file; whose are not those that were here."""
        query = (
            "SELECT name, CASE WHEN retired_at IS NULL THEN token_hash END, token_hash, added_at, "
            "retired_at FROM annotator ORDER BY id"
        )
        here = {name: link for name, link, *_ in self.rows(query)}
        moved = {row[0]: row[2:] for row in present.rows(query) if here.get(row[0]) != row[1]}
        self.connection.executemany(
            "INSERT INTO annotator (name, token_hash, added_at, retired_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET token_hash = excluded.token_hash, "
            "retired_at = excluded.retired_at",
            [(name, *row) for name, row in moved.items()],
        )
        names = list(moved)
        if (link := present.setting("supervisor")) and link != self.setting("supervisor"):
            self.set_setting("supervisor", link)
            names.append("the supervisor")
        if names:
            self.log("links kept", f"of {', '.join(names)}")
        return names

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
            pair = f"the pair ({left!r}, {right!r})"
            if left == right:
                raise StoreError(f"{pair} is an item with itself")
            if known := self.find_pair(left, right):
                raise StoreError(f"{pair} is there already, as pair {known[0]}")
            if not 0 < weight < math.inf:
                raise StoreError(f"weight of {pair} must be positive; got {weight:g}")
            ids.append(self._insert("pair", left=left, right=right, weight=weight, origin=origin))
        self.log("pairs added", f"{len(ids)} pairs, origin {origin}")
        return ids

    def assign_pair(self, annotator: int, pair: int) -> None:
        """Give one pair to one annotator, if it is not theirs already."""
        insert = "INSERT OR IGNORE INTO assignment (annotator, pair) VALUES (?, ?)"
        self.rows(insert, annotator, pair)

    def reassign(self, overlap: int, seed: int) -> None:
        """Share the pairs out again; what somebody answered or has on the screen stays theirs."""
        active = self._ids("annotator", "retired_at IS NULL")
        pairs = self._ids("pair", "origin <> 'import'")
        kept: dict[int, list[int]] = {}
        for annotator, pair in self.rows(_KEPT):
            kept.setdefault(pair, []).append(annotator)
        given = assign(pairs, active, overlap, seed, kept)
        wanted = {(who, pair) for pair, whose in given.items() for who in whose}
        there = set(self.rows("SELECT annotator, pair FROM assignment"))
        there = {one for one in there if one[1] in given}
        for statement, rows in (
            ("DELETE FROM assignment WHERE annotator = ? AND pair = ?", there - wanted),
            ("INSERT INTO assignment (annotator, pair) VALUES (?, ?)", wanted - there),
        ):
            self.connection.executemany(statement, sorted(rows))
        self._share_out(wanted, active)
        self.set_setting("overlap", str(overlap))
        detail = f"{len(pairs)} pairs, {len(active)} annotators, overlap {overlap}"
        self.log("pairs assigned", detail)

    def _ids(self, table: str, condition: str) -> list[int]:
        return [
            one for (one,) in self.rows(f"SELECT id FROM {table} WHERE {condition} ORDER BY id")
        ]

    def mix_in(self, checks: Sequence[Known], share: float, repeat_share: float) -> None:
        """Have checks and repeats among the pairs; what is none any more is in nobody's hands."""
        before = Mixed.read(self.setting(MIXED))
        now = Mixed(list(checks), share, {}, repeat_share)
        for one in checks:
            found = self.find_pair(one.left, one.right)
            if found is None:
                found = self.add_pairs([(one.left, one.right, 1.0)], "import")[0], False
            now.pairs[found[0]] = one.turned() if found[1] else one
        plan = self.rows("SELECT id, left, right FROM pair WHERE origin = 'plan' ORDER BY id")
        made = {original: number for number, original in before.repeats.items()}
        for number, left, right in plan[: math.ceil(repeat_share * len(plan))]:
            turned: dict[str, Any] = {"left": right, "right": left}
            repeat = made.get(number) or self._insert("pair", weight=1, origin="import", **turned)
            now.repeats[repeat] = number
        for gone in {*before.pairs, *before.repeats} - {*now.pairs, *now.repeats}:
            # One of the plan is assigned anew with the others.
            self.rows("DELETE FROM assignment WHERE pair = ? AND answer IS NULL", gone)
        self.set_setting(MIXED, msgspec.json.encode(now).decode())
        self.log("mixed in", f"{len(now.pairs)} known pairs, {len(now.repeats)} repeats")

    def _share_out(self, wanted: set[tuple[int, int]], active: Sequence[int]) -> None:
        """Give everybody checks in proportion to their pairs, and repeats; nobody loses one."""
        mixed = Mixed.read(self.setting(MIXED))
        if not mixed.whole_share:
            return
        load = Counter(who for who, _ in wanted)
        outside = set(self._ids("pair", "origin = 'import'"))
        pairs = [number for number in mixed.pairs if number in outside]
        theirs = set(self.rows("SELECT annotator, pair FROM assignment"))
        for who in active:
            due = min(len(pairs), math.ceil(mixed.share * load[who]))
            start = who % max(len(pairs), 1)
            turn = [pair for pair in pairs[start:] + pairs[:start] if (who, pair) not in theirs]
            missing = max(due - (len(pairs) - len(turn)), 0)
            repeated = [one for one, of in mixed.repeats.items() if (who, of) in wanted]
            for pair in turn[:missing] + repeated:
                self.assign_pair(who, pair)


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
