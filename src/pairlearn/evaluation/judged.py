"""Outputs of a classifier beside judgements of the same pairs, and estimates from both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit

from pairlearn.columns import (
    Floats,
    Indices,
    Mask,
    as_column,
    as_floats,
    as_weights,
    check_confidence,
    check_share,
)
from pairlearn.dependence import Dependence
from pairlearn.labels import PairLabels

Side = Literal["positive", "negative", "better"]
#: Draws for a quantile near 0.95, which is then off by 0.1% of the probability.
DRAWS = 50_000


def plain(value: Any) -> Any:
    """Nested dictionaries and lists for JSON, with None for NaN."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its confidence interval.

    Examples
    --------
    >>> print(Estimate(0.9, 0.85, 0.94))
    0.900 (0.850 to 0.940)
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON; undefined values are None."""
        return dict(plain(asdict(self)))

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def __str__(self) -> str:
        value = "–" if math.isnan(self.value) else f"{self.value:.3f}"
        return f"{value} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Bracket(Estimate):
    """A measure under both readings of the answers; see `pairlearn.evaluation.readings`.

    Attributes
    ----------
    value : float
        The informed reading, or the estimate from labelled items if there are some.
    low, high : float
        Ends of the smallest interval that contains those of both readings, or of the interval
        from labelled items.
    informed, independent : Estimate
        The measure if the annotators knew everything that the model uses, and if their mistakes
        are unrelated to the model's, each with its own interval. The value of the independent
        reading is NaN if the answers do not determine it.
    """

    informed: Estimate
    independent: Estimate

    @classmethod
    def of(cls, informed: Estimate, independent: Estimate) -> Bracket:
        """The bracket of two readings."""
        both = hull([informed, independent])
        return cls(both.value, both.low, both.high, informed, independent)

    def scaled(self, factor: float) -> Bracket:
        """The same in another unit."""
        whole = super().scaled(factor)
        readings = (self.informed.scaled(factor), self.independent.scaled(factor))
        return Bracket(whole.value, whole.low, whole.high, *readings)


@dataclass(frozen=True)
class JudgedPairs:
    """Outputs for both ends of n pairs, and at least one judgement of each; NaN if missing.

    Weights have a mean of one. Judgements are noisy if some are infeasible for any posteriors.
    `confidence` is that of intervals; `prior` and `side` are known properties of the classes.
    `noise` is the variance of the noise in each difference, NaN where it is not known,
    `annotator` numbers the people who gave the answers, and `items` (n, 2) are ids as given.
    """

    z: Floats
    z_prime: Floats
    similarity: Floats
    difference: Floats
    weight: Floats
    dependence: Dependence
    noisy: bool
    confidence: float = 0.95
    prior: float | None = None
    side: Side | None = None
    noise: Floats | None = None
    annotator: Indices | None = None
    items: Any = None

    @classmethod
    def of(
        cls,
        logits: Any,
        logits_prime: Any,
        labels: PairLabels,
        weight: Any = None,
        items: Any = None,
        confidence: float = 0.95,
        prior: float | None = None,
        side: Side | None = None,
        names: tuple[str, str] = ("logits", "logits_prime"),
        noise: Any = None,
        annotator: Any = None,
    ) -> JudgedPairs:
        """Check the arguments that the functions of this package have in common."""
        check_confidence(confidence)
        check_share("prior", prior)
        if side not in (None, "positive", "negative", "better"):
            raise ValueError(f"side must be 'positive', 'negative' or 'better'; got {side!r}")
        if not isinstance(labels, PairLabels):
            raise ValueError(
                f"labels must be PairLabels; got {type(labels).__name__}: "
                "use PairLabels.from_array for an (n, 2) array"
            )
        n = len(labels)
        if n < 2:
            raise ValueError(f"labels have {n} pairs: an estimate needs two")
        z, z_prime = (
            as_column(name, values, n)
            for name, values in zip(names, (logits, logits_prime), strict=True)
        )
        similarity, difference = as_floats(labels.to_array()).T
        weights, dependence = as_weights(weight, n), Dependence.of(items, n)
        noisy = not bool(labels.feasible().all())
        columns = (z, z_prime, similarity, difference, weights, dependence, noisy)
        people = _annotators(annotator, n)
        options = (float(confidence), prior, side, _noise(noise, difference), people, items)
        return cls(*columns, *options)

    def __len__(self) -> int:
        return len(self.z)

    def require_identified(self) -> None:
        """Raise a ValueError if judgements of one kind, without a prior, do not fix the rates."""
        if self.prior is not None:
            return
        if not self.has_difference.any() and self.side is None:
            raise ValueError(
                "labels have similarities only, which stay the same when the classes are swapped, "
                "so a classifier and its opposite look alike: give some differences, "
                "or the prior (prior=, or --prior)"
            )
        if not self.has_similarity.any():
            raise ValueError(
                "labels have differences only, which fix the rates of the classifier's "
                "decisions up to a constant: give some similarities, or the "
                "prior (prior=, or --prior)"
            )

    @cached_property
    def has_similarity(self) -> Mask:
        """Mask of the rows with a similarity."""
        return ~np.isnan(self.similarity)

    @cached_property
    def has_difference(self) -> Mask:
        """Mask of the rows with a difference."""
        return ~np.isnan(self.difference)

    @cached_property
    def effective_ends(self) -> float:
        """Number of independent, equally weighted instances that are as informative."""
        return self.dependence.effective_ends(self.weight)

    @property
    def quantile(self) -> float:
        """Half the width of an interval in standard errors."""
        return quantile(self.confidence, self.effective_ends)

    def estimates(
        self, values: Sequence[float] | Floats, influence: Floats, counts: Sequence[float] | Floats
    ) -> list[Estimate]:
        """Proportions (k,) with intervals, from the influences (n, k) of the pairs on them.

        `counts` are the numbers of instances that they are shares of.
        """
        variances = np.atleast_1d(self.dependence.variance(influence))
        return [
            proportion(float(value), float(variance), float(count), self.quantile, noisy=self.noisy)
            for value, variance, count in zip(values, variances, counts, strict=True)
        ]


def _noise(noise: Any, difference: Floats) -> Floats:
    """Variance (n,) of the noise in each difference; answers that are all hard have an unknown one.

    A hard answer is a draw from the annotator's belief, and does not show how sure it was.
    """
    if noise is None:
        hard = np.isin(np.abs(difference[~np.isnan(difference)]), (0.0, 1.0)).all()
        noise = np.nan if hard else 0.0
    column = np.asarray(noise, np.float64)
    if column.ndim and column.shape != difference.shape:
        raise ValueError(f"noise must be a number or have shape {difference.shape}; {column.shape}")
    return np.asarray(np.broadcast_to(column, difference.shape))


def _annotators(annotator: Any, n: int) -> Indices | None:
    if annotator is None:
        return None
    names = np.asarray(annotator)
    if names.shape != (n,):
        raise ValueError(f"annotator must have shape ({n},), one for each pair; got {names.shape}")
    return np.unique(names, return_inverse=True)[1].reshape(n)


def quantile(confidence: float, ends: float = 1e12) -> float:
    """Two-sided quantile of Student's t with `ends` − 2 degrees of freedom, and 4 at least."""
    return float(stdtrit(max(ends - 2, 4.0), (1 + confidence) / 2))


def proportion(
    value: float, variance: float, count: float, z: float, *, noisy: bool = False
) -> Estimate:
    """Wilson's interval of a proportion, from an estimate and its variance.

    An estimate v with variance V is worth v(1 − v)/V independent trials. With few errors V is poor,
    too small just when they are few by chance; so one error is added to the `count` instances,

        N = (v(1 − v) + 1/count) / (V + 1/count²).

    Noise in the judgements does not vanish with the errors. If they are `noisy`, the interval also
    contains v ± z√V: with σ = 0.5 on 2,500 pairs of Pendigits and an accuracy of 0.998, coverage
    rises from 83% to 99%.
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
    """The first value, with the smallest interval that contains all intervals."""
    several = list(estimates)
    return Estimate(several[0].value, min(e.low for e in several), max(e.high for e in several))


def largest_difference(covariance: Floats, confidence: float, ends: float) -> float:
    """Quantile of the largest |Z_i − Z_j|/sd(Z_i − Z_j) among normal variables.

    Intervals of that many standard errors hold simultaneously, and so for differences that are
    chosen after looking at all of them. ``ends`` is the number of instances that the covariance
    (k, k) was estimated from; a small one increases it as for a single variable.
    """
    k = len(covariance)
    i, j = np.triu_indices(k, 1)
    contrasts = np.eye(k)[i] - np.eye(k)[j]
    deviation = np.sqrt(np.einsum("ab,bc,ac->a", contrasts, covariance, contrasts).clip(0))
    # Differences between classifiers that decide alike, for instance, are rounding errors.
    varies = deviation > 1e-9 * np.sqrt(np.diag(covariance).max(initial=0.0))
    single = quantile(confidence, ends)
    if not varies.any():
        return single
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(values.clip(0))).T @ (contrasts[varies] / deviation[varies, None]).T
    draws = np.random.default_rng(0).standard_normal((DRAWS, k)) @ root
    widened = single / quantile(confidence)
    largest = float(np.quantile(np.abs(draws).max(1), confidence))
    return max(largest * widened, single)
