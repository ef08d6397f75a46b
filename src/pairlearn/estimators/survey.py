"""The first pass over a file of pairs: all is checked, and counted, in constant memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.estimators.pair_stream import PairFile
from pairlearn.estimators.splits import Split
from pairlearn.judgements import Judgements
from pairlearn.kinds import KINDS
from pairlearn.prior import estimate_prior
from pairlearn.randomness import stream
from pairlearn.tables import TableError

__all__ = ["SAMPLE_PAIRS", "NothingLeftError", "Survey", "survey_pairs"]

SAMPLE_PAIRS = 1 << 16
"""Rows of a sample that stays in memory, about."""

Floats = NDArray[np.float64]


class NothingLeftError(TableError):
    """All rows are held out.

    Examples
    --------
    >>> issubclass(NothingLeftError, TableError)
    True
    """


@dataclass
class Survey:
    """What a training has to know of a file before it begins.

    Attributes
    ----------
    file : PairFile
        The file.
    split : Split
        Which rows are for training.
    fingerprint : str
        The same for the same file, items and split.
    instance_weight : array of shape (m,)
        How much each item counts in the rows that are not for measuring.
    judged : array of bool, shape (m,)
        Items that are in the file.
    group_training : list of int
        Training rows in each row group: a preference beside s or c makes a second row.
    weight : float
        Sum of the weights of the training rows.
    counts : dict of str to int
        Statements of each kind, those about an item and itself ("self_pairs"), and how many
        are for "training".
    similarity : array of shape (2,)
        Sums of w s and of w over the rows not for measuring that have a similarity s.
    sampled, validating, held : list of Judgements
        Parts of a random sample of the rows for training, of those that early stopping
        looks at, and of those to measure with.
    first : dict of str to Judgements
        The first training row of each kind that there is.
    """

    file: PairFile
    split: Split
    fingerprint: str
    instance_weight: Floats
    judged: NDArray[np.bool_]
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
        rows = list(self.sampled)
        present = {name for part in rows for name in part.kinds()}
        return Judgements.concatenate(
            [*rows, *(row for name, row in self.first.items() if name not in present)]
        )

    def validation_rows(self) -> Judgements | None:
        """Rows that early stopping looks at, of the kinds that are trained on."""
        if not self.validating:
            return None
        rows = Judgements.concatenate(self.validating)
        known = rows.of(*self.first)
        return rows[known] if known.any() else None

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

    def take(self, group: int, said: Judgements, drawn: NDArray[np.bool_]) -> None:
        """Take in some rows of a row group, those drawn into the sample too."""
        self.judged[said.ends] = True
        self.counts.update(said.counts())
        self.counts["self_pairs"] += int((said.ends[:, 0] == said.ends[:, 1]).sum())
        some = said[drawn]
        for part, kept in (
            (self.split.training(some) if len(some) else None, self.sampled),
            (self.split.validating(said), self.validating),
            (self.split.measuring(said), self.held),
        ):
            kept += [] if part is None else [part]
        if (usable := self.split.usable(said)) is not None:
            self.instance_weight += usable.item_weight(len(self.instance_weight))
            told = usable[usable.has("similarity")]
            self.similarity += [float(told.weight @ told.u), float(told.weight.sum())]
        if (training := self.split.training(said)) is not None:
            self.counts["training"] += len(training)
            self.group_training[group] += len(training)
            self.weight += float(training.weight.sum())
            for name in training.kinds():
                if name not in self.first:
                    row = int(training.of(name).argmax())
                    self.first[name] = training[row : row + 1]


def survey_pairs(
    file: PairFile,
    split: Split | None = None,
    *,
    sample: int = SAMPLE_PAIRS,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Read a file of pairs once: check every row, count, and keep a sample.

    Parameters
    ----------
    file : PairFile
        The pairs.
    split : Split, optional
        Which rows are for training; all by default.
    sample : int
        About how many rows to keep.
    seed : int
        Which ones follows from it.
    progress : callable, optional
        Called with the number of rows done, again and again.

    Raises
    ------
    TableError
        For the first row that cannot be used.
    NothingLeftError
        If none is left for training.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.estimators.stream_items import open_items
    >>> from pairlearn.tables import PairTable, write_pairs
    >>> table = PairTable([0, 1], [1, 2], [0.5, 0.9], [0.1, np.nan], preference=[1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     path = write_pairs(table, f"{folder}/pairs.parquet")
    ...     found = survey_pairs(PairFile(path, open_items(f"{folder}/x.npy")))
    >>> found.training, found.kinds, found.instance_weight.tolist()
    (3, ('both', 'similarity', 'preference'), [2.0, 3.0, 1.0])
    """
    split = Split() if split is None else split
    digest = hashlib.sha256(f"{file.digest()} {split.validation} {split.seed}".encode())
    digest.update(b"" if split.held is None else split.held.data)
    items = len(file.items)
    found = Survey(
        file,
        split,
        digest.hexdigest(),
        instance_weight=np.zeros(items),
        judged=np.zeros(items, bool),
        group_training=[0] * len(file.group_rows),
    )
    share, present, done = min(1.0, sample / file.rows), -1, 0
    for group, said in file.judgements(range(len(file.group_rows))):
        if group != present:
            present, rng = group, stream(seed, "sample", group)
        n = len(said)
        found.take(group, said, rng.bit_generator.random_raw(n) / 2.0**64 < share)
        done += n
        if progress is not None:
            progress(done)
    if not found.training:
        raise NothingLeftError(f"{file.path} has no row that is left for training")
    return found
