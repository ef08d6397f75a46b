"""Networks that a fleet trains: G groups of M models, run as one.

The models of a group see the same batch. `StackedMLP` uses that: the group's batch
is normalised once, and its models' first layers are one matrix product
(R, d) × (d, M·h). `Lone` is any `nn.Module` as a fleet of one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pairlearn.losses import in_full_precision
from pairlearn.models import MLP
from pairlearn.training.ranks import ALONE, Ranks

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d
Operands = dict[str, Tensor]
Statistics = list[tuple[Tensor, Tensor]]
"""Mean and unbiased variance of each batch norm's input."""

EPS, MOMENTUM = 1e-5, 0.1  # nn.BatchNorm1d's defaults


class Network(nn.Module, ABC):
    """What a fleet needs of a network; every parameter is (G, M, ...), or of the only model.

    ``groups`` and ``members`` are G and M. With ``stacked``, `run` is a function of the operands
    that changes nothing; a lone module is run as it is, and moves its own buffers. One that
    ``pads`` takes row weights, so that a short last batch can be filled up with rows of weight
    zero and every step has the same shape. ``sums`` names operands, and parameters' gradients,
    that are sums over a layer's weights. ``ranks`` have parts of each batch: batch norm is over
    all of it.
    """

    groups: int
    members: int
    stacked: bool
    pads: bool
    sums: tuple[str, ...] = ()
    ranks: Ranks = ALONE

    @abstractmethod
    def run(
        self, operands: Operands, x: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Statistics]:
        """Logits (G, M, R) of instances (G, R, ...), and the batch's statistics.

        Rows that only fill up a batch have weight zero, the others one. For a stacked
        network `absorb` moves the running statistics afterwards.
        """

    def operands(self, parameters: Operands) -> Operands:
        """What the matrix products take, made from the parameters."""
        return parameters

    def trained(self) -> Operands:
        """What Adam updates, by name."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def slopes(self, risk: Tensor, parameters: Operands) -> Operands:
        """Gradients of a risk of the last run's logits, for each of the parameters."""
        found = torch.autograd.grad(risk, [*parameters.values()], materialize_grads=True)
        return dict(zip(parameters, found, strict=True))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (G, M, R) of instances (G, R, ...)."""
        return self.run(self.operands(dict(self.named_parameters())), x)[0]

    def absorb(self, statistics: Statistics) -> None:
        """Move running statistics towards those of a batch."""
        return

    def synchronise(self, ranks: Ranks) -> None:
        """Train on parts of batches that other ranks have the rest of."""
        self.ranks = ranks

    @abstractmethod
    def module(self, group: int = 0, member: int = 0) -> nn.Module:
        """One of the models as a plain module of its own."""


class Lone(Network):
    """Any `nn.Module` with one output for each instance, trained in place as a fleet of one.

    bfloat16 runs it under autocast. Images go through it channels last, which is fastest for
    convolutions. With several ranks batch norm is over the whole batch, on every kind of device
    (``nn.SyncBatchNorm`` needs CUDA). Other layers that mix rows see their rank's part.
    """

    groups = members = 1
    stacked = pads = False

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.model = model
        self.compute_dtype = dtype
        self.dtype = next((p.dtype for p in model.parameters()), torch.float32)
        self._norms: list[RankNorm] = []

    def synchronise(self, ranks: Ranks) -> None:
        """As in `Network`."""
        super().synchronise(ranks)
        if ranks.size > 1:
            self._norms = [RankNorm(norm, ranks) for norm in batch_norms(self.model)]

    def run(
        self, operands: Operands, x: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Statistics]:
        """Logits (1, 1, R) of the module as it is; it has no statistics to give."""
        instances = x[0] if x.is_floating_point() else x[0].to(self.dtype)
        if instances.ndim == 4:
            instances = instances.contiguous(memory_format=torch.channels_last)
        for norm in self._norms:
            norm.row_weight = weight
        if self.compute_dtype == torch.bfloat16:
            with torch.autocast(x.device.type, torch.bfloat16):
                logits: Tensor = self.model(instances)
        else:
            logits = self.model(instances)
        return in_full_precision(logits.reshape(1, 1, -1)), []

    def module(self, group: int = 0, member: int = 0) -> nn.Module:
        """The model itself, with the layers that it came with."""
        for norm in self._norms:
            norm.release()
        self._norms = []
        return self.model


class StackedMLP(Network):
    """G × M multilayer perceptrons of one architecture with stacked parameters.

    The weights of ``models[g][m]`` are the initial ones. ``dtype`` is that of the operands of the
    matrix products; everything else is float32 at least: parameters, batch norm, logits, sums.
    Hidden widths are rounded up to a multiple of ``pad_to``: the extra units have zero weights and
    gradients, so results do not change, and tensor cores want multiples of 16 bytes.
    """

    stacked = pads = True
    sums = ("scales.0", "shifts.0", "biases.0")

    def __init__(
        self,
        models: Sequence[Sequence[MLP]],
        *,
        dtype: torch.dtype = torch.float32,
        pad_to: int = 1,
    ) -> None:
        super().__init__()
        self.groups, self.members = len(models), len(models[0])
        self.compute_dtype = dtype
        self.sum_dtype = torch.promote_types(dtype, torch.float32)
        self.widths, self.norm = list(models[0][0].widths), models[0][0].norm
        hidden = [math.ceil(width / pad_to) * pad_to for width in self.widths[1:]]
        sizes = [self.widths[0], *hidden, 1]
        states = [[model.state_dict() for model in group] for group in models]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for depth, (rows, columns) in enumerate(pairwise(sizes)):
            self.weights.append(_stack(states, f"layers.{depth}.weight", (rows, columns)))
            self.biases.append(_stack(states, f"layers.{depth}.bias", (columns,)))
        self.scales, self.shifts = nn.ParameterList(), nn.ParameterList()
        for depth in range(len(models[0][0].norms)):
            width = (sizes[depth],)
            self.scales.append(_stack(states, f"norms.{depth}.weight", width))
            self.shifts.append(_stack(states, f"norms.{depth}.bias", width))
            # The input's statistics belong to the batch, and so to the group.
            lead = (self.groups,) if depth == 0 else (self.groups, self.members)
            self.register_buffer(f"mean{depth}", torch.zeros(*lead, *width))
            self.register_buffer(f"var{depth}", torch.ones(*lead, *width))
        self.to(self.sum_dtype)

    def operands(self, parameters: Operands) -> Operands:
        """Weights in the type and layout of the products, biases in full precision.

        The input's γ x̂ + β goes into the first layer, (x̂ γ)W + (βW + b): x̂ belongs to
        the group, γ and β to the model. The group's first layers stand side by side.
        """
        made = dict(parameters)
        scale, shift = made.pop("scales.0"), made.pop("shifts.0")
        kernel = made["weights.0"]
        made["biases.0"] = made["biases.0"] + (shift.unsqueeze(-1) * kernel).sum(-2)
        made["weights.0"] = scale.unsqueeze(-1) * kernel
        for depth in range(len(self.weights) - 1):
            name = f"weights.{depth}"
            made[name] = made[name].to(self.compute_dtype)
        made["weights.0"] = made["weights.0"].permute(0, 2, 1, 3).flatten(2)
        return made

    def run(
        self, operands: Operands, x: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Statistics]:
        """Logits (G, M, R) of instances (G, R, d), with row weights (R,) in batch norm."""
        g, m, r, last = self.groups, self.members, x.shape[1], len(self.weights) - 1
        statistics: Statistics = []
        x = self._standardise(x.to(self.sum_dtype), 0, weight, statistics)
        h = torch.bmm(x.to(operands["weights.0"].dtype), operands["weights.0"])
        h = h.view(g, r, m, -1).permute(0, 2, 1, 3)
        for depth in range(last):
            h = h.to(self.sum_dtype) + operands[f"biases.{depth}"].unsqueeze(-2)
            if self.norm == "all":
                h = self._standardise(h, depth + 1, weight, statistics)
                h = h * operands[f"scales.{depth + 1}"].unsqueeze(-2)
                h = h + operands[f"shifts.{depth + 1}"].unsqueeze(-2)
            h = F.relu(h)
            if depth + 1 < last:
                kernel = operands[f"weights.{depth + 1}"].flatten(0, 1)
                h = torch.bmm(h.to(self.compute_dtype).flatten(0, 1), kernel).view(g, m, r, -1)
        if last:
            h = (h * operands[f"weights.{last}"].squeeze(-1).unsqueeze(-2)).sum(-1, keepdim=True)
        return h.squeeze(-1).to(self.sum_dtype) + operands[f"biases.{last}"], statistics

    def _standardise(
        self, x: Tensor, depth: int, weight: Tensor | None, statistics: Statistics
    ) -> Tensor:
        """Batch norm without its affine part, over the rows in the last but one axis."""
        if not self.training:
            mean, var = self.get_buffer(f"mean{depth}"), self.get_buffer(f"var{depth}")
            return (x - mean.unsqueeze(-2)) * torch.rsqrt(var + EPS).unsqueeze(-2)
        if weight is None:
            weight = torch.ones(x.shape[-2], dtype=x.dtype, device=x.device)
        count = self.ranks.sum(weight.sum())
        share = (weight / count).unsqueeze(-1)
        batch_mean = self.ranks.sum((x * share).sum(-2, keepdim=True))
        centred = x - batch_mean
        batch_var = self.ranks.sum((centred.square() * share).sum(-2, keepdim=True))
        unbiased = batch_var * (count / (count - 1))
        statistics.append((batch_mean.squeeze(-2).detach(), unbiased.squeeze(-2).detach()))
        return centred * torch.rsqrt(batch_var + EPS)

    @torch.no_grad()
    def absorb(self, statistics: Statistics) -> None:
        """Move the running means and variances of batch norm."""
        for depth, (mean, var) in enumerate(statistics):
            self.get_buffer(f"mean{depth}").lerp_(mean, MOMENTUM)
            self.get_buffer(f"var{depth}").lerp_(var, MOMENTUM)

    @torch.no_grad()
    def module(self, group: int = 0, member: int = 0) -> MLP:
        """One of the models as an `MLP` of its own."""
        model = MLP(self.widths[0], self.widths[1:], norm=self.norm).to(self.sum_dtype)
        state = model.state_dict()
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            _cut(state, f"layers.{depth}.weight", weight[group, member].T)
            _cut(state, f"layers.{depth}.bias", bias[group, member])
        for depth, (scale, shift) in enumerate(zip(self.scales, self.shifts, strict=True)):
            _cut(state, f"norms.{depth}.weight", scale[group, member])
            _cut(state, f"norms.{depth}.bias", shift[group, member])
            place = group if depth == 0 else (group, member)
            _cut(state, f"norms.{depth}.running_mean", self.get_buffer(f"mean{depth}")[place])
            _cut(state, f"norms.{depth}.running_var", self.get_buffer(f"var{depth}")[place])
        model.load_state_dict(state)
        return model


def _stack(
    states: Sequence[Sequence[Mapping[str, Tensor]]], name: str, shape: tuple[int, ...]
) -> nn.Parameter:
    """One entry of the states [g][m] as a parameter (G, M, *shape), padded with zeros."""
    stacked = torch.zeros(len(states), len(states[0]), *shape)
    for g, row in enumerate(states):
        for m, state in enumerate(row):
            tensor = state[name].T if state[name].ndim == 2 else state[name]
            corner(stacked[g, m], tensor).copy_(tensor)
    return nn.Parameter(stacked)


def _cut(state: dict[str, Tensor], name: str, padded: Tensor) -> None:
    """Put a padded tensor back into a state, less its padding."""
    state[name] = corner(padded, state[name]).clone()


def corner(large: Tensor, small: Tensor) -> Tensor:
    """The first entries of a tensor along each axis, as many as a smaller one has."""
    for axis, size in enumerate(small.shape):
        large = large.narrow(axis, 0, size)
    return large


def batch_norms(module: nn.Module) -> list[BatchNorm]:
    """The batch norms in a module."""
    return [part for part in module.modules() if isinstance(part, BatchNorm)]


class RankNorm:
    """Has a batch norm compute over all ranks until `release`; its tensors stay its own.

    ``row_weight`` (R,) is one for each row of the next batch, zero for those that only fill it up.
    """

    def __init__(self, norm: BatchNorm, ranks: Ranks) -> None:
        self.norm, self.ranks = norm, ranks
        self.row_weight: Tensor | None = None
        self._plain = type(norm).forward
        norm.forward = self.forward  # type: ignore[method-assign, assignment]

    def release(self) -> None:
        """Give the layer its own method back."""
        del self.norm.forward

    def forward(self, x: Tensor) -> Tensor:
        """What the layer does, with the mean and variance of the whole batch."""
        norm = self.norm
        if not (norm.training or norm.running_mean is None):
            plain: Tensor = self._plain(norm, x)
            return plain
        norm._check_input_dim(x)
        kind = torch.promote_types(x.dtype, torch.float32)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        spread = (-1,) + (1,) * (x.ndim - 1)
        along = (1, -1) + (1,) * (x.ndim - 2)
        weight = x.new_ones(len(x), dtype=kind) if self.row_weight is None else self.row_weight
        values = x.to(kind)
        share = weight.to(kind).view(spread).expand_as(values[:, :1])
        count = self.ranks.sum(share.sum())
        share = share / count
        mean = self.ranks.sum((values * share).sum(axes))
        centred = values - mean.view(along)
        var = self.ranks.sum((centred.square() * share).sum(axes))
        if norm.training and norm.track_running_stats:
            self._absorb(mean.detach(), (var * count / (count - 1)).detach())
        out = centred * torch.rsqrt(var + norm.eps).view(along)
        if norm.affine:
            out = out * norm.weight.view(along) + norm.bias.view(along)
        return out.to(x.dtype)

    def _absorb(self, mean: Tensor, var: Tensor) -> None:
        norm = self.norm
        assert norm.running_mean is not None and norm.running_var is not None
        assert norm.num_batches_tracked is not None
        norm.num_batches_tracked.add_(1)
        # Without a momentum it is the plain average of all batches.
        rate = 1.0 / norm.num_batches_tracked.to(mean.dtype)
        if norm.momentum is not None:
            rate = torch.full_like(rate, norm.momentum)
        norm.running_mean.add_(rate * (mean.to(norm.running_mean.dtype) - norm.running_mean))
        norm.running_var.add_(rate * (var.to(norm.running_var.dtype) - norm.running_var))
