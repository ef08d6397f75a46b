"""`compare`: every method on the same folds of the same pairs, ranked without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairlearn.comparison.methods import default_methods, full_names
from pairlearn.comparison.ranking import rank
from pairlearn.comparison.report import Comparison, MethodResult
from pairlearn.comparison.study import (
    AfterFold,
    Progress,
    Study,
    kinds_of,
    make_splits,
    rows_that_test,
)
from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.models import is_scikit_learn
from pairlearn.estimators.parameters import check_parameters
from pairlearn.estimators.population import Majority, disagreement
from pairlearn.estimators.table import read_table
from pairlearn.evaluation.judged import check_confidence

__all__ = ["compare"]


def compare(
    features: Any,
    pairs: Any,
    labels: Any,
    *,
    weight: Any = None,
    preference: Any = None,
    methods: Sequence[str] | None = None,
    prior: float | str = "estimate",
    majority: Majority | None = None,
    folds: int = 5,
    repeats: int = 1,
    model: Any = "mlp-bn",
    epochs: int | str = "auto",
    batch_size: int | str = "auto",
    learning_rate: float | str = "auto",
    weight_decay: float = 1e-5,
    confidence: float = 0.95,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | None = None,
    after_fold: AfterFold | None = None,
) -> Comparison:
    """Rank risks and corrections on judged pairs by cross-validation, without any label.

    The items are split into folds. The models of a fold, one a method, are trained on the
    pairs with both ends outside the fold, and decide about the pairs with both ends inside.
    Pairs that straddle test no model; `split_items` loses as few as it can, none where
    items do not recur. All methods have the same pairs, batches and initial weights, and
    are trained as `PairClassifier` trains: what is ranked is ``PairClassifier(risk=method)``.

    The accuracy of a method is that of its models' decisions, all folds together, estimated
    by `pairlearn.evaluation.estimate_accuracy`: *as the annotator sees it*. A miscalibrated
    annotator biases all methods, and their order if some learn the annotator's errors
    better than others.

    How to read the intervals: that of an accuracy holds for this method by itself, with the
    given confidence, and is about the models trained here, each on a part of the pairs. The
    intervals of the differences hold all together, for every couple of methods, so that they
    also hold for the method that happens to look best. Where one contains 0 the method is
    marked as a tie: with these pairs it cannot be told from the best.

    Parameters
    ----------
    features : array, table or callable
        What turns the ids in `pairs` into features, as the `preprocessor` of
        `PairClassifier`: an array whose rows they are, a data frame, an `ItemTable`, ….
        None if the pairs are features themselves.
    pairs : array of shape (n, 2) or (n, 2, d, ...)
        Ids of both ends, or their features.
    labels : PairLabels, or array of shape (n, 2)
        Similarity and difference, NaN where not given. Labels with noise that leave their
        ranges are ``PairLabels(..., noisy=True)``. Where every row has both, all methods
        train as one fleet; otherwise, as with preferences, one after another by
        `PairClassifier`, and every judgement counts.
    weight : array of shape (n,), optional
        Weights of the rows, in training and in evaluation.
    preference : array of shape (n,), optional
        "left" (−1) or "right" (1) where one was said to be the more positive. They train,
        and do not test.
    methods : sequence of str, optional
        Names for `make_risk`; one without a correction stands for all three. By default
        `default_methods`, less those that are undefined at the class prior.
    prior : float or "estimate"
        The class prior that affine risks are given; estimated for each fold from the
        similarities that its models are trained on.
    majority : {"positive", "negative"}, optional
        The larger class, for estimating the prior; found by a linear model if not given.
    folds, repeats : int
        Folds of a split, and splits.
    model, epochs, batch_size, learning_rate, weight_decay, device, precision
        As in `PairClassifier`; no scikit-learn classifiers, which know one risk only.
    confidence : float
        Coverage of the intervals, in (0, 1).
    seed : int
        Folds, initial weights and batches follow from it.
    progress : callable, optional
        Called with the steps done and the steps in all.
    after_fold : callable, optional
        Called with the trained models of each fold, by method: functions from instances
        (m, d, ...) to log-odds (m,).

    Examples
    --------
    >>> from pairlearn import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 3))
    >>> pairs = np.arange(600).reshape(300, 2)
    >>> r = 1 / (1 + np.exp(1 - 4 * x[:, 0]))
    >>> labels = PairLabels.from_posteriors(*r[pairs].T)
    >>> found = compare(x, pairs, labels, methods=["likelihood-abs", "sconf-none"],
    ...                 majority="negative", model="linear", epochs=10, learning_rate=0.03)
    >>> [row.name for row in found.rows], found.ties, found.dropped
    (['likelihood-abs', 'sconf-none'], (), 0)
    """
    check_confidence(confidence)
    _check_counts(folds=folds, repeats=repeats)
    classifier = PairClassifier(
        model=model,
        prior=prior,
        majority=majority,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        device=device,
        precision=precision,
    )
    _check_classifier(classifier)
    names = full_names(default_methods() if methods is None else methods)
    table = read_table(pairs, labels, weight, preference, None, features)
    said = table.judged
    splits = make_splits(said, len(table.features), folds, repeats, seed)
    rows = np.concatenate([part for split in splits for part in rows_that_test(split, said)])
    kinds = kinds_of(said[rows])
    _check_told(kinds, prior)
    study = Study(table, classifier, splits, folds)
    if prior != "estimate":
        study.warn_of(disagreement(table.judged, float(prior), None, np.empty(0)))
    priors = study.priors(names, seed)
    names = study.defined(names, priors, required=methods is not None)
    logits = study.held_out(names, priors, seed, progress, after_fold)
    ranking = rank(
        logits,
        said[rows].labels(),
        weight=said.weight[rows],
        items=said.ends[rows],
        confidence=confidence,
        # Only where judgements are of one kind: elsewhere they tell the prior themselves.
        prior=None if len(kinds) == 2 else float(prior),
    )
    results = tuple(
        MethodResult(names[method], accuracy, difference, place > 0 and difference.high >= 0)
        for place, (method, accuracy, difference) in enumerate(
            zip(ranking.order, ranking.accuracies, ranking.differences, strict=True)
        )
    )
    dropped = sum(split.dropped for split in splits)
    study.warn_of_lost(dropped, len(rows), repeats)
    return Comparison(
        results,
        pairs=len(said.ends),
        tested=len(rows),
        dropped=dropped,
        folds=folds,
        repeats=repeats,
        prior=study.prior,
        confidence=confidence,
        warnings=tuple(study.warnings),
    )


def _check_told(kinds: set[str], prior: float | str) -> None:
    """Refuse judgements by which nothing can be evaluated, before anything is trained."""
    if len(kinds) < 2 and prior == "estimate":
        raise ValueError(
            f"held-out labels have {kinds.pop()} alone, which does not fix the accuracy of a "
            "classifier: give both for some pairs, or pass prior=, the share of the positive class"
        )


def _check_classifier(classifier: PairClassifier) -> None:
    if is_scikit_learn(classifier.model):
        raise ValueError(
            "model is a scikit-learn classifier, which is trained by the pair likelihood alone: "
            "there is nothing to compare; give the name of a network, or a module"
        )
    check_parameters(classifier)


def _check_counts(**counts: int) -> None:
    for name, least in (("folds", 2), ("repeats", 1)):
        value = counts[name]
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
