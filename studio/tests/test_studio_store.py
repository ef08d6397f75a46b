"""The store: answers, undos and revisions, annotators, and the file that keeps them."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairlearn_studio import Answer, Project, Receipt, Store, StoreError
from pairlearn_studio.store_file import APPLICATION_ID
from studio_store import history, make, rows, submit


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(make(tmp_path / "p")) as store:
        yield store


@pytest.fixture
def ann(store: Store) -> int:
    return store.add_annotator("ann")[0].id


def answered_pairs(store: Store, **which: bool) -> list[int]:
    return [answer.pair for answer in store.answers(**which)]


def test_an_answer_comes_back_as_it_was(store: Store, ann: int) -> None:
    answer = Answer(0.1 + 0.2, -1 / 3, False, "a “note”\n\U0001f600", 4.25, "k")
    receipt = store.submit(ann, 3, answer).result()
    (stored,) = store.answers()
    pair = store.pairs()[2]
    assert vars(stored).items() >= vars(answer).items()
    assert (stored.annotator, stored.pair) == ("ann", 3)
    assert (stored.left, stored.right) == (pair.left, pair.right)
    assert (stored.id, stored.revision) == (receipt.answer_id, 1)
    assert stored.at.endswith("Z")


def test_undo(store: Store, ann: int) -> None:
    assert store.undo(ann).result() is None
    receipts = [submit(store, ann, pair) for pair in (1, 2)]
    assert receipts[0] != receipts[1]  # a key is for one pair
    task = store.undo(ann, answer_id=receipts[1].answer_id).result()
    assert task is not None and task.pair == 2
    assert store.undo(ann, answer_id=receipts[1].answer_id).result() is None  # once
    assert store.next_task(ann) == task
    assert answered_pairs(store) == [1]
    assert answered_pairs(store, current=False) == [1, 2]
    # The form that was taken back, delivered again, does not bring its answer back.
    assert submit(store, ann, 2) == receipts[1]
    assert store.next_task(ann) == task
    new = submit(store, ann, 2, "new")
    assert new.revision == 2
    lines = [(row.who, row.action, row.before, row.after) for row in history(store, 2)]
    assert lines == [
        ("ann", "answered", None, receipts[1].answer_id),
        ("ann", "withdrawn", receipts[1].answer_id, None),
        ("ann", "answered", None, new.answer_id),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"similarity": float("nan")}, "similarity is nan, outside [0, 1]"),
        ({"difference": float("inf")}, "difference is inf, outside [-1, 1]"),
        ({}, "answer is empty"),
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
    """Random answers, repeats, revisions and undos, compared with a model made of lists."""
    rng = random.Random(3)
    with Store.create(make(tmp_path / "p", overlap=2)) as store:
        names = {who.id: who.name for who, _ in store.add_annotators(["ann", "bob", "cy"])}
        current: dict[tuple[str, int], float] = {}
        stack: dict[int, list[int]] = {who: [] for who in names}
        sent: list[tuple[int, int, Answer, Receipt]] = []
        for step in range(400):
            who = rng.choice([*names])
            kind = rng.random()
            if kind < 0.2:
                task = store.undo(who).result()
                assert (task.pair if task else None) == (stack[who][-1] if stack[who] else None)
                if stack[who]:
                    del current[names[who], stack[who].pop()]
                continue
            if kind < 0.4 and sent:
                who, pair, answer, receipt = rng.choice(sent)
                assert store.submit(who, pair, answer).result() == receipt
                with pytest.raises(StoreError, match="was used before for another answer"):
                    store.submit(who, pair, replace(answer, others={"preference": 1.0})).result()
                continue
            open_task = store.next_task(who)
            pair = open_task.pair if open_task else None
            if stack[who] and (pair is None or kind < 0.6):
                pair = rng.choice(stack[who])
            assert pair is not None
            current[names[who], pair] = similarity = rng.random()
            answer = Answer(similarity, key=f"step-{step}")
            sent.append((who, pair, answer, store.submit(who, pair, answer).result()))
            if pair in stack[who]:
                stack[who].remove(pair)
            stack[who].append(pair)
        stored = {(row.annotator, row.pair): row.similarity for row in store.answers()}
        assert stored == current
        assert len(store.answers(current=False)) == len(sent)
        actions = Counter(change.action for change in history(store))
        assert actions["answered"] + actions["revised"] == len(sent)


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
    query = "SELECT name FROM assignment a JOIN annotator n ON n.id = a.annotator"
    return Counter(name for (name,) in rows(store.project.store_path, query))


def test_who_joins_gets_a_share_and_nothing_begun_moves(store: Store, ann: int) -> None:
    for pair in (1, 2):
        submit(store, ann, pair)
    shown = store.next_task(ann)
    assert shown is not None and shown.pair == 3
    store.add_annotators(["bob", "cy"])
    assert loads(store) == {"ann": 4, "bob": 4, "cy": 4}
    assert answered_pairs(store) == [1, 2]
    assert store.next_task(ann) == replace(shown, total=4)


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
    submit(store, ann.id, task.pair)
    for who, pair in ((ann.id, bobs.pair), (99, 1)):
        with pytest.raises(StoreError, match="is not assigned to annotator"):
            submit(store, who, pair)
    store.retire(ann.id)
    assert store.by_token(token) is None
    assert store.next_task(ann.id) is None
    assert loads(store) == {"ann": 1, "bob": 11}
    assert [answer.annotator for answer in store.answers()] == ["ann"]
    with pytest.raises(StoreError, match="'ann' has retired"):
        submit(store, ann.id, task.pair, "late")
    with pytest.raises(StoreError, match="no annotator"):
        store.retire(ann.id)
    assert [annotator.active for annotator in store.annotators()] == [False, True]
    back = store.renew_token(ann.id)
    assert store.by_token(back) is not None
    assert sum(loads(store).values()) == 12


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answer SET similarity = 1",
        "DELETE FROM answer",
        "UPDATE change SET who = 'x'",
        "DELETE FROM change",
    ],
)
def test_nothing_is_ever_changed_or_removed(store: Store, ann: int, statement: str) -> None:
    submit(store, ann, 1)
    with pytest.raises(sqlite3.IntegrityError, match="kept as they are"):
        rows(store.project.store_path, statement)


def test_a_receipt_is_given_after_the_commit(store: Store, ann: int) -> None:
    path, seen = store.project.store_path, []
    for pair in range(1, 13):
        future = store.submit(ann, pair, Answer(0.5))
        # Runs in the writer's thread, at the moment in which the receipt is given.
        future.add_done_callback(
            lambda done, pair=pair: seen.append(
                rows(path, f"SELECT id = {done.result().answer_id} FROM answer WHERE pair = {pair}")
            )
        )
        future.result()
    store.close()
    assert seen == [[(1,)]] * 12


@contextmanager
def writer_waits(store: Store) -> Iterator[None]:
    """Keep the writer busy, so that what is submitted meanwhile waits."""
    go = threading.Event()
    store._writer.submit(lambda _: go.wait(60))
    yield
    go.set()


def test_answers_that_wait_are_committed_together(store: Store, ann: int) -> None:
    statements: list[str] = []
    store.carry_out(lambda changes: changes.connection.set_trace_callback(statements.append))
    with writer_waits(store):
        futures = [store.submit(ann, 1 + k % 12, Answer(0.5)) for k in range(100)]
    assert len({future.result().answer_id for future in futures}) == 100
    store.close()
    assert statements.count("COMMIT") <= 3


def test_one_bad_answer_does_not_spoil_the_others(store: Store, ann: int) -> None:
    with writer_waits(store):
        futures = [store.submit(ann, pair, Answer(0.5)) for pair in (1, 777, 2)]
    assert futures[0].result().revision == 1
    assert isinstance(futures[1].exception(), StoreError)
    assert futures[2].result().revision == 1
    assert answered_pairs(store) == [1, 2]


def test_a_closed_store_says_so(store: Store, ann: int) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        submit(store, ann, 1)


NEXT = ("ALTER TABLE answer ADD COLUMN sure REAL",)


OTHER = "CREATE TABLE bookmarks (url TEXT);"
NEWER = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (OTHER, "is an SQLite file of another program"),
        (f"{OTHER} PRAGMA user_version = 1", "is an SQLite file of another program"),
        (NEWER, "has schema version 99; this pairlearn reads version 2"),
        (b"id,x\n" * 1000, "is not a file of answers"),
        (None, "answers.sqlite does not exist"),
    ],
)
def test_files_that_are_not_ours(tmp_path: Path, content: Any, message: str) -> None:
    project = make(tmp_path / "p")
    if isinstance(content, str):
        with closing(sqlite3.connect(project.store_path)) as connection:
            connection.executescript(content)
    elif content:
        project.store_path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Store.open(project)
    assert message in str(caught.value)
    if isinstance(content, str):  # the journal mode may change
        return
    path = project.store_path
    assert (path.read_bytes() if path.exists() else None) == content
