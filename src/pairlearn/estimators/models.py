"""The `model` of a PairClassifier: a name, a module, what makes one, or scikit-learn's."""

from __future__ import annotations

import copy
from typing import Any, Literal

import torch
from torch import nn

from pairlearn.models import CONVOLUTIONAL

__all__ = ["MODELS", "flattens", "is_scikit_learn", "make_module"]

MODELS = ("mlp", "mlp-bn", "linear", *CONVOLUTIONAL)
Name = Literal["mlp", "mlp-bn", "linear", "resnet34", "resnet32"]


def is_scikit_learn(model: Any) -> bool:
    """Whether a model is a scikit-learn classifier, to be trained by target completion."""
    return hasattr(model, "fit") and not isinstance(model, (nn.Module, type))


def flattens(model: Any) -> bool:
    """Whether a model reads instances as vectors."""
    return isinstance(model, str) and model not in CONVOLUTIONAL


def make_module(model: Any, shape: tuple[int, ...], seed: int) -> str | nn.Module:
    """What to train: a name as it is, a copy of a module, or what a function makes.

    A module starts from the weights that it is given with, and a function from weights
    that the seed determines.

    Examples
    --------
    >>> make_module(lambda d: nn.Linear(d, 1), (3,), seed=0)
    Linear(in_features=3, out_features=1, bias=True)
    """
    if isinstance(model, str):
        if model not in MODELS:
            raise ValueError(f"model {model!r} is unknown; choose one of {', '.join(MODELS)}")
        return model
    if isinstance(model, nn.Module):
        module = copy.deepcopy(model)
    elif callable(model):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = model(*shape)
    else:
        module = model
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"model must be one of {', '.join(MODELS)}, an nn.Module, a function from the shape "
            f"of an instance to one, or a scikit-learn classifier; got {type(module).__name__}"
        )
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
