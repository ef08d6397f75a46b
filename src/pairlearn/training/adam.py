"""Adam for a fleet: every model has its own learning rate and weight decay."""

from __future__ import annotations

import math
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
        rates = {
            *zip(learning_rate.flatten().tolist(), weight_decay.flatten().tolist(), strict=True)
        }
        self.uniform = rates.pop() if len(rates) == 1 else None
        self.learning_rate, self.weight_decay = learning_rate.to(device), weight_decay.to(device)
        # On CUDA the rate is read from a tensor, so that a recorded step sees it change.
        self.rate: float | Tensor = self.uniform[0] if self.uniform is not None else 0.0
        if device.type == "cuda":
            self.rate = torch.tensor(self.rate, device=device)

    def scale_rate(self, factor: float) -> None:
        """Multiply the learning rate, which all models must share, by a factor from now on."""
        if self.uniform is None:
            raise ValueError("models with rates of their own have no common schedule")
        if isinstance(self.rate, Tensor):
            self.rate.fill_(factor * self.uniform[0])
        else:
            self.rate = factor * self.uniform[0]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters in place."""
        self.steps.add_(1)
        if self.uniform is not None and not torch.compiler.is_compiling():
            self._fused_step(list(gradients), self.uniform[1])
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

    def restart(self) -> None:
        """Forget every step."""
        for tensor in self.state().values():
            tensor.zero_()

    def _fused_step(self, gradients: list[Tensor], decay: float) -> None:
        torch._fused_adam_(  # one pass over memory; the public optimiser calls the same
            self.parameters,
            [_laid_out_like(p, g) for p, g in zip(self.parameters, gradients, strict=True)],
            self.first,
            self.second,
            [],
            [self.steps] * len(self.parameters),
            lr=self.rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=decay,
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


def _laid_out_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in the parameter's order in memory, in which the fused step reads it."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _for(parameter: Tensor, rates: Tensor) -> Tensor:
    """Rates (G, M) in the shape of a parameter (G, M, ...)."""
    return rates.view(rates.shape + (1,) * (parameter.ndim - 2)).to(parameter.dtype)
