"""Findings about annotators: each with a crowd that has it, and honest crowds without any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pairlearn.annotators import findings
from test_annotator_model import constant, crowd, guessing, hard, honest, ideal, levels


def blurred(r: Any, q: Any, rng: Any) -> Any:
    return np.clip(honest(r, q) + rng.normal(0, 0.05, (len(r), 2)), [0, -1], [1, 1])


def exchanged(r: Any, q: Any, rng: Any) -> Any:
    return honest(r, q) * [1, -1]


def untouched(r: Any, q: Any, rng: Any) -> Any:
    return np.where(rng.random(len(r))[:, None] < 0.3, [0.5, 0.0], blurred(r, q, rng))


def elsewhere(r: Any, q: Any, rng: Any) -> Any:
    other = np.random.default_rng(1).random((2, len(r)))
    return blurred(*other, rng)


def no_differences(r: Any, q: Any, rng: Any) -> Any:
    return blurred(r, q, rng) * [1, 0]


@pytest.mark.parametrize(
    ("people", "code", "names"),
    [
        ((blurred, blurred, exchanged), "reversed-annotator", ("p2",)),
        ((ideal, ideal, blurred), "copied-annotator", ("p1",)),
        ((blurred, constant), "constant-answers", ("p1",)),
        ((blurred, no_differences), "constant-answers", ("p1",)),
        ((blurred, untouched), "untouched", ("p1",)),
        ((blurred, blurred, elsewhere, elsewhere), "rival-annotators", ("p0", "p1", "p2", "p3")),
        ((blurred, exchanged), "rival-annotators", ("p0", "p1")),
    ],
)
def test_each_finding_names_the_people(people: Any, code: str, names: tuple[str, ...]) -> None:
    judged, _scores, _ = crowd(*people)
    (found,) = findings(judged)
    assert (found.code, found.ids) == (code, names)
    assert all(name in found.message for name in names)


def test_one_answer_by_all_people_is_no_disagreement() -> None:
    judged, scores, _ = crowd(constant, constant)
    for given in (None, scores):
        found = [(one.code, one.ids) for one in findings(judged, given)]
        assert found == [("constant-answers", ("p0",)), ("constant-answers", ("p1",))]


def test_scores_show_who_has_left_and_right_exchanged() -> None:
    judged, scores, _ = crowd(blurred, exchanged, blurred)
    alone = np.arange(len(judged)) % 3 == np.repeat([0, 1, 2], len(judged) // 3)
    assert findings(judged[alone]) == []
    (found,) = findings(judged[alone], scores[alone])
    assert (found.code, found.ids) == ("reversed-annotator", ("p1",))


def test_scores_show_a_group_that_no_features_explain() -> None:
    """Two who agree on something else may be wrong where a model of their answers fails."""
    judged, scores, _ = crowd(blurred, elsewhere, elsewhere)
    assert findings(judged) == []
    other = np.random.default_rng(0).permutation(scores)
    for given in (scores, np.tile(other[: len(other) // 3], (3, 1))):
        (found,) = findings(judged, given)
        assert (found.code, found.ids[-2:]) == ("rival-annotators", ("p1", "p2"))


def test_one_of_two_who_guesses_is_no_rival_of_the_model() -> None:
    judged, scores, _ = crowd(blurred, guessing)
    assert [found.code for found in findings(judged)] == ["rival-annotators"]
    assert findings(judged, scores) == []


@pytest.mark.parametrize("people", [(ideal,), (blurred,) * 3, (levels,) * 3, (hard,) * 3])
@pytest.mark.parametrize("shift", [0.0, -4.0])
def test_honest_crowds_have_no_finding(people: Any, shift: float) -> None:
    for seed in range(5):
        judged, scores, _ = crowd(*people, seed=seed, shift=shift)
        assert findings(judged, scores) == []
        assert findings(judged[:60]) == []
