"""What is said about annotators: once, in the same words everywhere, and nothing untrue."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pairlearn import PairClassifier, PairLabels
from pairlearn.annotators import Crowd
from pairlearn.annotators.manner import Manner
from pairlearn.check import check
from pairlearn.cli import app
from pairlearn.cli.fit_output import warnings_of
from pairlearn.judgements import Judgements
from pairlearn.simulation import simulate
from pairlearn_studio.cli import exchange as annotate_exchange
from studio_client import annotate
from tables import changed, pair_ids, pair_table
from test_check import codes, find

N = 80


def answers_of(how: str, r: Any, rng: np.random.Generator) -> Any:
    """Similarity and difference (n, 2) of a sort of person, for posteriors (n, 2)."""

    def honest(noise: float = 0.2) -> Any:
        z = np.log(r / (1 - r)) + noise * rng.normal(size=r.shape)
        return np.asarray(PairLabels.from_posteriors(*(1 / (1 + np.exp(-z))).T).to_array())

    return {
        "honest": honest,
        "novice": lambda: honest(1.5),
        "random": lambda: np.stack([rng.random(len(r)), rng.uniform(-1, 1, len(r))], 1),
        "other pairs": lambda: rng.permutation(honest()),
        "constant": lambda: np.tile([1.0, 0.0], (len(r), 1)),
        "reversed": lambda: honest() * [1, -1],
    }[how]()


def table_of(people: dict[str, str], seed: int, n: int = N) -> tuple[Judgements, Any]:
    """Everybody judges the same pairs of items, which have three features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * n, 3))
    r = (1 / (1 + np.exp(-3 * x[:, 0]))).reshape(n, 2)
    answers = np.concatenate([answers_of(how, r, rng) for how in people.values()]).round(3)
    ends = np.tile(np.arange(2 * n).reshape(n, 2), (len(people), 1))
    return pair_table(*ends.T, *answers.T, annotator=np.repeat([*people], n)), x


def crowd_of(people: dict[str, str], seed: int, features: bool = False) -> Crowd:
    table, x = table_of(people, seed)
    judged = Judgements.from_pairs(pair_ids(table), table.answers(), table.annotator)
    return Crowd.of(judged, x if features else None)


def write(folder: Path, people: dict[str, str], seed: int) -> None:
    """The files items.csv and pairs.csv."""
    table, x = table_of(people, seed)
    lines = [f"{k},{a:.3f},{b:.3f},{c:.3f}\n" for k, (a, b, c) in enumerate(x)]
    (folder / "items.csv").write_text("id,a,b,c\n" + "".join(lines))
    rows = zip(*pair_ids(table).T, *table.answers().T, np.array(table.annotator), strict=True)
    head = "left,right,similarity,difference,annotator\n"
    judged = "".join(f"{left},{right},{s},{c},{who}\n" for left, right, s, c, who in rows)
    (folder / "pairs.csv").write_text(head + judged)


def test_rows_of_somebody_who_is_named_are_no_sign_of_a_lean() -> None:
    people = {"ann": "honest", "bob": "honest", "cy": "honest", "dan": "random"}
    table, _ = table_of(people, seed=0)
    dan = table.annotator == "dan"
    similarity = np.where(dan, np.maximum(table.similarity, 0.9), table.similarity)
    report = check(changed(table, similarity=similarity), precision=False)
    assert find(report, "outlying-annotator").ids == ("dan",)
    assert "leaning-similarity" not in codes(report)
    nobody = changed(table, similarity=similarity, annotator=None)
    assert "leaning-similarity" in codes(check(nobody, precision=False))


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_imprecise_answers_are_no_contradiction(seed: int, features: bool) -> None:
    people = {"ann": "honest", "bob": "honest", "cy": "novice", "dan": "novice"}
    crowd = crowd_of(people, seed, features)
    assert not crowd.rivals
    assert {name for doubt in crowd.doubts() for name in doubt.names} <= {"cy", "dan"}


def test_a_table_of_several_kinds_lacks_nothing() -> None:
    rows = ["left", "right", "", ""], [np.nan, np.nan, 0.8, 0.4], [np.nan, np.nan, 0.1, np.nan]
    comparison, s, c = (np.array(column) for column in rows)
    ends = np.arange(8).reshape(2, 4)
    whole = check(pair_table(*ends[:, :3], s[:3], c[:3], comparison=comparison[:3]))
    assert not {"missing", "not-measurable"} & {*codes(whole)}
    missing = find(check(pair_table(*ends, s, c, comparison=comparison)), "missing")
    assert missing.rows == (4,) and missing.message.startswith("25% of the rows lack")


@pytest.mark.parametrize(
    ("prior", "words"), [(None, "fit needs the class prior, to know"), (0.3, "Your prior tells")]
)
def test_what_fit_needs_for_a_ranking_is_said(prior: float | None, words: str) -> None:
    judged = pair_table([1, 2], [3, 4], None, None, [1, -1])
    assert words in find(check(judged, prior=prior), "ranking-only").message


def test_rivals_weigh_the_same_and_are_said_to_be_rivals(tmp_path: Path) -> None:
    people = {"ann": "honest", "bob": "honest", "cy": "other pairs"}
    crowd = crowd_of(people, seed=1)
    assert crowd.rivals == (("ann", "bob"), ("cy",))
    assert {*crowd.weights().values()} == {1.0}
    write(tmp_path, people, seed=1)
    project = tmp_path / "project"
    assert annotate("init", project, tmp_path / "items.csv", "--pairs", 5).exit_code == 0
    assert annotate("import", project, tmp_path / "pairs.csv").exit_code == 0
    done = annotate("export", project, tmp_path / "out.csv", "--aggregate", "reliability")
    assert "reliability of cy: 1.00; contradicts ann, bob, and either may be right" in done.stdout
    assert "either side could be right: ann and bob against cy. They count the same" in done.stderr


def test_a_mean_of_doubtful_answers_is_warned_of(tmp_path: Path) -> None:
    people = {"ann": "honest", "bob": "constant", "cy": "honest", "dan": "honest"}
    write(tmp_path, people, seed=1)
    project, out = tmp_path / "project", tmp_path / "out.csv"
    assert annotate("init", project, tmp_path / "items.csv", "--pairs", 5).exit_code == 0
    assert annotate("import", project, tmp_path / "pairs.csv").exit_code == 0
    for rule in ("mean", "median"):
        done = annotate("export", project, out, "--aggregate", rule, "--force")
        assert done.stderr.count("warning") == 1 and "reliability of" not in done.stdout
        assert f"bob: gives one answer to everything. The {rule} counts these" in done.stderr
        assert "--without bob leaves them out" in done.stderr
    for options in (
        ("--aggregate", "reliability"),
        ("--aggregate", "mean", "--without", "bob"),
        (),
    ):
        assert not annotate("export", project, out, *options, "--force").stderr


@pytest.mark.parametrize(
    "people",
    [
        {"ann": "honest", "bob": "other pairs"},  # rivals
        {"ann": "honest", "bob": "honest", "cy": "reversed"},
        {"ann": "honest", "bob": "novice", "cy": "honest"},
    ],
)
def test_a_copy_is_as_reliable_as_its_original(people: dict[str, str]) -> None:
    table, _ = table_of(people, seed=1)
    judged = Judgements.from_pairs(pair_ids(table), table.answers(), table.annotator)
    for original in people:
        copy = replace(judged[table.annotator == original], annotator=np.full(N, "zoe"))
        crowd = Crowd.of(Judgements.concatenate([judged, copy]))
        assert crowd.copies == {"zoe": original}
        assert crowd.weights()["zoe"] == crowd.weights()[original]


@pytest.mark.parametrize("rule", ["mean", "reliability"])
def test_no_rule_counts_a_copy_less(rule: str) -> None:
    crowd = Crowd({name: Manner(name) for name in ("ann", "bob")}, copies={"bob": "ann"})
    (words,) = annotate_exchange._doubts(crowd, rule)
    assert words.endswith(f"The {rule} counts both: --without bob leaves the copies out")


def test_fit_says_of_annotators_what_it_learnt_and_not_what_check_saw() -> None:
    data: Any = SimpleNamespace(
        items=SimpleNamespace(notes=()),
        doubts={"leaning-annotator": "A habit of ann", "infeasible": "20%", "weights": "Weights"},
    )
    request: Any = SimpleNamespace(notes=(), check_command="`check`")
    honest, leaning = Manner("ann", 50), Manner("ann", 50, lean_same=0.2, same_error=0.01)

    def told(manner: Manner) -> list[str]:
        return warnings_of(request, data, Crowd({"ann": manner}, {}), (), None)

    assert told(replace(honest, random=0.0)) == ["20%", "Weights; `check` says what to do"]
    first, second = told(replace(leaning, random=0.0))
    assert first == "Weights; `check` says what to do"
    assert second.startswith("leaning-annotator: a habit shifts the answers of ann, which is taken")


def test_several_answers_to_a_pair_are_not_as_many_pairs() -> None:
    table, _ = table_of({"ann": "honest", "bob": "honest"}, seed=0)
    words = f"{2 * N} independent pairs like these would tell an accuracy of"
    message = find(check(table), "precision").message
    assert words in message and f" The {N} here, with several answers to some" in message
    assert "here" not in find(check(table[:N]), "precision").message


def test_fit_counts_the_answers_that_it_measures_with(tmp_path: Path) -> None:
    write(tmp_path, {"ann": "honest", "bob": "constant"}, seed=0)
    files = [str(tmp_path / name) for name in ("items.csv", "pairs.csv")]
    options = ["--out", str(tmp_path / "model"), "--model", "linear", "--epochs", "20", "--json"]
    accuracy = json.loads(CliRunner().invoke(app, ["fit", *files, *options]).stdout)["accuracy"]
    assert accuracy["held_out"] == accuracy["pairs"] > 10


def test_people_who_answer_alike_are_described_once() -> None:
    people = {"ann": "honest", "bob": "constant", "cy": "constant", "dan": "random"}
    (doubt,) = crowd_of(people, seed=0).doubts()
    assert doubt.names == ("bob", "cy", "dan")
    assert doubt.words.startswith("bob and cy: gives one answer to everything; dan: ")


def test_copies_keep_the_order_of_names() -> None:
    table, x = table_of({"mia": "honest", "zoe": "honest"}, seed=0)
    judged, names = table.answers(), np.array(table.annotator)
    ends, labels = np.concatenate([pair_ids(table), pair_ids(table)[:N]]), [*judged, *judged[:N]]
    who = [*names.tolist(), *["bob"] * N]
    model = PairClassifier(model="linear", epochs=5, preprocessor=x, random_state=0)
    with pytest.warns(UserWarning, match="has the same answers as"):
        model.fit(ends, PairLabels.from_array(np.array(labels)), annotator=who)
    assert [manner.name for manner in model.annotators_] == ["bob", "mia", "zoe"]
    crowd = Crowd.of(Judgements.from_pairs(ends, np.array(labels), who))
    assert [*crowd.manners] == ["bob", "mia", "zoe"]


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_tenths_and_overconfidence_are_no_lean(seed: int) -> None:
    """What noise would put below the scale is 0, and who is too sure is so on both sides."""
    rng, made = np.random.default_rng(seed), simulate(pairs=300, overlap=0.1, seed=seed).pairs
    noise = 0.04 * rng.normal(size=(2, 300))
    s, c = (made.similarity + noise[0]).clip(0, 1), (made.difference + noise[1]).clip(-1, 1)
    sure = made.similarity**2 / (made.similarity**2 + (1 - made.similarity) ** 2)
    for answers in ((s.round(1), c.round(1)), (sure, made.difference)):
        report = check(pair_table(made.left, made.right, *answers), precision=False)
        assert "infeasible" in codes(report) and "leaning-similarity" not in codes(report)
    less = (made.similarity - 0.1).clip(0, 1)
    report = check(pair_table(made.left, made.right, less, made.difference), precision=False)
    assert "says “different” too often" in find(report, "leaning-similarity").message
