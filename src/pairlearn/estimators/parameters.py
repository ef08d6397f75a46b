"""The parameters of a PairClassifier: declared, checked, and resolved."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import torch
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from torch import nn

from pairlearn.io.cells import ColumnKind
from pairlearn.losses import LOSSES
from pairlearn.models import CONVOLUTIONAL, PERCEPTRONS
from pairlearn.risks import CORRECTIONS, RISKS, Risk, Supervised, make_risk
from pairlearn.training import Checkpoint, Precision, Recipe, choose_device
from pairlearn.training.loop import Callback, Report

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

T = TypeVar("T")
NETWORK = "mlp-bn"
"""The network that "auto" stands for, where it is not the linear model."""
MODEL_OF: dict[ColumnKind, str] = {"text": "linear", "image": "resnet8"}
"""Models that "auto" stands for, by the kind of a column."""
STEPS = 1_600
"""Steps of Adam that "auto" plans for large tables."""
IMAGE_STEPS = 400
"""The same for the image network, whose steps learn more and take longer."""


AUTO = StrOptions({"auto"})
SHARE = Interval(Real, 0, 1, closed="neither")
CONSTRAINTS: dict[str, Any] = {
    "risk": [str, Risk],
    "correction": [StrOptions(set(CORRECTIONS)), Interval(Real, -1, None, closed="left")],
    "annotators": [StrOptions({"auto", "learn", "ideal"})],
    "prior": [StrOptions({"estimate"}), SHARE],
    "majority": [StrOptions({"positive", "negative"}), None],
    "target_prior": [SHARE, None],
    "annotator_prior": [SHARE, None],
    "model": "no_validation",  # `_check_model` checks it
    "loss": [StrOptions(set(LOSSES))],
    "learning_rate": [AUTO, Interval(Real, 0, None, closed="neither")],
    "schedule": [StrOptions({"auto", "cosine", "constant"})],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "batch_size": [AUTO, Interval(Integral, 1, None, closed="left")],
    "epochs": [AUTO, Interval(Integral, 1, None, closed="left")],
    "early_stopping": ["boolean"],
    "validation_fraction": [SHARE],
    "patience": [Interval(Integral, 1, None, closed="left")],
    "standardize": ["boolean"],
    "preprocessor": "no_validation",
    "features": [callable, HasMethods(["fit", "transform"]), None],
    "labelled_weight": [AUTO, SHARE],
    "unjudged": [StrOptions({"auto", "ignore"})],
    "device": [str],
    "precision": [StrOptions({"auto", *get_args(Precision)})],
    "random_state": ["random_state"],
    "callbacks": ["array-like", None],
    "verbose": ["verbose"],
}
"""Constraints on the parameters, as scikit-learn declares them."""


def split_callbacks(objects: Iterable[Any]) -> tuple[list[Callback], Checkpoint | None]:
    """Callbacks, made of functions where necessary, and the checkpoint if there is one."""
    callbacks: list[Callback] = []
    checkpoint: Checkpoint | None = None
    for value in objects:
        if isinstance(value, Checkpoint):
            checkpoint = value
        elif isinstance(value, Callback):
            callbacks.append(value)
        elif callable(value):
            callbacks.append(Report(value))
        elif value is not None:
            raise TypeError(
                f"callbacks must be callable, or a Callback or Checkpoint; got {value!r}"
            )
    return callbacks, checkpoint


def kept_parameters(estimator: PairClassifier) -> dict[str, Any]:
    """The parameters that a fitted model goes by; the others hold data or code of the user."""
    named = estimator.get_params(deep=False).items()
    return {name: value for name, value in named if name not in ("preprocessor", "callbacks")}


def check_parameters(estimator: PairClassifier) -> None:
    """Refuse invalid parameters before any work is done."""
    estimator._validate_params()
    _check_model(estimator.model)
    if not is_scikit_learn(estimator.model):  # which trains on no device
        choose_device(estimator.device)
    if estimator.annotator_prior is not None and estimator.target_prior is None:
        raise ValueError(
            "annotator_prior is the prior to shift from, and needs target_prior to shift to"
        )
    risk_of(estimator, prior=0.3)  # any prior shows whether there is such a risk
    if is_scikit_learn(estimator.model) and str(estimator.risk).partition("-")[0] != "likelihood":
        raise ValueError(
            f"risk {str(estimator.risk)!r}: a scikit-learn classifier is trained by the pair "
            "likelihood; use risk='likelihood'"
        )


def _check_model(model: Any) -> None:
    if isinstance(model, str):
        if model not in ("auto", *PERCEPTRONS, *CONVOLUTIONAL):
            listed = ", ".join(("auto", *PERCEPTRONS, *CONVOLUTIONAL))
            raise ValueError(f"model {model!r} is unknown; choose one of {listed}")
    elif isinstance(model, type) and hasattr(model, "fit"):
        name = model.__name__
        raise TypeError(f"model is the class {name}: pass a classifier, as in {name}()")
    elif not callable(model) and not is_scikit_learn(model):
        raise TypeError(
            f"model must be one of {', '.join((*PERCEPTRONS, *CONVOLUTIONAL))}, an nn.Module, a "
            "function from the shape of an instance to one, or a scikit-learn classifier; got "
            f"{type(model).__name__}"
        )


def needs_prior(risk: str | Risk) -> bool:
    """Whether a risk, or the risk of this name, needs the class prior."""
    if isinstance(risk, Risk):
        return risk.needs_prior
    return RISKS[risk.partition("-")[0]].needs_prior


def risk_of(estimator: PairClassifier, prior: float | None) -> Risk:
    """Risk of an estimator; a correction in its name takes precedence over `correction`."""
    risk = estimator.risk
    if isinstance(risk, str):
        risk = make_risk(risk, prior=prior, loss=estimator.loss, correction=estimator.correction)
    if isinstance(risk, Supervised):
        name = str(estimator.risk)
        raise ValueError(f"risk {name!r} reads classes, not judgements: choose another risk")
    return risk


def recipe_of(estimator: PairClassifier, rows: int, seed: int) -> Recipe:
    """Settings for training an estimator on this many rows."""
    model = model_of(estimator)
    batch_size = int(_resolve(estimator.batch_size, automatic_batch_size(rows)))
    steps = IMAGE_STEPS if model == MODEL_OF["image"] else STEPS
    epochs = min(200, max(10, -(-steps // -(-rows // batch_size))))
    on_cuda = choose_device(estimator.device).type == "cuda"
    return Recipe(
        epochs=int(_resolve(estimator.epochs, epochs)),
        batch_size=batch_size,
        learning_rate=float(_resolve(estimator.learning_rate, 1e-2 if model == "linear" else 2e-3)),
        weight_decay=float(estimator.weight_decay),
        patience=int(estimator.patience),
        device=estimator.device,
        precision=_resolve(estimator.precision, "bf16" if on_cuda else "float32"),
        seed=seed,
        schedule=_resolve(
            estimator.schedule, "cosine" if estimator.learning_rate == "auto" else "constant"
        ),
    )


def _resolve(value: Any, default: Any) -> Any:
    return default if value == "auto" else value


def automatic_batch_size(rows: int) -> int:
    """Largest power of two up to rows/16, within [32, 8192]."""
    return int(2 ** min(max(math.floor(math.log2(max(rows, 1) / 16)), 5), 13))


def is_scikit_learn(model: Any) -> bool:
    """Whether a model is a scikit-learn classifier, to be trained by target completion."""
    return hasattr(model, "fit") and not isinstance(model, (nn.Module, type))


def model_of(estimator: Any) -> Any:
    """Model of an estimator, with "auto" resolved."""
    return getattr(estimator, "model_", NETWORK) if estimator.model == "auto" else estimator.model


def flattens(estimator: Any) -> bool:
    """Whether an estimator's model takes instances as vectors."""
    model = model_of(estimator)
    return isinstance(model, str) and model not in CONVOLUTIONAL


def make_module(model: Any, shape: tuple[int, ...], seed: int) -> str | nn.Module:
    """Make the model to train: a name stays, a module is copied, a function is called.

    A module starts from its current weights; those that a function makes depend on the seed.
    """
    if isinstance(model, str):
        return model
    if isinstance(model, nn.Module):
        module = copy.deepcopy(model)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = model(*shape)
    if not isinstance(module, nn.Module):
        raise TypeError(f"model must make an nn.Module; it made a {type(module).__name__}")
    _check_output(module, shape)
    return module


def _check_output(module: nn.Module, shape: tuple[int, ...]) -> None:
    """Refuse modules that do not give one logit for an instance."""
    parameter = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    training = module.training
    with torch.no_grad():
        try:
            output = module.eval()(torch.zeros(2, *shape).to(parameter))
        except (RuntimeError, ValueError, TypeError) as error:
            raise ValueError(f"model does not take instances of shape {shape}: {error}") from None
        finally:
            module.train(training)
    if output.numel() != 2:
        raise ValueError(
            "model must give one logit for each instance; for two instances it gave an output "
            f"of shape {tuple(output.shape)}"
        )
