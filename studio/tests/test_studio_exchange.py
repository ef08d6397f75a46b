"""Answers out as tables of pairs, and judgements back in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from pairlearn import PairLabels
from pairlearn.io import TableError, read_pairs, write_pairs
from pairlearn.simulation import simulate
from pairlearn_studio import Answer, Store, StoreError
from pairlearn_studio.exchange import (
    Statement,
    answer_lines,
    export_table,
    from_probability,
    import_judgements,
    judgements_of,
    read_preferences,
)
from pairlearn_studio.server import make_app
from studio_client import HERE, Visitor, annotate_json
from studio_store import free_pairs, make
from studio_store import stored as row
from tables import pair_ids, pair_table

ROWS = [
    row("ann", 1, 0.8, 0.1),
    row("bob", 1, 0.6, None),
    row("ann", 2, None, -0.5),
    row("bob", 2, 0.9, 0.8),  # infeasible: given as it is
    row("ann", 3, None, None, cant_say=True, note="dark"),
    row("bob", 3, None, None, preference=1),
]


# -- export ----------------------------------------------------------------------------------


def test_one_row_a_judgement(tmp_path: Path) -> None:
    exported = export_table(ROWS)
    assert (exported.cant_say, exported.infeasible) == (1, 1)
    table = read_pairs(write_pairs(exported.table, tmp_path / "pairs.csv"))
    assert table == exported.table
    assert table.left.tolist() == [1, 1, 2, 2, 3]  # ids that are integers are integers
    assert table.annotator is not None
    assert table.annotator.tolist() == ["ann", "bob", "ann", "bob", "bob"]
    assert table.of("preference").tolist() == [False] * 4 + [True] and table.u[4] == 1
    np.testing.assert_array_equal(table.similarity, [0.8, 0.6, np.nan, 0.9, np.nan])
    np.testing.assert_array_equal(table.difference, [0.1, np.nan, -0.5, 0.8, np.nan])


def test_answers_that_were_given_as_numbers() -> None:
    more = [row("ann", 4, 0.8, 0.0, level="alike"), row("ann", 5, None, others={"label": 1.0})]
    asked = [json.loads(line)["asked"] for line in answer_lines([*ROWS, *more], "graded")]
    assert asked == ["exact"] * 4 + ["graded"] * 4  # a side, a class and "can't say" are none


def test_one_row_a_pair(tmp_path: Path) -> None:
    exported = export_table(ROWS, "mean")
    table = read_pairs(write_pairs(exported.table, tmp_path / "pairs.parquet"))
    assert table == exported.table
    np.testing.assert_allclose(table.similarity, [0.7, 0.9, np.nan])
    np.testing.assert_allclose(table.difference, [0.1, 0.15, np.nan])
    assert table.annotator is None
    assert exported.cant_say == 1


def test_split_preferences_are_counted() -> None:
    votes = [row("ann", 4, None, None, preference=1), row("bob", 4, None, None, preference=-1)]
    exported = export_table([*ROWS, *votes], "median")
    assert (len(exported.table), exported.undecided) == (3, 1)
    with pytest.raises(ValueError, match="evenly split"):
        export_table(votes, "median")
    with pytest.raises(ValueError, match="all 1 answers are “can't say”"):
        export_table([ROWS[4]], "mean")


# -- import ----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(make(tmp_path / "p", items=6, pairs=5)) as store:
        yield store


def test_judgements_of_a_table_come_in_and_go_out_again(store: Store, tmp_path: Path) -> None:
    first, second = store.pairs()[:2]
    other, *_ = free_pairs(store)
    table = pair_table(
        [first.left, second.right, other[0]],  # the second the other way round
        [first.right, second.left, other[1]],
        [0.8, 0.4, np.nan],
        [0.1, 0.6, -0.3],
    )
    count = import_judgements(store, judgements_of(table, "cy"))
    assert count == (3, 0, 0, 1, 1)
    numbers = {answer.pair: answer.numbers for answer in store.answers()}
    assert numbers == {1: (0.8, 0.1), 2: (0.4, -0.6), 6: (None, -0.3)}
    assert store.pairs()[5].origin == "import"
    exported = export_table(store.answers()).table
    again = judgements_of(read_pairs(write_pairs(exported, tmp_path / "out.csv")))
    assert import_judgements(store, again) == (0, 0, 3, 0, 0)
    assert len(store.answers(current=False)) == 3


def test_what_is_imported_need_not_be_judged_again(store: Store) -> None:
    ann, token = store.add_annotator("ann")
    assert store.progress(ann.id).total == 5
    last, first = store.pairs()[-1], store.pairs()[0]
    import_judgements(store, [Statement("cy", last.left, last.right, Answer(0.5, key="k"))])
    assert store.progress(ann.id).total == 4
    cy = store.annotators()[-1]
    assert (cy.name, cy.active, store.next_task(cy.id)) == ("cy", False, None)
    import_judgements(store, [Statement("cy", last.left, last.right, Answer(0.6, key="l"))])
    assert [answer.similarity for answer in store.answers()] == [0.6]
    assert [change.action for change in store.history(pair=last.id)] == ["answered", "revised"]
    # Somebody of the app may import, too, and undoes no statement about an item.
    pair = Statement("ann", first.left, first.right, Answer(0.5, key="k"))
    alone = Statement("ann", first.left, "", Answer(others={"label": 1.0}, key="k"))
    import_judgements(store, [pair, alone])
    assert store.by_token(token) == ann and store.progress(ann.id).done == 2
    with pytest.raises(StoreError, match="is not assigned"):
        store.submit(ann.id, store.answers()[-1].pair, Answer(0.5, key="l")).result()
    undone = store.undo(ann.id).result()
    assert undone is not None and undone.pair == first.id
    assert [answer.others for answer in store.answers()][-1] == {"label": 1.0}


def test_a_file_comes_in_whole_or_not_at_all(store: Store) -> None:
    left, right = store.pairs()[0].left, store.pairs()[0].right
    answer, more = Answer(0.5, key="k"), Answer(0.5, key="k", others={"sure": 1.0})
    for bad, message in (
        (Statement("cy", left, "99", answer, "row 2"), "row 2: '99' is not among"),
        (Statement("cy", "i1", "i1", answer, "row 2"), "'i1' is compared with itself"),
        (Statement("cy", right, left, answer, "row 2"), "judged .* before, in row 1"),
        (Statement("di", right, left, more, "row 2"), "row 2: the project has .* exchange the two"),
        (Statement("x" * 81, left, right, answer), "name is"),
    ):
        with pytest.raises(StoreError, match=message):
            import_judgements(store, [Statement("cy", left, right, answer, "row 1"), bad])
        assert store.answers() == store.annotators() == []


def test_who_judged_must_be_said() -> None:
    table = pair_table([1, 2], [3, 4], [0.5, 0.5], None, annotator=["ann", ""])
    with pytest.raises(TableError, match="row 2 does not say who judged"):
        judgements_of(table)
    with pytest.raises(TableError, match="names its annotators"):
        judgements_of(table, "bob")
    both = pair_table([1], [2], None, [0.5], preference=[-1])
    with pytest.raises(TableError, match=r"row 1: difference is 0\.5 and preference -1"):
        judgements_of(both, "ann")


# -- probabilities that the right one is better ----------------------------------------------


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_probabilities_give_the_difference_back(r: float, r_prime: float) -> None:
    """From the joint distribution of the two labels, by enumeration."""
    joint = {
        (y, y_prime): (r if y else 1 - r) * (r_prime if y_prime else 1 - r_prime)
        for y in (0, 1)
        for y_prime in (0, 1)
    }
    right, left = joint[0, 1], joint[1, 0]
    same = joint[0, 0] + joint[1, 1]
    difference = pytest.approx(r_prime - r, abs=1e-9)
    win_rate = np.array([right + same / 2])
    assert from_probability(win_rate, "ties-half")[0] == difference
    # Bradley and Terry with the log-odds as scores.
    score = np.log(r_prime / (1 - r_prime)) - np.log(r / (1 - r))
    for p in (right / (right + left), 1 / (1 + np.exp(-score))):
        differences, _ = from_probability(np.array([p]), "given-different", np.array([same]))
        assert differences == difference
    if abs(r_prime - r) > 1e-9:  # at a tie rounding decides
        assert from_probability(win_rate, "side-only")[1] == np.sign(r_prime - r)


def write(folder: Path, text: str) -> Path:
    path = folder / "wins.csv"
    path.write_text(text)
    return path


def test_files_of_probabilities(tmp_path: Path) -> None:
    path = write(tmp_path, "left,right,p,annotator\na,b,0.75,gpt\nb,c,0.5,gpt\nc,d,,gpt\n")
    table = read_preferences(path, "p", "ties-half")
    assert table.difference.tolist() == [0.5, 0.0]
    assert [row.place for row in judgements_of(table)] == ["row 1", "row 2"]
    table = read_preferences(path, "p", "side-only")
    assert table.of("preference").all() and table.u.tolist() == [1]
    assert [row.place for row in judgements_of(table)] == ["row 1"]
    path = write(tmp_path, "left,right,p,similarity\n1,2,0.75,0.6\n2,3,,0.9\n")
    table = read_preferences(path, "p", "given-different")
    np.testing.assert_allclose(table.difference, [0.2, np.nan])
    assert table.left.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "reading", "message"),
    [
        ("left,right,p\na,b,1.5\n", "ties-half", "wins.csv, row 1: p is 1.5, outside [0, 1]"),
        ("left,right,p\na,b,0.5\n", "given-different", "needs a column 'similarity'"),
        ("left,right,p,similarity\na,b,.5,80\n", "given-different", "row 1: similarity is 80, out"),
        ("left,right,p,similarity\na,b,.5,\n", "given-different", "row 1 has a probability and no"),
        (
            "left,right,q\na,b,0.5\n",
            "ties-half",
            "no column 'p'; the columns are 'left', 'right', 'q'",
        ),
        ("left,right,p,difference\na,b,.5,.1\n", "ties-half", "differences or preferences of its"),
        ("left,right,p\na,b,0.5\n", "side-only", "says nothing in any row"),
        ("left,right,p\n", "ties-half", "has a header but no rows"),
        ("left,right,p\na,b,yes\n", "ties-half", "p is 'yes', not a number"),
    ],
)
def test_probabilities_that_are_refused(
    tmp_path: Path, text: str, reading: Any, message: str
) -> None:
    with pytest.raises(TableError) as caught:
        read_preferences(write(tmp_path, text), "p", reading)
    assert message in str(caught.value)


def test_exports_are_what_annotators_answered(tmp_path: Path) -> None:
    """From the pages of an annotator to a table for `fit`, by the commands."""
    simulated, folder = simulate(pairs=30, seed=5), tmp_path / "project"
    simulated.write(tmp_path / "data", "csv")
    posterior = dict(zip(map(str, simulated.items.ids), simulated.posterior, strict=True))
    options = ("--pairs", 30, "--annotators", "ann", "--answers", "exact")
    report = annotate_json("init", folder, tmp_path / "data" / "items.csv", *options)
    answers: dict[tuple[str, str], tuple[float, float]] = {}
    with TestClient(make_app(folder, requests_per_second=1e6), f"{HERE}/project") as client:
        ann = Visitor(client, report["links"]["ann"].rsplit("/", 1)[1])
        while (task := ann.task()) is not None:
            left, right = task["left"]["title"], task["right"]["title"]
            labels = PairLabels.from_posteriors([posterior[left]], [posterior[right]])
            s, c = labels.to_array()[0].tolist()
            answers[left, right] = s, c
            assert ann.answer(similarity=s, difference=c).status_code == 200
    annotate_json("export", folder, tmp_path / "a.csv")
    table = read_pairs(tmp_path / "a.csv")
    assert len(table) == len(answers) == 30
    for pair, judgement in zip(pair_ids(table), table.answers(), strict=True):
        assert answers[str(pair[0]), str(pair[1])] == pytest.approx(tuple(judgement), abs=1e-12)


def test_nobody_is_imported_into_the_seat_that_settles_pairs(tmp_path: Path) -> None:
    with Store.create(make(tmp_path)) as store:
        pair, other = store.pairs()[:2]
        store.adjudicate(pair.id, Answer(0.2, 0.1, key="settled"))
        again = Statement("supervisor", pair.left, pair.right, Answer(0.2, 0.1, key="k"))
        assert import_judgements(store, [again]).same == 1  # its own export
        forged = Statement("supervisor", other.left, other.right, Answer(0.9, 0.1, key="k"))
        with pytest.raises(StoreError, match="'supervisor' settles pairs here"):
            import_judgements(store, [forged])
        assert [answer.pair for answer in store.answers()] == [pair.id]
