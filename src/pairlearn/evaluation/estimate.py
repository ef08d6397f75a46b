"""An estimated proportion and its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Estimate", "hull", "proportion", "quantile"]


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its confidence interval.

    Examples
    --------
    >>> print(Estimate(0.9, 0.85, 0.94))
    .900 [.850, .940]
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON: what is not defined becomes None."""
        fields = {"value": self.value, "low": self.low, "high": self.high}
        return {name: None if math.isnan(x) else x for name, x in fields.items()}

    def __str__(self) -> str:
        value, low, high = (_short(x) for x in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def quantile(confidence: float, ends: float) -> float:
    """Two-sided quantile of Student's t with `ends` − 2 degrees of freedom.

    Cornish and Fisher's expansion, right to .01 from 4 degrees of freedom; fewer
    count as 4.

    Examples
    --------
    >>> round(quantile(0.95, 12), 3), round(quantile(0.95, 1e9), 3)
    (2.228, 1.96)
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    v = max(ends - 2, 4.0)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


def proportion(
    value: float, variance: float, count: float, z: float, *, noisy: bool = False
) -> Estimate:
    """Wilson's interval of a proportion, from an estimate and its variance.

    An estimate v with variance V is worth v(1 − v)/V independent trials. Few errors give
    a poor V, and one that is small exactly when the errors happen to be few; so one more
    error among the `count` instances is added to both sides of that ratio,

        N = (v(1 − v) + 1/count) / (V + 1/count²),

    which leaves N as it is when it is near `count` and gives `count` when no error was
    seen. Wilson's interval with N trials is the set of proportions that a score test
    does not reject.

    That supposes a variance that vanishes with the errors. Noise in the judgements does
    not vanish. Where they are `noisy` the interval is extended to hold v ± z√V as well:
    with σ = .5 on 2,500 pairs of Pendigits and an accuracy of .998, coverage rises from 83%
    to 99%.

    Examples
    --------
    Nine hundred of a thousand labelled instances, then no error among them:

    >>> print(proportion(0.9, 0.9 * 0.1 / 1000, 1000, 1.96))
    .900 [.880, .917]
    >>> print(proportion(1.0, 0.0, 1000, 1.96))
    1.000 [.996, 1.000]
    """
    if not (count > 0 and math.isfinite(value) and math.isfinite(variance)):
        return Estimate(math.nan, 0.0, 1.0)
    value = min(max(value, 0.0), 1.0)
    trials = (value * (1 - value) + 1 / count) / (variance + 1 / count**2)
    shrink = 1 / (1 + z * z / trials)
    middle = shrink * (value + z * z / (2 * trials))
    half = shrink * z * math.sqrt(value * (1 - value) / trials + (z / (2 * trials)) ** 2)
    low, high = middle - half, middle + half
    if noisy:
        low = min(low, value - z * math.sqrt(variance))
        high = max(high, value + z * math.sqrt(variance))
    return Estimate(value, min(max(low, 0.0), value), max(min(high, 1.0), value))


def hull(estimates: Iterable[Estimate]) -> Estimate:
    """The first value, with an interval that holds the intervals of all."""
    several = list(estimates)
    return Estimate(several[0].value, min(e.low for e in several), max(e.high for e in several))


def _short(x: float) -> str:
    text = f"{x:.3f}"
    return text[1:] if text.startswith("0.") else text
