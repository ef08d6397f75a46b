"""Risk correction: one scalar slope for what may not be negative.

A partial risk estimates a non-negative quantity, yet on a batch it can come out
negative and a flexible model will drive it down without limit. The correction

    f_τ(z) = max(z, −τ z),   τ ≥ −1,

is the identity for τ = −1 ("none"), ReLU for τ = 0 and the absolute value for
τ = 1. It is positively homogeneous, f(wz) = w f(z) for w ≥ 0, so a weight may
stand inside or outside of it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["CORRECTIONS", "correct", "correction_name", "correction_slope"]

CORRECTIONS: dict[str, float] = {"none": -1.0, "relu": 0.0, "abs": 1.0}


def correction_slope(correction: str | float) -> float:
    """The slope τ of a correction given by name or number.

    Examples
    --------
    >>> correction_slope("abs"), correction_slope(0.5)
    (1.0, 0.5)
    """
    if isinstance(correction, str):
        if correction not in CORRECTIONS:
            raise ValueError(
                f"correction {correction!r} is unknown; choose one of "
                f"{', '.join(CORRECTIONS)}, or a slope of at least -1"
            )
        return CORRECTIONS[correction]
    slope = float(correction)
    if not (math.isfinite(slope) and slope >= -1):
        raise ValueError(f"correction must be a finite slope of at least -1; got {correction}")
    return slope


def correction_name(slope: float) -> str:
    """The name of a slope, as it stands at the end of a risk's name."""
    for name, value in CORRECTIONS.items():
        if value == slope:
            return name
    return f"slope={slope:g}"


def correct(partial_risks: Tensor, slope: float | Tensor) -> Tensor:
    """f_τ of each partial risk; τ may be a tensor that broadcasts.

    Examples
    --------
    >>> import torch
    >>> correct(torch.tensor([-2.0, 3.0]), 0.5)
    tensor([1., 3.])
    """
    if isinstance(slope, Tensor):
        return torch.where(partial_risks < 0, -slope * partial_risks, partial_risks)
    return F.leaky_relu(partial_risks, -slope)
