"""Any scikit-learn classifier learnt from pairs, by rounds of target completion.

A classifier that takes ``sample_weight`` can learn from soft targets: every item is in its
training set twice, as class + with weight q and as class − with weight 1 − q. The targets come
from the judgements, completed by the classifier's own posteriors (see `Kind.complete`), in rounds.
The first ones are the dissimilar outcomes alone, a and b, which show both classes equally often:
posteriors of the start are moved from even odds to the prior that the outcomes imply.

Flexible classifiers repeat the targets they were fitted to, so posteriors are out of fold. The
rounds end when their divergence from the judgements no longer falls; the best round is kept.
Labels outside the feasible region are first moved to the nearest point in it, since sample weights
must not be negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from pairlearn.columns import Floats, Indices, check_integer, check_share
from pairlearn.estimators.population import (
    Majority,
    check_stated,
    prior_from_similarities,
    required_parameter,
    solve_shift,
)
from pairlearn.judgements import Judgements
from pairlearn.kinds import kind
from pairlearn.kinds.base import TINY
from pairlearn.randomness import permutation, stream

Weights = Floats
"""Shape (2, m): of class + and of class − of every item."""

PATIENCE = 2
SMALL = 1e-3
"""Rows with less than this share of an item's weight are left out: most targets are near
0 or 1, and the training set is then half as long."""


@dataclass(frozen=True)
class CompletionRound:
    """What one round did: 0 is the start from the dissimilar outcomes.

    `risk` is the out-of-fold divergence of the posteriors from the judgements, `change` the
    mean absolute change of the targets (NaN in rounds 0 and 1), `prior` the mean posterior.
    """

    number: int
    risk: float
    change: float
    prior: float


def complete_and_fit(
    classifier: Any,
    features: Any,
    rows: Judgements,
    *,
    rounds: int = 20,
    tolerance: float = 1e-3,
    folds: int = 5,
    prior: float | None = None,
    majority: Majority | None = None,
    random_state: int | None = None,
) -> tuple[Any, list[CompletionRound]]:
    """Fit a scikit-learn classifier to judged pairs, as `PairClassifier` does with such a model.

    Parameters
    ----------
    classifier : scikit-learn classifier or Pipeline
        Its ``fit`` takes ``sample_weight`` and it has ``predict_proba``. It is cloned.
    features : array of shape (m, d)
        The items.
    rows : Judgements
        What was said of them. Of weights only the proportions matter.
    rounds, tolerance : int, float
        Completions at most; fewer if the out-of-fold risk has not fallen by this share twice.
    folds : int
        Folds over the items for the posteriors; 1 uses the classifier's own fit, which
        is enough for models with few parameters.
    prior : float, optional
        π₊. Needed where there are neither similarities nor labelled instances.
    majority : {"positive", "negative"}, optional
        Which class is larger; needed with similarities alone and no prior.
    random_state : int, optional
        Of the folds, and of every ``random_state`` of the classifier that is None.

    Returns
    -------
    classifier, history
        The fitted clone, classes 0 and 1, and a `CompletionRound` a round.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pairlearn import Judgements, PairLabels
    >>> x = np.linspace(-3, 3, 400)[:, None]
    >>> r = 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> pairs = np.random.default_rng(0).permutation(400).reshape(200, 2)
    >>> told = PairLabels.from_posteriors(r[pairs[:, 0]], r[pairs[:, 1]])
    >>> rows = Judgements.from_pairs(pairs, told)
    >>> model, history = complete_and_fit(LogisticRegression(), x, rows, folds=1)
    >>> model.predict([[-1.0], [1.0]])
    array([0, 1])
    """
    x = np.asarray(features)
    check_integer("rounds", rounds, 1)
    check_integer("folds", folds, 1)
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must lie in [0, 1); got {tolerance:g}")
    check_share("prior", prior)
    if rows.ends.max(initial=-1) >= len(x):
        raise ValueError(f"rows are about item {rows.ends.max()}, and there are {len(x)} items")
    check_stated(required_parameter(rows, prior_known=False), rows, prior, majority)
    known = rows[rows.known]
    targets = Targets(rows[~(rows.known | rows.says_nothing)].doubled())
    fitter = _Fitter(
        _prepared(classifier, random_state), x[targets.items], x[known.ends[:, 0]], known
    )
    start = _start(targets, len(known) > 0, prior, majority)
    fold = _folds(start, folds, random_state or 0)

    def posteriors(weights: Weights, number: int) -> Floats:
        p = fitter.posteriors(weights, fold)
        if number == 0 and targets.fixes("side"):
            p = _from_even_odds(targets, p, prior)
        if targets.fixes("level") or len(known):
            return p
        assert prior is not None
        z = logit(p)
        return _posterior(z + solve_shift(z, targets.occurrences, prior))

    weights, history = _rounds(targets, start, posteriors, rounds, tolerance)
    return fitter.fit(weights, np.arange(len(targets.items))), history


def _rounds(
    judgements: Targets,
    start: Weights,
    posteriors: Callable[[Weights, int], Floats],
    rounds: int,
    tolerance: float,
) -> tuple[Weights, list[CompletionRound]]:
    """Complete and fit in turn; the weights of the best round, and all rounds."""
    weights, targets, change = start, np.empty(0), np.nan
    best, least, idle = start, np.inf, 0
    history: list[CompletionRound] = []
    for number in range(rounds + 1):
        p = posteriors(weights, number)
        risk = judgements.risk(p)
        mean = float(np.average(p, weights=judgements.occurrences))
        history.append(CompletionRound(number, risk, change, mean))
        # The start shows the classes at even odds: it is never what is kept.
        if number > 0:
            idle = 0 if risk < least * (1 - tolerance) else idle + 1
            if not idle:
                best, least = weights, risk
            if idle == PATIENCE:
                break
        old_targets = targets
        weights, targets = judgements.complete(p)
        if number > 0:
            change = float(abs(targets - old_targets).mean())
    return best, history


class Targets:
    """Statements about pairs, by kind, and the targets of both ends that complete them."""

    def __init__(self, rows: Judgements) -> None:
        values = rows.values.copy()
        soft = rows.soft
        if soft.any():
            nearest = rows.labels().project().to_array()
            values[soft] = np.where(np.isnan(nearest), 0.0, nearest)
        self.items, ends = np.unique(rows.ends, return_inverse=True)
        self.rows = Judgements(ends.reshape(-1, 2), rows.kind, values, rows.weight)
        self.parts = [(kind(name), self.rows[self.rows.of(name)]) for name in rows.kinds()]
        once = [(part, np.ones(len(part)), np.ones(len(part))) for _, part in self.parts]
        self.occurrences = self.per_item(once)

    def fixes(self, what: str) -> bool:
        """Whether some judgement tells the "level" or the "side"."""
        return any(what in one.fixes(False) for one, _ in self.parts)

    def per_item(self, ends: list[tuple[Judgements, Floats, Floats]]) -> Floats:
        """Sum values of the left and right ends over the statements of each item, weighted."""
        sums = np.zeros(len(self.items))
        for part, left, right in ends:
            for side, value in enumerate((left, right)):
                sums += np.bincount(part.ends[:, side], part.weight * value, len(sums))
        return sums

    def dissimilar(self) -> Weights:
        """Weights of class + and of class − that follow without a model."""
        known = [(part, *one.outcomes(part.u, part.v)) for one, part in self.parts]
        swapped = [(part, b, a) for part, a, b in known]
        return np.stack([self.per_item(known), self.per_item(swapped)])

    def complete(self, posterior: Floats) -> tuple[Weights, Floats]:
        """The weights of both classes of every item, and the targets of all ends."""
        made = [
            (part, *one.complete(*self.ends(part, posterior), part.u, part.v))
            for one, part in self.parts
        ]
        positive = self.per_item(made)
        negative = np.maximum(self.occurrences - positive, 0)
        targets = np.concatenate([np.concatenate([left, right]) for _, left, right in made])
        return np.stack([positive, negative]), targets

    def risk(self, posterior: Floats) -> float:
        """Weighted mean divergence of the model from the judgements, 0 where they agree."""
        total = sum(
            float(part.weight @ one.divergence(*self.ends(part, posterior), part.u, part.v))
            for one, part in self.parts
        )
        return total / float(self.rows.weight.sum())

    def from_similarity(self, prior: float | None, majority: Majority | None) -> Floats:
        """Targets of both ends from s alone: (s − π₋)/(π₊ − π₋), which E[s|x] makes r.

        E[s|x] = rπ₊ + (1 − r)π₋, so that the sign of π₊ − π₋ tells the classes apart.
        """
        if prior is None:
            assert majority is not None
            prior = prior_from_similarities(self.rows, majority).value
        gap = 2 * prior - 1
        if abs(gap) < 1e-3:
            raise ValueError(
                f"the class prior is {prior:.3f}: between equally large classes similarities "
                "alone hold no direction to start from. Add some differences, preferences or "
                "labelled instances"
            )
        return np.clip((self.rows.u - (1 - prior)) / gap, 0, 1)

    def ends(self, part: Judgements, posterior: Floats) -> tuple[Floats, Floats]:
        """Posteriors of both ends of statements."""
        posterior = np.clip(posterior, TINY, 1 - TINY)
        return posterior[part.ends[:, 0]], posterior[part.ends[:, 1]]


class _Fitter:
    """Fits clones of one classifier to weights of the two classes of every item."""

    def __init__(self, classifier: Any, x: Any, known: Any, said: Judgements) -> None:
        self.classifier, self.x = classifier, x
        # A soft label is a bit of both classes; a plain one has no weight in the other.
        weight = np.concatenate([said.weight * said.u, said.weight * (1 - said.u)])
        kept = weight > 0
        self.known, self.known_weight = np.concatenate([known, known])[kept], weight[kept]
        self.classes = np.repeat([1, 0], len(known))[kept]
        self.count = len(known)

    def posteriors(self, weights: Weights, fold: Indices) -> Floats:
        """P(+) of every item, by a fit without the item's own fold."""
        p = np.empty(len(self.x))
        everything = np.arange(len(self.x))
        for k in range(fold.max() + 1):
            inside = fold == k
            rows = everything if inside.all() else everything[~inside]
            model = self.fit(weights, rows)
            p[inside] = model.predict_proba(self.x[inside])[:, list(model.classes_).index(1)]
        return np.clip(p, TINY, 1 - TINY)

    def fit(self, weights: Weights, rows: Indices) -> Any:
        """A clone fitted to these rows, each as class + and as class −, and to the labelled."""
        weights = weights[:, rows]
        kept = weights > SMALL * weights.sum(0)
        positive, negative = (rows[one] for one in kept)
        x = np.concatenate([self.x[positive], self.x[negative], self.known])
        y = np.concatenate([np.repeat([1, 0], kept.sum(1)), self.classes])
        w = np.concatenate([weights[kept], self.known_weight])
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"the judgements of {len(rows)} items leave class {1 - y[0]} without any weight: "
                "give more pairs, pairs that differ in class, or a prior inside (0, 1)"
            )
        # Mean weight 1 an item, so that a classifier's penalty weighs as it usually does.
        w *= (len(np.unique(np.concatenate([positive, negative]))) + self.count) / w.sum()
        model = clone(self.classifier)
        return model.fit(x, y, **{_weight_name(model): w})


def _start(
    judgements: Targets, labelled: bool, prior: float | None, majority: Majority | None
) -> Weights:
    """First weights: the dissimilar outcomes, or similarities where there is nothing else."""
    if not (judgements.fixes("side") or labelled):
        q = judgements.from_similarity(prior, majority)
        rows = judgements.rows
        return np.stack([judgements.per_item([(rows, one, one)]) for one in (q, 1 - q)])
    start = judgements.dissimilar()
    if not (start.any() or labelled):
        raise ValueError(
            "no pair is judged to differ in class: there is nothing to tell the classes apart by"
        )
    return start


def _from_even_odds(judgements: Targets, p: Floats, prior: float | None) -> Floats:
    """Posteriors of the start, moved from equally frequent classes to the prior.

    The means of p over the positive and negative ends of the dissimilar outcomes, m₊ and m₋,
    give π₊ as the solution of mean p = π₊ m₊ + (1 − π₊) m₋.
    """
    if prior is None:
        positive, negative = judgements.dissimilar()
        if not positive.any():
            return p
        m_positive, m_negative = (np.average(p, weights=w) for w in (positive, negative))
        overall = np.average(p, weights=judgements.occurrences)
        gap = max(m_positive - m_negative, 1e-3)
        prior = float(np.clip((overall - m_negative) / gap, 0.02, 0.98))
    return _posterior(logit(p) + logit(prior))


def _folds(start: Weights, folds: int, seed: int) -> Indices:
    """The fold of every item, each with its share of both classes as the start sees them."""
    m = start.shape[1]
    total = start.sum(0)
    share = np.divide(start[0], total, out=np.full(m, 0.5), where=total > 0)
    shuffled = permutation(stream(seed, "completion folds"), m)
    order = shuffled[np.argsort(share[shuffled], kind="stable")]
    fold = np.empty(m, np.int64)
    fold[order] = np.arange(m) % min(folds, m)
    return fold


def _prepared(classifier: Any, random_state: int | None) -> Any:
    """A clone whose unset random states are set, checked for what completion needs."""
    name = type(classifier).__name__
    if not hasattr(classifier, "fit") or not hasattr(classifier, "get_params"):
        raise TypeError(f"classifier must be a scikit-learn classifier; got {name}")
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"{name} has no predict_proba: wrap it in sklearn.calibration.CalibratedClassifierCV"
        )
    _weight_name(classifier)
    prepared = clone(classifier)
    if random_state is not None:
        unset = {
            key: random_state
            for key, value in prepared.get_params().items()
            if key.rsplit("__", 1)[-1] == "random_state" and value is None
        }
        prepared.set_params(**unset)
    return prepared


def _weight_name(classifier: Any) -> str:
    """The keyword that brings weights to the classifier, or to the last step of a Pipeline."""
    if isinstance(classifier, Pipeline):
        step, last = classifier.steps[-1]
        return f"{step}__{_weight_name(last)}"
    if not has_fit_parameter(classifier, "sample_weight"):
        raise ValueError(
            f"{type(classifier).__name__} does not take sample_weight: soft targets need it. "
            "Choose for instance HistGradientBoostingClassifier, RandomForestClassifier or "
            "LogisticRegression"
        )
    return "sample_weight"


def _posterior(z: Floats) -> Floats:
    return np.asarray(np.clip(expit(z), TINY, 1 - TINY))
