"""Networks with one output for each class, trained as one.

A learner of `pairlearn` knows its rows, weights and order of batches. Those that take as many steps
an epoch are stacked here: a step gathers the next batch of each, pads them to one size with rows of
weight zero, and is one forward and backward pass, and one step of Adam, for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlearn.columns import Floats
from pairlearn.models import MLP
from pairlearn.randomness import permutation, stream
from pairlearn.training.learner import Learner
from pairlearn.training.loop import Average, Cosine
from pairlearn.training.ranks import ALONE
from pairlearn_bench.fleet.fleet import EVALUATION_ROWS
from pairlearn_bench.fleet.networks import StackedMLP
from pairlearn_bench.fleet.objective import FleetObjective
from pairlearn_bench.fleet.step import GraphedStep, laid_out_like


def shape_of(learner: Learner) -> tuple[Any, ...]:
    """What the learners of a stack have in common; batches of half the size are padded."""
    recipe, steps = learner.recipe, -(-len(learner.rows) // learner.batch_size)
    rates = recipe.learning_rate, recipe.weight_decay, recipe.schedule
    return str(learner.module), recipe.epochs, steps, *rates, round(math.log2(learner.batch_size))


@dataclass
class Together:
    """Learners of one `shape_of`, with the same features, as one.

    Its attributes are also those of a learner that callbacks read and set.
    """

    learners: Sequence[Learner]

    def __post_init__(self) -> None:
        first = self.learners[0]
        self.recipe, self.device, self.rate = first.recipe, first.device, first.rate
        modules = [[one.module] for one in self.learners if isinstance(one.module, MLP)]
        dtype = torch.bfloat16 if self.recipe.precision == "bf16" else first.dtype
        self.module = StackedMLP(modules, dtype=dtype, pad_to=16).to(self.device).train()
        objectives = {(g, 0): one.objective for g, one in enumerate(self.learners)}
        self.objective = FleetObjective(objectives).to(self.device, self.module.sum_dtype)
        self.parameters = [*self.module.parameters()]
        on_cuda = self.device.type == "cuda"
        self.adam = torch.optim.Adam(
            self.parameters,
            lr=torch.tensor(self.rate, device=self.device),
            weight_decay=self.recipe.weight_decay,
            fused=True,
            capturable=on_cuda,
        )
        self.step: Callable[..., Tensor] = (
            GraphedStep(self.take_step) if on_cuda else self.take_step
        )
        self.epoch = 0

    def fit(self) -> list[Floats]:
        """Train; returns posteriors (N, K) of all instances by each averaged model."""
        average = Average()
        callbacks = [average] + [Cosine()] * (self.recipe.schedule == "cosine")
        for callback in callbacks:
            callback.begin(self.recipe.epochs)
        while self.epoch < self.recipe.epochs:
            for callback in callbacks:
                callback.before_epoch(self)  # type: ignore[arg-type]
            self.train_epoch()
            self.epoch += 1
            average.after_epoch(self, {})  # type: ignore[arg-type]
        self.module.load_state_dict(average.weights)
        self.module.eval()
        with torch.no_grad():
            rows = torch.arange(len(self.learners[0].features), device=self.device)
            parts = torch.split(rows.expand(len(self.learners), -1), EVALUATION_ROWS, 1)
            posteriors = torch.cat([self.outputs(part).softmax(-1) for part in parts], 1)
        return [*posteriors.double().cpu().numpy()]

    def train_epoch(self) -> None:
        """Take every step of an epoch."""
        self.adam.param_groups[0]["lr"].fill_(self.rate)
        epochs = zip(*map(self._epoch, self.learners), strict=True)
        columns = [torch.stack(own, 1).unbind(0) for own in epochs]
        for batches in zip(*columns, strict=True):
            self.step(*batches)

    def take_step(self, ends: Tensor, u: Tensor, v: Tensor, share: Tensor, sets: Tensor) -> Tensor:
        """Take a step on a batch of each learner; returns the summed risk."""
        real = share.sum(1).sign()
        outputs = self.outputs(ends.flatten(1), real.repeat(1, 2)[:, None])
        left, right = outputs[:, None].chunk(2, 2)
        shares, members = (each.movedim(1, 0)[:, :, None] for each in (share, sets))
        values = u[:, None], v[:, None]
        risk = self.objective(left, right, *values, shares, total=ALONE.sum, members=members).sum()
        slopes = torch.autograd.grad(risk, self.parameters)
        for parameter, slope in zip(self.parameters, slopes, strict=True):
            parameter.grad = laid_out_like(parameter, slope)
        self.adam.step()
        return risk.detach()

    def outputs(self, rows: Tensor, weight: Tensor | None = None) -> Tensor:
        """Outputs (G, R, K) for rows (G, R) of the learners' features."""
        operands = self.module.operands(dict(self.module.named_parameters()))
        found, statistics = self.module.run(operands, self.learners[0].features[rows], weight)
        self.module.absorb(statistics)
        return found.squeeze(1)

    def _epoch(self, one: Learner) -> tuple[Tensor, ...]:
        """A learner's batches of the epoch, each (steps, ..., B): ends, u, v, shares and sets."""
        size = one.batch_size
        most = max(other.batch_size for other in self.learners)
        order = permutation(stream(one.recipe.seed, "batches", self.epoch), len(one.rows))
        steps = -(-len(order) // size)
        padded = np.pad(order, (0, steps * size - len(order)), constant_values=-1)
        chosen = np.pad(padded.reshape(steps, size), ((0, 0), (0, most - size)), constant_values=-1)
        real = torch.from_numpy(chosen >= 0).to(self.device)
        at = torch.from_numpy(chosen.clip(0)).to(self.device)
        weights = torch.zeros(len(self.objective.kinds), len(order)).to(one.values)
        weights[[*map(self.objective.kinds.index, one.objective.kinds)]] = one.weights
        share = weights[:, at] * (real / real.sum(1, keepdim=True))
        assert one.members is not None
        by_step = (one.ends[:, at].movedim(1, 0), *one.values[:, at].unbind(0), share.movedim(1, 0))
        return *by_step, one.members[:, at].movedim(1, 0)
