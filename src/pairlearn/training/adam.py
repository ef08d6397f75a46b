"""Adam for a fleet: every model has its own learning rate and weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["FleetAdam"]

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


class FleetAdam:
    """Adam with L2 weight decay in the gradient, as `torch.optim.Adam` does it.

    Parameters
    ----------
    parameters : sequence of Tensor
        Stacked parameters (G, M, ...), or any if all models share their rates.
    learning_rate, weight_decay : Tensor of shape (G, M)
        One of each for every model.
    """

    def __init__(
        self, parameters: Sequence[Tensor], learning_rate: Tensor, weight_decay: Tensor
    ) -> None:
        self.parameters = list(parameters)
        device = self.parameters[0].device
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.steps = torch.zeros((), device=device)
        uniform = bool(
            (learning_rate == learning_rate.view(-1)[0]).all()
            and (weight_decay == weight_decay.view(-1)[0]).all()
        )
        if uniform:
            learning_rate, weight_decay = learning_rate.view(-1)[0], weight_decay.view(-1)[0]
        self.uniform = uniform
        self.learning_rate, self.weight_decay = (
            learning_rate.float().to(device),
            weight_decay.float().to(device),
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters in place."""
        if self.uniform and self.parameters[0].device.type == "cpu":
            self._fused_step(list(gradients))
            return
        self.steps.add_(1)
        correction1 = 1 - BETA1**self.steps
        correction2 = (1 - BETA2**self.steps).sqrt()
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            lead = self.learning_rate.shape + (1,) * (p.ndim - 2 if not self.uniform else 0)
            gradient = g + self.weight_decay.view(lead) * p
            m.lerp_(gradient, 1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            p.sub_(self.learning_rate.view(lead) / correction1 * m / (v.sqrt() / correction2 + EPS))

    def _fused_step(self, gradients: list[Tensor]) -> None:
        self.steps.add_(1)
        torch._fused_adam_(  # one pass over memory; the public optimiser calls the same
            self.parameters,
            [g.contiguous() for g in gradients],  # it reads memory in order, whatever the strides
            self.first,
            self.second,
            [],
            [self.steps] * len(self.parameters),
            lr=float(self.learning_rate),
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=float(self.weight_decay),
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Everything to go on from, by name."""
        state = {"adam.steps": self.steps}
        for index, (m, v) in enumerate(zip(self.first, self.second, strict=True)):
            state |= {f"adam.first.{index}": m, f"adam.second.{index}": v}
        return state
