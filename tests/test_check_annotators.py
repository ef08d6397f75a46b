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


@pytest.mark.parametrize(
    ("people", "code"),
    [
        (("careful", "careful", "reversed"), "reversed-annotator"),
        (("careful", "elsewhere"), "rival-annotators"),
        (("careful", "reversed"), "rival-annotators"),
    ],
)
def test_a_finding_that_explains_answers_is_the_only_one(people: Any, code: str) -> None:
    """The answers of two who do not agree do not show who guesses."""
    report = check(people_table(*people, pairs=300))
    assert {found for found in codes(report, "warning") if "annotator" in found} == {code}


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
