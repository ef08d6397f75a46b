"""How many judged pairs it takes to measure an accuracy within ±x.

The interval of `pairlearn.evaluation.estimate_accuracy` narrows like n^−½. For its constant the
estimator is run on simulated tables of the planned size. The annotator is calibrated and of
strength μ,

    logit r = μ u + logit π₊,   u ~ N(+μ/2, 1) for positives, N(−μ/2, 1) for negatives,

and the classifier decides as the annotator would, except for random errors that reduce it to the
assumed accuracy. At μ = 3 the annotator is right about 93% of balanced instances, at μ = 5 about
99.4%. This is about *measuring*, with pairs that were held out; how many pairs *training* takes
depends on the data.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from pairlearn.columns import Floats, check_share
from pairlearn.evaluation import estimate_accuracy
from pairlearn.labels import PairLabels
from pairlearn.randomness import stream

Errors = Literal["symmetric", "misses", "alarms"]
ERRORS = {"symmetric": (1, 1), "misses": (1, 0), "alarms": (0, 1)}
"""Whether the classifier errs on what the annotator would call positive, and negative."""
TABLES = 64
"""Simulated tables of each size: their mean half width has a standard error of about 1%."""
LEAST_PAIRS = 30
"""Never plan fewer: their intervals say little."""
LARGEST_TABLE = 10_000
"""Larger tables are not simulated, but extrapolated from this size by n^−½."""
_PHI = NormalDist().cdf


@dataclass(frozen=True)
class PairPlan:
    """A number of pairs, and the assumptions behind it.

    Attributes
    ----------
    pairs : int
        Judged pairs that reach the half width.
    low, high : int
        Nine tables in ten need between `low` and `high` pairs.
    half_width, confidence : float
        Half the length of the interval, in accuracy, and its coverage.
    assumptions : dict
        What was assumed.
    """

    pairs: int
    low: int
    high: int
    half_width: float
    confidence: float
    assumptions: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def plan(
    half_width: float,
    *,
    accuracy: float,
    prior: float,
    strength: float = 5.0,
    errors: Errors = "symmetric",
    confidence: float = 0.95,
    seed: int = 0,
) -> PairPlan:
    """Plan how many pairs measure an accuracy within ±`half_width`, from assumptions.

    Parameters
    ----------
    half_width : float
        Wanted half length of the interval, in (0, 0.5).
    accuracy : float
        A guess for the classifier, above ½ and no more than the annotator can see.
    prior : float
        Share π₊ of the positive class.
    strength : float
        The annotator's μ (see above); `annotator_strength` estimates it.
    errors : {"symmetric", "misses", "alarms"}
        Whether the classifier errs on both sides alike, or only on what the annotator would call
        positive (misses) or negative (alarms).
    confidence : float
        Coverage of the interval, in (0, 1).
    seed : int
        Seed of the simulated tables.

    Examples
    --------
    >>> half, quarter = (plan(x, accuracy=0.9, prior=0.3).pairs for x in (0.04, 0.02))
    >>> 80 < half < 160 and 3.5 < quarter / half < 4.5
    True
    """
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must lie in (0, 0.5); got {half_width:g}")
    check_share("confidence", confidence)
    model = _model(accuracy, prior, strength, errors)
    n, widths = _size(model, half_width, confidence, seed)
    span = np.quantile(widths / widths.mean(), [0.05, 0.95]) ** 2
    assumptions = {
        "accuracy": accuracy,
        "prior": prior,
        "strength": strength,
        "annotator_accuracy": model.best,
        "errors": errors,
        "seed": seed,
    }
    sizes = (math.ceil(n), math.floor(n * span[0]), math.ceil(n * span[1]))
    pairs, low, high = (max(size, LEAST_PAIRS) for size in sizes)
    return PairPlan(pairs, low, high, half_width, confidence, assumptions)


def annotator_strength(labels: PairLabels, prior: float) -> float:
    """Estimate the strength μ of an annotator from similarities and differences.

    For independent ends mean(c²) estimates 2 var(r) and mean(1 − s) estimates 2π₊π₋. Their ratio,
    var(r)/(π₊π₋), grows with μ from 0 to 1; bisection finds μ in [0.1, 20]. Noise in c looks like
    strength. Pairs without both judgements are left out.
    """
    check_share("prior", prior)
    answers = np.asarray(labels.to_array(), dtype=np.float64)
    s, c = answers[~np.isnan(answers).any(axis=1)].T
    different = float(np.sum(1 - s))
    if different <= 0:
        raise ValueError(
            "labels have no pair with both judgements and a similarity below 1: "
            "the strength of the annotator shows in those"
        )
    variance = float(np.sum(c**2)) / different * prior * (1 - prior)
    low, high = 0.1, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        if _posterior_variance(middle, prior) < variance:
            low = middle
        else:
            high = middle
    return high


def annotator_accuracy(strength: float, prior: float) -> float:
    """Accuracy of the annotator's own decisions, an upper bound for any classifier.

    π₊ Φ(μ/2 + λ/μ) + π₋ Φ(μ/2 − λ/μ) with λ = logit π₊.
    """
    hit, rejection = _right_decisions(strength, prior)
    return prior * hit + (1 - prior) * rejection


def _right_decisions(strength: float, prior: float) -> tuple[float, float]:
    """True positive rate and true negative rate of the annotator's decisions."""
    check_share("prior", prior)
    if not 0.1 <= strength <= 20:
        raise ValueError(f"strength must lie in [0.1, 20]; got {strength:g}")
    shift = math.log(prior / (1 - prior)) / strength
    return _PHI(strength / 2 + shift), _PHI(strength / 2 - shift)


class _Model(NamedTuple):
    """A calibrated annotator and how often the classifier contradicts it."""

    prior: float
    strength: float
    best: float  # accuracy of the annotator's own decisions
    flip_positive: float
    flip_negative: float


def _model(accuracy: float, prior: float, strength: float, errors: str) -> _Model:
    check_share("accuracy", accuracy)
    hit, rejection = _right_decisions(strength, prior)
    if accuracy <= 0.5:
        raise ValueError(
            f"accuracy must lie above 0.5, where a trained classifier is; got {accuracy:g}"
        )
    # Accuracy lost when the annotator's decisions for positive, or for negative, are reversed.
    gain_positive = prior * hit - (1 - prior) * (1 - rejection)
    gain_negative = (1 - prior) * rejection - prior * (1 - hit)
    best = annotator_accuracy(strength, prior)
    if accuracy > best:
        raise ValueError(
            f"accuracy {accuracy:g} is more than the {best:.4f} that an annotator of strength "
            f"{strength:g} sees at prior {prior:g}: assume a lower accuracy or more strength"
        )
    if errors not in ERRORS:
        raise ValueError(f"errors must be 'symmetric', 'misses' or 'alarms'; got {errors!r}")
    misses, alarms = ERRORS[errors]
    gain, lost = misses * gain_positive + alarms * gain_negative, best - accuracy
    if lost > gain:
        raise ValueError(
            f"accuracy {accuracy:g} is out of reach with {errors} only at prior {prior:g}: "
            f"the lowest is {best - gain:.4f}"
        )
    return _Model(prior, strength, best, misses * lost / gain, alarms * lost / gain)


def _simulate(model: _Model, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, PairLabels]:
    positive = rng.random((2, n)) < model.prior
    u = rng.standard_normal((2, n)) + model.strength * (positive - 0.5)
    r = 1 / (1 + np.exp(-(model.strength * u + math.log(model.prior / (1 - model.prior)))))
    decided = r > 0.5
    flip = np.where(decided, model.flip_positive, model.flip_negative)
    h, h_prime = (decided ^ (rng.random((2, n)) < flip)) - 0.5
    return h, h_prime, PairLabels.from_posteriors(r[0], r[1])


def _size(model: _Model, half_width: float, confidence: float, seed: int) -> tuple[float, Floats]:
    """The least size from which on intervals are narrow enough, and half widths near it.

    Sizes are halved from the largest until the mean half width exceeds the wanted one, so that a
    smaller half width never takes fewer pairs: the mean itself can rise and fall, since few pairs
    of a rare class may hold no positive at all.
    """
    size: float = LARGEST_TABLE
    widths = _half_widths(model, LARGEST_TABLE, confidence, seed)
    widest = float(widths.mean())
    if widest > half_width:
        return size * (widest / half_width) ** 2, widths
    while size > LEAST_PAIRS:
        smaller = max(size / 2, LEAST_PAIRS)
        widths = _half_widths(model, round(smaller), confidence, seed)
        mean = float(widths.mean())
        if mean > half_width:
            part = math.log(half_width / widest) / math.log(mean / widest)
            return size * (smaller / size) ** part, widths
        widest, size = max(widest, mean), smaller
    return LEAST_PAIRS, widths


@lru_cache(maxsize=256)
def _half_widths(model: _Model, n: int, confidence: float, seed: int) -> Floats:
    """Half widths of simulated tables of n pairs."""
    widths = np.empty(TABLES)
    for index in range(TABLES):
        h, h_prime, labels = _simulate(model, n, stream(seed, "plan", index))
        estimate = estimate_accuracy(h, h_prime, labels, confidence=confidence).informed
        widths[index] = (estimate.high - estimate.low) / 2
    return widths


def _posterior_variance(strength: float, prior: float) -> float:
    """var(r) by Gauss–Hermite quadrature; E[r²] = π₊ E[r | +] for a calibrated r."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    logit = strength * (nodes + strength / 2) + math.log(prior / (1 - prior))
    mean_positive = float(weights @ (1 / (1 + np.exp(-logit)))) / math.sqrt(2 * math.pi)
    return prior * mean_positive - prior**2
