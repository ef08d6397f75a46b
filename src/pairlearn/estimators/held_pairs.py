"""Judged pairs of a table, without those of items that a model was trained on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.annotators.answers import named
from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.link import fair
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.estimators.instances import NO_ACCURACY, doubt_of_seen, seen_items
from pairlearn.estimators.pair_files import PairFile
from pairlearn.estimators.prediction import log_odds
from pairlearn.estimators.streams import survey_pairs
from pairlearn.evaluation import (
    Confidence,
    Evaluation,
    Plausible,
    Recalibration,
    evaluate,
    plausible,
    recalibrate,
)
from pairlearn.judgements import Judgements
from pairlearn.kinds import rows_by_kind
from pairlearn.labels import PairLabels
from pairlearn.tables import ItemTable, PairTable, TableError
from pairlearn.tables.item_files import ENDINGS, files_of
from pairlearn.tables.read import Labelled
from pairlearn.tables.scales import Scale

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


EVALUATED_PAIRS = 1 << 18
"""Most pairs of a file that `sample_pairs_of` takes into memory, about."""


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
    def of(
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
        mended = fair(getattr(classifier, "annotators_", ()), said)
        weight = used.weight if mended is said else mended.weight
        ends = mended.ends
        needed, places = np.unique(ends, return_inverse=True)
        z = log_odds(classifier, items[needed], files[0])[places.reshape(ends.shape)]
        ignored = alone + int((new & ~rows).sum())
        return cls(items, table[new], z, mended.labels(), weight, ends, ignored, doubt)

    @property
    def given(self) -> tuple[Floats, Floats, PairLabels]:
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
        return evaluate(*self.given, threshold=_cut(threshold), **options)

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
        return plausible(*self.given, known=known, **options)

    def strangers(self, classifier: PairClassifier) -> list[str]:
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


def doubts_of(
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
class Sampled:
    """Items, some of the judged pairs of a file, how many rows it has, and how many have none."""

    items: ItemTable
    table: PairTable
    rows: int
    ignored: int = 0


def sample_pairs_of(
    known: ItemTable,
    pairs: Path,
    *,
    noisy: bool,
    scales: Sequence[Scale | None] = (None, None),
) -> Sampled:
    """Look through a file of pairs and keep a random sample, or all if they are not many."""
    file = PairFile(pairs, known, noisy=noisy, scales=scales)
    survey = survey_pairs(file, sample=EVALUATED_PAIRS)
    said = Judgements.concatenate(survey.sampled)
    said = said[said.has("similarity") | said.has("difference")]
    table, soft = PairTable.from_judgements(said, known.ids), rows_by_kind(survey.counts, file.rows)
    ignored = file.rows - soft["both"] - soft["similarity_only"] - soft["difference_only"]
    return Sampled(known, table, file.rows, ignored)


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names, texts and images in a folder."""
    if path.is_dir():
        files = files_of(path, sum(ENDINGS.values(), ()))
        lines = [f"{name} {digest(one)}\n" for name, one in files.items()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
