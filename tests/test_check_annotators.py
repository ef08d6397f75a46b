"""Checks of tables by several people: who is named, and who never is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import Crowd
from pairlearn.annotators.measurement import fair
from pairlearn.check import check
from pairlearn.io import ItemTable
from pairlearn.judgements import Judgements
from pairlearn.simulation import simulate
from tables import pair_ids, pair_table
from test_check import codes, find, table


def judged_by_several(seed: int, n: int = 60, annotators: int = 4) -> dict[str, Any]:
    """Every pair judged by every annotator, with additive noise of their own."""
    rng = np.random.default_rng(seed)
    labels = PairLabels.from_posteriors(*rng.beta(1, 1, (2, n)))
    s, c = (np.tile(v, annotators) for v in (labels.similarity, labels.difference))
    return {
        "left": np.tile(np.arange(n), annotators),
        "right": np.tile(np.arange(n, 2 * n), annotators),
        "similarity": (s + 0.05 * rng.normal(size=len(s))).clip(0, 1),
        "difference": (c + 0.05 * rng.normal(size=len(s))).clip(-1, 1),
        "annotator": [f"a{k}" for k in np.repeat(np.arange(annotators), n)],
    }


def test_similarities_of_a_half_are_not_below_it() -> None:
    report = check(pair_table(range(50), range(50, 100), [0.5] * 50, None))
    assert "constant-similarity" in codes(report) and "too-unlike" not in codes(report)


def test_similarities_below_a_half_tell_no_share() -> None:
    rng = np.random.default_rng(0)
    s = np.linspace(0.2, 0.6, 100)
    c = np.sqrt((1 - 2 * s).clip(0)) * rng.choice([-1, 1], 100)
    report = check(pair_table(range(100), range(100, 200), s, c), prior=0.3)
    assert "too-unlike" in codes(report)
    assert not {"implied-prior", "prior-disagrees", "precision"} & set(codes(report))


def test_guesses_of_people_without_names_are_told() -> None:
    rng = np.random.default_rng(0)
    labels = PairLabels.from_posteriors(*rng.beta(0.5, 0.5, (2, 240)))
    guesses = np.arange(240) % 3 == 0
    s = np.where(guesses, rng.random(240), labels.similarity)
    c = np.where(guesses, rng.uniform(-1, 1, 240), labels.difference)
    message = find(check(pair_table(range(240), range(240, 480), s, c)), "infeasible").message
    assert "of the answers are guesses" in message and "next findings" not in message


def test_constant_answers_and_scales_of_levels() -> None:
    columns = judged_by_several(0, annotators=3)
    who = np.array(columns["annotator"])
    columns["similarity"][who == "a0"] = 0.7
    columns["similarity"][who == "a1"] = np.round(2 * columns["similarity"][who == "a1"]) / 2
    report = check(pair_table(**columns))
    assert find(report, "constant-similarity").ids == ("a0",)
    assert find(report, "levels").ids == ("a1",)
    assert (
        "3 levels of similarity (a1). They are taken as rounded" in find(report, "levels").message
    )


@pytest.mark.parametrize("levels", [3, 5, 7, "yes or no"])
def test_what_rounding_explains_is_no_finding(levels: int | str) -> None:
    labels = simulate(pairs=300, prior=0.4, overlap=0.2).pairs
    s, c = labels.similarity, labels.difference
    if isinstance(levels, int):
        steps = levels - 1
        s, c = np.round(s * steps) / steps, np.round((c + 1) / 2 * steps) / steps * 2 - 1
        assert not PairLabels(s, c, noisy=True).feasible().all()
    else:
        s, c = np.round(s), np.sign(c) * (s < 0.5)
    report = check(pair_table(labels.left, labels.right, s, c), precision=False)
    assert codes(report, "error", "warning") == []
    assert report.summary.infeasible == 0
    assert str(levels) in find(report, "levels").message


CROWDS: dict[str, tuple[list[str], dict[str, tuple[str, ...]]]] = {
    "one of three": (["careful", "constant", "random"], {"outlying-annotator": ("a1", "a2")}),
    "two of four": (
        ["careful", "careful", "random", "random"], {"outlying-annotator": ("a2", "a3")}
    ),
    "mixed": (["careful", "noisy", "half random"], {"outlying-annotator": ("a2",)}),
    "other pairs": (["careful"] * 3 + ["other pairs"], {"outlying-annotator": ("a3",)}),
    "two may copy": (
        ["careful", "careful", "other pairs"], {"rival-annotators": ("a0", "a1", "a2")}
    ),
    "two may share guesses": (
        ["careful", "half shared", "half shared"], {"rival-annotators": ("a0", "a1", "a2")}
    ),
    "two and two": (
        ["careful", "careful", "shared", "shared"], {"rival-annotators": ("a0", "a1", "a2", "a3")}
    ),
    "three copy": (
        ["careful"] + ["copied"] * 3,
        {"copied-annotator": ("a2", "a3"), "outlying-annotator": ("a1",)},
    ),
    "three copy half": (
        ["careful", "careful"] + ["half copied"] * 3,
        {"copied-annotator": ("a3", "a4"), "outlying-annotator": ("a2",)},
    ),
    "leaning": (["careful", "careful", "leaning"], {"leaning-annotator": ("a2",)}),
    "reversed": (["careful", "careful", "reversed"], {"reversed-annotator": ("a2",)}),
    "contrary": (["careful", "reversed"], {"contrary-annotators": ("a0", "a1")}),
    "nobody knows": (["careful", "other pairs"], {"rival-annotators": ("a0", "a1")}),
    "all careful": (["careful"] * 3, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CROWDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_wrong_person_is_never_named(name: str, seed: int) -> None:
    people, expected = CROWDS[name]
    rng, n = np.random.default_rng(seed), 80
    honest = np.asarray(PairLabels.from_posteriors(*rng.beta(0.5, 0.5, (2, n))).to_array())
    guesses = rng.permutation(honest)
    fixed = np.stack([np.linspace(0, 1, n), np.arange(n) * 7 % n / (n / 2) - 1], 1)

    def answers_of(how: str) -> Any:
        near = honest + 0.02 * rng.normal(size=honest.shape)
        anything = np.stack([rng.random(n), rng.uniform(-1, 1, n)], 1)
        return {
            "careful": near,
            "noisy": honest + 0.15 * rng.normal(size=honest.shape),
            "random": anything,
            "half random": np.where(rng.random((n, 1)) < 0.5, anything, near),
            "constant": np.tile([1.0, 0.0], (n, 1)),
            "other pairs": rng.permutation(near),
            "shared": guesses + 0.02 * rng.normal(size=honest.shape),
            "copied": fixed + 0.02 * rng.normal(size=honest.shape),
            "half copied": np.where(np.arange(n)[:, None] % 2, fixed, honest)
            + 0.02 * rng.normal(size=honest.shape),
            "half shared": np.where(np.arange(n)[:, None] % 2, guesses, near),
            "leaning": near + np.array([0.15, 0]),
            "reversed": near * np.array([1, -1]),
        }[how].clip([0, -1], [1, 1])

    answers = np.concatenate([answers_of(how) for how in people])
    ends = np.tile(np.arange(2 * n).reshape(-1, 2), (len(people), 1))
    who = [f"a{k}" for k in np.repeat(np.arange(len(people)), n)]
    report = check(pair_table(*ends.T, *answers.T, annotator=who), precision=False)
    assert {f.code: f.ids for f in report.findings if "annotator" in f.code} == expected


def test_rivals_are_told_apart_by_side_and_nobody_is_said_to_guess() -> None:
    labels = PairLabels.from_posteriors(*np.random.default_rng(0).random((2, 60)))
    honest = np.asarray(labels.to_array())
    rng, ends = np.random.default_rng(1), np.tile(np.arange(120).reshape(-1, 2), (3, 1))
    other = rng.permutation(honest)
    nearly = (other + 0.01 * rng.normal(size=other.shape)).clip([0, -1], [1, 1])
    judged = pair_table(
        *ends.T, *np.concatenate([honest, other, nearly]).T,
        annotator=np.repeat(["ann", "bob", "cy"], 60),
    )  # fmt: skip
    report = check(judged, precision=False)
    message = find(report, "rival-annotators").message
    assert "either side could be right: ann against bob and cy. Two people who agree may" in message
    assert "The features may tell which side is right (--items)" in message
    assert report.crowd is not None
    assert report.crowd.words("ann") == "contradicts bob, cy, and either may be right"
    assert report.crowd.words("bob") == "contradicts ann, and either may be right"
    noise = ItemTable(np.arange(120), rng.normal(size=(120, 2)))
    told = find(check(judged, items=noise, precision=False), "rival-annotators").message
    assert "A linear model of the features does not tell which side is right" in told
    two = check(judged[np.arange(120)], precision=False)
    assert "Two people" not in find(two, "rival-annotators").message


def test_sliders_that_nobody_moved_are_a_finding_and_no_guesses() -> None:
    rng = np.random.default_rng(0)
    made = simulate(pairs=200, prior=0.3)
    answers = np.tile(made.pairs.answers(), (2, 1))
    lazy = (rng.random(400) < 0.3) & (np.arange(400) >= 200)
    answers[200:] = (answers[200:] + 0.01 * rng.normal(size=(200, 2))).clip([0, -1], [1, 1])
    answers[lazy] = 0.5, 0.0
    who, ends = np.repeat(["ann", "bob"], 200), np.tile(pair_ids(made.pairs), (2, 1))
    report = check(pair_table(*ends.T, *answers.T, annotator=who), precision=False)
    found = find(report, "untouched")
    assert (found.severity, found.count) == ("warning", lazy.sum())
    assert found.message.startswith(f"{lazy[200:].mean():.0%} of bob's answers are exactly in the")
    assert codes(report, "error", "warning") == ["untouched"]
    assert report.crowd is not None
    words = f"{lazy[200:].mean():.0%} of the answers are exactly in the middle"
    assert report.crowd.words("bob") == words
    assert [(doubt.code, doubt.names) for doubt in report.crowd.doubts()] == [
        ("untouched", ("bob",))
    ]
    rest = check(pair_table(*ends[~lazy].T, *answers[~lazy].T, annotator=who[~lazy]))
    assert report.summary.prior == rest.summary.prior


def test_one_answer_to_everything_is_one_finding() -> None:
    columns = judged_by_several(0, annotators=3)
    constant = np.array(columns["annotator"]) == "a1"
    columns["similarity"][constant], columns["difference"][constant] = 1.0, 0.0
    report = check(pair_table(**columns), precision=False)
    assert codes(report, "error", "warning") == ["outlying-annotator"]
    assert "a1: gives one answer to everything" in find(report, "outlying-annotator").message
    assert "levels" not in codes(report, "note")


def test_preferences_that_run_against_those_of_others() -> None:
    sides = np.random.default_rng(0).choice([-1, 1], 40)
    ends = np.tile(np.arange(80).reshape(-1, 2), (3, 1))
    judged = pair_table(
        *ends.T, None, None, np.concatenate([sides, sides, -sides]),
        annotator=np.repeat(["ann", "bob", "cy"], 40),
    )  # fmt: skip
    assert find(check(judged), "reversed-annotator").ids == ("cy",)
    turned = np.where((np.arange(120) >= 80)[:, None], ends[:, ::-1], ends)
    assert "reversed-annotator" not in codes(
        check(pair_table(*turned.T, None, None, judged.u, annotator=judged.annotator))
    )


def test_other_annotators_may_think_otherwise() -> None:
    judged = table(("a", "b", 0.9, 0.0), ("a", "b", 0.5, 0.0), annotator=["x", "y"])
    assert not {"contradiction", "duplicate"} & set(codes(check(judged)))


def test_answers_that_fit_together_but_not_the_items_show_with_the_features() -> None:
    rng, n = np.random.default_rng(0), 1200
    x = rng.normal(size=(2 * n, 3))
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    r[n:] = rng.random(n)  # ray thinks of other items
    ends = np.arange(2 * n).reshape(n, 2)  # in the order of those who judged them
    labels = PairLabels.from_posteriors(*r[ends].T)
    judged = pair_table(*ends.T, *labels.to_array().T, annotator=np.repeat(["ann", "ray"], n // 2))
    alone = check(judged, precision=False)
    assert "answers-alone" in codes(alone, "note") and not codes(alone, "error", "warning")
    seen = check(judged, items=ItemTable(np.arange(2 * n), x), precision=False)
    assert find(seen, "outlying-annotator").ids == ("ray",)
    assert "answers-alone" not in codes(seen, "note")
    assert seen.crowd is not None and seen.crowd.words("ann") == "nothing to correct"


@pytest.mark.parametrize("shared", [True, False])
def test_one_careful_person_wins_against_two_who_answer_at_random_but_consistently(shared):
    rng = np.random.default_rng(6)
    count = 250 if shared else 500
    x = rng.normal(size=(2 * count, 5))
    r = 1 / (1 + np.exp(0.3 - x @ [2.4, -1.6, 1.0, 0.0, 0.0]))
    posteriors = ((r[::2], r[1::2]), *rng.random((2, 2, count)))
    answers = [PairLabels.from_posteriors(*both).to_array() for both in posteriors]
    ends = np.arange(2 * count).reshape(-1, 2)
    tables = [
        Judgements.from_pairs(ends, np.round(labels, 3), [name] * count)
        for name, labels in zip("abc", answers, strict=True)
    ]
    if not shared:  # every pair has one answer, of either of them
        turn = rng.integers(3, size=count)
        tables = [table[turn == number] for number, table in enumerate(tables)]
    table = Judgements.concatenate(tables)
    model = PairClassifier(model="linear", preprocessor=x, random_state=0).fit(
        table.ends, table.labels(), annotator=table.annotator
    )
    careful, *others = model.annotators_
    assert careful.guesses < 0.05 and all(other.guesses > 0.8 for other in others)
    assert np.mean((model.predict(x) > 0) == (r > 0.5)) > 0.95
    if shared:  # the answers alone do not tell who is right, and nobody is accused
        (doubt,) = Crowd.of(table).doubts()
        assert doubt.code == "rival-annotators" and doubt.names == ("a", "b", "c")
        assert doubt.words == "a against b against c"


@pytest.mark.parametrize("prior", [0.2, 0.8])
def test_known_classes_tell_which_class_is_the_larger(prior: float) -> None:
    made = simulate(pairs=600, prior=prior)
    ids, y = made.items.ids, made.positive
    # As many of each class, so that their own share tells nothing.
    rows = np.concatenate([np.flatnonzero(y == side)[:50] for side in (True, False)])
    classes = replace(Judgements.about_items("label", rows, y[rows]), ids=ids)
    report = check(Judgements.concatenate([made.pairs, classes]), precision=False)
    assert "if the positive class" not in find(report, "implied-prior").message
    assert report.summary.prior is not None
    assert report.summary.prior.value == pytest.approx(prior, abs=0.05)


def test_somebody_who_always_gives_the_same_difference() -> None:
    """It is said so, and counts for nothing; the similarities of the same person count."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    r = 1 / (1 + np.exp(-3 * x[:, 0]))
    ends = rng.permutation(300)[:270].reshape(-1, 2)[np.arange(210) % 135]
    labels = PairLabels.from_posteriors(*r[ends].T)
    who = np.repeat(["ann", "bob", "cy"], 70)
    s, c = labels.similarity, np.where(who == "cy", 0.0, labels.difference)
    report = check(pair_table(*ends.T, s, c, annotator=who), items=ItemTable(np.arange(300), x))
    assert codes(report, "error", "warning") == ["constant-difference"]
    assert find(report, "constant-difference").ids == ("cy",)
    assert report.crowd is not None
    assert report.crowd.words("cy") == "always gives the same difference"
    judged = Judgements.from_pairs(ends, PairLabels(s, c, noisy=True), annotator=who)
    model = PairClassifier(model="linear", epochs=20, random_state=0).fit(x, judged)
    assert [m.words() for m in model.annotators_] == [
        *("nothing to correct", "nothing to correct", "always gives the same difference")
    ]
    mine = judged[judged.annotator == "cy"][:5]  # too few to show it again
    assert fair(model.annotators_, mine).counts() == {"similarity": 5}
