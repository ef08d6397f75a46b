"""The store: what is answered, undone and revised."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotate_store import make, said
from pairlearn.studio import Answer, Store, StoreError
from pairlearn.studio.records import Receipt


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


def test_undo_again_and_again_goes_back_in_order(store: Store) -> None:
    ann, _ = store.add_annotator("ann")
    for pair in (1, 2, 3):
        store.submit(ann.id, pair, said("k")).result()
    undone = [store.undo(ann.id).result() for _ in range(4)]
    assert [one and one.pair for one in undone] == [3, 2, 1, None]
    order = []
    while len(order) < 4:
        task = store.next_task(ann.id)
        assert task is not None
        order.append(task.pair)
        store.submit(ann.id, task.pair, said("again")).result()
    assert order == [1, 2, 3, 4]


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
