"""K classes from data to accuracy: the estimator, its accuracy without labels, the commands."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from typer.testing import CliRunner

from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.annotators import Annotators
from pairlearn.check import check
from pairlearn.cli.root import app
from pairlearn.estimators.completion import Targets
from pairlearn.estimators.fitted import each_log_odds
from pairlearn.estimators.orientation import ClassesWarning
from pairlearn.evaluation.classes import estimate_class_accuracy
from pairlearn.io import read_pairs, write_pairs
from pairlearn.judgements.identification import needs_priors, not_told_apart
from pairlearn.prior import class_priors

NAMES = np.array(["cat", "cow", "dog"])


def three(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, posteriors and classes of three Gaussians."""
    rng = np.random.default_rng(seed)
    angles = 2 * math.pi * np.arange(3) / 3
    centres = 2 * np.stack([np.cos(angles), np.sin(angles)], 1)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = centres[y] + rng.normal(size=(n, 2))
    odds = x @ centres.T + np.log([0.5, 0.3, 0.2])
    return x, np.exp(odds - logsumexp(odds, 1, keepdims=True)), y


def judged(r: Any, seed: int = 0, about: Any = None) -> tuple[Any, PairLabels, Any]:
    """Pairs of all items, each asked about one class."""
    ends = np.random.default_rng(seed).permutation(len(r) // 2 * 2).reshape(-1, 2)
    k = np.random.default_rng(seed).integers(3, size=len(ends)) if about is None else about
    return ends, PairLabels.from_posteriors(*r[ends, k[:, None]].T), k


def fitted(**parameters: Any) -> PairClassifier:
    return PairClassifier(model="linear", epochs=30, random_state=0, **parameters)


@pytest.fixture(scope="module")
def model() -> PairClassifier:
    x, r, _ = three(600)
    ends, labels, k = judged(r)
    return fitted().fit(x[ends], labels, about=NAMES[k])


# ---- the estimator -----------------------------------------------------------------------------


def test_it_learns_three_classes(model: PairClassifier) -> None:
    x, r, y = three(3000, 5)
    assert model.classes_.tolist() == NAMES.tolist()
    p = model.predict_proba(x)
    assert p.sum(1) == pytest.approx(1)
    assert (model.predict(x) == NAMES[y]).mean() > (r.argmax(1) == y).mean() - 0.02
    assert (model.decision_function(x).argmax(1) == p.argmax(1)).all()
    assert model.prior_ == pytest.approx([0.5, 0.3, 0.2], abs=0.06)


def test_it_is_saved(model: PairClassifier, tmp_path: Path) -> None:
    x, _, _ = three(50, 6)
    model.save(tmp_path / "model")
    again = PairClassifier.load(tmp_path / "model")
    assert again.predict_proba(x) == pytest.approx(model.predict_proba(x))
    assert again.predict(x).tolist() == model.predict(x).tolist()


def test_onnx_files_have_a_column_for_each_class(model: PairClassifier, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x = three(50, seed=3)[0].astype(np.float32)
    assert model.export_onnx(tmp_path / "model.onnx") < 1e-5
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    _, p = session.run(None, {"x": x})
    assert p == pytest.approx(model.predict_proba(x), abs=1e-5)


def test_two_names_are_two_classes() -> None:
    x, r, _ = three(400)
    ends, labels, _ = judged(r, about=np.zeros(200, int))
    plain = fitted().fit(x[ends], labels)
    turned = PairLabels(labels.similarity, -labels.difference)
    about = np.where(np.arange(200) % 2, "yes", "no")
    mixed = np.where((np.arange(200) % 2)[:, None], labels.to_array(), turned.to_array())
    named = fitted(classes=["no", "yes"]).fit(x[ends], mixed, about=about)
    assert named.predict_proba(x) == pytest.approx(plain.predict_proba(x))
    assert named.classes_.tolist() == ["no", "yes"]


def test_one_name_is_set_against_the_rest() -> None:
    x, r, y = three(400)
    ends, labels, _ = judged(r, about=np.zeros(200, int))
    model = fitted().fit(x[ends], labels, about=["cat"] * 200)
    assert model.classes_.tolist() == ["not cat", "cat"]
    assert ((model.predict(x) == "cat") == (y == 0)).mean() > 0.85


def test_labels_name_classes_of_same() -> None:
    x, r, y = three(800)
    ends, _, _ = judged(r)
    table = Judgements.from_columns(ends, {"similarity": (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)})
    model = fitted().fit(x, table, labelled=(x[:40], y[:40]))
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(x) == y).mean() > 0.85


def test_same_alone_gives_groups() -> None:
    x, r, y = three(800)
    ends, _, _ = judged(r)
    s = np.stack([(r[ends[:, 0]] * r[ends[:, 1]]).sum(1), np.full(400, np.nan)], 1)
    with pytest.warns(ClassesWarning, match="group 1, group 2, group 3"):
        model = fitted(classes=3).fit(x[ends], s)
    found = model.predict(x)
    purity = sum(np.bincount(y[found == name], minlength=3).max() for name in model.classes_)
    assert purity / len(y) > 0.8
    estimate = model_estimate(model, x, Judgements.from_pairs(ends, s))
    assert estimate.method == "agreement"
    assert "not the accuracy" in estimate.sentence()


def model_estimate(model: PairClassifier, x: Any, table: Judgements, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.estimate_accuracy(x, table, **options)


def test_differences_alone_need_priors() -> None:
    x, r, _ = three(600)
    ends, labels, k = judged(r)
    labels = np.stack([np.full(300, np.nan), labels.difference], 1)
    with pytest.raises(ValueError, match="state the priors"):
        fitted().fit(x[ends], labels, about=NAMES[k])
    with pytest.raises(ValueError, match="the shares of all 3 classes"):
        fitted(prior=[0.5, 0.5]).fit(x[ends], labels, about=NAMES[k])
    priors = {"cat": 0.5, "dog": 0.2, "cow": 0.3}
    model = fitted(prior=priors).fit(x[ends], labels, about=NAMES[k])
    assert model.prior_ == pytest.approx([0.5, 0.3, 0.2], abs=0.04)


@pytest.mark.parametrize("risk", ["sconfconfdiff-abs", "nonnegative"])
def test_affine_risks_learn_three_classes(risk: str) -> None:
    x, r, y = three(900)
    ends, labels, k = judged(r)
    model = fitted(risk=risk).fit(x[ends], labels, about=NAMES[k])
    assert (model.predict(x) == NAMES[y]).mean() > 0.85


def test_modules_need_an_output_for_each_class() -> None:
    x, r, _ = three(200)
    ends, labels, k = judged(r)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 1))
    with pytest.raises(ValueError, match="must give 3 logits, one for each class"):
        PairClassifier(model=network).fit(x[ends], labels, about=NAMES[k])
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 3))
    model = PairClassifier(model=network, epochs=2).fit(x[ends], labels, about=NAMES[k])
    assert model.predict_proba(x).shape == (200, 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"majority": "positive"}, "majority is for two classes, and there are 3"),
        ({"target_prior": 0.2}, "target_prior is for two classes"),
        ({"prior": 0.2}, "the shares of all 3 classes"),
        ({"classes": ["cat", "cow"]}, "'dog', and the classes are cat, cow"),
        ({"classes": 2}, "classes is 2, and 3 are named"),
        ({"risk": "nnpu", "prior": {"cat": 0.5, "dog": 0.2, "cow": 0.3}}, "not affine"),
    ],
)
def test_what_three_classes_do_not_take(parameters: dict[str, Any], message: str) -> None:
    x, r, _ = three(100)
    ends, labels, k = judged(r)
    with pytest.raises(ValueError, match=message):
        fitted(**parameters).fit(x[ends], labels, about=NAMES[k])


@pytest.mark.parametrize("said", ["classes", "labels and same"])
def test_scikit_learn_classifiers_learn_three_classes(said: str) -> None:
    from sklearn.linear_model import LogisticRegression

    x, r, _ = three(800)
    ends, labels, k = judged(r)
    table = Judgements.from_pairs(ends, labels, about=NAMES[k])
    if said == "labels and same":
        same = {"similarity": (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)}
        known = Judgements.about_items(
            "label", np.arange(30), np.ones(30), about=NAMES[r[:30].argmax(1)]
        )
        table = Judgements.concatenate(
            [Judgements.from_columns(ends, same, about=[""] * len(ends)), known]
        )
    model = PairClassifier(model=LogisticRegression(), random_state=0).fit(x, table)
    fresh, chances, _ = three(1000, seed=9)
    best = chances.argmax(1)
    assert (model.predict(fresh) == NAMES[best]).mean() > 0.93
    assert np.abs(model.predict_proba(fresh) - chances).mean() < 0.06


def test_completed_targets_agree_with_what_is_known() -> None:
    # Of posteriors that the statements are true of, completion is their mean: it changes nothing.
    _, r, _ = three(40)
    ends, labels, k = judged(r)
    table = Judgements.from_pairs(ends, labels, about=NAMES[k])
    same = {"similarity": (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)}
    whole = Judgements.from_columns(ends, same, about=[""] * len(ends))
    targets = Targets(Judgements.concatenate([table, whole]).of_classes(NAMES))
    _, completed = targets.complete(r[targets.items])
    assert completed == pytest.approx(r[targets.items][targets.rows.ends.T], abs=1e-5)
    assert targets.risk(r[targets.items]) == pytest.approx(0, abs=1e-9)


def test_log_odds_of_each_class() -> None:
    z = np.array([[1e4, 0.0, -1e4], [0.3, -0.2, 0.1], [0.0, 0.0, 0.0]])
    odds = each_log_odds(z)
    assert np.isfinite(odds).all()
    assert odds[2] == pytest.approx(-math.log(2))
    p = np.exp(z[1]) / np.exp(z[1]).sum()
    assert odds[1] == pytest.approx(np.log(p / (1 - p)))


# ---- what is determined ------------------------------------------------------------------------


def statements(sets: list[str], column: str = "similarity") -> Judgements:
    ends = np.arange(2 * len(sets)).reshape(-1, 2)
    values = {"similarity": np.full(len(sets), 0.5)} if column != "difference" else {}
    values |= {"difference": np.full(len(sets), 0.1)} if column != "similarity" else {}
    return Judgements.from_columns(ends, values, about=sets)


@pytest.mark.parametrize(
    ("sets", "alike"),
    [
        (["a", "b"], []),
        (["a"], [("b", "c", "d")]),
        (["a|b", "c"], [("a", "b")]),
        (["a|b", "a|c"], [("a", "b", "c", "d")]),  # four equations short of one
        (["a|b", "a|c", "a"], []),
    ],
)
def test_classes_that_nothing_tells_apart(sets: list[str], alike: list[Any]) -> None:
    names = ["a", "b", "c"] if sets == ["a", "b"] else ["a", "b", "c", "d"]
    assert not_told_apart(statements(sets, "both").of_classes(names)) == alike


def test_differences_leave_the_level_open() -> None:
    assert needs_priors(statements(["a", "b"], "difference").of_classes("abc"))
    assert not needs_priors(statements(["a", "b"], "both").of_classes("abc"))
    some = [statements(["a"], "both"), statements(["b"], "difference")]
    assert needs_priors(Judgements.concatenate(some).of_classes("abc"))


def test_check_names_the_classes() -> None:
    report = check(statements(["cat", "cow|dog"], "both"))
    assert report.summary.learnable == (
        "posteriors of the classes cat (rows: 1), cow (rows: 1), dog (rows: 1), and no other"
    )
    (finding,) = (f for f in report.findings if f.code == "not-told-apart")
    assert "cow, dog" in finding.message
    report = check(statements(["cat", "cow"], "difference").of_classes(NAMES))
    assert "needs-priors" in {finding.code for finding in report.of("error")}


def test_annotators_are_learnt_from_statements_about_any_class() -> None:
    _, r, _ = three(1200)
    rng = np.random.default_rng(5)
    ends, labels, k = judged(r)
    values, who = labels.to_array(), np.arange(len(ends)) % 2
    guessed = (who == 1) & (rng.random(len(ends)) < 0.4)
    values[guessed] = np.stack([rng.random(len(ends)), rng.uniform(-1, 1, len(ends))], 1)[guessed]
    names = np.array(["ann", "bob"])[who]
    table = Judgements.from_pairs(ends, values, about=NAMES[k], annotator=names).of_classes()
    same = Judgements.from_columns(ends[:5], {"similarity": np.full(5, 0.5)}, about=[""] * 5)
    table = Judgements.concatenate([table, same])
    people = Annotators.learn(table)
    ann, bob = (people.find(name) for name in ("ann", "bob"))
    assert ann is not None and bob is not None
    assert ann.answers == bob.answers == 300
    assert ann.guesses < 0.1 < 0.25 < bob.guesses < 0.5
    corrected = people.correct(table).judged
    assert corrected.sets.tolist() == table.sets.tolist()
    assert corrected.classes == table.classes
    assert corrected.weight[:600][who == 1].mean() < corrected.weight[:600][who == 0].mean() - 0.1


# ---- accuracy ----------------------------------------------------------------------------------


def everything(r: Any, chance: Any, sets: Any, q: Any = None) -> tuple[Any, Judgements]:
    """All ordered pairs of kinds of items with one row for each class that `sets` has."""
    m, count = r.shape
    left, right, k = (index.ravel() for index in np.indices((m, m, count)))
    kept = sets(left, k)
    left, right, k = left[kept], right[kept], k[kept]
    share = chance[left] * chance[right]
    drawn = np.ones(len(k)) if q is None else q[left, right, k]
    labels = PairLabels.from_posteriors(r[left, k], r[right, k])
    ends = np.arange(2 * len(k)).reshape(-1, 2)
    options: Any = {"about": k, "weight": share * drawn, "q": None if q is None else drawn}
    table = Judgements.from_pairs(ends, labels, **options)
    return np.stack([left, right]), table.of_classes(range(count))


@pytest.mark.parametrize("classes", [3, 4, 7])
@pytest.mark.parametrize("asked", ["all", "drawn"])
def test_the_accuracy_is_exact_on_a_whole_population(classes: int, asked: str) -> None:
    tried = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chance, r = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(classes), 5)
        p, prior = rng.random((5, classes)), chance @ r
        if np.abs(prior - 0.5).min() < 0.1:
            continue  # so near to one half that the noise of its estimate counts
        tried += 1
        q = None if asked == "all" else rng.dirichlet(np.ones(classes), (5, 5))
        ends, once = everything(r, chance, lambda left, k: np.ones(len(k), bool), q)
        copies = [
            Judgements(once.ends + 2 * len(once) * copy, once.kind, once.values, once.weight,
                       about=once.about, q=once.q, classes=once.classes)
            for copy in range(200)
        ]  # fmt: skip
        left, right = np.tile(p[ends], (1, len(copies), 1))
        found = estimate_class_accuracy(left, right, Judgements.concatenate(copies))
        both = chance @ (np.eye(classes)[p.argmax(1)] * r)
        assert found.value == pytest.approx(both.sum(), abs=1e-9)
        for k in range(classes):
            assert found.prior[str(k)].value == pytest.approx(prior[k], abs=1e-9)
            assert found.recall[str(k)].value == pytest.approx(both[k] / prior[k], abs=1e-9)
            if (called := chance @ (p.argmax(1) == k)) > 0:
                assert found.precision[str(k)].value == pytest.approx(both[k] / called, abs=1e-9)
        table = [[cell.value for cell in row.values()] for row in found.confusion.values()]
        joint = np.einsum("m,mk,mj->kj", chance, r, np.eye(classes)[p.argmax(1)])
        assert np.array(table) == pytest.approx(joint, abs=1e-9)
    assert tried > 5


def test_statements_about_the_predicted_class_need_the_priors() -> None:
    rng = np.random.default_rng(0)
    chance, r, p = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(3), 5), rng.random((5, 3))
    decided = p.argmax(1)
    ends, table = everything(r, chance, lambda left, k: decided[left] == k)
    with pytest.raises(ValueError, match="only with the priors of the classes"):
        estimate_class_accuracy(p[ends[0]], p[ends[1]], table)
    found = estimate_class_accuracy(p[ends[0]], p[ends[1]], table, priors=chance @ r)
    assert found.method == "predicted"
    assert found.value == pytest.approx(chance @ r[np.arange(5), decided], abs=1e-9)


def test_the_interval_holds() -> None:
    rng, held = np.random.default_rng(0), 0
    r = rng.dirichlet(np.ones(3) / 2, 200_000)
    noisy = np.log(r + 1e-9) + rng.normal(size=r.shape)
    truth = r[np.arange(len(r)), noisy.argmax(1)].mean()
    for _ in range(100):
        part = rng.permutation(len(r))[:800].reshape(-1, 2)
        k = rng.integers(3, size=400)
        labels = PairLabels.from_posteriors(*r[part, k[:, None]].T)
        rows = Judgements.from_pairs(part, labels, about=k, q=np.full(400, 1 / 3))
        p = np.exp(noisy[part])
        found = estimate_class_accuracy(p[:, 0], p[:, 1], rows.of_classes(range(3)))
        held += found.low <= truth <= found.high
    assert held >= 88


def test_labels_make_it_hold(model: PairClassifier) -> None:
    x, r, y = three(1000, 9)
    ends, labels, k = judged(r, 3)
    table = Judgements.from_pairs(ends, labels, about=NAMES[k])
    without = model_estimate(model, x, table)
    assert without.low < (model.predict(x) == NAMES[y]).mean() < without.high
    assert set(without.recall) == set(NAMES)
    found = model_estimate(model, x, table, labelled=(x[:60], NAMES[y[:60]]))
    assert found.method == "labelled"
    assert found.low < (model.predict(x) == NAMES[y]).mean() < found.high
    with pytest.raises(ValueError, match="evaluate measures two classes"):
        model.evaluate(x, table)


def test_priors_of_classes() -> None:
    for prior in ([0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.25] * 4):
        shares = np.array(prior)
        assert class_priors(2 * shares * (1 - shares))[0] == pytest.approx(shares, abs=1e-5)


# ---- commands ----------------------------------------------------------------------------------


def run(*words: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == code, result.output
    return result


def test_from_files_to_predictions(tmp_path: Path) -> None:
    x, r, y = three(500)
    ends, labels, k = judged(r[:400])
    items, pairs, held = (tmp_path / f"{name}.csv" for name in ("items", "pairs", "held"))
    rows = [f"{i},{a:.5f},{b:.5f}" for i, (a, b) in enumerate(x)]
    items.write_text("\n".join(["id,x1,x2", *rows]))
    ids = np.arange(500)
    table = Judgements.from_columns(
        ends,
        dict(zip(("similarity", "difference"), labels.to_array().T, strict=True)),
        about=NAMES[k],
        q=np.full(200, 1 / 3),
        ids=ids,
    )
    write_pairs(table, pairs)
    assert read_pairs(pairs) == table[:]
    rest = 400 + np.arange(100).reshape(-1, 2)
    k = np.arange(50) % 3
    held_labels = PairLabels.from_posteriors(*r[rest, k[:, None]].T)
    write_pairs(
        Judgements.from_columns(
            rest,
            dict(zip(("similarity", "difference"), held_labels.to_array().T, strict=True)),
            about=NAMES[k],
            ids=ids,
        ),
        held,
    )
    counts = ", ".join(f"{name} (rows: {(table.sets == name).sum()})" for name in NAMES)
    assert f"classes {counts}, and no other" in run("check", pairs, "--items", items).output
    model = tmp_path / "model"
    fit = ["fit", items, pairs, "--out", model, "--model", "linear", "--epochs", 20, "--holdout"]
    summary = json.loads(run(*fit, 0.2, "--json").stdout)
    assert summary["classes"] == NAMES.tolist()
    assert sum(summary["prior"]) == pytest.approx(1, abs=1e-6)
    measured = json.loads(run("evaluate", model, items, held, "--json").stdout)
    assert measured["accuracy"]["low"] <= measured["accuracy"]["value"]
    out = tmp_path / "predicted.csv"
    run("predict", model, items, "--out", out)
    header, *lines = out.read_text().splitlines()
    assert header == "id,label,probability_cat,probability_cow,probability_dog"
    right = np.mean([line.split(",")[1] == NAMES[c] for line, c in zip(lines, y, strict=True)])
    assert right > 0.85
    known = tmp_path / "known.csv"
    known.write_text("\n".join(["id,class", *(f"{i},{NAMES[y[i]]}" for i in range(420, 480))]))
    labelled = run("evaluate", model, items, held, "--labelled", known, "--json").stdout
    assert json.loads(labelled)["accuracy"]["method"] == "labelled"
    page = tmp_path / "page.html"
    run("report", model, items, held, page)
    text = page.read_text()
    assert measured["accuracy"]["sentence"] in text and "<script src" not in text
    recall = measured["accuracy"]["recall"]["cow"]
    assert f"{recall['value']:.3f}" in text and f"{recall['low']:.3f}" in text
    options = ("--threshold", "0.4", "--force")
    refused = run("report", model, items, held, page, *options, code=2)
    assert "for two classes" in refused.output
    planned = json.loads(
        run("plan", "--within", 0.1, "--accuracy", 0.8, "--pilot", pairs, "--json").stdout
    )
    assert planned["assumptions"]["classes"] == 3 and planned["pairs_independent"] is None
    run("plan", "--within", 0.1, "--accuracy", 0.8, "--pilot", pairs, "--prior", 0.2, code=2)
    assert "for two classes" in run("evaluate", model, items, held, "--cost", "1,2", code=2).output
    compared = run("compare", items, pairs, "--models", "linear,mlp", "--epochs", 5, "--json")
    ranking = json.loads(compared.stdout)
    assert len(ranking["rows"]) == 2
    assert sum(ranking["prior"]) == pytest.approx(1, abs=0.15)
    shares = ",".join(f"{name}={share:.3f}" for name, share in zip(NAMES, r.mean(0), strict=True))
    stated = run("evaluate", model, items, held, "--prior", shares, "--json").stdout
    priors = json.loads(stated)["accuracy"]["prior"]
    assert [priors[name]["value"] for name in NAMES] == pytest.approx(r.mean(0), abs=1e-3)


def test_labels_may_name_their_class(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(
        "left,right,similarity,label,about\n1,2,0.7,,\n3,,,cat,\n4,,,negative,dog\n5,,,positive,cat|dog\n"
    )
    table = read_pairs(path)
    assert table.sets.tolist() == ["", "cat", "dog", "cat|dog"]
    assert table.u.tolist() == [0.7, 1, 0, 1]


def test_fit_says_that_same_alone_shows_no_accuracy(tmp_path: Path) -> None:
    x, r, _ = three(240)
    items, pairs = tmp_path / "items.csv", tmp_path / "pairs.csv"
    items.write_text("\n".join(["id,x1,x2", *(f"{i},{a},{b}" for i, (a, b) in enumerate(x))]))
    ends = np.arange(240).reshape(-1, 2)
    same = (r[ends[:, 0]] * r[ends[:, 1]]).sum(1)
    rows = (f"{left},{right},{s:.3f}" for (left, right), s in zip(ends, same, strict=True))
    pairs.write_text("\n".join(["left,right,similarity", *rows]))
    options = ("--classes", 3, "--model", "linear", "--epochs", 5, "--out", tmp_path / "model")
    output = run("fit", items, pairs, *options).output
    assert "This is not the accuracy" in output and "group 1, group 2, group 3" in output
    assert "always the larger class" not in output
