"""Checks of tables by several people: who is named, and who never is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pairlearn import PairLabels
from pairlearn.check import check
from pairlearn.judgements import Judgements
from tables import pair_table
from test_check import codes, find

PAIRS = 60


def table_of(*people: str, seed: int = 0) -> Judgements:
    """Every pair judged by all people, who have a spread of their own; a name is a habit."""
    rng = np.random.default_rng(seed)
    labels = PairLabels.from_posteriors(*rng.beta(1, 1, (2, PAIRS))).to_array()

    def answers(habit: str) -> Any:
        values = labels + 0.05 * rng.normal(size=labels.shape)
        if habit == "reversed":
            values = values * [1, -1]
        elif habit == "constant":
            values = np.tile([1.0, 0.0], (PAIRS, 1))
        elif habit == "random":
            values = np.stack([rng.random(PAIRS), rng.uniform(-1, 1, PAIRS)], 1)
        elif habit == "leaning":
            values[:, 0] += 0.25
        elif habit == "levels":
            values = np.round(4 * values) / 4
        return values.clip([0, -1], [1, 1])

    s, c = np.concatenate([answers(habit) for habit in people]).T
    names = np.repeat([f"{habit}{k}" for k, habit in enumerate(people)], PAIRS)
    left = np.tile(np.arange(PAIRS), len(people))
    return pair_table(left, left + PAIRS, s, c, annotator=names)


@pytest.mark.parametrize(
    ("people", "code", "names"),
    [
        (("careful", "careful", "reversed"), "reversed-annotator", ("reversed2",)),
        (("careful", "reversed"), "rival-annotators", ("careful0", "reversed1")),
        (("careful", "careful", "constant"), "constant-annotator", ("constant2",)),
        (("careful", "careful", "random"), "outlying-annotator", ("random2",)),
        (("careful", "careful", "leaning"), "leaning-annotator", ("leaning2",)),
    ],
)
def test_people_with_habits_are_named(people: Any, code: str, names: tuple[str, ...]) -> None:
    found = find(check(table_of(*people), precision=False), code)
    assert found.ids == names
    assert all(name in found.message for name in names)


@pytest.mark.parametrize("seed", range(4))
def test_careful_people_are_never_named(seed: int) -> None:
    report = check(table_of("careful", "careful", "levels", seed=seed), precision=False)
    about_people = {code for code in codes(report, "warning") if "annotator" in code}
    assert not about_people


def test_levels_are_a_note() -> None:
    report = check(table_of("careful", "levels"), precision=False)
    assert "levels" in codes(report, "note")


def test_names_that_differ_in_case_are_noted() -> None:
    s = np.linspace(0.5, 1, 40)
    names = ["Ann", "ann "] * 20
    report = check(pair_table(range(40), range(40, 80), s, 1 - s, annotator=names))
    assert "similar-names" in codes(report, "note")


def test_one_similarity_for_all_pairs_is_told() -> None:
    report = check(pair_table(range(50), range(50, 100), [0.5] * 50, None))
    assert "constant-similarity" in codes(report) and "too-unlike" not in codes(report)


def test_the_report_describes_people() -> None:
    report = check(table_of("careful", "careful", "random"), precision=False)
    assert report.people is not None
    assert "guesses" in report.people.describe("random2")
