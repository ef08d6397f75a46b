"""The store: who takes part, and the file that keeps it all."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairlearn.studio import Answer, Project, Store, StoredAnswer, StoreError
from pairlearn.studio.changes import Changes
from pairlearn.studio.records import Receipt
from studio_store import make, rows, said


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(make(tmp_path / "p")) as one:
        yield one


# -- annotators ------------------------------------------------------------------------------


def test_tokens(store: Store, tmp_path: Path) -> None:
    ann, token = store.add_annotator("ann")
    bob, other = store.add_annotator("bob")
    assert len(token) == 43
    assert token != other
    assert store.by_token(token) == ann
    assert store.by_token(other) == bob
    for forged in ("", token[:-1], token + "x", token.lower(), "\ud800", "x" * 100_000):
        assert store.by_token(forged) is None
    renewed = store.renew_token(ann.id)
    assert store.by_token(token) is None
    assert store.by_token(renewed) == ann
    supervisor = store.supervisor_token
    assert supervisor is not None
    assert store.is_supervisor(supervisor)
    assert not store.is_supervisor(token)
    assert store.by_token(supervisor) is None
    store.close()
    for path in (tmp_path / "p").iterdir():
        for secret in (token, other, renewed, supervisor):
            assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "x" * 81, "ann"])
def test_names_that_are_refused(store: Store, name: str) -> None:
    store.add_annotator("ann")
    with pytest.raises(StoreError, match="name"):
        store.add_annotator(name)
    assert [one.name for one in store.annotators()] == ["ann"]


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
    with Store.create(make(tmp_path / "p", overlap=3)) as store:
        store.add_annotators(["ann", "bob"])
        assert loads(store) == {"ann": 12, "bob": 12}  # fewer people than wanted
        store.add_annotators(["cy", "di"])
        assert loads(store) == {"ann": 9, "bob": 9, "cy": 9, "di": 9}
        whose = rows(
            store.project.store_path, "SELECT pair, count(*) FROM assignment GROUP BY pair"
        )
        assert {count for _, count in whose} == {3}


def test_an_overlap_that_is_changed_in_the_file_takes_effect(tmp_path: Path) -> None:
    project = make(tmp_path / "p")
    with Store.create(project) as store:
        store.add_annotators(["ann", "bob"])
        assert sum(loads(store).values()) == 12
    replace(project, overlap=2).save()
    with Store.open(Project.load(project.folder)) as store:
        assert loads(store) == {"ann": 12, "bob": 12}


def test_who_retires_leaves_answers_behind_and_pairs_to_the_others(store: Store) -> None:
    (ann, token), _ = store.add_annotators(["ann", "bob"])
    task = store.next_task(ann.id)
    assert task is not None
    store.submit(ann.id, task.pair, said("k")).result()
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
    taken = {frozenset((one.left, one.right)) for one in store.pairs()}
    free = next(
        (f"i{a}", f"i{b}")
        for a in range(8)
        for b in range(8)
        if a != b and frozenset((f"i{a}", f"i{b}")) not in taken
    )
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


# -- the file --------------------------------------------------------------------------------


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


def test_commits_reach_the_disk(store: Store) -> None:
    def settings(changes: Changes) -> list[Any]:
        names = ("synchronous", "journal_mode", "foreign_keys")
        return [changes.rows(f"PRAGMA {name}")[0][0] for name in names]

    assert store.carry_out(settings) == [2, "wal", 1]  # 2 is FULL


def test_a_receipt_is_given_after_the_commit(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    seen = []
    future = store.submit(ann.id, 1, said("k"))
    # Runs in the writer's thread, at the moment in which the receipt is given.
    path = store.project.store_path
    future.add_done_callback(lambda _: seen.append(rows(path, "SELECT count(*) FROM answer")))
    for pair in range(2, 13):
        one = store.submit(ann.id, pair, said("k"))
        one.add_done_callback(
            lambda done, pair=pair: seen.append(
                rows(path, f"SELECT id = {done.result().answer_id} FROM answer WHERE pair = {pair}")
            )
        )
        one.result()
    future.result()
    store.close()
    assert len(seen) == 12
    assert all(found[0][0] >= 1 for found in seen)


def test_answers_that_wait_are_committed_together(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    go, statements = threading.Event(), []

    def block(connection: sqlite3.Connection) -> None:
        go.wait(10)

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
    store._writer.submit(lambda _: go.wait(10))
    futures = [store.submit(ann.id, pair, said("k")) for pair in (1, 777, 2)]
    go.set()
    assert futures[0].result().revision == 1
    assert isinstance(futures[1].exception(), StoreError)
    assert futures[2].result().revision == 1
    assert [one.pair for one in store.answers()] == [1, 2]


def test_a_full_disk_is_told_and_survived(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    store.submit(ann.id, 1, said("k")).result()

    def pages(limit: int) -> int:
        return store.carry_out(
            lambda changes: int(changes.rows(f"PRAGMA max_page_count = {limit}")[0][0])
        )

    pages(1)  # no more than there are
    failed = 0
    for k in range(200):
        answer = said(f"k{k}", note="x" * 2000)
        failed += isinstance(store.submit(ann.id, 2, answer).exception(), OSError)
    assert failed
    pages(10**6)
    before = len(store.answers(current=False))
    assert before == 1 + 200 - failed
    store.submit(ann.id, 3, said("k")).result()
    assert len(store.answers(current=False)) == before + 1


def test_a_closed_store_says_so(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.submit(ann.id, 1, said("k"))


def test_two_processes_may_write(tmp_path: Path) -> None:
    """Two stores on one file are what two processes are."""
    project = make(tmp_path / "p")
    with Store.create(project) as one, Store.open(project) as two:
        ann, _ = one.add_annotator("ann")
        receipts: list[Receipt] = []

        def work(store: Store, pairs: range) -> None:
            receipts.extend(store.submit(ann.id, pair, said("k")).result() for pair in pairs)

        threads = [
            threading.Thread(target=work, args=(one, range(1, 7))),
            threading.Thread(target=work, args=(two, range(7, 13))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({receipt.answer_id for receipt in receipts}) == 12
        assert one.progress(ann.id).done == two.progress(ann.id).done == 12


def test_many_threads_read_while_others_write(store: Store) -> None:
    people = [who for who, _ in store.add_annotators([f"a{k}" for k in range(4)])]
    errors: list[BaseException] = []

    def work(annotator: int) -> None:
        try:
            while (task := store.next_task(annotator)) is not None:
                store.submit(annotator, task.pair, said("k")).result()
                done = store.progress(annotator).done
                assert done == task.number  # one reads one's own writing
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(who.id,)) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(one.pair for one in store.answers()) == list(range(1, 13))


def test_an_answer_row_holds_what_its_fields_say() -> None:
    row = StoredAnswer(1, "ann", 7, "a", "b", None, None, 0, True, "why", 2.0, "t", 1)
    assert row.answer("k") == Answer(cant_say=True, note="why", seconds=2.0, key="k")
    assert row.answer("k").same_judgement(Answer(cant_say=True, key="other"))
