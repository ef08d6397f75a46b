"""The model of annotators: what it recovers from simulated crowds, and how it corrects answers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import Annotator, Annotators
from pairlearn.judgements import Judgements

PAIRS = 300


def honest(r: Any, q: Any) -> Any:
    return np.stack([r * q + (1 - r) * (1 - q), q - r], 1)


def leaning(r: Any, q: Any, rng: Any, by: tuple[float, float]) -> Any:
    return np.clip(honest(r, q) + by, [0, -1], [1, 1])


def ideal(r: Any, q: Any, rng: Any) -> Any:
    return honest(r, q)


def guessing(r: Any, q: Any, rng: Any, share: float = 1.0) -> Any:
    answers, guess = honest(r, q), rng.random(len(r)) < share
    answers[guess] = np.stack([rng.random(len(r)), rng.uniform(-1, 1, len(r))], 1)[guess]
    return answers


def constant(r: Any, q: Any, rng: Any) -> Any:
    return np.tile([1.0, 0.0], (len(r), 1))


def levels(r: Any, q: Any, rng: Any, by: float = 0.0) -> Any:
    s, c = leaning(r, q, rng, (by, 0)).T
    return np.stack([np.round(4 * s) / 4, np.round(2 * c) / 2], 1)


def hard(r: Any, q: Any, rng: Any) -> Any:
    outcomes = np.stack([r * (1 - q), (1 - r) * q, np.ones(len(r))], 1)
    outcomes[:, 1] += outcomes[:, 0]
    which = (rng.random(len(r))[:, None] > outcomes).sum(1)
    return np.array([[0, -1], [0, 1], [1, 0]], np.float64)[which]


def crowd(
    *people: Any, seed: int = 0, shift: float = 0.0, scale: float = 2.5
) -> tuple[Judgements, Any, Any]:
    """Judgements of the same pairs, log-odds of a fair model, and the honest answers."""
    rng = np.random.default_rng(seed)
    z = rng.normal(shift, scale, 2 * PAIRS)
    r = 1 / (1 + np.exp(-z))
    values = np.concatenate([answer(r[::2], r[1::2], rng) for answer in people])
    ends = np.tile(np.arange(2 * PAIRS).reshape(-1, 2), (len(people), 1))
    names = np.repeat([f"p{k}" for k in range(len(people))], PAIRS)
    judged = Judgements.from_pairs(ends, PairLabels(*values.T, noisy=True), annotator=names)
    return judged, (z + rng.normal(0, 1, len(z)))[ends], honest(r[::2], r[1::2])


@pytest.mark.parametrize("by", [(0.15, 0.0), (-0.1, 0.0), (0.0, -0.2), (0.1, 0.1)])
def test_leans_are_learnt(by: tuple[float, float]) -> None:
    judged, scores, _ = crowd(partial(leaning, by=by))
    (person,) = Annotators.learn(judged, scores).people
    assert person.leans == pytest.approx(by, abs=0.03)
    assert person.guesses < 0.02


@pytest.mark.parametrize("shift", [0.0, -5.0])
def test_an_ideal_annotator_has_nothing_to_correct(shift: float) -> None:
    judged, scores, truth = crowd(ideal, shift=shift)
    for given in (None, scores):
        annotators = Annotators.learn(judged, given)
        assert annotators.describe("p0") == "nothing to correct"
        np.testing.assert_allclose(
            annotators.correct(judged, given).judged.values, truth, atol=0.01
        )


def test_guesses_are_learnt_and_count_less() -> None:
    judged, scores, truth = crowd(partial(guessing, share=0.3))
    annotators = Annotators.learn(judged, scores)
    (person,) = annotators.people
    assert person.guesses == pytest.approx(0.3, abs=2 * person.guesses_error + 0.05)
    corrected = annotators.correct(judged, scores).judged
    before = np.abs(judged.values - truth).mean()
    after = np.average(np.abs(corrected.values - truth).mean(1), weights=corrected.weight)
    assert after < before / 3


def test_one_careful_person_outweighs_a_constant_and_a_random_one() -> None:
    judged, scores, truth = crowd(ideal, constant, guessing)
    for given in (None, scores):
        annotators = Annotators.learn(judged, given)
        careful, fixed, random = annotators.people
        assert careful.guesses < 0.1
        assert not fixed.informative
        assert not random.informative
        assert np.abs(annotators.correct(judged, given).judged.values - truth).mean() < 0.03
    assert annotators.describe("p1") == "gives every pair the same answer"


def test_levels_and_hard_answers_are_recognised() -> None:
    judged, scores, _ = crowd(partial(levels, by=0.15), hard)
    graded, yes_or_no = Annotators.learn(judged, scores).people
    assert (graded.scale, yes_or_no.scale) == ("levels", "hard")
    assert graded.leans[0] == pytest.approx(0.15, abs=0.06)
    assert graded.guesses < 0.1
    assert yes_or_no.guesses < 0.2


def test_standard_errors_cover() -> None:
    within = 0
    for seed in range(10):
        judged, scores, _ = crowd(partial(guessing, share=0.2), seed=seed)
        (person,) = Annotators.learn(judged, scores).people
        within += abs(person.guesses - 0.2) < 1.96 * person.guesses_error + 0.02
    assert within >= 8


def test_correct_gives_one_statement_per_pair_and_keeps_other_kinds() -> None:
    judged, _scores, _ = crowd(ideal, guessing)
    known = Judgements.about_items("label", [0, 1], [1, 0])
    table = Judgements.concatenate([judged, known])
    corrected = Annotators.learn(table).correct(table).judged
    assert corrected.counts() == {"both": PAIRS, "label": 2}


def test_the_order_of_items_does_not_matter() -> None:
    judged, scores, _ = crowd(partial(leaning, by=(0.1, 0.0)), ideal)
    turned = np.arange(len(judged)) % 2 == 1
    ends = np.where(turned[:, None], judged.ends[:, ::-1], judged.ends)
    values = judged.values * np.where(turned[:, None], [1, -1], [1, 1])
    other = Judgements(ends, judged.kind, values, None, judged.annotator)
    z = np.where(turned[:, None], scores[:, ::-1], scores)
    first, second = (Annotators.learn(*table) for table in ((judged, scores), (other, z)))
    assert [p.leans for p in first.people] == [p.leans for p in second.people]


def test_answers_without_a_name_are_those_of_the_only_annotator() -> None:
    judged, _, _truth = crowd(partial(leaning, by=(0.15, 0.0)))
    annotators = Annotators.learn(judged)
    nameless = Judgements(judged.ends, judged.kind, judged.values)
    named, taken = (annotators.correct(table).judged.values for table in (judged, nameless))
    np.testing.assert_array_equal(named, taken)
    several = Annotators((Annotator("ann", 20), Annotator("bob", 20)))
    with pytest.raises(ValueError, match="learnt how 2 annotators answer \\('ann', 'bob'\\)"):
        several.correct(nameless)


def test_nothing_learnt_corrects_nothing() -> None:
    judged, _, _ = crowd(ideal)
    assert Annotators().correct(judged) == (judged, None)
    assert Annotators.learn(judged[:0]).people == ()


def test_unknown_annotators_are_believed() -> None:
    judged, _, truth = crowd(ideal)
    annotators = Annotators((Annotator("somebody else", 50, leans=(0.2, 0.0)),))
    np.testing.assert_allclose(annotators.correct(judged).judged.values, truth, atol=0.01)


def test_the_spread_of_answers_is_estimated() -> None:
    def blurred(r: Any, q: Any, rng: Any) -> Any:
        return np.clip(honest(r, q) + rng.normal(0, 0.15, (len(r), 2)), [0, -1], [1, 1])

    judged, scores, truth = crowd(blurred, blurred, blurred)
    annotators = Annotators.learn(judged, scores)
    for person in annotators.people:
        assert person.spreads == pytest.approx((0.15, 0.15), abs=0.05)
    corrected, noise = annotators.correct(judged)
    left = (corrected.v - truth[:, 1]).var()
    assert noise is not None and noise.mean() == pytest.approx(left, rel=0.5)
    assert left == pytest.approx(0.15**2 / 3, rel=0.5)


def knowing(r: Any, q: Any, rng: Any) -> Any:
    """Calibrated answers of people with a noisy look of their own at the same classes."""
    classes = np.random.default_rng(1).random((2, len(r))) < (r, q)
    odds = np.log([r, q]) - np.log1p(-np.array([r, q]))
    own = odds + 2 * (2 * classes - 1) + 2 * rng.normal(size=odds.shape)
    return honest(*(1 / (1 + np.exp(-own))))


def test_knowledge_that_others_have_not_is_no_guess() -> None:
    """κ of the corrected answers is the mean of those of the people, and both readings hold."""
    judged, scores, truth = crowd(knowing, knowing, guessing, seed=1)
    annotators = Annotators.learn(judged, scores)
    ann, bob, cy = annotators.people
    assert min(ann.knowledge, bob.knowledge) >= 0.2 and max(ann.guesses, bob.guesses) < 0.05
    assert "leave open" in ann.sentence() and not cy.informative
    corrected, noise = annotators.correct(judged)
    assert np.mean(corrected.values - truth, 0) == pytest.approx(0, abs=0.03)
    squares = float(np.average(corrected.v**2 - noise, weights=corrected.weight))
    assert squares == pytest.approx(np.mean(judged.v[: 2 * PAIRS] ** 2), rel=0.1)


def test_knowledge_shows_only_beside_others_who_do_not_guess() -> None:
    """Nearly certain answers look like knowledge if nobody else says anything about the pairs."""
    for people in ((ideal,), (ideal, constant, guessing)):
        judged, scores, truth = crowd(*people, scale=8.0)
        scores = scores / 8 + np.random.default_rng(1).normal(0, 1, scores.shape)
        annotators = Annotators.learn(judged, scores)
        assert not any(person.knowledge for person in annotators.people)
        corrected = annotators.correct(judged, scores).judged
        assert np.abs(corrected.values - truth).mean() < 0.01


@pytest.mark.parametrize(
    ("people", "needed"),
    [
        ((ideal,), False),
        ((levels,), False),
        ((hard,), False),
        ((ideal, ideal), True),
        ((partial(leaning, by=(0.15, 0.0)),), True),
        ((partial(guessing, share=0.2),), True),
    ],
)
def test_when_annotators_are_learnt(people: Any, needed: bool) -> None:
    judged, _, _ = crowd(*people)
    assert Annotators.needed(judged) == needed


def about_sets(
    size: int, seed: int = 0, sets: tuple[str, ...] = ("cat", "cow", "dog", "cat|dog")
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Items of three classes, their posteriors, and what three people say about sets of classes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * size, 4))
    z = np.exp(x @ np.random.default_rng(5).normal(size=(4, 3)) * 2)
    p = z / z.sum(1, keepdims=True)
    ends, asked = np.arange(2 * size).reshape(-1, 2), rng.integers(len(sets), size=size)
    members = np.array(
        [[name in text.split("|") for name in ("cat", "cow", "dog")] for text in sets]
    )
    r, q = ((p[end] * members[asked]).sum(1) for end in ends.T)
    blur = np.array([[0.0, 0.0], [0.15, -0.2], [0.0, 0.0]])
    values = [honest(r, q) + 0.05 * rng.normal(size=(size, 2)) + lean for lean in blur]
    values[2] = guessing(r, q, rng)
    stated = PairLabels(*np.concatenate(values).clip([0, -1], [1, 1]).T)
    names = np.repeat(["ann", "bob", "cy"], size)
    return x, p, (np.tile(ends, (3, 1)), stated, np.tile(np.array(sets)[asked], 3), names)


def test_statements_about_sets_of_classes_share_one_model_of_each_person() -> None:
    x, p, (ends, labels, about, names) = about_sets(600)
    train = ends[:, 0] < 900
    fitted: dict[str, float] = {}
    for annotators in ("ideal", "auto"):
        model = PairClassifier(
            preprocessor=x, model="linear", annotators=annotators, random_state=0
        )
        model.fit(ends[train], labels[train], about=about[train], annotator=names[train])
        chosen = model.predict_proba(x).argmax(1)
        fitted[annotators] = float(p[np.arange(len(p)), chosen][900:].mean())
    ann, bob, cy = model.annotators_.people
    assert (ann.sentence(), cy.informative) == ("nothing to correct", False)
    assert bob.leans == pytest.approx((0.15, -0.2), abs=0.03)
    held = model.estimate_accuracy(
        ends[~train], labels[~train], about=about[~train], annotator=names[~train]
    )
    assert held.low <= fitted["auto"] <= held.high
    assert fitted["auto"] > fitted["ideal"]


def test_each_question_about_a_pair_has_one_corrected_statement() -> None:
    ends = np.array([[0, 1], [1, 0], [0, 1], [0, 1]] * 20) + 2 * np.arange(20).repeat(4)[:, None]
    values = np.tile([[0.8, 0.1], [0.8, -0.1], [0.6, 0.2], [0.7, np.nan]], (20, 1))
    about = np.tile(["cat", "cat", "dog", ""], 20)
    table = Judgements.from_pairs(ends, values, about=about, q=np.full(80, 0.5))
    table = table.of_classes(["cat", "cow", "dog"])
    corrected = Annotators.learn(table).correct(table).judged
    assert list(corrected.sets[:4]) == ["cat", "dog", "cat", "dog"]
    assert corrected.classes == table.classes and (corrected.q == 0.5).all()
    # "The same class at all" is about no set, and stays as it is.
    whole = corrected[corrected.sets == ""]
    np.testing.assert_array_equal(whole.u, 0.7)
    assert len(corrected) == 60


def test_fit_learns_annotators_and_measures_with_them() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(480, 3))
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    ends = np.arange(480).reshape(-1, 2)
    values = leaning(r[::2], r[1::2], rng, (0.0, -0.25))
    model = PairClassifier(preprocessor=x, model="linear", random_state=0)
    model.fit(ends[:160], PairLabels(*values[:160].T, noisy=True))
    (person,) = model.annotators_.people
    assert person.leans[1] == pytest.approx(-0.25, abs=0.03)
    names = ["ann"] * 80  # a name that fit has not seen is believed; no name is the one learnt
    held = PairLabels(*values[160:].T, noisy=True)
    corrected = model.estimate_accuracy(ends[160:], held)
    believed = model.estimate_accuracy(ends[160:], held, annotator=names)
    truth = float(np.where(model.predict(x) > 0, r, 1 - r)[320:].mean())
    assert corrected.low <= truth <= corrected.high
    assert abs(corrected.value - truth) < abs(believed.value - truth)
