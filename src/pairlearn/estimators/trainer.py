"""Training of one classifier: a fleet of one, averaged weights, early stopping.

Under label noise the weights of single epochs scatter around good ones. What is kept and
evaluated is therefore an average over epochs, w̄ ← k w̄ + (1 − k) w with
k = min(.9, (e − 1)/(e + 9)) after epoch e: about the last tenth of the training so far.
On Letter with noise of σ = .5 (two seeds, 60 epochs, an average of the same kind) that was
worth about .003 beside the best single epoch by held-out risk, and .01 beside the last one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pairlearn.estimators.objective import PairObjective
from pairlearn.estimators.progress import Progress
from pairlearn.estimators.rows import Rows
from pairlearn.risks import AffineRisk, Risk
from pairlearn.training import Fleet, Group, Member, Precision, choose_device

__all__ = ["History", "Recipe", "Trained", "WeightAverage", "module_logits", "train"]

History = list[dict[str, float]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How to train: everything but the data and the risk."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    patience: int
    device: str = "auto"
    precision: Precision = "float32"
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """A trained module, the epoch it is of, and the record of all epochs.

    Attributes
    ----------
    sign : int
        −1 where the module's outputs are the log-odds of the negative class.
    """

    module: nn.Module
    epoch: int
    history: History
    sign: int = 1


class WeightAverage:
    """The average of a network's weights over epochs."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.state: dict[str, Tensor] = {}

    def update(self, epoch: int) -> None:
        """Take in the weights after an epoch."""
        kept = min(0.9, (epoch - 1) / (epoch + 9)) if self.state else 0.0
        for name, value in self.network.state_dict().items():
            if kept and value.is_floating_point():
                self.state[name].lerp_(value.detach(), 1 - kept)
            else:
                self.state[name] = value.detach().clone()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The network with the averaged weights, for as long as this lasts."""
        present = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.network.load_state_dict(self.state)
        yield
        self.network.load_state_dict(present)


def train(
    features: Any,
    rows: Rows,
    risk: Risk,
    model: str | nn.Module,
    recipe: Recipe,
    *,
    held_out: Rows | None = None,
    held_prior: float | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train a model on rows; with held-out rows, up to the epoch that is best on them.

    Training stops when `recipe.patience` epochs have not improved the risk of the
    held-out rows, and the weights of the best epoch are kept.

    Similarities are the same with the classes exchanged. Where they say more than the
    rest of a table, as at a prior far from ½, training can settle on the wrong side of
    what the rest says. If exchanging the classes of the trained model lowers the
    objective, training goes on from there.
    """
    device = choose_device(recipe.device)
    dtype = torch.float64 if recipe.precision == "float64" else torch.float32
    objective = PairObjective(risk, rows, held_prior=held_prior, device=device, dtype=dtype)
    first = _train(features, rows, risk, model, recipe, objective, held_out, progress)
    alone = len(objective.names) == 1
    if alone and (objective.names[0] == "similarity" or isinstance(risk, AffineRisk)):
        return first  # similarities cannot tell the sides, and a class prior does
    z = torch.from_numpy(module_logits(first.module, features)[rows.ends].T).to(device, dtype)
    if objective.of(rows, z[0], z[1]) <= objective.of(rows, -z[0], -z[1]):
        return first
    objective.sign = -1
    second = _train(features, rows, risk, first.module, recipe, objective, held_out, progress)
    done = len(first.history)
    later = [row | {"epoch": row["epoch"] + done} for row in second.history]
    return replace(second, epoch=second.epoch + done, history=first.history + later, sign=-1)


def _train(
    features: Any,
    rows: Rows,
    risk: Risk,
    model: str | nn.Module,
    recipe: Recipe,
    objective: PairObjective,
    held_out: Rows | None,
    progress: Progress | None,
) -> Trained:
    told = np.stack([rows.u, rows.v], 1)
    member = Member(risk, told, recipe.learning_rate, recipe.weight_decay, recipe.seed)
    fleet = Fleet(
        features,
        [Group(rows.ends, [member], recipe.seed)],
        model,
        batch_size=recipe.batch_size,
        device=recipe.device,
        precision=recipe.precision,
        compiled=False,  # compiling takes longer than most trainings of one table
        objective=objective,
    )
    average = WeightAverage(fleet.network)
    best_risk, best_epoch, best = float("inf"), 0, average.state
    history: History = []
    while fleet.epoch < recipe.epochs and not (
        held_out is not None and fleet.epoch - best_epoch >= recipe.patience
    ):
        row = _train_epoch(fleet)
        average.update(fleet.epoch)
        if held_out is not None:
            with average.in_use():
                logits = fleet.logits(held_out.ends.T.reshape(-1))[0, 0].reshape(2, -1)
            row["validation_risk"] = objective.of(held_out, logits[0], logits[1])
            if row["validation_risk"] < best_risk:
                best_risk, best_epoch = row["validation_risk"], fleet.epoch
                best = {name: value.clone() for name, value in average.state.items()}
        history.append(row)
        if progress is not None:
            progress(recipe.epochs, row)
    # Without a best epoch (none was looked for, or every risk was NaN) the last one.
    fleet.network.load_state_dict(best if best_epoch else average.state)
    return Trained(fleet.module(), best_epoch or fleet.epoch, history)


def _train_epoch(fleet: Fleet) -> dict[str, float]:
    risks: list[float] = []
    start = time.perf_counter()
    fleet.fit(fleet.epoch + 1, progress=lambda _, risk: risks.append(risk))
    return {"epoch": fleet.epoch, "risk": risks[0], "seconds": time.perf_counter() - start}


def module_logits(module: nn.Module, features: NDArray[np.float32], rows: int = 8192) -> Floats:
    """Outputs of a module for instances, a chunk at a time, in float64."""
    parameter = next(module.parameters(), torch.zeros(()))
    parts = []
    with torch.inference_mode():
        for start in range(0, len(features), rows):
            x = torch.from_numpy(features[start : start + rows]).to(parameter)
            parts.append(module(x).reshape(len(x)).double().cpu().numpy())
    return np.concatenate(parts)
