"""Training of one classifier: a fleet of one, averaged weights, early stopping.

Under label noise the weights of single epochs scatter around good ones. What is kept and
evaluated is therefore an average over epochs, w̄ ← k w̄ + (1 − k) w with
k = min(.9, (e − 1)/(e + 9)) after epoch e: about the last tenth of the training so far.
On Letter with noise of σ = .5 (two seeds, 60 epochs, an average of the same kind) that was
worth about .003 beside the best single epoch by held-out risk, and .01 beside the last one.
"""

from __future__ import annotations

import hashlib
import json
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
from pairlearn.training import (
    Checkpoint,
    Fleet,
    Group,
    Member,
    Precision,
    choose_device,
    current_ranks,
)
from pairlearn.training.checkpoint import Arrays
from pairlearn.training.stream import PairStream

__all__ = ["History", "Recipe", "Trained", "WeightAverage", "module_logits", "train"]

History = list[dict[str, float]]
Floats = NDArray[np.float64]
GUIDED = 0.25
"""Part of the epochs in which mean(p) is drawn to the guiding prior."""


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
    source: PairStream | None = None,
    held_out: Rows | None = None,
    held_prior: float | None = None,
    guiding_prior: float | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train a model on rows; with held-out rows, up to the epoch that is best on them.

    Training stops when `recipe.patience` epochs have not improved the risk of the
    held-out rows, and the weights of the best epoch are kept.

    Similarities are the same with the classes exchanged. Where they say more than the
    rest of a table, as at a prior far from ½, training can settle on the wrong side of
    what the rest says. If exchanging the classes of the trained model lowers the
    objective, training goes on from there. A `guiding_prior` keeps networks that learn pairs
    by heart from the reflection of some of them (`pairlearn.estimators.guidance`).

    Pairs that do not fit into memory come from a `source`. Then `rows` are a sample of them,
    with one of every kind at least, by which the objective is made and the sides compared.
    """
    device = choose_device(recipe.device)
    dtype = torch.float64 if recipe.precision == "float64" else torch.float32
    objective = PairObjective(
        risk, rows, held_prior=held_prior, guiding_prior=guiding_prior, device=device, dtype=dtype
    )
    member = Member(
        risk,
        np.stack([rows.u, rows.v], 1) if source is None else None,
        recipe.learning_rate,
        recipe.weight_decay,
        recipe.seed,
    )
    group = Group(rows.ends if source is None else source, [member], recipe.seed)
    first = _train(features, group, model, recipe, objective, held_out, progress, checkpoint)
    alone = len(objective.names) == 1
    if alone and (objective.names[0] == "similarity" or isinstance(risk, AffineRisk)):
        return first  # similarities cannot tell the sides, and a class prior does
    z = torch.from_numpy(module_logits(first.module, features)[rows.ends].T).to(device, dtype)
    gain = objective.of(rows, z[0], z[1]) - objective.of(rows, -z[0], -z[1])
    if current_ranks().agree(gain, device) <= 0:
        return first
    objective.sign = -1
    checkpoint = checkpoint and checkpoint.after()
    second = _train(
        features, group, first.module, recipe, objective, held_out, progress, checkpoint
    )
    done = len(first.history)
    later = [row | {"epoch": row["epoch"] + done} for row in second.history]
    return replace(second, epoch=second.epoch + done, history=first.history + later, sign=-1)


def _train(
    features: Any,
    group: Group,
    model: str | nn.Module,
    recipe: Recipe,
    objective: PairObjective,
    held_out: Rows | None,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> Trained:
    fleet = Fleet(
        features,
        [group],
        model,
        batch_size=recipe.batch_size,
        device=recipe.device,
        precision=recipe.precision,
        compiled=False,  # compiling takes longer than most trainings of one table
        objective=objective,
    )
    course = Course(fleet, recipe, held_out, objective)
    return course.run(progress, checkpoint)


class Course:
    """A training on its way: the fleet of one, averaged weights, the best epoch so far.

    Parameters
    ----------
    fleet : Fleet
        Of one model.
    recipe : Recipe
        How long to train.
    held_out : Rows, optional
        What early stopping looks at.
    objective : PairObjective
        What is minimised.
    """

    def __init__(
        self, fleet: Fleet, recipe: Recipe, held_out: Rows | None, objective: PairObjective
    ) -> None:
        self.fleet, self.recipe = fleet, recipe
        self.held_out, self.objective = held_out, objective
        self.average = WeightAverage(fleet.network)
        self.best_risk, self.best_epoch = float("inf"), 0
        self.best: dict[str, Tensor] = {}
        self.history: History = []
        self.seconds = 0.0  # of the epoch that has begun

    def run(self, progress: Progress | None, checkpoint: Checkpoint | None = None) -> Trained:
        """Train to the end, from the checkpoint on if there is one.

        The last checkpoint is that of the finished training: whoever asked for it removes
        it when what came out is safe.
        """
        work = self.work() if checkpoint is not None else ""
        if checkpoint is not None and (state := checkpoint.load(work)) is not None:
            self.load_state(state)
            if progress is not None:
                for row in self.history:
                    progress(self.recipe.epochs, row)
        start = time.perf_counter() - self.seconds

        def keep(*, finished: bool = False) -> None:
            if checkpoint is not None and self.fleet.ranks.first and (finished or checkpoint.due()):
                self.seconds = time.perf_counter() - start
                checkpoint.save(self.state(), work)

        while not self.finished():
            done = self.fleet.epoch / (GUIDED * self.recipe.epochs)
            self.objective.guidance.fill_(max(0.0, 1.0 - done))
            risk = self.fleet.train_epoch(keep)
            row = {
                "epoch": self.fleet.epoch,
                "risk": risk(),
                "seconds": time.perf_counter() - start,
            }
            self._take(row)
            start = time.perf_counter()
            if progress is not None:
                progress(self.recipe.epochs, row)
            keep(finished=self.finished())
        # Without a best epoch (none was looked for, or every risk was NaN) the last one.
        self.fleet.network.load_state_dict(self.best if self.best_epoch else self.average.state)
        return Trained(self.fleet.module(), self.best_epoch or self.fleet.epoch, self.history)

    def finished(self) -> bool:
        """Whether all epochs are done, or none of the last ones was better."""
        waited = self.fleet.epoch - self.best_epoch
        patient = self.held_out is None or waited < self.recipe.patience
        return self.fleet.epoch >= self.recipe.epochs or not patient

    def _take(self, row: dict[str, float]) -> None:
        """Average the weights after an epoch, and see whether they are better."""
        fleet, held_out = self.fleet, self.held_out
        self.average.update(fleet.epoch)
        if held_out is not None:
            with self.average.in_use():
                logits = fleet.logits(held_out.ends.T.reshape(-1))[0, 0].reshape(2, -1)
            risk = self.objective.of(held_out, logits[0], logits[1])
            row["validation_risk"] = fleet.ranks.agree(risk, fleet.device)
            if row["validation_risk"] < self.best_risk:
                self.best_risk, self.best_epoch = row["validation_risk"], fleet.epoch
                self.best = {name: value.clone() for name, value in self.average.state.items()}
        self.history.append(row)

    def state(self) -> Arrays:
        """Everything to go on from, between two steps."""
        about = {
            "best_risk": self.best_risk,
            "best_epoch": self.best_epoch,
            "history": self.history,
            "seconds": self.seconds,
        }
        kept = {"average": self.average.state, "best": self.best}
        tensors = {f"{of}/{name}": t for of, part in kept.items() for name, t in part.items()}
        arrays = {f"course/{name}": tensor.cpu().numpy() for name, tensor in tensors.items()}
        return self.fleet.state() | arrays | {"course": np.array(json.dumps(about))}

    def load_state(self, state: Arrays) -> None:
        """Go on from a state that the same training had."""
        self.fleet.load_state(state)
        about = json.loads(str(state["course"]))
        self.best_risk, self.best_epoch = about["best_risk"], about["best_epoch"]
        self.history, self.seconds = about["history"], about["seconds"]
        parts: dict[str, dict[str, Tensor]] = {"average": {}, "best": {}}
        for name, array in state.items():
            if name.startswith("course/"):
                _, of, tensor = name.split("/", 2)
                parts[of][tensor] = torch.from_numpy(array).to(self.fleet.device)
        self.average.state, self.best = parts["average"], parts["best"]

    def work(self) -> str:
        """What is trained, on what and for how long: equal for equal trainings."""
        digest = hashlib.sha256(f"{self.fleet.fingerprint()} {self.recipe}".encode())
        priors = self.objective.held_prior, self.objective.guiding_prior
        digest.update(f"{self.objective.names} {priors}".encode())
        held = self.held_out
        columns = [] if held is None else [held.ends, held.kind, held.u, held.v, held.weight]
        for array in (*columns, self.fleet.features.cpu().numpy()):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def module_logits(module: nn.Module, features: NDArray[np.float32], rows: int = 8192) -> Floats:
    """Outputs of a module for instances, a chunk at a time, in float64."""
    parameter = next(module.parameters(), torch.zeros(()))
    parts = []
    with torch.inference_mode():
        for start in range(0, len(features), rows):
            x = torch.from_numpy(features[start : start + rows]).to(parameter)
            parts.append(module(x).reshape(len(x)).double().cpu().numpy())
    return np.concatenate(parts)
