"""What models say about pairs that they did not see, and which model that speaks for.

A network learns few pairs by heart, and with 40 to 200 of them a linear model is often the better
one, as on wine, and often not, as on two moons (`benchmarks/worth.py`). What tells them apart is
how often the linear model is right about pairs that it did not see (both alike, or which one is
positive), beside how often the annotator is, by the answers: where it comes near that, there is
nothing to gain. A network that is compared with it directly wins too often by chance with 40 pairs,
and by likelihood nearly always: it imitates the annotator better, which is not the aim.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from pairlearn.columns import Floats
from pairlearn.estimators.parameters import NETWORK, is_scikit_learn, recipe_of
from pairlearn.judgements import Judgements

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

FOLDS = 4
"""Twice as many with fewer than a hundred pairs, of which models can spare less."""
FEW = 400
"""Rows from which on the network is trained without a comparison."""
LEAST = 10
"""Pairs with both answers under which there is nothing to compare with."""
NEAR, FAR = 0.02, 0.1
"""Shares of the pairs that the linear model is surely wrong about where the annotator is not: up
to the first there is nothing to gain by a network, and from the second on there is much."""
STEPS = 400
"""Of the linear models, which need them however few the pairs are."""
SHARE = 0.2
"""Of the epochs that networks of a fold train for: more would learn their pairs by heart."""


def choose_model(
    classifier: PairClassifier, features: NDArray[np.float32], rows: Judgements, seed: int
) -> str:
    """The network where the linear model surely leaves much to gain on pairs held out.

    Where that is little, only if the network is ahead on them.

    The network without a comparison where rows are many, where epochs, learning rate or batch
    size are chosen by hand, and where there are hardly any pairs with both answers.

    Parameters
    ----------
    classifier : PairClassifier
        Its parameters.
    features : array of shape (N, ...)
        Prepared instances.
    rows : Judgements
        All statements to learn from.
    seed : int
        Of the folds.
    """
    by_hand = (classifier.epochs, classifier.learning_rate, classifier.batch_size)
    both = rows.has("similarity") & rows.has("difference")
    if by_hand != ("auto",) * 3 or len(rows) >= FEW or both.sum() < LEAST:
        return NETWORK
    pairs = np.unique(np.sort(rows.ends, axis=1), axis=0, return_inverse=True)[1].ravel()
    folds = FOLDS if both.sum() >= 100 else 2 * FOLDS
    order = np.random.default_rng(seed).permutation(int(pairs.max()) + 1)
    fold = np.where(both, order[pairs] % folds, -1)
    outcomes = rows[both].labels().project().outcomes()  # left, right or both alike, as judged
    weight = rows[both].weight / rows[both].weight.sum()

    def right_pairs(model: str, share: float) -> Floats:
        z = out_of_fold(classifier, features, rows, fold, seed, share, model=model)[both] > 0
        decided = np.where(z[:, 0] == z[:, 1], 2, z[:, 1])
        return outcomes[np.arange(len(z)), decided]  # type: ignore[no-any-return]

    def mean_and_error(gain: Floats) -> tuple[float, float]:
        mean = float(weight @ gain)
        return mean, float(np.sqrt(weight**2 @ (gain - mean) ** 2))

    training = len(rows) * (folds - 1) // folds
    recipe = recipe_of(clone(classifier).set_params(model="linear"), training, seed)
    steps = recipe.epochs * -(-training // recipe.batch_size)
    linear = right_pairs("linear", min(STEPS / steps, 1))
    mean, error = mean_and_error(outcomes.max(axis=1) - linear)
    if not NEAR < mean - error <= FAR:
        return "linear" if mean - error <= NEAR else NETWORK
    mean, error = mean_and_error(right_pairs(NETWORK, SHARE) - linear)
    return NETWORK if mean > 0.5 * error else "linear"


def out_of_fold(
    classifier: PairClassifier,
    features: Any,
    rows: Judgements,
    fold: NDArray[np.intp],
    seed: int,
    share: float,
    **changes: Any,
) -> Floats:
    """Log-odds (n, 2) of the items of rows, by models that did not see the row.

    Parameters
    ----------
    classifier : PairClassifier
        Its parameters, but for `changes`.
    features : array of shape (N, ...)
        Prepared instances.
    rows : Judgements
        What to learn from.
    fold : array of shape (n,)
        The fold of each row; rows below zero are in all trainings, and have no log-odds.
    seed : int
        Of the trainings.
    share : float
        Of the epochs that the classifier would train for.
    """
    scores = np.full((len(rows), 2), np.nan)
    for held in range(fold.max() + 1):
        rest = rows[fold != held]
        model = clone(classifier).set_params(
            annotators="ideal",
            unjudged="ignore",
            features=None,
            preprocessor=None,
            standardize=False,
            target_prior=None,
            annotator_prior=None,
            callbacks=None,
            verbose=0,
            random_state=seed + held,
            **changes,
        )
        if not is_scikit_learn(model.model):
            epochs = recipe_of(model, len(rest), seed).epochs
            model.set_params(epochs=max(round(share * epochs), 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model to keep gives them, too
            model.fit(features, rest)
        at = np.flatnonzero(fold == held)
        scores[at] = model.decision_function(features[rows.ends[at].ravel()]).reshape(-1, 2)
    return scores
