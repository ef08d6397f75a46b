"""Columns of numbers about pairs, checked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["columns_of", "is_tensor", "numbers", "weights_of"]

Floats = NDArray[np.float64]


def columns_of(name: str, values: Any, n: int) -> Floats:
    """Numbers of shape (n,), none missing."""
    column = numbers(values)
    if column.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one for each pair; got {column.shape}")
    if np.isnan(column).any():
        raise ValueError(f"{name} is NaN in row {int(np.isnan(column).argmax())}")
    return column


def weights_of(weight: Any, n: int) -> Floats:
    """Weights (n,) scaled to a mean of one; None weighs all alike."""
    if weight is None:
        return np.ones(n)
    column = columns_of("weight", weight, n)
    bad = ~(np.isfinite(column) & (column > 0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"weight must be positive and finite; row {row} is {column[row]:g}: "
            "drop pairs that should not count"
        )
    # By the largest first, so that huge weights do not overflow in the sum.
    relative = column / column.max()
    return np.asarray(relative * (n / relative.sum()))


def numbers(values: Any) -> Floats:
    """Values as an array of float64, wherever they are."""
    if is_tensor(values):
        values = values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def is_tensor(values: Any) -> TypeGuard[Tensor]:
    """Whether values are a torch tensor, found out without importing torch."""
    return isinstance(values, getattr(sys.modules.get("torch"), "Tensor", ()))
