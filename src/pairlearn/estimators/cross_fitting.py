"""What is learnt before the model to keep: which model, how annotators answer, when to stop.

A network memorises hard answers: its decisions get a little worse, and its probabilities far
too sure. So a first training holds out a fifth of the rows, to choose the epoch at which to stop
and the factor of the log-odds. The epoch maximises their likelihood at the best factor:
networks become too sure long before their decisions suffer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from pairlearn.annotators import AnnotatorFinding, Annotators, findings
from pairlearn.annotators.answers import Answers
from pairlearn.columns import Floats
from pairlearn.estimators.parameters import (
    NETWORK,
    is_scikit_learn,
    make_module,
    model_of,
    needs_prior,
    recipe_of,
    risk_of,
)
from pairlearn.estimators.population import Need, guiding_prior
from pairlearn.estimators.table import Table
from pairlearn.judgements import Judgements
from pairlearn.training import Checkpoint
from pairlearn.training.learner import Recipe
from pairlearn.training.loop import Callback, Until, is_guided
from pairlearn.training.trainer import Trained, train

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

FEW = 400
"""Rows from which on the network is trained: with 300 pairs it was at most 0.003 behind the linear
model on six data sets, and up to 0.16 ahead (`bench/speed/model_choice.py`)."""
LEAST = 10
"""Differences that the choice of a model needs."""
RANKED = 0.99
"""Share of the answers that a linear score must rank: less than 0.01 is left to gain then."""
PENALTIES = np.geomspace(1e-4, 1e2, 25)
"""Penalties of the ridge regression, in units of the mean squared gap of two items."""
SHARE = 0.2
"""Share of the epochs that networks of a fold train for: more would memorise their pairs."""
SCORER = "mlp-small"
"""Network of the folds that annotators are learnt with: as good there, at a third of the time."""
LEAST_ANSWERED = 20
"""Pairs that learning about annotators needs."""
SCORER_FOLDS = 3
"""Folds that annotators are learnt with: four trainings with the last one."""
FEW_ANSWERS = 10
"""Answers from which on somebody counts as one of several annotators."""
INFEASIBLE = 0.02
"""Share of answers that no posteriors give from which on a single annotator is learnt: the answers
of an ideal one have none, and those of one in fifty at random more."""
TRIAL_SHARE = 0.2
EARLIEST = 1 / 6
LEAST_TRIED = 50
SLOPES = tuple(float(k) for k in np.geomspace(0.05, 1.5, 18))
"""Candidate factors of log-odds that were learnt from hard answers."""


def choose_model(classifier: PairClassifier, table: Table, rows: Judgements) -> str:
    """Choose "linear" where a linear score ranks nearly all of few judged pairs, else the network.

    The score is that of a ridge regression of the differences, judged on pairs left out. Without
    one it is the network: with many rows, with epochs, learning rate or batch size chosen by hand,
    and with hardly any differences. On six data sets with 40 to 300 pairs and annotators made from
    the features, with private knowledge, and both, the accuracy is 0.0026, 0.0094 and 0.0026 below
    the better of the two models on average; always the network, 0.0018, 0.0094 and 0.0031.
    """
    by_hand = (classifier.epochs, classifier.learning_rate, classifier.batch_size)
    judged = rows[rows.has("difference") & (rows.weight > 0)]
    if by_hand != ("auto",) * 3 or len(rows) >= FEW or len(judged) < LEAST:
        return NETWORK
    left, right = (table.features[end].reshape(len(judged), -1) for end in judged.ends.T)
    agreement = linear_agreement(np.asarray(right - left, np.float64), judged.v, judged.weight)
    return "linear" if agreement >= RANKED else NETWORK


def linear_agreement(gaps: Floats, difference: Floats, weight: Floats) -> float:
    """Weighted share of the differences whose sign a ridge regression on the other pairs predicts.

    ``gaps`` (n, d) are the features of the right item less those of the left. With the Gram matrix
    K and α = (K + λI)⁻¹c, the residual of a pair that is left out is α_i / (K + λI)⁻¹_ii; the
    penalty λ is the one with the least mean square of these.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> linear_agreement(x, np.tanh(x[:, 0]), np.ones(50)) > 0.99
    True
    """
    gram = gaps @ gaps.T
    values, vectors = np.linalg.eigh(gram)
    target, best = vectors.T @ difference, (np.inf, difference)
    for penalty in float(np.trace(gram)) / len(gram) * PENALTIES:
        inverse = 1 / (values.clip(0) + penalty + 1e-12)
        residual = (vectors @ (inverse * target)) / (np.square(vectors) @ inverse)
        best = min(best, (float(weight @ residual**2), residual), key=lambda found: found[0])
    right = np.sign(difference - best[1]) == np.sign(difference)
    counts = weight * np.abs(difference)
    return float(counts @ right / max(counts.sum(), 1e-12))


def out_of_fold(
    classifier: PairClassifier,
    table: Table,
    rows: Judgements,
    fold: NDArray[np.intp],
    share: float,
    **changes: Any,
) -> Iterator[Floats]:
    """Log-odds (n, 2) of the items of each row, by models that did not see the row.

    They are given after each fold, NaN for the rows of later folds. ``fold`` (n,) is the fold of
    each row; rows with −1 are in all trainings, and stay NaN. The other parameters are those of
    `trial`.
    """
    scores, features = np.full((len(rows), 2), np.nan), table.features
    for held in range(fold.max() + 1):
        seed = table.seed + held
        model = trial(classifier, features, rows[fold != held], seed, share, **changes)
        at = np.flatnonzero(fold == held)
        scores[at] = model.log_odds(features[rows.ends[at].ravel()]).reshape(-1, 2)
        yield scores


def trial(
    classifier: PairClassifier,
    features: Any,
    rows: Judgements,
    seed: int,
    share: float = 1.0,
    **changes: Any,
) -> PairClassifier:
    """A copy of a classifier with `changes`, fitted to statements about prepared instances.

    It trains for a `share` of the epochs, and without the warnings that the final model gives.
    """
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
        random_state=seed,
        **changes,
    )
    if share < 1 and not is_scikit_learn(model.model):
        # If few epochs were chosen by hand, a share of them is too few.
        whole = recipe_of(model, len(rows), seed).epochs
        usual = recipe_of(clone(model).set_params(epochs="auto"), len(rows), seed).epochs
        model.set_params(epochs=max(round(share * whole), min(round(share * usual), whole), 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted: PairClassifier = model.fit(features, rows)
    return fitted


class AnnotatorsWarning(UserWarning):
    """A finding about annotators, which changes nothing in the fit."""

    def __init__(self, finding: AnnotatorFinding) -> None:
        self.finding = finding
        super().__init__(finding.sentence)


def learn_annotators(classifier: PairClassifier, table: Table) -> tuple[Table, Annotators]:
    """A table with one corrected statement per pair, and how each annotator answers.

    Where annotators are taken as ideal, there are no people, and no answer is corrected: where the
    classifier says so, and with "auto" where the table gives no `reason_to_learn`. Otherwise the
    annotators are learnt from the answers alone, models of parts of the corrected pairs give
    log-odds of the others, and the annotators are learnt with these.
    """
    if classifier.annotators == "ideal":
        return table, Annotators()
    judged, answers = table.judged, Answers.of(table.judged)
    wanted = classifier.annotators == "learn" or reason_to_learn(answers)
    if len(answers.ends) < LEAST_ANSWERED or not wanted:
        _warn(findings(judged))
        return table, Annotators()
    first = Annotators.learn(judged, seed=table.seed)
    statements = first.correct(judged)
    scores = _scores_of_folds(classifier, table, statements, len(answers.ends))
    if not np.isfinite(scores).all():  # training diverges, which the model to keep will show
        return replace(table, judged=statements), first
    log_odds = answers.of_rows(judged, scores)
    annotators = Annotators.learn(judged, log_odds, seed=table.seed)
    _warn(findings(judged, log_odds))
    return replace(table, judged=annotators.correct(judged, log_odds)), annotators


def reason_to_learn(answers: Answers) -> str | None:
    """Why annotators should not be taken as ideal, if there is a reason.

    There is one where several people answer, or where no two posteriors give the answers: leans and
    guesses make such answers (`bench/speed/annotators.py`). There is none where noise was added to
    the answers, which training corrects for if its mean is zero, nor where most rows have one of
    the two answers: that hardly tells a lean from the truth.
    """
    if not len(answers) or np.isnan(answers.values).any(1).mean() > 0.5 or answers.beyond:
        return None
    if sum(len(rows) >= FEW_ANSWERS for rows in answers.each) > 1:
        return f"{len(answers.names)} annotators"
    off = 1 - float(answers.feasible().mean())
    if off > INFEASIBLE:
        return f"{off:.0%} of the answers are such that no two posteriors give them"
    return None


def _warn(found: Sequence[AnnotatorFinding]) -> None:
    for finding in found:
        warnings.warn(AnnotatorsWarning(finding), stacklevel=5)


def _scores_of_folds(
    classifier: PairClassifier, table: Table, statements: Judgements, pairs: int
) -> Floats:
    """Log-odds (P, 2) of the pairs, the first statements, by models that did not see them."""
    fold = np.full(len(statements), -1)  # statements about single items are in all trainings
    fold[:pairs] = np.random.default_rng(table.seed).permutation(pairs) % SCORER_FOLDS
    changes = {"model": SCORER} if model_of(classifier) in ("mlp", "mlp-bn") else {}
    *_, scores = out_of_fold(classifier, table, statements, fold, SHARE, **changes)
    return scores[:pairs]


def train_network(
    classifier: PairClassifier,
    table: Table,
    rows: Judgements,
    need: Need,
    prior: float | None,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint | None,
) -> tuple[Trained, float]:
    """Train a module on rows; return it and its slope."""
    features, seed = table.features, table.seed
    risk, held_out = risk_of(classifier, prior), None
    if classifier.early_stopping:
        rows, held_out = table.held_out(rows, classifier.validation_fraction, seed)
    recipe = recipe_of(classifier, len(rows), seed)
    # Risks without a prior fit the reflected solution as well.
    guided = not risk.needs_prior and is_guided(recipe.epochs)

    def trained_on(
        rows: Judgements, recipe: Recipe, held_out: Judgements | None, **options: Any
    ) -> Trained:
        with torch.random.fork_rng(devices=[]):  # dropout of a module draws on the global one
            torch.manual_seed(seed)
            return train(
                features,
                rows,
                risk,
                make_module(model_of(classifier), features.shape[1:], seed),
                recipe,
                held_out=held_out,
                held_prior=float(classifier.prior) if need == "prior" else None,
                guiding_prior=guiding_prior(features, rows, seed) if guided else None,
                **options,
            )

    slope = 1.0
    if _hard(classifier, rows):
        rest, apart = table.held_out(rows, TRIAL_SHARE, seed)
        longer = replace(recipe, patience=max(recipe.patience, recipe.epochs // 2))
        trial = trained_on(rest, longer, apart, slopes=SLOPES, earliest=EARLIEST)
        slope, callbacks = trial.slope, [*callbacks, Until(trial.epoch)]
    trained = trained_on(rows, recipe, held_out, callbacks=callbacks, checkpoint=checkpoint)
    return trained, slope


def _hard(classifier: PairClassifier, rows: Judgements) -> bool:
    """Whether rows are hard answers, and the number of epochs is not given."""
    ideal = classifier.annotators == "ideal" or needs_prior(classifier.risk)
    if ideal or classifier.epochs != "auto" or classifier.early_stopping:
        return False
    return len(rows) >= LEAST_TRIED and float(rows.hard().mean()) > 0.9
