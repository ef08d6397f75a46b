"""Where the search for the manners of annotators could end in the wrong place."""

from __future__ import annotations

import numpy as np
import pytest
from pairlearn.annotators.crowd import rough_log_odds
from pairlearn.annotators.link import Link, expect, of_ends
from scipy.stats import norm

from pairlearn.annotators import Answers, Manner, fair, learn_link
from pairlearn.annotators.scale import POSTERIORS, SIZE
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels


def world(prior, seed=0, pairs=300, factors=(1,)):
    """Features of two normal classes, and honest answers (pairs, 2), one for each confidence."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, 3))
    x[:, 0] += 3 * (rng.random(2 * pairs) < prior) - 1.5
    odds = 3 * x[:, 0] + np.log(prior / (1 - prior))
    chances = [1 / (1 + np.exp(-factor * odds)) for factor in factors]
    answers = [PairLabels.from_posteriors(r[::2], r[1::2]).to_array() for r in chances]
    return x, *map(np.asarray, answers), rng


def table_of(*crowd):
    """Answers of several people to the same pairs, named a, b, c …"""
    ends = np.arange(2 * len(crowd[0])).reshape(-1, 2)
    rows = [
        Judgements.from_pairs(ends, PairLabels(*said.T, noisy=True), annotator=[name] * len(said))
        for name, said in zip("abcd", crowd, strict=False)
    ]
    return Judgements.concatenate(rows)


def answers_of(*crowd):
    return Answers.of(table_of(*crowd))


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


def scattered(answers, rng):
    """The same answers, a little off, as no two people agree to the last digit."""
    return np.clip(answers + rng.normal(0, 0.01, answers.shape), [0, -1], [1, 1])


@pytest.mark.parametrize("factor", [0.5, 2])
def test_another_confidence_is_neither_guesses_nor_a_lean(factor):
    x, honest, theirs, rng = world(0.4, factors=(1, factor))
    answers = answers_of(theirs, scattered(honest, rng), scattered(honest, rng))
    first = learn_link(answers)
    link = learn_link(answers, rough_log_odds(answers, x), start=first)
    for manners in (first.manners, link.manners):
        assert manners[0].confidence == pytest.approx(factor, rel=0.2)
        assert manners[0].guesses < 0.02
        assert not manners[0].same_amount
        assert manners[1].honest
        assert manners[2].honest
    comparison = "more" if factor > 1 else "less"
    assert (
        link.manners[0].words()
        == f"{comparison} confident than the others (log-odds × {factor:.1f})"
    )
    # Corrected, the answers are those of the others.
    assert np.abs(link.combined(answers)[0] - honest).mean() < 0.01
    alone = fair(link.manners, table_of(theirs))
    assert np.abs((alone.values - honest).mean(0)).max() < 0.01
    assert np.abs(alone.values - honest).mean() < 0.8 * np.abs(theirs - honest).mean()


def test_of_two_people_nobody_is_the_confident_one():
    x, honest, theirs, _ = world(0.4, factors=(1, 2))
    answers = answers_of(honest, theirs)
    link = learn_link(answers, rough_log_odds(answers, x), start=learn_link(answers))
    less, more = link.manners
    assert less.confidence * more.confidence == pytest.approx(1, abs=0.01)
    assert more.confidence / less.confidence == pytest.approx(2, rel=0.3)
    assert max(less.guesses, more.guesses) < 0.02


def test_answers_that_vary_guess_or_lean_show_no_other_confidence():
    _, honest, rng = world(0.4)
    blurred = np.clip(honest + rng.normal(0, 0.15, honest.shape), [0, -1], [1, 1])
    leaning = np.clip(honest + np.array([0.15, 0]), [0, -1], [1, 1])
    guessing = np.where(rng.random((len(honest), 1)) < 0.3, rng.permutation(honest), honest)
    answers = answers_of(scattered(honest, rng), blurred, leaning, guessing)
    link = learn_link(answers)
    assert [manner.confidence for manner in link.manners] == [1, 1, 1, 1]


def test_expectations_are_sums_over_all_pairs_of_posteriors():
    rng = np.random.default_rng(0)
    rows = Judgements.from_pairs(
        [[0, 1], [2, 3], [4, 5], [2, 3], [0, 1], [2, 3]],
        [[0.7, 0.2], [0.3, -0.8], [0.9, 0.1], [0.4, -0.6], [0.8, 0.1], [0.9, 0.0]],
        annotator=["a", "a", "a", "a", "b", "b"],  # a answers one pair twice
    )
    answers, log_odds = Answers.of(rows), np.array([[-2.0, 0.3], [1.0, -0.4], [0.1, 3.0]])
    manners = (
        Manner("a", random=0.1, same_form="shift", same_amount=0.1),
        Manner("b", random=0.2, confidence=2.0),
    )
    link = Link(manners, rng.dirichlet(np.ones(SIZE), size=3), np.array([-0.5, 0.5]))
    state = expect(link, answers, log_odds)

    r, q = POSTERIORS[:, None], POSTERIORS
    sharp = POSTERIORS**2 / (POSTERIORS**2 + (1 - POSTERIORS) ** 2)
    told = {
        "a": ((r * q + (1 - r) * (1 - q) + 0.1).clip(0, 1), q - r),
        "b": (
            np.multiply.outer(sharp, sharp) + np.multiply.outer(1 - sharp, 1 - sharp),
            sharp - sharp[:, None],
        ),
    }
    bins, logs = np.digitize(log_odds, link.edges), []
    for pair in range(3):
        whole = np.multiply.outer(*link.posteriors[bins[pair]])
        of_row = {}
        for row in np.flatnonzero(answers.pair == pair):
            manner = manners[answers.who[row]]
            (s, c), (same, right) = answers.values[row], told[manner.name]
            honest = norm.pdf(s, same, 0.02**0.5) * norm.pdf(c, right, 0.06**0.5)
            likelihood = (1 - manner.random) * honest + manner.random / 2
            of_row[row] = (1 - manner.random) * honest / likelihood
            whole = whole * likelihood
        logs.append(np.log(whole.sum()))
        whole /= whole.sum()
        of_left, of_right = of_ends(link, state.bins, state.grid)[pair]
        assert of_left == pytest.approx(whole.sum(1))
        assert of_right == pytest.approx(whole.sum(0))
        honest = (r * q + (1 - r) * (1 - q), np.broadcast_to(q - r, whole.shape))
        assert state.mean[pair] == pytest.approx([(whole * answer).sum() for answer in honest])
        for row, no_guess in of_row.items():
            assert state.sure[row] == pytest.approx((whole * no_guess).sum())
    assert state.fit == pytest.approx(np.mean(logs))
