"""The fleet: many models trained as one.

A fleet has G groups of up to M members. The members of a group share pairs and batches, and differ
in risk, labels, rates and initial weights. Since every risk is a table of coefficients, a step is
the same few tensor operations for any mix of risks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pairlearn.columns import Floats, check_integer
from pairlearn.judgements.kinds import kind
from pairlearn.models import CONVOLUTIONAL, make_model
from pairlearn.training import Checkpoint, Precision, choose_device
from pairlearn.training.checkpoint import Arrays
from pairlearn.training.devices import features_on, set_precision
from pairlearn.training.loop import completing_shifts, guidance
from pairlearn_bench.fleet.groups import Batches, Group, check_groups, of_members
from pairlearn_bench.fleet.networks import LoneMLP, Network, StackedMLP, StackedResNet
from pairlearn_bench.fleet.objective import FleetObjective
from pairlearn_bench.fleet.step import GraphedStep, Step

EVALUATION_ROWS = 2048


class Fleet:
    """Train K models as one.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances that pairs and test sets refer to by row.
    groups : sequence of Group
        All with the same number of pairs; those with fewer members are padded with idle ones.
    model : str
        A name for `make_model`.
    batch_size : int
        Pairs in a batch.
    device : str
        "auto", "cpu", "cuda", ...
    precision : {"float32", "tf32", "bf16", "float64"}
        Precision of the matrix products; with "float64" of everything.
    compiled : bool, optional
        Whether to compile the step; by default on CUDA.

    Examples
    --------
    >>> from pairlearn import PairLabels, make_risk
    >>> from pairlearn_bench.fleet import Group, Member, TestSet
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> pairs, r = np.arange(400).reshape(200, 2), 1 / (1 + np.exp(-4 * x[:, 0]))
    >>> labels = PairLabels.from_posteriors(*r[pairs].T).to_array()
    >>> risks = make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.5)
    >>> members = [Member(risk, labels, 1e-2) for risk in risks]
    >>> group = Group(pairs, members, test=TestSet(np.arange(400), x[:, 0] > 0))
    >>> history = Fleet(x, [group], "linear", batch_size=50).fit(epochs=20)
    >>> bool((history["all"][-1] > 0.95).all())
    True
    """

    def __init__(
        self,
        features: Any,
        groups: Sequence[Group],
        model: str = "mlp",
        *,
        batch_size: int = 256,
        device: str = "auto",
        precision: Precision = "float32",
        compiled: bool | None = None,
    ) -> None:
        if precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {get_args(Precision)}; got {precision!r}")
        check_integer("batch_size", batch_size, 1)
        self.device = choose_device(device)
        self.groups = list(groups)
        self.sizes = [len(group.members) for group in self.groups]
        check_groups(self.groups, len(features))
        self.pairs = len(self.groups[0].pairs)
        self.batch_size = min(batch_size, self.pairs)
        self.precision = precision
        self.dtype = set_precision(precision)
        self.shape = len(self.groups), max(self.sizes)
        self.epoch, self.steps_done = 0, 0  # whole epochs, and steps of the current one
        self.features = features_on(self.device, features, self.dtype)
        if model not in CONVOLUTIONAL:
            self.features = self.features.flatten(1)
        self.model = model
        on_cuda = self.device.type == "cuda"
        self.compiled = on_cuda if compiled is None else compiled
        self.objective = FleetObjective.of_groups(self.groups).to(self.device, self.dtype)
        self.network = self._make_network().to(self.device).train()
        tensors = [tensor.to(self.device) for tensor in self._pairs_and_labels()]
        seeds = [group.seed for group in self.groups]
        self.batches = Batches(tensors, seeds, self.batch_size, pads=self.network.stacked)
        self._risk = torch.zeros((), device=self.device)  # summed over the steps done
        self.step = Step(
            self.network,
            self._per_member("learning_rate"),
            self._per_member("weight_decay"),
            self.objective,
            compiled_pairs=self.batch_size if self.compiled else None,
        )
        self._graphed: GraphedStep | None = None
        if on_cuda:
            # Let cuDNN choose the fastest convolutions.
            torch.backends.cudnn.benchmark = True
            self._graphed = GraphedStep(self._train_step)

    def fit(
        self,
        epochs: int,
        *,
        window: int = 1,
        progress: Callable[[int, float], None] | None = None,
        checkpoint: Path | None = None,
        checkpoint_seconds: float = 60.0,
    ) -> dict[str, Floats]:
        """Train until `epochs` passes over the pairs are done, including those before a resumption.

        Parameters
        ----------
        epochs : int
        window : int
            Accuracy is measured after each of the last `window` epochs, if every group has a
            test set: the result has arrays (window, G, M) by subset, NaN in idle places.
        progress : callable, optional
            Called after each epoch with its number and the members' mean risk; when training
            resumes, also for the epochs before.
        checkpoint : Path, optional
            Written between steps, at most every `checkpoint_seconds`, and removed at the end. If
            it exists, training resumes from it.
        """
        saved = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_seconds)
        work = self.fingerprint() if saved else ""
        risks: list[float] = []
        measured: list[dict[str, Floats]] = []
        if saved is not None and (state := saved.load(work)) is not None:
            self.load_state(state)
            so_far = json.loads(str(state["so_far"]))
            risks = so_far["risks"]
            measured = [{n: np.array(a) for n, a in row.items()} for row in so_far["measured"]]
        if progress is not None:
            for epoch, value in enumerate(risks, 1):
                progress(epoch, value)

        def keep(*, last: bool = False) -> None:
            if saved is not None and (last or saved.due()):
                rows = [{name: a.tolist() for name, a in row.items()} for row in measured]
                so_far = json.dumps({"risks": risks, "measured": rows})
                saved.save(self.state() | {"so_far": np.array(so_far)}, work)

        tested = all(group.test is not None for group in self.groups)
        while self.epoch < epochs:
            self.objective.guidance.fill_(guidance(self.epoch, epochs))
            self._complete()
            risk = self.train_epoch(keep, more=self.epoch + 1 < epochs)
            if tested and self.epoch > epochs - window:
                measured.append(self.accuracy())
            risks.append(risk())
            if progress is not None:
                progress(self.epoch, risks[-1])
            keep(last=self.epoch == epochs)
        if saved is not None:
            saved.remove()
        names = measured[0] if measured else ()
        return {name: np.stack([row[name] for row in measured]) for name in names}

    def _complete(self) -> None:
        """Complete joint statements from the models, before an epoch begins."""
        if self.steps_done:
            return
        for name in self.objective.kinds:
            chosen = [np.flatnonzero(group.weights(name)) for group in self.groups]
            most = max(map(len, chosen))
            if not kind(name).joint or not most:
                continue
            ends = np.zeros((len(self.groups), 2, most), np.int64)
            for own, rows, group in zip(ends, chosen, self.groups, strict=True):
                own[:, : len(rows)] = np.asarray(group.pairs)[rows].T
            logits = self.logits(ends.reshape(len(ends), -1)).reshape(*self.shape, 2, most)
            for g, rows in enumerate(chosen):
                for m, member in enumerate(self.groups[g].members if len(rows) else ()):
                    stated = np.asarray(member.labels)[rows].T
                    own_logits = logits[g, m, :, : len(rows)].flatten()
                    shifts = completing_shifts(kind(name), own_logits, stated)
                    for tensor, shift in zip(self.batches.values, shifts, strict=True):
                        tensor[g, m, rows] = shift.to(tensor)

    def train_epoch(
        self, between: Callable[[], None] | None = None, *, more: bool = False
    ) -> Callable[[], float]:
        """Train for one epoch, or for the rest of the current one.

        ``between`` is called after each step but the last, and may take the `state`. With ``more``
        the order of the next epoch is prepared while the device is busy. The result returns the
        members' mean risk when called, which waits for the device.
        """
        set_precision(self.precision)
        step = self._graphed or self._train_step
        for chosen, weight in self.batches.epoch(self.epoch, self.steps_done):
            self._risk += step(chosen, weight)
            self.steps_done += 1
            if between is not None and self.steps_done < self.batches.steps:
                between()
        mean = self._risk / (self.steps_done * sum(self.sizes))
        self._risk.zero_()
        self.epoch, self.steps_done = self.epoch + 1, 0
        if more:
            self.batches.prepare(self.epoch)
        return mean.item

    def state(self) -> Arrays:
        """The state of training between two steps."""
        arrays = {name: _array(tensor) for name, tensor in self._tensors().items()}
        arrays["random"] = torch.get_rng_state().numpy()  # dropout draws on it
        if self.device.type == "cuda":
            arrays["random.cuda"] = torch.cuda.get_rng_state(self.device).numpy()
        return arrays | {"epoch": np.array(self.epoch), "steps": np.array(self.steps_done)}

    @torch.no_grad()
    def load_state(self, state: Arrays) -> None:
        """Restore a state of the same fleet."""
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(state[name]))
        torch.set_rng_state(torch.from_numpy(state["random"]))
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(torch.from_numpy(state["random.cuda"]), self.device)
        self.epoch, self.steps_done = int(state["epoch"]), int(state["steps"])

    def fingerprint(self) -> str:
        """A digest of models and data, equal for equal fleets."""
        settings = f"{self.precision} {self.batch_size} {self.network} {self.objective.kinds}"
        digest = hashlib.sha256(settings.encode())
        for group in self.groups:
            digest.update(f"{group.seed}".encode())
            for member in group.members:
                rates = (member.risk.name, member.learning_rate, member.weight_decay, member.seed)
                digest.update(f"{rates} {member.held_prior} {member.guiding_prior}".encode())
                digest.update(member.risk.table.numpy().tobytes() + member.values().tobytes())
            digest.update(np.asarray(group.pairs, np.int64).tobytes())
            for column in group.columns:
                digest.update(np.asarray(column, np.float64).tobytes())
        return digest.hexdigest()

    def _tensors(self) -> dict[str, Tensor]:
        """Every tensor that training changes."""
        state: dict[str, Tensor] = dict(self.network.state_dict())
        derived = {f"operand.{name}": self.step.operands[name] for name in self.step.derived}
        values = dict(zip(("u", "v"), self.batches.values, strict=True))
        return state | derived | self.step.adam.state() | {"risk": self._risk} | values

    @torch.no_grad()
    def logits(self, rows: Any) -> Tensor:
        """Logits (G, M, t) of rows (t,) or (G, t) of the features."""
        rows = torch.as_tensor(rows, device=self.device)
        rows = rows.expand(len(self.groups), -1) if rows.ndim == 1 else rows
        self.network.eval()
        parts = [self.network(self._instances(part)) for part in rows.split(EVALUATION_ROWS, dim=1)]
        self.network.train()
        return torch.cat(parts, -1)

    def accuracy(self) -> dict[str, Floats]:
        """Accuracies (G, M) on the named subsets of the groups' test sets."""
        tests = [group.test for group in self.groups if group.test is not None]
        logits = self.logits(np.stack([test.rows for test in tests])).cpu().numpy()
        accuracy: dict[str, Floats] = {}
        for g, (test, size) in enumerate(zip(tests, self.sizes, strict=True)):
            for name, values in test.accuracy(logits[g, :size]).items():
                accuracy.setdefault(name, np.full(self.shape, np.nan))[g, :size] = values
        return accuracy

    def module(self, group: int = 0, member: int = 0) -> nn.Module:
        """One of the trained models as a plain module."""
        return self.network.module(group, member).eval()

    def _train_step(self, chosen: Tensor, weight: Tensor) -> Tensor:
        """Take a step on the pairs `chosen` (G, B); returns the sum of the members' risks."""
        left, right, *columns = self.batches.tensors
        rows = torch.cat([left.gather(1, chosen), right.gather(1, chosen)], 1)
        position = chosen.unsqueeze(1).expand(-1, self.shape[1], -1)
        u, v, *kind_weights = (column.gather(2, position) for column in columns)
        return self.step(self._instances(rows), u, v, weight, *kind_weights)

    def _instances(self, rows: Tensor) -> Tensor:
        """Instances (G, R, ...) of rows (G, R)."""
        if self.device.type == "cpu":  # up to six times as fast as indexing
            taken = self.features.index_select(0, rows.flatten())
            return taken.view(*rows.shape, *self.features.shape[1:])
        return self.features[rows]

    def _make_network(self) -> Network:
        shape = tuple(self.features.shape[1:])
        dtype = torch.bfloat16 if self.precision == "bf16" else self.dtype
        seeds = {member.seed for group in self.groups for member in group.members}
        models: Any = {seed: make_model(self.model, shape, seed) for seed in seeds}
        grid = []
        for group in self.groups:
            row = [models[member.seed] for member in group.members]
            grid.append(row + row[:1] * (max(self.sizes) - len(row)))
        if self.model in CONVOLUTIONAL:
            rates = {(m.learning_rate, m.weight_decay) for g in self.groups for m in g.members}
            if len(rates) > 1:
                raise ValueError("residual networks train together with the same rates only")
            return StackedResNet(grid, dtype)
        if self.sizes == [1] and self.device.type == "cpu":
            return LoneMLP(grid[0][0], dtype)
        return StackedMLP(grid, dtype=dtype, pad_to=16 if dtype == torch.bfloat16 else 1)

    def _pairs_and_labels(self) -> list[Tensor]:
        """Both ends (G, n) of the pairs, and values and weights for each kind (G, M, n)."""
        ends = np.stack([np.asarray(group.pairs, dtype=np.int64) for group in self.groups])
        values = torch.zeros(2, *self.shape, self.pairs, dtype=self.dtype)
        for g, group in enumerate(self.groups):
            for m, member in enumerate(group.members):
                values[:, g, m] = torch.from_numpy(member.values())
        kinds = self.objective.kinds
        uniform = len(kinds) == 1 and not any(len(group.columns) for group in self.groups)
        kind_weights = [
            torch.stack([torch.as_tensor(g.weights(name)).to(self.dtype) for g in self.groups])
            .unsqueeze(1)
            .expand(*self.shape, -1)
            for name in (() if uniform else kinds)
        ]
        return [*torch.from_numpy(ends).unbind(-1), *values.unbind(0), *kind_weights]

    def _per_member(self, name: str) -> Tensor:
        """An attribute of all members (G, M); idle places repeat the first."""
        values = of_members(self.groups, name)
        return torch.where(values.isnan(), values[:, :1], values)


def _array(tensor: Tensor) -> NDArray[Any]:
    # numpy has no bfloat16; float32 holds the same numbers.
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array
