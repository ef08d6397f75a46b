"""Adam for a fleet: every model has its own learning rate and weight decay."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["FleetAdam"]

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


class FleetAdam:
    """Adam with L2 weight decay in the gradient, as `torch.optim.Adam` does it.

    Parameters
    ----------
    parameters : mapping of str to Tensor
        Stacked parameters (G, M, ...), or any if all models share their rates.
    learning_rate, weight_decay : Tensor of shape (G, M)
        One of each for every model.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], learning_rate: Tensor, weight_decay: Tensor
    ) -> None:
        # Of each parameter: itself and its two moments.
        self.held = {
            name: (p, torch.zeros_like(p), torch.zeros_like(p)) for name, p in parameters.items()
        }
        first = next(iter(parameters.values()))
        self.dtype = first.dtype
        self.steps = torch.zeros((), device=first.device)
        rates = {
            *zip(learning_rate.flatten().tolist(), weight_decay.flatten().tolist(), strict=True)
        }
        self.uniform = rates.pop() if len(rates) == 1 else None
        self.learning_rate = learning_rate.to(first.device)
        self.weight_decay = weight_decay.to(first.device)

    def advance(self) -> None:
        """Count a step, before the parameters take it."""
        self.steps.add_(1)

    def corrections(self) -> Tensor:
        """1 − β₁ᵗ and √(1 − β₂ᵗ), by which the moments are divided."""
        # The differences themselves would lose four digits of float32 in early steps.
        steps = self.steps.to(self.dtype)
        second = (-torch.expm1(steps * math.log(BETA2))).sqrt()
        return torch.stack([-torch.expm1(steps * math.log(BETA1)), second])

    @torch.no_grad()
    def step(self, gradients: Mapping[str, Tensor]) -> None:
        """Update these parameters in place."""
        if self.uniform is not None and not torch.compiler.is_compiling():
            self._fused_step(gradients, *self.uniform)
            return
        correction1, correction2 = self.corrections()
        for name, g in gradients.items():
            p, m, v = self.held[name]
            rate, decay = self.uniform or (_for(p, self.learning_rate), _for(p, self.weight_decay))
            gradient = g + decay * p
            m.lerp_(gradient, 1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            p.sub_(rate / correction1 * m / (v.sqrt() / correction2 + EPS))

    def _fused_step(self, gradients: Mapping[str, Tensor], rate: float, decay: float) -> None:
        parameters, first, second = zip(*(self.held[name] for name in gradients), strict=True)
        torch._fused_adam_(  # one pass over memory; the public optimiser calls the same
            parameters,
            [_laid_out_like(p, g) for p, g in zip(parameters, gradients.values(), strict=True)],
            first,
            second,
            [],
            [self.steps] * len(parameters),
            lr=rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=decay,
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )

    def restart(self) -> None:
        """Forget every step."""
        for tensor in self.state().values():
            tensor.zero_()

    def state(self) -> dict[str, Tensor]:
        """Everything to go on from, by name."""
        state = {"adam.steps": self.steps}
        for name, (_, m, v) in self.held.items():
            state |= {f"adam.first.{name}": m, f"adam.second.{name}": v}
        return state


def _laid_out_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in the parameter's order in memory, in which the fused step reads it."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _for(parameter: Tensor, rates: Tensor) -> Tensor:
    """Rates (G, M) in the shape of a parameter (G, M, ...)."""
    return rates.view(rates.shape + (1,) * (parameter.ndim - 2)).to(parameter.dtype)
