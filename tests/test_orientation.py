"""Which class is which: known classes, the larger class, and the guidance of the first epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from model_folders import answer
from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.estimators import learning
from pairlearn.estimators.orientation import guiding_prior, larger_class
from pairlearn.evaluation import estimate_accuracy
from pairlearn.io import ItemTable, write_items, write_pairs
from pairlearn.risks import PairLikelihood
from pairlearn.simulation import simulate
from pairlearn.training import Objective
from pairlearn.training.ranks import ALONE
from tables import pair_table

N = 300


def items(intercept: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features and posteriors of 2N items."""
    x = np.random.default_rng(seed).normal(size=(2 * N, 3))
    return x, 1 / (1 + np.exp(-4 * (x[:, 0] - intercept)))


ENDS = np.arange(2 * N).reshape(N, 2)


def linear(**options: object) -> PairClassifier:
    return PairClassifier(model="linear", epochs=30, random_state=0, **options)


def test_the_positive_class_is_named() -> None:
    x, r = items(0.0)
    labels = PairLabels.from_posteriors(*r[ENDS].T)
    y = np.where(r[:30] > 0.5, 1, -1)
    names = np.where(y > 0, "bad", "good")
    with pytest.raises(ValueError, match="say which one is positive, as in positive='good'"):
        linear().fit(x[ENDS], labels, labelled=(x[:30], names))
    fitted = linear().fit(x[ENDS], labels, labelled=(x[:30], names), positive="bad")
    assert fitted.classes_.tolist() == ["good", "bad"]
    assert np.mean(fitted.predict(x) == np.where(r > 0.5, "bad", "good")) > 0.95
    for wrong, labelled in (("worse", (x[:30], names)), ("bad", None)):
        with pytest.raises(ValueError, match=r"class worse is neither|positive names a class"):
            linear().fit(x[ENDS], labels, labelled=labelled, positive=wrong)


@pytest.mark.parametrize("stated_by", ["majority", "labels"])
def test_similarities_alone_are_measured(stated_by: str, tmp_path: Path) -> None:
    x, r = items(0.8 if stated_by == "majority" else 0.0)
    labels = PairLabels.from_posteriors(*r[ENDS].T)
    write_items(ItemTable(None, x), tmp_path / "items.csv")
    write_pairs(pair_table(*ENDS.T, labels.similarity, None), tmp_path / "pairs.csv")
    rows = "".join(f"{k},{int(r[k] > 0.5)}\n" for k in range(30))
    (tmp_path / "known.csv").write_text("id,class\n" + rows)
    more = ("--majority", "negative") if stated_by == "majority" else (
        "--labelled", tmp_path / "known.csv")  # fmt: skip
    files = tmp_path / "items.csv", tmp_path / "pairs.csv"
    options = ("--model", "linear", "--epochs", 30, *more, "--out", tmp_path / "m")
    accuracy = answer("fit", *files, *options)["accuracy"]
    x_new, r_new = items(0.8 if stated_by == "majority" else 0.0, seed=3)
    positive = PairClassifier.load(tmp_path / "m").decision_function(ItemTable(None, x_new)) > 0
    truth = np.where(positive, r_new, 1 - r_new).mean()
    assert accuracy["low"] - 0.01 < truth < accuracy["high"] + 0.01
    assert accuracy["high"] - accuracy["low"] < 0.2


def test_an_interval_holds_both_sides_of_classes_of_equal_size() -> None:
    x = items(0.0)[0][:N]
    x = np.random.default_rng(1).permutation(np.concatenate([x, -x]))
    r = 1 / (1 + np.exp(-4 * x[:, 0]))
    labels = PairLabels(PairLabels.from_posteriors(*r[ENDS].T).similarity, None)
    z = x[ENDS][:, :, 0].T
    both = estimate_accuracy(*z, labels, side="negative")
    assert both.low < 0.2 and both.high > 0.8
    assert estimate_accuracy(*z, labels, side="better").low > 0.8


# ---- guidance ---------------------------------------------------------------------------------


def rows_of(r: np.ndarray, ends: np.ndarray) -> Judgements:
    return Judgements.from_pairs(ends, PairLabels.from_posteriors(*r[ends].T))


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.7, 0.9])
def test_the_prior_of_the_similarities_on_the_side_that_a_linear_model_sees(prior: float) -> None:
    data = simulate(pairs=300, prior=prior, seed=1)
    rows = rows_of(data.posterior, data.pairs.located(data.items.ids).ends)
    for seed in range(3):
        assert guiding_prior(data.items.features, rows, seed) == pytest.approx(
            data.posterior.mean(), abs=0.05
        )


def test_no_side_is_taken_where_classes_are_even_or_no_line_parts_them() -> None:
    data = simulate(pairs=300, prior=0.5, seed=1)
    rows = rows_of(data.posterior, data.pairs.located(data.items.ids).ends)
    assert guiding_prior(data.items.features, rows, 0) is None
    rng = np.random.default_rng(0)
    angle, positive = rng.uniform(0, 2 * np.pi, 800), np.arange(800) % 10 == 0
    ring = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(positive, 1.0, 3.0)[:, None]
    rows = rows_of(np.where(positive, 0.98, 0.02), rng.permutation(800).reshape(-1, 2))
    assert guiding_prior(ring.astype(np.float32), rows, 0) is None


def test_nothing_is_told_without_pairs_of_different_classes() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    ends = np.arange(60).reshape(30, 2)
    assert larger_class(x, rows_of(np.ones(60), ends)) is None
    assert larger_class(x, rows_of((x[:, 0] > 0.5).astype(float), ends)[:9]) is None


@pytest.mark.parametrize("prior", [0.15, 0.85])
def test_the_wrong_side_is_hardly_ever_named(prior: float) -> None:
    """Many features and few pairs, where a score fits its own pairs whatever they say."""
    named = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        positive = rng.random(120) < prior
        x = rng.normal(size=(120, 40)).astype(np.float32)
        x[:, 0] += 3.0 * positive
        rows = rows_of(np.where(positive, 0.95, 0.05), np.arange(120).reshape(60, 2))
        named.append(larger_class(x, rows, seed))
    right = "positive" if prior > 0.5 else "negative"
    assert named.count(right) >= 15
    assert len(named) - named.count(right) - named.count(None) <= 1


def test_guidance_is_a_divergence_that_fades_and_is_no_part_of_the_objective() -> None:
    data = simulate(pairs=50, prior=0.2, seed=0)
    rows = rows_of(data.posterior, data.pairs.located(data.items.ids).ends)
    plain, guided = (Objective(PairLikelihood(), guiding_prior=prior) for prior in (None, 0.2))
    z = torch.linspace(-2, 1, 50, dtype=torch.float64)
    arguments = (z, z, *torch.from_numpy(rows.values).T)
    share = torch.full_like(z, 1 / 50)

    def value(objective: Objective) -> float:
        return float(objective(*arguments, share, total=ALONE.sum))

    mean = float(torch.sigmoid(z).mean())
    divergence = 0.2 * np.log(0.2 / mean) + 0.8 * np.log(0.8 / (1 - mean))
    for weight in (1.0, 0.25, 0.0):
        guided.guidance.fill_(weight)
        assert value(guided) == pytest.approx(value(plain) + weight * divergence, abs=1e-12)
        assert torch.equal(guided.of(rows, z, z), plain.of(rows, z, z))
        assert float(guided.guidance) == weight


def accuracy(seed: int) -> float:
    """Of a model of 100 pairs of digits, a tenth of them positive (even), at that prior."""
    x, y = load_digits(return_X_y=True)
    x, positive = x.astype(np.float32), y % 2 == 0
    rng = np.random.default_rng(seed)
    even, odd = (rng.permutation(np.flatnonzero(positive == one)) for one in (True, False))
    ends = rng.permutation(np.concatenate([even[:20], odd[:180]])).reshape(-1, 2)
    labels = PairLabels.from_posteriors(*np.where(positive, 0.98, 0.02)[ends].T)
    model = PairClassifier(model="mlp", epochs=60, random_state=seed)
    right = (model.fit(x[ends], labels.to_array()).predict(x) > 0) == positive
    return 0.1 * float(right[positive].mean()) + 0.9 * float(right[~positive].mean())


def test_few_pairs_far_from_one_half_are_not_learnt_reflected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert accuracy(seed=2) > 0.9
    monkeypatch.setattr(learning, "guiding_prior", lambda *_: None)
    assert accuracy(seed=2) < 0.4, "what guidance is for"
