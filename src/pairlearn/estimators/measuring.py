"""Fit to judged pairs, in memory or in a file, and measure on items that were held out.

A first model is fitted without the pairs of some items, and its accuracy estimated on those;
the model to keep is then fitted to all pairs.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from pairlearn.columns import Mask
from pairlearn.estimators.parameters import recipe_of
from pairlearn.estimators.streams import fit_table
from pairlearn.estimators.table import Table
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy, plausible
from pairlearn.judgements import Judgements
from pairlearn.kinds import kind
from pairlearn.progress import Progress, training_bar
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


TOO_FEW = (
    "there are too few pairs, or their items recur too often, to hold some out: judge pairs of "
    "other items, and give them to `pairlearn evaluate`"
)
NOTHING_SOFT = (
    "an accuracy takes pairs with a similarity or a difference, and none has: judge some in that "
    "way, and give them to `pairlearn evaluate`"
)


class FitCheckpoints:
    """Checkpoints of both trainings, in a folder beside the model folder ``out``."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.folder = out.with_name(f"{out.name}.checkpoint")
        self.measure = Checkpoint(self.folder / "measure", seconds)
        self.fit = Checkpoint(self.folder / "fit", seconds)

    def remove(self) -> None:
        """Remove what there is of them; other files in the folder stay."""
        self.measure.remove()
        self.fit.remove()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


@dataclass(frozen=True)
class Measured:
    """An accuracy on pairs of items that were held out, and how many answers are where."""

    accuracy: AccuracyEstimate
    pairs: int
    held_out: int
    training: int
    dropped: int
    capped: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        ends = {name: getattr(self.accuracy, name) for name in ("value", "low", "high")}
        band = self.accuracy.plausible
        ends["plausible"] = None if band is None else band.to_dict()
        return ends | {name: value for name, value in asdict(self).items() if name != "accuracy"}


def fit_and_measure(
    classifier: PairClassifier,
    table: Table,
    kept: FitCheckpoints,
    *,
    holdout: float = 0.2,
    seed: int = 0,
    prior: float | None = None,
) -> Measured | str | None:
    """Measure, then fit to everything.

    ``holdout`` is about the share of the pairs to measure with, and ``prior`` the stated class
    prior, for pairs with one kind of judgement. The accuracy, or why there is none; None if
    ``holdout`` is 0. Raises DivergedError if the loss is no longer a number.
    """
    measured: Measured | str | None = None
    if holdout:
        with training_bar("1/2 to measure") as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model to keep gives them, too
            first = clone(classifier)
            measured = _measured(first, table, holdout, seed, prior, progress, kept.measure)
    with training_bar("2/2 to save" if holdout else "to save") as progress:
        fit_table(classifier, table, progress, kept.fit)
    return measured


def _measured(
    classifier: PairClassifier,
    table: Table,
    fraction: float,
    seed: int,
    prior: float | None,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> Measured | str:
    """Accuracy on pairs of items that the classifier, fitted to the others, has not seen."""
    if not _soft(table.judged).any():
        return NOTHING_SOFT
    held = table.hold_out(fraction, seed)
    if held is None or held.rest.kinds != table.kinds or _soft(held.said).sum() < 2:
        return TOO_FEW
    soft = held.said[_soft(held.said)]
    if classifier.epochs != "auto":
        _train_as_long(classifier, held.training, held.training + held.dropped + len(soft))
    fit_table(classifier, held.rest, progress, checkpoint)
    # What the model learnt the side from may be no part of the pairs that are held out.
    told = any("side" in kind(name).fixes(prior_known=False) for name in table.kinds)
    side = classifier.majority or ("better" if told else None)
    z, said, options = classifier.of_pairs(table.features, soft)
    similar, different = said.has("similarity").any(), said.has("difference").any()
    # A prior near ½ would choose the side by chance where the model knows it.
    unneeded = similar and (different or side == "better")
    given = z[:, 0], z[:, 1], said.labels()
    try:
        accuracy = estimate_accuracy(
            *given, prior=None if unneeded else prior, side=side, **options
        )
    except ValueError as error:
        return str(error)
    told_confidence = getattr(classifier, "confidence_", None)
    accuracy = replace(accuracy, plausible=plausible(*given, known=told_confidence, **options))
    pairs = len(np.unique(np.sort(soft.ends, 1), axis=0))
    return Measured(accuracy, pairs, len(soft), held.training, held.dropped, held.capped)


def _train_as_long(classifier: PairClassifier, training: int, pairs: int) -> None:
    """Give a model of fewer pairs as many steps as the one to keep: an epoch of it has fewer."""
    size = recipe_of(classifier, pairs, seed=0).batch_size
    steps = int(classifier.epochs) * -(-pairs // size)
    classifier.set_params(batch_size=size, epochs=-(-steps // -(-training // size)))


def _soft(said: Judgements) -> Mask:
    return said.has("similarity") | said.has("difference")
