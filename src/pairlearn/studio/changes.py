"""Every way in which the file of answers changes, each inside the writer's transaction."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pairlearn.studio.choosing import assign
from pairlearn.studio.records import Annotator, Answer, Receipt
from pairlearn.studio.store_file import StoreError

MAX_NAME = 80


def now() -> str:
    """The time, UTC, ISO 8601 with milliseconds.

    Examples
    --------
    >>> now().endswith("Z"), len(now())
    (True, 24)
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def token_hash(token: str) -> bytes:
    """What is kept of a token: enough to know it again, too little to forge it.

    Examples
    --------
    >>> len(token_hash("abc"))
    32
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def fresh_token() -> str:
    """32 random bytes in letters that a link may hold.

    Examples
    --------
    >>> len(fresh_token())
    43
    """
    return secrets.token_urlsafe(32)


def log(
    connection: sqlite3.Connection,
    who: str,
    action: str,
    *,
    annotator: int | None = None,
    pair: int | None = None,
    before: int | None = None,
    after: int | None = None,
    detail: str = "",
) -> int:
    """Add a line to the history; its number."""
    values = (now(), who, action, annotator, pair, before, after, detail)
    cursor = connection.execute(
        "INSERT INTO change (at, who, action, annotator, pair, before, after, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def record_answer(
    connection: sqlite3.Connection, annotator: int, pair: int, answer: Answer
) -> Receipt:
    """Keep an answer, as the first or a further one to its pair.

    A key that was seen before, with this annotator and pair, changes nothing and returns
    the first receipt.
    """
    seen = connection.execute(
        "SELECT id, revision FROM answer WHERE annotator = ? AND pair = ? AND key = ?",
        (annotator, pair, answer.key),
    ).fetchone()
    if seen is not None:
        return Receipt(*seen)
    found = connection.execute(
        "SELECT name, retired_at FROM assignment a JOIN annotator n ON n.id = a.annotator "
        "WHERE a.annotator = ? AND a.pair = ?",
        (annotator, pair),
    ).fetchone()
    if found is None:
        raise StoreError(f"pair {pair} is not assigned to annotator {annotator}")
    name, retired = found
    if retired is not None:
        raise StoreError(f"annotator {name!r} has retired")
    return keep(connection, annotator, pair, answer, name)


def keep(
    connection: sqlite3.Connection, annotator: int, pair: int, answer: Answer, who: str
) -> Receipt:
    """Add an answer to an assignment that is there."""
    before, latest = connection.execute(
        "SELECT answer, (SELECT max(revision) FROM answer x "
        "WHERE x.annotator = a.annotator AND x.pair = a.pair) "
        "FROM assignment a WHERE a.annotator = ? AND a.pair = ?",
        (annotator, pair),
    ).fetchone()
    revision = (latest or 0) + 1
    values = (
        *(annotator, pair, answer.key, revision, answer.similarity, answer.difference),
        *(answer.preference, answer.cant_say, answer.note, answer.seconds, now()),
    )
    answer_id = connection.execute(
        "INSERT INTO answer (annotator, pair, key, revision, similarity, difference, "
        "preference, cant_say, note, seconds, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    ).lastrowid
    assert answer_id is not None
    action = "answered" if before is None else "revised"
    touched = log(
        connection, who, action, annotator=annotator, pair=pair, before=before, after=answer_id
    )
    _touch(connection, annotator, pair, answer_id, touched)
    return Receipt(answer_id, revision)


def withdraw_last(
    connection: sqlite3.Connection, annotator: int, answer_id: int | None
) -> int | None:
    """Reopen the pair that an annotator answered last; its id, or None if there is none.

    With ``answer_id``, only if that is still their last answer: so a request that is
    delivered twice takes back one answer, not two.
    """
    found = connection.execute(
        "SELECT a.pair, a.answer, n.name FROM assignment a JOIN annotator n ON n.id = a.annotator "
        "WHERE a.annotator = ? AND a.answer IS NOT NULL ORDER BY a.touched DESC LIMIT 1",
        (annotator,),
    ).fetchone()
    if found is None or (answer_id is not None and found[1] != answer_id):
        return None
    pair, before, name = found
    touched = log(connection, name, "withdrawn", annotator=annotator, pair=pair, before=before)
    _touch(connection, annotator, pair, None, touched)
    return int(pair)


def _touch(
    connection: sqlite3.Connection, annotator: int, pair: int, answer: int | None, change: int
) -> None:
    connection.execute(
        "UPDATE assignment SET answer = ?, touched = ? WHERE annotator = ? AND pair = ?",
        (answer, change, annotator, pair),
    )


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an annotator.

    Examples
    --------
    >>> check_name("ann")
    """
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise StoreError(
            f"name is {name!r}: give 1 to {MAX_NAME} printable characters, "
            "without spaces around them"
        )


def add_annotators(
    connection: sqlite3.Connection, names: Sequence[str], who: str
) -> list[tuple[Annotator, str]]:
    """Add annotators, each with a token that is told this once."""
    added = []
    for name in names:
        check_name(name)
        if connection.execute("SELECT 1 FROM annotator WHERE name = ?", (name,)).fetchone():
            raise StoreError(f"an annotator {name!r} is there already: choose another name")
        token = fresh_token()
        number = connection.execute(
            "INSERT INTO annotator (name, token_hash, added_at) VALUES (?, ?, ?)",
            (name, token_hash(token), now()),
        ).lastrowid
        assert number is not None
        log(connection, who, "annotator added", annotator=number)
        added.append((Annotator(number, name), token))
    return added


def add_seat(connection: sqlite3.Connection, name: str, who: str) -> int:
    """Add an annotator without a link, for a model or an import; their number.

    Retired from the start: nobody can judge in their name, and they get no pairs.
    """
    ((added, _),) = add_annotators(connection, [name], who)
    retire(connection, added.id, who)
    return added.id


def retire(connection: sqlite3.Connection, annotator: int, who: str) -> None:
    """End somebody's part: their link is void, their answers stay."""
    changed = connection.execute(
        "UPDATE annotator SET retired_at = ? WHERE id = ? AND retired_at IS NULL",
        (now(), annotator),
    ).rowcount
    if not changed:
        raise StoreError(f"no annotator {annotator} takes part")
    log(connection, who, "annotator retired", annotator=annotator)


def renew_token(connection: sqlite3.Connection, annotator: int, who: str) -> str:
    """A new token in place of the old one, which is void; who retired takes part again."""
    token = fresh_token()
    changed = connection.execute(
        "UPDATE annotator SET token_hash = ?, retired_at = NULL WHERE id = ?",
        (token_hash(token), annotator),
    ).rowcount
    if not changed:
        raise StoreError(f"there is no annotator {annotator}")
    log(connection, who, "token renewed", annotator=annotator)
    return token


def add_pairs(
    connection: sqlite3.Connection, pairs: Iterable[tuple[str, str, float]], origin: str, who: str
) -> list[int]:
    """Add pairs, none of which is there in either direction; their ids."""
    ids = []
    for left, right, weight in pairs:
        if left == right:
            raise StoreError(f"the pair ({left!r}, {right!r}) is an item with itself")
        known = connection.execute(
            "SELECT id FROM pair WHERE (left = ? AND right = ?) OR (left = ? AND right = ?)",
            (left, right, right, left),
        ).fetchone()
        if known is not None:
            raise StoreError(f"the pair ({left!r}, {right!r}) is there already, as pair {known[0]}")
        if not 0 < weight < float("inf"):
            raise StoreError(f"weight of ({left!r}, {right!r}) must be positive; got {weight:g}")
        number = connection.execute(
            "INSERT INTO pair (left, right, weight, origin) VALUES (?, ?, ?, ?)",
            (left, right, weight, origin),
        ).lastrowid
        assert number is not None
        ids.append(number)
    log(connection, who, "pairs added", detail=f"{len(ids)} pairs, origin {origin}")
    return ids


def assign_pair(connection: sqlite3.Connection, annotator: int, pair: int) -> None:
    """Give one pair to one annotator, if it is not theirs already."""
    connection.execute(
        "INSERT OR IGNORE INTO assignment (annotator, pair) VALUES (?, ?)", (annotator, pair)
    )


def reassign(connection: sqlite3.Connection, overlap: int, seed: int, who: str) -> None:
    """Share the pairs out again; what somebody answered or has on the screen stays theirs."""
    active = [
        row[0]
        for row in connection.execute(
            "SELECT id FROM annotator WHERE retired_at IS NULL ORDER BY id"
        )
    ]
    pairs = [
        row[0]
        for row in connection.execute("SELECT id FROM pair WHERE origin <> 'import' ORDER BY id")
    ]
    kept: dict[int, list[int]] = {}
    for annotator, pair in _kept(connection):
        kept.setdefault(pair, []).append(annotator)
    given = assign(pairs, active, overlap, seed, kept)
    wanted = {(who_, pair) for pair, whose in given.items() for who_ in whose}
    there = set(
        connection.execute(
            "SELECT annotator, pair FROM assignment WHERE pair IN "
            "(SELECT id FROM pair WHERE origin <> 'import')"
        ).fetchall()
    )
    connection.executemany(
        "DELETE FROM assignment WHERE annotator = ? AND pair = ?", sorted(there - wanted)
    )
    connection.executemany(
        "INSERT INTO assignment (annotator, pair) VALUES (?, ?)", sorted(wanted - there)
    )
    connection.execute("INSERT OR REPLACE INTO setting VALUES ('overlap', ?)", (str(overlap),))
    detail = f"{len(pairs)} pairs, {len(active)} annotators, overlap {overlap}"
    log(connection, who, "pairs assigned", detail=detail)


def _kept(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Assignments that stay: answered, reopened, or next in somebody's hands."""
    return connection.execute(
        "SELECT annotator, pair FROM assignment WHERE answer IS NOT NULL "
        "UNION SELECT a.annotator, a.pair FROM assignment a JOIN annotator n ON n.id = a.annotator "
        "WHERE a.touched IS NOT NULL AND n.retired_at IS NULL "
        "UNION SELECT a.annotator, min(a.pair) FROM assignment a "
        "JOIN annotator n ON n.id = a.annotator JOIN pair p ON p.id = a.pair "
        "WHERE a.answer IS NULL AND n.retired_at IS NULL AND p.origin <> 'import' "
        "GROUP BY a.annotator"
    ).fetchall()
