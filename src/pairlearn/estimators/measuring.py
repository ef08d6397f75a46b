"""Fit a classifier and measure its accuracy on items that it has not seen.

`fit_and_measure` fits a first model without the pairs of some items and measures it on those; the
model to keep is then fitted to all pairs. `HeldPairs` are pairs of another table, without those of
items that a model was trained on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from pairlearn.annotators import findings
from pairlearn.columns import Floats, Indices
from pairlearn.estimators.files import item_log_odds
from pairlearn.estimators.fit_input import HeldOut, Table
from pairlearn.estimators.instances import check_labelled, doubt_of_seen, places_of
from pairlearn.estimators.learning import log_odds_of_rows
from pairlearn.estimators.orientation import determines_side
from pairlearn.estimators.prediction import ScoredPairs
from pairlearn.evaluation import (
    AccuracyEstimate,
    ClassAccuracy,
    Evaluation,
    LabelledItems,
)
from pairlearn.io import ItemTable, TableError
from pairlearn.io.cells import list_names
from pairlearn.judgements import Judgements
from pairlearn.progress import Progress, training_bar
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


TOO_FEW = (
    "there are too few pairs to hold some out, or their items recur too often: judge pairs of "
    "other items, and pass them to `pairlearn evaluate`"
)
NOTHING_SOFT = (
    "an accuracy needs pairs with a similarity or a difference, and there are none: collect some, "
    "and pass them to `pairlearn evaluate`"
)
REMEMBERED = (
    "the model was trained on these pairs: the figures are for the {count:,} rows whose items fit "
    "held out, and for the first model, which was fitted without them"
)
UNKNOWN = "training had no answers of {names}: their answers are taken as they are"


class FitCheckpoints:
    """Checkpoints of both trainings, in a folder beside the model folder ``out``."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.folder = out.with_name(f"{out.name}.checkpoint")
        self.measure = Checkpoint(self.folder / "measure", seconds)
        self.fit = Checkpoint(self.folder / "fit", seconds)

    def remove(self) -> None:
        """Remove them; other files in the folder stay."""
        self.measure.remove()
        self.fit.remove()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


@dataclass(frozen=True)
class HeldAccuracy:
    """An accuracy on so many ``pairs`` of items that were ``held`` out, by ``answers`` that count.

    ``sentences`` say it in words, and ``doubt`` is a warning about the decisions.
    """

    accuracy: AccuracyEstimate | ClassAccuracy
    sentences: list[str]
    pairs: int
    answers: int
    held: HeldOut
    doubt: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the accuracy, and statements that it was measured with or not."""
        training, held = int(self.held.training.sum()), len(self.held.judged)
        return self.accuracy.to_dict() | {
            "sentences": self.sentences,
            "pairs": self.pairs,
            "held_out": self.answers,
            "training": training,
            "dropped": len(self.held.training) - training - held,
        }


def fit_and_measure(
    classifier: PairClassifier,
    table: Table,
    checkpoints: FitCheckpoints,
    *,
    holdout: float = 0.2,
    seed: int = 0,
    prior: float | None = None,
) -> HeldAccuracy | str | None:
    """Measure the accuracy on held-out pairs, then fit to all pairs.

    ``holdout`` is about the share of the pairs to measure with, and ``prior`` the stated class
    prior, for pairs with one kind of judgement. Returns the accuracy, or why there is none; None if
    ``holdout`` is 0. Raises DivergedError if the loss is no longer a number.

    Annotators are learnt with log-odds by models that did not see a pair. The first model gives
    those of the pairs that it was fitted without, and its folds those of the others. What a trial
    on hard answers found holds for both models.
    """
    measured: HeldAccuracy | str | None = NOTHING_SOFT if holdout else None
    first = clone(classifier)
    if holdout and table.judged.soft.any():
        held = table.hold_out(holdout, seed)
        with training_bar("1/2 to measure") as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final fit repeats them
            measured = _measure(first, table, held, prior, progress, checkpoints.measure)
    if isinstance(measured, HeldAccuracy):
        tried = first.model_, first.slope_, first.fitted_.last_epoch
        table = replace(table, log_odds=_unseen_log_odds(first, table, measured.held), tried=tried)
    with training_bar("2/2 to save" if holdout else "to save") as progress:
        classifier.fit_table(table, progress, checkpoints.fit)
    if isinstance(measured, HeldAccuracy):
        items = np.unique(measured.held.judged.ends)
        classifier.fitted_ = replace(
            classifier.fitted_,
            held_items=table.fingerprints(items),
            held_log_odds=first.log_odds(table.features[items]),
        )
    return measured


def _measure(
    classifier: PairClassifier,
    table: Table,
    held: HeldOut,
    prior: float | None,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> HeldAccuracy | str:
    """Fit a classifier without the held-out items, and measure its accuracy on their pairs."""
    soft = held.judged[held.judged.soft]
    if held.rest.statements.kinds() != table.statements.kinds() or len(soft) < 2:
        return TOO_FEW
    classifier.fit_table(held.rest, progress, checkpoint)
    scored = classifier.score_pairs(soft, lambda rows: classifier.log_odds(table.features[rows]))
    if isinstance(scored, ScoredPairs):
        # The held-out pairs may lack the statements that told the model the side.
        if scored.side is None and determines_side(table.statements):
            scored = replace(scored, side="better")
        similar, different = ~np.isnan(scored.labels.to_array()).all(0)
        # A prior near ½ would choose the side by chance where the model knows it.
        if similar and (different or scored.side == "better"):
            prior = None
    try:
        accuracy, sentences, doubt = scored.measured(prior)
    except ValueError as error:
        return str(error)
    counts = count_pairs(scored.ends), len(scored.ends)
    return HeldAccuracy(accuracy, sentences, *counts, held, doubt)


def _unseen_log_odds(first: PairClassifier, table: Table, held: HeldOut) -> Floats | None:
    """Log-odds (n, 2) of the judged rows by models that did not see the pair, if there are some."""
    fitted, others = first.fitted_, ~held.training
    if fitted.fold_log_odds is None:
        return None
    shift = 0.0 if first.target_prior is None else fitted.shift
    z = np.empty((len(others), 2))
    z[held.training] = fitted.fold_log_odds
    z[others] = log_odds_of_rows(
        lambda features: first.log_odds(features) - shift, table.features, table.judged[others]
    )
    return z


def count_pairs(ends: Indices) -> int:
    """Number of different pairs."""
    return len(np.unique(np.sort(ends, 1), axis=0))


@dataclass(frozen=True)
class HeldPairs:
    """Pairs of a table, ``scored`` by a model which has not seen their items.

    ``table`` has all statements about such pairs of ``items``, also those of kinds that do not
    enter an accuracy. ``ignored`` counts rows without a judgement to measure with, and ``seen``
    says that pairs were left out because the model was trained on their items. ``log_odds_of``
    are those of some items, by the model that is measured.
    """

    scored: Any
    items: ItemTable
    table: Judgements
    ignored: int
    seen: str | None
    log_odds_of: Callable[[Indices], Floats]
    remembered: bool

    @classmethod
    def score(
        cls,
        classifier: PairClassifier,
        items: ItemTable,
        table: Judgements,
        files: tuple[Path, Path],
    ) -> HeldPairs:
        """Score the pairs of a table; ``files`` are those of items and pairs, for messages.

        They are those of items that the model was not trained on; where there are none, those that
        `fit` held out, with the log-odds of the model that it fitted without them.
        """
        try:
            table = table.located(items.ids)
        except TableError as error:
            raise TableError(f"{files[1]}, {error} in {files[0]}") from None
        alone, table = int(table.single.sum()), table[~table.single]
        new, fitted = classifier.unseen(table.ends, items.features, items.ids), classifier.fitted_
        seen, remembered = doubt_of_seen(new), bool(new.sum() < min(2, len(new)))
        if remembered:
            places = places_of(fitted.held_items, items.features, items.ids)
            held = np.all(places[table.ends] >= 0, axis=1)
            if held.sum() < 2:
                raise ValueError(
                    f"{files[1]} cannot measure an accuracy: the model was trained on items of "
                    f"{int((~new).sum()):,} of its {len(new):,} pairs, and does better on those "
                    "than on new ones. Split by items before training, with `pairlearn split`"
                )
            seen = REMEMBERED.format(count=int(held.sum()))
        table = table[held if remembered else new]

        def log_odds_of(needed: Indices) -> Floats:
            if remembered:
                return np.asarray(fitted.held_log_odds[places[needed]])
            return item_log_odds(classifier, items[needed], files[0])

        judged = table[table.soft]
        if len(judged) < 2:
            raise TableError(
                f"{files[1]} has {len(judged)} rows with a similarity or a difference, and only "
                "these give an accuracy, even with labelled items: add 100 or more"
            )
        scored = classifier.score_pairs(judged, log_odds_of)
        # Preferences tell the model which class is which, and no accuracy is read from them.
        if isinstance(scored, ScoredPairs) and not scored.has_differences:
            side = scored.side or ("better" if determines_side(table) else None)
            scored = replace(scored, side=side)
        row = table.file_rows()
        ignored = alone + len(np.unique(row)) - len(np.unique(row[table.soft]))
        return cls(
            scored=scored, items=items, table=table, ignored=ignored, seen=seen,
            log_odds_of=log_odds_of, remembered=remembered,
        )  # fmt: skip

    def words(self) -> str:
        """The number of pairs, and of answers where there are several to a pair."""
        answers, pairs = len(self.scored.ends), count_pairs(self.scored.ends)
        return (
            f"{answers:,} answers about {pairs:,} pairs" if pairs < answers else f"{pairs:,} pairs"
        )

    def doubts(
        self, classifier: PairClassifier, evaluation: Evaluation, prior: float | None
    ) -> list[str]:
        """Reasons to distrust an evaluation: another prior, the annotators, and its own."""
        judged, implied = self.table, evaluation.prior
        doubts, learnt = [], classifier.fitted_.annotators
        meant: Any = classifier.target_prior
        if meant is None and classifier.prior != "estimate":
            meant = classifier.prior
        if prior is None and meant is not None and not implied.low <= meant <= implied.high:
            doubts.append(
                f"the model is meant for a share of positives of {float(meant):g}, but these pairs "
                f"imply {implied}: its accuracy in use will differ"
            )
        doubts += [finding.message for finding in findings(judged)]
        names = set() if judged.annotator is None else {*judged.annotator.tolist()}
        known = {person.name for person in learnt.people}
        if learnt.people and (unknown := sorted(names - known - {""})):
            doubts.append(UNKNOWN.format(names=list_names(unknown)))
        return [*doubts, *evaluation.warnings]

    def labelled(self, classifier: PairClassifier, known: Judgements, file: Path) -> LabelledItems:
        """Known classes of the items that the model has not learnt from, with its log-odds."""
        new = classifier.unseen(known.ends[:, :1], self.items.features, self.items.ids)
        check_labelled(new)
        known = known[new]
        places = known.ends[:, 0]
        z = item_log_odds(classifier, self.items[places], file)
        return LabelledItems(z, known.u, known.weight, places, self.remembered)
