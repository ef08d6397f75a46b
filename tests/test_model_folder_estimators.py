"""Estimators in model folders: what comes back, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from torch import nn

from pairlearn import PriorEstimate
from pairlearn.estimators.folder_format import ModelFolderError, read_folder, write_folder
from pairlearn.estimators.model_folder import load_classifier, save_classifier
from pairlearn.models import MLP, ResNet32, ResNet34


class Fake(BaseEstimator):  # type: ignore[misc]
    """An estimator with attributes of every kind that a folder keeps."""

    def __init__(
        self,
        model: Any = "mlp",
        patience: float = 5,
        preprocessor: Any = None,
        hidden: Any = (4, 3),
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.patience = patience
        self.preprocessor = preprocessor
        self.hidden = hidden
        self.random_state = random_state

    def fit(self) -> Fake:
        torch.manual_seed(0)
        self.module_ = (
            MLP(3, self.hidden, norm="all") if isinstance(self.model, str) else self.model
        )
        self.mean_, self.scale_ = np.array([1.0, 2.0, 3.0]), np.ones(3, np.float32)
        self.classes_ = np.array([0, 1])
        self.feature_names_in_ = np.array(["a", "b", "ç"], dtype=object)
        self.shift_, self.n_features_in_ = np.float64(0.25), 3
        self.history_ = [{"epoch": 0, "risk": float("inf")}, {"epoch": 1, "risk": 0.5}]
        self.prior_ = PriorEstimate(0.2, 0.1, 0.3, 0.68, 100)
        self._scratch = object()
        return self


class Net(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, width), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(torch.relu(self.one(x))).squeeze(-1)  # type: ignore[no-any-return]


def test_an_estimator_comes_back_whole(tmp_path: Path) -> None:
    fitted = Fake(patience=float("inf"), preprocessor=np.eye(2), random_state=3).fit()
    save_classifier(fitted, tmp_path / "model")
    loaded = load_classifier(Fake, tmp_path / "model")
    x = torch.randn(5, 3)
    with torch.no_grad():
        assert torch.equal(loaded.module_(x), fitted.module_.eval()(x))
    assert loaded.get_params() == {**fitted.get_params(), "preprocessor": None}
    assert loaded.hidden == (4, 3) and loaded.patience == float("inf")
    for name in ("mean_", "scale_", "classes_", "feature_names_in_"):
        one, other = getattr(loaded, name), getattr(fitted, name)
        assert np.array_equal(one, other) and one.dtype == other.dtype
    assert loaded.history_ == fitted.history_ and loaded.prior_ == fitted.prior_
    assert (loaded.shift_, loaded.n_features_in_) == (0.25, 3)
    assert not hasattr(loaded, "_scratch")
    assert all(parameter.requires_grad for parameter in loaded.module_.parameters())


@pytest.mark.parametrize("network", [ResNet34, ResNet32])
def test_residual_networks_come_back(network: Any, tmp_path: Path) -> None:
    fitted = Fake(model=network(1)).fit()
    save_classifier(fitted, tmp_path / "model")
    loaded = load_classifier(Fake, tmp_path / "model")
    assert type(loaded.module_) is network
    assert torch.equal(loaded.module_.head.weight, fitted.module_.head.weight)


def test_a_module_of_ones_own_is_asked_for(tmp_path: Path) -> None:
    fitted = Fake(model=Net()).fit()
    save_classifier(fitted, tmp_path / "model")
    with pytest.raises(ModelFolderError, match=r"Fake\.load\(path, module=Net\(\.\.\.\)\)"):
        load_classifier(Fake, tmp_path / "model")
    given = Net()
    nn.init.zeros_(given.one.weight)
    loaded = load_classifier(Fake, tmp_path / "model", module=given)
    assert torch.equal(loaded.module_.one.weight, fitted.module_.one.weight)
    assert not given.one.weight.any(), "the module given is copied, not changed"
    with pytest.raises(ModelFolderError, match=r"'one.bias' is .*\[4\].* wants .*\[5\]"):
        load_classifier(Fake, tmp_path / "model", module=Net(5))
    with pytest.raises(ModelFolderError, match="the tensor 'bias' is missing"):
        load_classifier(Fake, tmp_path / "model", module=nn.Linear(3, 1))
    with pytest.raises(TypeError, match=r"module must be an instance of nn\.Module, such as MyNet"):
        load_classifier(Fake, tmp_path / "model", module=Net)  # type: ignore[arg-type]


def test_functions_and_generators_are_not_kept(tmp_path: Path) -> None:
    fitted = Fake(random_state=np.random.RandomState(0)).fit()
    fitted.model = lambda features: MLP(features)
    save_classifier(fitted, tmp_path / "model")
    loaded = load_classifier(Fake, tmp_path / "model")
    assert (loaded.model, loaded.random_state) == ("mlp", None)


def test_scikit_learn_models_are_refused_with_advice(tmp_path: Path) -> None:
    fitted = Fake(model=LogisticRegression())
    fitted.module_ = Net()
    with pytest.raises(
        ModelFolderError, match=r"parameter model is a scikit-learn Logistic.*skops"
    ):
        save_classifier(fitted, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="this Fake has no network: fit it before"):
        save_classifier(Fake(), tmp_path / "model")
    fitted = Fake().fit()
    fitted.extra_ = object()
    with pytest.raises(ModelFolderError, match=r"Fake\.extra_ is a builtins\.object, which a mod"):
        save_classifier(fitted, tmp_path / "model")


def tampered(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    save_classifier(Fake().fit(), path)
    tensors, config = read_folder(path)
    change(config, tensors)
    write_folder(path, tensors, config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c, t: c.update(estimator="Other"), "holds a Other, not a Fake"),
        (lambda c, t: c.pop("fitted"), "config: Object missing required field `fitted`"),
        (lambda c, t: c["parameters"].update(code=1), "Fake has no parameter 'code'"),
        (lambda c, t: c["fitted"].update(fit=1), "'fit' is not a fitted attribute of Fake"),
        (lambda c, t: c["fitted"].update(__class__=1), "'__class__' is not a fitted attribute"),
        (lambda c, t: c["fitted"].update(a_={"record": "os", "fields": {}}), "is not readable"),
        (lambda c, t: c["fitted"].update(a_={"call": "os.system"}), "is not readable"),
        (lambda c, t: t.pop("module_.layers.0.weight"), "the tensor 'layers.0.weight' is missing"),
        (lambda c, t: t.update(spare=torch.ones(1)), "tensor 'spare' belongs to nothing"),
        (
            lambda c, t: t.update({"module_.layers.0.weight": torch.ones(2, 2)}),
            r"'layers.0.weight' is .*\[2, 2\]}, and the network wants",
        ),
        (
            lambda c, t: c["networks"]["module_"].update(widths=[3, 2**30, 2**30]),
            "the network wants",
        ),
        (lambda c, t: c["networks"]["module_"].update(widths=[3, -1]), "cannot be built from"),
        (lambda c, t: c["networks"]["module_"].update(widths=[3] * 2000), "cannot be built from"),
        (lambda c, t: c["networks"]["module_"].update(norm="x"), "cannot be built from"),
        (lambda c, t: c["networks"]["module_"].update(kind="os.system"), "cannot be built from"),
    ],
)
def test_tampered_estimators_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    tampered(tmp_path / "model", change)
    with pytest.raises(ModelFolderError, match=message):
        load_classifier(Fake, tmp_path / "model")


def test_a_module_for_a_built_in_network_is_refused(tmp_path: Path) -> None:
    save_classifier(Fake().fit(), tmp_path / "model")
    with pytest.raises(ModelFolderError, match="is a built-in 'mlp': leave module out"):
        load_classifier(Fake, tmp_path / "model", module=Net())
