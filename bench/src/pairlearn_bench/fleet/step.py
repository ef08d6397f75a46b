"""One optimisation step of a whole fleet: gradients, Adam, and a CUDA graph of both."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vjp

from pairlearn.training.ranks import ALONE
from pairlearn_bench.fleet.networks import Network, Operands, Statistics
from pairlearn_bench.fleet.objective import FleetObjective

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
WARM_UP = 3


class Step:
    """Gradients of all members' risks, and Adam.

    The network computes with operands derived from its parameters: weights cast for the matrix
    products, batch norm folded into the first layer. Gradients are taken with respect to the
    operands, which keeps them in the products' type, and pulled back to the parameters for Adam.

    Rates are (G, M), one for each member. The step is compiled for batches of ``compiled_pairs``;
    the short last batch of an epoch runs uncompiled.
    """

    def __init__(
        self,
        network: Network,
        learning_rate: Tensor,
        weight_decay: Tensor,
        objective: FleetObjective,
        *,
        compiled_pairs: int | None = None,
    ) -> None:
        self.network, self.objective = network, objective
        self.parameters: Operands = dict(network.named_parameters())
        self.adam = FleetAdam(list(self.parameters.values()), learning_rate, weight_decay)
        with torch.no_grad():
            operands = network.operands(self.parameters)
        # Some operands are parameters themselves; the derived ones are updated after each step.
        self.derived = [n for n in operands if operands[n] is not self.parameters.get(n)]
        self.operands = operands | {name: operands[name].clone() for name in self.derived}
        self.compiled_pairs = compiled_pairs
        self._parts: list[Callable[..., Any]] = [
            self.gradients if network.stacked else self.plain_gradients,
            self.sums,
            self.update,
            self.derive_sums,
        ]
        self._compiled = self._parts
        self._forward: Callable[..., Any] = self.risk
        if compiled_pairs is not None:
            # In parts: otherwise the compiler fuses sums over a layer's weights with the updates
            # of those weights into kernels of half the speed.
            torch._dynamo.reset()
            if network.stacked:
                self._compiled = [torch.compile(part, dynamic=False) for part in self._parts]
            else:
                self._forward = torch.compile(self.risk, dynamic=False)

    @torch.no_grad()
    def __call__(self, *batch: Tensor) -> Tensor:
        """Take a step on a batch; returns the summed risk.

        A batch is instances (G, 2B, ...), values u and v (G, M, B), weights (B,) of its pairs, and,
        unless all rows are alike, weights (G, M, B) of each kind of rows.
        """
        full = batch[1].shape[-1] == self.compiled_pairs
        gradients, sums, update, derive_sums = self._compiled if full else self._parts
        risk: Tensor
        slopes, risk, statistics = gradients(*batch)
        self.network.absorb(statistics)
        if self.network.stacked:
            update(slopes, sums(slopes))
            derive_sums()
        else:
            self.adam.step([*slopes.values()])
        return risk

    def risk(self, operands: Operands, *batch: Tensor) -> tuple[Tensor, tuple[Tensor, Statistics]]:
        """The risk of a batch to differentiate, its value, and the batch's statistics."""
        x, u, v, weight, *kind_weights = batch
        pairs = u.shape[-1]
        rows_weight = torch.cat([weight, weight]) if self.network.stacked else None
        logits, statistics = self.network.run(operands, x, rows_weight)
        share = weight / weight.sum()
        left, right = logits[..., :pairs], logits[..., pairs:]
        shares = torch.stack(kind_weights) * share if kind_weights else share
        risk = self.objective(left, right, u, v, shares, total=ALONE.sum).sum()
        return risk, (risk.detach(), statistics)

    def plain_gradients(self, *batch: Tensor) -> tuple[Operands, Tensor, Statistics]:
        """Gradients of the parameters themselves, the risk, and the batch's statistics."""
        forward = self._forward if batch[1].shape[-1] == self.compiled_pairs else self.risk
        with torch.enable_grad():
            risk, (value, statistics) = forward(self.operands, *batch)
        slopes = torch.autograd.grad(risk, [*self.parameters.values()])
        return dict(zip(self.parameters, slopes, strict=True)), value, statistics

    def gradients(self, *batch: Tensor) -> tuple[Operands, Tensor, Statistics]:
        """Gradients of a stacked network's operands, the risk, and the batch's statistics."""
        gradients, (risk, statistics) = grad(self.risk, has_aux=True)(self.operands, *batch)
        return gradients, risk, statistics

    def sums(self, gradients: Operands) -> Operands:
        """Those gradients of parameters that are sums over a layer's weights."""
        pulled = self._pull_back(gradients)
        return {name: pulled[name] for name in self.network.sums if name in pulled}

    def update(self, gradients: Operands, sums: Operands) -> None:
        """Update the parameters by Adam, and all operands of the next step but the sums."""
        pulled = self._pull_back(gradients) | sums
        self.adam.step([pulled[name] for name in self.parameters])
        self._derive([name for name in self.derived if name not in self.network.sums])

    def derive_sums(self) -> None:
        """Update the operands of the next step that are sums over a layer's weights."""
        self._derive([name for name in self.derived if name in self.network.sums])

    @torch.no_grad()
    def _derive(self, names: list[str]) -> None:
        operands = self.network.operands(self.parameters)
        for name in names:
            self.operands[name].copy_(operands[name])

    def _pull_back(self, gradients: Operands) -> Operands:
        """Gradients of the parameters from those of the operands derived from them."""
        pull = vjp(self.network.operands, self.parameters)[1]
        pulled: Operands = pull(gradients)[0]
        return pulled


class FleetAdam:
    """Adam with L2 weight decay in the gradient, as in `torch.optim.Adam`, with rates (G, M).

    Parameters are stacked (G, M, ...), or of any shape if all models have the same rates.
    """

    def __init__(
        self, parameters: Sequence[Tensor], learning_rate: Tensor, weight_decay: Tensor
    ) -> None:
        self.parameters = list(parameters)
        device = self.parameters[0].device
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.steps = torch.zeros((), device=device)
        rates = {
            *zip(learning_rate.flatten().tolist(), weight_decay.flatten().tolist(), strict=True)
        }
        self.uniform = rates.pop() if len(rates) == 1 else None
        self.learning_rate, self.weight_decay = learning_rate.to(device), weight_decay.to(device)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters in place."""
        self.steps.add_(1)
        if self.uniform is not None and not torch.compiler.is_compiling():
            self._fused_step(list(gradients), *self.uniform)
            return
        steps = self.steps.to(self.parameters[0].dtype)
        # 1 − βᵗ; the difference itself would lose four digits of float32 in early steps.
        correction1 = -torch.expm1(steps * math.log(BETA1))
        correction2 = (-torch.expm1(steps * math.log(BETA2))).sqrt()
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            rate, decay = self.uniform or (_for(p, self.learning_rate), _for(p, self.weight_decay))
            gradient = g + decay * p
            m.lerp_(gradient, 1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            p.sub_(rate / correction1 * m / (v.sqrt() / correction2 + EPS))

    def _fused_step(self, gradients: list[Tensor], rate: float, decay: float) -> None:
        torch._fused_adam_(  # one pass over memory; the public optimiser calls the same
            self.parameters,
            [laid_out_like(p, g) for p, g in zip(self.parameters, gradients, strict=True)],
            self.first,
            self.second,
            [],
            [self.steps] * len(self.parameters),
            lr=rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=decay,
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """The state of the optimiser by name."""
        state = {"adam.steps": self.steps}
        for index, (m, v) in enumerate(zip(self.first, self.second, strict=True)):
            state |= {f"adam.first.{index}": m, f"adam.second.{index}": v}
        return state


def laid_out_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in the memory layout of the parameter, which the fused step expects."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _for(parameter: Tensor, rates: Tensor) -> Tensor:
    """Rates (G, M) in the shape of a parameter (G, M, ...)."""
    return rates.view(rates.shape + (1,) * (parameter.ndim - 2)).to(parameter.dtype)


class GraphedStep:
    """A step that is captured as a CUDA graph for each shape of its inputs.

    The first calls with a shape run the step itself, on a side stream as capture requires. They
    are ordinary steps, so that nothing is computed twice.
    """

    def __init__(self, step: Callable[..., Tensor]) -> None:
        self.step = step
        self.recordings: dict[torch.Size, _Recording] = {}

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Run or replay the step on these inputs; the first one tells their shapes."""
        shape = inputs[0].shape
        if shape not in self.recordings:
            self.recordings[shape] = _Recording(self.step, inputs)
        return self.recordings[shape](inputs)


class _Recording:
    """The step for one shape: its inputs at fixed addresses, and the graph once it exists."""

    def __init__(self, step: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
        self.step = step
        self.inputs = [tensor.clone().contiguous() for tensor in inputs]
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result = torch.empty(())

    def __call__(self, inputs: Sequence[Tensor]) -> Tensor:
        for tensor, new in zip(self.inputs, inputs, strict=True):
            tensor.copy_(new)
        self.calls += 1
        if self.calls <= WARM_UP:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.result = self.step(*self.inputs)
            torch.cuda.current_stream().wait_stream(side)
            return self.result
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with _nothing_freed(), torch.cuda.graph(self.graph):
                self.result = self.step(*self.inputs)
        self.graph.replay()
        return self.result


@contextmanager
def _nothing_freed() -> Iterator[None]:
    """Disable garbage collection: freeing the graph of an earlier fit makes a capture fail."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
