"""Checks of tables whose faults were put there on purpose."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pairlearn import PairLabels
from pairlearn.check import CheckReport, Finding, check, expected_half_width, plot_plane
from pairlearn.check.findings import RULES
from pairlearn.io import ItemTable
from pairlearn.judgements import Judgements
from pairlearn.simulation import simulate
from pairlearn_bench.simulated import add_noise
from tables import changed, pair_table

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
    assert codes(check(made.pairs, items=made.items, precision=False), "error", "warning") == []


def test_summary_counts() -> None:
    made = simulate(pairs=200, missing=0.5, preference=0.25, annotators=2)
    report = check(made.pairs)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["ok"] is True
    assert {"severity", "code", "message", "count", "rows", "ids"} == set(data["findings"][0])
    summary = data["summary"]
    assert summary.pop("prior")["n"] == 100
    assert summary == {
        "rows": 200, "pairs": 200, "items": 400, "annotators": 2, "both": 50,
        "similarity_only": 50, "difference_only": 50, "preference_only": 50, "preference": 50,
        "components": 200, "seen_once": 400, "largest_component": 1 / 200, "infeasible": 0,
        "above_edge": 0, "below_parabola": 0, "infeasible_distance": 0.0,
        "effective_rows": pytest.approx(200), "learnable": "everything",
    }  # fmt: skip


def test_every_rule_has_a_severity_and_a_sentence() -> None:
    for code, rule in RULES.items():
        assert set(rule) == {"severity", "message"}, code
        assert rule["severity"] in ("error", "warning", "note")
        assert re.search(r"[.}]$", rule["message"]), code


# ---- one rule each ----------------------------------------------------------------------------

MIXED = pair_table(
    ["a", "x"], ["b", ""], None, None, comparison=["left", ""], confidence=[NAN, 0.7]
)
TWENTY = [(k, k + 100, 0.5, 0.1) for k in range(20)]


@pytest.mark.parametrize(
    ("judged", "code", "severity", "rows", "words"),
    [
        (table(("a", "b", 0.5, 0), ("b", "b", 1, 0), ("c", "c", 1, 0)),
         "self-pair", "error", (2, 3), "paired with themselves"),
        (table((1, 2, 0.5, -1.25), (1, 3, 1.4, 0.1), (2, 3, -0.1, 0.5), noisy=True),
         "similarity-range", "error", (2, 3), "row 2 is 1.4"),
        (table((1, 2, 0.5, -1.25), (1, 3, 1.4, 0.1), noisy=True),
         "difference-range", "error", (1,), "--noisy"),
        (table(*TWENTY, (0, 101, 85, 0.1), noisy=True), "similarity-scale", "error", (21,),
         "row 21 is 85: give it on the scale of the others, or 0.85 if it is a percentage."),
        (table(*((k, k + 100, 1 + k % 5, 0.1) for k in range(20)), noisy=True),
         "similarity-scale", "error", (2, 3, 4, 5, 7), "have another scale, 1 to 5: bring them to"),
        (table((1, 2, 0.9, 0.5), (3, 4, 0.0, 0.0), (5, 6, 0.5, 0.0), (7, 8, 1.0, NAN)),
         "infeasible", "warning", (1, 2), "66.7% of the rows"),
        (table(*((2 * k, 2 * k + 1, float(k % 2), 0.0) for k in range(20))),
         "zero-difference", "warning", (1, 3, 5, 7, 9), "leave it empty"),
        (table((1, 2, 0.5, 0.4), (3, 4, 0.5, 0.4), (5, 6, 0.5, 0.1),
               preference=["left", "right", "left"]),
         "preference-against-difference", "warning", (1,), "the difference the other"),
        (table((1, 2, 0.5, 0.1)), "few-pairs", "warning", (), "too few judged pairs, 1, for"),
        # The other way round the second row says c = −0.4, the fourth what the third does.
        (table(("a", "b", 0.5, 0.4), ("b", "a", 0.5, 0.4), ("c", "d", 0.5, 0.4),
               ("d", "c", 0.5, -0.4), ("c", "d", NAN, 0.3), annotator=["x"] * 5),
         "contradiction", "warning", (1,), "the same annotator"),
        (table(("c", "d", 0.5, 0.4), ("d", "c", 0.5, -0.4), annotator=["x"] * 2),
         "duplicate", "warning", (2,), "drop them if they are copies"),
        (table(("a", "b", 0.9, 0.0), ("a", "b", 0.5, 0.0)),
         "contradiction", "note", (1,), "without a name, perhaps several"),
        (pair_table([1, 2, 1], [2, 1, 3], None, None, ["left"] * 3, annotator=["x"] * 3),
         "contradiction", "warning", (1,), "in the other order"),
        (table(("a", "b", 0.9, 0.1), ("b", "c", 0.9, NAN), ("x", "y", 0.9, NAN)),
         "unoriented-component", "note", (3,), "In 1 of 2 components"),
        (table(("a", "b", 0.9, NAN), ("x", "y", 0.9, NAN), comparison=["left", "equal"]),
         "unoriented-component", "note", (2,), "In 1 of 2 components"),
        (MIXED, "learnable", "note", (), "Confidences and comparisons fix the posteriors"),
        (MIXED, "not-measurable", "note", (), "No pair has a similarity or a difference"),
        (table(("a", "b", 0.9, 0.1), ("b", "c", 0.9, NAN), ("x", "y", 0.9, NAN)),
         "recurring-items", "note", (), "2 components, the largest of 3 items"),
        (table(("a", "b", 0.9, 0.1)), "independent-pairs", "note", (), "in one judgement only"),
        # Σw = 3 + 3·1 = 6, Σw² = 9 + 3 = 12, and 36/12 = 3.
        (table(*((k, k + 9, 0.5, 0.0) for k in range(4)), weight=[3, 1, 1, 1]),
         "weights", "note", (), "4 judgements are worth 3 of equal weight"),
        (pair_table(range(100), range(100, 200), np.linspace(0, 0.6, 100), None),
         "too-unlike", "warning", (), "clearly below ½"),
        (pair_table(range(40), range(40, 80), None, [1, -1] * 20),
         "comparisons", "error", (), "--difference-means preference"),
        (pair_table(range(40), range(40, 80), None, [0.9, -0.8] * 20),
         "comparisons", "warning", (), "overstate how sure they are"),
        (table(*TWENTY, annotator=["Ann", "ann ", "Bob", "bob jr"] * 5),
         "similar-names", "note", (), "different people: 'Ann', 'ann '. If they are"),
    ],
)  # fmt: skip
def test_faults(judged: Judgements, code: str, severity: str, rows: Any, words: str) -> None:
    finding = find(check(judged), code)
    assert (finding.severity, finding.rows) == (severity, rows)
    assert words in finding.message


def test_distances_to_the_feasible_region_by_hand() -> None:
    # √2·0.2 above the edge; below, the nearest to (0, 0) is c = ±t, s = (1 − t²)/2 at t = 0.
    summary = check(table((1, 2, 0.9, 0.5), (3, 4, 0.0, 0.0), (5, 6, 0.5, 0.0))).summary
    assert (summary.infeasible, summary.above_edge, summary.below_parabola) == (2, 1, 1)
    assert summary.infeasible_distance == pytest.approx((0.2 * math.sqrt(2) + 0.5) / 2)


def test_percentages_are_nothing_else() -> None:
    """100 s and 100 c: nothing else is said of such values than what they are."""
    made = simulate(pairs=60, seed=3, annotators=2, repeated=0.5).pairs
    ends = {"left": made.left, "right": made.right, "annotator": made.annotator, "noisy": True}
    s, c = made.similarity, made.difference
    report = check(pair_table(**ends, similarity=100 * s, difference=100 * c), prior=0.3)
    assert codes(report, "error", "warning") == ["similarity-scale", "difference-scale"]
    first, second = report.findings[:2]
    assert first.message.startswith("The similarities look like percentages, up to ")
    assert first.message.endswith("[0, 1], or say --similarity-scale=0,100.")
    assert "divide them by 100, so that they lie in [-1, 1]" in second.message
    assert (report.summary.prior, report.summary.infeasible) == (None, 0)
    half = check(pair_table(**ends, similarity=100 * s, difference=c))
    assert codes(half, "error") == ["similarity-scale"]
    assert not {"implied-prior", "precision"} & set(codes(half))


@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_noise_is_no_other_scale_and_no_lean(sigma: float) -> None:
    """The heaviest noise of the published experiments, on rare positives: s is near 1."""
    clean = simulate(pairs=2000, prior=0.05).pairs
    noisy = add_noise(clean.labels(), sigma=sigma, seed=1)
    judged = pair_table(clean.left, clean.right, noisy.similarity, noisy.difference, noisy=True)
    report = check(judged, prior=0.05)
    assert codes(report, "error") == ["similarity-range", "difference-range"]
    assert "implied-prior" in codes(report)
    assert not {"precision", "leaning-similarity"} & set(codes(report))
    assert "right on average" in find(report, "infeasible").message
    slight = check(simulate(pairs=500, noise=0.03).pairs, precision=False)
    assert slight.summary.infeasible > 100
    assert find(slight, "infeasible").severity == "note"


@pytest.mark.parametrize("lean", [0.05, 0.15])
@pytest.mark.parametrize("overlap", [0.01, 0.2])
def test_a_lean_to_same_is_no_noise(lean: float, overlap: float) -> None:
    made = simulate(pairs=300, prior=0.37, overlap=overlap).pairs
    judged = pair_table(made.left, made.right, (made.similarity + lean).clip(0, 1), made.difference)
    report = check(judged, precision=False)
    finding = find(report, "leaning-similarity")
    assert (finding.severity, report.summary.below_parabola) == ("warning", 0)
    assert f"{finding.count} are judged too similar for it and 0 too unlike" in finding.message
    assert "Noise" not in find(report, "infeasible").message
    rng = np.random.default_rng(0)
    noise = lean * rng.normal(size=(2, 300))
    s, c = (made.similarity + noise[0]).clip(0, 1), (made.difference + noise[1]).clip(-1, 1)
    rounded = np.round(made.similarity, 1), np.round(made.difference, 1)
    for answers in ((s, c), rounded):
        fine = pair_table(made.left, made.right, *answers, noisy=True)
        assert "leaning-similarity" not in codes(check(fine, precision=False))


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
    ("s", "c", "preference", "known", "code", "severity", "learnable"),
    [
        (0.5, 0.1, None, {}, "learnable", "note", "everything"),
        (0.5, None, [1, 1], {}, "learnable", "note", "everything"),
        (0.5, None, None, {}, "needs-majority", "error", "classes up to a swap"),
        (0.5, None, None, {"majority": "positive"}, "needs-majority", "note",
         "classes up to a swap"),
        (0.5, None, None, {"prior": 0.3}, "needs-majority", "note", "classes up to a swap"),
        (0.5, None, None, {"prior": 0.5}, "needs-majority", "error", "classes up to a swap"),
        (None, 0.1, None, {}, "needs-prior", "error", "posteriors up to a shift"),
        (None, 0.1, None, {"majority": "positive"}, "needs-prior", "error",
         "posteriors up to a shift"),
        (None, 0.1, None, {"prior": 0.3}, "needs-prior", "note", "posteriors up to a shift"),
        (None, None, [1, -1], {}, "ranking-only", "warning", "a ranking"),
    ],
)  # fmt: skip
def test_what_a_table_can_teach(
    s: Any, c: Any, preference: Any, known: Any, code: str, severity: str, learnable: str
) -> None:
    judged = pair_table(
        [1, 2], [3, 4], None if s is None else [s] * 2, None if c is None else [c] * 2, preference
    )
    report = check(judged, **known)
    assert find(report, code).severity == severity
    assert report.summary.learnable == learnable


def test_the_implied_prior_and_a_stated_one() -> None:
    made = simulate(pairs=1500, prior=0.2).pairs
    unknown, right, wrong = (check(made, prior=p, precision=False) for p in (None, 0.2, 0.4))
    prior = right.summary.prior
    assert prior is not None
    assert prior.value == pytest.approx(0.2, abs=0.03)
    assert "if the positive class is the maj" in find(unknown, "implied-prior").message
    assert "cannot tell" not in find(right, "implied-prior").message
    assert "prior-disagrees" not in codes(unknown) + codes(right)
    disagrees = find(wrong, "prior-disagrees")
    interval = f"{prior.low:.3f} to {prior.high:.3f}"
    assert disagrees.message.startswith(f"The stated prior 0.4 lies outside {interval}, the 95%")
    other = check(made, majority="positive", precision=False).summary.prior
    assert other is not None
    assert other.value == pytest.approx(0.8, abs=0.03)
    shifted = simulate("moons", pairs=1000, prior=0.1, annotator_prior=0.5, overlap=0.15)
    assert "prior-disagrees" in codes(check(shifted.pairs, prior=0.1, precision=False))


def test_classes_of_equal_size_are_said_once() -> None:
    """A mean similarity below ½ has no two answers, one for each side."""
    rows = [(k, k + 100, 0.3 + 0.38 * (k % 2), 0.1) for k in range(60)]
    message = find(check(table(*rows)), "implied-prior").message
    assert "imply classes of equal size, a share of positives of 0.500 (95%: 0.3" in message
    assert message.count("0.500") == 1
    low, high = re.findall(r"0\.\d+", message)[-2:]
    assert float(low) + float(high) == pytest.approx(1)
    known = find(check(table(*rows), majority="negative"), "implied-prior").message
    assert known.endswith(" to 0.500).")
    alone = pair_table(range(60), range(100, 160), [0.3, 0.75] * 30, None)
    assert "majority-unclear" in codes(check(alone, majority="negative"), "warning")


def test_weights_reach_the_prior() -> None:
    made = simulate(pairs=1000, prior=0.2).pairs
    # Judgements of unlike pairs, drawn three times as often and weighted back.
    unlike = made.similarity < 0.5
    more = made[np.r_[np.arange(1000), np.repeat(np.flatnonzero(unlike), 2)]]
    weight = np.where(more.similarity < 0.5, 1 / 3, 1.0)
    weighted = replace(more, weight=weight)
    reports = [check(pairs, precision=False) for pairs in (made, more, weighted)]
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


def test_precision_is_what_plan_expects() -> None:
    message = find(check(simulate(pairs=500, prior=0.3, overlap=0.01).pairs), "precision").message
    width = float(message.split("±")[1].split(";")[0])
    # An overlap of 1% is a strength of 2·2.3263.
    wanted = expected_half_width(500, accuracy=0.95, prior=0.3, strength=4.6526)
    assert width == pytest.approx(wanted, rel=0.15)


# ---- items and arguments ----------------------------------------------------------------------


def test_what_the_items_tell() -> None:
    judged = table((1, 2, 0.5, 0.1), (2, 7, 0.5, 0.1), (9, 7, 0.5, 0.1))
    for items in ([1, 2, 3], ["1", "2", "3"], ItemTable([1, 2, 3], np.zeros((3, 1)))):
        report = check(judged, items=items)
        unknown = find(report, "unknown-item")
        assert (unknown.severity, unknown.rows, unknown.ids) == ("error", (2, 3), (7, 9))
        assert find(report, "unjudged-items").count == 1
    judged = pair_table([1, 2, 3], [2, "", ""], [0.5, *[np.nan] * 2], None, label=[np.nan, 1, 0])
    assert "unjudged-items" not in codes(check(judged, items=[1, 2, 3]))
    assert find(check(judged, items=[1, 2, 3, 4]), "unjudged-items").count == 1
    assert "unjudged-items" not in codes(check(judged, items=[1, 2, 3, 1]))
    assert find(check(judged, items=[1, 2]), "unknown-item").ids == (3,)
    judged = table((7, 8, 0.5, 0.1))
    report = check(judged, items=ItemTable(["007", "8"], np.ones((2, 3))))
    assert "have '007': write ids alike" in find(report, "unknown-item").message
    assert "the same features (3)" in find(report, "constant-features").message
    assert "constant-features" not in codes(check(judged, items=ItemTable([8], np.ones((1, 3)))))
    made = simulate(pairs=60, annotators=2)
    alike = changed(made.pairs, difference=None)
    assert check(alike, items=made.items, majority="negative", precision=False).ok


@pytest.mark.parametrize(
    ("shares", "learnable"), [((0.5, 0.5), "nothing"), ((0.2, 0.8), "everything")]
)
def test_groups_of_one_share_teach_nothing(shares: tuple[float, float], learnable: str) -> None:
    """The same number for every item has these shares."""
    numbers = np.arange(10)
    columns = {"share": np.take(shares, numbers % 2), "group": numbers % 2}
    report = check(pair_table(numbers, [""] * 10, None, None, **columns), items=numbers)
    wanted = "one-value" if learnable == "nothing" else "learnable"
    assert report.summary.learnable == learnable
    assert sorted(codes(report)) == sorted([wanted, "single-items"])


@pytest.mark.parametrize(("pairs", "held_out"), [(12, 2), (30, 6), (47, 9), (48, 0)])
def test_too_few_pairs_to_measure_with(pairs: int, held_out: int) -> None:
    """`fit` warns of an accuracy on fewer than ten pairs, a fifth of these."""
    judged = simulate(pairs=pairs, seed=1).pairs
    report = check(Judgements.concatenate([judged, judged]), precision=False)
    if held_out:
        message = find(report, "few-to-measure").message
        assert f"of the {pairs} pairs to measure its accuracy, {held_out} or fewer" in message
    assert ("few-to-measure" in codes(report, "warning")) == bool(held_out)
    assert "few-pairs" not in codes(report)


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


def test_rows_about_one_item_are_counted_and_other_rows_keep_their_numbers() -> None:
    judged = pair_table(
        ["a", "b", "c"], ["", "c", "a"], [NAN, 0.9, 0.9], [NAN, 0.8, 0.0],
        label=["positive", "", ""],
    )  # fmt: skip
    report = check(judged)
    assert find(report, "single-items").count == 1
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
