"""Checks of tables by several people: who is named, and who never is."""

from __future__ import annotations

from typing import Any

import pytest

from pairlearn.check import check
from tables import pair_table, people_table
from test_check import codes, find


@pytest.mark.parametrize(
    ("people", "code", "names"),
    [
        (("careful", "careful", "reversed"), "reversed-annotator", ("reversed2",)),
        (("careful", "reversed"), "rival-annotators", ("careful0", "reversed1")),
        (("careful", "careful", "constant"), "constant-answers", ("constant2",)),
        (("careful", "careful", "random"), "outlying-annotator", ("random2",)),
        (("careful", "careful", "leaning"), "leaning-annotator", ("leaning2",)),
    ],
)
def test_people_with_habits_are_named(people: Any, code: str, names: tuple[str, ...]) -> None:
    found = find(check(people_table(*people)), code)
    assert found.ids == names
    assert all(name in found.message for name in names)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("habit", ["elsewhere", "reversed"])
def test_nobody_is_accused_where_the_answers_do_not_show_who_guesses(habit: str, seed: int) -> None:
    report = check(people_table("careful", habit, pairs=300, seed=seed))
    about_people = {code for code in codes(report, "warning") if "annotator" in code}
    assert about_people <= {"rival-annotators"}
    assert about_people or habit == "elsewhere"


@pytest.mark.parametrize("seed", range(4))
def test_careful_people_are_never_named(seed: int) -> None:
    report = check(people_table("careful", "careful", "levels", seed=seed))
    about_people = {code for code in codes(report, "warning") if "annotator" in code}
    assert not about_people


def test_one_similarity_for_all_pairs_is_told() -> None:
    report = check(pair_table(range(50), range(50, 100), [0.5] * 50, None))
    assert "constant-answers" in codes(report) and "too-unlike" not in codes(report)


def test_the_report_describes_people() -> None:
    report = check(people_table("careful", "careful", "random"))
    assert report.people is not None
    assert "guesses" in report.people.describe("random2")
