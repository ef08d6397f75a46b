"""The parameters of a PairClassifier and its `TrainingOptions`: declared, checked, and resolved."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from pairlearn.io.cells import ColumnKind
from pairlearn.models import CONVOLUTIONAL, PERCEPTRONS
from pairlearn.risks import RISKS, ClassRisk, Risk, Supervised, make_risk
from pairlearn.training import Checkpoint, Precision, Recipe, choose_device
from pairlearn.training.loop import Callback, Report

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

#: A class prior; with more than two classes the prior of each.
Prior = float | tuple[float, ...] | None
#: The network that "auto" stands for, where it is not the linear model.
NETWORK = "mlp-bn"
#: Models that "auto" stands for, by the kind of a column.
MODEL_OF: dict[ColumnKind, str] = {"text": "linear", "image": "resnet8"}
#: Steps of Adam that "auto" plans for large tables.
STEPS = 1_600
#: The same for the image network, whose steps learn more and take longer.
IMAGE_STEPS = 400
#: Epochs without improvement after which early stopping stops.
PATIENCE = 20


AUTO = StrOptions({"auto"})
BETWEEN_0_AND_1 = Interval(Real, 0, 1, closed="neither")


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingOptions(BaseEstimator):  # type: ignore[misc]
    """How `PairClassifier` trains a network; scikit-learn classifiers ignore it.

    As a scikit-learn object it is cloned with the classifier, whose `set_params` and grid search
    reach it as ``training__learning_rate``.

    Parameters
    ----------
    batch_size : int or "auto"
        "auto" is about a sixteenth of the pairs, 32 to 8,192.
    learning_rate : float or "auto"
        Learning rate of Adam. "auto" is 0.002, and 0.01 for the linear model.
    schedule : {"auto", "cosine", "constant"}
        Whether the rate falls to zero along half a cosine in the second half of the epochs.
        "auto" is "constant" where a `learning_rate` is given, and "cosine" otherwise.
    weight_decay : float
        Weight decay of Adam, in the gradient.
    labelled_weight : float or "auto"
        Share λ of ordinary labels in the objective, (1 − λ) pairs + λ labels. "auto" counts every
        judged pair and every labelled instance as one observation of the same likelihood.
    device, precision : str
        "auto" is CUDA with bf16 products where available, else the CPU with float32.

    Examples
    --------
    >>> from pairlearn import PairClassifier
    >>> PairClassifier(training=TrainingOptions(batch_size=64))
    PairClassifier(training=TrainingOptions(batch_size=64))
    """

    batch_size: int | str = "auto"
    learning_rate: float | str = "auto"
    schedule: str = "auto"
    weight_decay: float = 1e-5
    labelled_weight: float | str = "auto"
    device: str = "auto"
    precision: str = "auto"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "batch_size": [AUTO, Interval(Integral, 1, None, closed="left")],
        "learning_rate": [AUTO, Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"auto", "cosine", "constant"})],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "labelled_weight": [AUTO, BETWEEN_0_AND_1],
        "device": [str],
        "precision": [StrOptions({"auto", *get_args(Precision)})],
    }


#: Constraints on the parameters, as scikit-learn declares them.
CONSTRAINTS: dict[str, Any] = {
    "risk": [str, Risk],
    "prior": [StrOptions({"estimate"}), BETWEEN_0_AND_1, "array-like", Mapping],
    "majority": [StrOptions({"positive", "negative"}), None],
    "target_prior": [BETWEEN_0_AND_1, None],
    "annotator_prior": [BETWEEN_0_AND_1, None],
    "annotators": [StrOptions({"auto", "learn", "ideal"})],
    "unjudged": [StrOptions({"auto", "ignore"})],
    "classes": ["array-like", Interval(Integral, 2, None, closed="left"), None],
    "model": "no_validation",  # `_check_model` checks it
    "preprocessor": "no_validation",
    "epochs": [AUTO, Interval(Integral, 1, None, closed="left")],
    "training": [TrainingOptions, None],
    "random_state": ["random_state"],
    "callbacks": ["array-like", None],
    "verbose": ["verbose"],
}


#: Parameters that are data or code of the user, which no model keeps.
OBJECTS = ("preprocessor", "callbacks")


def options_of(settings: PairClassifier) -> TrainingOptions:
    """The training options of a classifier, or the usual ones."""
    return TrainingOptions() if settings.training is None else settings.training


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


def kept_parameters(settings: PairClassifier) -> dict[str, Any]:
    """The parameters that a fitted model goes by; the others hold data or code of the user."""
    named = settings.get_params(deep=False) | {"training": clone(options_of(settings))}
    return {name: value for name, value in named.items() if name not in OBJECTS}


def check_parameters(settings: PairClassifier) -> None:
    """Refuse invalid parameters before any work is done."""
    settings._validate_params()
    options_of(settings)._validate_params()
    _check_model(settings.model)
    if not is_scikit_learn(settings.model):  # which trains on no device
        choose_device(options_of(settings).device)
    if settings.annotator_prior is not None and settings.target_prior is None:
        raise ValueError(
            "annotator_prior is the prior to shift from, and needs target_prior to shift to"
        )
    risk_of(settings, prior=0.3)  # any prior shows whether there is such a risk
    if is_scikit_learn(settings.model) and str(settings.risk).partition("-")[0] != "likelihood":
        raise ValueError(
            f"risk {str(settings.risk)!r}: a scikit-learn classifier is trained by the pair "
            "likelihood; use risk='likelihood'"
        )


def _check_model(model: Any) -> None:
    named = ("auto", *PERCEPTRONS, *CONVOLUTIONAL)
    if isinstance(model, str):
        if model not in named:
            raise ValueError(f"model {model!r} is unknown; choose one of {', '.join(named)}")
    elif isinstance(model, type) and hasattr(model, "fit"):
        name = model.__name__
        raise TypeError(f"model is the class {name}: pass a classifier, as in {name}()")
    elif not callable(model) and not is_scikit_learn(model):
        raise TypeError(
            f"model must be one of {', '.join(named[1:])}, an nn.Module, a "
            "function from the shape of an instance to one, or a scikit-learn classifier; got "
            f"{type(model).__name__}"
        )


def needs_prior(risk: str | Risk) -> bool:
    """Whether a risk, or the risk of this name, needs the class prior."""
    if isinstance(risk, Risk):
        return risk.needs_prior
    return RISKS[risk.partition("-")[0]].needs_prior


def risk_of(settings: PairClassifier, prior: Prior) -> Risk:
    """The risk of a classifier; a name without a correction has the usual one of its family."""
    risk = settings.risk
    if isinstance(risk, str) and isinstance(prior, tuple) and needs_prior(risk):
        risk = ClassRisk(risk, prior)
    elif isinstance(risk, str):
        risk = make_risk(risk, prior=None if isinstance(prior, tuple) else prior)
    if isinstance(risk, Supervised):
        name = str(settings.risk)
        raise ValueError(f"risk {name!r} reads classes, not judgements: choose another risk")
    return risk


def recipe_of(
    settings: PairClassifier, model: Any, rows: int, seed: int, share: float = 1.0
) -> Recipe:
    """How to train a model on this many rows, for a share of the epochs.

    If few epochs were chosen by hand, a share of them would be too few: then it is that share of
    the usual number, but not more than were chosen.
    """
    options = options_of(settings)
    batch_size = int(_resolve(options.batch_size, automatic_batch_size(rows)))
    steps = IMAGE_STEPS if model == MODEL_OF["image"] else STEPS
    usual = min(200, max(10, -(-steps // -(-rows // batch_size))))
    epochs = int(_resolve(settings.epochs, usual))
    if share < 1:
        epochs = max(round(share * epochs), min(round(share * usual), epochs), 5)
    cosine = "cosine" if options.learning_rate == "auto" else "constant"
    on_cuda = choose_device(options.device).type == "cuda"
    return Recipe(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=float(_resolve(options.learning_rate, 1e-2 if model == "linear" else 2e-3)),
        weight_decay=float(options.weight_decay),
        patience=PATIENCE,
        device=options.device,
        precision=_resolve(options.precision, "bf16" if on_cuda else "float32"),
        seed=seed,
        schedule=_resolve(options.schedule, cosine),
    )


def _resolve(value: Any, default: Any) -> Any:
    return default if value == "auto" else value


def automatic_batch_size(rows: int) -> int:
    """Largest power of two up to rows/16, within [32, 8192]."""
    return int(2 ** min(max(math.floor(math.log2(max(rows, 1) / 16)), 5), 13))


def is_scikit_learn(model: Any) -> bool:
    """Whether a model is a scikit-learn classifier, to be trained by target completion."""
    return hasattr(model, "fit") and not isinstance(model, (nn.Module, type))


def flattens(model: Any) -> bool:
    """Whether a model takes instances as vectors."""
    return is_scikit_learn(model) or (isinstance(model, str) and model not in CONVOLUTIONAL)


def make_module(model: Any, shape: tuple[int, ...], seed: int, outputs: int = 1) -> str | nn.Module:
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
    _check_output(module, shape, outputs)
    return module


def _check_output(module: nn.Module, shape: tuple[int, ...], outputs: int) -> None:
    """Refuse modules that do not give one logit, or one for each class, for an instance."""
    parameter = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    training = module.training
    with torch.no_grad():
        try:
            output = module.eval()(torch.zeros(2, *shape).to(parameter))
        except (RuntimeError, ValueError, TypeError) as error:
            raise ValueError(f"model does not take instances of shape {shape}: {error}") from None
        finally:
            module.train(training)
    if output.numel() != 2 * outputs:
        logits = "one logit" if outputs == 1 else f"{outputs} logits, one for each class,"
        raise ValueError(
            f"model must give {logits} for each instance; for two instances it gave an output "
            f"of shape {tuple(output.shape)}"
        )
