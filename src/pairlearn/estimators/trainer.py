"""Training of one classifier: a fleet of one, with early stopping on held-out rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pairlearn.estimators.objective import PairObjective
from pairlearn.estimators.progress import Progress
from pairlearn.estimators.rows import Rows
from pairlearn.risks import Risk
from pairlearn.training import Fleet, Group, Member, Precision, choose_device

__all__ = ["History", "Recipe", "Trained", "module_logits", "train"]

History = list[dict[str, float]]


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
    """A trained module, the epoch it is of, and the record of all epochs."""

    module: nn.Module
    epoch: int
    history: History


@dataclass
class _Best:
    """The best state so far by the risk of the held-out rows."""

    risk: float = float("inf")
    epoch: int = 0
    state: dict[str, Tensor] = field(default_factory=dict)

    def offer(self, risk: float, fleet: Fleet) -> None:
        if risk < self.risk:
            self.risk, self.epoch = risk, fleet.epoch
            self.state = {n: t.detach().clone() for n, t in fleet.network.state_dict().items()}


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
    held-out rows, and the weights of the best epoch are restored.
    """
    device = choose_device(recipe.device)
    dtype = torch.float64 if recipe.precision == "float64" else torch.float32
    objective = PairObjective(risk, rows, held_prior=held_prior, device=device, dtype=dtype)
    told = np.stack([rows.u, rows.v], 1)
    member = Member(risk, told, recipe.learning_rate, recipe.weight_decay, recipe.seed)
    fleet = Fleet(
        features,
        [Group(rows.ends, [member], recipe.seed)],
        model,
        batch_size=recipe.batch_size,
        device=str(device),
        precision=recipe.precision,
        objective=objective,
    )
    history: History = []
    best = _Best()
    while fleet.epoch < recipe.epochs:
        row = _train_epoch(fleet)
        if held_out is not None:
            logits = fleet.logits(held_out.ends.T.reshape(-1))[0, 0].reshape(2, -1)
            row["validation_risk"] = objective.of(held_out, logits[0], logits[1])
            best.offer(row["validation_risk"], fleet)
        history.append(row)
        if progress is not None:
            progress(recipe.epochs, row)
        if held_out is not None and fleet.epoch - best.epoch >= recipe.patience:
            break
    if best.state:
        fleet.network.load_state_dict(best.state)
    return Trained(fleet.module(), best.epoch or fleet.epoch, history)


def _train_epoch(fleet: Fleet) -> dict[str, float]:
    risks: list[float] = []
    start = time.perf_counter()
    fleet.fit(fleet.epoch + 1, progress=lambda _, risk: risks.append(risk))
    return {"epoch": fleet.epoch, "risk": risks[0], "seconds": time.perf_counter() - start}


def module_logits(
    module: nn.Module, features: NDArray[np.float32], rows: int = 8192
) -> NDArray[np.float64]:
    """Outputs of a module for instances, a chunk at a time, in float64."""
    parameter = next(module.parameters(), torch.zeros(()))
    parts = []
    with torch.inference_mode():
        for start in range(0, len(features), rows):
            x = torch.from_numpy(features[start : start + rows]).to(parameter)
            parts.append(module(x).reshape(len(x)).double().cpu().numpy())
    return np.concatenate(parts)
