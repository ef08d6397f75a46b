"""How annotators work and answer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pairlearn.annotators import Annotator as Habits
from pairlearn.annotators import in_words
from pairlearn.labels import PairLabels
from pairlearn_studio import Annotator, StoredAnswer
from pairlearn_studio.overview import overview_of, people_of
from studio_store import stored as row


def test_counts_pace_and_infeasible_share() -> None:
    rows = [
        row("ann", 1, 0.9, 0.0, seconds=2.0),
        row("ann", 2, 0.9, 0.5, seconds=4.0),  # 0.9 > 1 − 0.5
        row("ann", 3, 0.1, 0.0, seconds=9.0),  # 0 < 1 − 0.2
        row("ann", 4, 0.5, None, seconds=4.0),
        row("ann", 5, None, None, cant_say=True, seconds=1.0),
    ]
    (overview,) = overview_of(rows, {Annotator(1, "ann"): 7})
    assert (overview.done, overview.total, overview.cant_say) == (5, 7, 1)
    assert overview.median_seconds == 4.0
    assert overview.infeasible == pytest.approx(2 / 3)
    assert (overview.words, overview.doubt) == ("–", False)


def test_equal_answers_have_no_drift_in_standard_errors() -> None:
    """Values that differ in their last bit are the same answer."""
    values = [0.7, 0.7 + 1e-16, 0.1 + 0.6] * 10
    rows = [row("ann", pair, s, 0.0) for pair, s in enumerate(sorted(values))]
    (overview,) = overview_of(rows, {Annotator(1, "ann"): 30})
    assert overview.drift == pytest.approx(0)
    assert math.isnan(overview.drift_z)


def test_drift_of_a_fixed_rule_is_chance() -> None:
    """In standard errors it is normal: beyond 2 in 1 of 20 projects, beyond 3 in 1 of 370."""
    rng = np.random.default_rng(0)
    drifts = []
    for _ in range(300):
        rows = [row("rule", pair, s, 0.0) for pair, s in enumerate(rng.random(90))]
        people = {Annotator(1, "rule"): 90}
        drifts.append(overview_of(rows, people)[0].drift_z)
    assert 0.02 < np.mean(np.abs(drifts) > 2) < 0.09
    assert np.mean(np.abs(drifts) > 3) < 0.02


def test_drift_of_somebody_who_grows_generous() -> None:
    s = [0.2, 0.3, 0.2, 0.5, 0.5, 0.5, 0.8, 0.7, 0.9]
    rows = [row("ann", k, v, seconds=10.0 if k < 3 else 5.0) for k, v in enumerate(s)]
    (overview,) = overview_of(rows, {Annotator(1, "ann"): 9})
    assert overview.drift == pytest.approx(0.8 - 0.7 / 3)
    # Welch's t, by hand: variances 1/300 and 1/100 over three answers each.
    assert overview.drift_z == pytest.approx((0.8 - 0.7 / 3) / math.sqrt(1 / 900 + 1 / 300))


def test_a_share_of_guesses_that_could_be_anything_is_not_told() -> None:
    wide = Habits("ann", 40, guesses=0.47, guesses_error=0.2)
    assert wide.sentence().startswith("too few answers to say how many are guesses")
    assert "guesses (" in replace(wide, guesses_error=0.05).sentence()
    # Honest people with few answers: a share that may be 0 is not told.
    few = Habits("ann", 20, guesses=0.03, guesses_error=0.1)
    assert few.sentence() == "nothing to correct"


def test_nobody_and_nothing() -> None:
    assert overview_of([], {}) == []
    (overview,) = overview_of([], {Annotator(1, "ann"): 3})
    assert (overview.done, overview.total) == (0, 3)
    assert math.isnan(overview.infeasible)
    assert math.isnan(overview.drift)


def crowd(seed: int, pairs: int = 120) -> list[StoredAnswer]:
    rng = np.random.default_rng(seed)
    honest = np.asarray(PairLabels.from_posteriors(*rng.beta(0.5, 0.5, (2, pairs))).to_array())
    return [
        answer
        for pair, (s, c) in enumerate(honest.tolist())
        for answer in (
            row("careful", pair, s, c),
            row("constant", pair, 1.0, 0.0),
            row("random", pair, rng.random(), rng.uniform(-1, 1)),
        )
    ]


@pytest.mark.parametrize("seed", range(2))
def test_a_careful_person_is_not_doubted_beside_a_constant_and_a_random_one(seed: int) -> None:
    """Who agrees most with the others is not who is right: the two who are not agree in nothing."""
    people = people_of(crowd(seed))
    words = {name: in_words(people.phrases(name)) for name in ("careful", "constant", "random")}
    assert words["careful"] == "nothing to correct" and "careful" not in people.doubted
    assert words["constant"] == "gives every pair the same answer" and "constant" in people.doubted
    assert "guesses" in words["random"] or "hardly related" in words["random"]
    assert people_of([]).doubted == set()
