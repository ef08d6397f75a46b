"""Answers on other scales, and comparisons given as differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from model_folders import plain, run
from pairlearn import PairLabels
from pairlearn.check import check
from pairlearn.estimators import PairClassifier
from pairlearn.io import ItemTable, read_pairs, write_items, write_pairs
from pairlearn.judgements.scales import Scale
from pairlearn.simulation import simulate
from tables import changed, pair_table

SCALES = {
    "similarity": [(1, 5), (0, 10), (1, 7), (0, 100), (-2, 2)],
    "difference": [(-2, 2), (-3, 3), (1, 5), (-100, 100), (-10, 10)],
}


def made(seed: int = 0, pairs: int = 200, slope: float = 2.5) -> tuple[Any, Any, Any]:
    """Features, posteriors, and pairs of distinct items."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * pairs, 4))
    r = 1 / (1 + np.exp(-slope * (x[:, 0] - 0.3)))
    return x, r, np.arange(2 * pairs).reshape(pairs, 2)


def judged() -> tuple[Any, PairLabels]:
    """Pairs, and judgements with the true posteriors."""
    _, r, ends = made()
    return ends, PairLabels.from_posteriors(*r[ends].T)


def written(folder: Path, s: Any, c: Any, seed: int = 0) -> Path:
    x, _, ends = made(seed, len(s if s is not None else c))
    write_items(ItemTable(None, x), folder / "items.csv")
    write_pairs(pair_table(*ends.T, s, c, noisy=True), folder / "pairs.csv")
    return folder / "pairs.csv"


@pytest.mark.parametrize(
    ("name", "scale"), [(name, scale) for name, scales in SCALES.items() for scale in scales]
)
@pytest.mark.parametrize("whole", [True, False])
def test_scales_are_recognised_and_mapped(
    name: str, scale: Any, whole: bool, tmp_path: Path
) -> None:
    labels, (low, high), least = judged()[1], scale, 0 if name == "similarity" else -1
    answers = {"similarity": labels.similarity, "difference": labels.difference}
    exact = low + (answers[name] - least) / (1 - least) * (high - low)
    rescaled = np.round(exact) if whole else exact
    path = written(tmp_path, *(answers | {name: rescaled}).values())
    for command in (("check", path), ("fit", tmp_path / "items.csv", path, "--noisy",
                                      "--out", tmp_path / "m")):  # fmt: skip
        result = run(*command)
        assert result.exit_code in (1, 2) and f"{name}-scale" in plain(result.output), command
    mapped = run("check", path, f"--{name}-scale={low},{high}", "--json")
    codes = {finding["code"] for finding in json.loads(mapped.stdout)["findings"]}
    assert not {f"{name}-scale", f"{name}-range"} & codes
    table = read_pairs(path, noisy=True, **{f"{name}_scale": Scale(low, high)})
    assert np.abs(getattr(table, name) - answers[name]).max() <= (0.51 / (high - low)) * (1 - least)


def test_errors_of_scales(tmp_path: Path) -> None:
    numbers = np.array([1.0, 6, 3, 2])
    path = written(tmp_path, numbers, numbers)
    for text, message in (
        ("1,5", "row 2: similarity is 6, outside the scale 1,5"),
        ("5,5", "a scale is its lowest and highest answer, as in 1,5; got '5,5'"),
        ("five", "got 'five'"),
    ):
        result = run("check", path, "--similarity-scale", text)
        assert result.exit_code == 2 and message in plain(result.output)
    swapped = run("check", path, "--difference-scale=1,-1")  # it would exchange the classes
    assert swapped.exit_code == 2 and "would exchange the classes" in plain(swapped.output)


# ---- comparisons ------------------------------------------------------------------------------


def comparisons(folder: Path, n: int = 400) -> tuple[Path, float]:
    """Comparisons as -1, 0 and 1, and the prior."""
    _, r, ends = made(1, n)
    c = np.diff(r[ends], axis=1)[:, 0]
    return written(folder, None, np.sign(c) * (np.abs(c) > 0.05), seed=1), float(r.mean())


def test_comparisons_as_differences_are_refused(tmp_path: Path) -> None:
    """As differences they gave an accuracy of 0.949 (0.897 to 0.977); 0.807 was true."""
    path, prior = comparisons(tmp_path)
    files = tmp_path / "items.csv", path
    checked = run("check", path, "--prior", prior, "--json")
    assert checked.exit_code == 1
    (error,) = [f for f in json.loads(checked.stdout)["findings"] if f["severity"] == "error"]
    assert error["code"] == "comparisons" and "column to preference" in error["message"]
    fit = ("fit", *files, "--prior", prior, "--model", "linear", "--epochs", 30)
    refused = run(*fit, "--out", tmp_path / "refused")
    assert refused.exit_code == 2 and "comparisons" in refused.output
    # As preferences, without those of neither, they give no accuracy.
    ties = int((read_pairs(path).difference == 0).sum())
    head, *lines = path.read_text().splitlines()
    kept = [line for line in lines if not line.endswith(("0.0", ",0"))]
    path.write_text("\n".join([head.replace("difference", "preference"), *kept]))
    right = run(*fit, "--out", tmp_path / "right", "--json")
    report = json.loads(right.stdout)
    assert ties and report["accuracy"] is None
    assert report["statements"] == {"preference": 400 - ties}


def test_sure_differences_are_no_comparisons() -> None:
    """Classes that are certain have differences of -1, 0 and 1 too, half of them 0."""
    rng = np.random.default_rng(0)
    y = rng.random((500, 2)) < 0.5
    c = np.subtract(*y.T[::-1].astype(float))
    table = pair_table(*np.arange(1000).reshape(2, 500), None, c)
    assert check(table, prior=0.5).ok
    assert not check(table, prior=0.1).ok, "no such prior has so many unlike pairs"


def test_prior_and_fit_know_scales(tmp_path: Path) -> None:
    table = simulate(pairs=150, seed=3)
    table.write(tmp_path, "parquet")
    original = tmp_path / "pairs.parquet"
    pairs = read_pairs(original)
    scaled = changed(pairs, similarity=1 + 4 * pairs.similarity)
    write_pairs(scaled, tmp_path / "scaled.parquet")
    asked = ("--similarity-scale", "1,5", "--json")
    prior = [
        json.loads(run("check", path, *words).stdout)["summary"]["prior"]["value"]
        for path, words in ((original, asked[2:]), (tmp_path / "scaled.parquet", asked))
    ]
    assert prior[0] == pytest.approx(prior[1])
    files = (tmp_path / "items.parquet", tmp_path / "scaled.parquet")
    options = ("--out", tmp_path / "model", "--model", "linear", "--epochs", 5)
    result = run("fit", *files, *options, *asked)
    assert result.exit_code == 0, result.output
    refused = run("fit", *files, *options, "--similarity-scale", "1,4", "--force")
    assert refused.exit_code == 2
    assert "scaled.parquet, row" in " ".join(refused.output.split())


@pytest.mark.parametrize("difference", [True, False])
def test_similarities_that_are_written_upside_down(difference: bool, tmp_path: Path) -> None:
    """By the differences it is an error, by the features alone a warning; a scale settles it."""
    labels = judged()[1]
    c = labels.difference if difference else None
    path = written(tmp_path, 1 - np.asarray(labels.similarity), c)
    line = ("check", path, "--items", tmp_path / "items.csv", "--majority", "negative", "--json")
    scales: Any = ((), ("--similarity-scale=1,0",), ("--similarity-scale=0,1",))
    wrong, right, meant = (json.loads(run(*line, *scale).stdout)["findings"] for scale in scales)
    severity = "error" if difference else "warning"
    assert severity in [f["severity"] for f in wrong if f["code"] == "upside-down"]
    assert not {"upside-down", "too-unlike", "infeasible"} & {f["code"] for f in right}
    assert "upside-down" not in {f["code"] for f in meant}
    if difference:
        fit = ("fit", tmp_path / "items.csv", path, "--epochs", 1, "--model", "linear",
               "--out", tmp_path / "m")  # fmt: skip
        refused = run(*fit)
        assert refused.exit_code == 2 and "Pass --similarity-scale 1,0" in plain(refused.stderr)
        assert run(*fit, *scales[2]).exit_code == 0


@pytest.mark.parametrize("prior", [0.02, 0.05, 0.1, 0.3, 0.5])
def test_similarities_that_only_lean_are_not_upside_down(prior: float) -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random((120, 2)) < prior, 1, -1)
    logit = np.log(prior / (1 - prior)) + 4 * y + np.sqrt(8) * rng.normal(size=y.shape)
    s, c = PairLabels.from_posteriors(*(1 / (1 + np.exp(-logit))).T).to_array().T
    noise = 0.3 * rng.normal(size=(2, 120))
    ends = np.arange(240).reshape(2, 120)
    cases = ((s, c), (0.3 * s, c), (0.4 * s, c), (0.7 + 0.3 * s, c), (s + noise[0], c + noise[1]),
             (0 * s, 0 * c), (0 * s + 1, c))  # fmt: skip
    for number, answers in enumerate(cases):
        findings = check(pair_table(*ends, *answers, noisy=True)).findings
        assert "upside-down" not in [finding.code for finding in findings], number


def test_one_annotator_with_similarities_upside_down() -> None:
    ends, labels = judged()
    bob = np.arange(len(ends)) % 2 == 0
    s = np.where(bob, 1 - np.asarray(labels.similarity), labels.similarity)
    annotator = np.where(bob, "bob", "ann")
    table = pair_table(*ends.T, s, labels.difference, annotator=annotator)
    findings = check(table).findings
    (finding,) = (finding for finding in findings if finding.code == "upside-down")
    assert (finding.severity, finding.ids) == ("warning", ("bob",))


def test_a_model_remembers_the_scales_of_its_fit(tmp_path: Path) -> None:
    """`fit` takes a data frame alone; what measures the model takes one on the same scale."""
    x, _, ends = made()
    labels = judged()[1]
    answers = {"similarity": 1 + 4 * labels.similarity, "difference": 2 * labels.difference}
    frame = pd.DataFrame({"left": ends[:, 0], "right": ends[:, 1], **answers})
    scales: Any = {"similarity_scale": (1, 5), "difference_scale": (-2, 2)}
    plain_fit, fitted = (
        PairClassifier(model="linear", epochs=20, preprocessor=x, random_state=0) for _ in range(2)
    )
    fitted.fit(frame[:150], **scales)
    plain_fit.fit(ends[:150], labels[:150])
    assert np.allclose(fitted.decision_function(x), plain_fit.decision_function(x), atol=1e-4)
    fitted.save(tmp_path / "model")
    loaded = PairClassifier.load(tmp_path / "model", preprocessor=x)
    expected = plain_fit.estimate_accuracy(ends[150:], labels[150:]).value
    assert loaded.estimate_accuracy(frame[150:]).value == pytest.approx(expected, abs=1e-4)
    assert loaded.evaluate(frame[150:]).accuracy.value == pytest.approx(expected, abs=1e-4)
    assert loaded.score(frame[150:]) == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match="similarity_scale and difference_scale are for data"):
        plain_fit.fit(ends, labels, similarity_scale=(1, 5))


def test_commands_remember_the_scales_of_fit(tmp_path: Path) -> None:
    labels = judged()[1]
    for name, seed in (("train", 0), ("new", 1)):
        (tmp_path / name).mkdir()
        written(tmp_path / name, 1 + 4 * labels.similarity, labels.difference, seed)
    train, new = (
        (tmp_path / name / "items.csv", tmp_path / name / "pairs.csv") for name in ("train", "new")
    )
    options = ("--model", "linear", "--epochs", 5, "--holdout", 0, "--out", tmp_path / "model")
    assert run("fit", *train, *options, "--similarity-scale", "1,5").exit_code == 0
    stated = run("evaluate", tmp_path / "model", *new, "--similarity-scale", "1,5", "--json")
    remembered = run("evaluate", tmp_path / "model", *new, "--json")
    assert remembered.exit_code == 0 and remembered.stdout == stated.stdout
