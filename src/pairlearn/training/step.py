"""One optimisation step of a whole fleet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vjp

from pairlearn.training.adam import FleetAdam
from pairlearn.training.network import Network, Operands, Statistics
from pairlearn.training.objective import Objective
from pairlearn.training.ranks import ALONE, Ranks

__all__ = ["Step"]


class Step:
    """Gradients of all members' risks, and Adam.

    The network computes with operands made from its parameters: weights cast for the
    matrix products, batch norm folded into the first layer. Gradients are taken with
    respect to the operands, which keeps them in the products' type, and pulled back to
    the parameters where Adam reads them. A lone module has no operands but its parameters,
    and ordinary autograd: its step is that of the loop one would write.

    Parameters
    ----------
    network : Network
        In training mode, on its device.
    learning_rate, weight_decay : Tensor of shape (G, M)
        Of each member.
    objective : Objective
        What to minimise.
    compiled_pairs : int, optional
        Compile the parts of the step for batches of this many pairs. Others, the short
        last one of an epoch, run as written: they are few, and compiling takes long.
    ranks : Ranks
        Those that have parts of each batch.
    """

    def __init__(
        self,
        network: Network,
        learning_rate: Tensor,
        weight_decay: Tensor,
        objective: Objective,
        *,
        compiled_pairs: int | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.network, self.objective, self.ranks = network, objective, ranks
        named = network.named_parameters()
        self.parameters: Operands = {name: p for name, p in named if p.requires_grad}
        self.adam = FleetAdam(list(self.parameters.values()), learning_rate, weight_decay)
        with torch.no_grad():
            made = network.operands(self.parameters)
        # Some operands are parameters as they are; the others are kept beside them.
        self.made = [name for name in made if made[name] is not self.parameters.get(name)]
        self.operands = made | {name: made[name].clone() for name in self.made}
        self.compiled_pairs = compiled_pairs
        self._parts: list[Callable[..., Any]] = [
            self.gradients if network.stacked else self.plain_gradients,
            self.sums,
            self.update,
            self.remake_sums,
        ]
        self._compiled = self._parts
        self._forward: Callable[..., Tensor] = self.risk
        if compiled_pairs is not None:
            # In parts, or the compiler would fuse sums over a layer's weights with the
            # updates of those weights, into kernels of half the speed.
            torch._dynamo.reset()
            if network.stacked:
                self._compiled = [torch.compile(part, dynamic=False) for part in self._parts]
            else:
                self._forward = torch.compile(self.risk, dynamic=False)

    @torch.no_grad()
    def __call__(self, x: Tensor, u: Tensor, v: Tensor, weight: Tensor, *columns: Tensor) -> Tensor:
        """Step on instances (G, 2B, ...) and judgements (G, M, B): the sum of the risks."""
        full = u.shape[-1] == self.compiled_pairs
        gradients, sums, update, remake_sums = self._compiled if full else self._parts
        risk: Tensor
        slopes, risk, statistics = gradients(x, u, v, weight, *columns)
        self.network.absorb(statistics)
        slopes = dict(zip(slopes, self.ranks.average([*slopes.values()]), strict=True))
        if self.network.stacked:
            update(slopes, sums(slopes))
            remake_sums()
        else:
            self.adam.step([*slopes.values()])
        return risk

    @torch.no_grad()
    def restart(self) -> None:
        """Forget every step, and take the network's weights as they now are."""
        self.adam.restart()
        self._remake(self.made)

    def risk(self, x: Tensor, u: Tensor, v: Tensor, weight: Tensor, *columns: Tensor) -> Tensor:
        """The risk of a lone module on a batch, by which it can be differentiated."""
        pairs = u.shape[-1]
        logits = self.network.run(self.operands, x, torch.cat([weight, weight]))[0]
        share = weight / self.ranks.sum(weight.sum())
        return self.objective(
            logits[..., :pairs], logits[..., pairs:], u, v, share, *columns, total=self.ranks.sum
        )

    def plain_gradients(
        self, x: Tensor, u: Tensor, v: Tensor, weight: Tensor, *columns: Tensor
    ) -> tuple[Operands, Tensor, Statistics]:
        """Gradients of a lone module's parameters, and the risk."""
        forward = self._forward if u.shape[-1] == self.compiled_pairs else self.risk
        with torch.enable_grad():
            risk = forward(x, u, v, weight, *columns)
            parameters = list(self.parameters.values())
            slopes = torch.autograd.grad(risk, parameters, materialize_grads=True)
        return dict(zip(self.parameters, slopes, strict=True)), risk.detach(), []

    def gradients(
        self, x: Tensor, u: Tensor, v: Tensor, weight: Tensor, *columns: Tensor
    ) -> tuple[Operands, Tensor, Statistics]:
        """Gradients of a stacked network's operands, the risk, and the batch's statistics."""
        pairs = u.shape[-1]
        rows_weight = torch.cat([weight, weight])
        share = weight / self.ranks.sum(weight.sum())

        def objective(operands: Operands) -> tuple[Tensor, tuple[Tensor, Statistics]]:
            logits, statistics = self.network.run(operands, x, rows_weight)
            left, right = logits[..., :pairs], logits[..., pairs:]
            risk = self.objective(left, right, u, v, share, *columns, total=self.ranks.sum)
            return risk, (risk.detach(), statistics)

        gradients, (risk, statistics) = grad(objective, has_aux=True)(self.operands)
        return gradients, risk, statistics

    def sums(self, gradients: Operands) -> Operands:
        """Those gradients of parameters that are sums over a layer's weights."""
        pulled = self._pull_back(gradients)
        return {name: pulled[name] for name in self.network.sums if name in pulled}

    def update(self, gradients: Operands, sums: Operands) -> None:
        """Adam, and the operands of the next step but for the sums."""
        pulled = self._pull_back(gradients) | sums
        self.adam.step([pulled[name] for name in self.parameters])
        self._remake([name for name in self.made if name not in self.network.sums])

    def remake_sums(self) -> None:
        """The operands of the next step that are sums over a layer's weights."""
        self._remake([name for name in self.made if name in self.network.sums])

    @torch.no_grad()
    def _remake(self, names: list[str]) -> None:
        made = self.network.operands(self.parameters)
        for name in names:
            self.operands[name].copy_(made[name])

    def _pull_back(self, gradients: Operands) -> Operands:
        """Gradients of the parameters from those of the operands made of them."""
        pull = vjp(self.network.operands, self.parameters)[1]
        pulled: Operands = pull(gradients)[0]
        return pulled
