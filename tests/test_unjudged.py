"""Items that nobody judged: learnt from where that pays, and left alone where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import nn

from model_folders import answer
from pairlearn import Judgements, PairClassifier, PairLabels
from pairlearn.io import ItemTable, write_items, write_pairs
from tables import pair_table

PAIRS = 40


def clusters(rng: np.random.Generator) -> tuple[Any, Any]:
    """Sixteen clusters, whose classes no simple rule tells: neighbours do."""
    of = np.arange(600) % 16
    centres = np.random.default_rng(7).normal(size=(16, 8)) * 3
    return centres[of] + rng.normal(size=(600, 8)), of % 2 == 0


def linear(rng: np.random.Generator) -> tuple[Any, Any]:
    """A linear rule among many features: neighbours are of all classes."""
    x = rng.normal(size=(600, 20))
    return x, x.sum(1) > 0


def small(features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, 1))


def fitted(draw: Any, model: Any, **options: Any) -> tuple[PairClassifier, float]:
    """A classifier of some pairs of the first items, and its accuracy on all of them."""
    x, positive = draw(np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(len(x))
    ends = order[: 2 * PAIRS].reshape(-1, 2)
    r = np.where(positive, 0.98, 0.02)
    judged = Judgements.from_pairs(ends, PairLabels.from_posteriors(*r[ends].T))
    classifier = PairClassifier(model=model, epochs=60, random_state=0, **options).fit(x, judged)
    return classifier, float(((classifier.predict(x) > 0) == positive).mean())


def test_neighbours_pay_where_classes_form_clusters() -> None:
    alone, without = fitted(clusters, small, unjudged="ignore")
    model, accuracy = fitted(clusters, small)
    assert (alone.unjudged_, model.unjudged_) == (0, 600 - 2 * PAIRS)
    assert accuracy > without + 0.02
    # What is estimated is of the judged pairs: the others leave no trace but in the weights.
    assert len(model.training_items_) == len(alone.training_items_) == 2 * PAIRS


def test_held_out_statements_tell_where_neighbours_do_not_pay() -> None:
    model, accuracy = fitted(linear, "linear")
    assert model.unjudged_ == 0
    assert accuracy == fitted(linear, "linear", unjudged="ignore")[1]


@pytest.mark.parametrize("unjudged", ["auto", "ignore"])
def test_fit_says_how_many_were_learnt_from(unjudged: str, tmp_path: Path) -> None:
    x, positive = clusters(np.random.default_rng(0))
    ids = np.arange(len(x))
    ends = np.random.default_rng(1).permutation(ids)[: 2 * PAIRS].reshape(-1, 2)
    labels = PairLabels.from_posteriors(*np.where(positive, 0.98, 0.02)[ends].T)
    names = [f"x{k}" for k in range(x.shape[1])]
    write_items(ItemTable(ids, x.astype(np.float32), names), tmp_path / "items.csv")
    write_pairs(pair_table(*ends.T, labels.similarity, labels.difference), tmp_path / "pairs.csv")
    files = tmp_path / "items.csv", tmp_path / "pairs.csv"
    options = ("--epochs", 10, "--holdout", 0, "--unjudged", unjudged)
    summary = answer("fit", *files, "--out", tmp_path / "model", *options)
    assert summary["items"] == 2 * PAIRS
    assert summary["unjudged"] == (520 if unjudged == "auto" else 0)


@pytest.mark.parametrize("others", [[], ["text"]])
def test_gaps_only_in_unjudged_items_are_features_too(others: list[str]) -> None:
    """The encoder is fitted to every item of the preprocessor, as in the command."""
    rng = np.random.default_rng(0)
    items = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    items["text"] = np.tile(["x", "y"], 30)
    items = items[["a", "b", *others]]
    items.loc[50, "b"] = np.nan
    labels = PairLabels.from_posteriors(*rng.random((2, 20)))
    model = PairClassifier(preprocessor=items, model="linear", epochs=2, random_state=0)
    model.fit(np.arange(40).reshape(-1, 2), labels)
    assert np.isfinite(model.decision_function(items)).all()
    assert "b is missing" in model.encoder_.outputs
