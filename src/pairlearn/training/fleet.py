"""The fleet: many models trained as one; a fleet of one is the ordinary trainer.

A fleet has G groups of up to M members. The members of a group share pairs and
batches and differ in risk, labels, rates and initial weights; every risk being a
table of coefficients, a step is the same few tensor operations whatever the mix.
Features, pairs, labels and batch order live on the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pairlearn.losses import Loss
from pairlearn.models import MLP, make_model
from pairlearn.risks import BASIS, TERMS
from pairlearn.sampling import permutation, stream
from pairlearn.training.checkpoint import restore, save
from pairlearn.training.graph import GraphedStep
from pairlearn.training.groups import Group, check_groups
from pairlearn.training.network import Lone, Network, StackedMLP
from pairlearn.training.step import Objective, Step

__all__ = ["Fleet", "Precision", "choose_device"]

Precision = Literal["float64", "float32", "tf32", "bf16"]
EVALUATION_ROWS = 2048
PARTIAL_RISKS = 6  # of the convex combination, which has the most


class Fleet:
    """Train K models as one.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances that pairs and test sets refer to by row.
    groups : sequence of Group
        All with the same number of pairs. Groups may differ in size; those with fewer
        members are filled up with idle ones.
    model : str or nn.Module
        A name for `make_model`, or a module of your own (a fleet of one).
    batch_size : int
        Pairs in a batch.
    device : str
        "auto", "cpu", "cuda", ...
    precision : {"float32", "tf32", "bf16", "float64"}
        Of the matrix products; with "float64" of everything.
    compiled : bool, optional
        Compile the step and replay it as a CUDA graph; by default on CUDA only.
    objective : Objective, optional
        What a fleet of one group minimises in place of its members' risks.

    Examples
    --------
    >>> from pairlearn import PairLabels, make_risk
    >>> from pairlearn.training import Group, Member, TestSet
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> pairs = np.arange(400).reshape(200, 2)
    >>> r = 1 / (1 + np.exp(-4 * x[:, 0]))
    >>> labels = PairLabels.from_posteriors(*r[pairs].T).to_array()
    >>> risks = make_risk("likelihood-abs"), make_risk("sconfconfdiff-abs", prior=0.5)
    >>> test = TestSet(np.arange(400), x[:, 0] > 0)
    >>> group = Group(pairs, [Member(risk, labels, 1e-2) for risk in risks], test=test)
    >>> fleet = Fleet(x, [group], "linear", batch_size=50)
    >>> history = fleet.fit(epochs=20)
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
        objective: Objective | None = None,
    ) -> None:
        if precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {get_args(Precision)}; got {precision!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        self.device = choose_device(device)
        self.groups = list(groups)
        self.sizes = [len(group.members) for group in self.groups]
        check_groups(self.groups, len(features))
        self.pairs = len(self.groups[0].pairs)
        self.batch_size = min(batch_size, self.pairs)
        self.precision = precision
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        self.shape = len(self.groups), max(self.sizes)
        self.epoch = 0
        self.history: list[dict[str, NDArray[np.float64]]] = []
        self._shuffled: dict[int, tuple[Tensor, Tensor]] = {}
        self.features = _usable_features(features).to(self.device)
        if self.features.is_floating_point():
            self.features = self.features.to(self.dtype)
        if isinstance(model, str) and model != "resnet34":
            self.features = self.features.flatten(1)
        self.model, self.objective = model, objective
        self.network = self._make_network(model).to(self.device)
        self.network.train()
        self._held = [tensor.to(self.device) for tensor in self._pairs_and_labels(objective)]
        on_cuda = self.device.type == "cuda"
        self.step = Step(
            self.network,
            self._per_member("learning_rate"),
            self._per_member("weight_decay"),
            *self._risk_tables(),
            compiled_pairs=self.batch_size if (on_cuda if compiled is None else compiled) else None,
            objective=objective,
        )
        self._step: Callable[[Tensor, Tensor], Tensor] = self._train_step
        if on_cuda:
            # Convolutions differ in speed by algorithm; cuDNN may try them.
            torch.backends.cudnn.benchmark = True
            self._step = GraphedStep(self._train_step)

    def fit(
        self,
        epochs: int,
        *,
        window: int = 1,
        progress: Callable[[int, float], None] | None = None,
        checkpoint: Path | None = None,
        checkpoint_seconds: float = 60.0,
    ) -> dict[str, NDArray[np.float64]]:
        """Train until `epochs` passes over the pairs are done.

        Parameters
        ----------
        epochs : int
            Passes in all, those before a resumption included.
        window : int
            Accuracy is measured after each of the last `window` epochs, if every group
            has a test set.
        progress : callable, optional
            Called after each epoch with its number and the members' mean risk.
        checkpoint : Path, optional
            Written between epochs, at most every `checkpoint_seconds`. If it is there
            already, training goes on from it; at the end it is removed.

        Returns
        -------
        dict of array of shape (window, G, M)
            Accuracies on each named subset of the test sets; idle places are NaN.
        """
        tested = all(group.test is not None for group in self.groups)
        torch.backends.cuda.matmul.allow_tf32 = self.precision == "tf32"
        self.network.train()  # `module` may have handed out a lone one for use
        if checkpoint is not None and checkpoint.exists():
            restore(self, checkpoint)
        saved = time.monotonic()
        while self.epoch < epochs:
            risk = torch.zeros((), device=self.device)
            steps = 0
            for chosen, weight in self._batches(self.epoch):
                risk += self._step(chosen, weight)
                steps += 1
            self.epoch += 1
            if self.epoch < epochs:
                self._shuffle(self.epoch)  # while the device is still busy
            if tested and self.epoch > epochs - window:
                self.history.append(self.accuracy())
            if progress is not None:
                progress(self.epoch, float(risk) / (steps * sum(self.sizes)))
            if checkpoint is not None and time.monotonic() - saved >= checkpoint_seconds:
                save(self, checkpoint)
                saved = time.monotonic()
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
        recent = self.history[-window:] if window else []
        return {name: np.stack([row[name] for row in recent]) for name in (recent or [{}])[0]}

    @torch.no_grad()
    def logits(self, rows: Any) -> Tensor:
        """Logits (G, M, t) of rows (t,) or (G, t) of the features."""
        rows = torch.as_tensor(rows, device=self.device)
        rows = rows.expand(len(self.groups), -1) if rows.ndim == 1 else rows
        self.network.eval()
        parts = [self.network(self._instances(part)) for part in rows.split(EVALUATION_ROWS, dim=1)]
        self.network.train()
        return torch.cat(parts, -1)

    def accuracy(self) -> dict[str, NDArray[np.float64]]:
        """Accuracies (G, M) on the named subsets of the groups' test sets."""
        tests = [group.test for group in self.groups]
        if any(test is None for test in tests):
            raise ValueError("accuracy needs a test set in every group")
        rows = np.stack([test.rows for test in tests if test is not None])
        logits = self.logits(rows).cpu().numpy()
        names = list(tests[0].subsets) if tests[0] is not None and tests[0].subsets else ["all"]
        accuracy = {name: np.full(logits.shape[:2], np.nan) for name in names}
        for g, test in enumerate(tests):
            assert test is not None
            for name in names:
                subset = test.subsets[name] if test.subsets else slice(None)
                predicted = logits[g, : self.sizes[g]][:, subset] > test.thresholds.get(name, 0.0)
                accuracy[name][g, : self.sizes[g]] = (predicted == test.positive[subset]).mean(-1)
        return accuracy

    def can_restart(self, groups: Sequence[Group]) -> bool:
        """Whether `restart` takes these groups."""

        def shape(groups: Sequence[Group]) -> object:
            members = [[(m.learning_rate, m.weight_decay) for m in g.members] for g in groups]
            return len(groups[0].pairs), members

        own = not isinstance(self.model, str) or self.objective is not None
        return not own and shape(groups) == shape(self.groups)

    def restart(self, groups: Sequence[Group]) -> None:
        """Begin anew with other groups of the same sizes, rates and number of pairs.

        What was compiled and recorded stays in use: it depends on shapes alone, since a
        risk is a table of numbers.
        """
        check_groups(groups, len(self.features))
        if not self.can_restart(groups):
            raise ValueError(
                "a fleet restarts with groups of the same sizes, rates and number of pairs, and "
                "not with a module of your own, nor with an objective"
            )
        self.groups = list(groups)
        self.network.load_state_dict(self._make_network(self.model).state_dict())
        for held, new in zip(self._held, self._pairs_and_labels(), strict=True):
            held.copy_(new)
        self.step.restart(*self._risk_tables()[:2])
        self.epoch, self.history, self._shuffled = 0, [], {}

    def module(self, group: int = 0, member: int = 0) -> nn.Module:
        """One of the trained models as a plain module."""
        return self.network.module(group, member).eval()

    def _train_step(self, chosen: Tensor, weight: Tensor) -> Tensor:
        """One step on the pairs `chosen` (G, B): the sum of the members' risks."""
        left, right, *labels = self._held
        rows = torch.cat([left.gather(1, chosen), right.gather(1, chosen)], 1)
        position = chosen.unsqueeze(1).expand(-1, self.network.members, -1)
        u, v, *columns = (column.gather(2, position) for column in labels)
        return self.step(self._instances(rows), u, v, weight, *columns)

    def _instances(self, rows: Tensor) -> Tensor:
        """Instances (G, R, ...) of rows (G, R)."""
        if self.device.type == "cpu":  # where it is up to six times as fast as indexing
            taken = self.features.index_select(0, rows.flatten())
            return taken.view(*rows.shape, *self.features.shape[1:])
        return self.features[rows]

    def _batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Positions (G, B) and weights (B,) of an epoch's pairs, shuffled."""
        if epoch not in self._shuffled:
            self._shuffle(epoch)
        chosen, weights = self._shuffled.pop(epoch)
        for start in range(0, chosen.shape[1], self.batch_size):
            batch = slice(start, start + self.batch_size)
            yield chosen[:, batch], weights[batch]

    def _shuffle(self, epoch: int) -> None:
        """Put an epoch's order of the pairs on the device, a short last batch filled up."""
        orders = {
            seed: permutation(stream(seed, "batches", epoch), self.pairs)
            for seed in {group.seed for group in self.groups}
        }
        order = np.stack([orders[group.seed] for group in self.groups])
        weight = np.ones(self.pairs)
        missing = -self.pairs % self.batch_size
        if missing and self.network.pads:
            order = np.pad(order, ((0, 0), (0, missing)))
            weight = np.pad(weight, (0, missing))
        chosen = torch.from_numpy(order).to(self.device)
        weights = torch.from_numpy(weight).to(self.device, self.dtype)
        self._shuffled = {epoch: (chosen, weights)}

    def _make_network(self, model: str | nn.Module) -> Network:
        shape = tuple(self.features.shape[1:])
        dtype = torch.bfloat16 if self.precision == "bf16" else self.dtype
        if isinstance(model, nn.Module) or model == "resnet34":
            if len(self.groups) > 1 or self.sizes != [1]:
                raise ValueError("a module of your own and resnet34 train one at a time")
            seed = self.groups[0].members[0].seed
            module = make_model(model, shape, seed) if isinstance(model, str) else model
            if len(shape) == 3:
                module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            return Lone(module.to(self.dtype), dtype)
        seeds = {member.seed for group in self.groups for member in group.members}
        models = {seed: make_model(model, shape, seed) for seed in seeds}
        grid: list[list[MLP]] = []
        for group in self.groups:
            row = [models[member.seed] for member in group.members]
            grid.append(row + row[:1] * (max(self.sizes) - len(row)))  # type: ignore[arg-type]
        return StackedMLP(grid, dtype=dtype, pad_to=16 if dtype == torch.bfloat16 else 1)

    def _pairs_and_labels(self, objective: Objective | None = None) -> list[Tensor]:
        """Both ends (G, n) of the pairs, judgements and further columns (G, M, n)."""
        if len(self.groups) > 1 and objective is not None:
            raise ValueError("an objective of your own trains one group")
        columns = () if objective is None else objective.columns
        ends = np.stack([np.asarray(group.pairs, dtype=np.int64) for group in self.groups])
        labels = torch.zeros(2, *self.shape, self.pairs, dtype=self.dtype)
        for g, group in enumerate(self.groups):
            for m, member in enumerate(group.members):
                labels[:, g, m] = torch.from_numpy(member.columns())
        further = [torch.as_tensor(c).to(self.dtype).expand(*self.shape, -1) for c in columns]
        return [*torch.from_numpy(ends).unbind(-1), *labels.unbind(0), *further]

    def _risk_tables(self) -> tuple[Tensor, Tensor, Loss]:
        """Tables (G, M, k, 5, 3), slopes (G, M, 1) and the loss of the members' risks."""
        risks = [member.risk for group in self.groups for member in group.members]
        if any(risk.loss.name != risks[0].loss.name for risk in risks):
            raise ValueError("the risks of a fleet must share one loss")
        # As many rows as any risk has, so that a fleet may restart with other risks.
        rows = max(PARTIAL_RISKS, *(len(risk.table) for risk in risks))
        tables = torch.zeros(*self.shape, rows, len(TERMS), len(BASIS), dtype=self.dtype)
        slopes = torch.zeros(*self.shape, 1, dtype=self.dtype)
        for g, group in enumerate(self.groups):
            for m, member in enumerate(group.members):
                tables[g, m, : len(member.risk.table)] = member.risk.table
                slopes[g, m] = member.risk.slope
        return tables.to(self.device), slopes.to(self.device), risks[0].loss

    def _per_member(self, name: str) -> Tensor:
        """An attribute of all members (G, M); idle places repeat the first."""
        values = torch.zeros(*self.shape, dtype=torch.float64)
        for i, group in enumerate(self.groups):
            rates = [getattr(member, name) for member in group.members]
            rates += rates[:1] * (values.shape[1] - len(rates))
            values[i] = torch.tensor(rates, dtype=torch.float64)
        return values


def choose_device(device: str) -> torch.device:
    """The device of that name; "auto" is CUDA where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def _usable_features(features: Any) -> Tensor:
    if isinstance(features, np.ndarray) and not features.flags.writeable:
        features = features.copy()  # torch would warn that it could be written to
    tensor = torch.as_tensor(features)
    if tensor.ndim < 2:
        raise ValueError(f"features must have shape (N, ...); got {tuple(tensor.shape)}")
    finite = torch.isfinite(tensor).flatten(1).all(1)
    if not bool(finite.all()):
        row = int(finite.int().argmin())
        raise ValueError(f"features are NaN or infinite in row {row}")
    return tensor
