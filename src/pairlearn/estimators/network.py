"""Train the network of a classifier; where answers are hard, not to the end.

A network learns hard answers by heart: its decisions get a little worse, and its probabilities far
too sure. So a first training holds out a fifth of the rows, which tell after which epoch to stop
and what to multiply the log-odds with. Their likelihood at the best factor, and not as it is,
chooses the epoch: networks become too sure long before their decisions suffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn.estimators.parameters import (
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
from pairlearn.training.loop import Callback, Until
from pairlearn.training.trainer import Recipe, Trained, is_guided, train

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

TRIAL_SHARE = 0.2
EARLIEST = 1 / 6
LEAST_TRIED = 50
SLOPES = tuple(float(k) for k in np.geomspace(0.05, 1.5, 18))
"""What log-odds that were learnt from hard answers are multiplied with, one of these."""


def train_network(
    classifier: PairClassifier,
    features: NDArray[np.float32],
    table: Table,
    rows: Judgements,
    need: Need,
    prior: float | None,
    seed: int,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint | None,
) -> tuple[Trained, float]:
    """Train a module on rows, or on a stream of which they are a sample; and the slope."""
    risk, held_out = risk_of(classifier, prior), None
    if classifier.early_stopping:
        rows, held_out = table.held_out(rows, classifier.validation_fraction, seed)
    recipe = recipe_of(classifier, table.count(rows), seed)
    # For risks without a prior, of which a reflection is as likely.
    guided = not risk.needs_prior and is_guided(recipe.epochs)

    def trained_on(
        rows: Judgements, recipe: Recipe, held_out: Judgements | None, **options: Any
    ) -> Trained:
        with torch.random.fork_rng(devices=[]):  # dropout of a module draws on the global one
            torch.manual_seed(seed)
            (found,) = train(
                features,
                rows,
                [risk],
                make_module(model_of(classifier), features.shape[1:], seed),
                recipe,
                source=table.source(recipe),
                held_out=held_out,
                held_prior=float(classifier.prior) if need == "prior" else None,
                guiding_prior=guiding_prior(features, rows, seed) if guided else None,
                **options,
            )
        return found

    slope = 1.0
    if _hard(classifier, table, rows):
        rest, apart = table.held_out(rows, TRIAL_SHARE, seed)
        longer = replace(recipe, patience=max(recipe.patience, recipe.epochs // 2))
        trial = trained_on(rest, longer, apart, slopes=SLOPES, earliest=EARLIEST)
        slope, callbacks = trial.slope, [*callbacks, Until(trial.epoch)]
    trained = trained_on(rows, recipe, held_out, callbacks=callbacks, checkpoint=checkpoint)
    return trained, slope


def _hard(classifier: PairClassifier, table: Table, rows: Judgements) -> bool:
    """Whether the rows are hard answers, and it is left open how long to train on them."""
    ideal = classifier.annotators == "ideal" or needs_prior(classifier.risk)
    if ideal or classifier.epochs != "auto" or classifier.early_stopping:
        return False
    many = type(table) is Table and len(rows) >= LEAST_TRIED
    return many and float(rows.hard().mean()) > 0.9
