"""Who goes with whom, and with what the features say: corners of the tables of answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import Crowd
from pairlearn.annotators import answers as module
from pairlearn.annotators.answers import Answers, untouched
from pairlearn.annotators.crowd import rough_log_odds
from pairlearn.columns import Floats, Indices
from pairlearn.estimators import cross_fitting
from pairlearn.judgements import Judgements

PAIRS = 300


def world(*shape: int) -> tuple[Any, Any, Any]:
    """Features of items, the log-odds of both ends of pairs, and honest answers to these."""
    x = np.random.default_rng(0).normal(size=(2 * PAIRS, *shape))
    z = 3 * x.reshape(PAIRS, 2, -1)[..., 0]
    r = 1 / (1 + np.exp(-z))
    return x, z, np.asarray(PairLabels.from_posteriors(r[:, 0], r[:, 1]).to_array())


def answers_of(names: Any, values: Any, ends: Any = None) -> Answers:
    ends = np.arange(2 * len(values)).reshape(-1, 2) if ends is None else ends
    return Answers.of(Judgements.from_pairs(ends, values, annotator=names))


@pytest.mark.parametrize("people", [1, 2, 5, 10])
def test_features_tell_the_odds_whoever_answers_which_pair(people: int) -> None:
    """As many people as folds, who take turns, are no reason to see nothing of one of them."""
    x, z, honest = world(4)
    names = np.array([f"a{row % people}" for row in range(PAIRS)])
    guessed = np.random.default_rng(1).permutation(honest)
    odds = rough_log_odds(answers_of(names, np.where(names[:, None] == "a0", honest, guessed)), x)
    assert odds is not None
    assert np.corrcoef(odds.ravel(), z.ravel())[0, 1] > 0.9


def test_features_of_images_with_gaps_and_in_a_file(tmp_path: Any) -> None:
    x, z, honest = world(2, 3, 3)
    x[:, 1, 0], x[::3, 1, 1] = np.nan, np.nan  # of nobody, and of some
    file = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, x.shape)
    file[:] = x
    answers = answers_of(np.tile(["a", "b"], PAIRS // 2), honest)
    odds = rough_log_odds(answers, file)
    assert odds is not None
    assert np.corrcoef(odds.ravel(), z.ravel())[0, 1] > 0.9
    assert rough_log_odds(answers, x[:, 0, 0, :0]) is None
    assert rough_log_odds(answers, np.ones((2 * PAIRS, 2))) is None
    assert rough_log_odds(answers.part(np.arange(0)), x) is None
    honest[:, 1] = np.nan
    assert rough_log_odds(answers_of(None, honest), x) is None


def test_who_goes_with_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    _, z, honest = world(2)
    guessed = np.random.default_rng(1).permutation(honest)
    names, ends = np.repeat(["", "b", "c"], PAIRS), np.tile(np.arange(2 * PAIRS), 3).reshape(-1, 2)
    all_three = answers_of(names, np.concatenate([honest, honest, guessed]), ends)
    expected = np.zeros((3, 3), bool)
    expected[[0, 1], [1, 0]] = True
    np.testing.assert_array_equal(all_three.together(), expected)
    assert all_three.strays(z) == {"c"}
    similar = all_three.values.copy()
    similar[:, 1] = np.nan
    similar = answers_of(names, similar, ends)
    np.testing.assert_array_equal(similar.together(), expected)
    assert similar.strays(z) == frozenset()
    monkeypatch.setattr(module, "MOST", 2)  # only those who said most are compared
    np.testing.assert_array_equal(all_three.together(), expected)


@pytest.mark.parametrize("nobody", [None, np.nan, ""])
def test_a_missing_name_is_nobody(nobody: Any) -> None:
    named = module.named(np.array([1.5, nobody]) if nobody != nobody else [1.5, nobody])
    assert named.tolist() == ["1.5", ""]


def test_nobody_goes_with_anybody_who_answers_other_pairs_or_none() -> None:
    _, z, honest = world(2)
    for names, count in ((["a", "b"], 2), (["", ""], 1)):
        apart = answers_of(np.repeat(names, PAIRS // 2), honest)
        assert apart.together().shape == (count, count) and not apart.together().any()
        assert apart.strays(z) == frozenset()
    nobody = answers_of(["a"] * PAIRS, honest).without(["a"])
    assert not nobody.together().any() and nobody.strays(z) == frozenset()
    empty = answers_of([], honest[:0])
    assert empty.together().shape == (0, 0) and empty.strays(z[:0]) == frozenset()


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_features_decide_against_two_who_nearly_copy_each_others_guesses(share: float) -> None:
    (x, _, honest), rng = world(4), np.random.default_rng(1)
    guesses = np.where(rng.random((PAIRS, 1)) < share, rng.permutation(honest), honest)
    nearly = (guesses + 0.02 * rng.normal(size=guesses.shape)).clip([0, -1], [1, 1])
    ends, who = np.tile(np.arange(2 * PAIRS).reshape(-1, 2), (3, 1)), np.repeat(list("abc"), PAIRS)
    answers = np.concatenate([honest, guesses, nearly])
    crowd = Crowd.of(Judgements.from_pairs(ends, answers, who), x)
    assert [(doubt.code, doubt.names) for doubt in crowd.doubts()] == [
        ("outlying-annotator", ("b", "c"))
    ]
    model = PairClassifier(model="linear", preprocessor=x, random_state=0, epochs=60)
    model.fit(ends, PairLabels(*answers.T), annotator=who)
    assert [manner.useful for manner in model.annotators_] == [True, False, False]


def test_a_fit_says_that_nothing_tells_which_side_is_right() -> None:
    (x, _, honest), rng = world(4), np.random.default_rng(1)
    guesses = rng.permutation(honest[:60])
    nearly = (guesses + 0.02 * rng.normal(size=guesses.shape)).clip([0, -1], [1, 1])
    ends, who = np.tile(np.arange(120).reshape(-1, 2), (3, 1)), np.repeat(list("abc"), 60)
    answers = PairLabels(*np.concatenate([honest[:60], guesses, nearly]).T)
    noise = rng.normal(size=x.shape)  # features that tell nothing
    model = PairClassifier(model="linear", preprocessor=noise, random_state=0, epochs=20)
    with pytest.warns(UserWarning, match=r"b and c\. Where they differ, the model believes b"):
        model.fit(ends, answers, annotator=who)


def test_sliders_that_nobody_moved_are_not_learnt_from() -> None:
    (x, _, honest), rng = world(4), np.random.default_rng(1)
    ends, lazy = np.arange(2 * PAIRS).reshape(-1, 2), rng.random(PAIRS) < 0.6
    answers = np.where(lazy[:, None], [0.5, 0.0], honest)
    model = PairClassifier(model="linear", preprocessor=x, random_state=0, epochs=60)
    with pytest.warns(UserWarning, match=r"% of the answers are exactly in the middle"):
        model.fit(ends, answers)
    alone = clone(model).fit(ends[~lazy], answers[~lazy])
    np.testing.assert_array_equal(
        model.predict(np.arange(2 * PAIRS)), alone.predict(np.arange(2 * PAIRS))
    )
    judged, calls = Judgements.from_pairs(ends, answers), []

    def log_odds(rows: Indices) -> Floats:
        calls.append(rows)
        return model.log_odds(x[rows])

    scored = model.score_pairs(judged, log_odds)
    assert len(calls) == 1  # of all pairs and of those without the middles
    decided = model.score_pairs(judged[~lazy], log_odds)
    np.testing.assert_array_equal(scored.decided.ends, decided.ends)
    np.testing.assert_allclose(scored.decided.z, decided.z)
    # On a scale of levels the middle is an answer like the others.
    levels = np.stack([np.round(answers[:, 0] * 4) / 4, np.round(answers[:, 1] * 2) / 2], 1)
    assert not untouched(Judgements.from_pairs(ends, levels))[0].any()


def test_copies_are_known_even_where_training_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _, honest = world(4)
    ends, who = np.tile(np.arange(2 * PAIRS).reshape(-1, 2), (2, 1)), np.repeat(["a", "b"], PAIRS)
    usual = cross_fitting._scores_of_folds

    def diverged(*args: Any) -> tuple[Floats, Judgements]:
        scores, judged = usual(*args)
        return scores * np.nan, judged

    monkeypatch.setattr(cross_fitting, "_scores_of_folds", diverged)
    model = PairClassifier(model="linear", preprocessor=x, random_state=0, epochs=5)
    with pytest.warns(UserWarning, match="b has the same answers as a"):
        model.fit(ends, np.tile(honest, (2, 1)), annotator=who)
    assert [manner.name for manner in model.annotators_] == ["a", "b"]
