"""The fleet: many models trained as one; a fleet of one is the ordinary trainer.

A fleet has G groups of up to M members. The members of a group share pairs and batches, and differ
in risk, labels, rates and initial weights. Since every risk is a table of coefficients, a step is
the same few tensor operations for any mix of risks. Under ``torch.distributed`` every process takes
its part of each batch, and the models are the same as those of one process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pairlearn.columns import Floats
from pairlearn.models import CONVOLUTIONAL, MLP, make_model
from pairlearn.training.checkpoint import Arrays, Checkpoint
from pairlearn.training.groups import (
    Batches,
    Group,
    MemoryBatches,
    PairStream,
    StreamBatches,
    check_groups,
    of_members,
)
from pairlearn.training.network import Lone, Network, StackedMLP, StackedResNet
from pairlearn.training.objective import PRIORS, Objective
from pairlearn.training.perceptron import LoneMLP
from pairlearn.training.ranks import Ranks, current_ranks
from pairlearn.training.step import GraphedStep, Step

Precision = Literal["float64", "float32", "tf32", "bf16"]
EVALUATION_ROWS = 2048
CHECKED_ROWS = 1 << 16


class Fleet:
    """Train K models as one.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances that pairs and test sets refer to by row.
    groups : sequence of Group
        All with the same number of pairs; those with fewer members are padded with idle ones.
        A single group of one member may have a `PairStream` for its pairs.
    model : str or nn.Module
        A name for `make_model`, or your own module (a fleet of one).
    batch_size : int
        Pairs in a batch, over all ranks.
    device : str
        "auto", "cpu", "cuda", ...
    precision : {"float32", "tf32", "bf16", "float64"}
        Precision of the matrix products; with "float64" of everything.
    compiled : bool, optional
        Whether to compile the step; by default on CUDA with one rank.
    ranks : Ranks, optional
        By default those of ``torch.distributed``, if it was started.

    Examples
    --------
    >>> from pairlearn import PairLabels, make_risk
    >>> from pairlearn.training import Group, Member, TestSet
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
        model: str | nn.Module = "mlp",
        *,
        batch_size: int = 256,
        device: str = "auto",
        precision: Precision = "float32",
        compiled: bool | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        if precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {get_args(Precision)}; got {precision!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        self.device = choose_device(device)
        self.groups = list(groups)
        self.sizes = [len(group.members) for group in self.groups]
        check_groups(self.groups, len(features))
        source = self.groups[0].pairs
        self.pairs = source.pairs if isinstance(source, PairStream) else len(source)
        self.batch_size = min(batch_size, self.pairs)
        self.precision = precision
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        self.shape = len(self.groups), max(self.sizes)
        self.ranks = current_ranks() if ranks is None else ranks
        self.epoch, self.steps_done = 0, 0  # whole epochs, and steps of the current one
        self.features = _usable_features(features).to(self.device)
        if self.features.is_floating_point():
            self.features = self.features.to(self.dtype)
        if isinstance(model, str) and model not in CONVOLUTIONAL:
            self.features = self.features.flatten(1)
        self.model = model
        lone = self.ranks.size == 1
        on_cuda = self.device.type == "cuda"
        self.compiled = on_cuda and lone if compiled is None else compiled
        self.objective = Objective(self.groups, device=self.device, dtype=self.dtype)
        self.network = self._make_network(model).to(self.device)
        self.ranks.copy_first(self.network)
        self.network.synchronise(self.ranks)
        self.network.train()
        self.batches = self._make_batches()
        self._risk = torch.zeros((), device=self.device)  # summed over the steps done
        self.step = Step(
            self.network,
            self._per_member("learning_rate"),
            self._per_member("weight_decay"),
            self.objective,
            compiled_pairs=self.batch_size if self.compiled else None,
            ranks=self.ranks,
        )
        self._graphed: GraphedStep | None = None
        if on_cuda:
            # Let cuDNN choose the fastest convolutions.
            torch.backends.cudnn.benchmark = True
            if lone:
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
        from pairlearn.training.loop import Callback, Report, Testing, run_epochs

        testing = Testing(window)
        tested = all(group.test is not None for group in self.groups)
        callbacks: list[Callback] = [testing] if tested else []
        if progress is not None:
            callbacks.append(Report(lambda _, row: progress(int(row["epoch"]), row["risk"])))
        saved = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_seconds)
        work = self.fingerprint() if saved else ""
        run_epochs(self, epochs, callbacks, checkpoint=saved, work=work)
        if saved is not None and self.ranks.first:
            saved.remove()
        return {name: values.cpu().numpy() for name, values in testing.accuracies.items()}

    def train_epoch(
        self, between: Callable[[], None] | None = None, *, more: bool = False
    ) -> Callable[[], float]:
        """Train for one epoch, or for the rest of the current one.

        ``between`` is called after each step but the last, and may take the `state`. With ``more``
        the order of the next epoch is prepared while the device is busy. The result returns the
        members' mean risk when called, which waits for the device.
        """
        torch.backends.cuda.matmul.allow_tf32 = self.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = self.precision == "tf32"  # on by default
        self.network.train()  # `module` puts a lone one into evaluation mode
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

    def fingerprint(self, *more: object) -> str:
        """A digest of models, data and `more` (arrays or text), equal for equal fleets."""
        settings = f"{self.precision} {self.batch_size} {self.network} {self.objective.kinds}"
        digest = hashlib.sha256(settings.encode())
        for part in more:
            is_array = isinstance(part, np.ndarray)
            digest.update(np.ascontiguousarray(part).data if is_array else str(part).encode())
        for group in self.groups:
            digest.update(f"{group.seed}".encode())
            if isinstance(group.pairs, PairStream):
                digest.update(group.pairs.fingerprint.encode())
            for member in group.members:
                rates = (member.risk.name, member.learning_rate, member.weight_decay, member.seed)
                digest.update(f"{rates} {member.held_prior} {member.guiding_prior}".encode())
                digest.update(member.risk.table.numpy().tobytes())
        if isinstance(self.batches, MemoryBatches):
            for tensor in self.batches.tensors:
                digest.update(_array(tensor).tobytes())
        return digest.hexdigest()

    def _tensors(self) -> dict[str, Tensor]:
        """Every tensor that training changes."""
        state: dict[str, Tensor] = dict(self.network.state_dict())
        derived = {f"operand.{name}": self.step.operands[name] for name in self.step.derived}
        return state | derived | self.step.adam.state() | {"risk": self._risk}

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
        if len(tests) < len(self.groups):
            raise ValueError("accuracy needs a test set in every group")
        logits = self.logits(np.stack([test.rows for test in tests])).cpu().numpy()
        accuracy: dict[str, Floats] = {}
        for g, (test, size) in enumerate(zip(tests, self.sizes, strict=True)):
            for name, values in test.accuracy(logits[g, :size]).items():
                accuracy.setdefault(name, np.full(self.shape, np.nan))[g, :size] = values
        return accuracy

    def can_restart(self, groups: Sequence[Group]) -> bool:
        """Whether `restart` accepts these groups."""

        def rates(groups: Sequence[Group]) -> object:
            return [[(m.learning_rate, m.weight_decay) for m in g.members] for g in groups]

        def has(groups: Sequence[Group], prior: str) -> bool:
            return any(getattr(m, prior) is not None for g in groups for m in g.members)

        own = not isinstance(self.model, str) or isinstance(self.batches, StreamBatches)
        plain = all(tuple(g.kinds) == ("both",) and not g.columns for g in [*self.groups, *groups])
        priors = [n for n in PRIORS if has(groups, n) and getattr(self.objective, n) is None]
        pairs = len(groups[0].pairs)
        same_batches = pairs == self.pairs or min(pairs, self.pairs) > self.batch_size
        alike = rates(groups) == rates(self.groups) and not priors
        return plain and not own and same_batches and alike

    def restart(self, groups: Sequence[Group]) -> None:
        """Start over with other groups of the same sizes and rates.

        The compiled step is reused: it depends on the shapes of a batch only, since a risk is a
        table of coefficients.
        """
        check_groups(groups, len(self.features))
        if not self.can_restart(groups):
            raise ValueError(
                "a fleet restarts with groups of the same sizes, rates and size of the batches, "
                "all with both judgements and priors only where it had some, and not with your "
                "own module"
            )
        self.groups, self.pairs = list(groups), len(groups[0].pairs)
        self.network.load_state_dict(self._make_network(self.model).state_dict())
        self.objective.restart(self.groups)
        self.batches = self._make_batches()
        self.begin_again()

    def begin_again(self) -> None:
        """Train anew from the current weights, perhaps with another objective."""
        self._forget_steps()
        if self._graphed is not None:
            self._graphed = GraphedStep(self._train_step)

    def _forget_steps(self) -> None:
        self.step.restart()
        self.epoch, self.steps_done = 0, 0
        self._risk.zero_()

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

    def _make_network(self, model: str | nn.Module) -> Network:
        shape = tuple(self.features.shape[1:])
        dtype = torch.bfloat16 if self.precision == "bf16" else self.dtype
        alone = self.sizes == [1]
        if isinstance(model, nn.Module) and not alone:
            raise ValueError("your own module trains alone: a fleet of it has one member")
        convolutional = model in CONVOLUTIONAL
        if alone and (isinstance(model, nn.Module) or convolutional or self.device.type == "cpu"):
            seed = self.groups[0].members[0].seed
            module = make_model(model, shape, seed) if isinstance(model, str) else model
            if len(shape) == 3:
                module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            plain = self.ranks.size == 1 and not self.compiled and dtype == self.dtype
            # A user's MLP may be a subclass with another `forward`.
            if plain and isinstance(model, str) and isinstance(module, MLP):
                # Matrix products with a multiple of eight columns are 4% faster in float32.
                return LoneMLP(module.to(self.dtype), 8 if dtype == torch.float32 else 1)
            return Lone(module.to(self.dtype), dtype)
        assert isinstance(model, str)
        seeds = {member.seed for group in self.groups for member in group.members}
        models: Any = {seed: make_model(model, shape, seed) for seed in seeds}
        grid = []
        for group in self.groups:
            row = [models[member.seed] for member in group.members]
            grid.append(row + row[:1] * (max(self.sizes) - len(row)))
        if convolutional:
            rates = {(m.learning_rate, m.weight_decay) for g in self.groups for m in g.members}
            if len(rates) > 1:
                raise ValueError("residual networks train together with the same rates only")
            return StackedResNet(grid, dtype)
        return StackedMLP(grid, dtype=dtype, pad_to=16 if dtype == torch.bfloat16 else 1)

    def _make_batches(self) -> Batches:
        source, pads = self.groups[0].pairs, self.network.stacked
        if isinstance(source, PairStream):
            like = torch.zeros((), dtype=self.dtype, device=self.device)
            kinds = self.groups[0].kinds
            return StreamBatches(source, self.batch_size, self.ranks, kinds, like, pads=pads)
        tensors = [tensor.to(self.device) for tensor in self._pairs_and_labels()]
        return MemoryBatches(
            tensors, [group.seed for group in self.groups], self.batch_size, self.ranks, pads=pads
        )

    def _pairs_and_labels(self) -> list[Tensor]:
        """Both ends (G, n) of the pairs, and values and weights for each kind (G, M, n)."""
        ends = np.stack([np.asarray(group.pairs, dtype=np.int64) for group in self.groups])
        values = torch.zeros(2, *self.shape, self.pairs, dtype=self.dtype)
        for g, group in enumerate(self.groups):
            for m, member in enumerate(group.members):
                values[:, g, m] = torch.from_numpy(member.values())
        kind_weights = [
            torch.stack([torch.as_tensor(column).to(self.dtype) for column in of_kind])
            .unsqueeze(1)
            .expand(*self.shape, -1)
            for of_kind in zip(*(group.columns for group in self.groups), strict=True)
        ]
        return [*torch.from_numpy(ends).unbind(-1), *values.unbind(0), *kind_weights]

    def _per_member(self, name: str) -> Tensor:
        """An attribute of all members (G, M); idle places repeat the first."""
        values = of_members(self.groups, lambda member: getattr(member, name))
        return torch.where(values.isnan(), values[:, :1], values)


def choose_device(device: str) -> torch.device:
    """The torch device for a name, ValueError if there is none; "auto" is CUDA where available."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device {device} is unknown; say auto, cpu or cuda") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device}: there is no CUDA here; say auto or cpu")
    return chosen


def _array(tensor: Tensor) -> NDArray[Any]:
    # numpy has no bfloat16; float32 holds the same numbers.
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _usable_features(features: Any) -> Tensor:
    if isinstance(features, np.ndarray) and not features.flags.writeable:
        features = features.copy()  # torch warns of arrays that are not writable
    tensor = torch.as_tensor(features)
    if tensor.ndim < 2:
        raise ValueError(f"features must have shape (N, ...); got {tuple(tensor.shape)}")
    # In chunks: features mapped from a file may not fit into memory.
    for start in range(0, len(tensor), CHECKED_ROWS):
        finite = torch.isfinite(tensor[start : start + CHECKED_ROWS]).flatten(1).all(1)
        if not bool(finite.all()):
            row = start + int(finite.int().argmin())
            raise ValueError(f"features are NaN or infinite in row {row}")
    return tensor
