"""One model in training: its module, rows, objective and optimiser.

Everything stays in memory, on the device: batches are chosen by index. They depend only on the
seed, the epoch and the step, so that training can resume in the middle of an epoch. Under
``torch.distributed`` every process takes its part of each batch, and the model is the same as that
of one process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.adam import adam

from pairlearn.columns import first_rows
from pairlearn.judgements import Judgements
from pairlearn.losses import in_full_precision
from pairlearn.models import CONVOLUTIONAL, make_model
from pairlearn.randomness import permutation, stream
from pairlearn.training.checkpoint import Arrays
from pairlearn.training.devices import Precision, choose_device, features_on, set_precision
from pairlearn.training.objective import Objective, member_tensor
from pairlearn.training.ranks import Ranks, current_ranks, norms_over_ranks

EVALUATION_ROWS = 2048  # activations of more rows do not fit a CPU's cache


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
    schedule: str = "constant"


class Learner:
    """Train a module on the rows of a table.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances that the rows refer to.
    rows : Judgements
        Packed rows to learn from.
    objective : Objective
    model : str or nn.Module
        A name for `make_model`, or your own module, which is trained in place.
    recipe : Recipe
    ranks : Ranks, optional
        By default those of ``torch.distributed``, if it was started.

    Attributes
    ----------
    epoch, steps_done : int
        Whole epochs, and steps of the current one.
    values : Tensor of shape (2, n)
        Values u and v of the rows.
    members : Tensor of shape (K, n) or None
        The sets of classes that the rows are about; None with two classes.
    """

    def __init__(
        self,
        features: Any,
        rows: Judgements,
        objective: Objective,
        model: str | nn.Module,
        recipe: Recipe,
        ranks: Ranks | None = None,
    ) -> None:
        for row in first_rows(~np.isfinite(rows.values).all(1)):
            raise ValueError(f"the values of row {row} are missing or infinite")
        self.recipe, self.rows = recipe, rows
        self.device = choose_device(recipe.device)
        self.dtype = set_precision(recipe.precision)
        self.ranks = current_ranks() if ranks is None else ranks
        self.batch_size = min(recipe.batch_size, len(rows))
        self.features = features_on(self.device, features, self.dtype)
        if isinstance(model, str) and model not in CONVOLUTIONAL:
            self.features = self.features.flatten(1)
        self.objective = objective.to(self.device, self.dtype)
        self._put_rows(rows)
        self._put_module(model)
        self.begin_again()

    def _put_rows(self, rows: Judgements) -> None:
        """Put the rows on the device."""
        self.ends = torch.from_numpy(np.ascontiguousarray(rows.ends.T)).to(self.device)
        values = torch.from_numpy(np.ascontiguousarray(rows.values.T))
        self.values = values.to(self.device, self.dtype)
        self.members = member_tensor(rows, self.device)
        names = self.objective.kinds
        uniform = len(names) == 1 and bool((rows.weight == rows.weight[0]).all())
        uniform &= not self.objective.classes
        columns = np.ones((1, len(rows))) if uniform else self.objective.weight_columns(rows)
        weights = torch.from_numpy(columns).to(self.device, self.dtype)
        self.weights = weights[0] if uniform else weights

    def _put_module(self, model: str | nn.Module) -> None:
        """Put the module on the device, and connect it with those of other ranks."""
        shape, seed = tuple(self.features.shape[1:]), self.recipe.seed
        classes = self.rows.classes
        outputs = 1 if classes is None else len(classes)
        module = make_model(model, shape, seed, outputs) if isinstance(model, str) else model
        module = module.to(self.device, self.dtype)
        if len(shape) == 3:  # the fastest layout for convolutions
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.module, self.trained = module, module
        if self.device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # let cuDNN choose the fastest convolutions
        if self.ranks.size > 1:
            self.trained = DistributedDataParallel(module, broadcast_buffers=False)

    def begin_again(self) -> None:
        """Train anew from the current weights, perhaps with another objective."""
        self.rate = self.recipe.learning_rate
        self.parameters = [p for p in self.module.parameters() if p.requires_grad]
        self.moments = {
            "first": [torch.zeros_like(p) for p in self.parameters],
            "second": [torch.zeros_like(p) for p in self.parameters],
            "steps": [torch.zeros((), device=self.device) for _ in self.parameters],
        }
        self.epoch, self.steps_done = 0, 0
        self._risk = torch.zeros((), dtype=self.dtype, device=self.device)  # of the steps done

    def train_epoch(self, between: Callable[[], None] | None = None) -> float:
        """Train for one epoch, or for the rest of the current one; returns the mean risk.

        ``between`` is called after each step but the last, and may take the `state`.
        """
        set_precision(self.recipe.precision)
        self.module.train()
        steps = -(-len(self.rows) // self.batch_size)
        with norms_over_ranks(self.module, self.ranks) as norms:
            for ends, values, share, members in self._batches():
                for norm in norms:
                    norm.row_weight = (share if share.ndim == 1 else share.sum(0)).sign().repeat(2)
                left, right = self.outputs(self.trained, ends.flatten()).chunk(2)
                risk = self.objective(
                    left, right, values[0], values[1], share, total=self.ranks.sum, members=members
                )
                self.module.zero_grad()
                risk.backward()  # type: ignore[no-untyped-call]
                self._step()
                self._risk += risk.detach()
                self.steps_done += 1
                if between is not None and self.steps_done < steps:
                    between()
        mean = float(self._risk) / self.steps_done
        self._risk.zero_()
        self.epoch, self.steps_done = self.epoch + 1, 0
        return mean

    @torch.no_grad()
    def _step(self) -> None:
        """Take a step of Adam; `torch.optim.Adam` imports a compiler first, for a second."""
        used = [i for i, p in enumerate(self.parameters) if p.grad is not None]
        first, second, steps = ([each[i] for i in used] for each in self.moments.values())
        adam(
            [self.parameters[i] for i in used],
            [self.parameters[i].grad for i in used],  # type: ignore[misc]
            first, second, [], steps, fused=self.device.type in ("cpu", "cuda"),
            lr=self.rate, weight_decay=self.recipe.weight_decay,
            beta1=0.9, beta2=0.999, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def _batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
        """Ends (2, B), values (2, B), shares and sets of this rank's rows, for each step to do."""
        rng = stream(self.recipe.seed, "batches", self.epoch)
        order = torch.from_numpy(permutation(rng, len(self.rows))).to(self.device)
        columns = [self.ends, self.values, self.weights]
        columns += [] if self.members is None else [self.members]
        whole = [t[..., order] for t in columns]
        size = self.batch_size
        for start in range(self.steps_done * size, len(order), size):
            count = min(size, len(order) - start)
            part = self.ranks.part(count)
            # Every rank takes part in every sum: one without rows takes a row of share zero.
            first, rows = start + part.start, max(part.stop - part.start, 1)
            taken = [t[..., first % len(order) :][..., :rows] for t in whole]
            members = None if self.members is None else taken[3]
            yield *taken[:2], taken[2] * ((part.stop > part.start) / count), members

    def outputs(self, module: nn.Module, rows: Tensor) -> Tensor:
        """Outputs (t,), or (t, K), of a module for rows (t,) of the features."""
        x = self.features.index_select(0, rows)
        x = x if x.is_floating_point() else x.to(self.dtype)
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        if self.recipe.precision == "bf16":
            with torch.autocast(self.device.type, torch.bfloat16):
                return in_full_precision(module(x)).reshape(len(x), -1).squeeze(-1)
        return in_full_precision(module(x)).reshape(len(x), -1).squeeze(-1)

    @torch.no_grad()
    def logits(self, rows: Any) -> Tensor:
        """Outputs (t,), or (t, K), for rows (t,) of the features, in evaluation mode."""
        self.module.eval()
        parts = torch.split(torch.as_tensor(rows, device=self.device), EVALUATION_ROWS)
        logits = torch.cat([self.outputs(self.module, part) for part in parts])
        self.module.train()
        return logits

    def state(self) -> Arrays:
        """The state of training between two steps."""
        arrays = {f"module/{name}": _array(t) for name, t in self.module.state_dict().items()}
        for name, tensors in self.moments.items():
            arrays |= {f"adam/{name}/{index}": _array(t) for index, t in enumerate(tensors)}
        arrays["random"] = torch.get_rng_state().numpy()  # dropout draws on it
        if self.device.type == "cuda":
            arrays["random.cuda"] = torch.cuda.get_rng_state(self.device).numpy()
        done = {"risk": self._risk.item(), "epoch": self.epoch, "steps": self.steps_done}
        return arrays | {name: np.array(value) for name, value in done.items()}

    @torch.no_grad()
    def load_state(self, state: Arrays) -> None:
        """Restore a state of the same training."""
        for name, tensor in self.module.state_dict().items():
            tensor.copy_(torch.from_numpy(state[f"module/{name}"]))
        for name, tensors in self.moments.items():
            for index, tensor in enumerate(tensors):
                tensor.copy_(torch.from_numpy(state[f"adam/{name}/{index}"]))
        torch.set_rng_state(torch.from_numpy(state["random"]))
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(torch.from_numpy(state["random.cuda"]), self.device)
        self._risk.fill_(float(state["risk"]))
        self.epoch, self.steps_done = int(state["epoch"]), int(state["steps"])

    def fingerprint(self, *more: Judgements | None) -> str:
        """A digest of model, data, settings and further rows, equal for equal trainings."""
        objective = self.objective
        settings = (self.recipe, self.module, objective.kinds, objective.loss.name, objective.sign)
        digest = hashlib.sha256(str(settings).encode())
        priors = (objective.held_prior, objective.guiding_prior)
        tensors = (objective.tables, objective.slopes, *priors, self.features, self.weights)
        arrays = [_array(tensor) for tensor in tensors if tensor is not None]
        for rows in (self.rows, *more):
            if rows is not None:
                arrays += [rows.ends, rows.kind, rows.values, rows.weight]
                arrays += [rows.members()] if rows.classes else []
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array
