"""Learning: from a table of instances and statements to one fitted value.

`learn` is the line that a fit follows: standardise, learn the annotators, choose a model, orient,
train, shift. `Training.fit` trains a model to keep or a model of a fold.

A network memorises hard answers: its decisions get a little worse, and its probabilities far
too confident. So a trial holds out a fifth of the rows, to choose the epoch at which to stop
and the factor of the log-odds. The epoch maximises their likelihood at the best factor:
networks become overconfident long before their decisions suffer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit

from pairlearn.annotators import Annotators, findings
from pairlearn.columns import Floats, numbered
from pairlearn.estimators.completion import complete_and_fit
from pairlearn.estimators.fit_input import Table
from pairlearn.estimators.fitted import Fitted, Scorer
from pairlearn.estimators.neighbours import with_unjudged
from pairlearn.estimators.orientation import (
    Orientation,
    guiding_prior,
    mean_posterior,
    solve_shift,
)
from pairlearn.estimators.parameters import (
    MODEL_OF,
    NETWORK,
    flattens,
    is_scikit_learn,
    kept_parameters,
    make_module,
    needs_prior,
    options_of,
    recipe_of,
    risk_of,
)
from pairlearn.estimators.splits import held_out_rows
from pairlearn.finding import Finding
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import LEAST_ANSWERS
from pairlearn.judgements.kinds.statement import TINY
from pairlearn.training import Checkpoint
from pairlearn.training.learner import Recipe
from pairlearn.training.loop import Callback, Report, Until, is_guided, refuse_divergence
from pairlearn.training.trainer import Trained, train

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

#: Rows from which on the network is trained: with 300 pairs it was at most 0.003 behind the linear
#: model on six data sets, and up to 0.16 ahead. `bench/speed/worth.py` measures the rule on four,
#: also with annotators who know more than the features.
FEW_ROWS = 400
#: Share of the answers that a linear score must rank: less than 0.005 is left to gain then. With
#: 0.99, `worth.py` loses 0.016 on two moons with 100 pairs and 0.011 on digits with 200.
RANKED = 0.995
#: Penalties of the ridge regression, in units of the mean squared gap of two items.
PENALTIES = np.geomspace(1e-4, 1e2, 25)
#: Share of the epochs that networks of a fold train for: more would memorise their pairs.
SHARE = 0.2
#: Network of the folds that annotators are learnt with: as good there, at a third of the time.
SCORER = "mlp-small"
#: Folds that annotators are learnt with: four trainings with the last one.
SCORER_FOLDS = 3
#: Share of hard answers that the trial holds out, as `fit_and_measure` does.
TRIAL_SHARE = 0.2
#: Share of the epochs before which the trial does not stop: few rows would choose by chance.
EARLIEST = 1 / 6
#: Hard answers that a trial needs, so that it holds out ten.
LEAST_TRIED = 50
#: Candidate factors of log-odds that were learnt from hard answers.
SLOPES = tuple(float(k) for k in np.geomspace(0.05, 1.5, 18))


def learn(
    settings: PairClassifier,
    table: Table,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Fitted:
    """Learn from a table, by the parameters of a `PairClassifier`."""
    weight, model = table.item_weight(), settings.model
    if model == "auto":
        models = [MODEL_OF[kind] for kind in MODEL_OF if table.step.reads(kind)]
        model = models[0] if models else NETWORK
    flat = flattens(model)
    mean, scale = table.scale(weight, normed=flat and isinstance(model, str))
    found = table.description() | {"mean": mean, "scale": scale, "flat": flat}
    table = table.standardised(mean, scale, flat=flat)
    table, annotators = learn_annotators(settings, table, model)
    found |= {"annotators": annotators, "fold_log_odds": table.log_odds}
    rows = table.rows(options_of(settings).labelled_weight)
    if settings.model == "auto" and model == NETWORK:
        model = choose_model(settings, table.features, rows)
    training = Training.of(settings, table, rows, model)
    rows, unjudged = with_unjudged(training, table, rows)
    tried, *found_before = table.tried or (None, 1.0, np.inf)
    slope, last = found_before if tried == model else training.try_epochs(rows)
    callbacks = [*callbacks, Until(last)]
    scorer = training.fit(
        rows, weight=weight, slope=slope, callbacks=callbacks, checkpoint=checkpoint
    )
    z = scorer.log_odds(table.features) - scorer.shift
    prior, target = training.orientation.prior, settings.target_prior
    if target is not None:
        own = settings.annotator_prior
        shift = solve_shift(z, weight, target) if own is None else logit(target) - logit(own)
        scorer = replace(scorer, shift=float(shift))
    if prior is None or not needs_prior(settings.risk):
        prior = mean_posterior(z, weight)
    found |= {"prior": prior, "unjudged": unjudged, "last_epoch": last}
    return Fitted(**vars(scorer), model=model, parameters=kept_parameters(settings), **found)


@dataclass(frozen=True)
class Training:
    """What all trainings of a fit have in common: they differ by their rows and seeds."""

    settings: PairClassifier
    features: NDArray[Any]
    orientation: Orientation
    model: Any
    seed: int

    @classmethod
    def of(cls, settings: PairClassifier, table: Table, rows: Judgements, model: Any) -> Training:
        """Orient the rows of a table."""
        orientation = Orientation.of(settings, table.features, rows, table.seed)
        return cls(settings, table.features, orientation, model, table.seed)

    def fit(
        self,
        rows: Judgements,
        *,
        number: int = 0,
        share: float = 1.0,
        weight: Floats | None = None,
        slope: float = 1.0,
        **options: Any,
    ) -> Scorer:
        """Train a model on rows for a share of the epochs, and turn it as the orientation says.

        ``weight`` (N,) is that of each instance in the mean posterior, ``slope`` the factor of the
        log-odds, and ``number`` is added to the seed.
        """
        orientation, seed = self.orientation, self.seed + number
        if is_scikit_learn(self.model):
            estimator, history = complete_and_fit(
                self.model, self.features, rows,
                prior=orientation.prior, majority=orientation.larger, random_state=seed,
            )  # fmt: skip
            order = None if rows.classes is None else tuple(range(len(rows.classes)))
            scorer = Scorer(estimator=estimator, order=order, history=history, n_iter=len(history))
        else:
            packed = rows.packed(seed)
            recipe = recipe_of(self.settings, self.model, len(packed), seed, share)
            trained = self.train(packed, recipe, **options)
            scorer = Scorer(
                module=trained.module, sign=trained.sign, slope=slope, order=trained.order,
                n_iter=trained.epoch, history=trained.history,
            )  # fmt: skip
        if orientation.need == "nothing" or rows.classes is not None:
            return scorer
        z = scorer.log_odds(self.features)
        weight = rows.item_weight(len(z)) if weight is None else weight
        if orientation.need == "prior":
            return replace(scorer, shift=solve_shift(z, weight, orientation.prior))
        mirrored = (mean_posterior(z, weight) > 0.5) != (orientation.larger == "positive")
        return replace(scorer, sign=-scorer.sign) if mirrored else scorer

    def train(
        self,
        rows: Judgements,
        recipe: Recipe,
        *,
        callbacks: Sequence[Callback] = (),
        **options: Any,
    ) -> Trained:
        """Train a module on packed rows, guided to the side that the differences imply."""
        risk, seed = risk_of(self.settings, self.orientation.prior), recipe.seed
        # Risks without a prior fit the reflected solution as well.
        guided = not risk.needs_prior and is_guided(recipe.epochs) and rows.classes is None
        with torch.random.fork_rng(devices=[]):  # dropout of a module draws on the global one
            torch.manual_seed(seed)
            return train(
                self.features,
                rows,
                risk,
                make_module(self.model, self.features.shape[1:], seed, len(rows.classes or (1,))),
                recipe,
                held_prior=self.orientation.held,
                guiding_prior=guiding_prior(self.features, rows, seed) if guided else None,
                callbacks=[Report(refuse_divergence), *callbacks],
                **options,
            )

    def trial(self, rows: Judgements, number: int, share: float = 1.0) -> Scorer:
        """A model of a part of the rows, without the warnings that the one to keep gives."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.fit(rows, number=number, share=share)

    def try_epochs(self, rows: Judgements) -> tuple[float, float]:
        """The factor of the log-odds, and the epoch to stop after, by a trial on hard answers.

        Without a trial they are 1 and ∞: where answers are soft or few, annotators are ideal, the
        risk has a prior, or the number of epochs is not automatic.
        """
        settings, rows = self.settings, rows.packed(self.seed)
        ideal = settings.annotators == "ideal" or needs_prior(settings.risk)
        few = len(rows) < LEAST_TRIED or float(rows.hard().mean()) <= 0.9
        if settings.epochs != "auto" or ideal or few or is_scikit_learn(self.model):
            return 1.0, np.inf
        apart = held_out_rows(rows, TRIAL_SHARE, self.seed)
        recipe = recipe_of(settings, self.model, len(rows), self.seed)
        longer = replace(recipe, patience=max(recipe.patience, recipe.epochs // 2))
        options: Any = {"held_out": rows[apart] or None, "slopes": SLOPES, "earliest": EARLIEST}
        found = self.train(rows[~apart], longer, **options)
        return found.slope, found.epoch


def choose_model(settings: PairClassifier, features: Any, rows: Judgements) -> str:
    """Choose "linear" where a linear score ranks nearly all of few judged pairs, else the network.

    The score is that of a ridge regression of the differences, judged on pairs left out. Without
    one it is the network: with many rows, with epochs, learning rate or batch size chosen by hand,
    and with hardly any differences. On four data sets with 40 to 200 pairs the accuracy is 0.0013
    below the better of the two models on average (`bench/speed/worth.txt`), and 0.0063 with
    annotators who know more than the features (`worth-private.txt`; always the network: 0.0060).
    """
    options = options_of(settings)
    by_hand = (settings.epochs, options.learning_rate, options.batch_size)
    judged = rows[rows.has("difference") & (rows.weight > 0)]
    several = rows.classes is not None
    if several or by_hand != ("auto",) * 3 or len(rows) >= FEW_ROWS or len(judged) < LEAST_ANSWERS:
        return NETWORK
    left, right = (features[end].reshape(len(judged), -1) for end in judged.ends.T)
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


class AnnotatorsWarning(UserWarning):
    """A finding about annotators, which changes nothing in the fit."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


def learn_annotators(
    settings: PairClassifier, table: Table, model: Any
) -> tuple[Table, Annotators]:
    """A table with one corrected statement per question, and how each annotator answers.

    Where annotators are taken as ideal, there are no people, and no answer is corrected: where the
    settings say so, and with "auto" where learning is not `needed`. Otherwise the annotators are
    learnt from the answers alone, models of parts of the corrected pairs give log-odds of the
    others, unless the table has some, and the annotators are learnt with these.
    """
    judged, annotators, log_odds = table.judged, Annotators(), None
    if settings.annotators == "ideal":
        return table, annotators
    if settings.annotators == "learn" or Annotators.needed(judged):
        annotators = Annotators.learn(judged, seed=table.seed)
    if annotators.people:
        log_odds = table.log_odds
        if log_odds is None:
            corrected = replace(table, judged=annotators.correct(judged).judged)
            log_odds = _scores_of_folds(settings, corrected, judged, model)
        annotators = Annotators.learn(judged, log_odds, seed=table.seed)
    for finding in findings(judged, log_odds):
        warnings.warn(AnnotatorsWarning(finding), stacklevel=5)
    learnt = annotators.correct(judged, log_odds).judged
    return replace(table, judged=learnt, log_odds=log_odds), annotators


def _scores_of_folds(
    settings: PairClassifier, corrected: Table, judged: Judgements, model: Any
) -> Floats:
    """Log-odds (n, 2) of both items of each row, by models that did not see the pair.

    The models are trained on the corrected statements; those about single items are in all
    trainings.
    """
    rows = corrected.rows(options_of(settings).labelled_weight)
    scorer = SCORER if model in ("mlp", "mlp-bn") else model
    training = Training.of(settings, corrected, rows, scorer)
    ends = np.sort(np.concatenate([rows.ends, judged.ends]), axis=1)
    first, couple = numbered(ends)
    fold = np.random.default_rng(corrected.seed).permutation(len(first)) % SCORER_FOLDS
    fold = np.where(ends[:, 0] < 0, -1, fold[couple])
    scores = np.full((len(judged), 2), np.nan)
    for held in range(SCORER_FOLDS):
        at = np.flatnonzero(fold[len(rows) :] == held)
        found = training.trial(rows[fold[: len(rows)] != held], held, SHARE)
        scores[at] = log_odds_of_rows(found.log_odds, corrected.features, judged[at])
    return scores


def log_odds_of_rows(
    log_odds: Callable[[NDArray[Any]], Floats], features: NDArray[Any], rows: Judgements
) -> Floats:
    """Log-odds (n, 2) of both items of rows; with several classes of the set of each row."""
    z = log_odds(features[rows.ends.ravel()])
    if rows.classes is not None:
        p = (expit(z) * rows.members().repeat(2, 0)).sum(1) / expit(z).sum(1)
        z = logit(p.clip(TINY, 1 - TINY))
    return z.reshape(-1, 2)
