"""One pass over the first layer's weights where the compiler makes four.

With batch norm folded in, the first layer of a model computes with γW and b + βW, for W
the weights and γ, β the scales and shifts of the inputs. From the gradients D of the
former and e of the latter follow

    dW_ij = γ_i D_ij + β_i e_j,    dγ_i = Σ_j D_ij W_ij,    dβ_i = Σ_j W_ij e_j.

Row i of W therefore updates itself, γ_i and β_i by Adam, and the operands of the next
step, γW and the row's share of βW, with everything read once. The first layers of a
fleet are most of its parameters, and Adam's time is the time to move them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pairlearn.training.adam import BETA1, BETA2, EPS

if TYPE_CHECKING:
    from pairlearn.training.adam import FleetAdam
    from pairlearn.training.network import Operands, StackedMLP

__all__ = ["FirstLayer"]

ROWS, ROWS_AT_ONCE = 16, 4


@triton.jit  # type: ignore[untyped-decorator]
def _moments(gradient, first, second, BETA1: tl.constexpr, BETA2: tl.constexpr):  # type: ignore[no-untyped-def]
    first += (gradient - first) * (1 - BETA1)
    second = second * BETA2 + (1 - BETA2) * gradient * gradient
    return first, second


@triton.jit  # type: ignore[untyped-decorator]
def _update_rows(  # type: ignore[no-untyped-def]
    weight, weight_first, weight_second,  # (models, inputs, units)
    scale, scale_first, scale_second,  # (models, inputs)
    shift, shift_first, shift_second,  # (models, inputs)
    slope,  # D (groups, inputs, members · units)
    bias_slope,  # e (models, units)
    operand,  # γW, like D
    share,  # βW by blocks of rows (models, blocks, units)
    rates, decays, corrections,
    inputs, units, members,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr,
    ROWS: tl.constexpr, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    block, model = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rate, decay = tl.load(rates + model), tl.load(decays + model)
    rate = rate / tl.load(corrections)
    root = tl.load(corrections + 1)
    columns = tl.arange(0, COLUMNS)
    within = columns < units
    e = tl.load(bias_slope + model * units + columns, mask=within, other=0.0)[None, :]
    total = tl.zeros([COLUMNS], dtype=tl.float32)
    for start in range(0, ROWS, AT_ONCE):
        rows = block * ROWS + start + tl.arange(0, AT_ONCE)
        there = rows < inputs
        cell = there[:, None] & within[None, :]
        own = (model * inputs + rows)[:, None] * units + columns[None, :]
        beside = (model // members * inputs + rows) * members + model % members
        beside = beside[:, None] * units + columns[None, :]
        w = tl.load(weight + own, mask=cell, other=0.0)
        m = tl.load(weight_first + own, mask=cell, other=0.0)
        v = tl.load(weight_second + own, mask=cell, other=0.0)
        d = tl.load(slope + beside, mask=cell, other=0.0).to(tl.float32)
        row = model * inputs + rows
        gamma = tl.load(scale + row, mask=there, other=0.0)
        beta = tl.load(shift + row, mask=there, other=0.0)
        gamma_m = tl.load(scale_first + row, mask=there, other=0.0)
        gamma_v = tl.load(scale_second + row, mask=there, other=0.0)
        beta_m = tl.load(shift_first + row, mask=there, other=0.0)
        beta_v = tl.load(shift_second + row, mask=there, other=0.0)

        gamma_slope = tl.sum(d * w, 1) + decay * gamma
        beta_slope = tl.sum(e * w, 1) + decay * beta
        w_slope = gamma[:, None] * d + beta[:, None] * e + decay * w
        m, v = _moments(w_slope, m, v, BETA1, BETA2)
        gamma_m, gamma_v = _moments(gamma_slope, gamma_m, gamma_v, BETA1, BETA2)
        beta_m, beta_v = _moments(beta_slope, beta_m, beta_v, BETA1, BETA2)
        w -= rate * m / (tl.sqrt(v) / root + EPS)
        gamma -= rate * gamma_m / (tl.sqrt(gamma_v) / root + EPS)
        beta -= rate * beta_m / (tl.sqrt(beta_v) / root + EPS)

        tl.store(weight + own, w, mask=cell)
        tl.store(weight_first + own, m, mask=cell)
        tl.store(weight_second + own, v, mask=cell)
        tl.store(operand + beside, (gamma[:, None] * w).to(operand.dtype.element_ty), mask=cell)
        tl.store(scale + row, gamma, mask=there)
        tl.store(scale_first + row, gamma_m, mask=there)
        tl.store(scale_second + row, gamma_v, mask=there)
        tl.store(shift + row, beta, mask=there)
        tl.store(shift_first + row, beta_m, mask=there)
        tl.store(shift_second + row, beta_v, mask=there)
        total += tl.sum(beta[:, None] * w, 0)
    place = (model * tl.num_programs(0) + block) * units + columns
    tl.store(share + place, total, mask=within)


class FirstLayer:
    """Adam for weights, scales and shifts of a fleet's first layers.

    Parameters
    ----------
    network : StackedMLP
        With batch norm on the input and at least one hidden layer, in float32.
    adam : FleetAdam
        Holds the moments and the rates.
    """

    parameters = ("weights.0", "scales.0", "shifts.0")

    def __init__(self, network: StackedMLP, adam: FleetAdam) -> None:
        self.adam, self.members = adam, network.members
        self.models, self.inputs, self.units = network.weights[0].flatten(0, 1).shape
        blocks = triton.cdiv(self.inputs, ROWS)
        device = network.weights[0].device
        self.share = torch.empty(self.models, blocks, self.units, device=device)
        self.rates = adam.learning_rate.flatten().float()
        self.decays = adam.weight_decay.flatten().float()

    def update(self, gradients: Operands, operands: Operands) -> None:
        """Take an Adam step and remake the operand of the weights."""
        held: list[Any] = [tensor for name in self.parameters for tensor in self.adam.held[name]]
        grid = self.share.shape[1], self.models
        _update_rows[grid](
            *held,
            gradients["weights.0"].contiguous(),
            gradients["biases.0"].contiguous(),
            operands["weights.0"],
            self.share,
            self.rates,
            self.decays,
            self.adam.corrections(),
            self.inputs,
            self.units,
            self.members,
            BETA1=BETA1,
            BETA2=BETA2,
            EPS=EPS,
            ROWS=ROWS,
            AT_ONCE=ROWS_AT_ONCE,
            COLUMNS=1 << math.ceil(math.log2(self.units)),
            num_warps=4,
        )

    def shifts(self) -> Tensor:
        """βW (models, units) of the weights and shifts as `update` left them."""
        return self.share.sum(1)
