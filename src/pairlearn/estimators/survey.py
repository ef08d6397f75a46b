"""The first pass over a file of pairs: all is checked, and counted, in constant memory."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pairlearn.columns import Floats, Indices, Mask
from pairlearn.estimators.pair_files import PairFile
from pairlearn.judgements import Judgements
from pairlearn.kinds import KINDS
from pairlearn.prior import estimate_prior
from pairlearn.randomness import stream
from pairlearn.tables import TableError

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier


SAMPLE_PAIRS = 1 << 16
"""Rows of a sample that stays in memory, about."""
VALIDATION_PAIRS = 1 << 16
"""Most pairs that early stopping looks at, about."""


@dataclass(frozen=True)
class Split:
    """Rows to train on, to stop by and to measure with.

    ``held`` (m,) marks items that no training row may have: rows with two of them are for
    measuring, rows with one are for nothing. ``validation`` is the share of the unordered pairs
    among the others that early stopping looks at.
    """

    held: Mask | None = None
    validation: float = 0.0
    seed: int = 0

    def usable(self, said: Judgements) -> Judgements:
        """The rows without an item that is held out."""
        return said if self.held is None else said[~self.held[_ends(said)].any(1)]

    def training(self, said: Judgements) -> Judgements:
        """The rows to train on."""
        usable = self.usable(said)
        return usable[~self._drawn(usable)] if self.validation else usable

    def validating(self, said: Judgements) -> Judgements:
        """The rows that early stopping looks at."""
        usable = self.usable(said)
        return usable[self._drawn(usable)]

    def measuring(self, said: Judgements) -> Judgements:
        """Rows of two different items that are held out."""
        if self.held is None:
            return said[:0]
        ends = _ends(said)
        return said[self.held[ends].all(1) & (ends[:, 0] != ends[:, 1])]

    def _drawn(self, said: Judgements) -> Mask:
        """Pairs that a hash of their two items chooses, so that all rows of a pair go together."""
        low, high = np.sort(_ends(said), axis=1).T.astype(np.uint64)
        seed = np.uint64(self.seed % 2**64)
        bits = _mixed(_mixed(_mixed(np.full(len(low), seed)) ^ low) ^ high)
        return np.asarray(bits < np.uint64(self.validation * 2.0**64))


def held_items(count: int, pairs: int, fraction: float, most: int, seed: int) -> Mask:
    """Items to hold out so that about a fraction of the pairs, and not too many, is measured with.

    A pair of random items is held out if both are, so that √f of the items is drawn.
    """
    share = math.sqrt(min(fraction, most / pairs))
    bits = stream(seed, "split").bit_generator.random_raw(count)
    return np.asarray(bits < np.uint64(share * 2.0**64))


def _ends(said: Judgements) -> Indices:
    """Both items of every row; a single one stands for both."""
    return np.where(said.ends < 0, said.ends[:, :1], said.ends)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on every bit given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed


class NothingLeftError(TableError):
    """All rows are held out."""


@dataclass
class Survey:
    """What a training has to know of a file before it begins.

    ``fingerprint`` is the same for the same file, items and split. ``instance_weight`` (m,) is how
    much each item counts in the rows that are not for measuring, ``judged`` (m,) whether it is in
    the file. ``group_training`` counts the training rows in each row group, ``weight`` sums their
    weights, ``counts`` has the statements of each kind, those about an item and itself
    ("self_pairs") and those for "training", and ``similarity`` the sums of w s and of w. Kept are
    parts of a random sample of the rows for training (``sampled``), of those that early stopping
    looks at (``validating``) and of those to measure with (``held``), and the ``first`` training
    row of each kind.
    """

    file: PairFile
    split: Split
    fingerprint: str
    instance_weight: Floats
    judged: Mask
    group_training: list[int]
    weight: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    similarity: Floats = field(default_factory=lambda: np.zeros(2))
    sampled: list[Judgements] = field(default_factory=list)
    validating: list[Judgements] = field(default_factory=list)
    held: list[Judgements] = field(default_factory=list)
    first: dict[str, Judgements] = field(default_factory=dict)

    @property
    def training(self) -> int:
        """Training rows."""
        return sum(self.group_training)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of training rows that there are, in the order of the registry."""
        return tuple(one.name for one in KINDS if one.name in self.first)

    def sample_rows(self) -> Judgements:
        """The sample as training rows, with one of every kind at least."""
        present = {name for part in self.sampled for name in part.kinds()}
        more = [row for name, row in self.first.items() if name not in present]
        return Judgements.concatenate([*self.sampled, *more])

    def prior(self, majority: Literal["positive", "negative"]) -> float:
        """The class prior that all similarities for training imply."""
        total, weight = self.similarity
        if not weight:
            raise ValueError(
                "the class prior is estimated from similarities, and labels have none: pass "
                "prior=, or use risk='likelihood'"
            )
        # The estimate depends on the mean alone; only its interval needs the rows.
        return estimate_prior(np.full(2, total / weight), majority).value

    def take(self, group: int, said: Judgements, drawn: Mask) -> None:
        """Take in some rows of a row group, those drawn into the sample too."""
        self.judged[_ends(said)] = True
        self.counts.update(said.counts())
        self.counts["self_pairs"] += int((said.ends[:, 0] == said.ends[:, 1]).sum())
        usable, training = self.split.usable(said), self.split.training(said)
        self.sampled.append(self.split.training(said[drawn]))
        if self.split.validation:
            self.validating.append(self.split.validating(said))
        if self.split.held is not None:
            self.held.append(self.split.measuring(said))
        self.instance_weight += usable.item_weight(len(self.instance_weight))
        told = usable[usable.has("similarity")]
        self.similarity += [float(told.weight @ told.u), float(told.weight.sum())]
        self.counts["training"] += len(training)
        self.group_training[group] += len(training)
        self.weight += float(training.doubled().weight.sum())
        for name in training.kinds():
            if name not in self.first:
                self.first[name] = training[int(training.of(name).argmax())]


def survey_for(
    classifier: PairClassifier,
    file: PairFile,
    held: Mask | None = None,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Read a file once, for a training of this classifier that must not see items held out."""
    seed = int(check_random_state(classifier.random_state).randint(2**31 - 1))
    share = 0.0
    if classifier.early_stopping:
        share = min(float(classifier.validation_fraction), VALIDATION_PAIRS / file.rows)
    return survey_pairs(file, Split(held, share, seed), seed=seed, progress=progress)


def survey_pairs(
    file: PairFile,
    split: Split | None = None,
    *,
    sample: int = SAMPLE_PAIRS,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Read a file of pairs once: check every row, count, and keep about ``sample`` rows.

    Without a split all rows are for training. ``progress`` gets the number of rows done. Raises
    TableError for the first row that cannot be used, NothingLeftError if none is left for
    training.
    """
    split = Split() if split is None else split
    digest = hashlib.sha256(f"{file.digest()} {split.validation} {split.seed}".encode())
    digest.update(b"" if split.held is None else split.held.data)
    items, groups = len(file.items), len(file.group_rows)
    found = Survey(
        file, split, digest.hexdigest(), np.zeros(items), np.zeros(items, bool), [0] * groups
    )
    share, present, done = min(1.0, sample / file.rows), -1, 0
    for group, said in file.judgements(range(groups)):
        if group != present:
            present, rng = group, stream(seed, "sample", group)
        found.take(group, said, rng.bit_generator.random_raw(len(said)) / 2.0**64 < share)
        done += len(said)
        if progress is not None:
            progress(done)
    if not found.training:
        raise NothingLeftError(f"{file.path} has no row that is left for training")
    return found
