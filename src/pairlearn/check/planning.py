"""How many labels, and how many judged pairs, it takes to measure an accuracy within ±x.

A size is the number of independent trials whose Wilson interval has the wanted half width, divided
by what a label or a pair is worth in trials. A label is worth one. What a pair is worth, under each
reading of the answers, is the trials of the interval that a large simulated table gives, divided by
its pairs. So a smaller half width never takes fewer of either. Tables with a handful of positives
differ widely from what is planned. The annotator is calibrated and of strength μ,

    logit r = μ u + logit π₊,   u ~ N(+μ/2, 1) for positives, N(−μ/2, 1) for negatives,

and the classifier has the assumed accuracy. For the informed reading it decides as the annotator
would, except for random errors; for the independent one it errs at random, given the class. At μ =
3 the annotator is right about 93% of balanced instances, at μ = 5 about 99.4%. More pairs do not
bring the two readings together; labels do. With K classes, equally frequent, the annotator is of
strength μ between any two, r = softmax(μ x/√2) with x ~ N(μ e_y/√2, I); each pair is asked about a
class drawn uniformly, and only the informed reading is known. This is about *measuring*, with pairs
that were held out; how many pairs *training* takes depends on the data.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import softmax

from pairlearn.columns import Floats, check_confidence, check_share
from pairlearn.evaluation import Estimate, estimate_accuracy, estimate_class_accuracy
from pairlearn.evaluation.judged import proportion
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.randomness import stream

Errors = Literal["symmetric", "misses", "alarms"]
#: Whether the classifier errs on positives, or on what the annotator would call so; negatives.
ERRORS = {"symmetric": (1, 1), "misses": (1, 0), "alarms": (0, 1)}
#: Pairs of the simulated table, whose half width has a standard error of about 1%.
TABLE = 20_000
#: Never plan fewer: their intervals say little.
LEAST_PAIRS = 30
_PHI = NormalDist().cdf


@dataclass(frozen=True)
class PairPlan:
    """Numbers of labels and of pairs, and the assumptions behind them.

    Attributes
    ----------
    labels : int
        Labelled items, drawn at random, that reach the half width.
    pairs, pairs_independent : int
        Judged pairs that reach it under the informed and under the independent reading. The
        interval that is printed contains those of both. With several classes the second is None.
    half_width, confidence : float
        Half the length of the interval, in accuracy, and its coverage.
    assumptions : dict
        What was assumed.
    """

    labels: int
    pairs: int
    pairs_independent: int | None
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
    """Plan how many labels, or pairs, measure an accuracy within ±`half_width`.

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
        Whether the classifier errs on both sides alike, or only on positives (misses) or negatives
        (alarms); under the informed reading, on what the annotator would call so.
    confidence : float
        Coverage of the interval, in (0, 1).
    seed : int
        Seed of the simulated tables.

    Examples
    --------
    >>> half, quarter = (plan(x, accuracy=0.9, prior=0.3) for x in (0.04, 0.02))
    >>> half.labels, quarter.labels
    (219, 868)
    >>> 3.5 < quarter.pairs / half.pairs < 4.5
    True
    """
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must lie in (0, 0.5); got {half_width:g}")
    check_confidence(confidence)
    model = _model(accuracy, prior, strength, errors)
    labels = _trials(half_width, accuracy, confidence)
    rng = stream(seed, "plan")

    def pairs(reading: str) -> int:
        estimate = estimate_accuracy(*_simulate(model, reading, rng), confidence=confidence)
        part: Estimate = getattr(estimate, reading)
        worth = _trials((part.high - part.low) / 2, part.value, confidence) / TABLE
        return max(math.ceil(labels / worth), LEAST_PAIRS)

    assumptions = {
        "accuracy": accuracy,
        "prior": prior,
        "strength": strength,
        "annotator_accuracy": model.best,
        "errors": errors,
        "seed": seed,
    }
    return PairPlan(
        labels=math.ceil(labels),
        pairs=pairs("informed"),
        pairs_independent=pairs("independent"),
        half_width=half_width,
        confidence=confidence,
        assumptions=assumptions,
    )


def plan_classes(
    half_width: float,
    *,
    classes: int,
    accuracy: float,
    strength: float = 5.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairPlan:
    """Plan as `plan` does for several classes, each pair asked about one of them.

    Examples
    --------
    >>> found = plan_classes(0.04, classes=3, accuracy=0.9)
    >>> found.labels, found.pairs > found.labels, found.pairs_independent
    (219, True, None)
    """
    labels, rng = _trials(half_width, accuracy, confidence), stream(seed, "plan")
    y, mean = rng.integers(classes, size=2 * TABLE), strength / math.sqrt(2)
    r = softmax(mean * (rng.standard_normal((len(y), classes)) + mean * np.eye(classes)[y]), 1)
    decided, best = r.argmax(1), float(r.max(1).mean())
    by_chance = (1 - best) / (classes - 1)  # of a wrong class, drawn uniformly
    if not by_chance < accuracy <= best:
        raise ValueError(
            f"accuracy must lie in ({by_chance:.4f}, {best:.4f}], as an annotator of strength "
            f"{strength:g} sees {classes} classes; got {accuracy:g}"
        )
    wrong = rng.random(len(y)) < (best - accuracy) / (best - by_chance)
    decided = (decided + wrong * rng.integers(1, classes, len(y))) % classes
    ends, about = np.arange(len(y)).reshape(-1, 2), rng.integers(classes, size=TABLE)
    answers = PairLabels.from_posteriors(*r[ends, about[:, None]].T)
    rows = Judgements.from_pairs(ends, answers, about=about).of_classes(range(classes))
    ways, pairs = np.eye(classes)[decided[ends.T]], TABLE
    for _ in range(2):  # in small tables a pair is worth less than in one of all
        halves = []
        for part in np.array_split(np.arange(TABLE), max(round(TABLE / pairs), 1)):
            left, right = ways[:, part]
            found = estimate_class_accuracy(left, right, rows[part], confidence=confidence)
            halves.append((found.high - found.low) / 2)
        worth = _trials(float(np.mean(halves)), accuracy, confidence) * len(halves) / TABLE
        pairs = max(math.ceil(labels / worth), LEAST_PAIRS)
    assumptions = {
        "accuracy": accuracy,
        "classes": classes,
        "strength": strength,
        "annotator_accuracy": best,
        "seed": seed,
    }
    return PairPlan(math.ceil(labels), pairs, None, half_width, confidence, assumptions)


def _trials(half_width: float, value: float, confidence: float) -> float:
    """The least number of trials whose Wilson interval has this half width, by bisection."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = 1e-3, 2.0**40
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        interval = proportion(value, value * (1 - value) / middle, middle, z)
        wide = (interval.high - interval.low) / 2 > half_width
        low, high = (middle, high) if wide else (low, middle)
    return high


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
    error_rates: tuple[float, float]  # of positives and negatives, if errors follow the class


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
    flips = (misses * lost / gain, alarms * lost / gain)
    rate = (1 - accuracy) / (misses * prior + alarms * (1 - prior))
    return _Model(prior, strength, best, *flips, (misses * rate, alarms * rate))


def _simulate(
    model: _Model, reading: str, rng: np.random.Generator
) -> tuple[Floats, Floats, PairLabels]:
    """Decisions for both ends of pairs, as a reading assumes, and the annotator's answers."""
    positive = rng.random((2, TABLE)) < model.prior
    u = rng.standard_normal((2, TABLE)) + model.strength * (positive - 0.5)
    r = 1 / (1 + np.exp(-(model.strength * u + math.log(model.prior / (1 - model.prior)))))
    turn = rng.random((2, TABLE))
    if reading == "informed":
        flip = np.where(r > 0.5, model.flip_positive, model.flip_negative)
        h, h_prime = ((r > 0.5) ^ (turn < flip)) - 0.5
    else:
        h, h_prime = (positive ^ (turn < np.where(positive, *model.error_rates))) - 0.5
    return h, h_prime, PairLabels.from_posteriors(r[0], r[1])


def _posterior_variance(strength: float, prior: float) -> float:
    """var(r) by Gauss–Hermite quadrature; E[r²] = π₊ E[r | +] for a calibrated r."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    logit = strength * (nodes + strength / 2) + math.log(prior / (1 - prior))
    mean_positive = float(weights @ (1 / (1 + np.exp(-logit)))) / math.sqrt(2 * math.pi)
    return prior * mean_positive - prior**2
