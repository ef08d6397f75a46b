"""Which class is which: known classes, the larger class, and what they cannot tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model_folders import answer
from pairlearn import PairClassifier, PairLabels
from pairlearn.estimators import KnownClassesWarning
from pairlearn.estimators.population import PriorMismatchWarning
from pairlearn.evaluation import estimate_accuracy
from pairlearn.tables import ItemTable, PairTable, write_items, write_pairs

N = 300


def made(intercept: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features and posteriors of 2N items."""
    x = np.random.default_rng(seed).normal(size=(2 * N, 3))
    return x, 1 / (1 + np.exp(-4 * (x[:, 0] - intercept)))


ENDS = np.arange(2 * N).reshape(N, 2)


def linear(**options: object) -> PairClassifier:
    return PairClassifier(model="linear", epochs=30, random_state=0, **options)


def test_classes_that_contradict_the_differences() -> None:
    x, r = made(0.0)
    labels = PairLabels.from_posteriors(*r[ENDS].T)
    y = np.where(r[:30] > 0.5, 1, -1)
    with pytest.warns(KnownClassesWarning, match="Either positive= is the other class"):
        linear().fit(x[ENDS], labels, labelled=(x[:30], -y))
    linear().fit(x[ENDS], labels, labelled=(x[:30], y))  # and no warning
    names = np.where(y > 0, "bad", "good")
    with pytest.raises(ValueError, match="say which one is positive, as in positive='good'"):
        linear().fit(x[ENDS], labels, labelled=(x[:30], names))
    fitted = linear().fit(x[ENDS], labels, labelled=(x[:30], names), positive="bad")
    assert fitted.classes_.tolist() == ["good", "bad"]
    assert np.mean(fitted.predict(x) == np.where(r > 0.5, "bad", "good")) > 0.95
    for wrong, labelled in (("worse", (x[:30], names)), ("bad", None)):
        with pytest.raises(ValueError, match=r"positive=worse is neither|positive is"):
            linear().fit(x[ENDS], labels, labelled=labelled, positive=wrong)


def test_a_majority_that_the_similarities_do_not_support() -> None:
    x, r = made(0.0)
    told = PairLabels(PairLabels.from_posteriors(*r[ENDS].T).similarity, None)
    with pytest.warns(PriorMismatchWarning, match="it may be a coin toss"):
        linear(majority="negative").fit(x[ENDS], told)


@pytest.mark.parametrize("told_by", ["majority", "labels"])
def test_similarities_alone_are_measured(told_by: str, tmp_path: Path) -> None:
    x, r = made(0.8 if told_by == "majority" else 0.0)
    told = PairLabels.from_posteriors(*r[ENDS].T)
    write_items(ItemTable(None, x), tmp_path / "items.csv")
    write_pairs(PairTable(*ENDS.T, told.similarity, None), tmp_path / "pairs.csv")
    rows = "".join(f"{k},{int(r[k] > 0.5)}\n" for k in range(30))
    (tmp_path / "known.csv").write_text("id,class\n" + rows)
    more = ("--majority", "negative") if told_by == "majority" else (
        "--labelled", tmp_path / "known.csv")  # fmt: skip
    files = tmp_path / "items.csv", tmp_path / "pairs.csv"
    told = answer(
        "fit", *files, "--model", "linear", "--epochs", 30, *more, "--out", tmp_path / "m"
    )
    found = told["accuracy"]
    new, r_new = made(0.8 if told_by == "majority" else 0.0, seed=3)
    positive = PairClassifier.load(tmp_path / "m").decision_function(ItemTable(None, new)) > 0
    truth = np.where(positive, r_new, 1 - r_new).mean()
    assert found["low"] - 0.01 < truth < found["high"] + 0.01
    assert found["high"] - found["low"] < 0.2


def test_an_interval_holds_both_sides_of_classes_of_equal_size() -> None:
    x = made(0.0)[0][:N]
    x = np.random.default_rng(1).permutation(np.concatenate([x, -x]))
    r = 1 / (1 + np.exp(-4 * x[:, 0]))
    told = PairLabels(PairLabels.from_posteriors(*r[ENDS].T).similarity, None)
    z = x[ENDS][:, :, 0].T
    both = estimate_accuracy(*z, told, side="negative")
    assert both.low < 0.2 and both.high > 0.8
    assert estimate_accuracy(*z, told, side="better").low > 0.8
