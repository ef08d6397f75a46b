"""The store: what is answered, undone and revised."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pairlearn.studio import Answer, Plan, Project, Store, StoreError, writer
from pairlearn.studio.records import Receipt
from pairlearn.studio.store_file import APPLICATION_ID, MIGRATIONS, connect, migrate, version_of
from studio_store import make, said


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(make(tmp_path / "p")) as one:
        yield one


# -- tasks -----------------------------------------------------------------------------------


def test_all_pairs_in_turn(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    seen = []
    for number in range(1, 13):
        task = store.next_task(ann.id)
        assert task is not None
        assert store.next_task(ann.id) == task  # stable until answered
        assert (task.number, task.total) == (number, 12)
        seen.append((task.pair, task.left, task.right))
        store.submit(ann.id, task.pair, said(f"k{number}")).result()
    assert store.next_task(ann.id) is None
    assert seen == [(one.id, one.left, one.right) for one in store.pairs()]


def test_a_task_can_be_looked_up(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    first = store.next_task(ann.id)
    assert first is not None
    assert store.task(ann.id, first.pair) == first
    for key in ("a", "b"):
        task = store.next_task(ann.id)
        assert task is not None
        store.submit(ann.id, task.pair, said(key)).result()
    assert store.task(ann.id, first.pair) == first  # still the first of twelve
    assert store.task(ann.id, 999) is None
    assert store.task(999, first.pair) is None


def test_progress(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    before = store.progress(ann.id)
    assert (before.done, before.total, before.per_hour, before.seconds_left) == (0, 12, None, None)
    for pair, seconds in ((1, 4.0), (2, 10.0), (3, 600.0)):
        store.submit(ann.id, pair, said("k", seconds=seconds)).result()
    after = store.progress(ann.id)
    assert (after.done, after.total, after.per_hour, after.seconds_left) == (3, 12, 360.0, 90.0)


# -- answers ---------------------------------------------------------------------------------


def test_an_answer_comes_back_as_it_was(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    answer = Answer(0.1 + 0.2, -1 / 3, -1, False, "a “note”\n\U0001f600", 4.25, "k")
    receipt = store.submit(ann.id, 3, answer).result()
    (found,) = store.answers()
    pair = store.pairs()[2]
    assert found.answer("k") == answer
    assert (found.annotator, found.pair, found.left, found.right) == (
        "ann",
        3,
        pair.left,
        pair.right,
    )
    assert (found.id, found.revision) == (receipt.answer_id, 1)
    assert found.at.endswith("Z")
    assert store.current(ann.id, 3) == found
    assert store.current(ann.id, 4) is None


def test_the_same_key_is_the_same_answer(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    first = store.submit(ann.id, 1, said("k", 0.2)).result()
    assert store.submit(ann.id, 1, said("k", 0.9)).result() == first
    assert [one.similarity for one in store.answers(current=False)] == [0.2]
    assert store.submit(ann.id, 2, said("k", 0.9)).result() != first  # a key is for one pair


def test_another_key_is_a_revision(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    first = store.submit(ann.id, 1, said("a", 0.2)).result()
    second = store.submit(ann.id, 1, said("b", 0.9)).result()
    assert (first.revision, second.revision) == (1, 2)
    assert [one.similarity for one in store.answers()] == [0.9]
    assert [one.similarity for one in store.answers(current=False)] == [0.2, 0.9]
    assert store.progress(ann.id).done == 1
    changes = store.history(pair=1)
    assert [(one.who, one.action, one.before, one.after) for one in changes] == [
        ("ann", "answered", None, first.answer_id),
        ("ann", "revised", first.answer_id, second.answer_id),
    ]


def test_undo(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    assert store.undo(ann.id).result() is None
    receipts = [store.submit(ann.id, pair, said("k")).result() for pair in (1, 2)]
    task = store.undo(ann.id).result()
    assert task is not None
    assert task.pair == 2
    assert store.next_task(ann.id) == task
    assert [one.pair for one in store.answers()] == [1]
    assert [one.pair for one in store.answers(current=False)] == [1, 2]
    withdrawn = store.history(pair=2)[-1]
    assert (withdrawn.action, withdrawn.before, withdrawn.after) == (
        "withdrawn", receipts[1].answer_id, None,
    )  # fmt: skip
    # The form that was taken back, delivered again, does not bring its answer back.
    assert store.submit(ann.id, 2, said("k")).result() == receipts[1]
    assert store.next_task(ann.id) == task
    assert store.submit(ann.id, 2, said("new")).result().revision == 2
    assert store.next_task(ann.id) is not None


def test_an_undo_that_is_delivered_twice_takes_one_answer_back(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    receipts = [store.submit(ann.id, pair, said("k")).result() for pair in (1, 2)]
    last = receipts[1].answer_id
    assert store.undo(ann.id, answer_id=last).result() is not None
    assert store.undo(ann.id, answer_id=last).result() is None
    assert [one.pair for one in store.answers()] == [1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"similarity": 1.01}, "similarity is 1.01, outside [0, 1]"),
        ({"similarity": float("nan")}, "similarity is nan"),
        ({"difference": -1.5}, "difference is -1.5, outside [-1, 1]"),
        ({"difference": float("inf")}, "difference is inf"),
        ({"preference": 2}, "preference must be -1, 0 or 1; got 2"),
        ({"difference": 0.5, "preference": -1}, "they point to different sides"),
        ({}, "nothing is said"),
        ({"cant_say": True, "similarity": 0.5}, "cant_say goes with no other answer"),
        ({"similarity": 0.5, "key": ""}, "key must be 1 to 128 printable characters"),
        ({"similarity": 0.5, "key": "a\nb"}, "key must be"),
        ({"similarity": 0.5, "note": "x" * 2001}, "note has 2001 characters"),
        ({"similarity": 0.5, "note": "\ud800"}, "without surrogates"),
        ({"similarity": 0.5, "note": "a\0b"}, "NUL"),
        ({"similarity": 0.5, "seconds": -1}, "seconds must be"),
        ({"similarity": 0.5, "seconds": float("nan")}, "seconds must be"),
    ],
)
def test_what_no_answer_can_be(words: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError) as caught:
        Answer(**({"key": "k"} | words))
    assert message in str(caught.value)


def test_answers_to_pairs_of_others_are_refused(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    bob, _ = store.add_annotator("bob")
    task = store.next_task(bob.id)
    assert task is not None
    with pytest.raises(StoreError, match="is not assigned to annotator"):
        store.submit(ann.id, task.pair, said("k")).result()
    with pytest.raises(StoreError, match="is not assigned"):
        store.submit(99, 1, said("k")).result()


def test_against_a_plain_model(tmp_path: Path) -> None:
    """Answers, repeats, revisions and undos at random, beside lists that do the same."""
    rng = random.Random(3)
    with Store.create(make(tmp_path / "p", overlap=2)) as store:
        people = [who.id for who, _ in store.add_annotators(["ann", "bob", "cy"])]
        current: dict[tuple[int, int], float] = {}
        stack: dict[int, list[int]] = {one: [] for one in people}
        sent: list[tuple[int, int, Answer, Receipt]] = []
        for step in range(400):
            who = rng.choice(people)
            kind = rng.random()
            if kind < 0.2:
                task = store.undo(who).result()
                assert (task.pair if task else None) == (stack[who][-1] if stack[who] else None)
                if stack[who]:
                    del current[(who, stack[who].pop())]
                continue
            if kind < 0.4 and sent:
                who, pair, answer, receipt = rng.choice(sent)
                assert store.submit(who, pair, answer).result() == receipt
                continue
            open_task = store.next_task(who)
            pair = open_task.pair if open_task else None
            if stack[who] and (pair is None or kind < 0.6):
                pair = rng.choice(stack[who])
            assert pair is not None
            answer = said(f"step-{step}", rng.random())
            sent.append((who, pair, answer, store.submit(who, pair, answer).result()))
            assert answer.similarity is not None
            current[(who, pair)] = answer.similarity
            if pair in stack[who]:
                stack[who].remove(pair)
            stack[who].append(pair)
        names = {one.name: one.id for one in store.annotators()}
        found = {(names[one.annotator], one.pair): one.similarity for one in store.answers()}
        assert found == current
        assert len(store.answers(current=False)) == len(sent)
        answered = [one for one in store.history() if one.action in ("answered", "revised")]
        assert len(answered) == len(sent)


FIRST = (
    "CREATE TABLE judgement (pair INTEGER PRIMARY KEY, percent INTEGER)",
    f"PRAGMA application_id = {APPLICATION_ID}",
)
SECOND = (
    "CREATE TABLE answer (pair INTEGER PRIMARY KEY, similarity REAL)",
    "INSERT INTO answer SELECT pair, percent / 100.0 FROM judgement",
    "DROP TABLE judgement",
)
THIRD = ("ALTER TABLE answer ADD COLUMN difference REAL",)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path, writer=True)) as connection:
        yield connection


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 1, as an earlier program would have left it."""
    path = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE judgement (pair INTEGER PRIMARY KEY, percent INTEGER)")
        connection.execute("INSERT INTO judgement VALUES (1, 80), (2, 25)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    return path


def test_an_old_file_is_brought_up_to_date(old: Path) -> None:
    with opened(old) as connection:
        assert migrate(connection, old, (FIRST, SECOND, THIRD)) == 1
        assert version_of(connection) == 3
        found = connection.execute("SELECT * FROM answer ORDER BY pair").fetchall()
    assert found == [(1, 0.8, None), (2, 0.25, None)]
    with closing(sqlite3.connect(old.with_name("answers.v1.sqlite"))) as copy:
        assert copy.execute("SELECT percent FROM judgement ORDER BY pair").fetchall() == [
            (80,),
            (25,),
        ]
        assert version_of(copy) == 1


def test_a_step_that_fails_leaves_the_file_at_the_step_before(old: Path) -> None:
    broken = ("ALTER TABLE answer ADD COLUMN difference REAL", "INSERT INTO nowhere VALUES (1)")
    with opened(old) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            migrate(connection, old, (FIRST, SECOND, broken))
        assert version_of(connection) == 2
        columns = [row[1] for row in connection.execute("PRAGMA table_info(answer)")]
    assert columns == ["pair", "similarity"]


def test_a_file_that_is_up_to_date_is_left_alone(old: Path) -> None:
    with opened(old) as connection:
        assert migrate(connection, old, (FIRST,)) == 1
    assert [path.name for path in old.parent.iterdir()] == ["answers.sqlite"]


def project(folder: Path) -> Project:
    (folder / "items.csv").write_text("id,x\na,1\nb,2\nc,3\n")
    return Project(folder, "table", "items.csv", Plan(pairs=3))


def test_the_answers_of_a_real_project_survive_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = project(tmp_path)
    with Store.create(one) as store:
        ann, token = store.add_annotator("ann")
        store.submit(ann.id, 1, Answer(0.7, 0.1, key="k")).result()
        before = store.answers()
    later = (*MIGRATIONS, ("ALTER TABLE answer ADD COLUMN sure REAL",))
    monkeypatch.setattr(writer, "migrate", partial(migrate, migrations=later))
    with Store.open(one) as store:
        assert (
            store.carry_out(lambda changes: version_of(changes.connection)) == len(MIGRATIONS) + 1
        )
        assert store.answers() == before
        assert store.by_token(token) == ann
        store.submit(ann.id, 2, Answer(0.2, key="k")).result()
        assert len(store.answers()) == 2
    monkeypatch.undo()
    with pytest.raises(StoreError, match="upgrade pairlearn"):
        Store.open(one)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    one = project(tmp_path)
    Store.create(one).close()
    with closing(sqlite3.connect(one.store_path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    with pytest.raises(StoreError) as caught:
        Store.open(one)
    newest = len(MIGRATIONS)
    assert f"has schema version 99; this pairlearn knows versions up to {newest}" in str(
        caught.value
    )
    with closing(sqlite3.connect(one.store_path)) as connection:
        assert version_of(connection) == 99


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.commit()


def other_program_with_a_version(path: Path) -> None:
    other_program(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (other_program, "is an SQLite file of another program"),
        (other_program_with_a_version, "is an SQLite file of another program"),
        (lambda path: path.write_bytes(b"id,x\n" * 1000), "is not a file of answers"),
        (lambda path: None, "answers.sqlite does not exist"),
    ],
)  # fmt: skip
def test_files_that_are_not_ours(tmp_path: Path, make: object, message: str) -> None:
    one = project(tmp_path)
    make(one.store_path)  # type: ignore[operator]
    before = one.store_path.read_bytes() if one.store_path.exists() else None
    with pytest.raises(StoreError) as caught:
        Store.open(one)
    assert message in str(caught.value)
    after = one.store_path.read_bytes() if one.store_path.exists() else None
    if message != "is an SQLite file of another program":  # its journal mode may change
        assert after == before
