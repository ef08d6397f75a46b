"""Classifiers in model folders: what comes back, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import nn

from pairlearn import PairClassifier, TrainingOptions
from pairlearn.estimators import ModelFolderError
from pairlearn.estimators.folder_format import read_folder, write_folder
from pairlearn.models import MLP, ResNet32, ResNet34

PAIRS = np.random.default_rng(0).normal(size=(12, 2, 3))
LABELS = np.random.default_rng(1).random((12, 2)) / 3


def fitted(**changes: Any) -> PairClassifier:
    usual = {"model": "linear", "epochs": 1, "random_state": 3, "annotators": "ideal"}
    return PairClassifier(**(usual | changes)).fit(PAIRS, LABELS)


class Net(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, width), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(torch.relu(self.one(x))).squeeze(-1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("model", ["linear", "mlp-bn", Net()], ids=str)
def test_a_classifier_comes_back_whole(model: Any, tmp_path: Path) -> None:
    classifier = fitted(model=model, target_prior=0.7)
    classifier.set_params(preprocessor=np.eye(2), callbacks=[print])
    classifier.save(tmp_path / "model")
    with pytest.raises(
        ValueError, match="is a model already: choose another folder, or replace it"
    ):
        classifier.save(tmp_path / "model")
    classifier.save(tmp_path / "model", overwrite=True)
    module = None if isinstance(model, str) else Net()
    loaded = PairClassifier.load(tmp_path / "model", module=module)
    x = PAIRS.reshape(-1, 3)
    assert np.array_equal(loaded.predict_proba(x), classifier.predict_proba(x))
    anew = {"preprocessor": None, "callbacks": None, "model": module or model}
    assert repr(loaded) == repr(clone(classifier).set_params(**anew, training=TrainingOptions()))
    for name in ("mean_", "scale_", "training_items_", "classes_"):
        one, other = getattr(loaded, name), getattr(classifier, name)
        assert np.array_equal(one, other) and one.dtype == other.dtype
    for name in ("history_", "n_iter_", "sign_", "slope_", "shift_", "n_features_in_", "prior_"):
        assert getattr(loaded, name) == getattr(classifier, name)
    assert all(parameter.requires_grad for parameter in loaded.module_.parameters())


def test_parameters_are_saved_as_they_were_in_the_fit(tmp_path: Path) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    classifier = fitted()
    for name in ("first", "second"):
        classifier.set_params(epochs=7, target_prior=0.1, callbacks=[interrupt])
        with pytest.raises(KeyboardInterrupt):
            classifier.fit(PAIRS, LABELS)
        classifier.save(tmp_path / name)
        classifier = PairClassifier.load(tmp_path / name)
        assert (classifier.epochs, classifier.target_prior, classifier.callbacks) == (1, None, None)


@pytest.mark.parametrize("network", [ResNet34, ResNet32])
def test_residual_networks_come_back(network: Any, tmp_path: Path) -> None:
    classifier = fitted()
    classifier.fitted_ = replace(classifier.fitted_, module=network(1))
    classifier.save(tmp_path / "model")
    loaded = PairClassifier.load(tmp_path / "model")
    assert type(loaded.module_) is network
    assert torch.equal(loaded.module_.head.weight, classifier.module_.head.weight)


def test_a_module_of_ones_own_is_asked_for(tmp_path: Path) -> None:
    classifier = fitted(model=Net())
    classifier.save(tmp_path / "model")
    zeroed = Net()
    nn.init.zeros_(zeroed.one.weight)
    loaded = PairClassifier.load(tmp_path / "model", module=zeroed)
    assert torch.equal(loaded.module_.one.weight, classifier.module_.one.weight)
    assert not zeroed.one.weight.any(), "the module zeroed is copied, not changed"
    fitted().save(tmp_path / "built in")
    for name, module, message in (
        ("model", None, r"PairClassifier\.load\(path, module=Net\(\.\.\.\)\)"),
        ("model", Net(5), r"'one.bias' is .*\[4\].* wants .*\[5\]"),
        ("model", nn.Linear(3, 1), "the tensor 'bias' is missing"),
        ("built in", Net(), "is a built-in 'mlp': leave module out"),
    ):
        with pytest.raises(ModelFolderError, match=message):
            PairClassifier.load(tmp_path / name, module=module)
    with pytest.raises(TypeError, match=r"module must be an instance of nn\.Module, such as MyNet"):
        PairClassifier.load(tmp_path / "model", module=Net)  # type: ignore[arg-type]


def test_what_cannot_be_kept_is_left_out_or_refused(tmp_path: Path) -> None:
    classifier = fitted(random_state=np.random.RandomState(0), model=lambda features: MLP(features))
    classifier.save(tmp_path / "model")
    loaded = PairClassifier.load(tmp_path / "model")
    assert (loaded.model, loaded.random_state) == ("auto", None)
    with pytest.raises(ModelFolderError, match=r"is a scikit-learn Logistic.*skops"):
        fitted(model=LogisticRegression()).save(tmp_path / "other")
    classifier.fitted_ = replace(classifier.fitted_, trained_on={"pairs": object()})
    with pytest.raises(ModelFolderError, match=r"cannot keep it: builtins\.object is not JSON"):
        classifier.save(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c, t: c.pop("output"), "missing required field `output`"),
        (lambda c, t: c["parameters"].update(code=1), "contains unknown field `code`"),
        (lambda c, t: c["output"].update(sign=2), "Invalid enum value 2"),
        (lambda c, t: c["output"].update(slope="x"), "Expected `float`, got `str`"),
        (lambda c, t: c["instances"].update(classes=[1, 2, 3]), "there are 2 classes"),
        (lambda c, t: c.update(annotators=[{"name": "ann"}]), "missing required field `answers`"),
        (lambda c, t: c.update(scales={"similarity": [1, 1]}), "a scale is its lowest and"),
        (lambda c, t: t.pop("mean"), "the tensor 'mean' is missing"),
        (lambda c, t: t.pop("network.layers.0.weight"), "tensor 'layers.0.weight' is missing"),
        (
            lambda c, t: t.update(spare=torch.ones(1)),
            "tensor 'spare' belongs to no part of the model",
        ),
        (
            lambda c, t: t.update({"network.layers.0.weight": torch.ones(2, 2)}),
            r"'layers.0.weight' is .*\[2, 2\], and the network wants",
        ),
        (lambda c, t: c["network"].update(widths=[3, 2**30]), "the network wants"),
        (lambda c, t: c["network"].update(widths=[3, -1]), "cannot be built from"),
        (lambda c, t: c["network"].update(widths=[3] * 2000), "cannot be built from"),
        (lambda c, t: c["network"].update(norm="x"), "Invalid enum value 'x'"),
        (lambda c, t: c["network"].update(kind="os.system"), "cannot be built from"),
    ],
)
def test_tampered_folders_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    fitted().save(tmp_path / "model")
    tensors, config = read_folder(tmp_path / "model")
    change(config, tensors)
    write_folder(tmp_path / "model", tensors, config)
    with pytest.raises(ModelFolderError, match=message):
        PairClassifier.load(tmp_path / "model")
