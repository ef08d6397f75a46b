"""An MLP as a fleet of one on a CPU, with hand-written gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from pairlearn.models import MLP
from pairlearn.training.network import EPS, MOMENTUM, Lone, Operands, Statistics, corner


class LoneMLP(Lone):
    """An `MLP` as a fleet of one on a CPU, with less overhead per matrix product than autograd.

    Its parameters are views of one vector, and so are their gradients: Adam is one pass. The
    input's γ x̂ + β is folded into the first layer, so that no gradient flows back to the input.
    Biases ahead of a batch norm, which removes them, have gradients of exactly zero. Hidden widths
    are rounded up to a multiple of ``pad_to``, as in `StackedMLP`.
    """

    def __init__(self, model: MLP, pad_to: int = 1) -> None:
        wider = _padded(model, pad_to)
        super().__init__(wider)
        self._unpadded, self.pad_to = [model], pad_to  # in a list: no submodule of the network
        parameters = [*wider.parameters()]
        self.vector = torch.cat([p.detach().flatten() for p in parameters])
        self.slope_vector = torch.zeros_like(self.vector)
        parts, slopes = (_cut_like(v, parameters) for v in (self.vector, self.slope_vector))
        for p, part in zip(parameters, parts, strict=True):
            p.data = part
        # Weight and bias of each norm and each layer, and their gradients.
        n = len(model.norms)
        affine = [*zip(parts[::2], parts[1::2], strict=True)]
        affine_slopes = [*zip(slopes[::2], slopes[1::2], strict=True)]
        self.scales, self.layers = affine[:n], affine[n:]
        self.scale_slopes, self.layer_slopes = affine_slopes[:n], affine_slopes[n:]
        self.all_normed = model.norm == "all"
        self.means, self.variances, self.counts = (
            [wider.get_buffer(f"norms.{depth}.{name}") for depth in range(n)]
            for name in ("running_mean", "running_var", "num_batches_tracked")
        )
        # The last run: its logits, the inputs of layers, the inputs and statistics of batch norms.
        self.logits = torch.empty(0)
        self.inputs: list[Tensor] = []
        self.normed: list[list[Tensor]] = []

    def __deepcopy__(self, memo: Any) -> LoneMLP:
        """Copy with its own vector."""
        return LoneMLP(self.module(), self.pad_to).train(self.training)

    def trained(self) -> Operands:
        """As in `Network`."""
        return {"vector": self.vector}

    def run(
        self, operands: Operands, x: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Statistics]:
        """As in `Lone`."""
        if not self.training:
            return super().run(operands, x, weight)
        with torch.no_grad():
            self.logits = self._outputs(x[0].to(self.dtype)).squeeze(-1)
        return self.logits.requires_grad_().view(1, 1, -1), []

    def _outputs(self, x: Tensor) -> Tensor:
        self.inputs.clear()
        self.normed.clear()
        (kernel, bias), (scale, shift) = self.layers[0], self.scales[0]
        torch._foreach_add_(self.counts, 1)
        x = self._normalise(x, 0, None, None)
        kernel, bias = kernel * scale, torch.addmv(bias, kernel, shift)
        for depth in range(1, len(self.layers)):
            self.inputs.append(x)
            if self.all_normed:
                x = self._normalise(x @ kernel.t(), depth, *self.scales[depth])
                self.means[depth].add_(bias, alpha=MOMENTUM)  # the only effect of the bias
            else:
                x = torch.addmm(bias, x, kernel.t())
            x = x.relu_()
            kernel, bias = self.layers[depth]
        self.inputs.append(x)
        return torch.addmm(bias, x, kernel.t())

    def _normalise(
        self, x: Tensor, depth: int, scale: Tensor | None, shift: Tensor | None
    ) -> Tensor:
        running = self.means[depth], self.variances[depth]
        out, *statistics = torch.native_batch_norm(x, scale, shift, *running, True, MOMENTUM, EPS)
        self.normed.append([x, *statistics])
        return out

    @torch.no_grad()
    def slopes(self, risk: Tensor, parameters: Operands) -> Operands:
        """As in `Network`."""
        aten, last = torch.ops.aten, len(self.layers) - 1
        slope = torch.autograd.grad(risk, self.logits)[0].unsqueeze(-1)
        for depth in range(last, -1, -1):
            of_kernel, of_bias = self.layer_slopes[depth]
            torch.mm(slope.t(), self.inputs[depth], out=of_kernel)
            if depth == last or not self.all_normed:
                torch.sum(slope, 0, out=of_bias)
            if depth > 0:
                slope = slope @ self.layers[depth][0]
                aten.threshold_backward(slope, self.inputs[depth], 0, grad_input=slope)
            if depth > 0 and self.all_normed:
                x, mean, inverse = self.normed[depth]
                scale, _ = self.scales[depth]
                slope, *scale_slopes = aten.native_batch_norm_backward(
                    slope, x, scale, None, None, mean, inverse, True, EPS, [True] * 3
                )
                torch._foreach_copy_(self.scale_slopes[depth], scale_slopes)
        kernel, (scale, shift) = self.layers[0][0], self.scales[0]
        torch.sum(of_kernel * kernel, 0, out=self.scale_slopes[0][0])
        of_kernel.mul_(scale)
        if last == 0 or not self.all_normed:
            torch.mv(kernel.t(), of_bias, out=self.scale_slopes[0][1])
            of_kernel.addr_(of_bias, shift)
        return {"vector": self.slope_vector}

    def module(self, group: int = 0, member: int = 0) -> MLP:
        """A copy of the model without its padding."""
        model, padded = deepcopy(self._unpadded[0]), self.model.state_dict()
        for name, tensor in model.state_dict().items():
            tensor.copy_(corner(padded[name], tensor))
        return model


def _padded(model: MLP, pad_to: int) -> MLP:
    """A copy of a model with hidden widths rounded up by units that are zero throughout."""
    hidden = [math.ceil(width / pad_to) * pad_to for width in model.widths[1:]]
    with torch.random.fork_rng(devices=[]):
        wider = MLP(model.widths[0], hidden, norm=model.norm)
    wider = wider.to(next(model.parameters()).dtype)
    state = model.state_dict()
    for name, tensor in wider.state_dict().items():
        tensor.zero_()
        corner(tensor, state[name]).copy_(state[name])
    return wider


def _cut_like(vector: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Views of a vector in the shapes of parameters."""
    parts = torch.split(vector, [p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
