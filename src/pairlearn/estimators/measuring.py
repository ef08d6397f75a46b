"""Fit to judged pairs, in memory or in a file, and measure on items that were held out.

A first model is fitted without the pairs of some items, and its accuracy estimated on those;
the model to keep is then fitted to all pairs.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from pairlearn.annotators.link import fair
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.estimators.instances import fingerprints
from pairlearn.estimators.pair_files import PairFile
from pairlearn.estimators.parameters import recipe_of
from pairlearn.estimators.prediction import log_odds
from pairlearn.estimators.splits import hold_out_statements
from pairlearn.estimators.streams import fit_survey
from pairlearn.estimators.survey import (
    NothingLeftError,
    Survey,
    held_items,
    survey_for,
)
from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy, plausible
from pairlearn.judgements import Judgements
from pairlearn.kinds import kind, rows_by_kind
from pairlearn.progress import Progress, bar, training_bar
from pairlearn.tables import ItemTable, PairTable
from pairlearn.tables.read import Labelled
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


MEASURED_PAIRS = 100_000
"""Most pairs of a file that the accuracy is measured with, about."""
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
class HeldOut:
    """Judgements of held-out pairs, with a similarity or a difference or both in each row.

    ``dropped`` counts statements about pairs with items of both parts; ``capped`` says that more
    were to be held out than are kept in memory.
    """

    said: Judgements
    training: int
    dropped: int
    capped: bool = False


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


@dataclass(frozen=True)
class PairsInMemory:
    """What there is to learn from: statements about rows of the items.

    ``rows`` counts rows of the table of judgements, each of which may say several things, ``known``
    are items of known class, and ``beside`` statements of no row: about groups, and of items that
    are in no row at all.
    """

    items: ItemTable
    said: Judgements
    rows: int
    known: Labelled | None = None
    beside: Judgements | None = None

    @classmethod
    def of(
        cls,
        items: ItemTable,
        said: Judgements,
        rows: int,
        known: Labelled | None,
        groups: Judgements | None = None,
    ) -> Self:
        """All that is in the files."""
        others = np.setdiff1d(np.arange(len(items)), said.ends)
        beside = [Judgements.silent(others)] + ([] if groups is None else [groups])
        if known is not None:
            others = np.setdiff1d(others, known.rows)
            beside[0] = Judgements.silent(others)
        return cls(items, said, rows, known, Judgements.concatenate(beside))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of statements that there are."""
        return self.said.kinds()

    def counts(self) -> dict[str, Any]:
        """Rows by what they say, items that were judged, and statements by their kind."""
        ends, single = self.said.ends.ravel(), int(self.said.single.sum())
        classes = 0 if self.known is None else len(self.known.rows)
        statements = Counter(self.said.counts()) + Counter(label=classes)
        if self.beside is not None:
            told = self.beside[self.beside.joint]  # a group is one statement about its items
            statements += Counter({name: len(np.unique(told.v)) for name in told.kinds()})
        return {
            "judgements": self.rows,
            "features": len(self.items.names),
            "items": len(np.unique(ends[ends >= 0])),
            **rows_by_kind(self.said.counts(), self.rows - single),
            "labelled": int(self.said.known.sum()) + classes,
            "statements": dict(statements),
        }

    def fit(
        self,
        classifier: PairClassifier,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Fit a classifier."""
        labelled, places = None, np.arange(len(self.items))
        if self.known is not None and len(self.known.rows):
            labelled = self.known.rows, np.where(self.known.positive, 1, -1)
        by_row = self.items.like(places, self.items.features)
        classifier.set_params(preprocessor=by_row, callbacks=[progress, checkpoint])
        said = [self.said] if self.beside is None else [self.said, self.beside]
        classifier.fit(None, Judgements.concatenate(said), labelled=labelled)
        classifier.set_params(preprocessor=None, callbacks=None)  # of no use to a model
        if self.known is not None:
            classifier.classes_ = self.known.classes

    def log_odds(self, classifier: PairClassifier, rows: Indices) -> Floats:
        """Of some items."""
        return classifier.decision_function(self.items[rows])

    def remember(self, classifier: PairClassifier) -> None:
        """Let it know its training items by their ids; it was fitted with rows as ids."""
        known = np.empty(0, np.int64) if self.known is None else self.known.rows
        used = np.unique(np.concatenate([self.said.ends[self.said.ends >= 0], known]))
        classifier.training_items_ = fingerprints(self.items.features[used], self.items.ids[used])

    def hold_out(
        self, classifier: PairClassifier, fraction: float, seed: int
    ) -> tuple[Self, HeldOut] | None:
        """What is left for training, and pairs of other items."""
        said = self.said
        training, held = hold_out_statements(said.ends, fraction, seed)
        dropped = int((~training & ~held).sum())
        known = self.known
        if known is not None:
            kept = ~np.isin(known.rows, said.ends[held])
            known = replace(known, rows=known.rows[kept], positive=known.positive[kept])
        rest = replace(self, said=said[training], known=known)
        return rest, HeldOut(said[held & _soft(said)], int(training.sum()), dropped)


@dataclass(frozen=True)
class PairsInFile:
    """Pairs that stay in their file; ``scratch`` is for features that are mapped from a file."""

    survey: Survey
    scratch: Path
    known = None

    @classmethod
    def open(cls, classifier: PairClassifier, file: PairFile, scratch: Path) -> Self:
        """Look through a file of pairs once."""
        found = cls(_surveyed(classifier, file), scratch)
        if selves := found.survey.counts["self_pairs"]:
            raise ValueError(
                f"{file.path} cannot be used as it is: {selves:,} rows pair an item with itself; "
                "drop them"
            )
        return found

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of statements that there are."""
        return self.survey.kinds

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return int(self.survey.file.rows)

    def sample(self) -> PairTable:
        """Some of its rows."""
        said = Judgements.concatenate(self.survey.sampled)
        return PairTable.from_judgements(said, self.survey.file.items.ids)

    def counts(self) -> dict[str, Any]:
        """Rows by what they say, items that were judged, and statements by their kind."""
        return {
            "judgements": self.rows,
            "features": len(self.survey.file.items.names),
            "items": int(self.survey.judged.sum()),
            **rows_by_kind(self.survey.counts, self.rows),
            "labelled": 0,
            "statements": {name: self.survey.counts[name] for name in self.kinds},
        }

    def fit(
        self,
        classifier: PairClassifier,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Fit a classifier."""
        fit_survey(
            classifier,
            self.survey,
            progress=progress,
            checkpoint=checkpoint,
            scratch=self.scratch,
        )

    def log_odds(self, classifier: PairClassifier, rows: Indices) -> Floats:
        """Of some items."""
        items = self.survey.file.items
        return log_odds(classifier, items[rows], str(items.path))

    def remember(self, classifier: PairClassifier) -> None:
        """Nothing to do: it knows its training items."""

    def hold_out(
        self, classifier: PairClassifier, fraction: float, seed: int
    ) -> tuple[Self, HeldOut] | None:
        """What is left for training, and pairs of other items."""
        whole, file = self.survey, self.survey.file
        apart = held_items(len(file.items), file.rows, fraction, MEASURED_PAIRS, seed)
        try:
            survey = _surveyed(classifier, file, apart)
        except NothingLeftError:
            return None
        if not survey.held:
            return None
        said = Judgements.concatenate(survey.held)
        training = survey.counts["training"] + sum(len(part) for part in survey.validating)
        dropped = sum(whole.counts[name] for name in whole.kinds) - training - len(said)
        capped = fraction * file.rows > MEASURED_PAIRS
        return replace(self, survey=survey), HeldOut(said[_soft(said)], training, dropped, capped)


def fit_and_measure(
    classifier: PairClassifier,
    source: PairsInMemory | PairsInFile,
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
            measured = _measured(first, source, holdout, seed, prior, progress, kept.measure)
    with training_bar("2/2 to save" if holdout else "to save") as progress:
        source.fit(classifier, progress, kept.fit)
    source.remember(classifier)
    return measured


def _measured(
    classifier: PairClassifier,
    source: PairsInMemory | PairsInFile,
    fraction: float,
    seed: int,
    prior: float | None,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> Measured | str:
    """Accuracy on pairs of items that the classifier, fitted to the others, has not seen."""
    names = {column.name for name in source.kinds for column in kind(name).columns}
    names |= {column for name in source.kinds for column in kind(name).means}
    if not names & {"similarity", "difference"}:
        return NOTHING_SOFT
    parts = source.hold_out(classifier, fraction, seed)
    if parts is None or parts[0].kinds != source.kinds or len(parts[1].said) < 2:
        return TOO_FEW
    training, held = parts
    if classifier.epochs != "auto":
        _train_as_long(classifier, held)
    training.fit(classifier, progress, checkpoint)
    # What the model learnt the side from may be no part of the pairs that are held out.
    told = any("side" in kind(name).fixes(prior_known=False) for name in source.kinds)
    side = classifier.majority or ("better" if told or source.known is not None else None)
    said = fair(getattr(classifier, "annotators_", ()), held.said)
    needed, places = np.unique(said.ends, return_inverse=True)
    z = training.log_odds(classifier, needed)[places.reshape(said.ends.shape)]
    similar, different = said.has("similarity").any(), said.has("difference").any()
    # A prior near ½ would choose the side by chance where the model knows it.
    unneeded = similar and (different or side == "better")
    given = z[:, 0], z[:, 1], said.labels()
    weight = None if (said.weight == 1).all() else said.weight
    options: dict[str, Any] = {"weight": weight, "items": said.ends}
    try:
        accuracy = estimate_accuracy(
            *given, prior=None if unneeded else prior, side=side, **options
        )
    except ValueError as error:
        return str(error)
    told_confidence = getattr(classifier, "confidence_", None)
    accuracy = replace(accuracy, plausible=plausible(*given, known=told_confidence, **options))
    pairs = len(np.unique(np.sort(held.said.ends, 1), axis=0))
    return Measured(accuracy, pairs, len(held.said), held.training, held.dropped, held.capped)


def _train_as_long(classifier: PairClassifier, held: HeldOut) -> None:
    """Give a model of fewer pairs as many steps as the one to keep: an epoch of it has fewer."""
    pairs = held.training + held.dropped + len(held.said)
    size = recipe_of(classifier, pairs, seed=0).batch_size
    steps = int(classifier.epochs) * -(-pairs // size)
    classifier.set_params(batch_size=size, epochs=-(-steps // -(-held.training // size)))


def _surveyed(classifier: PairClassifier, file: PairFile, held: Mask | None = None) -> Survey:
    with bar("looking through", file.rows, unit="rows") as progress:
        return survey_for(classifier, file, held, progress)


def _soft(said: Judgements) -> Mask:
    return said.has("similarity") | said.has("difference")
