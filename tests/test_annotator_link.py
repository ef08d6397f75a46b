"""Annotators who lean, guess or say nothing: found without labels, and corrected."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import Answers, Crowd, Manner, fair, learn_link, scale_of
from pairlearn.annotators.link import Link
from pairlearn.comparison import compare
from pairlearn.judgements import Judgements
from pairlearn_studio.records import LEVELS

PAIRS = 400


def world(seed=0, pairs=PAIRS):
    """Items, true posteriors and honest answers to pairs of items."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, 4))
    r = 1 / (1 + np.exp(-(3 * x[:, 0] + 2 * x[:, 1] - 1)))
    told = PairLabels.from_posteriors(r[::2], r[1::2])
    return x, r, np.asarray(told.to_array()), rng


def table(*crowd):
    """Answers of several annotators to the same pairs, named a, b, c …"""
    ends = np.arange(2 * PAIRS).reshape(-1, 2)
    return Judgements.concatenate(
        [
            Judgements.from_pairs(
                ends, PairLabels(*said.T, noisy=True), annotator=[name] * len(said)
            )
            for name, said in zip("abcd", crowd, strict=False)
        ]
    )


def anything(rng):
    return np.stack([rng.random(PAIRS), rng.uniform(-1, 1, PAIRS)], 1)


@pytest.mark.parametrize("answers", [20, PAIRS])
@pytest.mark.parametrize("levels", [3, 5, 7])
@pytest.mark.parametrize("digits", [2, 12])
def test_rounded_answers_are_recognised_and_feasible(levels, digits, answers):
    _, _, honest, rng = world()
    steps = levels - 1
    unit = np.add(honest, [0, 1]) / [1, 2]
    said = (np.round(unit * steps) / steps * [1, 2] - [0, 1]).round(digits)
    scale = scale_of(*said[:answers].T)
    assert scale.levels == (levels, levels)
    assert not scale.hard
    assert scale.admits(*said.T).all()
    assert not scale.admits(*anything(rng).T).all()
    assert scale_of(*honest[:answers].T).levels == (0, 0)
    assert scale_of(*honest.round(2).T).admits(*honest.round(2).T).all()


def test_an_honest_annotator_is_left_alone():
    _, _, honest, _ = world()
    answers = Answers.of(table(honest))
    link = learn_link(answers)
    (manner,) = link.manners
    assert manner.honest and manner.useful and manner.words() == "nothing to correct"
    assert answers.reason_to_learn() is None
    combined, worth = link.combined(answers)
    np.testing.assert_allclose(combined, honest, atol=1e-3)
    assert worth.min() > 0.99


@pytest.mark.parametrize(
    ("add", "name"),
    [((0.15, 0), "lean_same"), ((-0.12, 0), "lean_same"), ((0, -0.2), "lean_right")],
)
def test_leans_are_found_and_taken_back(add, name):
    _, _, honest, _ = world()
    said = np.clip(honest + add, [0, -1], [1, 1])
    link = learn_link(Answers.of(table(said)))
    (manner,) = link.manners
    leant = float((said - honest).mean(0)[int(add[1] != 0)])
    assert getattr(manner, name) == pytest.approx(leant, abs=0.02)
    assert manner.guesses < 0.02
    combined, _ = link.combined(Answers.of(table(said)))
    assert np.sqrt(np.square(combined - honest).mean()) < 0.03
    assert "too much" in manner.words() or "favours the left" in manner.words()


def test_guesses_are_counted_and_count_little():
    _, _, honest, rng = world()
    said, guess = honest.copy(), rng.random(PAIRS) < 0.3
    said[guess] = anything(rng)[guess]
    answers = Answers.of(table(said))
    link = learn_link(answers)
    assert link.manners[0].guesses == pytest.approx(guess.mean(), abs=0.07)
    _, worth = link.combined(answers)
    assert worth[guess].mean() < 0.35 < 0.9 < worth[~guess].mean()


def test_a_careful_annotator_wins_against_a_constant_and_a_random_one():
    _, _, honest, rng = world()
    answers = Answers.of(table(honest, np.tile([1.0, 0.0], (PAIRS, 1)), anything(rng)))
    link = learn_link(answers)
    careful, constant, random = link.manners
    assert careful.honest
    assert constant.constant and not constant.useful
    assert random.guesses > 0.85 and not random.useful
    combined, _ = link.combined(answers)
    np.testing.assert_allclose(combined, honest, atol=0.02)


def test_hard_answers_of_careful_people_are_told_from_those_to_other_pairs():
    _, _, honest, rng = world()
    s, c = honest.T
    chances = np.stack([(1 - s - c) / 2, (1 - s + c) / 2, s], 1).cumsum(1)

    def hard():
        drawn = (rng.random(PAIRS)[:, None] > chances).sum(1).clip(0, 2)
        return np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0]])[drawn]

    link = learn_link(Answers.of(table(hard(), hard(), hard(), rng.permutation(hard()))))
    assert all(manner.hard for manner in link.manners)
    assert max(manner.guesses for manner in link.manners[:3]) < 0.15
    assert link.manners[3].guesses > 0.5


def test_careful_people_on_the_scale_of_the_studio_are_not_taken_for_guessing():
    """They are one level apart now and then, which is a spread; one at random is found."""
    _, _, honest, rng = world()
    levels = np.unique(list(LEVELS.values()), axis=0)

    def graded():
        off = (honest + rng.normal(0, 0.1, honest.shape))[:, None] - levels
        return levels[(off**2 / [1, 2]).sum(-1).argmin(1)]

    said = table(*(graded() for _ in range(3)), levels[rng.integers(0, len(levels), len(honest))])
    crowd = Crowd.of(said)
    *careful, random = crowd.manners.values()
    assert all(one.guesses < 0.05 and 0.03 < one.spread < 0.2 for one in careful)
    assert [doubt.names for doubt in crowd.doubts()] == [(random.name,)]
    said.values[-1] = [0.75, 0.15]  # of random, on a level that was not in use
    again = fair(list(crowd.manners.values()), said)
    assert random.name not in again.annotator
    assert np.abs(again.values - table(honest, honest, honest).values).mean() < 0.12


def test_pairs_shown_the_other_way_round_are_the_same_pairs():
    _, _, honest, _ = world()
    ends = np.arange(2 * PAIRS).reshape(-1, 2)
    straight = Judgements.from_pairs(ends, honest)
    turned = Judgements.from_pairs(ends[::-1, ::-1], honest[::-1] * np.array([1, -1]))
    answers = Answers.of(Judgements.concatenate([straight, turned]))
    assert len(answers.ends) == PAIRS
    np.testing.assert_array_equal(answers.ends, ends)
    np.testing.assert_array_equal(answers.values[:PAIRS], answers.values[PAIRS:][::-1])
    leaning = [Manner("", random=0.0, right_form="shift", right_amount=0.1)]
    both = fair(leaning, Judgements.concatenate([straight, turned]))
    np.testing.assert_allclose(both.v[:PAIRS], -both.v[PAIRS:][::-1], atol=1e-12)


def test_noise_beyond_the_scales_is_left_to_the_correction():
    _, _, honest, rng = world()
    said = honest * (1 + 0.3 * rng.normal(size=honest.shape))
    assert Answers.of(table(said)).reason_to_learn() is None
    assert Answers.of(table(said.clip([0, -1], [1, 1]))).reason_to_learn() is not None


@pytest.mark.parametrize("side", [0, 1])
def test_one_answer_alone_is_no_reason_to_doubt_anybody(side):
    _, _, honest, rng = world()
    first, second = honest.copy(), anything(rng)
    first[:, side], second[:, side] = np.nan, np.nan
    assert Answers.of(table(first, second)).reason_to_learn() is None


def test_missing_answers_stay_missing():
    _, _, honest, _ = world()
    said = honest.copy()
    said[::2, 1], said[1::4, 0] = np.nan, np.nan
    judged = table(said)
    answers = Answers.of(judged)
    rows = learn_link(answers).statements(judged, answers)
    assert len(rows) == PAIRS
    np.testing.assert_array_equal(rows.has("similarity"), ~np.isnan(said[:, 0]))
    np.testing.assert_array_equal(rows.has("difference"), ~np.isnan(said[:, 1]))


def test_fair_answers_are_right_on_average_and_know_newcomers():
    _, _, honest, _ = world()
    said = np.clip(honest + np.array([0.12, 0]), [0, -1], [1, 1])
    known = learn_link(Answers.of(table(said))).manners
    again = fair(known, table(said))
    assert abs((again.values - honest).mean(0)).max() < 0.01
    both = fair(known, table(said, np.tile([1.0, 0.0], (PAIRS, 1))))
    assert set(both.annotator) == {"a"}
    untouched = table(said)
    assert fair([], untouched) is untouched


def test_a_lean_no_longer_ruins_a_fit(tmp_path):
    x, _, honest, rng = world()
    said = np.clip(honest + np.array([0.15, 0]), [0, -1], [1, 1])
    ends = np.arange(2 * PAIRS).reshape(-1, 2)
    test = rng.normal(size=(2000, 4))
    likelier = np.where(3 * test[:, 0] + 2 * test[:, 1] > 1, 1, -1)

    def fitted(annotators):
        model = PairClassifier(
            model="linear", annotators=annotators, preprocessor=x, random_state=0, epochs=60
        )
        return model.fit(ends, PairLabels(*said.T, noisy=True))

    ideal, auto = fitted("ideal"), fitted("auto")
    right = [(model.predict(test) == likelier).mean() for model in (ideal, auto)]
    assert right[1] > 0.95 and right[1] > right[0] + 0.05
    assert ideal.annotators_ == []
    (manner,) = auto.annotators_
    assert isinstance(manner, Manner) and manner.lean_same > 0.08
    auto.save(tmp_path / "model")
    assert PairClassifier.load(tmp_path / "model").annotators_ == auto.annotators_


def test_auto_leaves_an_ideal_table_to_the_plain_fit():
    x, _, honest, _ = world()
    ends = np.arange(2 * PAIRS).reshape(-1, 2)
    made = [
        PairClassifier(
            model="linear", annotators=annotators, preprocessor=x, random_state=0, epochs=3
        ).fit(ends, PairLabels(*honest.T))
        for annotators in ("auto", "ideal")
    ]
    np.testing.assert_array_equal(made[0].decision_function(x), made[1].decision_function(x))
    assert made[0].annotators_ == []


def test_the_accuracy_without_labels_is_right_where_annotators_are_mended():
    x, _, honest, rng = world()
    crowd = (honest, np.tile([1.0, 0.0], (PAIRS, 1)), anything(rng))
    ends = np.tile(np.arange(2 * PAIRS).reshape(-1, 2), (3, 1))
    who, said = np.repeat(list("abc"), PAIRS), np.concatenate(crowd)
    model = PairClassifier(model="linear", preprocessor=x, random_state=0, epochs=60)
    model.fit(ends, PairLabels(*said.T, noisy=True), annotator=who)
    other, r, told, rng = world(seed=1)
    model.set_params(preprocessor=other)
    crowd = (told, np.tile([1.0, 0.0], (PAIRS, 1)), anything(rng))
    found = model.estimate_accuracy(
        ends, PairLabels(*np.concatenate(crowd).T, noisy=True), annotator=who
    )
    positive = model.predict(other) == 1
    truth = np.where(positive, r, 1 - r).mean()
    assert found.low < truth < found.high
    assert found.high - found.low < 0.06


def test_what_annotators_may_be_is_checked():
    with pytest.raises(ValueError, match="annotators"):
        PairClassifier(annotators="nobody").fit(np.zeros((2, 2, 1)), PairLabels([1, 1], [0, 0]))


def test_calibrated_answers_near_a_half_are_not_stretched():
    rng = np.random.default_rng(11)
    r = 1 / (1 + np.exp(-0.6 * rng.normal(size=(2, PAIRS))))
    honest = np.asarray(PairLabels.from_posteriors(*r).to_array())
    link = learn_link(_halves(honest))
    assert all(manner.honest for manner in link.manners)
    newcomers = Judgements.from_pairs(np.arange(2 * PAIRS).reshape(-1, 2), honest)
    np.testing.assert_allclose(fair(link.manners, newcomers).values, honest, atol=1e-9)


def _halves(honest):
    """Two annotators with pairs of their own."""
    ends, who = np.arange(2 * PAIRS).reshape(-1, 2), np.where(np.arange(PAIRS) % 2, "a", "b")
    return Answers.of(Judgements.from_pairs(ends, honest, annotator=who))


@pytest.mark.parametrize("good", [0, 1])
def test_the_features_decide_between_two_and_copies_count_once(good):
    x, _, honest, rng = world(pairs=200)
    shuffled = rng.permutation(honest)
    crowd = [shuffled] * 3
    crowd[good] = honest
    ends = np.tile(np.arange(400).reshape(-1, 2), (3, 1))
    model = PairClassifier(model="linear", preprocessor=x, random_state=0, epochs=60)
    who = np.repeat(list("abc"), 200)
    with pytest.warns(UserWarning, match="count once"):
        model.fit(ends, PairLabels(*np.concatenate(crowd).T), annotator=who)
    useful = {manner.name: manner.useful for manner in model.annotators_}
    assert useful["ab"[good]] and not useful["ba"[good]] and not useful["c"]
    test = rng.normal(size=(1000, 4))
    likelier = np.where(3 * test[:, 0] + 2 * test[:, 1] > 1, 1, -1)
    assert (model.predict(test) == likelier).mean() > 0.93


def test_people_who_contradict_each_other_by_far_leave_a_statement_for_every_pair():
    answers = Answers.of(table(np.tile([0.02, 0.97], (PAIRS, 1)), np.tile([0.98, 0.0], (PAIRS, 1))))
    values, worth = Link.naive(answers).combined(answers)
    assert np.isfinite(values).all() and np.isfinite(worth).all()


def test_hard_answers_are_not_mended_by_the_manner_of_soft_ones():
    hard = Judgements.from_pairs([[0, 1], [2, 3], [4, 5]], [[1, 0], [0, 1], [0, -1]])
    soft = [Manner("", random=0.2, same_amount=0.1)]
    np.testing.assert_array_equal(fair(soft, hard).values, hard.values)


def test_missing_names_are_one_annotator_without_a_name():
    _, _, honest, _ = world()
    names = np.array(["a", None] * (PAIRS // 2), dtype=object)
    table = Judgements.from_pairs(np.arange(2 * PAIRS).reshape(-1, 2), honest, annotator=names)
    assert Answers.of(table).names == ("", "a")


def test_left_and_right_exchanged_by_one_of_two_is_said():
    x, _, honest, _ = world()
    ends = np.tile(np.arange(2 * PAIRS).reshape(-1, 2), (2, 1))
    said = np.concatenate([honest, honest * np.array([1, -1])])
    model = PairClassifier(model="linear", preprocessor=x, random_state=0, epochs=5)
    with pytest.warns(UserWarning, match="answers of a run against those of b: one side"):
        model.fit(ends, PairLabels(*said.T), annotator=np.repeat(["a", "b"], PAIRS))


def drawn(r, rng):
    """Hard answers, drawn from the outcomes."""
    y = (rng.random(len(r)) < r).reshape(-1, 2)
    return np.stack([y[:, 0] == y[:, 1], y[:, 1].astype(int) - y[:, 0]], 1).astype(float)


def test_hard_answers_are_not_learnt_by_heart(tmp_path):
    torch.manual_seed(0)
    x, r, _, rng = world(pairs=150)
    r = 0.25 + r / 2  # so that many of the answers are wrong
    new = rng.normal(size=(4000, 4))
    truth = 0.25 + 0.5 / (1 + np.exp(-(3 * new[:, 0] + 2 * new[:, 1] - 1)))
    ends, said = np.arange(300).reshape(-1, 2), drawn(r, rng)
    off = {}
    for annotators in ("ideal", "auto"):
        network = torch.nn.Sequential(
            torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )
        model = PairClassifier(
            model=network, learning_rate=0.02, annotators=annotators, preprocessor=x, random_state=0
        )
        p = model.fit(ends, said).predict_proba(new)[:, 1]
        off[annotators] = np.abs(p - truth).mean()
    assert model.slope_ < 0.7 and off["auto"] < 0.7 * off["ideal"], off
    model.save(tmp_path / "model")
    again = PairClassifier.load(tmp_path / "model", network)
    np.testing.assert_array_equal(again.predict_proba(new)[:, 1], p)
    soft = PairClassifier(model="linear", epochs=2, preprocessor=x).fit(ends, world(pairs=150)[2])
    assert soft.slope_ == 1


def surer(r, times):
    """Answers with log-odds that are multiplied."""
    z = times * (np.log(r) - np.log1p(-r))
    r = 1 / (1 + np.exp(-z))
    return PairLabels.from_posteriors(r[::2], r[1::2])


def coarse(r):
    s, c = np.asarray(surer(r, 1).to_array()).T
    return PairLabels(np.round(2 * s) / 2, np.round(c), noisy=True)


def test_labels_tell_how_sure_annotators_should_be(tmp_path):
    x, r, _, rng = world(1, pairs=1000)
    r = 1 / (1 + np.exp(-0.4 * (np.log(r) - np.log1p(-r))))
    ends, said = np.arange(2000).reshape(-1, 2), surer(r, 3)
    known = np.arange(0, 600)
    model = PairClassifier(model="linear", epochs=30, preprocessor=x, random_state=0)
    model.fit(ends[:500], said[:500], labelled=(known, np.where(rng.random(600) < r[:600], 1, -1)))
    low, high = model.confidence_.interval
    assert low < 1 / 3 < high < 0.6 and low < model.slope_ < 0.9
    assert np.abs(model.predict_proba(x[1000:])[:, 1] - r[1000:]).mean() < 0.05
    model.save(tmp_path / "model")
    assert PairClassifier.load(tmp_path / "model").confidence_ == model.confidence_


def test_methods_are_compared_as_fit_would_train_them():
    x, r, honest, rng = world()
    # One answer a pair: that c answers something else, the features alone can tell.
    crowd = table(honest, np.tile([1.0, 0.0], (PAIRS, 1)), rng.permutation(honest))
    crowd = crowd[np.arange(len(crowd)) % PAIRS % 3 == np.repeat([0, 1, 2], PAIRS)]
    options = {"methods": ["likelihood-abs"], "model": "linear", "epochs": 20, "folds": 2}
    truth = []

    def measure(models):
        truth.append(np.where(models["likelihood-abs"](x) > 0, r, 1 - r).mean())

    found = compare(x, None, crowd, after_fold=measure, **options)
    assert abs(found.rows[0].accuracy.value - np.mean(truth)) < 0.03
    assert "b: gives one answer to everything; c: answers are hardly rel" in found.warnings[0]
    assert not compare(x, None, table(honest), **options).warnings


def test_a_table_of_one_answer_is_no_table_to_learn_from():
    ends = np.arange(60).reshape(-1, 2)
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PairClassifier(model="linear", preprocessor=x, epochs=2)
    said = PairLabels(np.ones(60), np.zeros(60))
    with pytest.warns(UserWarning, match="all annotators give one answer to everything"):
        model.fit(np.tile(ends, (2, 1)), said, annotator=np.repeat(["a", "b"], 30))
    with pytest.warns(UserWarning, match="the table gives one answer to everything"):
        model.fit(ends, said[:30])
