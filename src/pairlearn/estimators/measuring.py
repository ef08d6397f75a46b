"""Fit and measure: on items that are held out from all pairs, or on pairs of a table of their own.

`fit_and_measure` fits a first model without the pairs of some items and measures it on those; the
model to keep is then fitted to all pairs. `HeldPairs` are judged pairs without those of items that
a model was trained on.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from pairlearn.annotators.answers import named
from pairlearn.annotators.crowd import Crowd
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.estimators.instances import NO_ACCURACY, doubt_of_seen, seen_items
from pairlearn.estimators.pair_files import PairFile
from pairlearn.estimators.parameters import recipe_of
from pairlearn.estimators.population import determines_side
from pairlearn.estimators.prediction import log_odds
from pairlearn.estimators.streams import fit_table, survey_pairs
from pairlearn.estimators.table import Table
from pairlearn.evaluation import (
    AccuracyEstimate,
    Confidence,
    Evaluation,
    Plausible,
    Recalibration,
    estimate_accuracy,
    evaluate,
    plausible,
    recalibrate,
)
from pairlearn.judgements import Judgements
from pairlearn.kinds import rows_by_kind
from pairlearn.labels import PairLabels
from pairlearn.progress import Progress, training_bar
from pairlearn.tables import ItemTable, PairTable, TableError
from pairlearn.tables.item_files import SUFFIXES, list_files
from pairlearn.tables.read import Labelled
from pairlearn.tables.scales import Scale
from pairlearn.training import Checkpoint

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


TOO_FEW = (
    "there are too few pairs, or their items recur too often, to hold some out: judge pairs of "
    "other items, and give them to `pairlearn evaluate`"
)
OTHERS_BELIEVED = (
    "without the pairs that were held out other annotators look right than with them ({}): ask "
    "several people about the same pairs, or leave out whom you do not trust"
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
    """An accuracy on ``pairs`` of items that were held out, by ``held_out`` statements.

    ``training`` counts the statements about other pairs that the model measured was fitted to;
    ``dropped`` and ``capped`` are as in `HeldOut`.
    """

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
    if isinstance(measured, Measured) and (who := _believed_once(first, classifier)):
        return OTHERS_BELIEVED.format(", ".join(who))
    return measured


def _believed_once(*fitted: PairClassifier) -> list[str]:
    """Annotators whom one of the classifiers believes, and the other one takes for guessing."""
    two = [{one.name: one for one in classifier.annotators_ or ()} for classifier in fitted]
    both = [(two[0][name], two[1][name]) for name in two[0].keys() & two[1].keys()]
    return sorted(
        one.name
        for one, other in both
        if (one.believable and not other.useful) or (other.believable and not one.useful)
    )


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
    if not table.judged.soft.any():
        return NOTHING_SOFT
    held = table.hold_out(fraction, seed)
    if held is None or held.rest.kinds != table.kinds or held.judged.soft.sum() < 2:
        return TOO_FEW
    soft = held.judged[held.judged.soft]
    if classifier.epochs != "auto":
        _train_as_long(classifier, held.training, held.training + held.dropped + len(soft))
    fit_table(classifier, held.rest, progress, checkpoint)
    # What the model learnt the side from may be no part of the pairs that are held out.
    side = classifier.majority or ("better" if determines_side(table.statements) else None)
    z, said, options = classifier.of_pairs(
        soft, lambda needed: classifier.log_odds(table.features[needed])
    )
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
    confidence = getattr(classifier, "confidence_", None)
    accuracy = replace(accuracy, plausible=plausible(*given, known=confidence, **options))
    pairs = len(np.unique(np.sort(soft.ends, 1), axis=0))
    return Measured(accuracy, pairs, len(soft), held.training, held.dropped, held.capped)


def _train_as_long(classifier: PairClassifier, training: int, pairs: int) -> None:
    """Give a model of fewer pairs as many steps as the one to keep: an epoch of it has fewer."""
    size = recipe_of(classifier, pairs, seed=0).batch_size
    steps = int(classifier.epochs) * -(-pairs // size)
    classifier.set_params(batch_size=size, epochs=-(-steps // -(-training // size)))


EVALUATED_PAIRS = 1 << 18
"""Most pairs of a file that `sample_pair_file` takes into memory, about."""


@dataclass(frozen=True)
class HeldPairs:
    """Judged pairs with a model's log-odds of both ends.

    ``table`` has the pairs of ``items`` that the model has not seen, with all that was said. For
    those that can be measured with, ``z`` (n, 2) are the log-odds, ``labels`` what was said,
    ``weight`` how much they count and ``ends`` (n, 2) their items; ``ignored`` counts rows that say
    too little, and ``seen`` says that pairs were left out because the model was trained on their
    items.
    """

    items: ItemTable
    table: PairTable
    z: Floats
    labels: PairLabels
    weight: Floats | None
    ends: Indices
    ignored: int
    seen: str | None

    @classmethod
    def score(
        cls,
        classifier: PairClassifier,
        items: ItemTable,
        table: PairTable,
        files: tuple[Path, Path],
        *,
        both: bool = False,
    ) -> HeldPairs:
        """Predict what is not seen.

        ``files`` says where items and pairs are from, for messages. With ``both``, only pairs with
        a similarity and a difference will do.
        """
        try:
            table.judgements(items)  # which names the row of an unknown item
            alone, table = int(table.single.sum()), table[~table.single]
            ends = table.positions(items)
        except TableError as error:
            raise TableError(f"{files[1]}, {error} in {files[0]}") from None
        needed, places = np.unique(ends, return_inverse=True)
        kept = getattr(classifier, "training_items_", None)
        old = seen_items(kept, items.features[needed], items.ids[needed])
        new = np.asarray(~old[places.reshape(ends.shape)].any(1))
        doubt = doubt_of_seen(new) if len(table) > 1 else None  # too few is said below
        if doubt is not None and doubt.startswith(NO_ACCURACY):
            raise ValueError(_nothing_new(classifier, files[1], new))
        new |= doubt is None
        given = ~np.isnan(table.to_array())
        rows = new & (given.all(1) if both else given.any(1))
        used, ends = table[rows], ends[rows]
        if len(used) < 2:
            kinds = f"a similarity {'and' if both else 'or'} a difference"
            raise TableError(f"{files[1]}: {len(used)} rows have {kinds}; two are needed")
        said = Judgements.from_pairs(ends, used.labels(), used.annotator, used.weight)
        z, said, known = classifier.of_pairs(
            said, lambda needed: log_odds(classifier, items[needed], files[0])
        )
        ignored = alone + int((new & ~rows).sum())
        return cls(items, table[new], z, said.labels(), known["weight"], said.ends, ignored, doubt)

    @property
    def arguments(self) -> tuple[Floats, Floats, PairLabels]:
        """What all measures are of: log-odds of both ends, and judgements."""
        return self.z[:, 0], self.z[:, 1], self.labels

    def options(self, confidence: float) -> dict[str, Any]:
        """What all measures take."""
        return {"weight": self.weight, "items": self.ends, "confidence": confidence}

    def evaluate(
        self, classifier: PairClassifier, threshold: float, confidence: float, **options: Any
    ) -> Evaluation:
        """All measures; the threshold is a probability."""
        options |= self.options(confidence) | {"side": classifier.majority}
        return evaluate(*self.arguments, threshold=_cut(threshold), **options)

    def plausible(
        self,
        classifier: PairClassifier,
        threshold: float,
        confidence: float,
        known: Confidence | None = None,
    ) -> Plausible | None:
        """The accuracy whatever the annotators' confidence, or as labels tell it."""
        known = known or getattr(classifier, "confidence_", None)
        options = self.options(confidence) | {"threshold": _cut(threshold)}
        return plausible(*self.arguments, known=known, **options)

    def annotator_doubts(self, classifier: PairClassifier) -> list[str]:
        """What deserves a look about annotators: who counts for nothing, whom nobody knows."""
        known = getattr(classifier, "annotators_", ())
        who = self.table.annotator
        if who is None or len(np.unique(named(who))) < 2:
            return []
        constant = {one.name: int((named(who) == one.name).sum()) for one in known if one.constant}
        crowd = Crowd.of(self.table.judgements(self.items))
        return [
            f"{rows:,} rows of {name} count for nothing: all of their answers were the same"
            for name, rows in constant.items()
            if rows
        ] + [
            f"{doubt.words}; the model does not know how they answer: measure without them"
            for doubt in crowd.doubts()
            if not {one.name for one in known}.issuperset(doubt.names)
        ]

    def recalibrated(self, known: Labelled) -> Recalibration | None:
        """The judgements mended by known classes; None if there is none among the items."""
        classes = np.full(len(self.items), np.nan)
        classes[known.rows] = known.positive
        at = classes[self.ends]
        if np.isnan(at).all():
            return None
        return recalibrate(self.labels, *self.z.T, *at.T, weight=self.weight)


def _cut(threshold: float) -> float:
    """The log-odds of a probability."""
    return math.log(threshold) - math.log1p(-threshold)


def _nothing_new(classifier: PairClassifier, pairs: Path, new: Mask) -> str:
    before, told = "", getattr(classifier, "trained_on_", None)
    found = told.get("accuracy") if isinstance(told, dict) else None
    if isinstance(found, dict) and {"value", "low", "high"} <= found.keys():
        before = (
            "; `pairlearn fit` measured {value:.3f} ({low:.3f} to {high:.3f}) on items that it "
            "held out".format(**found)
        )
    return (
        f"{pairs} measures no accuracy: the model was trained on items of {int((~new).sum()):,} of "
        f"its {len(new):,} pairs, and does better on those than on others. Split by items before "
        f"training, with `pairlearn split`{before}"
    )


def evaluation_doubts(
    classifier: PairClassifier, pairs: Path, told: Evaluation, prior: float | None
) -> list[str]:
    """What speaks against an evaluation, beside what it itself found."""
    found = []
    before = getattr(classifier, "trained_on_", None)
    if isinstance(before, dict) and before.get("pairs_sha256") == digest(pairs):
        found.append(
            "the model was fitted to these very pairs, and does better on them than on others: "
            "measure on pairs that were held out"
        )
    stated: Any = classifier.target_prior
    if stated is None and classifier.prior != "estimate":
        stated = classifier.prior
    if prior is None and stated is not None and not told.prior.low <= stated <= told.prior.high:
        found.append(
            f"the model is meant for a share of positives of {float(stated):g}, and these pairs "
            f"imply {told.prior}: where it is used, the accuracy is another"
        )
    return found


@dataclass(frozen=True)
class PairSample:
    """Items, some of the judged pairs of a file, how many rows it has, and how many have none."""

    items: ItemTable
    table: PairTable
    rows: int
    ignored: int = 0


def sample_pair_file(
    known: ItemTable,
    pairs: Path,
    *,
    noisy: bool,
    scales: Sequence[Scale | None] = (None, None),
) -> PairSample:
    """Look through a file of pairs and keep a random sample, or all if they are not many."""
    file = PairFile(pairs, known, noisy=noisy, scales=scales)
    survey = survey_pairs(file, sample=EVALUATED_PAIRS)
    said = Judgements.concatenate(survey.sampled)
    table = PairTable.from_judgements(said[said.soft], known.ids)
    soft = rows_by_kind(survey.counts, file.rows)
    ignored = file.rows - soft["both"] - soft["similarity_only"] - soft["difference_only"]
    return PairSample(known, table, file.rows, ignored)


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names, texts and images in a folder."""
    if path.is_dir():
        files = list_files(path, sum(SUFFIXES.values(), ()))
        lines = [f"{name} {digest(one)}\n" for name, one in files.items()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
