"""Honest people where positives are rare: nearly every pair is "the same"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import Answers, Crowd, fair, learn_link
from pairlearn.annotators.answers import constant_people
from pairlearn.annotators.crowd import learn_with_items, rough_log_odds
from pairlearn.check import check
from pairlearn.judgements import Judgements

RARE = 0.05


def world(pairs: int, prior: float = RARE, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features of two normal classes, the classes, and yes-or-no answers (pairs, 2) drawn."""
    rng = np.random.default_rng(seed)
    positive = rng.random(2 * pairs) < prior
    x = rng.normal(size=(2 * pairs, 3))
    x[:, 0] += np.where(positive, 2, -2)
    drawn = rng.random(2 * pairs) < 1 / (1 + np.exp(-4 * x[:, 0] - np.log(prior / (1 - prior))))
    left, right = drawn[::2], drawn[1::2]
    return x, positive, np.stack([left == right, right * 1.0 - left], 1)


def judged(values: Any, names: Any) -> Judgements:
    return Judgements.from_pairs(np.arange(2 * len(values)).reshape(-1, 2), values, annotator=names)


def turns(pairs: int, people: int) -> Any:
    return np.array([f"a{row % people}" for row in range(pairs)])


@pytest.mark.parametrize("people", [1, 2])
def test_rare_positives_are_no_lean_of_yes_or_no_answers(people: int) -> None:
    for seed in range(2):
        x, _, values = world(300, seed=seed)
        answers = Answers.of(judged(values, turns(300, people)))
        first = learn_link(answers)
        scores = rough_log_odds(answers, x)
        assert scores is not None
        link = learn_with_items(answers, scores, first)
        for manner in (*first.manners, *link.manners):
            assert (manner.lean_same, manner.lean_right) == (0, 0)
            assert manner.guesses < 0.05


def test_a_habit_of_same_is_still_a_lean() -> None:
    x, _, values = world(600, prior=0.5)
    said = np.where(np.random.default_rng(1).random((600, 1)) < 0.4, [1.0, 0.0], values)
    answers = Answers.of(judged(said, None))
    scores = rough_log_odds(answers, x)
    assert scores is not None
    (manner,) = learn_link(answers, scores).manners
    assert manner.lean_same == pytest.approx((said - values)[:, 0].mean(), abs=0.08)


def test_honest_yes_or_no_answers_are_learnt_from_as_they_are() -> None:
    x, positive, values = world(300, seed=3)
    answers = Answers.of(judged(values, turns(300, 2)))
    scores = rough_log_odds(answers, x)
    assert scores is not None
    link = learn_with_items(answers, scores, learn_link(answers))
    combined, worth = link.combined(answers, scores)
    assert np.abs(combined - values).mean() < 0.02
    assert np.median(worth) > 0.95
    right = []
    for annotators in ("ideal", "learn"):
        model = PairClassifier(
            model="linear", preprocessor=x, annotators=annotators, random_state=0
        )
        model.fit(answers.ends, PairLabels.from_array(values))
        right.append(((model.decision_function(x) > 0) == positive).mean())
    assert right[1] > right[0] - 0.005


def test_somebody_who_rightly_says_same_all_the_time_has_no_habit() -> None:
    same, often = np.tile([1.0, 0.0], (30, 1)), np.array([[1.0, 0.0]] * 19 + [[0.0, 1.0]])
    half = np.array([[1.0, 0.0], [0.0, 1.0]] * 15)
    assert constant_people([same, np.tile(often, (10, 1))]) == [False, False]
    assert constant_people([same, half, half]) == [True, False, False]
    assert constant_people([np.tile(same, (10, 1)), np.tile(often, (10, 1))]) == [True, False]
    assert constant_people([same, same, same, half]) == [True, True, True, False]
    # Nobody to compare with: only what is literally one answer is called so.
    assert constant_people([same]) == constant_people([same[:10]]) == [True]
    assert constant_people([same, same]) == [True, True]
    assert constant_people([same[:9]]) == constant_people([np.tile(often, (10, 1))]) == [False]
    assert constant_people([]) == []
    assert constant_people([np.empty((0, 2)), same, half]) == [False, True, False]


def test_nobody_is_left_out_where_same_is_usual() -> None:
    _, _, values = world(120, seed=8)
    names = turns(120, 5)
    rows = judged(values, names)
    alike = [len(np.unique(values[names == name], axis=0)) == 1 for name in np.unique(names)]
    assert sum(alike) >= 2
    crowd = Crowd.of(rows)
    assert not any(manner.constant for manner in crowd.manners.values())
    assert not [doubt for doubt in crowd.doubts() if doubt.code == "outlying-annotator"]
    assert len(fair(list(crowd.manners.values()), rows)) == 120
    table = replace(rows, ids=np.arange(240))
    report = check(table)
    codes = {finding.code for finding in report.findings}
    levels = next(finding for finding in report.findings if finding.code == "levels")
    assert len(levels.ids) == 5 - sum(alike)  # one answer shows no scale
    assert not codes & {"constant-similarity", "constant-difference", "outlying-annotator"}
