"""Measures from the classes of a few items, with a model's predictions for many others.

Prediction-powered inference, PPI++ (Angelopoulos, Duchi and Zrnic 2023). Each measure is, to first
order, a mean of ψ(x, y) over the labelled items. With the model's own probability instead of y, the
same ψ̂(x) = E[ψ(x, y) | model] is known for all items, and

    estimate = estimate from labels + λ (mean of ψ̂ over the pairs' items − over labelled items),

where λ in [0, 1] minimises the variance. The labels make it hold: whatever the model's
probabilities are worth, the correction has a mean of zero, and useless ones give λ near 0. For the
accuracy, ψ is 1 for a right decision, and ψ̂ the model's probability of its own decision.

The interval is Wilson's, with the number of trials that the variance implies (`proportion`). It has
the form of Wilson's interval from the labels alone, and is that interval if no label is wrong; a
normal interval fails near 1, where a sample may hold no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from pairlearn.columns import Floats, Indices, as_column, as_floats, as_weights, first_rows
from pairlearn.dependence import CLEAR
from pairlearn.evaluation.decisions import Measure
from pairlearn.evaluation.judged import Bracket, Estimate, JudgedPairs, proportion, quantile
from pairlearn.evaluation.readings import independent_probability

Influence = Callable[[Floats, Floats], Floats]
CONDITION_OF_LABELS = (
    "This holds however reliable the answers are, if the labelled items are a random sample that "
    "the model was not trained on."
)
#: Share of either decision in the labels at least, so that slopes exist where one is absent.
LEAST_SHARE = 1e-9
Support = Literal["informed", "independent", "both", "between", "below", "above"]


@dataclass(frozen=True)
class LabelledItems:
    """Items of known class: a random sample of items that the model did not learn from.

    Attributes
    ----------
    logits : array of shape (m,)
        Outputs of the classifier; log-odds above zero are positive.
    y : array of shape (m,)
        Classes: 1, and 0 or −1.
    weight : array of shape (m,), optional
        Inverse probabilities of selection, if items were not drawn uniformly.
    items : array of shape (m,), optional
        Ids, as those of the pairs. An item that recurs here or in the pairs is then accounted for.
    alone : bool
        Use the labels alone, since the outputs are not those of the model that scored the pairs.

    Examples
    --------
    >>> len(LabelledItems([2.0, -1.0, 0.5], [1, 0, 0]))
    3
    """

    logits: Floats
    y: Floats
    weight: Any = None
    items: Any = None
    alone: bool = False

    def __post_init__(self) -> None:
        logits, y = as_floats(self.logits), as_floats(self.y)
        if logits.ndim != 1 or len(logits) < 2:
            raise ValueError(f"labelled needs the logits of two or more items; got {logits.shape}")
        y = as_column("the classes of labelled", y, len(logits))
        as_column("the logits of labelled", logits, len(logits))
        for row in first_rows(~np.isin(y, (-1.0, 0.0, 1.0))):
            raise ValueError(f"classes of labelled must be 1, and 0 or -1; row {row} is {y[row]:g}")
        if np.isin([-1.0, 0.0], y).all():
            raise ValueError("classes of labelled are -1, 0 and 1: code the negative class in one")
        if self.items is not None and np.shape(self.items) != logits.shape:
            raise ValueError(f"items of labelled must have shape {logits.shape}, one id for each")
        object.__setattr__(self, "logits", logits)
        object.__setattr__(self, "y", (y > 0).astype(np.float64))
        object.__setattr__(self, "weight", as_weights(self.weight, len(y)))

    @classmethod
    def of(cls, labelled: Any) -> LabelledItems:
        """From (logits, y) or (logits, y, weight), or as it is."""
        if isinstance(labelled, LabelledItems):
            return labelled
        if not isinstance(labelled, tuple) or len(labelled) not in (2, 3):
            raise ValueError("labelled must be (logits, y), (logits, y, weight) or LabelledItems")
        return cls(*labelled)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class PredictionPowered:
    """Estimates of k measures from labelled items and the items of pairs.

    ``values`` and ``tuning`` λ are (k,). ``influence`` (c, k) has a row for each independent item,
    ``counts`` (k,) are the numbers of labelled items that the measures are shares of.
    """

    values: Floats
    tuning: Floats
    influence: Floats
    counts: Floats
    confidence: float

    def estimates(self) -> list[Estimate]:
        """The measures with their intervals."""
        z = quantile(self.confidence)
        variances = (self.influence**2).sum(0)
        columns = (self.values.tolist(), variances.tolist(), self.counts.tolist())
        return [proportion(*row, z) for row in zip(*columns, strict=True)]


def prediction_powered(
    pairs: JudgedPairs,
    labelled: LabelledItems,
    measures: Sequence[Measure],
    threshold: float = 0.0,
) -> PredictionPowered:
    """Estimate measures of decisions at a threshold, and the AUC, which is the last one."""
    known, pool = labelled.logits, np.concatenate([pairs.z, pairs.z_prime])
    share = labelled.weight / labelled.weight.sum()
    pool_share = np.tile(pairs.weight / (2 * pairs.weight.sum()), 2)
    # A measure is a function of the means of (h, h y, y).
    means = share @ _terms(known, labelled.y, threshold)
    shares = np.array([float(measure.share(*_rates(means))) for measure in measures])
    defined = shares > LEAST_SHARE
    slopes = np.where(defined, np.array([_slopes(one, means) for one in measures]).T, 0.0)
    area, area_terms = _area(labelled, share)

    def psi(z: Floats, y: Floats) -> Floats:
        """Influences (len(z), k) of items with output z and class, or probability, y."""
        return np.column_stack([_terms(z, y, threshold) @ slopes, area_terms(z, y)])

    own, guess, pool_guess = (
        psi(known, labelled.y),
        psi(known, expit(known)),
        psi(pool, expit(pool)),
    )
    own, mean, pool_mean = own - share @ own, share @ guess, pool_share @ pool_guess
    m, clusters = len(labelled), _clusters(labelled, pairs.items, len(pairs))
    direct, shift = np.zeros((2, clusters.max() + 1, own.shape[1]))
    np.add.at(direct, clusters[:m], share[:, None] * own)
    np.add.at(shift, clusters[:m], share[:, None] * (mean - guess))
    np.add.at(shift, clusters[m:], pool_share[:, None] * (pool_guess - pool_mean))
    spread = (shift**2).sum(0)
    tuning = (-(direct * shift).sum(0) / np.where(spread > 0, spread, 1.0)).clip(0, 1)
    tuning *= not labelled.alone
    weights = np.bincount(clusters[:m], labelled.weight)
    trials = weights.sum() ** 2 / (weights**2).sum()
    influence = (direct + tuning * shift) * math.sqrt(trials / max(trials - 1, 1))
    values = np.array([*(_value(measure, means) for measure in measures), area])
    counts = trials * np.array([*np.where(defined, shares, 0.0), min(means[2], 1 - means[2])])
    values = values + tuning * (pool_mean - mean)
    return PredictionPowered(values, tuning, influence, counts, pairs.confidence)


def _area(
    labelled: LabelledItems, share: Floats
) -> tuple[float, Callable[[Floats, Floats], Floats]]:
    """The AUC of labelled items, and the influence of an output with its class on it.

    A positive adds its rank among the negatives, a negative its rank among the positives
    (DeLong, DeLong and Clarke-Pearson 1988); ties count half.
    """
    order = np.argsort(labelled.logits, kind="stable")
    z, y, weight = labelled.logits[order], labelled.y[order], share[order]
    prior = float(weight @ y)
    if not LEAST_SHARE < prior < 1 - LEAST_SHARE:
        return math.nan, lambda at, _: np.zeros(len(at))

    def below(of: Floats, at: Floats) -> Floats:
        total = np.concatenate([[0.0], np.cumsum(of * weight)]) / float(of @ weight)
        left, right = (np.searchsorted(z, at, side) for side in ("left", "right"))
        return np.asarray((total[left] + total[right]) / 2)

    area = float((weight * y) @ below(1 - y, z)) / prior

    def influence(at: Floats, positive: Floats) -> Floats:
        gain = positive * (below(1 - y, at) - area) / prior
        return np.asarray(gain + (1 - positive) * (1 - below(y, at) - area) / (1 - prior))

    return area, influence


def _clusters(labelled: LabelledItems, items: Any, n: int) -> Indices:
    """A number for each labelled item, and each left and right end; equal for the same item."""
    own = np.arange(len(labelled)) if labelled.items is None else np.asarray(labelled.items)
    ends = np.arange(2 * n) if items is None else np.asarray(items).T.reshape(-1)
    if labelled.items is None or items is None:  # which of them are the same item is not known
        own, ends = (np.unique(ids, return_inverse=True)[1] for ids in (own, ends))
        ends = ends + len(own)
    return np.unique(np.concatenate([own, ends]), return_inverse=True)[1]


def _terms(z: Floats, y: Floats, threshold: float) -> Floats:
    h = (z > threshold).astype(np.float64)
    return np.stack([h, h * y, y], axis=1)


def _rates(means: Any) -> Any:
    """(q, p, o) from the means of (h, h y, y)."""
    q, both, prior = means
    if not LEAST_SHARE < q.real < 1 - LEAST_SHARE:
        q = q - q.real + min(max(q.real, LEAST_SHARE), 1 - LEAST_SHARE)
    return q, both / q, (prior - both) / (1 - q)


def _value(measure: Measure, means: Any) -> Any:
    return measure.value(*_rates(means))


def _slopes(measure: Measure, means: Floats) -> list[float]:
    """Derivatives of a measure by the three means, exact by complex steps."""
    return [complex(_value(measure, means + 1e-30j * unit)).imag / 1e-30 for unit in np.eye(3)]


@dataclass(frozen=True)
class LabelCheck:
    """What the labelled items say by themselves, and about the answers.

    Attributes
    ----------
    right, n : int
        Labelled items that the classifier decides rightly, and all labelled items.
    supports : str
        The reading that the labels agree with: "informed", "independent" or "both". Otherwise where
        the labels put the accuracy: "between" the readings, "below" both, or "above" both.
    slope : Estimate or None
        How much the classes differ for each unit of stated difference, which is 1 for calibrated
        annotators, less if they are over-confident, and more if they are under-confident. None if
        no labelled item is in a pair, by its id, or if answers are hard.
    confidence : {"over", "under"} or None
        Whether the annotators are over- or under-confident; None if labels do not show it.
    """

    right: int
    n: int
    supports: Support
    slope: Estimate | None
    confidence: Literal["over", "under"] | None

    def sentence(self) -> str:
        """The count, and what the labels say about the answers."""
        text = f"{self.right} of {self.n} labelled items are right; {SUPPORT[self.supports]}"
        return text + f"; the annotators are {self.confidence}-confident" * bool(self.confidence)


SUPPORT: dict[str, str] = {
    "informed": "the labels agree with annotators who knew everything that the model uses",
    "independent": "the labels agree with annotators whose mistakes are unrelated to the model's",
    "both": "the labels agree with both readings of the answers",
    "between": "the labels put the accuracy between the two readings of the answers",
    "below": "the labels put the accuracy below both readings of the answers",
    "above": "the labels put the accuracy above both readings, as happens with noisy answers",
}


def check_labels(
    pairs: JudgedPairs, accuracy: Bracket, labelled: LabelledItems, threshold: float = 0.0
) -> LabelCheck:
    """Compare an accuracy that labels give with both readings, and the answers with the labels."""
    right = int(((labelled.logits > threshold) == (labelled.y > 0)).sum())
    informed, independent = accuracy.informed, accuracy.independent
    agrees = [_agree(accuracy, informed), _agree(accuracy, independent)]
    if math.isnan(independent.value):  # it may be anything from the informed reading on
        agrees[1] = independent.low <= accuracy.value <= independent.high
    readings = [x for x in (informed.value, independent.value) if not math.isnan(x)]
    supports: Support = "between"
    if any(agrees):
        supports = "both" if all(agrees) else "informed" if agrees[0] else "independent"
    elif accuracy.value < min(readings, default=0.0):
        supports = "below"
    elif accuracy.value > max(readings, default=1.0):
        supports = "above"
    slope = calibration_slope(pairs, labelled)
    confidence: Literal["over", "under"] | None = "over" if supports == "below" else None
    if slope is not None and not slope.low <= 1 <= slope.high:
        confidence = "over" if slope.high < 1 else "under"
    return LabelCheck(right, len(labelled), supports, slope, confidence)


def closer_reading(
    labelled: LabelledItems, prior: float, knowledge: float
) -> Literal["informed", "independent"]:
    """The reading whose probabilities have the smaller squared error at labelled items."""
    p = expit(labelled.logits)
    readings = (p, independent_probability(p, prior, knowledge))
    informed, independent = (float(labelled.weight @ (q - labelled.y) ** 2) for q in readings)
    return "informed" if informed <= independent else "independent"


def calibration_slope(pairs: JudgedPairs, labelled: LabelledItems) -> Estimate | None:
    """Slope of the classes on the stated differences, from labelled items that are in pairs.

    For calibrated annotators and independent ends, E[(y' − π) c] = E[c²]/2 = −E[(y − π) c], so the
    ratio of both sides is 1 for each labelled end.
    """
    if pairs.items is None or labelled.items is None or pairs.noise is None:
        return None
    ids, place = np.unique(labelled.items, return_inverse=True)
    classes = np.bincount(place.reshape(-1), labelled.y) / np.bincount(place.reshape(-1))
    ends = np.asarray(pairs.items)
    at = np.searchsorted(ids, ends).clip(0, len(ids) - 1)
    known, squares = ids[at] == ends, pairs.difference**2 - pairs.noise
    known &= ~np.isnan(squares)[:, None]
    if not known.any():
        return None
    squares = np.where(known.any(1), squares, 0.0) * known.sum(1) / 2
    centred = np.where(known, classes[at] - classes[at][known].mean(), 0.0)
    products = (centred[:, 1] - centred[:, 0]) * np.nan_to_num(pairs.difference)
    total = float(pairs.weight @ squares)
    if total <= 0:
        return None
    slope = float(pairs.weight @ products) / total
    influence = pairs.weight * (products - slope * squares) / total
    half = pairs.quantile * math.sqrt(float(pairs.dependence.variance(influence)))
    return Estimate(slope, slope - half, slope + half)


def chosen_items(pairs: JudgedPairs, labelled: LabelledItems) -> str | None:
    """A warning if the outputs of labelled items are clearly not those of a random sample.

    Compared are the mean probabilities of a positive and of the model's own decision.
    """
    pool, share = np.concatenate([pairs.z, pairs.z_prime]), np.tile(pairs.weight, 2) / 2
    own, usual = (np.stack([expit(z), expit(abs(z))]) for z in (labelled.logits, pool))
    mean, found = usual @ share / share.sum(), own @ labelled.weight / len(labelled)
    trials = len(labelled) ** 2 / (labelled.weight**2).sum()
    variance = (usual - mean[:, None]) ** 2 @ share / share.sum()
    error = np.sqrt(variance * (1 / trials + 1 / pairs.effective_ends))
    if labelled.alone or (abs(found - mean) <= CLEAR * error).all():
        return None
    return (
        "the labelled items are not a random sample of items like those in the pairs: the model's "
        f"mean probability of positive is {found[0]:.2f} for them and {mean[0]:.2f} in the pairs, "
        f"and that of its decisions {found[1]:.2f} and {mean[1]:.2f}. Label items drawn at random, "
        "or give weights: 1 over the chance of being chosen"
    )


def _agree(one: Estimate, other: Estimate) -> bool:
    """Whether two independent estimates may be of the same number (Zou and Donner 2008)."""
    low, high = (one, other) if one.value < other.value else (other, one)
    gap, up, down = high.value - low.value, low.high - low.value, high.value - high.low
    return gap <= math.hypot(up, down)
