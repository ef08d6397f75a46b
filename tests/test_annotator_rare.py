"""Honest people where positives are rare: nearly every pair is "the same"."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlearn.annotators import Crowd, fair
from pairlearn.annotators.answers import constant_people
from pairlearn.check import check
from pairlearn.judgements import Judgements
from pairlearn.tables import PairTable

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
    table = PairTable.from_judgements(rows, np.arange(240))
    report = check(table)
    codes = {finding.code for finding in report.findings}
    levels = next(finding for finding in report.findings if finding.code == "levels")
    assert len(levels.ids) == 5 - sum(alike)  # one answer shows no scale
    assert not codes & {"constant-similarity", "constant-difference", "outlying-annotator"}
