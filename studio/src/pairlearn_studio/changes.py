"""Every change of the answers, each inside a transaction of the writer.

Checks, the known pairs that are mixed in, are stored as pairs outside of the plan, and are
``known_share`` of what every annotator judges. Which of the next tasks is one of these follows from
the annotator and the number of their answers: it cannot be guessed, and stays the same when a page
is reloaded.
"""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any, get_args

from pairlearn_studio.choosing import assign, choose_sets, random_pairs
from pairlearn_studio.project import Project
from pairlearn_studio.reader import (
    ADJUDICATOR,
    AS_JSON,
    CHECKS,
    LINKED,
    THEIRS,
    UNTIL,
    Queries,
    token_hash,
)
from pairlearn_studio.records import Annotator, Answer, Origin, Receipt
from pairlearn_studio.store_file import StoreError

MAX_NAME = 80
_ALL = "SELECT annotator, pair FROM assignment"
#: Assignments that never move: answered, reopened, or the next one of an annotator.
_KEPT = (
    f"{_ALL} WHERE answer IS NOT NULL "
    "UNION SELECT a.annotator, a.pair FROM assignment a JOIN annotator n ON n.id = a.annotator "
    f"WHERE a.touched IS NOT NULL AND {LINKED} "
    "UNION SELECT a.annotator, min(a.pair) FROM assignment a "
    "JOIN annotator n ON n.id = a.annotator JOIN pair p ON p.id = a.pair "
    f"WHERE a.answer IS NULL AND {LINKED} AND p.origin = 'plan' GROUP BY a.annotator"
)


class AnsweredError(StoreError):
    """A pair has another answer than its sender knows of, given in another window."""


def now(later: timedelta = timedelta()) -> str:
    """Current time or a later one, UTC, ISO 8601 with milliseconds."""
    return (datetime.now(UTC) + later).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fresh_token() -> str:
    """32 random bytes in letters that a link may hold."""
    return secrets.token_urlsafe(32)


def check_name(name: str) -> None:
    """Raise StoreError if an annotator cannot have this name."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise StoreError(
            f"name is {name!r}: give 1 to {MAX_NAME} printable characters, "
            "without spaces around them"
        )


class Changes(Queries):
    """Changes of the answers in a transaction of the writer, logged as made by ``who``."""

    def __init__(self, connection: sqlite3.Connection, who: str) -> None:
        self.connection, self.who = connection, who

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return self.connection.execute(query, values).fetchall()

    def _insert(self, table: str, **values: object) -> int:
        """Add a row; return its id."""
        marks = ", ".join("?" * len(values))
        row_id = self.connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()]
        ).lastrowid
        assert row_id is not None
        return row_id

    def log(self, action: str, detail: str = "", **about: int | None) -> int:
        """Add a line to the history, about an annotator, a pair or answers; return its id."""
        return self._insert("change", at=now(), who=self.who, action=action, detail=detail, **about)

    # -- answers -------------------------------------------------------------------------

    def record_answer(
        self, annotator: int, pair: int, answer: Answer, replaces: tuple[int | None, ...] = ()
    ) -> Receipt:
        """Store an answer, unless this key of this annotator for this pair is stored already.

        AnsweredError if the standing answer is not ``replaces``, where that is given.
        """
        by_key = "(SELECT * FROM answer WHERE annotator = ? AND pair = ? AND key = ?) x"
        for stored in self.find_answers(by_key, annotator, pair, answer.key):
            if not stored.same_judgement(answer) or stored.level != answer.level:
                raise StoreError(
                    f"key {answer.key!r} was used before for another answer to pair {pair}: give "
                    "every answer its own key"
                )
            return Receipt(stored.id, stored.revision)
        query = (
            f"SELECT name, {LINKED}, answer FROM assignment a "
            "JOIN annotator n ON n.id = a.annotator JOIN pair p ON p.id = a.pair "
            "WHERE a.annotator = ? AND a.pair = ? AND p.right <> ''"
        )
        if (row := self.first(query, annotator, pair)) is None:
            raise StoreError(f"pair {pair} is not assigned to annotator {annotator}")
        name, linked, standing = row
        if not linked:
            raise StoreError(f"annotator {name!r} has retired")
        if replaces and replaces != (standing,):
            raise AnsweredError("you answered this pair in another window: that answer stays")
        return Changes(self.connection, name)._add_answer(annotator, pair, answer)

    def _add_answer(self, annotator: int, pair: int, answer: Answer) -> Receipt:
        """Add an answer to an existing assignment."""
        query = (
            "SELECT answer, (SELECT max(revision) FROM answer x "
            "WHERE x.annotator = a.annotator AND x.pair = a.pair) "
            "FROM assignment a WHERE a.annotator = ? AND a.pair = ?"
        )
        ((before, latest),) = self.rows(query, annotator, pair)
        assignment = {"annotator": annotator, "pair": pair}
        row = vars(answer) | {"revision": (latest or 0) + 1}
        row |= {name: json.dumps(row[name]) if row[name] else "" for name in AS_JSON}
        answer_id = self._insert("answer", at=now(), **assignment, **row)
        action = "answered" if before is None else "revised"
        self._set_answer(answer_id, action, before=before, **assignment)
        return Receipt(answer_id, row["revision"])

    def _add_answer_of(self, name: str, pair: int, answer: Answer) -> Receipt:
        """Add an answer that came without a link; a new annotator is added."""
        annotator = self.unlinked_annotator(name)
        self._assign(annotator, pair)
        return self._add_answer(annotator, pair, answer)

    def adjudicate(self, pair: int, answer: Answer) -> Receipt:
        """Store the supervisor's answer to a pair, under a name that no annotator has."""
        if not self.first("SELECT 1 FROM pair WHERE id = ? AND right <> ''", pair):
            raise StoreError(f"there is no pair {pair}")
        name = self.adjudicator
        if name is None:
            taken = {name for (name,) in self.rows("SELECT name FROM annotator")}
            name = "supervisor"
            while name in taken:
                name = f"{name} (settles pairs)"
            Changes(self.connection, ADJUDICATOR).unlinked_annotator(name)
            self.set_setting(ADJUDICATOR, name)
        return Changes(self.connection, name)._add_answer_of(name, pair, answer)

    def import_answer(self, name: str, pair: int, answer: Answer, *, revise: bool = True) -> str:
        """Store an answer from elsewhere; return "new", "revised", or "same" as before.

        Without ``revise`` an existing answer stays. The name that overrules all others is refused.
        """
        before = self.find_answers(THEIRS, self.unlinked_annotator(name), pair)
        if before and (not revise or answer.same_judgement(before[0])):
            return "same"
        if name == self.adjudicator:
            raise StoreError(
                f"the annotator {name!r} settles pairs here, and overrules all others: "
                "give these judgements another name"
            )
        self._add_answer_of(name, pair, answer)
        return "revised" if before else "new"

    def withdraw_last(self, annotator: int, answer_id: int | None) -> int | None:
        """Reopen the pair that an annotator answered last; its id, or None, as in `Store.undo`."""
        last = self.first(
            "SELECT a.pair, a.answer, n.name FROM assignment a "
            "JOIN annotator n ON n.id = a.annotator JOIN pair p ON p.id = a.pair "
            "WHERE a.annotator = ? AND a.answer IS NOT NULL AND p.right <> '' "
            "ORDER BY a.touched DESC LIMIT 1",
            annotator,
        )
        if last is None or (answer_id is not None and last[1] != answer_id):
            return None
        pair, before, name = last
        Changes(self.connection, name)._set_answer(
            None, "withdrawn", annotator=annotator, pair=pair, before=before
        )
        return int(pair)

    def _set_answer(
        self, answer: int | None, action: str, *, annotator: int, pair: int, before: int | None
    ) -> None:
        """Set or clear the current answer of an assignment, with a line in the history."""
        change = self.log(action, annotator=annotator, pair=pair, before=before, after=answer)
        update = "UPDATE assignment SET answer = ?, touched = ? WHERE annotator = ? AND pair = ?"
        self.rows(update, answer, change, annotator, pair)

    # -- annotators ----------------------------------------------------------------------

    def add_annotators(
        self, names: Sequence[str], expires_at: str | None = None, quota: int | None = None
    ) -> list[tuple[Annotator, str]]:
        """Add annotators, each with a token that cannot be read again."""
        origin = self.who if self.who in get_args(Origin) else "person"
        added = []
        for name in names:
            check_name(name)
            if self.first("SELECT 1 FROM annotator WHERE name = ?", name):
                raise StoreError(
                    f"an annotator {name!r} already exists: choose another name, or make another "
                    "link for them with `pairlearn annotate link --renew`"
                )
            token = fresh_token()
            annotator = self._insert(
                "annotator", name=name, origin=origin, token_hash=token_hash(token),
                added_at=now(), expires_at=expires_at, quota=quota,
            )  # fmt: skip
            self.log("annotator added", annotator=annotator)
            added.append((Annotator(annotator, name), token))
        return added

    def unlinked_annotator(self, name: str) -> int:
        """Id of an annotator for a model or an import, added without link and open pairs."""
        if (row := self.first("SELECT id FROM annotator WHERE name = ?", name)) is not None:
            return int(row[0])
        ((added, _),) = self.add_annotators([name])
        self.retire(added.id)
        return added.id

    def retire(self, annotator: int) -> None:
        """Void an annotator's link; their answers stay."""
        update = "UPDATE annotator SET retired_at = ? WHERE id = ? AND retired_at IS NULL"
        if not self.connection.execute(update, (now(), annotator)).rowcount:
            raise StoreError(f"no annotator {annotator} takes part")
        self.log("annotator retired", annotator=annotator)

    def renew_token(
        self, annotator: int, expires_at: str | None = None, quota: int | None = None
    ) -> str:
        """Replace a token, which voids the old link; retired annotators take part again."""
        token, values = fresh_token(), "token_hash = ?, retired_at = NULL, expires_at = ?"
        update = f"UPDATE annotator SET {values}, quota = coalesce(?, quota) WHERE id = ?"
        new = (token_hash(token), expires_at, quota, annotator)
        if not self.connection.execute(update, new).rowcount:
            raise StoreError(f"there is no annotator {annotator}")
        self.log("token renewed", annotator=annotator)
        return token

    def adopt_links(self, present: Queries) -> list[str]:
        """Take over the links of another file; return whose links changed."""
        query = (
            "SELECT name, CASE WHEN retired_at IS NULL THEN token_hash END, origin, token_hash, "
            "added_at, expires_at, retired_at, quota FROM annotator ORDER BY id"
        )
        here = {name: link for name, link, *_ in self.rows(query)}
        moved = {row[0]: row[2:] for row in present.rows(query) if here.get(row[0]) != row[1]}
        self.connection.executemany(
            "INSERT INTO annotator (name, origin, token_hash, added_at, expires_at, retired_at, "
            "quota) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
            "token_hash = excluded.token_hash, expires_at = excluded.expires_at, "
            "retired_at = excluded.retired_at",
            [(name, *row) for name, row in moved.items()],
        )
        names = list(moved)
        if (link := present.setting("supervisor")) and link != self.setting("supervisor"):
            self.set_setting("supervisor", link)
            self.set_setting(UNTIL, present.setting(UNTIL) or "")
            names.append("the supervisor")
        if names:
            self.log("links kept", f"of {', '.join(names)}")
        return names

    def set_setting(self, name: str, value: str) -> None:
        """Write a setting of the project."""
        self.connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    # -- pairs and assignments -----------------------------------------------------------

    def add_pairs(
        self,
        pairs: Iterable[tuple[str, str]],
        origin: str,
        asked: Iterable[tuple[str | None, float]] = repeat((None, 1.0)),
    ) -> list[int]:
        """Add pairs, none of which may be there in either direction; return their ids.

        ``asked`` has the set that is asked about, and the probability of this choice.
        """
        ids = []
        for (left, right), (about, q) in zip(pairs, asked, strict=False):
            pair = f"the pair ({left!r}, {right!r})"
            if left == right:
                raise StoreError(f"{pair} is an item with itself")
            if known := self.find_pair(left, right, about):
                raise StoreError(f"{pair} already exists, as pair {known[0]}")
            row = {"left": left, "right": right, "about": about, "q": q, "origin": origin}
            ids.append(self._insert("pair", **row))
        self.log("pairs added", f"{len(ids)} pairs, origin {origin}")
        return ids

    def grow(self, project: Project, items: Sequence[str]) -> None:
        """Draw the pairs that the plan has beyond those stored; every assignment stays."""
        missing = project.plan.pairs - len(self._ids("pair", "origin = 'plan'"))
        if missing < 0:
            planned = project.plan.pairs - missing
            raise StoreError(
                f"plan.pairs is {project.plan.pairs}, and {planned} pairs are drawn already: pairs "
                f"are never removed; set it to {planned} or more"
            )
        if missing == 0:
            return
        row = {item: number for number, item in enumerate(items)}
        ends = self.rows("SELECT left, right FROM pair WHERE right <> ''")
        taken = {(row[left], row[right]) for left, right in ends if left in row and right in row}
        try:
            drawn = random_pairs(len(items), missing, project.plan.seed, taken)
        except ValueError as error:
            raise StoreError(f"the plan cannot be met: {error}") from None
        pairs = [(items[left], items[right]) for left, right in drawn.tolist()]
        self.add_pairs(pairs, "plan", choose_sets(project, drawn, len(taken)))
        self.assign_new(project)

    def ask_about(self, chosen: Mapping[int, tuple[str, float]]) -> None:
        """Ask about other sets for pairs that have no answer and are on no screen."""
        seen = {pair for _, pair in self.rows(_KEPT)}
        self.connection.executemany(
            "UPDATE pair SET about = ?, q = ? WHERE id = ? AND origin = 'plan' AND about <> ''",
            [(*asked, pair) for pair, asked in chosen.items() if pair not in seen],
        )

    def _assign(self, annotator: int, pair: int) -> None:
        """Assign one pair to one annotator, unless it is theirs already."""
        insert = "INSERT OR IGNORE INTO assignment (annotator, pair) VALUES (?, ?)"
        self.rows(insert, annotator, pair)

    def give(self, wanted: Iterable[tuple[int, int]]) -> None:
        """Assign pairs to annotators, as (annotator, pair): they stay theirs, and come first."""
        change = self.log("assigned by the supervisor")
        update = "UPDATE assignment SET touched = ? WHERE annotator = ? AND pair = ?"
        for annotator, pair in wanted:
            self._assign(annotator, pair)
            self.rows(f"{update} AND answer IS NULL", change, annotator, pair)

    def reassign(self, project: Project) -> None:
        """Assign the open pairs anew; pairs that an annotator answered or sees now stay theirs."""
        self._share_out(project, _KEPT)

    def assign_new(self, project: Project) -> None:
        """Assign the pairs that lack annotators; every assignment stays."""
        self._share_out(project, _ALL)

    def _share_out(self, project: Project, kept_query: str) -> None:
        models = set() if project.models_count else set(self._ids("annotator", "origin = 'model'"))
        quotas = self.rows(f"SELECT id, quota FROM annotator WHERE {LINKED} ORDER BY id")
        active = {who: math.inf if quota is None else quota for who, quota in quotas}
        pairs = self._ids("pair", "origin = 'plan'")
        kept: dict[int, list[int]] = {}
        for annotator, pair in self.rows(kept_query):
            if annotator not in models:
                kept.setdefault(pair, []).append(annotator)
        assigned = assign(pairs, active, project.overlap, project.plan.seed, kept)
        wanted = {(who, pair) for pair, whose in assigned.items() for who in whose}
        present = set(self.rows(_ALL))
        # Answers of models that do not count stay as well.
        movable = set(self.rows(f"{_ALL} WHERE answer IS NULL"))
        movable = {assignment for assignment in movable if assignment[1] in assigned}
        for statement, rows in (
            ("DELETE FROM assignment WHERE annotator = ? AND pair = ?", movable - wanted),
            ("INSERT INTO assignment (annotator, pair) VALUES (?, ?)", wanted - present),
        ):
            self.connection.executemany(statement, sorted(rows))
        self._assign_checks(project, wanted, list(active))
        self.set_setting("overlap", f"{project.overlap:g} {project.models_count}")
        detail = f"{len(pairs)} pairs, {len(active)} annotators, overlap {project.overlap:g}"
        self.log("pairs assigned", detail)

    def _ids(self, table: str, condition: str) -> list[int]:
        query = f"SELECT id FROM {table} WHERE {condition} ORDER BY id"
        return [row_id for (row_id,) in self.rows(query)]

    def mix_in(self, project: Project) -> None:
        """Make pairs of the checks, and unassign those that are no longer wanted."""
        checks = project.known_for("check")
        for check in checks:
            about = check.about if project.classes else None
            if self.find_pair(check.left, check.right, about) is None:
                self.add_pairs([(check.left, check.right)], "check", [(about, 1.0)])
        wanted = self.checks(project)
        for pair in wanted:
            self.rows("UPDATE pair SET origin = 'check' WHERE id = ? AND origin = 'import'", pair)
        for gone in {*self._ids("pair", "origin = 'check'")} - wanted.keys():
            self.rows("DELETE FROM assignment WHERE pair = ? AND answer IS NULL", gone)
        self.set_setting(CHECKS, project.mixed_in)
        self.log("mixed in", f"{len(checks)} known pairs")

    def _assign_checks(
        self, project: Project, assigned: set[tuple[int, int]], active: Sequence[int]
    ) -> None:
        """Assign checks in proportion to each annotator's pairs; none is lost."""
        wanted = self.checks(project)
        checks = [pair for pair in self._ids("pair", "origin = 'check'") if pair in wanted]
        load = Counter(who for who, _ in assigned)
        present = set(self.rows(_ALL))
        for who in active if checks else ():
            due = min(len(checks), math.ceil(project.known_share * load[who]))
            start = who % len(checks)
            free = [pair for pair in checks[start:] + checks[:start] if (who, pair) not in present]
            for pair in free[: max(due - (len(checks) - len(free)), 0)]:
                self._assign(who, pair)
