"""The networks of a fleet: G groups of M models, run as one.

The models of a group see the same batch. `StackedMLP` normalises it once for all of them, and
computes their first layers as one matrix product (R, d) × (d, M·h). `StackedResNet` runs the
convolutions of all models as grouped ones. `LoneMLP` is a fleet of one on a CPU.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pairlearn.losses import in_full_precision
from pairlearn.models import MLP, ResNet
from pairlearn.training.ranks import ALONE, batch_norm

Operands = dict[str, Tensor]
#: Mean and unbiased variance of each batch norm's input.
Statistics = list[tuple[Tensor, Tensor]]
#: Logits of the models, and the statistics of the batch.
Evaluation = tuple[Tensor, Statistics]

EPS, MOMENTUM = 1e-5, 0.1  # nn.BatchNorm1d's defaults


class Network(nn.Module, ABC):
    """A network of G = ``groups`` times M = ``members`` models; parameters are (G, M, ...).

    If ``stacked``, `run` is a pure function of the operands. It takes row weights: a short last
    batch is padded with rows of weight zero, so every step has the same shape. Otherwise
    the operands are the parameters, and `run` updates its own buffers. ``sums`` names the
    operands, and gradients of parameters, that are sums over a layer's weights.
    """

    groups: int
    members: int
    stacked: bool
    sums: tuple[str, ...] = ()

    @abstractmethod
    def run(self, operands: Operands, x: Tensor, weight: Tensor | None = None) -> Evaluation:
        """Logits (G, M, R) of instances (G, R, ...), and the batch's statistics.

        Rows have weight one, or zero for padding. For a stacked network `absorb` updates the
        running statistics afterwards.
        """

    def operands(self, parameters: Operands) -> Operands:
        """The operands of the matrix products, computed from the parameters."""
        return parameters

    def forward(self, x: Tensor) -> Tensor:
        """Logits (G, M, R) of instances (G, R, ...)."""
        return self.run(self.operands(dict(self.named_parameters())), x)[0]

    def absorb(self, statistics: Statistics) -> None:
        """Update the running statistics with those of a batch."""
        return

    @abstractmethod
    def module(self, group: int = 0, member: int = 0) -> nn.Module:
        """One of the models as a plain module."""


class LoneMLP(Network):
    """One `MLP`, not stacked: on a CPU a step takes 8.9 ms, stacked 12.8 (300 wide, 250 pairs)."""

    stacked = False
    groups = members = 1

    def __init__(self, model: MLP, dtype: torch.dtype) -> None:
        super().__init__()
        self.compute_dtype, self.dtype = dtype, torch.promote_types(dtype, torch.float32)
        self.model = model.to(self.dtype)

    def run(self, operands: Operands, x: Tensor, weight: Tensor | None = None) -> Evaluation:
        """Logits (1, 1, R) of instances (1, R, d), and no statistics."""
        with torch.autocast(x.device.type, torch.bfloat16, self.compute_dtype == torch.bfloat16):
            logits: Tensor = self.model(x[0].to(self.dtype))
        return in_full_precision(logits).view(1, 1, -1), []

    def module(self, group: int = 0, member: int = 0) -> MLP:
        """A copy of the model."""
        return copy.deepcopy(self.model)


class StackedResNet(Network):
    """G × M residual networks of one architecture as one with grouped convolutions.

    A convolution of few channels leaves a GPU idle: eight networks together take a third of the
    time of one after another. ``models[g][m]`` have the initial weights, and all the same rates.
    With bfloat16 it runs under autocast. Images are laid out channels last, which is fastest for
    convolutions.
    """

    stacked = False

    def __init__(self, models: Sequence[Sequence[ResNet]], dtype: torch.dtype) -> None:
        super().__init__()
        first = models[0][0]
        states = [model.state_dict() for group in models for model in group]
        together = {
            name: torch.cat([state[name] for state in states]) if tensor.ndim else tensor
            for name, tensor in states[0].items()
        }
        with torch.device("meta"):
            model = ResNet(first.stem.in_channels, first.stages, copies=len(states))
        model.load_state_dict(together, assign=True)
        self.compute_dtype, self.dtype = dtype, torch.promote_types(dtype, torch.float32)
        self.model = model.to(self.dtype).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.groups, self.members = len(models), len(models[0])
        self._copy = partial(copy.deepcopy, first)  # not a part of this module

    def run(self, operands: Operands, x: Tensor, weight: Tensor | None = None) -> Evaluation:
        """Logits (G, M, R) of images (G, R, ...), and no statistics."""
        # Images (R, G·M·channels, ...): each member has its own copy of the group's.
        copied = x.unsqueeze(2).expand(-1, -1, self.members, *x.shape[2:])
        images = copied.transpose(0, 1).flatten(1, 3).to(self.dtype)
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, torch.bfloat16, self.compute_dtype == torch.bfloat16):
            logits: Tensor = self.model(images)
        logits = in_full_precision(logits).reshape(len(images), -1)
        return logits.T.reshape(self.groups, self.members, -1), []

    @torch.no_grad()
    def module(self, group: int = 0, member: int = 0) -> ResNet:
        """One of the models as a `ResNet` of its own."""
        model, number = self._copy().to(self.dtype), group * self.members + member
        states = self.model.state_dict()
        own = {
            name: states[name].chunk(self.groups * self.members)[number] if tensor.ndim else tensor
            for name, tensor in model.state_dict().items()
        }
        model.load_state_dict(own)
        return model


class StackedMLP(Network):
    """G × M multilayer perceptrons of one architecture with stacked parameters.

    ``models[g][m]`` have the initial weights. ``dtype`` is that of the operands of the matrix
    products; everything else is at least float32: parameters, batch norm, logits, sums. Hidden
    widths are rounded up to a multiple of ``pad_to``, since tensor cores need multiples of 16
    bytes; the extra units have zero weights and gradients, so that results do not change.
    """

    stacked = True
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
        self.outputs = models[0][0].outputs
        sizes = [self.widths[0], *hidden, self.outputs]
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

        The input's γ x̂ + β is folded into the first layer, (x̂ γ)W + (βW + b): x̂ belongs to
        the group, γ and β to the model. The group's first layers are concatenated.
        """
        operands = dict(parameters)
        scale, shift = operands.pop("scales.0"), operands.pop("shifts.0")
        kernel = operands["weights.0"]
        operands["biases.0"] = operands["biases.0"] + (shift.unsqueeze(-1) * kernel).sum(-2)
        operands["weights.0"] = scale.unsqueeze(-1) * kernel
        for depth in range(len(self.weights) - 1):
            name = f"weights.{depth}"
            operands[name] = operands[name].to(self.compute_dtype)
        operands["weights.0"] = operands["weights.0"].permute(0, 2, 1, 3).flatten(2)
        return operands

    def run(self, operands: Operands, x: Tensor, weight: Tensor | None = None) -> Evaluation:
        """Logits (G, M, R) of instances (G, R, d), or outputs (G, M, R, K).

        Rows have weights (R,), or (G, 1, R), in batch norm.
        """
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
        if last and self.outputs > 1:
            h = h @ operands[f"weights.{last}"]
        elif last:
            h = (h * operands[f"weights.{last}"].squeeze(-1).unsqueeze(-2)).sum(-1, keepdim=True)
        h = h.to(self.sum_dtype) + operands[f"biases.{last}"].unsqueeze(-2)
        return h.squeeze(-1) if self.outputs == 1 else h, statistics

    def _standardise(
        self, x: Tensor, depth: int, weight: Tensor | None, statistics: Statistics
    ) -> Tensor:
        """Batch norm without its affine part, over the rows in the second-to-last axis."""
        if not self.training:
            mean, var = self.get_buffer(f"mean{depth}"), self.get_buffer(f"var{depth}")
            return (x - mean.unsqueeze(-2)) * torch.rsqrt(var + EPS).unsqueeze(-2)
        if weight is None:
            weight = torch.ones(x.shape[-2], dtype=x.dtype, device=x.device)
        weight = weight.squeeze(1) if weight.ndim == x.ndim else weight
        out, mean, var = batch_norm(x, weight.unsqueeze(-1), [-2], EPS, ALONE)
        statistics.append((mean.squeeze(-2), var.squeeze(-2)))
        return out

    @torch.no_grad()
    def absorb(self, statistics: Statistics) -> None:
        """Update the running means and variances of batch norm."""
        for depth, (mean, var) in enumerate(statistics):
            self.get_buffer(f"mean{depth}").lerp_(mean, MOMENTUM)
            self.get_buffer(f"var{depth}").lerp_(var, MOMENTUM)

    @torch.no_grad()
    def module(self, group: int = 0, member: int = 0) -> MLP:
        """One of the models as an `MLP`."""
        model = MLP(self.widths[0], self.widths[1:], self.norm, self.outputs).to(self.sum_dtype)
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
    """Put a padded tensor back into a state, without its padding."""
    state[name] = corner(padded, state[name]).clone()


def corner(large: Tensor, small: Tensor) -> Tensor:
    """The view of a large tensor's first entries in the shape of a smaller one."""
    for axis, size in enumerate(small.shape):
        large = large.narrow(axis, 0, size)
    return large
