"""Training of all methods on one fold: one fleet where that is possible."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.guidance import guiding_prior
from pairlearn.estimators.parameters import recipe_of
from pairlearn.estimators.population import PriorMismatchWarning, need_of
from pairlearn.estimators.scaling import feature_scale, standardised
from pairlearn.judgements import Judgements
from pairlearn.risks import make_risk
from pairlearn.training.loop import Report
from pairlearn.training.trainer import Trained, module_logits, train

__all__ = ["Decide", "can_train_together", "train_apart", "train_together"]

Floats = NDArray[np.float64]
Decide = Callable[[NDArray[Any]], Floats]
"""Log-odds (m,) of instances (m, d, ...) by a trained model."""
STACKED = ("mlp", "mlp-bn", "linear")


def can_train_together(said: Judgements, model: Any) -> bool:
    """Whether one fleet can train all methods.

    A module of one's own trains alone, and tables that have to be told the larger class or
    the class prior are settled by each classifier on its own.
    """
    plain = isinstance(model, str) and model in STACKED
    return plain and need_of(said, prior_known=False) == "nothing"


def train_together(
    features: NDArray[Any],
    said: Judgements,
    methods: Sequence[str],
    prior: float | None,
    classifier: PairClassifier,
    seed: int,
    tick: Callable[[], None],
) -> list[Decide]:
    """Train one model a method on the same rows, batches and initial weights.

    Each is the model that a `PairClassifier` with these parameters trains.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances that the rows refer to.
    said : Judgements
        Rows to train on.
    methods : sequence of str
        Names for `make_risk`.
    prior : float, optional
        The class prior that the affine risks are given.
    classifier : PairClassifier
        Its parameters say how to train.
    seed : int
        Of initial weights and batches, as `random_state`.
    tick : callable
        Called after each epoch.
    """
    seed = int(check_random_state(seed).randint(2**31 - 1))
    mean, scale = feature_scale(features, said.item_weight(len(features)))
    prepared = standardised(features, mean, scale).reshape(len(features), -1)
    recipe = recipe_of(classifier, len(said), seed)
    ticks = iter([tick] * recipe.epochs)  # a second round on the other side is not counted
    trained = train(
        prepared,
        said.scaled(len(said) / said.weight.sum()).packed(seed),
        [make_risk(name, prior=prior) for name in methods],
        classifier.model,
        recipe,
        guiding_prior=guiding_prior(prepared, said, seed),
        callbacks=[Report(lambda epochs, row: next(ticks, _nothing)())],
    )
    return [_decide(one, mean, scale) for one in trained]


def train_apart(
    features: NDArray[Any],
    said: Judgements,
    methods: Sequence[str],
    prior: float | None,
    classifier: PairClassifier,
    seed: int,
    tick: Callable[[], None],
) -> list[Decide]:
    """Train one `PairClassifier` a method: any module, tables that need to be told something.

    Parameters are those of `train_together`; `tick` is called after each method.
    """
    trained: list[Decide] = []
    for name in methods:
        one = clone(classifier).set_params(risk=name, random_state=seed, preprocessor=features)
        if prior is not None:
            one.set_params(prior=prior)
        with warnings.catch_warnings():
            # Said once of the whole table, not for every fold and method.
            warnings.simplefilter("ignore", PriorMismatchWarning)
            one.fit(None, said)
        trained.append(one.decision_function)
        tick()
    return trained


def _nothing() -> None:
    return


def _decide(trained: Trained, mean: Floats, scale: Floats) -> Decide:
    def decide(instances: NDArray[Any]) -> Floats:
        ready = standardised(instances, mean, scale).reshape(len(instances), -1)
        return trained.sign * module_logits(trained.module, ready)

    return decide
