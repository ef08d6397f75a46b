"""How many labels or judged pairs measure an accuracy within ±x.

The half width of Wilson's interval falls with the number of trials, so both functions are monotone:
a smaller half width never takes fewer labels or pairs. They differ in how many trials a label or a
pair is worth. A labelled item is one trial, or 1/(1 − ρ²) with predictions that have the
correlation ρ with being right. What a pair is worth under either reading is taken from the width of
the interval from a table of pairs, a pilot or a simulated one.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Literal

from pairlearn.columns import check_confidence, check_share
from pairlearn.evaluation.judged import proportion
from pairlearn.evaluation.measures import estimate_accuracy
from pairlearn.labels import PairLabels

MOST = 2**40
"""Sizes are searched up to this one, far above any that can be collected."""


def labels_needed(
    half_width: float, *, accuracy: float, correlation: float = 0.0, confidence: float = 0.95
) -> int:
    """Number of labelled items that measure an accuracy within ±`half_width`.

    Parameters
    ----------
    half_width : float
        Half the length of the interval, in (0, 0.5).
    accuracy : float
        A guess of the accuracy; 0.5 needs the most labels.
    correlation : float
        Correlation ρ in [0, 1) between the model's probability of its decision and being right. It
        helps if many more items than labels are available.
    confidence : float
        Coverage of the interval.

    Examples
    --------
    >>> labels_needed(0.05, accuracy=0.9), labels_needed(0.05, accuracy=0.9, correlation=0.4)
    (141, 119)
    """
    _check(half_width, accuracy, confidence)
    check_share("correlation", correlation, zero=True)
    return math.ceil(_trials(half_width, accuracy, confidence) * (1 - correlation**2))


def pairs_needed(
    half_width: float,
    logits: Any,
    logits_prime: Any,
    labels: PairLabels,
    *,
    reading: Literal["informed", "independent"] = "informed",
    confidence: float = 0.95,
    **options: Any,
) -> int:
    """Number of judged pairs that measure an accuracy within ±`half_width`, by one reading.

    Parameters
    ----------
    half_width : float
        Half the length of the interval, in (0, 0.5).
    logits, logits_prime, labels, options
        A table of pairs like those to be collected, as in `estimate_accuracy`: a pilot, or one
        simulated from assumptions.
    reading : {"informed", "independent"}
        The reading whose interval is meant. More pairs do not bring the two readings together.
    confidence : float
        Coverage of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> z, z_prime = np.random.default_rng(0).normal(size=(2, 300))
    >>> labels = PairLabels.from_posteriors(*(1 / (1 + np.exp(-4 * v)) for v in (z, z_prime)))
    >>> few, many = (pairs_needed(x, z, z_prime, labels) for x in (0.02, 0.01))
    >>> 3 < many / few < 5
    True
    """
    if reading not in ("informed", "independent"):
        raise ValueError(f"reading must be 'informed' or 'independent'; got {reading!r}")
    estimate = estimate_accuracy(logits, logits_prime, labels, confidence=confidence, **options)
    part = getattr(estimate, reading)
    width = (part.high - part.low) / 2
    if not 0 < width < 0.5 or math.isnan(part.value):
        raise ValueError(
            f"the {reading} reading of these pairs is {part}, which does not tell how its interval "
            "narrows: give more pairs, or pairs that several people judged if answers are hard"
        )
    value = min(max(part.value, 1e-3), 1 - 1e-3)
    _check(half_width, value, confidence)
    worth = _trials(width, value, confidence) / estimate.n
    return math.ceil(_trials(half_width, value, confidence) / worth)


def _trials(half_width: float, value: float, confidence: float) -> float:
    """The least number of trials with a Wilson interval of this half width, by bisection."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)

    def wide(trials: float) -> bool:
        interval = proportion(value, value * (1 - value) / trials, trials, z)
        return (interval.high - interval.low) / 2 > half_width

    low, high = 1e-3, float(MOST)
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if wide(middle) else (low, middle)
    return high


def _check(half_width: float, accuracy: float, confidence: float) -> None:
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must lie in (0, 0.5); got {half_width:g}")
    check_share("accuracy", accuracy)
    check_confidence(confidence)
