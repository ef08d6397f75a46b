"""Models fitted to parts of the pairs choose the model, the annotators to believe and the epoch.

With 40 to 200 pairs a linear model is often better than a network, as on wine, and often not, as
on two moons (`bench/speed/worth.py`). The choice depends on how often the linear model is right
about held-out pairs (both alike, or which one is positive), compared to the annotator: if it comes
near, there is nothing to gain. A direct comparison with a network favours the network too often by
chance, and by likelihood nearly always: it imitates the annotator better.

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

from pairlearn.annotators.answers import (
    Answers,
    listed,
    untouched,
    untouched_words,
    without_copies,
    without_fixed,
)
from pairlearn.annotators.crowd import (
    Rivals,
    learn_with_items,
    misleading_in,
    rivals_in,
    rough_log_odds,
    with_errors,
)
from pairlearn.annotators.link import Link, learn_link
from pairlearn.annotators.manner import Manner
from pairlearn.annotators.sides import Sides, sides_of, with_sides_exchanged
from pairlearn.columns import Floats, Mask
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

FOLDS = 4
"""Number of folds; twice as many with fewer than a hundred pairs."""
FEW = 400
"""Rows from which on no comparison is made, and the network is trained."""
LEAST = 10
"""Pairs with both answers that a comparison needs."""
NEAR, FAR = 0.02, 0.1
"""Loss of the linear model against the annotator, as a share of the pairs: up to the first there is
nothing to gain by a network, and from the second on there is much."""
ENOUGH = 50
"""Held-out pairs on which a loss beyond the second by three standard errors decides."""
STEPS = 400
"""Steps of the linear models, however few the pairs are."""
SHARE = 0.2
"""Share of the epochs that networks of a fold train for: more would memorise their pairs."""
SCORER = "mlp-small"
"""Network of the folds that annotators are learnt with: as good there, at a third of the time."""
LEAST_ANSWERED = 20
"""Pairs that learning about annotators needs."""
MANY = 1000
"""Pairs from which on three folds are enough, and coarse levels are modelled."""
TRIAL_SHARE = 0.2
EARLIEST = 1 / 6
LEAST_TRIED = 50
SLOPES = tuple(float(k) for k in np.geomspace(0.05, 1.5, 18))
"""Candidate factors of log-odds that were learnt from hard answers."""


def choose_model(classifier: PairClassifier, table: Table, rows: Judgements) -> str:
    """The network if the linear model leaves much to gain on held-out pairs, else "linear".

    In between, the one that is ahead on them. Without a comparison it is the network: with many
    rows, with epochs, learning rate or batch size chosen by hand, and with hardly any pairs that
    have both answers.
    """
    by_hand = (classifier.epochs, classifier.learning_rate, classifier.batch_size)
    both = rows.has("similarity") & rows.has("difference")
    if by_hand != ("auto",) * 3 or len(rows) >= FEW or both.sum() < LEAST:
        return NETWORK
    pairs = np.unique(np.sort(rows.ends, axis=1), axis=0, return_inverse=True)[1].ravel()
    folds = FOLDS if both.sum() >= 100 else 2 * FOLDS
    order = np.random.default_rng(table.seed).permutation(int(pairs.max()) + 1)
    fold = np.where(both, order[pairs] % folds, -1)
    outcomes = rows[both].labels().project().outcomes()  # left, right or both alike, as judged
    best = outcomes.max(axis=1)
    every_pair = np.ones(len(best), bool)

    def right_pairs(model: str, share: float) -> Iterator[tuple[Floats, Mask]]:
        scored = out_of_fold(classifier, table, rows, fold, share, model=model)
        for held, scores in enumerate(scored):
            z, done = scores[both] > 0, fold[both] <= held
            decided = np.where(z[:, 0] == z[:, 1], 2, z[:, 1])
            yield np.where(done, outcomes[np.arange(len(z)), decided], best), done

    def mean_and_error(gain: Floats, of: Mask = every_pair) -> tuple[float, float]:
        weight = rows[both].weight[of] / rows[both].weight[of].sum()
        mean = float(weight @ gain[of])
        return mean, float(np.sqrt(weight**2 @ (gain[of] - mean) ** 2))

    training = len(rows) * (folds - 1) // folds
    recipe = recipe_of(clone(classifier).set_params(model="linear"), training, table.seed)
    steps = recipe.epochs * -(-training // recipe.batch_size)
    for linear, done in right_pairs("linear", min(STEPS / steps, 1)):
        mean, error = mean_and_error(best - linear)
        so_far, chance = mean_and_error(best - linear, done)
        # Later folds can only add to the loss, and will hardly lower a clear mean.
        if mean - error > FAR or (done.sum() >= ENOUGH and so_far - 3 * chance > FAR):
            return NETWORK
    if mean - error <= NEAR:
        return "linear"
    *_, (network, _) = right_pairs(NETWORK, SHARE)
    mean, error = mean_and_error(network - linear)
    return NETWORK if mean > 0.5 * error else "linear"


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
    """Something about the annotators that one should know."""


class UntouchedWarning(AnnotatorsWarning):
    """Answers look like sliders that nobody moved."""


class RivalsWarning(AnnotatorsWarning):
    """Annotators contradict each other, in `groups`, and nothing tells which of them is right."""

    groups: Rivals

    def __init__(self, groups: Rivals, believed: Sequence[str]) -> None:
        self.groups = groups
        super().__init__(
            "answers to the same pairs contradict each other, and nothing tells which side is "
            f"right: {' against '.join(map(listed, groups))}. Where they differ, the model "
            f"believes {listed(believed or ['neither'])}; look at some of these pairs yourself, or "
            "have other people judge them"
        )


class SidesWarning(AnnotatorsWarning):
    """Annotators have left and right exchanged."""

    def __init__(self, sides: Sides) -> None:
        first, others = map(listed, (sides.first, sides.others))
        by = "the known classes" if sides.by_classes else "the others"
        if sides.decided:
            text = (
                f"the answers of {others} have left and right exchanged, compared to {by}: the "
                "model learns from them the other way round. Ask, and change the sign of their "
                "differences"
            )
        else:
            text = (
                f"the answers of {first} run against those of {others}: one side has left and "
                f"right exchanged, and nothing tells which. The model believes {first}; if they "
                "are wrong, it exchanges the classes. Ask, and change the sign of the differences "
                "that are wrong"
            )
        super().__init__(text)


def learn_annotators(classifier: PairClassifier, table: Table) -> tuple[Table, list[Manner]]:
    """A table with one corrected statement per pair, and how each annotator answers.

    Where annotators are taken as ideal there are no manners, and no answer is corrected: where the
    classifier says so, and with "auto" where the table gives no reason to do otherwise. Untouched
    sliders are left out unless the classifier says "ideal".
    """
    if classifier.annotators == "ideal":
        return table, []
    middles, shares = untouched(table.judged)
    if shares:
        _warn(
            f"{untouched_words(shares)}: they are not learnt from. If they mean “no answer”, drop "
            "these rows from all files",
            UntouchedWarning,
        )
        table = replace(table, judged=table.judged[~middles])
    judged, fixed = without_fixed(table.judged)
    table = replace(table, judged=judged)
    judged, copies = without_copies(judged)
    sides = table.sides or _sides(replace(table, judged=judged), copies)
    if sides.others:
        _warn(SidesWarning(sides))
        table = replace(table, judged=with_sides_exchanged(table.judged, sides.others))
    answers = Answers.of(table.judged)
    if len(answers) and all(answers.constant()):
        who = "all annotators give" if len(answers.names) > 1 else "the table gives"
        _warn(
            f"{who} one answer to everything: there is nothing to learn from. Check that these are "
            "the right columns, and ask again"
        )
    coarse = len(answers.ends) >= MANY and answers.few_levels
    wanted = classifier.annotators == "learn" or answers.reason_to_learn() or coarse
    if len(answers.ends) < LEAST_ANSWERED or not wanted:
        ideal = Link.naive(answers).manners if sides.others else ()
        return table, [m.with_fixed(fixed) for m in sides.told(ideal)]
    if copies:
        repeats = listed([f"{copy} has the same answers as {other}" for copy, other in copies])
        _warn(f"{repeats}, to the last digit or nearly: they count once")
        table = replace(table, judged=with_sides_exchanged(judged, sides.others))
        answers = Answers.of(table.judged)
    link = _link_of_answers(answers, table)
    scores, judged = _scores_of_folds(classifier, table, answers, link)
    if not np.isfinite(scores).all():  # training diverges, which the model to keep will show
        told = [m.with_fixed(fixed) for m in sides.told(link.manners)]
        return replace(table, judged=judged), _with_copies(told, copies)
    link = learn_with_items(answers, scores, link, table.seed)
    judged = link.statements(table.judged, answers, scores)
    manners = {manner.name: manner for manner in with_errors(link, answers, scores)}
    rivals = rivals_in(replace(link, manners=tuple(manners.values())), answers, scores)
    if rivals:
        side = max(rivals, key=lambda group: max(manners[name].trust for name in group))
        believed = [name for name in side if manners[name].believable]
        _warn(RivalsWarning(rivals, believed))
    told = [m.with_fixed(fixed) for m in sides.told(manners.values())]
    return replace(table, judged=judged), _with_copies(told, copies)


def decide_sides(classifier: PairClassifier, table: Table) -> Table:
    """A table that knows who has left and right exchanged, and so does every part of it."""
    if classifier.annotators == "ideal":
        return table
    judged, copies = without_copies(table.judged[~untouched(table.judged)[0]])
    return replace(table, sides=_sides(replace(table, judged=judged), copies))


def _sides(table: Table, copies: Sequence[tuple[str, str]]) -> Sides:
    return sides_of(table.statements, table.features).with_copies(copies)


def _with_copies(manners: Sequence[Manner], copies: Sequence[tuple[str, str]]) -> list[Manner]:
    """Manners with those of copies, which whoever measures with their answers must know, too."""
    by_name = {manner.name: manner for manner in manners}
    by_name |= {name: replace(by_name[original], name=name) for name, original in copies}
    return [by_name[name] for name in sorted(by_name)]


def _warn(message: str | Warning, category: type[Warning] = AnnotatorsWarning) -> None:
    warnings.warn(message, category, stacklevel=5)


def _link_of_answers(answers: Answers, table: Table) -> Link:
    """A first link, from the answers alone unless linear scores of the items contradict it.

    They decide where nobody confirms anybody, and against annotators who agree with each other
    but not with the items: people who copy each other's guesses do.
    """
    link = learn_link(answers, seed=table.seed)
    if len(answers.names) < 2 or (scores := rough_log_odds(answers, table.features)) is None:
        return link
    believed = np.array([manner.believable for manner in link.manners])
    alone = believed.sum() > 1 and not answers.together()[np.ix_(believed, believed)].any()
    if not (alone or link.rivals or misleading_in(link, answers, scores)):
        return link
    return learn_with_items(answers, scores, link, table.seed).blind


def _scores_of_folds(
    classifier: PairClassifier, table: Table, answers: Answers, link: Link
) -> tuple[Floats, Judgements]:
    """Log-odds (P, 2) of the pairs by models that did not see them, and what these learnt from.

    Where it is open whom to believe, models learn from what all annotators say on average.
    """
    first = Link.naive(answers) if link.rivals else link
    judged, pairs = first.statements(table.judged, answers), len(answers.ends)
    fold = np.full(len(judged), -1)  # statements about single items are in all trainings
    order = np.random.default_rng(table.seed).permutation(pairs)
    fold[:pairs] = order % (3 if pairs >= MANY else FOLDS)
    changes = {"model": SCORER} if model_of(classifier) in ("mlp", "mlp-bn") else {}
    *_, scores = out_of_fold(classifier, table, judged, fold, SHARE, **changes)
    return scores[:pairs], judged


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
