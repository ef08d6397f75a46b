"""Scikit-learn classifiers fitted to pairs, by rounds of target completion.

A classifier that takes ``sample_weight`` can learn from soft targets: every item is in its
training set twice, as class + with weight q and as class − with weight 1 − q. The targets come
from the judgements, completed by the classifier's own posteriors (see `Kind.complete`), in rounds.
The first targets are the dissimilar outcomes alone, a and b, which show both classes equally often,
so the first posteriors are moved from even odds to the prior that the outcomes imply.

With K classes every item is in the training set once for each class, with the completed posteriors
as weights: a statement about a set S changes the posteriors of the classes in S, and of the others,
by one factor each. The first targets are those of equal posteriors.

Flexible classifiers repeat the targets they were fitted to, so posteriors are out of fold. The
rounds end when their divergence from the judgements no longer falls; the best round is kept.
Labels outside the feasible region are first moved to the nearest point in it, since sample weights
must not be negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from pairlearn.columns import Floats, Indices
from pairlearn.estimators.orientation import (
    Majority,
    prior_from_similarities,
    solve_shift,
)
from pairlearn.judgements import Judgements
from pairlearn.judgements.identification import needs_priors
from pairlearn.judgements.kinds import kind
from pairlearn.judgements.kinds.statement import TINY, divergence
from pairlearn.randomness import permutation, stream

Weights = Floats
"""Weights (2, m) of class + and class − for every item, or (K, m) of K classes."""

PATIENCE = 2
SMALL = 1e-3
"""Rows with less than this share of an item's weight are left out: most targets are near 0 or 1,
which halves the training set."""


@dataclass(frozen=True)
class CompletionRound:
    """Record of one round; round 0 starts from the dissimilar outcomes.

    `risk` is the out-of-fold divergence of the posteriors from the judgements, `change` the
    mean absolute change of the targets (NaN in rounds 0 and 1), `prior` the mean posterior of the
    last class.
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
        Statements about them. Only the proportions of weights matter.
    rounds, tolerance : int, float
        Most completions; fewer if the out-of-fold risk has not fallen by this share twice.
    folds : int
        Folds over the items for the posteriors; 1 takes those of the fit itself, which is enough
        for models with few parameters.
    prior : float, optional
        π₊, needed without similarities and labelled instances.
    majority : {"positive", "negative"}, optional
        The larger class, needed with similarities alone and no prior.
    random_state : int, optional
        For the folds, and for every ``random_state`` of the classifier that is None.

    Returns
    -------
    classifier, history
        The fitted clone, with classes 0 and 1, or 0 to K − 1, and a `CompletionRound` for each
        round.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pairlearn import Judgements, PairLabels
    >>> x = np.linspace(-3, 3, 400)[:, None]
    >>> r = 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> pairs = np.random.default_rng(0).permutation(400).reshape(200, 2)
    >>> labels = PairLabels.from_posteriors(r[pairs[:, 0]], r[pairs[:, 1]])
    >>> rows = Judgements.from_pairs(pairs, labels)
    >>> model, history = complete_and_fit(LogisticRegression(), x, rows, folds=1)
    >>> model.predict([[-1.0], [1.0]])
    array([0, 1])
    """
    x = np.asarray(features)
    if rows.classes is not None:
        return _fit_classes(classifier, x, rows, rounds, tolerance, folds, random_state)
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


def _fit_classes(
    classifier: Any,
    x: Any,
    rows: Judgements,
    rounds: int,
    tolerance: float,
    folds: int,
    random_state: int | None,
) -> tuple[Any, list[CompletionRound]]:
    """Fit to statements about K classes, which are known but for what no statement tells apart."""
    if needs_priors(rows) or not rows.members().any():
        raise ValueError(
            "a scikit-learn classifier of several classes takes similarities or labels that name "
            "each class: give some, or choose a network"
        )
    targets = ClassTargets(rows[~rows.says_nothing].doubled())
    prepared, known = _prepared(classifier, random_state), Judgements.about_items("label", [], [])
    fitter = _Fitter(prepared, x[targets.items], x[:0], known)
    count = len(rows.classes or ())
    start = targets.complete(np.full((len(targets.items), count), 1 / count))[0]
    fold = _folds(start, folds, random_state or 0)

    def posteriors(weights: Weights, number: int) -> Floats:
        return fitter.posteriors(weights, fold)

    weights, history = _rounds(targets, start, posteriors, rounds, tolerance)
    return fitter.fit(weights, np.arange(len(targets.items))), history


def _rounds(
    statements: Targets | ClassTargets,
    start: Weights,
    posteriors: Callable[[Weights, int], Floats],
    rounds: int,
    tolerance: float,
) -> tuple[Weights, list[CompletionRound]]:
    """Complete and fit in turn; return the weights of the best round, and all rounds."""
    weights, targets, change = start, np.empty(0), np.nan
    best, least, idle = start, np.inf, 0
    history: list[CompletionRound] = []
    for number in range(rounds + 1):
        p = posteriors(weights, number)
        risk = statements.risk(p)
        mean = float(np.average(p.T[-1] if p.ndim > 1 else p, weights=statements.occurrences))
        history.append(CompletionRound(number, risk, change, mean))
        # The start shows the classes at even odds, so it is never the best round.
        if number > 0:
            idle = 0 if risk < least * (1 - tolerance) else idle + 1
            if not idle:
                best, least = weights, risk
            if idle == PATIENCE:
                break
        old_targets = targets
        weights, targets = statements.complete(p)
        if number > 0:
            change = float(abs(targets - old_targets).mean())
    return best, history


class Targets:
    """Statements about pairs, by kind, and the completed targets of both ends."""

    def __init__(self, rows: Judgements) -> None:
        values = rows.values.copy()
        soft = rows.soft
        if soft.any():
            nearest = rows.labels().project().to_array()
            values[soft] = np.where(np.isnan(nearest), 0.0, nearest)
        self.items, ends = np.unique(rows.ends, return_inverse=True)
        self.rows = Judgements(ends.reshape(-1, 2), rows.kind, values, rows.weight)
        self.parts = [(kind(name), self.rows[self.rows.of(name)]) for name in rows.kinds()]
        ones = [(part, np.ones(len(part)), np.ones(len(part))) for _, part in self.parts]
        self.occurrences = self.per_item(ones)

    def fixes(self, quantity: str) -> bool:
        """Whether some statement determines the "level" or the "side"."""
        return any(quantity in kind.fixes(False) for kind, _ in self.parts)

    def per_item(self, ends: list[tuple[Judgements, Floats, Floats]]) -> Floats:
        """Sum values of the left and right ends over the statements of each item, weighted."""
        sums = np.zeros(len(self.items))
        for part, left, right in ends:
            for side, value in enumerate((left, right)):
                sums += np.bincount(part.ends[:, side], part.weight * value, len(sums))
        return sums

    def dissimilar(self) -> Weights:
        """Weights of both classes that follow without a model."""
        outcomes = [(part, *kind.outcomes(part.u, part.v)) for kind, part in self.parts]
        swapped = [(part, b, a) for part, a, b in outcomes]
        return np.stack([self.per_item(outcomes), self.per_item(swapped)])

    def complete(self, posterior: Floats) -> tuple[Weights, Floats]:
        """Weights of both classes for every item, and the targets of all ends."""
        completed = [
            (part, *kind.complete(*self.ends(part, posterior), part.u, part.v))
            for kind, part in self.parts
        ]
        positive = self.per_item(completed)
        negative = np.maximum(self.occurrences - positive, 0)
        targets = np.concatenate([np.concatenate([left, right]) for _, left, right in completed])
        return np.stack([positive, negative]), targets

    def predicted(self, posterior: Floats) -> Floats:
        """The posteriors of all ends, in the order of their targets."""
        return np.concatenate(
            [np.concatenate(self.ends(part, posterior)) for _, part in self.parts]
        )

    def risk(self, posterior: Floats) -> float:
        """Weighted mean divergence of posteriors from the judgements, 0 where they agree."""
        total = sum(
            float(part.weight @ kind.divergence(*self.ends(part, posterior), part.u, part.v))
            for kind, part in self.parts
        )
        return total / float(self.rows.weight.sum())

    def from_similarity(self, prior: float | None, majority: Majority | None) -> Floats:
        """Targets of both ends from s alone, (s − π₋)/(π₊ − π₋), whose mean given x is r.

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


class ClassTargets:
    """Statements about K classes, and the completed posteriors (K,) of both ends."""

    def __init__(self, rows: Judgements) -> None:
        self.items, ends = np.unique(rows.ends, return_inverse=True)
        values = rows.values.copy()
        asked = rows.soft & (rows.sets != "")
        if asked.any():
            nearest = rows[asked].labels().project().to_array()
            values[asked] = np.where(np.isnan(nearest), values[asked], nearest)
        self.rows = replace(rows, ends=ends.reshape(-1, 2), values=values, ids=None)
        self.members = self.rows.members()
        self.parts = [(kind(name), np.flatnonzero(rows.of(name))) for name in rows.kinds()]
        ones = np.ones((2, len(rows), 1))
        self.occurrences = self.per_item(ones)[0]

    def per_item(self, values: Floats) -> Floats:
        """Weighted sums (K, m) over the statements of each item, of values (2, n, K) of ends."""
        sums = np.zeros((len(self.items), values.shape[-1]))
        for ends, part in zip(self.rows.ends.T, values, strict=True):
            np.add.at(sums, ends, self.rows.weight[:, None] * part)
        return sums.T

    def complete(self, posteriors: Floats) -> tuple[Weights, Floats]:
        """Weights (K, m) of all classes for every item, and the targets (2, n, K) of all ends."""
        p, targets = posteriors[self.rows.ends.T].clip(TINY), []
        inside = (p * self.members).sum(-1).clip(TINY, 1 - TINY)
        for end, other in ((0, 1), (1, 0)):
            share = inside[end].copy()
            for statement, at in self.parts:
                (left, right), (u, v) = inside[:, at], self.rows.values[at].T
                share[at] = statement.complete(left, right, u, v)[end]
            factor = np.where(
                self.members,
                (share / inside[end])[:, None],
                ((1 - share) / (1 - inside[end]))[:, None],
            )
            whole = ~self.members.any(1)
            q, s = p[other][whole], self.rows.u[whole, None]
            same = (p[end][whole] * q).sum(1, keepdims=True)
            factor[whole] = s * q / same + (1 - s) * (1 - q) / (1 - same)
            targets.append(p[end] * factor)
        both = np.stack(targets)
        return self.per_item(both), both

    def predicted(self, posteriors: Floats) -> Floats:
        """The posteriors (2, n, K) of all ends."""
        return posteriors[self.rows.ends.T]

    def risk(self, posteriors: Floats) -> float:
        """Weighted mean divergence of posteriors from the statements, 0 where they agree."""
        p = posteriors[self.rows.ends.T].clip(TINY)
        inside = (p * self.members).sum(-1).clip(TINY, 1 - TINY)
        each = np.empty(len(self.rows))
        for statement, at in self.parts:
            each[at] = statement.divergence(*inside[:, at], *self.rows.values[at].T)
        whole = ~self.members.any(1)
        s, same = self.rows.u[whole], p.prod(0).sum(1)[whole]
        each[whole] = divergence(s, same) + divergence(1 - s, 1 - same)
        return float(np.average(each, weights=self.rows.weight))


def targets_of(rows: Judgements) -> Targets | ClassTargets:
    """The targets of statements about pairs, of two classes or of several."""
    return Targets(rows) if rows.classes is None else ClassTargets(rows)


class _Fitter:
    """Fits clones of a classifier to weights of the two classes of every item.

    ``labels`` are soft or plain labels of the items ``known``, added to every training set.
    """

    def __init__(self, classifier: Any, x: Any, known: Any, labels: Judgements) -> None:
        self.classifier, self.x = classifier, x
        weight = np.concatenate([labels.weight * labels.u, labels.weight * (1 - labels.u)])
        kept = weight > 0  # a plain label has no weight in the other class
        self.known, self.known_weight = np.concatenate([known, known])[kept], weight[kept]
        self.classes = np.repeat([1, 0], len(known))[kept]
        self.count = len(known)

    def posteriors(self, weights: Weights, fold: Indices) -> Floats:
        """P(+) of every item, or those (m, K) of K classes, by a fit without the item's fold."""
        p = np.zeros((len(self.x), len(weights)))
        for number in range(fold.max() + 1):
            inside = fold == number
            model = self.fit(weights, np.flatnonzero(~inside | inside.all()))
            p[np.ix_(inside, model.classes_)] = model.predict_proba(self.x[inside])
        return np.clip(p[:, 1] if len(weights) == 2 else p, TINY, 1 - TINY)

    def fit(self, weights: Weights, rows: Indices) -> Any:
        """Fit a clone to these rows, each as every class, and to the labelled items."""
        weights = weights[:, rows]
        kept = weights > SMALL * weights.sum(0)
        numbers = [1, 0] if len(weights) == 2 else range(len(weights))
        places, y = [rows[mask] for mask in kept], np.repeat(numbers, kept.sum(1))
        x = np.concatenate([*(self.x[at] for at in places), self.known])
        y = np.concatenate([y, self.classes])
        w = np.concatenate([weights[kept], self.known_weight])
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"the judgements of {len(rows)} items leave class {1 - y[0]} without any weight: "
                "give more pairs, pairs that differ in class, or a prior inside (0, 1)"
            )
        # Items have mean weight 1, so that a classifier's penalty has its usual strength.
        w *= (len(np.unique(np.concatenate(places))) + self.count) / w.sum()
        model = clone(self.classifier)
        return model.fit(x, y, **{_weight_name(model): w})


def _start(
    targets: Targets, labelled: bool, prior: float | None, majority: Majority | None
) -> Weights:
    """First weights: from the dissimilar outcomes, or from similarities if there are no others."""
    if not (targets.fixes("side") or labelled):
        q = targets.from_similarity(prior, majority)
        return np.stack([targets.per_item([(targets.rows, share, share)]) for share in (q, 1 - q)])
    start = targets.dissimilar()
    if not (start.any() or labelled):
        raise ValueError(
            "no pair is judged to differ in class: there is nothing to tell the classes apart by"
        )
    return start


def _from_even_odds(targets: Targets, p: Floats, prior: float | None) -> Floats:
    """Move posteriors of the start from equally frequent classes to the prior.

    The means of p over the positive and negative ends of the dissimilar outcomes, m₊ and m₋,
    give π₊ as the solution of mean p = π₊ m₊ + (1 − π₊) m₋.
    """
    if prior is None:
        positive, negative = targets.dissimilar()
        if not positive.any():
            return p
        m_positive, m_negative = (np.average(p, weights=w) for w in (positive, negative))
        overall = np.average(p, weights=targets.occurrences)
        gap = max(m_positive - m_negative, 1e-3)
        prior = float(np.clip((overall - m_negative) / gap, 0.02, 0.98))
    return _posterior(logit(p) + logit(prior))


def _folds(start: Weights, folds: int, seed: int) -> Indices:
    """Fold of every item, stratified by the share of the first class at the start."""
    m = start.shape[1]
    total = start.sum(0)
    share = np.divide(start[0], total, out=np.full(m, 0.5), where=total > 0)
    shuffled = permutation(stream(seed, "completion folds"), m)
    order = shuffled[np.argsort(share[shuffled], kind="stable")]
    fold = np.empty(m, np.int64)
    fold[order] = np.arange(m) % min(folds, m)
    return fold


def _prepared(classifier: Any, random_state: int | None) -> Any:
    """Check that completion can use a classifier, and clone it with unset random states set."""
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"{type(classifier).__name__} has no predict_proba: wrap it in "
            "sklearn.calibration.CalibratedClassifierCV"
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
    """Keyword of the weights of a classifier, or of the last step of a Pipeline."""
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
