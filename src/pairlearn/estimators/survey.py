"""The first pass over a file of pairs: all is checked, and counted, in constant memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.sampling import stream
from pairlearn.estimators.pair_stream import PairFile
from pairlearn.estimators.rows import KINDS, Rows, judged_rows
from pairlearn.estimators.split import Split, chosen
from pairlearn.estimators.table import Judgements
from pairlearn.prior import estimate_prior
from pairlearn.tables import PairTable, TableError

__all__ = ["SAMPLE_PAIRS", "NothingLeftError", "Survey", "joined", "survey_pairs", "table_of"]

SAMPLE_PAIRS = 1 << 16
"""Rows of a sample that stays in memory, about."""

COUNTED = (
    "both",
    "similarity_only",
    "difference_only",
    "preference_only",
    "self_pairs",
    "training",
)

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
        Rows of the file with "both" judgements, "similarity_only", "difference_only" and
        "preference_only", the "self_pairs" of an item with itself, and how many rows are for
        "training".
    similarity : array of shape (2,)
        Sums of w s and of w over the rows not for measuring that have a similarity s.
    sampled, validating, held : list of Judgements
        Parts of a random sample of the rows for training, of those that early stopping
        looks at, and of those to measure with.
    first : dict of int to Rows
        The first training row of each kind that there is.
    """

    file: PairFile
    split: Split
    fingerprint: str
    instance_weight: Floats
    judged: NDArray[np.bool_]
    group_training: list[int]
    weight: float = 0.0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    similarity: Floats = field(default_factory=lambda: np.zeros(2))
    sampled: list[Judgements] = field(default_factory=list)
    validating: list[Judgements] = field(default_factory=list)
    held: list[Judgements] = field(default_factory=list)
    first: dict[int, Rows] = field(default_factory=dict)

    @property
    def training(self) -> int:
        """Training rows."""
        return sum(self.group_training)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of training rows that there are."""
        return tuple(KINDS[kind] for kind in sorted(self.first))

    def sample_rows(self) -> Rows:
        """The sample as training rows, with one of every kind at least."""
        rows = [judged(joined(self.sampled))] if self.sampled else []
        present = rows[0].kinds() if rows else ()
        return Rows.concatenate(
            [*rows, *(row for kind, row in self.first.items() if KINDS[kind] not in present)]
        )

    def validation_rows(self) -> Rows | None:
        """Rows that early stopping looks at, of the kinds that are trained on."""
        if not self.validating:
            return None
        rows = judged(joined(self.validating))
        known = np.isin(rows.kind, list(self.first))
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
        self._count(said)
        some = chosen(said, drawn)
        for part, kept in (
            (some and self.split.training(some), self.sampled),
            (self.split.validating(said), self.validating),
            (self.split.measuring(said), self.held),
        ):
            kept += [] if part is None else [part]
        if (usable := self.split.usable(said)) is not None:
            self._weigh(usable)
        if (training := self.split.training(said)) is not None:
            self._train_on(group, training)

    def _weigh(self, said: Judgements) -> None:
        for side in (0, 1):
            np.add.at(self.instance_weight, said.ends[:, side], said.weight)
        told = ~np.isnan(said.similarity)
        weight = said.weight[told]
        self.similarity += [float(weight @ said.similarity[told]), float(weight.sum())]

    def _train_on(self, group: int, said: Judgements) -> None:
        self.counts["training"] += len(said.ends)
        rows = judged(said)
        self.group_training[group] += len(rows)
        self.weight += float(rows.weight.sum())
        for kind in np.unique(rows.kind).tolist():
            if kind not in self.first:
                row = int((rows.kind == kind).argmax())
                self.first[kind] = rows[row : row + 1]

    def _count(self, said: Judgements) -> None:
        s, c = ~np.isnan(said.similarity), ~np.isnan(said.difference)
        for name, rows in (
            ("both", s & c),
            ("similarity_only", s & ~c),
            ("difference_only", c & ~s),
            ("preference_only", ~s & ~c),
            ("self_pairs", said.ends[:, 0] == said.ends[:, 1]),
        ):
            self.counts[name] += int(rows.sum())


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
    >>> from pairlearn.tables import write_pairs
    >>> table = PairTable([0, 1], [1, 2], [0.5, 0.9], [0.1, np.nan], preference=[1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     path = write_pairs(table, f"{folder}/pairs.parquet")
    ...     found = survey_pairs(PairFile(path, open_items(f"{folder}/x.npy")))
    >>> found.training, found.kinds, found.instance_weight.tolist()
    (3, ('both', 'similarity', 'preference'), [1.0, 2.0, 1.0])
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
        n = len(said.ends)
        found.take(group, said, rng.bit_generator.random_raw(n) / 2.0**64 < share)
        done += n
        if progress is not None:
            progress(done)
    if not found.training:
        raise NothingLeftError(f"{file.path} has no row that is left for training")
    return found


def joined(parts: list[Judgements]) -> Judgements:
    """Several parts of what was said, below each other."""
    names = ("ends", "similarity", "difference", "preference", "weight")
    return Judgements(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def table_of(said: Judgements) -> PairTable:
    """What was said as a table, with the rows of items as ids."""
    return PairTable.trusted(
        left=said.ends[:, 0],
        right=said.ends[:, 1],
        similarity=said.similarity,
        difference=said.difference,
        preference=said.preference.astype(np.int8) if said.preference.any() else None,
        weight=None if (said.weight == 1).all() else said.weight,
    )


def judged(said: Judgements) -> Rows:
    """What was said as training rows."""
    return judged_rows(said.ends, said.similarity, said.difference, said.preference, said.weight)
