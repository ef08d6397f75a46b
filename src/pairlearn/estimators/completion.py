"""Scikit-learn classifiers fitted to pairs, by rounds of target completion.

A classifier that takes ``sample_weight`` can learn from soft targets: every item is in its
training set once for each class, with its posterior of that class as weight. The targets come from
the judgements, completed by the classifier's own posteriors (see `Kind.complete`), in rounds: a
statement about a set S changes the posteriors of the classes in S, and of the others, by one factor
each. With two classes S is the positive one.

The first targets of two classes are the dissimilar outcomes alone, a and b, which show both equally
often, so the first posteriors are moved from even odds to the prior that the outcomes imply. Those
of several classes are completed from equal posteriors.

Flexible classifiers repeat the targets they were fitted to, so posteriors are out of fold. The
rounds end when their divergence from the judgements no longer falls; the best round is kept.
Labels outside the feasible region are first moved to the nearest point in it, since sample weights
must not be negative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from pairlearn.columns import Floats, Indices
from pairlearn.estimators.orientation import prior_from_similarities, solve_shift
from pairlearn.judgements import Judgements
from pairlearn.judgements.identification import needs_priors
from pairlearn.judgements.kinds import kind
from pairlearn.judgements.kinds.statement import TINY, divergence
from pairlearn.prior import Majority
from pairlearn.randomness import permutation, stream

#: Rounds without a smaller divergence before completion ends: one can be chance.
PATIENCE = 2
#: Rows with less than this share of an item's weight are left out: most targets are near 0 or 1,
#: which halves the training set.
SMALL = 1e-3


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
) -> tuple[Any, list[dict[str, float]]]:
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
        The fitted clone, with classes 0 and 1, or 0 to K − 1; and for each round, the first of
        which has the first targets, its number as "epoch" and as "risk" the divergence of the
        out-of-fold posteriors from the judgements.

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
    x, two = np.asarray(features), rows.classes is None
    if not two and (needs_priors(rows) or not rows.members().any()):
        raise ValueError(
            "a scikit-learn classifier of several classes takes similarities or labels that name "
            "each class: give some, or choose a network"
        )
    known = rows.known & two
    labels, targets = rows[known], Targets(rows[~(known | rows.says_nothing)].doubled())
    fitter = _Fitter(
        _prepared(classifier, random_state), x[targets.items], x[labels.ends[:, 0]], labels
    )
    weights = targets.start(len(labels) > 0, prior, majority)
    fold, fixed = _folds(weights, folds, random_state or 0), targets.rows.fixed()
    best, least, idle = weights, np.inf, 0
    history: list[dict[str, float]] = []
    for number in range(rounds + 1):
        p = fitter.posteriors(weights, fold)
        if two and number == 0 and "side" in fixed:
            p = _from_even_odds(targets, p, prior)
        if two and not ("level" in fixed or len(labels)):
            assert prior is not None
            z = logit(p[:, 1])
            p = _both(z + solve_shift(z, targets.occurrences, prior))
        risk = targets.risk(p)
        history.append({"epoch": number + 1, "risk": risk})
        # The start shows the classes at even odds, so it is never the best round.
        if number > 0:
            idle = 0 if risk < least * (1 - tolerance) else idle + 1
            if not idle:
                best, least = weights, risk
            if idle == PATIENCE:
                break
        weights, _ = targets.complete(p)
    return fitter.fit(best, np.arange(len(targets.items))), history


class Targets:
    """Statements about pairs, and the completed posteriors (K,) of both ends.

    With two classes, the second one is positive, and all statements are about it.
    """

    def __init__(self, rows: Judgements) -> None:
        self.items, ends = np.unique(rows.ends, return_inverse=True)
        two = rows.classes is None
        self.members = np.tile([False, True], (len(rows), 1)) if two else rows.members()
        self.whole = ~self.members.any(1)
        values, soft = rows.values.copy(), rows.soft & ~self.whole
        if soft.any():
            nearest = rows[soft].labels().project().to_array()
            values[soft] = np.where(np.isnan(nearest), values[soft], nearest)
        self.rows = replace(rows, ends=ends.reshape(-1, 2), values=values, ids=None)
        self.parts = [(kind(name), np.flatnonzero(rows.of(name))) for name in rows.kinds()]
        self.occurrences = self.per_item(np.ones((2, len(rows), 1)))[0]

    def per_item(self, values: Floats) -> Floats:
        """Weighted sums (K, m) over the statements of each item, of values (2, n, K) of ends."""
        sums = np.zeros((len(self.items), values.shape[-1]))
        for ends, part in zip(self.rows.ends.T, values, strict=True):
            np.add.at(sums, ends, self.rows.weight[:, None] * part)
        return sums.T

    def start(self, labelled: bool, prior: float | None, majority: Majority | None) -> Floats:
        """First weights (K, m) of all classes for every item.

        With two classes from the dissimilar outcomes, or from similarities if there are no others.
        """
        count = self.members.shape[1]
        if self.rows.classes is not None:
            return self.complete(np.full((len(self.items), count), 1 / count))[0]
        if not ("side" in self.rows.fixed() or labelled):
            q = self.from_similarity(prior, majority)
            return self.per_item(np.stack([np.stack([1 - q, q], 1)] * 2))
        start = self.dissimilar()
        if not (start.any() or labelled):
            raise ValueError(
                "no pair is judged to differ in class, so nothing tells the classes apart: add "
                "pairs that differ"
            )
        return start

    def dissimilar(self) -> Floats:
        """Weights (2, m) of both classes that follow without a model."""
        outcomes = np.zeros((2, len(self.rows)))
        for statement, at in self.parts:
            outcomes[:, at] = statement.outcomes(*self.rows.values[at].T)
        return self.per_item(np.stack([outcomes[::-1], outcomes], 2))

    def from_similarity(self, prior: float | None, majority: Majority | None) -> Floats:
        """Targets of both ends from s alone, (s − π₋)/(π₊ − π₋), whose mean given x is r.

        E[s|x] = rπ₊ + (1 − r)π₋, so that the sign of π₊ − π₋ tells the classes apart.
        """
        if prior is None:
            assert majority is not None
            prior = prior_from_similarities(self.rows, majority)
        gap = 2 * prior - 1
        if abs(gap) < 1e-3:
            raise ValueError(
                f"the class prior is {prior:.3f}: with equally large classes, similarities alone "
                "do not tell the classes apart. Add some differences, preferences or labelled "
                "instances"
            )
        return np.clip((self.rows.u - (1 - prior)) / gap, 0, 1)

    def complete(self, posteriors: Floats) -> tuple[Floats, Floats]:
        """Weights (K, m) of all classes for every item, and the targets (2, n, K) of all ends."""
        p, inside = self._at_sets(posteriors)
        share = inside.copy()
        for statement, at in self.parts:
            share[:, at] = statement.complete(*inside[:, at], *self.rows.values[at].T)
        within, without = share / inside, (1 - share) / (1 - inside)
        factor = np.where(self.members, within[..., None], without[..., None])
        other, s = p[::-1, self.whole], self.rows.u[self.whole, None]
        same = p[:, self.whole].prod(0).sum(1, keepdims=True)
        factor[:, self.whole] = s * other / same + (1 - s) * (1 - other) / (1 - same)
        return self.per_item(p * factor), p * factor

    def predicted(self, posteriors: Floats) -> Floats:
        """The posteriors (2, n, K) of all ends."""
        return posteriors[self.rows.ends.T]

    def risk(self, posteriors: Floats) -> float:
        """Weighted mean divergence of posteriors from the statements, 0 where they agree."""
        p, inside = self._at_sets(posteriors)
        each = np.empty(len(self.rows))
        for statement, at in self.parts:
            each[at] = statement.divergence(*inside[:, at], *self.rows.values[at].T)
        s, same = self.rows.u[self.whole], p[:, self.whole].prod(0).sum(1)
        each[self.whole] = divergence(s, same) + divergence(1 - s, 1 - same)
        return float(np.average(each, weights=self.rows.weight))

    def _at_sets(self, posteriors: Floats) -> tuple[Floats, Floats]:
        """Posteriors (2, n, K) of all ends, and those (2, n) of the sets of the statements."""
        p = self.predicted(posteriors).clip(TINY)
        return p, (p * self.members).sum(-1).clip(TINY, 1 - TINY)


class _Fitter:
    """Fits clones of a classifier to weights of the classes of every item.

    ``labels`` are soft or plain labels of the items ``known``, added to every training set.
    """

    def __init__(self, classifier: Any, x: Any, known: Any, labels: Judgements) -> None:
        self.classifier, self.x = classifier, x
        weight = np.concatenate([labels.weight * labels.u, labels.weight * (1 - labels.u)])
        kept = weight > 0  # a plain label has no weight in the other class
        self.known, self.known_weight = np.concatenate([known, known])[kept], weight[kept]
        self.classes = np.repeat([1, 0], len(known))[kept]
        self.count = len(known)

    def posteriors(self, weights: Floats, fold: Indices) -> Floats:
        """Posteriors (m, K) of every item, by a fit without the item's fold."""
        p = np.zeros(weights.T.shape)
        for number in range(fold.max() + 1):
            inside = fold == number
            model = self.fit(weights, np.flatnonzero(~inside | inside.all()))
            p[np.ix_(inside, model.classes_)] = model.predict_proba(self.x[inside])
        return np.clip(p, TINY, 1 - TINY)

    def fit(self, weights: Floats, rows: Indices) -> Any:
        """Fit a clone to these rows, each as every class, and to the labelled items."""
        weights = weights[:, rows]
        kept = weights > SMALL * weights.sum(0)
        places, y = [rows[mask] for mask in kept], np.repeat(np.arange(len(kept)), kept.sum(1))
        x = np.concatenate([*(self.x[at] for at in places), self.known])
        y = np.concatenate([y, self.classes])
        w = np.concatenate([weights[kept], self.known_weight])
        if len(np.unique(y)) < 2:
            raise ValueError(
                f"the judgements of {len(rows)} items give weight to class {y[0]} only: add pairs, "
                "in particular pairs that differ in class, or give a prior inside (0, 1)"
            )
        # Items have mean weight 1, so that a classifier's penalty has its usual strength.
        w *= (len(np.unique(np.concatenate(places))) + self.count) / w.sum()
        model = clone(self.classifier)
        return model.fit(x, y, **{_weight_name(model): w})


def _from_even_odds(targets: Targets, p: Floats, prior: float | None) -> Floats:
    """Move posteriors (m, 2) of the start from equally frequent classes to the prior.

    The means of p over the positive and negative ends of the dissimilar outcomes, m₊ and m₋,
    give π₊ as the solution of mean p = π₊ m₊ + (1 − π₊) m₋.
    """
    if prior is None:
        dissimilar = targets.dissimilar()
        if not dissimilar.any():
            return p
        m_negative, m_positive = (np.average(p[:, 1], weights=w) for w in dissimilar)
        overall = np.average(p[:, 1], weights=targets.occurrences)
        gap = max(m_positive - m_negative, 1e-3)
        prior = float(np.clip((overall - m_negative) / gap, 0.02, 0.98))
    return _both(logit(p[:, 1]) + logit(prior))


def _both(z: Floats) -> Floats:
    """Posteriors (m, 2) of both classes for log-odds."""
    return np.stack([expit(-z), expit(z)], 1).clip(TINY, 1 - TINY)


def _folds(start: Floats, folds: int, seed: int) -> Indices:
    """Fold of every item, stratified by the share of the last class at the start."""
    m = start.shape[1]
    total = start.sum(0)
    share = np.divide(start[-1], total, out=np.full(m, 0.5), where=total > 0)
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
