"""Checks of tables whose faults were put there on purpose."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from noisy_labels import add_noise
from pairlearn import PairLabels
from pairlearn.check import (
    CHECKS,
    CheckReport,
    Finding,
    check,
    plot_plane,
)
from pairlearn.io import ItemTable
from pairlearn.judgements import Judgements
from pairlearn.simulation import simulate
from tables import changed, pair_table, people_table

NAN = math.nan


def codes(report: CheckReport, *severities: str) -> list[str]:
    return [f.code for f in report.findings if not severities or f.severity in severities]


def find(report: CheckReport, code: str) -> Finding:
    (finding,) = (f for f in report.findings if f.code == code)
    return finding


def table(*rows: tuple[Any, ...], **columns: Any) -> Judgements:
    left, right, s, c = zip(*rows, strict=True)
    return pair_table(list(left), list(right), list(s), list(c), **columns)


# ---- reports ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_clean_table_has_no_errors_and_no_warnings(seed: int) -> None:
    made = simulate(pairs=300, seed=seed, annotators=3, repeated=0.3, items=200)
    assert codes(check(made.pairs, items=made.items), "error", "warning") == []


def test_summary_counts() -> None:
    made = simulate(pairs=200, missing=0.5, preference=0.25, annotators=2)
    report = check(made.pairs)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["ok"] is True
    few = check(made.pairs[:40]).findings[0].to_dict()
    assert set(few) == {"severity", "code", "message", "numbers", "count", "rows", "ids"}
    summary = data["summary"]
    assert summary.pop("prior")["n"] == 100
    assert summary == {
        "rows": 200, "pairs": 200, "items": 400, "annotators": 2, "both": 50,
        "similarity_only": 50, "difference_only": 50, "preference_only": 50, "infeasible": 0,
        "learnable": "everything",
        "majority_known": False, "prior_caveats": [],
    }  # fmt: skip


# ---- one table with each finding, and one without ----------------------------------------------

HONEST = simulate(pairs=200, prior=0.3)
PAIRS, ITEMS = HONEST.pairs, HONEST.items
S, C = PAIRS.similarity, PAIRS.difference
SINGLE = {"left": range(9), "right": [""] * 9, "similarity": None, "difference": None}


def with_columns(**columns: Any) -> Judgements:
    return changed(PAIRS, **columns)


def neighbours() -> Judgements:
    """Pairs of items that are next to each other in the feature that decides."""
    order = np.argsort(ITEMS.features[:, 0])
    left, right = order[:-1:2], order[1::2]
    labels = PairLabels.from_posteriors(HONEST.posterior[left], HONEST.posterior[right])
    return pair_table(left, right, labels.similarity, labels.difference)


def contradicted(swapped: bool) -> Judgements:
    """Honest answers, and classes of forty items that may be exchanged."""
    rows = np.argsort(-np.abs(HONEST.posterior - 0.5))[:40]
    classes = HONEST.positive[rows] ^ swapped
    return Judgements.concatenate(
        [PAIRS, Judgements.about_items("label", rows, classes, ids=ITEMS.ids)]
    )


def namesakes(*names: str) -> Judgements:
    judged = people_table("careful", "careful")
    return replace(judged, annotator=np.repeat(names, 60))


def about(*sets: str, **columns: Any) -> Judgements:
    """Some pairs, each as to one of these sets of classes."""
    return replace(with_columns(**columns), about=np.resize(np.array(sets), len(PAIRS)))


SIMILAR = with_columns(difference=None)
CAREFUL = people_table("careful", "careful"), {}
BALANCED = changed(simulate(pairs=60, prior=0.5).pairs, difference=None)
TWICE = ("a", "b", 0.5, 0.4)
Case = tuple[Judgements, dict[str, Any]]
CASES: dict[str, tuple[Case, Case]] = {
    "self-pair": (
        (table(("a", "b", 0.5, 0), ("b", "b", 1, 0)), {}), (table(("a", "b", 0.5, 0)), {})),
    "unknown-item": ((PAIRS, {"items": ITEMS.ids[1:]}), (PAIRS, {"items": ITEMS.ids})),
    "constant-features": (
        (PAIRS, {"items": ItemTable(ITEMS.ids, np.ones((400, 2)))}), (PAIRS, {"items": ITEMS})),
    "dependent-ends": ((neighbours(), {"items": ITEMS}), (PAIRS, {"items": ITEMS})),
    "out-of-range": (
        (pair_table([1, 2], [3, 4], [1.2, 0.5], None, noisy=True), {}),
        (pair_table([1, 2], [3, 4], [1.0, 0.5], None), {})),
    "other-scale": ((with_columns(similarity=np.round(1 + 4 * S)), {}), (PAIRS, {})),
    "upside-down": ((with_columns(similarity=1 - S), {}), (PAIRS, {})),
    "comparisons": ((with_columns(difference=np.sign(C)), {}), (PAIRS, {})),
    "infeasible": ((table((1, 2, 0.9, 0.5)), {}), (PAIRS, {})),
    "zero-difference": (
        (table(*((2 * k, 2 * k + 1, float(k % 2), 0.0) for k in range(40))), {}), (PAIRS, {})),
    "opposed-preference": (
        (table((1, 2, 0.5, 0.4), preference=["left"]), {}),
        (table((1, 2, 0.5, 0.4), preference=["right"]), {})),
    "contradiction": (
        (table(TWICE, ("b", "a", 0.5, 0.4), annotator=["x", "x"]), {}),
        (table(TWICE, ("b", "a", 0.5, 0.4), annotator=["x", "y"]), {})),
    "duplicate": (
        (table(TWICE, ("b", "a", 0.5, -0.4), annotator=["x", "x"]), {}),
        (table(TWICE, ("b", "a", 0.5, -0.4), annotator=["x", "y"]), {})),
    "needs-majority": ((SIMILAR, {"prior": 0.5}), (SIMILAR, {"majority": "negative"})),
    "needs-prior": (
        (with_columns(similarity=None), {"majority": "negative"}),
        (with_columns(similarity=None), {"prior": 0.3})),
    "one-value": (
        (pair_table(**SINGLE, label=[1] * 9), {}), (pair_table(**SINGLE, label=[1, 0, 1] * 3), {})),
    "not-told-apart": ((about("cat", "cow|dog"), {}), (about("cat", "cow", "dog"), {})),
    "needs-priors": (
        (about("cat", "cow", "dog", similarity=None), {}), (about("cat", "cow", "dog"), {})),
    "few-pairs": ((PAIRS[:47], {}), (PAIRS[:48], {})),
    "not-measurable": (
        (pair_table(range(60), range(60, 120), None, None, [1, -1] * 30), {"prior": 0.5}),
        (PAIRS, {})),
    "too-unlike": (
        (pair_table(range(100), range(100, 200), np.linspace(0, 0.6, 100), None), {}),
        (SIMILAR, {})),
    "prior-disagrees": ((PAIRS, {"prior": 0.95}), (PAIRS, {"prior": 0.3})),
    "majority-unclear": ((BALANCED, {"majority": "negative"}), (SIMILAR, {"majority": "negative"})),
    "ordered-pairs": ((with_columns(difference=np.abs(C)), {}), (PAIRS, {})),
    "constant-answers": ((people_table("careful", "careful", "constant"), {}), CAREFUL),
    "untouched": ((people_table("careful", "untouched"), {}), CAREFUL),
    "copied-annotator": ((people_table("careful", "careful", "copied"), {}), CAREFUL),
    "reversed-annotator": ((people_table("careful", "careful", "reversed"), {}), CAREFUL),
    "rival-annotators": ((people_table("careful", "reversed"), {}), CAREFUL),
    "levels": ((people_table("levels", "levels"), {}), CAREFUL),
    "similar-names": ((namesakes("Ann", "ann "), {}), (namesakes("Ann", "Bo"), {})),
    "outlying-annotator": ((people_table("careful", "careful", "random"), {}), CAREFUL),
    "leaning-annotator": ((people_table("careful", "careful", "leaning"), {}), CAREFUL),
    "contradicted-classes": ((contradicted(True), {}), (contradicted(False), {})),
}  # fmt: skip
"""A table that has the finding and one that has not, with the arguments of `check`."""


def test_every_finding_has_a_table_with_it_and_one_without() -> None:
    assert CASES.keys() == CHECKS.keys()


@pytest.mark.parametrize("code", CHECKS)
def test_findings(code: str) -> None:
    (judged, known), (other, known_of_other) = CASES[code]
    [found] = check(judged, codes=[code], **known).findings
    assert found.code == code
    assert found.message.endswith(".") and "{" not in found.message
    assert codes(check(other, codes=[code], **known_of_other)) == []


@pytest.mark.parametrize(
    ("judged", "code", "severity", "rows", "words"),
    [
        (table((1, 2, 0.5, 0.1), (1, 3, 1.4, 0.1), (2, 3, -0.1, 0.5), noisy=True),
         "out-of-range", "error", (2, 3), "row 2 is 1.4"),
        (table(*((k, k + 100, 0.5, 0.1) for k in range(20)), (0, 101, 85, 0.1), noisy=True),
         "other-scale", "error", (21,), "row 21 is 85: put it on the scale of the other rows."),
        (table(*((k, k + 100, 1 + k % 5, 0.1) for k in range(20)), noisy=True),
         "other-scale", "error", (2, 3, 4, 5, 7), "as in --similarity-scale=1,5"),
        (table((1, 2, 0.9, 0.5), (3, 4, 0.0, 0.0), (5, 6, 0.5, 0.0), (7, 8, 1.0, NAN)),
         "infeasible", "warning", (1, 2), "66.7% of the rows"),
        (table(TWICE, ("b", "a", 0.5, 0.4), ("c", "d", 0.5, 0.4), annotator=["x"] * 3),
         "contradiction", "warning", (1,), "the same annotator"),
        (table(("a", "b", 0.9, 0.0), ("a", "b", 0.5, 0.0)),
         "contradiction", "note", (1,), "without a name, perhaps several"),
        (pair_table([1, 2, 1], [2, 1, 3], None, None, ["left"] * 3, annotator=["x"] * 3),
         "contradiction", "warning", (1,), "in reverse order"),
        (pair_table(range(40), range(40, 80), None, [0.9, -0.8] * 20),
         "comparisons", "warning", (), "rename their column to preference"),
        (CASES["too-unlike"][0][0], "too-unlike", "warning", (), "three or more classes"),
        (pair_table(range(60), range(60, 120), None, None, [1, -1] * 30),
         "needs-prior", "error", (), "fit needs the class prior (--prior)"),
    ],
)  # fmt: skip
def test_details(judged: Judgements, code: str, severity: str, rows: Any, words: str) -> None:
    finding = find(check(judged), code)
    assert (finding.severity, finding.rows) == (severity, rows)
    assert words in finding.message


# ---- honest tables ----------------------------------------------------------------------------


def honest_table(k: int) -> tuple[Judgements, dict[str, Any]]:
    """A table of careful annotators, with the arguments of `check`: sizes, priors, levels, …"""
    prior, levels = (0.1, 0.3, 0.5, 0.8)[k // 16 % 4], (0, 0, 4, 10)[k // 4 % 4]
    pairs, annotators = (50, 120, 300)[k % 3], 1 + k % 4
    made = simulate(
        ("gaussians", "moons")[k // 2 % 2],
        pairs=pairs,
        prior=prior,
        items=None if k % 5 else pairs,
        annotators=annotators,
        repeated=0.3 * (annotators > 1),
        missing=0.0 if k % 7 else 0.3,
        overlap=(0.02, 0.05, 0.15)[k // 3 % 3],
        seed=k,
    )
    s, c = made.pairs.similarity, made.pairs.difference
    if levels:
        s, c = np.round(s * levels) / levels, np.round((c + 1) / 2 * levels) / levels * 2 - 1
    known = {"items": made.items if k % 2 else None, "prior": None if k % 6 else prior}
    return changed(made.pairs, similarity=s, difference=c), known


def accusations(tables: int, **options: Any) -> tuple[Counter[str], int]:
    """How many honest tables get each error or warning, and how many get any."""
    by_code, accused = Counter[str](), 0
    for k in range(tables):
        judged, known = honest_table(k)
        report = check(judged, **known, **options)
        found = {*codes(report, "error", "warning")}
        by_code.update(found)
        accused += bool(found)
    return by_code, accused


@pytest.mark.parametrize("tables", [60, pytest.param(200, marks=pytest.mark.long)])
def test_honest_tables_are_not_accused(tables: int) -> None:
    by_code, accused = accusations(tables, codes=CHECKS)
    assert all(count <= 0.02 * tables for count in by_code.values()), by_code
    assert accused <= 0.05 * tables, by_code


def test_the_example_of_simulate_is_not_accused() -> None:
    made = simulate(annotators=3, repeated=0.3)
    report = check(made.pairs, items=made.items)
    assert codes(report, "error", "warning") == []


# ---- values -----------------------------------------------------------------------------------


def test_distances_to_the_feasible_region_by_hand() -> None:
    # √2·0.2 above the edge; below, the nearest to (0, 0) is c = ±t, s = (1 − t²)/2 at t = 0.
    report = check(table((1, 2, 0.9, 0.5), (3, 4, 0.0, 0.0), (5, 6, 0.5, 0.0)))
    numbers = find(report, "infeasible").numbers
    assert (report.summary.infeasible, numbers["above"], numbers["below"]) == (2, 1, 1)
    assert numbers["off"] == pytest.approx((0.2 * math.sqrt(2) + 0.5) / 2)


def test_percentages_are_nothing_else() -> None:
    """100 s and 100 c: nothing else is said of such values than what they are."""
    made = simulate(pairs=60, seed=3, annotators=2, repeated=0.5).pairs
    ends = {"left": made.left, "right": made.right, "annotator": made.annotator, "noisy": True}
    s, c = made.similarity, made.difference
    report = check(pair_table(**ends, similarity=100 * s, difference=100 * c), prior=0.3)
    assert codes(report, "error", "warning") == ["other-scale", "other-scale"]
    first, second = report.findings[:2]
    assert "--similarity-scale=0,100" in first.message
    assert "--difference-scale=-100,100" in second.message
    assert (report.summary.prior, report.summary.infeasible) == (None, 0)
    half = check(pair_table(**ends, similarity=100 * s, difference=c))
    assert codes(half, "error") == ["other-scale"]
    assert half.summary.prior is None and "precision" not in codes(half)


@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_noise_is_no_other_scale_and_no_lean(sigma: float) -> None:
    """The heaviest noise of the published experiments, on rare positives: s is near 1."""
    clean = simulate(pairs=2000, prior=0.05).pairs
    noisy = add_noise(clean.labels(), sigma=sigma, seed=1)
    judged = pair_table(clean.left, clean.right, noisy.similarity, noisy.difference, noisy=True)
    report = check(judged, prior=0.05)
    assert codes(report, "error") == ["out-of-range", "out-of-range"]
    assert report.summary.prior is not None
    assert "averages to zero" in find(report, "infeasible").message
    slight = check(simulate(pairs=500, noise=0.03).pairs)
    assert slight.summary.infeasible > 100
    assert find(slight, "infeasible").severity == "note"


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 3),
            st.sampled_from([NAN, 0.0, 0.1, 0.5, 1.0]),
            st.sampled_from([-0.5, -0.1, 0.0, 0.5]),
            st.sampled_from(["x", "y"]),
        ),
        min_size=1,
        max_size=14,
    )
)
def test_repeats_by_brute_force(rows: list[tuple[Any, ...]]) -> None:
    judged = table(*(row[:4] for row in rows), annotator=[row[4] for row in rows])
    contradicting, copies = set(), set()
    for (_, first), (k, second) in itertools.combinations(enumerate(rows), 2):
        straight = first[:2] == second[:2]
        if first[4] != second[4] or not (straight or first[:2] == second[1::-1]):
            continue
        other_c = second[3] if straight else -second[3]
        gap_s = abs(first[2] - second[2])
        if gap_s > 0.2 or abs(first[3] - other_c) > 0.2:
            contradicting.add(frozenset((first[0], first[1])) | {first[4]})
        both_missing = math.isnan(first[2]) and math.isnan(second[2])
        if first[3] == other_c and (gap_s == 0 or both_missing):
            copies.add(k + 1)
    findings = {f.code: f for f in check(judged, prior=0.5, majority="negative").findings}
    assert (findings["contradiction"].count if contradicting else 0) == len(contradicting)
    assert ("contradiction" in findings) == bool(contradicting)
    assert ("duplicate" in findings) == bool(copies)
    assert not copies or findings["duplicate"].rows == tuple(sorted(copies))[:5]


# ---- what can be learnt, prior and weights ----------------------------------------------------


@pytest.mark.parametrize(
    ("s", "c", "preference", "known", "code", "learnable"),
    [
        (0.5, 0.1, None, {}, None, "everything"),
        (0.5, None, [1, 1], {}, None, "everything"),
        (0.5, None, None, {}, "needs-majority", "classes up to a swap"),
        (0.5, None, None, {"majority": "positive"}, None, "classes up to a swap"),
        (0.5, None, None, {"prior": 0.3}, None, "classes up to a swap"),
        (0.5, None, None, {"prior": 0.5}, "needs-majority", "classes up to a swap"),
        (None, 0.1, None, {}, "needs-prior", "posteriors up to a shift"),
        (None, 0.1, None, {"majority": "positive"}, "needs-prior", "posteriors up to a shift"),
        (None, 0.1, None, {"prior": 0.3}, None, "posteriors up to a shift"),
        (None, None, [1, -1], {}, "needs-prior", "a ranking"),
        (None, None, [1, -1], {"prior": 0.3}, None, "a ranking"),
    ],
)  # fmt: skip
def test_what_a_table_can_teach(
    s: Any, c: Any, preference: Any, known: Any, code: str | None, learnable: str
) -> None:
    judged = pair_table(
        [1, 2], [3, 4], None if s is None else [s] * 2, None if c is None else [c] * 2, preference
    )
    report = check(judged, **known)
    assert codes(report, "error") == [code] * (code is not None)
    assert report.summary.learnable == learnable


def test_the_implied_prior_and_a_stated_one() -> None:
    made = simulate(pairs=1500, prior=0.2).pairs
    unknown, right, wrong = (check(made, prior=p) for p in (None, 0.2, 0.4))
    prior = right.summary.prior
    assert prior is not None
    assert prior.value == pytest.approx(0.2, abs=0.03)
    assert "if positives are the majority" in unknown.summary.prior_words()[0]
    assert "if positives" not in right.summary.prior_words()[0]
    assert "prior-disagrees" not in codes(unknown) + codes(right)
    disagrees = find(wrong, "prior-disagrees")
    assert disagrees.numbers["high"] > prior.high  # more than the 95% interval
    assert disagrees.message.startswith("The stated prior 0.4 is more than four standard errors")
    other = check(made, majority="positive").summary.prior
    assert other is not None
    assert other.value == pytest.approx(0.8, abs=0.03)
    shifted = simulate("moons", pairs=1000, prior=0.1, annotator_prior=0.5, overlap=0.15)
    assert "prior-disagrees" in codes(check(shifted.pairs, prior=0.1))


def test_classes_of_equal_size_are_said_once() -> None:
    """A mean similarity below ½ has no two answers, one for each side."""
    rows = [(k, k + 100, 0.3 + 0.38 * (k % 2), 0.1) for k in range(60)]
    line, *_ = check(table(*rows)).summary.prior_words()
    assert line.startswith("share of positives: 0.500 (95% interval 0.3")
    low, high = line.split("interval ")[1].split(")")[0].split(" to ")
    assert float(low) + float(high) == pytest.approx(1)
    known, *_ = check(table(*rows), majority="negative").summary.prior_words()
    assert " to 0.500), from" in known
    alone = pair_table(range(60), range(100, 160), [0.3, 0.75] * 30, None)
    assert "majority-unclear" in codes(check(alone, majority="negative"), "warning")


def test_weights_reach_the_prior() -> None:
    made = simulate(pairs=1000, prior=0.2).pairs
    # Judgements of unlike pairs, drawn three times as often and weighted back.
    unlike = made.similarity < 0.5
    more = made[np.r_[np.arange(1000), np.repeat(np.flatnonzero(unlike), 2)]]
    weight = np.where(more.similarity < 0.5, 1 / 3, 1.0)
    weighted = replace(more, weight=weight)
    reports = [check(pairs) for pairs in (made, more, weighted)]
    usual, plain, even = (r.summary.prior.value for r in reports if r.summary.prior is not None)
    assert even == pytest.approx(usual)
    assert plain > usual + 0.1


def test_pairs_that_are_not_in_random_order() -> None:
    made = simulate(pairs=200).pairs
    assert "ordered-pairs" not in codes(check(made))
    sorted_ = pair_table(made.left, made.right, made.similarity, np.abs(made.difference))
    finding = find(check(sorted_), "ordered-pairs")
    assert finding.severity == "warning"
    assert "The right item is the more positive" in finding.message


# ---- items and arguments ----------------------------------------------------------------------


def test_what_the_items_tell() -> None:
    judged = table((1, 2, 0.5, 0.1), (2, 7, 0.5, 0.1), (9, 7, 0.5, 0.1))
    for items in ([1, 2, 3], ["1", "2", "3"], ItemTable([1, 2, 3], np.zeros((3, 1)))):
        report = check(judged, items=items)
        unknown = find(report, "unknown-item")
        assert (unknown.severity, unknown.rows, unknown.ids) == ("error", (2, 3), (7, 9))
    judged = pair_table(
        [1, 2, 3], [2, None, None], [0.5, *[np.nan] * 2], None, label=[np.nan, 1, 0]
    )
    assert find(check(judged, items=[1, 2]), "unknown-item").ids == (3,)
    judged = table((7, 8, 0.5, 0.1))
    report = check(judged, items=ItemTable(["007", "8"], np.ones((2, 3))))
    assert "have '007': write both in the same way" in find(report, "unknown-item").message
    assert "the same features (3)" in find(report, "constant-features").message
    assert "constant-features" not in codes(check(judged, items=ItemTable([8], np.ones((1, 3)))))
    made = simulate(pairs=60, annotators=2)
    alike = changed(made.pairs, difference=None)
    assert check(alike, items=made.items, majority="negative").ok


@pytest.mark.parametrize(
    ("shares", "learnable"), [((0.5, 0.5), "nothing"), ((0.2, 0.8), "everything")]
)
def test_groups_of_one_share_teach_nothing(shares: tuple[float, float], learnable: str) -> None:
    """The same number for every item has these shares."""
    numbers = np.arange(10)
    columns = {"share": np.take(shares, numbers % 2), "group": numbers % 2}
    report = check(pair_table(numbers, [""] * 10, None, None, **columns), items=numbers)
    assert report.summary.learnable == learnable
    assert codes(report) == ["one-value"] * (learnable == "nothing")


def test_repeated_answers_do_not_make_more_pairs() -> None:
    """`fit` warns of an accuracy on fewer than ten pairs, a fifth of these."""
    judged = simulate(pairs=47, seed=1).pairs
    report = check(Judgements.concatenate([judged, judged]))
    assert find(report, "few-pairs").numbers == {"pairs": 47, "held_out": 9}


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"prior": 0.0}, r"prior must lie in \(0, 1\); got 0"),
        ({"majority": "none"}, "majority must be 'positive' or 'negative'; got 'none'"),
        ({"prior": 0.3, "majority": "positive"}, "prior 0.3 makes the negative class the majority"),
    ],
)
def test_wrong_arguments(known: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(table((1, 2, 0.5, 0.1)), **known)
    with pytest.raises(ValueError, match="table has no rows"):
        check(pair_table([], [], [], []))


@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_no_table_breaks_the_checks(data: st.DataObject) -> None:
    """Whatever a table holds, there is a report, and it goes into JSON."""
    n = data.draw(st.integers(1, 40))
    maybe = st.one_of(st.just(NAN), st.floats(-3, 3), st.sampled_from([0.0, 0.5, 1.0]))
    some = lambda values: data.draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    judged = pair_table(
        some(st.integers(0, 9)),
        some(st.integers(0, 9)),
        some(maybe),
        some(maybe),
        preference=[x or 1 for x in some(st.sampled_from([-1, 0, 1]))],
        weight=some(st.sampled_from([1e-300, 1.0, 1e300])),
        annotator=some(st.sampled_from(["", "a", "b"])),
        noisy=True,
    )
    items = ItemTable(range(10), np.random.default_rng(n).normal(size=(10, 2)))
    report = check(judged, items=items, prior=data.draw(st.sampled_from([None, 0.2, 0.5])))
    json.dumps(report.to_dict(), allow_nan=False)


def test_rows_beside_some_about_one_item_keep_their_numbers() -> None:
    judged = pair_table(
        ["a", "b", "c"], ["", "c", "a"], [NAN, 0.9, 0.9], [NAN, 0.8, 0.0],
        label=["positive", "", ""],
    )  # fmt: skip
    report = check(judged)
    assert find(report, "infeasible").rows == (2,)
    order = [f.severity for f in report.findings]
    assert order == sorted(order, key=["error", "warning", "note"].index)


# ---- the picture ------------------------------------------------------------------------------


def test_plot_plane() -> None:
    pyplot = pytest.importorskip("matplotlib.figure")
    labels = PairLabels([0.5, 0.9, 0.7, NAN], [0.0, 0.5, NAN, -0.5])
    ax = pyplot.Figure().subplots()
    assert plot_plane(labels, ax) is ax
    assert sorted(ax.get_legend_handles_labels()[1]) == [
        "difference only (1)",
        "feasible (1)",
        "no posteriors give this (1)",
        "similarity only (1)",
    ]
    corners = {text.get_text() for text in ax.texts}
    assert corners == {"left +, right −", "left −, right +", "same class"}
    noisy = plot_plane(PairLabels([3.0], [-2.0], noisy=True), pyplot.Figure().subplots())
    assert noisy.get_xlim()[0] < -2 and noisy.get_ylim()[1] > 3
