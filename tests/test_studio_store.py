"""The store: what is answered, undone and revised, by whom, and the file that keeps it all."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pairlearn.studio import Answer, Project, Receipt, Store, StoreError, writer
from pairlearn.studio.changes import Changes
from pairlearn.studio.store_file import APPLICATION_ID, MIGRATIONS, connect, migrate, version_of
from studio_store import free_pairs, make, rows, said


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(make(tmp_path / "p")) as one:
        yield one


def test_an_answer_comes_back_as_it_was(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    answer = Answer(0.1 + 0.2, -1 / 3, -1, False, "a “note”\n\U0001f600", 4.25, "k")
    receipt = store.submit(ann.id, 3, answer).result()
    (found,) = store.answers()
    pair = store.pairs()[2]
    assert vars(found).items() >= vars(answer).items()
    assert (found.annotator, found.pair) == ("ann", 3)
    assert (found.left, found.right) == (pair.left, pair.right)
    assert (found.id, found.revision) == (receipt.answer_id, 1)
    assert found.at.endswith("Z")
    assert store.current(ann.id, 3) == found
    assert store.current(ann.id, 4) is None


def test_undo(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    assert store.undo(ann.id).result() is None
    receipts = [store.submit(ann.id, pair, said("k")).result() for pair in (1, 2)]
    assert receipts[0] != receipts[1]  # a key is for one pair
    task = store.undo(ann.id, answer_id=receipts[1].answer_id).result()
    assert task is not None and task.pair == 2
    assert store.undo(ann.id, answer_id=receipts[1].answer_id).result() is None  # once
    assert store.next_task(ann.id) == task
    assert [one.pair for one in store.answers()] == [1]
    assert [one.pair for one in store.answers(current=False)] == [1, 2]
    # The form that was taken back, delivered again, does not bring its answer back.
    assert store.submit(ann.id, 2, said("k")).result() == receipts[1]
    assert store.next_task(ann.id) == task
    new = store.submit(ann.id, 2, said("new")).result()
    assert new.revision == 2
    assert [(one.who, one.action, one.before, one.after) for one in store.history(pair=2)] == [
        ("ann", "answered", None, receipts[1].answer_id),
        ("ann", "withdrawn", receipts[1].answer_id, None),
        ("ann", "answered", None, new.answer_id),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"similarity": float("nan")}, "similarity is nan, outside [0, 1]"),
        ({"difference": float("inf")}, "difference is inf, outside [-1, 1]"),
        ({"preference": 2}, "preference must be -1, 0 or 1; got 2"),
        ({"difference": 0.5, "preference": -1}, "they point to different sides"),
        ({}, "nothing is said"),
        ({"cant_say": True, "similarity": 0.5}, "cant_say goes with no other answer"),
        ({"similarity": 0.5, "key": ""}, "key must be 1 to 128 printable characters"),
        ({"similarity": 0.5, "key": "a\nb"}, "key must be"),
        ({"similarity": 0.5, "note": "x" * 2001}, "note has 2001 characters"),
        ({"similarity": 0.5, "note": "a\0b"}, "NUL"),
        ({"similarity": 0.5, "seconds": float("nan")}, "seconds must be"),
    ],
)
def test_what_no_answer_can_be(words: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError) as caught:
        Answer(**({"key": "k"} | words))
    assert message in str(caught.value)


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
                with pytest.raises(StoreError, match="came before with another answer"):
                    store.submit(who, pair, replace(answer, preference=1)).result()
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


def test_no_token_is_in_any_file(store: Store, tmp_path: Path) -> None:
    ann, token = store.add_annotator("ann")
    renewed, supervisor = store.renew_token(ann.id), store.supervisor_token
    assert supervisor is not None and store.by_token(supervisor) is None
    assert store.by_token(renewed) == ann and store.by_token(token) is None
    for forged in ("", "\ud800", "x" * 100_000):
        assert store.by_token(forged) is None
    store.close()
    for path in (tmp_path / "p").iterdir():
        for secret in (token, renewed, supervisor):
            assert len(secret) == 43 and secret.encode() not in path.read_bytes()


def loads(store: Store) -> Counter[str]:
    names = {one.id: one.name for one in store.annotators()}
    query = "SELECT annotator, pair FROM assignment"
    return Counter(names[who] for who, _ in rows(store.project.store_path, query))


def test_who_joins_gets_a_share_and_nothing_begun_moves(tmp_path: Path) -> None:
    with Store.create(make(tmp_path / "p")) as store:
        ann, _ = store.add_annotator("ann")
        for _ in range(2):
            task = store.next_task(ann.id)
            assert task is not None
            store.submit(ann.id, task.pair, said("k")).result()
        shown = store.next_task(ann.id)
        store.add_annotators(["bob", "cy"])
        assert loads(store) == {"ann": 4, "bob": 4, "cy": 4}
        assert [one.pair for one in store.answers()] == [1, 2]
        after = store.next_task(ann.id)
        assert shown is not None
        assert after == replace(shown, total=4)


def test_overlap(tmp_path: Path) -> None:
    project = make(tmp_path / "p", overlap=3)
    with Store.create(project) as store:
        store.add_annotators(["ann", "bob"])
        assert loads(store) == {"ann": 12, "bob": 12}  # fewer people than wanted
        store.add_annotators(["cy", "di"])
        assert loads(store) == {"ann": 9, "bob": 9, "cy": 9, "di": 9}
        whose = rows(project.store_path, "SELECT pair, count(*) FROM assignment GROUP BY pair")
        assert {count for _, count in whose} == {3}
    replace(project, overlap=4).save()  # takes effect when the store is opened
    with Store.open(Project.load(project.folder)) as store:
        assert set(loads(store).values()) == {12}


def test_who_retires_leaves_answers_behind_and_pairs_to_the_others(store: Store) -> None:
    (ann, token), _ = store.add_annotators(["ann", "bob"])
    task, bobs = store.next_task(ann.id), store.next_task(ann.id + 1)
    assert task is not None and bobs is not None
    store.submit(ann.id, task.pair, said("k")).result()
    for who, pair in ((ann.id, bobs.pair), (99, 1)):
        with pytest.raises(StoreError, match="is not assigned to annotator"):
            store.submit(who, pair, said("k")).result()
    store.retire(ann.id)
    assert store.by_token(token) is None
    assert store.next_task(ann.id) is None
    assert loads(store) == {"ann": 1, "bob": 11}
    assert [one.annotator for one in store.answers()] == ["ann"]
    with pytest.raises(StoreError, match="'ann' has retired"):
        store.submit(ann.id, task.pair, said("late")).result()
    with pytest.raises(StoreError, match="no annotator"):
        store.retire(ann.id)
    assert [(one.name, one.active) for one in store.annotators()] == [("ann", False), ("bob", True)]
    back = store.renew_token(ann.id)
    assert store.by_token(back) is not None
    assert sum(loads(store).values()) == 12


def test_chosen_pairs(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    free, *_ = free_pairs(store)
    (number,) = store.add_pairs([(*free, 2.5)])
    assert store.pairs()[-1].weight == 2.5
    assert store.pairs()[-1].origin == "chosen"
    task = store.task(ann.id, number)
    assert task is not None
    assert task.total == 13
    store.submit(ann.id, number, said("k")).result()
    assert store.answers()[0].weight == 2.5
    for bad, message in [
        ((free[1], free[0], 1.0), "is there already, as pair 13"),
        (("i0", "nobody", 1.0), "'nobody' is not among the items"),
        (("i0", "i0", 1.0), "an item with itself"),
    ]:
        with pytest.raises(StoreError, match=message):
            store.add_pairs([bad])
    assert len(store.pairs()) == 13


def test_nothing_is_ever_changed_or_removed(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    store.submit(ann.id, 1, said("k")).result()
    connection = sqlite3.connect(store.project.store_path)
    for statement in (
        "UPDATE answer SET similarity = 1",
        "DELETE FROM answer",
        "UPDATE change SET who = 'x'",
        "DELETE FROM change",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="kept as they are"):
            connection.execute(statement)
    connection.close()


def test_a_receipt_is_given_after_the_commit(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    path, seen = store.project.store_path, []
    for pair in range(1, 13):
        one = store.submit(ann.id, pair, said("k"))
        # Runs in the writer's thread, at the moment in which the receipt is given.
        one.add_done_callback(
            lambda done, pair=pair: seen.append(
                rows(path, f"SELECT id = {done.result().answer_id} FROM answer WHERE pair = {pair}")
            )
        )
        one.result()
    store.close()
    assert seen == [[(1,)]] * 12


def test_answers_that_wait_are_committed_together(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    go, statements = threading.Event(), []

    def block(connection: sqlite3.Connection) -> None:
        go.wait(60)

    def listen(changes: Changes) -> None:
        changes.connection.set_trace_callback(statements.append)

    store.carry_out(listen)
    blocker = store._writer.submit(block)
    futures = [store.submit(ann.id, 1 + k % 12, said(f"k{k}")) for k in range(100)]
    go.set()
    assert len({future.result().answer_id for future in futures}) == 100
    blocker.result()
    store.close()
    assert statements.count("COMMIT") <= 3


def test_one_bad_answer_does_not_spoil_the_others(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    go = threading.Event()
    store._writer.submit(lambda _: go.wait(60))
    futures = [store.submit(ann.id, pair, said("k")) for pair in (1, 777, 2)]
    go.set()
    assert futures[0].result().revision == 1
    assert isinstance(futures[1].exception(), StoreError)
    assert futures[2].result().revision == 1
    assert [one.pair for one in store.answers()] == [1, 2]


def test_a_closed_store_says_so(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.submit(ann.id, 1, said("k"))


def test_a_file_of_the_first_version_gets_levels(tmp_path: Path) -> None:
    project = make(tmp_path)
    with Store.create(project) as store:
        ann, _ = store.add_annotator("ann")
        store.submit(ann.id, 1, said("a")).result()
    with closing(sqlite3.connect(project.store_path)) as connection:
        connection.execute("ALTER TABLE answer DROP COLUMN level")
        connection.execute("PRAGMA user_version = 1")
    with Store.open(project) as store:
        store.submit(ann.id, 2, said("b", level="alike")).result()
        assert [one.level for one in store.answers()] == ["", "alike"]
    assert rows(tmp_path / "answers.v1.sqlite", "PRAGMA user_version") == [(1,)]


NEXT = ("ALTER TABLE answer ADD COLUMN sure REAL",)


def test_the_answers_of_a_project_survive_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make(tmp_path / "p")
    with Store.create(one) as store:
        ann, token = store.add_annotator("ann")
        store.submit(ann.id, 1, Answer(0.7, 0.1, key="k")).result()
        before = store.answers()
    assert not list(one.folder.glob("*.v*"))  # nothing was to be brought up to date
    monkeypatch.setattr(writer, "migrate", partial(migrate, migrations=(*MIGRATIONS, NEXT)))
    with Store.open(one) as store:
        assert (
            store.carry_out(lambda changes: version_of(changes.connection)) == len(MIGRATIONS) + 1
        )
        assert store.answers() == before
        assert store.by_token(token) == ann
        store.submit(ann.id, 2, Answer(0.2, key="k")).result()
        assert len(store.answers()) == 2
    (copy,) = one.folder.glob("*.v*")
    assert copy.name == f"answers.v{len(MIGRATIONS)}.sqlite"
    assert rows(copy, "SELECT similarity, difference FROM answer") == [(0.7, 0.1)]
    monkeypatch.undo()
    with pytest.raises(StoreError, match="upgrade pairlearn"):
        Store.open(one)


def test_a_step_that_fails_leaves_the_file_at_the_step_before(tmp_path: Path) -> None:
    path = make(tmp_path / "p").store_path
    Store.create(Project.load(path.parent)).close()
    broken = ("ALTER TABLE answer ADD COLUMN more REAL", "INSERT INTO nowhere VALUES (1)")
    with closing(connect(path, writer=True)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            migrate(connection, path, (*MIGRATIONS, NEXT, broken))
        assert version_of(connection) == len(MIGRATIONS) + 1
        columns = {row[1] for row in connection.execute("PRAGMA table_info(answer)")}
    assert "sure" in columns and "more" not in columns


def written(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


OTHER = "CREATE TABLE bookmarks (url TEXT)"


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda path: written(path, OTHER), "is an SQLite file of another program"),
        (
            lambda path: written(path, OTHER, "PRAGMA user_version = 1"),
            "is an SQLite file of another program",
        ),
        (lambda path: path.write_bytes(b"id,x\n" * 1000), "is not a file of answers"),
        (lambda path: None, "answers.sqlite does not exist"),
        (
            lambda path: written(
                path, f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 99"
            ),
            f"has schema version 99; this pairlearn knows versions up to {len(MIGRATIONS)}",
        ),
    ],
)
def test_files_that_are_not_ours(tmp_path: Path, harm: Any, message: str) -> None:
    one = make(tmp_path / "p")
    harm(one.store_path)
    before = one.store_path.read_bytes() if one.store_path.exists() else None
    with pytest.raises(StoreError) as caught:
        Store.open(one)
    assert message in str(caught.value)
    after = one.store_path.read_bytes() if one.store_path.exists() else None
    if before is None or not before.startswith(b"SQLite"):  # its journal mode may change
        assert after == before
