"""Checks of tables whose faults were put there on purpose."""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pairlearn import PairLabels
from pairlearn.annotators import add_noise
from pairlearn.diagnostics import CheckReport, Finding, check, plot_plane
from pairlearn.diagnostics.columns import Columns
from pairlearn.estimators.splits import components
from pairlearn.simulation import simulate
from pairlearn.tables import ItemTable, PairTable

NAN = math.nan


def codes(report: CheckReport, *severities: str) -> list[str]:
    return [f.code for f in report.findings if not severities or f.severity in severities]


def find(report: CheckReport, code: str) -> Finding:
    (found,) = (f for f in report.findings if f.code == code)
    return found


def table(*rows: tuple[Any, ...], **columns: Any) -> PairTable:
    left, right, s, c = zip(*rows, strict=True)
    return PairTable(list(left), list(right), list(s), list(c), **columns)


def judged_by_several(
    seed: int, n: int = 60, annotators: int = 4, noise: float = 0.05
) -> dict[str, Any]:
    """Every pair judged by every annotator, with additive noise of their own."""
    rng = np.random.default_rng(seed)
    labels = PairLabels.from_posteriors(*rng.beta(1, 1, (2, n)))
    who = np.repeat(np.arange(annotators), n)
    s, c = (np.tile(v, annotators) for v in (labels.similarity, labels.difference))
    return {
        "left": np.tile(np.arange(n), annotators),
        "right": np.tile(np.arange(n, 2 * n), annotators),
        "similarity": (s + noise * rng.normal(size=len(s))).clip(0, 1),
        "difference": (c + noise * rng.normal(size=len(s))).clip(-1, 1),
        "annotator": [f"a{k}" for k in who],
    }


# ---- a clean table ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_clean_table_has_no_errors_and_no_warnings(seed: int) -> None:
    made = simulate(pairs=300, seed=seed, annotators=3, repeated=0.3, items=200)
    report = check(made.pairs, items=made.items)
    assert report.ok
    assert codes(report, "error", "warning") == []


def test_summary_counts() -> None:
    made = simulate(pairs=200, missing=0.5, preference=0.25, annotators=2)
    told = check(made.pairs).summary
    assert (told.rows, told.pairs, told.items, told.annotators) == (200, 200, 400, 2)
    kinds = (told.both, told.similarity_only, told.difference_only, told.preference_only)
    assert kinds == (50, 50, 50, 50)
    assert told.preference == 50
    assert (told.components, told.seen_once, told.largest_component) == (200, 400, 1 / 200)
    assert told.effective_rows == pytest.approx(200)
    assert told.learnable == "everything"


def test_reports_are_plain_values_for_json() -> None:
    made = simulate(pairs=60)
    told = json.loads(json.dumps(check(made.pairs).to_dict()))
    assert told["ok"] is True
    assert told["summary"]["prior"]["n"] == 60
    assert {"severity", "code", "message", "count", "rows", "ids"} == set(told["findings"][0])


def test_errors_come_first() -> None:
    report = check(table(("a", "a", 1.0, 0.0), ("a", "b", 0.9, 0.9), ("b", "c", 0.1, 0.0)))
    order = [f.severity for f in report.findings]
    assert order == sorted(order, key=["error", "warning", "note"].index)
    assert not report.ok


# ---- single judgements ------------------------------------------------------------------------


def test_self_pairs() -> None:
    found = find(check(table(("a", "b", 0.5, 0), ("b", "b", 1, 0), ("c", "c", 1, 0))), "self-pair")
    assert (found.severity, found.count, found.rows, found.ids) == ("error", 2, (2, 3), ("b", "c"))


def test_values_out_of_range() -> None:
    told = table((1, 2, 0.5, -1.25), (1, 3, 1.4, 0.1), (2, 3, -0.1, 0.5), noisy=True)
    report = check(told)
    similarity, difference = (find(report, f"{x}-range") for x in ("similarity", "difference"))
    assert (similarity.severity, similarity.rows, difference.rows) == ("error", (2, 3), (1,))
    assert "row 2 is 1.4" in similarity.message
    assert "--noisy" in similarity.message


def test_percentages() -> None:
    """100 s and 100 c: nothing else is said of such values than what they are."""
    made = simulate(pairs=60, seed=3, annotators=2, repeated=0.5).pairs
    ends = {"left": made.left, "right": made.right, "annotator": made.annotator, "noisy": True}
    s, c = made.similarity, made.difference
    report = check(PairTable(**ends, similarity=100 * s, difference=100 * c), prior=0.3)
    assert codes(report, "error", "warning") == ["similarity-scale", "difference-scale"]
    first = find(report, "similarity-scale")
    assert first.message.startswith("The similarities look like percentages, up to ")
    assert first.message.endswith(
        ": divide them by 100, so that they lie in [0, 1], or say --similarity-scale=0,100."
    )
    assert "divide them by 100, so that they lie in [-1, 1]" in report.findings[1].message
    assert (report.summary.prior, report.summary.infeasible) == (None, 0)
    half = check(PairTable(**ends, similarity=100 * s, difference=c))
    assert codes(half, "error") == ["similarity-scale"]
    assert "implied-prior" not in codes(half)
    assert "precision" not in codes(half)


def test_one_percentage_among_shares() -> None:
    rows = [(k, k + 100, 0.5, 0.1) for k in range(20)]
    found = find(check(table(*rows, (0, 101, 85, 0.1), noisy=True)), "similarity-scale")
    assert found.rows == (21,)
    assert "row 21 is 85: give it on the scale of the others, or 0.85 if it is" in found.message


def test_a_scale_from_1_to_5() -> None:
    rows = [(k, k + 100, 1 + k % 5, 0.1) for k in range(20)]
    found = find(check(table(*rows, noisy=True)), "similarity-scale")
    assert "have another scale, 1 to 5: bring them to [0, 1]" in found.message


@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_noise_is_no_other_scale(sigma: float) -> None:
    """The heaviest noise of the published experiments, on rare positives: s is near 1."""
    labels = simulate(pairs=2000, prior=0.05).pairs.labels()
    noisy = add_noise(labels, sigma=sigma, seed=1)
    n = len(noisy)
    left, right = np.arange(n), np.arange(n, 2 * n)
    told = PairTable(left, right, noisy.similarity, noisy.difference, noisy=True)
    report = check(told, prior=0.05)
    assert codes(report, "error") == ["similarity-range", "difference-range"]
    assert "implied-prior" in codes(report)
    assert "precision" not in codes(report)


def test_infeasible_judgements_by_hand() -> None:
    told = table(
        (1, 2, 0.9, 0.5),  # above the edge, √2·0.2 from it
        (3, 4, 0.0, 0.0),  # below: nearest is c = ±t, s = (1 − t²)/2 with t³ + t = 0, t = 0
        (5, 6, 0.5, 0.0),
        (7, 8, 1.0, NAN),
    )
    report = check(told)
    found, summary = find(report, "infeasible"), report.summary
    assert found.rows == (1, 2)
    assert "66.7%" in found.message
    assert (summary.infeasible, summary.above_edge, summary.below_parabola) == (2, 1, 1)
    assert summary.infeasible_distance == pytest.approx((0.2 * math.sqrt(2) + 0.5) / 2)


def test_slight_noise_at_the_edge_is_only_a_note() -> None:
    report = check(simulate(pairs=500, noise=0.03).pairs)
    assert report.summary.infeasible > 100
    assert find(report, "infeasible").severity == "note"
    assert find(check(simulate(pairs=500, noise=0.5).pairs), "infeasible").severity == "warning"


def test_a_difference_of_zero_where_it_was_not_asked() -> None:
    rows = [(2 * k, 2 * k + 1, float(k % 2), 0.0) for k in range(20)]
    found = find(check(table(*rows)), "zero-difference")
    assert (found.severity, found.count, found.rows[:3]) == ("warning", 10, (1, 3, 5))


def test_preference_against_difference() -> None:
    told = table(
        (1, 2, 0.5, 0.4), (3, 4, 0.5, 0.4), (5, 6, 0.5, 0.1), preference=["left", "right", "left"]
    )
    assert find(check(told), "preference-against-difference").rows == (1,)


# ---- several judgements of one pair -----------------------------------------------------------


def test_contradictions_in_either_order() -> None:
    told = table(
        ("a", "b", 0.5, 0.4),
        ("b", "a", 0.5, 0.4),  # the other way round this says c = −0.4
        ("c", "d", 0.5, 0.4),
        ("d", "c", 0.5, -0.4),  # and this the same
        ("c", "d", NAN, 0.3),  # near enough
        annotator=["x"] * 5,
    )
    report = check(told)
    found = find(report, "contradiction")
    assert (found.severity, found.rows) == ("warning", (1,))
    assert find(report, "duplicate").rows == (4,)
    assert report.summary.pairs == 2


def test_other_annotators_may_think_otherwise() -> None:
    told = table(("a", "b", 0.9, 0.0), ("a", "b", 0.5, 0.0), annotator=["x", "y"])
    assert not {"contradiction", "duplicate"} & set(codes(check(told)))
    for nobody in (None, ["", ""]):
        told = table(("a", "b", 0.9, 0.0), ("a", "b", 0.5, 0.0), annotator=nobody)
        assert find(check(told), "contradiction").severity == "note"


def test_contradicting_preferences() -> None:
    told = PairTable(
        [1, 2, 1], [2, 1, 3], None, None, ["left", "left", "left"], annotator=["x", "x", "x"]
    )
    assert find(check(told), "contradiction").rows == (1,)


@settings(max_examples=60, deadline=None)
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
    told = table(*(row[:4] for row in rows), annotator=[row[4] for row in rows])
    contradicting, copies = set(), set()
    for (_, one), (k, two) in itertools.combinations(enumerate(rows), 2):
        straight = one[:2] == two[:2]
        if one[4] != two[4] or not (straight or one[:2] == two[1::-1]):
            continue
        other_c = two[3] if straight else -two[3]
        gap_s = abs(one[2] - two[2])
        if gap_s > 0.2 or abs(one[3] - other_c) > 0.2:
            contradicting.add(frozenset((one[0], one[1])) | {one[4]})
        both_missing = math.isnan(one[2]) and math.isnan(two[2])
        if one[3] == other_c and (gap_s == 0 or both_missing):
            copies.add(k + 1)
    found = {f.code: f for f in check(told, prior=0.5, majority="negative").findings}
    assert (found["contradiction"].count if contradicting else 0) == len(contradicting)
    assert ("contradiction" in found) == bool(contradicting)
    assert (
        found["duplicate"].rows == tuple(sorted(copies))[:5]
        if copies
        else ("duplicate" not in found)
    )


# ---- annotators -------------------------------------------------------------------------------


def test_constant_and_coarse_answers() -> None:
    columns = judged_by_several(0, annotators=3)
    who = np.array(columns["annotator"])
    columns["similarity"][who == "a0"] = 0.7
    columns["similarity"][who == "a1"] = np.round(2 * columns["similarity"][who == "a1"]) / 2
    report = check(PairTable(**columns))
    assert find(report, "constant-similarity").ids == ("a0",)
    assert find(report, "coarse-similarity").ids == ("a1",)
    assert "coarse-difference" not in codes(report)


@pytest.mark.parametrize("seed", range(4))
def test_an_outlying_annotator_is_named_and_the_others_are_not(seed: int) -> None:
    clean = judged_by_several(seed)
    assert "outlying-annotator" not in codes(check(PairTable(**clean)))
    who, rng = np.array(clean["annotator"]), np.random.default_rng(seed)
    for question in ("similarity", "difference"):
        clean[question][who == "a2"] = rng.permutation(clean[question][who == "a2"])
    report = check(PairTable(**clean))
    assert find(report, "outlying-annotator").ids == ("a2",)
    assert find(report, "inconsistent-annotator").ids == ("a2",)


def test_an_annotator_who_turns_the_scale_around() -> None:
    columns = judged_by_several(1)
    columns["difference"][np.array(columns["annotator"]) == "a3"] *= -1
    assert find(check(PairTable(**columns)), "reversed-annotator").ids == ("a3",)


def test_an_annotator_who_sees_the_pair_in_the_other_order_is_fine() -> None:
    columns = judged_by_several(2)
    turned = np.array(columns["annotator"]) == "a1"
    left, right = columns["left"].copy(), columns["right"].copy()
    columns["left"][turned], columns["right"][turned] = right[turned], left[turned]
    columns["difference"][turned] *= -1
    found = codes(check(PairTable(**columns)), "warning")
    assert not [code for code in found if code.endswith("annotator")]


# ---- what can be learnt, prior and weights ----------------------------------------------------


@pytest.mark.parametrize(
    ("s", "c", "preference", "given", "code", "severity", "learnable"),
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
    s: Any, c: Any, preference: Any, given: Any, code: str, severity: str, learnable: str
) -> None:
    told = PairTable(
        [1, 2], [3, 4], None if s is None else [s] * 2, None if c is None else [c] * 2, preference
    )
    report = check(told, **given)
    assert find(report, code).severity == severity
    assert report.summary.learnable == learnable


def test_the_implied_prior_and_a_stated_one() -> None:
    made = simulate(pairs=1500, prior=0.2)
    for right in (0.2, None):
        report = check(made.pairs, prior=right)
        assert "prior-disagrees" not in codes(report)
        assert report.summary.prior is not None
        assert report.summary.prior.value == pytest.approx(0.2, abs=0.03)
    assert "if the positive class is the maj" in find(check(made.pairs), "implied-prior").message
    assert "cannot tell" not in find(check(made.pairs, prior=0.2), "implied-prior").message
    for wrong in (0.4, 0.1):
        assert find(check(made.pairs, prior=wrong), "prior-disagrees").severity == "warning"
    other = check(made.pairs, majority="positive").summary.prior
    assert other is not None
    assert other.value == pytest.approx(0.8, abs=0.03)


def test_a_prior_that_disagrees_is_told_beside_the_interval() -> None:
    report = check(simulate(pairs=400, prior=0.2).pairs, prior=0.5)
    prior, (first, *_) = report.summary.prior, find(report, "prior-disagrees").message.split(". ")
    assert prior is not None
    interval = f"{prior.low:.3f} to {prior.high:.3f}"
    assert first.startswith(f"The stated prior 0.5 lies outside {interval}, the 95% interval")


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


def test_annotators_of_another_population_are_noticed() -> None:
    made = simulate("moons", pairs=1000, prior=0.1, annotator_prior=0.5, overlap=0.15)
    assert "prior-disagrees" in codes(check(made.pairs, prior=0.1))


def test_weights_reach_the_prior() -> None:
    made = simulate(pairs=1000, prior=0.2).pairs
    # Judgements of unlike pairs, drawn three times as often and weighted back.
    unlike = made.similarity < 0.5
    rows = np.r_[np.arange(1000), np.repeat(np.flatnonzero(unlike), 2)]
    more = made[rows]
    plain = check(more).summary.prior
    weight = np.where(more.similarity < 0.5, 1 / 3, 1.0)
    even = check(PairTable.trusted(**(more.columns() | {"weight": weight}))).summary.prior
    usual = check(made).summary.prior
    assert plain is not None
    assert even is not None
    assert usual is not None
    assert even.value == pytest.approx(usual.value)
    assert plain.value > usual.value + 0.1


def test_similarities_that_no_independent_pairs_have() -> None:
    rng = np.random.default_rng(0)
    told = PairTable(range(100), range(100, 200), rng.uniform(0, 0.6, 100), None)
    report = check(told, majority="negative")
    assert "too-unlike" in codes(report, "warning")


def test_pairs_that_are_not_in_random_order() -> None:
    made = simulate(pairs=200).pairs
    assert "ordered-pairs" not in codes(check(made))
    sorted_ = PairTable(made.left, made.right, made.similarity, np.abs(made.difference))
    found = find(check(sorted_), "ordered-pairs")
    assert found.severity == "warning"
    assert "The right item is the more positive" in found.message


def test_effective_number_of_judgements_by_hand() -> None:
    # Σw = 3 + 3·1 = 6, Σw² = 9 + 3 = 12, and 36/12 = 3.
    told = table(*((k, k + 9, 0.5, 0.0) for k in range(4)), weight=[3, 1, 1, 1])
    report = check(told)
    assert report.summary.effective_rows == pytest.approx(3)
    assert "4 judgements are worth 3 of equal weight" in find(report, "weights").message


def test_precision_is_what_plan_expects() -> None:
    from pairlearn.planning import expected_half_width

    made = simulate(pairs=500, prior=0.3, overlap=0.01)
    message = find(check(made.pairs), "precision").message
    told = float(message.split("±")[1].split(";")[0])
    # An overlap of 1% is a strength of 2·2.3263.
    wanted = expected_half_width(500, accuracy=0.95, prior=0.3, strength=4.6526)
    assert told == pytest.approx(wanted, rel=0.15)


# ---- the graph of pairs -----------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=14))
def test_components_by_brute_force(edges: list[tuple[int, int]]) -> None:
    groups = [{k} for k in range(12)]
    for one, two in edges:
        joined = next(g for g in groups if one in g) | next(g for g in groups if two in g)
        groups = [g for g in groups if not g & joined] + [joined]
    found = components(np.array(edges, np.int64).reshape(-1, 2), 12)
    assert {frozenset(np.flatnonzero(found == k).tolist()) for k in range(found.max() + 1)} == {
        frozenset(g) for g in groups
    }


def test_a_long_chain_is_one_component() -> None:
    order = np.random.default_rng(0).permutation(20_000)
    assert components(np.stack([order[:-1], order[1:]], 1), 20_000).max() == 0


def test_graph_findings() -> None:
    told = table(("a", "b", 0.9, 0.1), ("b", "c", 0.9, NAN), ("x", "y", 0.9, NAN))
    report = check(told)
    summary = report.summary
    assert (summary.components, summary.largest_component, summary.seen_once) == (2, 3 / 5, 4)
    assert "2 components, the largest of 3 items" in find(report, "recurring-items").message
    found = find(report, "unoriented-component")
    assert found.rows == (3,)
    assert "In 1 of 2 components" in found.message
    assert "independent-pairs" in codes(check(table(("a", "b", 0.9, 0.1))))


# ---- items and arguments ----------------------------------------------------------------------


def test_unknown_and_unjudged_items() -> None:
    told = table((1, 2, 0.5, 0.1), (2, 7, 0.5, 0.1), (9, 7, 0.5, 0.1))
    for items in ([1, 2, 3], ["1", "2", "3"], ItemTable([1, 2, 3], np.zeros((3, 1)))):
        report = check(told, items=items)
        unknown = find(report, "unknown-item")
        assert (unknown.severity, unknown.rows, unknown.ids) == ("error", (2, 3), (7, 9))
        assert find(report, "unjudged-items").count == 1


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"prior": 0.0}, r"prior must lie in \(0, 1\); got 0"),
        ({"majority": "none"}, "majority must be 'positive' or 'negative'; got 'none'"),
        ({"prior": 0.3, "majority": "positive"}, "prior 0.3 makes the negative class the majority"),
    ],
)
def test_wrong_arguments(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(table((1, 2, 0.5, 0.1)), **given_)


def test_an_empty_table() -> None:
    with pytest.raises(ValueError, match="table has no pairs"):
        check(PairTable([], [], [], []))


@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_no_table_breaks_the_checks(data: st.DataObject) -> None:
    """Whatever a table holds, there is a report, and it goes into JSON."""
    n = data.draw(st.integers(1, 40))
    maybe = st.one_of(st.just(NAN), st.floats(-3, 3), st.sampled_from([0.0, 0.5, 1.0]))
    some = lambda values: data.draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    told = PairTable(
        some(st.integers(0, 9)),
        some(st.integers(0, 9)),
        some(maybe),
        some(maybe),
        preference=[x or 1 for x in some(st.sampled_from([-1, 0, 1]))],
        weight=some(st.sampled_from([1e-300, 1.0, 1e300])),
        annotator=some(st.sampled_from(["", "a", "b"])),
        noisy=True,
    )
    report = check(told, prior=data.draw(st.sampled_from([None, 0.2, 0.5])))
    json.dumps(report.to_dict(), allow_nan=False)
    assert len(Columns.of(told)) == n


# ---- the picture ------------------------------------------------------------------------------


def test_plot_plane() -> None:
    pyplot = pytest.importorskip("matplotlib.figure")
    labels = PairLabels([0.5, 0.9, 0.7, NAN], [0.0, 0.5, NAN, -0.5])
    ax = pyplot.Figure().subplots()
    assert plot_plane(labels, ax) is ax
    names = ax.get_legend_handles_labels()[1]
    assert sorted(names) == [
        "difference only (1)",
        "feasible (1)",
        "no posteriors give this (1)",
        "similarity only (1)",
    ]
    corners = {text.get_text() for text in ax.texts}
    assert corners == {"left +, right −", "left −, right +", "same class"}
    noisy = plot_plane(PairLabels([3.0], [-2.0], noisy=True), pyplot.Figure().subplots())
    assert noisy.get_xlim()[0] < -2
    assert noisy.get_ylim()[1] > 3


def test_rows_about_one_item_are_counted_and_other_rows_keep_their_numbers():
    table = PairTable(
        ["a", "b", "c"], ["", "c", "a"], [np.nan, 0.9, 0.9], [np.nan, 0.8, 0.0],
        label=["positive", "", ""],
    )  # fmt: skip
    found = {finding.code: finding for finding in check(table).findings}
    assert found["single-items"].count == 1
    assert found["infeasible"].rows == (2,)
