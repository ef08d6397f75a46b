"""Where the search for the manners of annotators could end in the wrong place."""

from __future__ import annotations

import numpy as np
import pytest

from pairlearn.annotators import Answers, learn_link
from pairlearn.annotators.crowd import rough_log_odds
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels


def world(prior, seed=0, pairs=300):
    """Features of two normal classes, and honest answers (pairs, 2)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, 3))
    x[:, 0] += 3 * (rng.random(2 * pairs) < prior) - 1.5
    r = 1 / (1 + np.exp(-(3 * x[:, 0] + np.log(prior / (1 - prior)))))
    return x, np.asarray(PairLabels.from_posteriors(r[::2], r[1::2]).to_array()), rng


def answers_of(*crowd):
    """Answers of several people to the same pairs, named a, b, c …"""
    ends = np.arange(2 * len(crowd[0])).reshape(-1, 2)
    rows = [
        Judgements.from_pairs(ends, PairLabels(*said.T, noisy=True), annotator=[name] * len(said))
        for name, said in zip("abcd", crowd, strict=False)
    ]
    return Answers.of(Judgements.concatenate(rows))


@pytest.mark.parametrize("prior", [0.03, 0.1])
@pytest.mark.parametrize("astray", [0, 2])
def test_rare_positives_are_not_taken_for_a_lean(prior, astray):
    x, honest, rng = world(prior)
    answers = answers_of(honest, *(rng.permutation(honest) for _ in range(astray)))
    first = learn_link(answers)
    link = learn_link(answers, rough_log_odds(answers, x), start=first)
    careful, *others = link.manners
    assert careful.honest
    assert not any(manner.useful for manner in others)
    if not astray:
        assert first.manners[0].honest


def test_a_lean_to_the_left_is_no_lean_to_same():
    x, honest, _ = world(0.1)
    answers = answers_of(np.clip(honest - np.array([0, 0.2]), [0, -1], [1, 1]))
    link = learn_link(answers, rough_log_odds(answers, x), start=learn_link(answers))
    assert link.manners[0].lean_same == 0
    assert link.manners[0].lean_right == pytest.approx(-0.2, abs=0.02)


@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_a_lean_is_found_however_rare_positives_are(prior):
    x, honest, _ = world(prior)
    said = np.clip(honest + np.array([0.15, 0]), [0, -1], [1, 1])
    answers = answers_of(said)
    link = learn_link(answers, rough_log_odds(answers, x), start=learn_link(answers))
    assert link.manners[0].lean_same == pytest.approx((said - honest)[:, 0].mean(), abs=0.03)
