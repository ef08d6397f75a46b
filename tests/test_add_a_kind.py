"""Every kind, and the one that docs/extend/add_a_kind.md adds, through every step of a user."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from model_folders import answer, run
from pages import read_page
from pairlearn import Judgements, PairClassifier
from pairlearn.check import check
from pairlearn.io import read_items, read_pairs
from pairlearn.judgements import kinds
from pairlearn.plugins import load_plugin
from pairlearn.simulation import simulate
from tables import pair_ids, pair_table

SOFT = ("both", "similarity", "difference")
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extend" / "add_a_kind.md"


(CODE,) = [block.text for block in read_page(PAGE) if block.file == "either.py"]


@pytest.fixture(autouse=True)
def added(tmp_path: Path, forgetful: None) -> None:
    """The registry with the kind of the page."""
    (tmp_path / "either.py").write_text(CODE)
    load_plugin(tmp_path / "either.py")


def others(share: float) -> dict[str, float]:
    """So much of every kind but the soft judgements, by name."""
    return {kind.name: share for kind in kinds.KINDS if kind.name not in SOFT}


def test_a_kind_is_short() -> None:
    assert len(CODE.splitlines()) < 60
    for kind in kinds.KINDS:
        if kind.name not in (*SOFT, "either"):
            assert len(inspect.getsource(type(kind)).splitlines()) < 60, kind


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"name": None}, "name must be a word; got None"),
    ({"columns": kinds.Column("fresh", 0, 1)}, "must be a tuple of Column; got Column"),
    ({"columns": (kinds.Column("left", 0, 1),)}, "cannot be called 'left'"),
    ({"columns": (kinds.Column("a", 0, 1), kinds.Column("b", 0, 1))}, r"they have \[0, 0\]"),
    ({"columns": (kinds.Column("similarity", -5, 5),)}, "'similarity' differs from that of"),
    ({"columns": kinds.kind("same").columns}, "kind 'same' has the same name or columns"),
    (
        {"columns": (*kinds.kind("label").columns, kinds.Column("b", 0, 1, place=1))},
        "also has column 'label'",
    ),
    ({"single": True, "columns": kinds.kind("triplet").columns}, "single takes one column"),
]


@pytest.mark.parametrize(("attributes", "message"), MISTAKES, ids=lambda value: str(value)[:30])
def test_mistakes_in_a_kind_are_named(attributes: dict[str, Any], message: str) -> None:
    right = {"name": "fresh", "columns": (kinds.Column("fresh", 0, 1),)}
    before = list(kinds.KINDS)
    with pytest.raises(ValueError, match=f"Fresh: .*{message}"):
        kinds.register_kind(type("Fresh", (kinds.Kind,), right | attributes)())
    assert before == kinds.KINDS


def test_what_is_no_kind_is_no_column_either() -> None:
    with pytest.raises(TypeError, match="an instance of a subclass of Kind; got <class"):
        kinds.register_kind(Floor)  # type: ignore[arg-type]
    table = pair_table(["a"], ["b"], [0.5], weight=[2.0], annotator=["ann"])
    assert {*table.columns()} - {*kinds.columns()} == kinds.RESERVED - {"about", "q"}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"words": {"None": 0, "some": 1}}, "'None' is read as an empty cell"),
        ({"words": {" no": 0}}, "' no' is read as .* or without its spaces"),
        ({"words": {"two": 2}}, r"'two' is 2, outside \[0, 1\]"),
    ],
)
def test_mistakes_in_a_column_are_named(column: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"column 'fresh': .*{message}"):
        kinds.Column("fresh", 0, 1, **column)


def test_from_simulation_through_files_to_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    assert run("simulate", folder, "--pairs", 60, "--also", "either=0.5").exit_code == 0
    assert "either" in (folder / "pairs.csv").read_text().splitlines()[0]
    assert run("check", folder / "pairs.csv", "--items", folder / "items.csv").exit_code == 0
    model, options = tmp_path / "model", ("--model", "linear", "--epochs", 40)
    answers = answer("fit", folder / "items.csv", folder / "pairs.csv", "--out", model, *options)
    assert answers["judgements"] == len(read_pairs(folder / "pairs.csv")) > 60
    fresh = tmp_path / "fresh"
    assert run("simulate", fresh, "--pairs", 80, "--seed", 5).exit_code == 0
    answers = answer("evaluate", model, fresh / "items.csv", fresh / "pairs.csv")
    assert answers["accuracy"]["value"] > 0.85


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    simulated = simulate(pairs=120, also=others(0.3))
    simulated.write(tmp_path / "made", "parquet")
    return tmp_path / "made" / "items.parquet", tmp_path / "made" / "pairs.parquet"


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "ITEMS", "PAIRS", "--out", "OUT", "--model", "linear", "--epochs", 5),
        ("compare", "ITEMS", "PAIRS", "--models", "linear", "--folds", 2),
        ("plan", "--within", 0.1, "--accuracy", 0.9, "--pilot", "PAIRS"),
        ("split", "PAIRS", "OUT/training.csv", "OUT/held_out.csv"),
        ("evaluate", "MODEL", "ITEMS", "PAIRS"),
        ("report", "MODEL", "ITEMS", "PAIRS", "OUT/report.html"),
    ],
    ids=lambda words: f"{words[0]} {words[1]}",
)  # fmt: skip
def test_every_command_takes_it(
    words: tuple[Any, ...], files: tuple[Path, Path], tmp_path: Path
) -> None:
    names = {"ITEMS": str(files[0]), "PAIRS": str(files[1]), "OUT": str(tmp_path / "out")}
    if "MODEL" in words:
        other, names["MODEL"] = simulate(pairs=60, seed=7), str(tmp_path / "model")
        model = PairClassifier(model="linear", epochs=5, preprocessor=other.items)
        model.fit(pair_ids(other.pairs), other.pairs).save(names["MODEL"])
    for name, path in names.items():
        words = tuple(str(word).replace(name, path) for word in words)
    result = answer(*words)
    if words[0] == "split":
        parts = [read_pairs(result[part]["path"]) for part in ("training", "held_out")]
        assert sum(map(len, parts)) + result["left_out"] == len(read_pairs(files[1]))
        assert result["left_out"] and "a smaller --share" in run(*words, "--force").stdout
        for part in parts:  # a triplet is in one of them whole, or in none
            part.located(read_items(files[0]).ids)
        seen = [{*part.left, *part.right} - {""} for part in parts]
        assert not seen[0] & seen[1]
        assert all(part.single.any() for part in parts)


@pytest.mark.parametrize("model", ["linear", LogisticRegression()], ids=str)
def test_statements_about_items_alone_teach_a_classifier(model: Any) -> None:
    simulated = simulate(pairs=150, seed=2, also={"confidence": 0.9, "unlabelled": 0.5})
    judgements = simulated.pairs.located(simulated.items.ids)
    alone = judgements[judgements.of("confidence", "unlabelled")]
    mixed = Judgements.concatenate([judgements[judgements.of("both")][:20], alone])
    for table in (mixed, alone) if isinstance(model, str) else (mixed,):
        classifier = PairClassifier(model=model, random_state=0, epochs=60)
        classifier.fit(simulated.items.features, table)
        right = (classifier.predict(simulated.items.features) > 0) == simulated.positive
        assert right.mean() > 0.9


class Floor(kinds.Kind):
    """P(y = +1 | x) is at least u."""

    name, columns, single = "floor", (kinds.Column("at_least", 0, 1),), True
    settles = frozenset({"side"})

    def completes(self, risk: Any) -> bool:
        return True

    def complete(self, p: Any, q: Any, u: Any, v: Any) -> tuple[Any, Any]:
        return (p + u + abs(p - u)) / 2, (q + v + abs(q - v)) / 2


@pytest.mark.parametrize("model", ["linear", LogisticRegression()], ids=str)
def test_a_bound_on_one_item_is_no_class_unless_the_kind_says_so(model: Any) -> None:
    """That every item has at least 0% changes nothing, also for scikit-learn classifiers."""
    kinds.register_kind(Floor())
    simulated = simulate(pairs=60, items=400, seed=1)
    judged = simulated.pairs.located(simulated.items.ids)
    vacuous = Judgements.about_items("floor", np.arange(400), np.zeros(400))
    assert not vacuous.known.any()
    classifier = PairClassifier(model=model, random_state=0, epochs=30, unjudged="ignore")
    classifier.fit(simulated.items.features, Judgements.concatenate([judged, vacuous]))
    right = (classifier.predict(simulated.items.features) > 0) == simulated.positive
    assert right.mean() > 0.93


def beside(known: str, *columns: kinds.Column) -> None:
    """Register a kind that means what a known one does, with other columns."""
    parent = type(kinds.kind(known))
    kinds.register_kind(type("Other", (parent,), {"name": "other", "columns": columns})())


def test_columns_may_be_like_those_of_other_kinds(tmp_path: Path) -> None:
    beside("comparison", kinds.Column("positives", -2, 2))
    (tmp_path / "pairs.csv").write_text("left,right,similarity,positive\na,b,0.5,\na,,,yes\n")
    column = read_pairs(tmp_path / "pairs.csv").columns()["positive"]
    assert np.nan_to_num(column).tolist() == [0, 1]


def test_groups_and_unjudged_items_are_of_the_first_kind_that_fits() -> None:
    beside("group", kinds.Column("part", 0, 1), kinds.Column("batch", 0, np.inf, place=1))
    assert Judgements.in_groups(["a", "b"], {"a": 0.3, "b": 0.9}).kinds() == ("group",)
    beside("unlabelled", kinds.Column("seen", 1, 1, {"yes": 1}))
    assert Judgements.silent([0, 1]).kinds() == ("unlabelled",)


def test_check_reads_a_kind_that_means_similarities_by_its_column() -> None:
    answers = np.random.default_rng(0).choice(["yes", "no"], 100, p=[0.6, 0.4])
    left = np.arange(0, 200, 2)
    beside("same", kinds.Column("twins", 0, 1, {"yes": 1, "no": 0}))
    found = [
        [finding.code for finding in check(table, majority="positive").findings]
        for table in (pair_table(left, left + 1, None, None, **{name: answers})
                      for name in ("same", "twins"))
    ]  # fmt: skip
    assert found[0] == found[1]


def test_only_what_means_similarities_or_differences_is_measured_with() -> None:
    class Grade(type(kinds.kind("label"))):  # type: ignore[misc]
        name, columns, means = "grade", (kinds.Column("grade", 0, 1),), ("label",)

    kinds.register_kind(Grade())
    table = pair_table(["a", "b"], ["b", ""], [0.5, np.nan], None, grade=[np.nan, 1])
    assert table.soft.tolist() == [True, False]


def test_it_survives_a_round_trip(tmp_path: Path) -> None:
    simulated = simulate(pairs=30, also=others(0.5))
    simulated.write(tmp_path, "parquet")
    again = read_pairs(tmp_path / "pairs.parquet")
    assert again == simulated.pairs
    counts = again.located(read_items(tmp_path / "items.parquet").ids).counts()
    assert counts.keys() == {"both", *others(0.5)}
    assert (counts["both"], counts["confidence"]) == (30, 15)
