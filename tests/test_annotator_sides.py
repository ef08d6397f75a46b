"""People who have left and right exchanged: recognised, put right, or said to be in the open."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_folders import answer, run
from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators.measurement import fair
from pairlearn.annotators.sides import against_classes, sides_of
from pairlearn.check import check
from pairlearn.estimators.cross_fitting import SidesWarning, decide_sides, learn_annotators
from pairlearn.estimators.measuring import FitCheckpoints, Measured, fit_and_measure
from pairlearn.estimators.table import Table
from pairlearn.judgements import Judgements
from pairlearn.tables import ItemTable, PairTable, read_pairs, write_items, write_pairs
from test_check import codes, find

NAMES = np.array(["ann", "bob", "cy", "dan", "eve"])


def crowd(
    exchanged: str,
    people: int,
    pairs: int,
    seed: int = 0,
    scale: str = "soft",
    shared: bool = False,
) -> tuple[Any, Any, Judgements]:
    """Features, classes and answers; everybody judges their own pairs, unless they are shared."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, 3))
    r = 1 / (1 + np.exp(-4 * x[:, 0] - 2 * x[:, 1] + rng.normal(size=2 * pairs)))
    ends = np.arange(2 * pairs).reshape(-1, 2)
    who = NAMES[np.arange(pairs) % people]
    if shared:
        ends, who = np.tile(ends, (people, 1)), np.repeat(NAMES[:people], pairs)
    given = r[ends] + 0.03 * rng.normal(size=ends.shape)
    s, c = PairLabels.from_posteriors(*given.clip(0, 1).T).to_array().T
    if scale == "yes or no":
        s, c = (np.diff(given > 0.5, axis=1)[:, 0] == 0) * 1.0, np.diff(1.0 * (given > 0.5))[:, 0]
    elif scale == "five levels":
        s, c = np.round(4 * s) / 4, np.round(2 * c) / 2
    c = np.where(np.isin(who, exchanged.split()), -c, c)
    columns = {"similarity": s, "difference": c}
    return x, r > 0.5, Judgements.from_columns(ends, columns, annotator=who)


@pytest.mark.parametrize("scale", ["soft", "five levels", "yes or no"])
@pytest.mark.parametrize(
    ("exchanged", "people", "first", "others", "decided"),
    [
        ("", 2, "", "", True),
        ("", 5, "", "", True),
        ("ann", 2, "ann", "bob", False),
        ("bob", 2, "ann", "bob", False),
        ("cy", 3, "ann bob", "cy", True),
        ("ann", 4, "bob cy dan", "ann", True),
        ("bob cy", 4, "ann dan", "bob cy", False),
        ("ann eve", 5, "bob cy dan", "ann eve", True),
    ],
)
def test_sides_of_people_who_judge_their_own_pairs(
    scale: str, exchanged: str, people: int, first: str, others: str, decided: bool
) -> None:
    for seed in range(3):
        x, _, judged = crowd(exchanged, people, 50 * people, seed, scale)
        sides = sides_of(judged, x)
        assert (*sides.first,) == (*first.split(),)
        assert (*sides.others,) == (*others.split(),)
        assert sides.decided is decided
        assert not sides_of(judged).others  # which takes the features


def test_known_classes_decide_between_two() -> None:
    for seed in range(5):
        x, positive, judged = crowd("ann", 2, 80, seed)
        x, known = np.concatenate([x, x[:40] + 0.01]), np.arange(160, 200)
        classes = Judgements.about_items("confidence", known, positive[:40] * 1.0)
        both = Judgements.concatenate([judged, classes])
        assert sides_of(both, x).exchanged == ("ann",)
        wrong = Judgements.about_items("confidence", known, 1.0 - positive[:40])
        assert sides_of(Judgements.concatenate([judged, wrong]), x).exchanged == ("bob",)


def with_classes(judged: Judgements, positive: Any, count: int) -> Judgements:
    known = Judgements.about_items("label", np.arange(count), positive[:count])
    return Judgements.concatenate([judged, known])


def test_twenty_known_classes_decide_against_most_people() -> None:
    for seed in range(5):
        x, positive, judged = crowd("bob cy", 3, 90, seed)
        sides = sides_of(with_classes(judged, positive, 20), x)
        assert sides.exchanged == ("bob", "cy") and sides.by_classes
        sides = sides_of(with_classes(judged, ~positive, 20), x)
        assert sides.exchanged == ("ann",) and sides.by_classes


def test_few_known_classes_against_most_people_leave_it_open() -> None:
    for seed in range(5):
        x, positive, judged = crowd("bob cy", 3, 90, seed)
        sides = sides_of(with_classes(judged, positive, 6), x)
        assert sides.exchanged in ((), ("bob", "cy"))
        one = Judgements.about_items("label", np.arange(30), np.arange(30) == 0)
        assert not sides_of(Judgements.concatenate([judged, one]), x).by_classes


def test_known_classes_do_not_turn_people_who_agree() -> None:
    for seed in range(5):
        x, positive, judged = crowd("", 3, 90, seed)
        for classes in (positive, ~positive):
            assert not sides_of(with_classes(judged, classes, 60), x).others


def test_guesses_leans_and_the_order_of_a_pair_are_no_exchange() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        x, _, judged = crowd("", 3, 120, seed)
        judged.values[judged.annotator == "ann", 1] += 0.3
        judged.values[judged.annotator == "bob", 1] -= 0.3
        judged.values[judged.annotator == "cy", 1] = rng.uniform(-1, 1, 40)
        shown = rng.random(len(judged)) < 0.5
        ends = np.where(shown[:, None], judged.ends[:, ::-1], judged.ends)
        values = judged.values * np.where(shown[:, None], [1, -1], 1)
        other = Judgements(ends, judged.kind, values, None, judged.annotator)
        assert not sides_of(judged, x).others and not sides_of(other, x).others
        assert not sides_of(judged, rng.normal(size=(240, 3))).others


def test_twelve_answers_each_are_enough() -> None:
    found = [sides_of(judged, x) for x, _, judged in (crowd("ann", 4, 48, k) for k in range(20))]
    assert sum(sides.exchanged == ("ann",) for sides in found) >= 12
    assert not any({"bob", "cy", "dan"}.intersection(sides.exchanged) for sides in found)


def test_somebody_who_guesses_does_not_decide() -> None:
    found = 0
    for seed in range(60):
        x, _, judged = crowd("ann", 3, 90, seed)
        judged.values[judged.annotator == "cy", 1] = np.random.default_rng(seed).uniform(-1, 1, 30)
        sides = sides_of(judged, x)
        found += {"ann", "bob"} <= {*sides.contrary}
        assert not sides.exchanged
    assert found >= 55


def test_other_pairs_of_the_same_items_show_sides_without_features() -> None:
    rng = np.random.default_rng(0)
    r = rng.beta(0.5, 0.5, 30)
    left = rng.integers(0, 30, 160)
    ends = np.stack([left, (left + rng.integers(1, 30, 160)) % 30], 1)
    c = np.diff(r[ends])[:, 0] * np.repeat([1, 1, -1, 1], 40)
    judged = Judgements.from_columns(ends, {"difference": c}, annotator=np.repeat(NAMES[:4], 40))
    assert sides_of(judged).exchanged == ("cy",)


@pytest.mark.parametrize("shared", [False, True])
def test_fit_puts_the_sides_of_a_minority_right(shared: bool) -> None:
    x, positive, judged = crowd("cy", 3, 90, shared=shared)
    model = PairClassifier(model="linear", random_state=0)
    with pytest.warns(SidesWarning, match="of cy have left and right exchanged, compared to the"):
        model.fit(x, judged)
    assert np.mean((model.predict(x) > 0) == positive) > 0.9
    assert [m.words() for m in model.annotators_][2] == "has left and right exchanged"
    assert [m.exchanged for m in model.annotators_] == [False, False, True]
    x, _, new = crowd("cy", 3, 90, seed=1, shared=shared)  # their answers measure as well
    assert model.estimate_accuracy(x, new[new.annotator == "cy"]).value > 0.75


@pytest.mark.parametrize("shared", [False, True])
def test_of_two_people_it_stays_open_who_exchanges_sides(shared: bool) -> None:
    x, positive, judged = crowd("ann", 2, 100, shared=shared)
    model = PairClassifier(model="linear", random_state=0)
    with pytest.warns(
        SidesWarning, match=r"ann run against those of bob: one side .* believes ann"
    ):
        model.fit(x, judged)
    assert np.mean((model.predict(x) > 0) == positive) < 0.1
    assert [m.words() for m in model.annotators_] == ["runs against bob", "runs against ann"]
    table = PairTable(*judged.ends.T, judged.u, judged.v, annotator=judged.annotator)
    report = check(table, items=ItemTable(np.arange(200), x), precision=False)
    assert find(report, "contrary-annotators").ids == ("ann", "bob")
    assert not {"outlying-annotator", "rival-annotators"}.intersection(codes(report, "warning"))


def test_classes_that_fit_is_given_decide_between_two() -> None:
    x, positive, judged = crowd("ann", 2, 100)
    model = PairClassifier(model="linear", random_state=0)
    by = "of ann have left and right exchanged, compared to the known classes:"
    with pytest.warns(SidesWarning, match=by) as caught:
        model.fit(x, judged, labelled=(x[:40], positive[:40].astype(int)))
    assert len(caught) == 1  # classes and differences, put right, agree
    assert np.mean((model.predict(x) == 1) == positive) > 0.9
    assert [m.exchanged for m in model.annotators_] == [True, False]


def test_a_part_of_a_table_keeps_the_decision_of_the_whole() -> None:
    x, positive, judged = crowd("bob cy", 3, 90)
    model = PairClassifier(model="linear", random_state=0)
    whole = decide_sides(model, Table.of(x, with_classes(judged, positive, 20), seed=0))
    assert whole.sides is not None and whole.sides.exchanged == ("bob", "cy")
    rows = np.asarray(whole.judged.annotator) != "cy"
    with pytest.warns(SidesWarning, match="of bob and cy have"):
        _, manners = learn_annotators(model, replace(whole, judged=whole.judged[rows], known=None))
    # Answers of cy may measure the model, although it has learnt from none.
    assert {m.name: m.exchanged for m in manners} == {"ann": False, "bob": True, "cy": True}
    ideal = PairClassifier(annotators="ideal")
    assert decide_sides(ideal, replace(whole, sides=None)).sides is None


def test_a_copy_has_the_sides_of_its_original() -> None:
    x, _, judged = crowd("cy", 3, 90)
    copy = judged[judged.annotator == "cy"]
    copy = replace(copy, annotator=np.full(len(copy), "dan"))
    table = Table.of(x, Judgements.concatenate([judged, copy]), seed=0)
    sides = decide_sides(PairClassifier(), table).sides
    assert sides is not None and sides.exchanged == ("cy", "dan")


def test_what_is_measured_has_the_sides_of_the_model(tmp_path: Path) -> None:
    # Without the held-out items too few classes are known to decide against bob and cy.
    x, positive, judged = crowd("bob cy", 3, 90, seed=6)
    known = np.concatenate([np.flatnonzero(positive)[:4], np.flatnonzero(~positive)[:4]])
    classes = Judgements.about_items("label", known, positive[known])
    model = PairClassifier(model="linear", epochs=20, random_state=0)
    with pytest.warns(SidesWarning, match="of bob and cy have"):
        measured = fit_and_measure(
            model, Table.of(x, judged, classes, seed=0), FitCheckpoints(tmp_path / "model", 60)
        )
    assert isinstance(measured, Measured)
    band, right = measured.accuracy, np.mean((model.predict(x) > 0) == positive)
    assert band.low <= right <= band.high


def test_answers_of_a_constant_person_alone_measure_nothing() -> None:
    x, _, judged = crowd("cy", 3, 90)
    with pytest.warns(SidesWarning):
        model = PairClassifier(model="linear", random_state=0, epochs=5).fit(x, judged)
    x, _, new = crowd("", 2, 60, seed=1)
    new.values[:] = 0.8, 0.1
    with pytest.raises(ValueError, match="no answer is left to measure with: everybody gives"):
        model.estimate_accuracy(x, replace(new, annotator=np.full(len(new), "eve")))


def test_preferences_alone_are_put_right() -> None:
    x, positive, judged = crowd("cy", 3, 120)
    preference = np.where(judged.v > 0, 1.0, -1.0)
    rows = Judgements.from_columns(
        judged.ends, {"preference": preference}, annotator=judged.annotator
    )
    with pytest.warns(SidesWarning, match="of cy have left and right exchanged"):
        model = PairClassifier(model="linear", prior=0.5, random_state=0).fit(x, rows)
    assert np.corrcoef(model.decision_function(x), positive)[0, 1] > 0.7


def test_check_with_known_classes_says_who_exchanges_sides(tmp_path: Path) -> None:
    x, positive, judged = crowd("bob cy", 3, 90)
    columns = {"similarity": judged.u, "difference": judged.v, "annotator": judged.annotator}
    ids = np.array([f"i{k}" for k in range(184)])
    files = tmp_path / "pairs.csv", "--items", tmp_path / "items.csv"
    write_pairs(PairTable(*ids[judged.ends].T, **columns), files[0])
    write_items(ItemTable(ids, np.concatenate([x, x[:4]])), files[2])  # the last are in no pair
    known, classes = tmp_path / "known.csv", [*positive[4:24], *positive[:4]]
    of = [*ids[4:24], *ids[180:]]
    known.write_text(
        "id,class\n" + "".join(f"{i},{int(c)}\n" for i, c in zip(of, classes, strict=True))
    )

    def named(*more: object) -> Any:
        findings = answer("check", *files, *more)["findings"]
        return next(f for f in findings if f["code"] == "reversed-annotator")

    finding = named()
    assert finding["ids"] == ["ann"] and "those of most others" in finding["message"]
    finding = named("--labelled", known)
    assert finding["ids"] == ["bob", "cy"] and "run against the known classes" in finding["message"]
    result = run("check", files[0], "--labelled", known)
    assert result.exit_code == 2 and "--items" in result.stderr
    options = ("--labelled", known, "--annotators", "ideal", "--model", "linear", "--epochs", 5)
    fit = answer("fit", *files[::-2], "--out", tmp_path / "model", "--holdout", 0, *options)
    assert fit["labelled"] == fit["statements"]["label"] == 24
    (text,) = (text for text in fit["warnings"] if "reversed-annotator" in text)
    assert "of bob and cy" in text and f"--labelled {known}" in text


def test_everybody_against_the_known_classes(tmp_path: Path) -> None:
    everybody = " ".join(NAMES)
    x, positive, judged = crowd(everybody, 3, 150)
    files = tmp_path / "pairs.csv", "--items", tmp_path / "items.csv"
    columns = {"similarity": judged.u, "difference": judged.v, "annotator": judged.annotator}
    write_pairs(PairTable(*judged.ends.T, **columns), files[0])
    write_items(ItemTable(np.arange(300), x), files[2])
    for name, classes in (("known", positive), ("opposite", ~positive)):
        lines = [f"{k},{int(classes[k])}\n" for k in range(0, 300, 10)]
        (tmp_path / f"{name}.csv").write_text("id,class\n" + "".join(lines))

    def found(name: str) -> list[str]:
        report = answer("check", *files, "--labelled", tmp_path / f"{name}.csv")
        return [f["message"] for f in report["findings"] if f["code"] == "contradicted-classes"]

    (text,) = found("known")
    assert "contradict the differences or preferences of everybody" in text
    assert not found("opposite")
    options = ("--out", tmp_path / "model", "--model", "linear", "--epochs", 20)
    known = tmp_path / "known.csv"
    fit = answer("fit", *files[::-2], *options, "--labelled", known)
    (text,) = fit["warnings"]  # not that of check, too
    assert text.startswith("the known classes contradict the differences")
    assert fit["accuracy"] is None
    low, high, least, most = map(float, re.findall(r"0\.\d{3}", fit["not_measured"]))
    assert low < 0.9 < high and least == pytest.approx(1 - high) and most == pytest.approx(1 - low)
    # Nor do such classes tell how sure the annotators are.
    assert PairClassifier.load(tmp_path / "model").confidence_ is None
    x, _, judged = crowd(everybody, 3, 100, seed=1)
    new = tmp_path / "new-items.csv", tmp_path / "new.csv"
    columns = {"similarity": judged.u, "difference": judged.v}
    write_items(ItemTable(np.arange(300, 500), x), new[0])
    write_pairs(PairTable(*(judged.ends.T + 300), **columns), new[1])
    assert run("evaluate", tmp_path / "model", *new, "--at-least", 0.5).exit_code == 1


def test_classes_on_a_ring_against_everybody() -> None:
    rng = np.random.default_rng(0)
    x, ends = rng.normal(size=(300, 2)), np.arange(300).reshape(-1, 2)
    far = np.square(x).sum(1)  # no linear score ranks the items by it
    judged = Judgements.from_columns(ends, {"preference": np.sign(np.diff(far[ends]))[:, 0]})
    for sign, wrong in ((1, False), (-1, True)):
        classes = sign * (far[:30] - 1.4) > 0
        known = Judgements.about_items("label", np.arange(30), classes)
        share = against_classes(Judgements.concatenate([judged, known]), x)
        assert (share is not None) is wrong


def test_sides_are_put_right_before_measuring() -> None:
    x, _, judged = crowd("bob", 2, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PairClassifier(model="linear", random_state=0, epochs=5).fit(x, judged)
    measured = fair(model.annotators_, judged)
    turned = measured.ends[:, 0] > measured.ends[:, 1]
    assert (turned == (np.asarray(measured.annotator) == "bob")).all()


def test_where_sides_are_open_no_accuracy_is_printed(tmp_path: Path) -> None:
    for seed, name in enumerate(("fit", "new")):
        x, _, judged = crowd("bob", 2, 100, seed)
        ids = np.array([f"{name}{k}" for k in range(len(x))])
        columns = {"similarity": judged.u, "difference": judged.v, "annotator": judged.annotator}
        write_items(ItemTable(ids, x), tmp_path / f"{name}-items.csv")
        write_pairs(PairTable(*ids[judged.ends].T, **columns), tmp_path / f"{name}.csv")
    model = tmp_path / "model"
    files = tmp_path / "fit-items.csv", tmp_path / "fit.csv"
    result = answer("fit", *files, "--out", model, "--model", "linear", "--epochs", 20)
    assert result["accuracy"] is None
    assert "ann run against those of bob, and nothing tells which" in result["not_measured"]
    (warning,) = (text for text in result["warnings"] if "ann" in text)
    assert "one side has left and right exchanged" in warning
    files = tmp_path / "new-items.csv", tmp_path / "new.csv"
    table = read_pairs(files[1])
    alone = tmp_path / "bob.csv"
    write_pairs(table[np.flatnonzero(table.annotator == "bob")], alone)
    for pairs in (files[1], alone):
        doubts = answer("evaluate", model, files[0], pairs)["warnings"]
        assert any("holds if ann answered as asked, and is otherwise" in d for d in doubts)
        assert run("evaluate", model, files[0], pairs, "--at-least", 0.5).exit_code == 1
