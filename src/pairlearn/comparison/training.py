"""Training of all methods on one fold: one fleet where that is possible."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor, nn

from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.parameters import recipe_of
from pairlearn.estimators.population import PriorMismatchWarning
from pairlearn.estimators.scaling import feature_scale, standardised
from pairlearn.estimators.table import Judgements
from pairlearn.estimators.trainer import WeightAverage, module_logits
from pairlearn.labels import PairLabels
from pairlearn.risks import Risk, contract, correct, make_risk, pair_moments
from pairlearn.training import Fleet, Group, Member, Total, choose_device

__all__ = ["Decide", "can_train_together", "chosen_rows", "train_apart", "train_together"]

Floats = NDArray[np.float64]
Decide = Callable[[NDArray[Any]], Floats]
"""Log-odds (m,) of instances (m, d, ...) by a trained model."""

STACKED = ("mlp", "mlp-bn", "linear")


def chosen_rows(said: Judgements, rows: Any) -> Judgements:
    """Some rows of a table of judgements."""
    names = ("ends", "similarity", "difference", "preference", "weight")
    return replace(said, **{name: getattr(said, name)[rows] for name in names})


def can_train_together(said: Judgements, model: Any) -> bool:
    """Whether one fleet can train all methods: every row has both judgements and no more.

    A row that lacks one needs terms of its own, by which methods differ, and so does a
    preference; a module of one's own trains alone.
    """
    complete = not np.isnan(said.similarity + said.difference).any()
    plain = isinstance(model, str) and model in STACKED
    return plain and complete and not said.preference.any()


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

    Each is the model that a `PairClassifier` with these parameters would train.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances that the rows refer to.
    said : Judgements
        Rows to train on, both judgements in each.
    methods : sequence of str
        Names for `make_risk`.
    prior : float, optional
        The class prior that the affine risks are given.
    classifier : PairClassifier
        Its parameters say how to train.
    seed : int
        Of initial weights and batches.
    tick : callable
        Called after each epoch.
    """
    instance_weight = np.bincount(
        said.ends.ravel(), np.repeat(said.weight, 2), minlength=len(features)
    )
    mean, scale = feature_scale(features, instance_weight.astype(np.float64))
    recipe = recipe_of(classifier, len(said.ends), seed)
    risks = [make_risk(name, prior=prior) for name in methods]
    labels = np.stack([said.similarity, said.difference], 1)
    members = [
        Member(risk, labels, recipe.learning_rate, recipe.weight_decay, seed) for risk in risks
    ]
    device = choose_device(recipe.device)
    dtype = torch.float64 if recipe.precision == "float64" else torch.float32
    equal = bool((said.weight == said.weight[0]).all())
    fleet = Fleet(
        standardised(features, mean, scale).reshape(len(features), -1),
        [Group(said.ends, members, seed)],
        classifier.model,
        batch_size=recipe.batch_size,
        device=recipe.device,
        precision=recipe.precision,
        compiled=False,  # compiling takes longer than most trainings of one table
        objective=None if equal else _Weighted(risks, said.weight, device, dtype),
    )
    average = WeightAverage(fleet.network)
    while fleet.epoch < recipe.epochs:
        fleet.fit(fleet.epoch + 1)
        average.update(fleet.epoch)
        tick()
    fleet.network.load_state_dict(average.state)
    return [_decide(fleet.module(0, m), mean, scale) for m in range(len(methods))]


def train_apart(
    features: NDArray[Any],
    said: Judgements,
    methods: Sequence[str],
    prior: float | None,
    classifier: PairClassifier,
    seed: int,
    tick: Callable[[], None],
) -> list[Decide]:
    """Train one `PairClassifier` a method: rows with one judgement, preferences, any module.

    Parameters are those of `train_together`; `tick` is called after each method.
    """
    trained: list[Decide] = []
    labels: Any = np.stack([said.similarity, said.difference], 1)
    if not np.isnan(labels).all(1).any():
        labels = PairLabels.from_array(labels, noisy=True)  # they were checked before
    for name in methods:
        one = clone(classifier).set_params(risk=name, random_state=seed, preprocessor=features)
        if prior is not None:
            one.set_params(prior=prior)
        with warnings.catch_warnings():
            # Said once of the whole table, not for every fold and method.
            warnings.simplefilter("ignore", PriorMismatchWarning)
            one.fit(said.ends, labels, sample_weight=said.weight, preference=said.preference)
        trained.append(one.decision_function)
        tick()
    return trained


class _Weighted:
    """The sum of the members' risks, each pair with a weight of its own."""

    def __init__(
        self, risks: Sequence[Risk], weight: Floats, device: torch.device, dtype: torch.dtype
    ) -> None:
        rows = max(len(risk.table) for risk in risks)
        tables = [
            nn.functional.pad(risk.table, (0, 0, 0, 0, 0, rows - len(risk.table))) for risk in risks
        ]
        self.tables = torch.stack(tables).unsqueeze(0).to(device, dtype)
        slopes = torch.tensor([[[risk.slope] for risk in risks]])
        self.slopes, self.loss = slopes.to(device, dtype), risks[0].loss
        self.columns: Sequence[Tensor] = [torch.from_numpy(weight * (len(weight) / weight.sum()))]

    def __call__(
        self,
        left: Tensor,
        right: Tensor,
        u: Tensor,
        v: Tensor,
        share: Tensor,
        *columns: Tensor,
        total: Total,
    ) -> Tensor:
        """The sum over the members."""
        # Batches with heavy pairs count for more, so that an epoch weighs pairs as the table.
        moments = total(pair_moments(left, right, u, v, self.loss, share=share * columns[0]))
        return correct(contract(self.tables, moments), self.slopes).sum()


def _decide(module: nn.Module, mean: Floats, scale: Floats) -> Decide:
    def decide(instances: NDArray[Any]) -> Floats:
        prepared = standardised(np.asarray(instances), mean, scale)
        return module_logits(module, prepared.reshape(len(prepared), -1))

    return decide
