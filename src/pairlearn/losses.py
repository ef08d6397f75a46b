"""Margin losses ℓ(z, y) of a logit z and a class y ∈ {−1, +1}.

A loss is two curves, ℓ(z, +1) and ℓ(z, −1), computed together because every risk needs both, and
two constants for the error bounds: its Lipschitz constant and its supremum for |z| ≤ radius
(infinite where none exists).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["LOSSES", "Loss", "log_odds", "log_same", "make_loss"]


@dataclass(frozen=True)
class Loss:
    """A margin loss.

    Attributes
    ----------
    name : str
        Key in `LOSSES`.
    both : callable
        Maps logits (..., n) to (..., 2, n): ℓ(z, +1) and ℓ(z, −1).
    lipschitz, bound : callable
        Lipschitz constant and supremum on |z| ≤ radius, as functions of the radius.

    Examples
    --------
    >>> hinge = make_loss("hinge")
    >>> hinge(torch.tensor([0.0, 3.0]), torch.tensor([1, -1]))
    tensor([1., 4.])
    >>> hinge.lipschitz(math.inf), hinge.bound(2.0)
    (1.0, 3.0)
    """

    name: str
    both: Callable[[Tensor], Tensor]
    lipschitz: Callable[[float], float]
    bound: Callable[[float], float]

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        """ℓ(z, y) element by element; a positive y is class +1."""
        if logits.shape != y.shape:
            raise ValueError(
                f"logits and y must share one shape; got {tuple(logits.shape)}, {tuple(y.shape)}"
            )
        positive, negative = self.both(in_full_precision(logits)).unbind(-2)
        return torch.where(y > 0, positive, negative)


def in_full_precision(logits: Tensor) -> Tensor:
    """Half-precision logits as float32, since losses of large margins would overflow."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def log_odds(outputs: Tensor, members: Tensor) -> Tensor:
    """Log-odds λ_S(z) (...) of sets of classes, given as masks (..., K), at outputs (..., K).

    With p = softmax(z), λ_S(z) = logit Σ_S p_k = logsumexp over S of z − logsumexp over the others.
    About S a statement is one of two classes at these log-odds.

    Examples
    --------
    >>> z = torch.log(torch.tensor([0.2, 0.3, 0.5]))
    >>> log_odds(z, torch.tensor([True, True, False])).round(decimals=4)
    tensor(0.)
    """
    z = in_full_precision(outputs)
    inside, outside = z.masked_fill(~members, -math.inf), z.masked_fill(members, -math.inf)
    return torch.logsumexp(inside, -1) - torch.logsumexp(outside, -1)


def log_same(outputs: Tensor, outputs_prime: Tensor) -> Tensor:
    """Log-probabilities (2, ...) that two items are of the same class, and of different ones.

    With p = softmax(z), P(same) = Σ_k p_k p'_k and P(different) = Σ_k p_k (1 − p'_k).

    Examples
    --------
    >>> log_same(torch.zeros(1, 4), torch.zeros(1, 4)).exp()
    tensor([[0.2500],
            [0.7500]])
    """
    log_p, log_q = F.log_softmax(in_full_precision(torch.stack([outputs, outputs_prime])), -1)
    # log(1 − p'_k): for the likeliest class the sum of the others, where the difference would
    # cancel; the others are at most one half.
    top = torch.zeros_like(log_q, dtype=torch.bool).scatter(-1, log_q.argmax(-1, keepdim=True), 1)
    rest = torch.logsumexp(log_q.masked_fill(top, -math.inf), -1, keepdim=True)
    log_not_q = torch.where(top, rest, torch.log1p(-log_q.masked_fill(top, -1.0).exp()))
    return torch.logsumexp(torch.stack([log_p + log_q, log_p + log_not_q]), -1)


def _both(loss: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The losses (..., 2, n) of both classes, from a function of −yz."""
    return lambda z: loss(torch.stack([-z, z], -2))


def _zero_one(z: Tensor) -> Tensor:
    # z = 0 is predicted negative, so that the two curves always add up to one.
    error = (z > 0).to(z.dtype)
    return torch.stack([1 - error, error], -2)


# By default softplus is linear from 20 on, which is inexact in float64.
_logistic = _both(lambda x: F.softplus(x, threshold=40))
_sigmoid = _both(torch.sigmoid)
_squared = _both(lambda x: (1 + x).square())
_hinge = _both(lambda x: F.relu(1 + x))
_squared_hinge = _both(lambda x: F.relu(1 + x).square())
LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("logistic", _logistic, lambda r: 1.0, lambda r: r + math.log1p(math.exp(-r))),
        Loss("sigmoid", _sigmoid, lambda r: 0.25, lambda r: 1 / (1 + math.exp(-r))),
        Loss("squared", _squared, lambda r: 2 * (1 + r), lambda r: (1 + r) ** 2),
        Loss("hinge", _hinge, lambda r: 1.0, lambda r: 1 + r),
        Loss("squared_hinge", _squared_hinge, lambda r: 2 * (1 + r), lambda r: (1 + r) ** 2),
        Loss("zero_one", _zero_one, lambda r: math.inf, lambda r: 1.0),
    )
}


def make_loss(name: str) -> Loss:
    """The loss of that name.

    Examples
    --------
    >>> make_loss("logistic").bound(0.0)
    0.6931471805599453
    """
    try:
        return LOSSES[name]
    except KeyError:
        raise ValueError(f"loss {name!r} is unknown; choose one of {', '.join(LOSSES)}") from None
