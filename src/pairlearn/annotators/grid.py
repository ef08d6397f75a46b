"""The grid of true posteriors, and what becomes of honest answers on it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from pairlearn.annotators.scale import RANGES
from pairlearn.columns import Floats, Indices

Form = Literal["pull", "shift"]

_LOW = [0.003, 0.02, 0.05, 0.1, 0.17, 0.25, 0.33, 0.42]
POSTERIORS = np.array([*_LOW, 0.5, *(1 - r for r in reversed(_LOW))])
SIZE = len(POSTERIORS)
LEFT, RIGHT = (grid.ravel() for grid in np.indices((SIZE, SIZE)))
HONEST = np.stack(
    [
        POSTERIORS[LEFT] * POSTERIORS[RIGHT] + (1 - POSTERIORS[LEFT]) * (1 - POSTERIORS[RIGHT]),
        POSTERIORS[RIGHT] - POSTERIORS[LEFT],
    ],
    axis=1,
)
"""Honest answers (s, c) to all couples of posteriors."""
AMOUNTS = np.linspace(-1, 1, 81)
STEP = 0.025
HARD = np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0]])


def bend(form: Form, amount: Any, side: int, honest: Any) -> Floats:
    """What is made of honest similarities (side 0) or differences (side 1).

    "pull" draws them to an end of the scale, "shift" adds and stops at the ends.
    """
    low, high = RANGES[side]
    if form == "shift":
        return np.asarray(np.clip(honest + amount, low, high))
    to = np.where(np.asarray(amount) > 0, high, low)
    share = np.abs(amount)
    return np.asarray((1 - share) * honest + share * to)


BENT = {
    (side, form): bend(form, AMOUNTS[:, None], side, HONEST[:, side])
    for side in (0, 1)
    for form in ("pull", "shift")
}


def outcome_of(values: Floats) -> Indices:
    """Which of the hard answers each is; one after the last for those that no outcome gives."""
    s, c = values[:, 0], values[:, 1]
    # One answer alone stands for the outcome that it leaves likeliest.
    s = np.where(np.isnan(s), np.where(c == 0, 1, 0), s)
    c = np.where(np.isnan(c), 0, c)
    found = np.full(len(values), len(HARD), np.int64)
    for number, (same, right) in enumerate(HARD):
        found[(s == same) & (c == right)] = number
    return found


def outcome_chances(same: Floats, right: Floats) -> Floats:
    """Chances (..., 4) of the three outcomes, and of an answer that is none."""
    parts = np.broadcast_arrays((1 - same - right) / 2, (1 - same + right) / 2, same)
    chances = np.stack([*parts, np.full(parts[0].shape, 1e-6)], -1).clip(1e-6)
    return np.asarray(chances / chances.sum(-1, keepdims=True))
