"""One optimisation step of a whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.func import grad, vjp

from pairlearn.losses import Loss
from pairlearn.risks import contract, correct, pair_moments
from pairlearn.training.adam import FleetAdam
from pairlearn.training.network import Network, Operands, Statistics
from pairlearn.training.ranks import ALONE, Ranks

__all__ = ["Objective", "Step", "Total"]

Total = Callable[[Tensor], Tensor]
"""A sum over ranks, through which gradients flow."""


class Objective(Protocol):
    """What a group minimises in place of the risks of its members.

    Attributes
    ----------
    columns : sequence of Tensor of shape (n,)
        What it needs to know of each pair beside the two judgements.
    """

    columns: Sequence[Tensor]

    def __call__(
        self,
        left: Tensor,
        right: Tensor,
        u: Tensor,
        v: Tensor,
        share: Tensor,
        *columns: Tensor,
        total: Total,
    ) -> Tensor:
        """The sum over the members, from logits, judgements and columns (G, M, B).

        The shares (B,) of the pairs sum to one; pairs that only fill up a batch have none.
        Of a batch that several ranks have parts of, `total` sums over all of them.
        """


class TableObjective:
    """Every member's risk: its table contracted with the moments, and corrected."""

    columns: Sequence[Tensor] = ()

    def __init__(self, tables: Tensor, slopes: Tensor, loss: Loss) -> None:
        self.tables, self.slopes, self.loss = tables, slopes, loss

    def __call__(
        self,
        left: Tensor,
        right: Tensor,
        u: Tensor,
        v: Tensor,
        share: Tensor,
        *columns: Tensor,
        total: Total,
    ) -> Tensor:
        """The sum of the risks."""
        moments = total(pair_moments(left, right, u, v, self.loss, share=share))
        return correct(contract(self.tables, moments), self.slopes).sum()


class Step:
    """Gradients of all members' risks, and Adam.

    The network computes with operands made from its parameters: weights cast for the
    matrix products, batch norm folded into the first layer. Gradients are taken with
    respect to the operands, which keeps them in the products' type, and pulled back to
    the parameters where Adam reads them.

    Parameters
    ----------
    network : Network
        In training mode, on its device.
    learning_rate, weight_decay : Tensor of shape (G, M)
        Of each member.
    tables, slopes : Tensor of shape (G, M, k, 5, 3) and (G, M, 1)
        Risks and corrections of the members.
    loss : Loss
        The margin loss of all of them.
    compiled_pairs : int, optional
        Compile the parts of the step for batches of this many pairs. Others, the short
        last one of an epoch, run as written: they are few, and compiling takes long.
    objective : Objective, optional
        What to minimise in place of the members' risks.
    ranks : Ranks
        Those that have parts of each batch.
    """

    def __init__(
        self,
        network: Network,
        learning_rate: Tensor,
        weight_decay: Tensor,
        tables: Tensor,
        slopes: Tensor,
        loss: Loss,
        *,
        compiled_pairs: int | None = None,
        objective: Objective | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.network, self.tables, self.slopes = network, tables, slopes
        self.ranks = ranks
        self.objective = objective or TableObjective(tables, slopes, loss)
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
            self.gradients,
            self.sums,
            self.update,
            self.remake_sums,
        ]
        self._compiled = self._parts
        if compiled_pairs is not None:
            # In parts, or the compiler would fuse sums over a layer's weights with the
            # updates of those weights, into kernels of half the speed. Where no operands
            # are made of the parameters, all but the first are Adam, which is fused as it is.
            torch._dynamo.reset()
            count = len(self._parts) if self.made else 1
            compiled = [torch.compile(part, dynamic=False) for part in self._parts[:count]]
            self._compiled = compiled + self._parts[count:]

    @torch.no_grad()
    def __call__(self, x: Tensor, u: Tensor, v: Tensor, weight: Tensor, *columns: Tensor) -> Tensor:
        """Step on instances (G, 2B, ...) and judgements (G, M, B): the sum of the risks."""
        full = u.shape[-1] == self.compiled_pairs
        gradients, sums, update, remake_sums = self._compiled if full else self._parts
        risk: Tensor
        slopes, risk, statistics = gradients(x, u, v, weight, *columns)
        self.network.absorb(statistics)
        slopes = dict(zip(slopes, self.ranks.average([*slopes.values()]), strict=True))
        update(slopes, sums(slopes))
        remake_sums()
        return risk

    @torch.no_grad()
    def restart(self, tables: Tensor, slopes: Tensor) -> None:
        """Forget every step, take the network's weights as they now are, and other risks."""
        self.tables.copy_(tables)
        self.slopes.copy_(slopes)
        self.adam.restart()
        self._remake(self.made)

    def gradients(
        self, x: Tensor, u: Tensor, v: Tensor, weight: Tensor, *columns: Tensor
    ) -> tuple[Operands, Tensor, Statistics]:
        """Gradients of the operands, the risk, and the batch's statistics."""
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
