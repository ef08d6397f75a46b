"""Answers out as tables of pairs, and judgements back in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from pairlearn import PairLabels
from pairlearn.io import TableError, read_pairs, write_pairs
from pairlearn.simulation import simulate
from pairlearn_studio import Answer, Store, StoreError
from pairlearn_studio.exchange import (
    Statement,
    export_table,
    import_judgements,
    judgements_of,
)
from pairlearn_studio.server import make_app
from studio_client import HERE, Visitor, annotate_json
from studio_store import free_pairs, history, make
from studio_store import stored as row
from tables import pair_ids, pair_table

ROWS = [
    row("ann", 1, 0.8, 0.1),
    row("bob", 1, 0.6, None),
    row("ann", 2, None, -0.5),
    row("bob", 2, 0.9, 0.8),  # infeasible: given as it is
    row("ann", 3, None, None, cant_say=True, note="dark"),
    row("bob", 3, None, None, others={"preference": 1.0}),
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


def test_both_positive_and_both_negative_go_out_apart(tmp_path: Path) -> None:
    levels = ("both positive", "both negative", "alike")
    given = [Answer(0.9, 0.0, level=level) for level in levels]
    answers = [row("ann", k, 0.9, 0.0, others=a.others, level=a.level) for k, a in enumerate(given)]
    exported = export_table(answers)
    exported.write(tmp_path / "pairs.csv")
    table = read_pairs(tmp_path / "pairs.csv")
    assert table == exported.table
    assert table[table.of("common")].u.tolist() == [1, 0]
    assert table.similarity[~np.isnan(table.similarity)].tolist() == [0.9] * 3


def test_nothing_to_export() -> None:
    with pytest.raises(ValueError, match="all 1 answers are “can't say”"):
        export_table([ROWS[4]])
    with pytest.raises(ValueError, match="no answers yet"):
        export_table([])


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
    assert [change.action for change in history(store, last.id)] == ["answered", "revised"]
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


def test_exports_are_what_annotators_answered(tmp_path: Path) -> None:
    """From the pages of an annotator to a table for `fit`, by the commands."""
    simulated, folder = simulate(pairs=30, seed=5), tmp_path / "project"
    simulated.write(tmp_path / "data", "csv")
    posterior = dict(zip(map(str, simulated.items.ids), simulated.posterior, strict=True))
    options = ("--pairs", 30, "--annotators", "ann", "--answers", "exact")
    report = annotate_json("init", folder, tmp_path / "data" / "items.csv", *options)
    answers: dict[tuple[str, str], tuple[float, float]] = {}
    with TestClient(make_app(folder), f"{HERE}/project") as client:
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
