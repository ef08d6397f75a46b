"""Accuracy of a classifier of K classes, without labels or with some.

About class k a judged pair says how likely both items are in it, as with two classes. With
h = 1[ŷ(x) = k], the outcomes a = P(in, out) = (1 − s − c)/2 and b = P(out, in), and pairs drawn at
random,

    E[1 − s] = 2 π_k (1 − π_k) ,   E[a h] = (1 − π_k) E[r_k h] ,   E[(π_k − c) h] = E[r_k h] ,

and likewise with b, c → −c and h' for x'. So the accuracy Σ_k E[r_k h] follows from statements
about each class: from either end or both, and from the non-negative outcomes or the differences.
The one with the least estimated variance is used. Where the class of a row was drawn, the row has
the weight 1/q. Estimated priors may be divided by their sum. Where every row is about the class
predicted for x, the priors must be given.

This is the accuracy as the annotators see it: it holds if their answers are posteriors given
everything that the decision depends on. With labelled items it holds whatever the annotators do.
The intervals are by the delta method, and allow for items that recur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairlearn.columns import Floats, Indices, as_floats, check_confidence
from pairlearn.dependence import Dependence
from pairlearn.evaluation.decisions import MEASURES, MethodResult, ranked
from pairlearn.evaluation.judged import Estimate, JudgedPairs, proportion, quantile
from pairlearn.evaluation.labelled import CONDITION_OF_LABELS, LabelledItems, prediction_powered
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.prior import class_priors

INFORMED = "This assumes calibrated annotators who knew everything that the model uses."
AGREEMENT = (
    "This is not the accuracy: such pairs show whether the model groups the items correctly, not "
    "whether it names them correctly. Give statements about each class, or labels."
)


@dataclass(frozen=True)
class ClassAccuracy(Estimate):
    """The accuracy of a classifier of K classes.

    Attributes
    ----------
    value, low, high : float
        The accuracy and the ends of its interval; from "same" alone, the agreement of pairs.
    method : str
        "classes": statements about each class; "predicted": about the class predicted for x;
        "labelled": prediction-powered, with labelled items; "agreement": of pairs, no accuracy.
    n : int
        Statements, or labelled items, that it is measured with.
    confidence : float
        Coverage of the intervals.
    right : int or None
        Labelled items that are decided rightly, if there are some.
    recall, precision, prior : dict of str to Estimate
        For each class, where statements about it show them.
    confusion : dict of str to dict of str to Estimate
        The share of all items that are of the first class and called the second, where statements
        about each class show it; not from those about the predicted class alone.
    """

    method: str
    n: int
    confidence: float
    right: int | None = None
    recall: Mapping[str, Estimate] = field(default_factory=dict)
    precision: Mapping[str, Estimate] = field(default_factory=dict)
    prior: Mapping[str, Estimate] = field(default_factory=dict)
    confusion: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)

    def sentence(self) -> str:
        """The result and its condition, in words for a general reader."""
        span, level = f"{self.low:.1%} to {self.high:.1%}", f"{self.confidence:.0%} interval"
        if self.method == "agreement":
            return (
                f"The model and the annotators agree on {span} of pairs ({level}, estimate "
                f"{self.value:.1%}) about whether both items are of one class. {AGREEMENT}"
            )
        text = f"The model is right on {span} of new items ({level}, estimate {self.value:.1%})"
        if self.right is None:
            return f"{text}. {INFORMED}"
        return f"{text}: {self.right} of {self.n} labelled items are right. {CONDITION_OF_LABELS}"

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return super().to_dict() | {"sentence": self.sentence()}


def estimate_class_accuracy(
    probabilities: Any,
    probabilities_prime: Any,
    judgements: Judgements,
    *,
    priors: Sequence[float] | None = None,
    confidence: float = 0.95,
    labelled: tuple[Any, ...] | None = None,
) -> ClassAccuracy:
    """Estimate the accuracy of a classifier of K classes on held-out statements.

    Parameters
    ----------
    probabilities, probabilities_prime : array of shape (n, K)
        Of the classes of x and x' of each row; the largest one is the decision.
    judgements : Judgements
        The rows, with their `classes`; those with a similarity and a difference about one class
        count, without any those about "the same class at all".
    priors : sequence of float, optional
        Priors of the classes, by default estimated from the similarities.
    confidence : float
    labelled : (array of shape (m, K), array of int, shape (m,)), optional
        Probabilities of the classes of a random sample of items, and the position of the class of
        each; then perhaps their weights, if they were not drawn uniformly.

    Examples
    --------
    >>> import numpy as np
    >>> r = np.random.default_rng(0).dirichlet(np.ones(3) / 2, 3000)
    >>> ends, k = np.arange(3000).reshape(-1, 2), np.arange(1500) % 3
    >>> labels = PairLabels.from_posteriors(r[ends[:, 0], k], r[ends[:, 1], k])
    >>> rows = Judgements.from_pairs(ends, labels, about=k).of_classes(range(3))
    >>> estimate = estimate_class_accuracy(r[ends[:, 0]], r[ends[:, 1]], rows)
    >>> bool(estimate.low < r.max(1).mean() < estimate.high)
    True
    """
    p, p_prime = as_floats(probabilities), as_floats(probabilities_prime)
    if labelled is not None:
        check_confidence(confidence)
        return _with_labels(p, p_prime, judgements, labelled, confidence)
    return measure_decisions(p, p_prime, judgements, priors, confidence)[0]


def measure_decisions(
    p: Floats,
    p_prime: Floats,
    judgements: Judgements,
    priors: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> tuple[ClassAccuracy, Floats, Dependence]:
    """The accuracy without labels, the influences (n,) of its rows, and their dependence."""
    check_confidence(confidence)
    classes, members = judgements.classes or (), judgements.members()
    for name, values in (("probabilities", p), ("probabilities_prime", p_prime)):
        if values.shape != members.shape:
            raise ValueError(
                f"{name} must have shape {members.shape}, one row for each statement and one "
                f"column for each class; got {values.shape}"
            )
    z = quantile(confidence)
    single = (members.sum(1) == 1) & judgements.of("both")
    if single.any():
        rows = _Rows.of(p, p_prime, judgements, members, single)
        found, method, influence = rows.estimate(classes, priors, z)
        dependence = rows.dependence
    else:
        method, rest = "agreement", ~members.any(1) & judgements.has("similarity")
        if rest.sum() < 2:
            raise ValueError(
                "an accuracy takes statements with a similarity and a difference about one class "
                "each, or similarities about all classes: collect some of these"
            )
        asked = judgements[rest]
        right = np.where((p.argmax(1) == p_prime.argmax(1))[rest], asked.u, 1 - asked.u)
        share = asked.weight / asked.weight.sum()
        value, dependence = float(share @ right), Dependence.of(asked.ends, len(asked))
        influence = share * (right - value)
        variance, trials = float(dependence.variance(influence)), float(1 / (share**2).sum())
        found = {"accuracy": proportion(value, variance, trials, z)}
    counts: Any = {"method": method, "n": len(influence), "confidence": confidence}
    accuracy = ClassAccuracy(**vars(found.pop("accuracy")), **counts, **found)
    return accuracy, influence, dependence


def rank_classes(
    names: Sequence[str],
    probabilities: Floats,
    judgements: Judgements,
    *,
    priors: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> tuple[tuple[MethodResult, ...], ClassAccuracy]:
    """Rank classifiers of K classes, as `decisions.rank`; with the accuracy of the best one.

    ``probabilities`` (k, n, 2, K) are those of both ends of the rows by each classifier.
    """
    several, influence, (dependence, *_) = zip(
        *(measure_decisions(p[:, 0], p[:, 1], judgements, priors, confidence)
          for p in probabilities),
        strict=True,
    )  # fmt: skip
    influences = np.stack(influence, 1)
    ranking = ranked(
        names,
        [Estimate(one.value, one.low, one.high) for one in several],
        influences,
        [p.argmax(-1).tobytes() for p in probabilities],
        dependence,
        dependence.effective_ends(np.ones(len(influences))),
        confidence,
    )
    return ranking, several[list(names).index(ranking[0].name)]


def _with_labels(
    p: Floats, p_prime: Floats, judgements: Judgements, labelled: Any, confidence: float
) -> ClassAccuracy:
    """Prediction-powered: the model's own probability of its decision for all items."""
    known, (y, *weight) = as_floats(labelled[0]), labelled[1:]
    right = (known.argmax(1) == np.asarray(y)).astype(np.float64)
    own, left, other = (_log_odds(values.max(1)) for values in (known, p, p_prime))
    labels = PairLabels(np.full(len(p), 0.5), np.zeros(len(p)))
    pairs = JudgedPairs.of(
        left, other, labels, items=judgements.ends, weight=judgements.weight, confidence=confidence
    )
    # "Positive" is a right decision, and every item is decided so.
    found = prediction_powered(
        pairs, LabelledItems(own, right, *weight), [MEASURES["accuracy"]], threshold=-np.inf
    )
    counts: Any = {"method": "labelled", "n": len(right), "confidence": confidence}
    counts["right"] = int(right.sum())
    return ClassAccuracy(**vars(found.estimates()[0]), **counts)


def _log_odds(p: Floats) -> Floats:
    p = p.clip(1e-12, 1 - 1e-12)
    return np.asarray(np.log(p) - np.log1p(-p))


@dataclass(frozen=True)
class _Rows:
    """Rows about one class each: class, decisions (2, n) of the ends, s, c, weights, dependence.

    ``weight`` is divided by q; ``plain`` is not. ``shares`` (n, K) are those of the decisions for
    each class among both ends.
    """

    k: Indices
    decided: Indices
    s: Floats
    c: Floats
    weight: Floats
    plain: Floats
    shares: Floats
    dependence: Dependence

    @classmethod
    def of(
        cls, p: Floats, p_prime: Floats, judgements: Judgements, members: Any, mask: Any
    ) -> _Rows:
        rows, decided = judgements[mask], np.stack([p.argmax(1), p_prime.argmax(1)])[:, mask]
        shares = (np.eye(p.shape[1])[decided]).mean(0)
        dependence = Dependence.of(rows.ends, len(rows))
        k = members[mask].argmax(1)
        weights = rows.inverse_q, rows.weight
        return cls(k, decided, rows.u, rows.v, *weights, shares, dependence)

    def estimate(
        self, classes: Sequence[str], priors: Sequence[float] | None, z: float
    ) -> tuple[dict[str, Any], str, Floats]:
        """The measures by name, the method, and the influences (n,) of the rows on the accuracy."""
        count, k = len(classes), self.k
        total = np.bincount(k, self.weight, count)
        of_class = np.eye(count)[k]
        predicted = bool((k == self.decided[0]).all())
        if predicted and priors is None:
            raise ValueError(
                "every statement is about the class that the model predicts for the left item, "
                "which determines the accuracy only with the priors of the classes: give priors"
            )
        # Means over the rows of a class, or, where these are those predicted, over all rows.
        base = np.full(count, self.weight.sum()) if predicted else np.maximum(total, 1e-300)

        def mean(values: Floats) -> tuple[Floats, Floats]:
            """Weighted means (K,) of values, and the influences (n, K) of the rows on them."""
            means = np.bincount(k, self.weight * values, count) / base
            centred = values[:, None] * of_class - means * (1 if predicted else of_class)
            return means, self.weight[:, None] * centred / base

        different, moved = mean(1 - self.s)
        if priors is None:
            noise = np.sqrt(self._variance(moved))
            prior, slope = class_priors(different, noise)
            drift = moved * slope
            # Near one half the root is poor: then the other priors say more about the largest.
            largest = int(prior.argmax())
            others = np.arange(count) != largest
            by_others = -drift[:, others].sum(1)
            if self._variance(by_others) < self._variance(drift[:, largest]):
                prior[largest] = max(1 - prior[others].sum(), 1 / count)
                drift[:, largest] = by_others
        else:
            prior, drift = np.asarray(priors, np.float64), np.zeros_like(moved)
            if prior.shape != (count,) or not np.isclose(prior.sum(), 1, atol=1e-6):
                raise ValueError(f"priors must be {count} numbers with the sum 1; got {priors}")
        rest = 1 - prior
        candidates = []
        for end, sign in ((0, 1), (1, -1)):
            h = (self.decided[end] == k).astype(np.float64)
            outcome, from_outcome = mean(h * (1 - self.s - sign * self.c) / 2)
            share, from_share = mean(h)
            gap, from_gap = mean(h * sign * self.c)
            candidates += [
                (outcome / rest, from_outcome / rest + outcome / rest**2 * drift),
                (prior * share - gap, prior * from_share - from_gap + share * drift),
            ]
            if predicted:
                break
        if not predicted:
            pairs = zip(candidates[:2], candidates[2:], strict=True)
            candidates += [((v + w) / 2, (f + g) / 2) for (v, f), (w, g) in pairs]
        total_prior, drifted = prior.sum(), drift.sum(1, keepdims=True)

        def scaled(values: Floats, influence: Floats) -> tuple[Floats, Floats]:
            """Shares of the estimated priors' sum, which is one but for noise."""
            values = values / total_prior
            return values, influence / total_prior - values * drifted / total_prior

        plainly = min(candidates, key=lambda found: self._variance(found[1].sum(1)))
        shared = min(
            (scaled(*found) for found in candidates),
            key=lambda found: self._variance(found[1].sum(1)),
        )
        right, moved = plainly
        if self._variance(shared[1].sum(1)) < self._variance(moved.sum(1)):
            (right, moved), (prior, drift) = shared, scaled(prior, drift)
        used = self.weight * (k == self.decided).any(0)
        trials = float(used.sum() ** 2 / (used**2).sum()) if used.any() else 0.0

        def interval(value: float, influence: Floats, trials: float) -> Estimate:
            return proportion(value, float(self._variance(influence)), trials, z)

        found: dict[str, Any] = {"accuracy": interval(float(right.sum()), moved.sum(1), trials)}
        plain = self.plain / self.plain.sum()
        decided = plain @ self.shares
        turned = plain[:, None] * (self.shares - decided)
        ways = {
            "recall": (right, moved, prior, drift),
            "precision": (right, moved, decided, turned),
            "prior": (prior, drift, np.ones(count), np.zeros_like(drift)),
        }
        for name, (top, from_top, bottom, from_bottom) in ways.items():
            found[name] = {}
            for number, known in enumerate(classes):
                if total[number] and bottom[number] > 0:
                    ratio = top[number] / bottom[number]
                    influence = from_top[:, number] - ratio * from_bottom[:, number]
                    found[name][known] = interval(
                        float(ratio), influence / bottom[number], trials * bottom[number]
                    )
        if predicted:
            return found, "predicted", moved.sum(1)
        table: list[list[Estimate]] = []
        for called in range(count):
            h, h_prime = (self.decided == called).astype(np.float64)
            outcome = (h * (1 - self.s - self.c) + h_prime * (1 - self.s + self.c)) / 4
            share, from_share = mean(outcome)
            influence = from_share / rest + share / rest**2 * drift
            cells = zip(share / rest, influence.T, strict=True)
            table.append([interval(float(v), one, trials) for v, one in cells])
        found["confusion"] = {
            known: {name: column[number] for name, column in zip(classes, table, strict=True)}
            for number, known in enumerate(classes)
            if total[number]
        }
        return found, "classes", moved.sum(1)

    def _variance(self, influence: Floats) -> Any:
        return self.dependence.variance(influence)
