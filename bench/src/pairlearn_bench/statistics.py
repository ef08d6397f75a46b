"""Which of two methods is ahead: paired tests, effect sizes, intervals over data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy import stats

from pairlearn.columns import Floats

#: Significance level of the tests, and one less the coverage of the intervals.
LEVEL = 0.05


class Contrast(NamedTuple):
    """How far a method is ahead of another in one cell.

    ``effect`` is the mean difference in standard deviations over seeds (Cohen's d), ``p`` that of
    a t-test of no difference; both are None with fewer than two seeds.
    """

    difference: float
    effect: float | None = None
    p: float | None = None


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Contrast | None:
    """Compare accuracies by seed on the seeds that both have; None if they share none.

    Examples
    --------
    >>> gap = paired({0: 0.95, 1: 0.96, 2: 0.97}, {0: 0.94, 1: 0.94, 2: 0.94})
    >>> round(gap.difference, 6), round(gap.effect, 6), round(gap.p, 4)
    (0.02, 2.0, 0.0742)
    """
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return None
    gaps = np.array([ours[seed] - theirs[seed] for seed in seeds])
    mean, n = float(gaps.mean()), len(gaps)
    if n == 1:
        return Contrast(mean)
    spread = float(gaps.std(ddof=1))
    if spread == 0:
        return Contrast(mean, None, 1.0 if mean == 0 else 0.0)
    p = 2 * float(stats.t.sf(abs(mean) * np.sqrt(n) / spread, n - 1))
    return Contrast(mean, mean / spread, p)


def against_published(ours: Sequence[float], mean: float, std: float, seeds: int) -> Contrast:
    """Compare accuracies with a published mean and population deviation (Welch's t-test)."""
    difference, n = fmean(ours) - mean, len(ours)
    if n == 1:
        return Contrast(difference)
    variances = np.array([np.var(ours, ddof=1), std**2 * seeds / (seeds - 1)])
    errors = variances / [n, seeds]
    if not errors.any():
        return Contrast(difference, None, 1.0 if difference == 0 else 0.0)
    freedom = errors.sum() ** 2 / (errors**2 / [n - 1, seeds - 1]).sum()
    p = 2 * float(stats.t.sf(abs(difference) / np.sqrt(errors.sum()), freedom))
    return Contrast(difference, difference / float(np.sqrt(variances.mean())), p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.maximum.accumulate(np.asarray(p_values)[order] * factors).clip(max=1.0)
    return [float(p) for p in adjusted[np.argsort(order, kind="stable")]]


def verdicts(contrasts: Iterable[Contrast]) -> list[str]:
    """For each cell of one claim "ahead", "level" or "behind", or "untested" with one seed.

    A cell is level if the t-test, corrected by Holm's method for all cells of the claim, finds no
    difference.
    """
    contrasts = list(contrasts)
    adjusted = iter(holm([c.p for c in contrasts if c.p is not None]))
    words = []
    for contrast in contrasts:
        if contrast.p is None:
            words.append("untested")
        elif next(adjusted) >= LEVEL:
            words.append("level")
        else:
            words.append("ahead" if contrast.difference > 0 else "behind")
    return words


def interval_over_sets(groups: Mapping[str, Sequence[float]]) -> tuple[float, float] | None:
    """Student's interval for the mean difference over data sets, from the mean of each.

    None with fewer than two data sets.

    Examples
    --------
    >>> low, high = interval_over_sets({"letter": [0.01, 0.03], "mnist": [0.0], "kmnist": [0.01]})
    >>> round(low, 4), round(high, 4)
    (-0.0148, 0.0348)
    """
    means: Floats = np.array([fmean(values) for values in groups.values()])
    if len(means) < 2:
        return None
    error = float(means.std(ddof=1)) / len(means) ** 0.5
    half = float(stats.t.ppf(1 - LEVEL / 2, len(means) - 1)) * error
    return float(means.mean()) - half, float(means.mean()) + half
