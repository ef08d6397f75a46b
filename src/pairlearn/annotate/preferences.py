"""Probabilities that the right one is better, and what they can mean.

Many tools and models give P = P(right is better) for a pair. What that says about
(s, c) depends on what "better" does with pairs of the same class, and nothing in the
number tells. So it is never guessed: the caller names the reading.

With a = P(+, −), b = P(−, +) and s = P(same), a + b + s = 1 and c = b − a:

**ties half**: P counts a pair of the same class half for each side, as win rates and
forced choices between equals do: P = b + s/2, so c = 2P − 1, whatever s is.

**given different**: P is about pairs that differ, P = b/(a + b), so c = (1 − s)(2P − 1),
and s must be known. The Bradley-Terry model is this reading where the scores are
log-odds of the class: σ(g' − g) = r'(1 − r)/(r'(1 − r) + r(1 − r')) = b/(a + b).

**side only**: P says which one is better and its size is not to be trusted; P > ½ is the
preference "right", P < ½ is "left", P = ½ says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "READINGS",
    "Reading",
    "difference_given_different",
    "difference_with_ties_half",
    "side_only",
]

Floats: TypeAlias = NDArray[np.float64]
Reading: TypeAlias = Literal["ties-half", "given-different", "side-only"]


def difference_with_ties_half(probability: Any) -> Floats:
    """C = 2P − 1, if P counts pairs of the same class half for each side.

    Parameters
    ----------
    probability : array of shape (n,)
        P(right is better), in [0, 1]; NaN where not given.

    Examples
    --------
    >>> difference_with_ties_half([0.5, 0.9]).round(2)
    array([0. , 0.8])
    """
    difference: Floats = 2 * _probabilities(probability) - 1
    return difference


def difference_given_different(probability: Any, similarity: Any) -> Floats:
    """C = (1 − s)(2P − 1), if P is about pairs whose classes differ, as Bradley-Terry's is.

    Parameters
    ----------
    probability : array of shape (n,)
        P(right is better | the classes differ), in [0, 1]; NaN where not given.
    similarity : array of shape (n,)
        s in [0, 1]; every row with a probability needs one.

    Examples
    --------
    >>> difference_given_different([0.9], [0.75]).round(2)
    array([0.2])
    """
    p = _probabilities(probability)
    s = np.asarray(similarity, dtype=np.float64)
    if s.shape != p.shape:
        raise ValueError(f"similarity has shape {s.shape} and probability {p.shape}")
    lacking = ~np.isnan(p) & np.isnan(s)
    if lacking.any():
        raise ValueError(
            f"row {int(lacking.argmax()) + 1} has a probability and no similarity: the reading "
            "'given-different' needs both; 'ties-half' does not"
        )
    outside = (s < 0) | (s > 1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"similarity is {s[row]:g} in row {row + 1}, outside [0, 1]")
    difference: Floats = (1 - s) * (2 * p - 1)
    return difference


def side_only(probability: Any) -> NDArray[np.int8]:
    """Which one is better and nothing more: −1 the left, +1 the right, 0 not said.

    Examples
    --------
    >>> side_only([0.2, 0.5, 0.51])
    array([-1,  0,  1], dtype=int8)
    """
    p = _probabilities(probability)
    sides: NDArray[np.int8] = (p > 0.5).astype(np.int8) - (p < 0.5).astype(np.int8)
    return sides


READINGS: dict[Reading, Callable[..., Any]] = {
    "ties-half": difference_with_ties_half,
    "given-different": difference_given_different,
    "side-only": side_only,
}
"""The readings by name, as the command line has them."""


def _probabilities(values: Any) -> Floats:
    p = np.asarray(values, dtype=np.float64)
    if p.ndim != 1:
        raise ValueError(f"probability must have shape (n,); got {p.shape}")
    outside = (p < 0) | (p > 1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"probability is {p[row]:g} in row {row + 1}, outside [0, 1]")
    return p
