"""Training on files of pairs of any size in constant memory.

A first pass checks and counts all rows and keeps a sample. Then an epoch visits the row groups of
the file in an order of its own. Their rows are cut into blocks of S rows, and each block is
shuffled. Both orders follow from the seed, the epoch and the number of the block, so that an epoch
can be resumed at any block: only what comes before it in the same row group is decoded once more.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from pairlearn.columns import Floats, Indices, Mask, TableError
from pairlearn.estimators.features import FeatureStep
from pairlearn.estimators.pair_files import PairFile, PathLike
from pairlearn.estimators.parameters import check_parameters, is_scikit_learn
from pairlearn.estimators.splits import Connected, Split, item_ends
from pairlearn.estimators.table import HeldOut, Table
from pairlearn.judgements import Judgements
from pairlearn.kinds import KINDS
from pairlearn.prior import estimate_prior
from pairlearn.progress import Progress, bar
from pairlearn.randomness import permutation, stream
from pairlearn.tables import PairTable, read_items
from pairlearn.tables.read import rechunk
from pairlearn.training import Checkpoint, PairStream, Recipe

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

T = TypeVar("T")
BLOCK_PAIRS = 1 << 20
"""Pairs that are shuffled together, about; some four blocks are in memory at a time."""
SAMPLE_PAIRS = 1 << 16
"""Rows of a sample that stays in memory, about."""
VALIDATION_PAIRS = 1 << 16
"""Most pairs that early stopping looks at, about."""
MEASURED_PAIRS = 100_000
"""Most pairs of a file that the accuracy is measured with, about."""


def fit_file(
    classifier: PairClassifier,
    items: PathLike,
    pairs: PathLike,
    *,
    ids: PathLike | None = None,
    noisy: bool = False,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    scratch: PathLike | None = None,
    block_pairs: int = BLOCK_PAIRS,
) -> PairClassifier:
    """Learn from a Parquet file of judged pairs that need not fit into memory.

    Memory depends on the number of items, not of pairs. A first pass checks and counts all rows.
    Every epoch sees each row once: the row groups come in another order, their rows are cut into
    blocks, and each block is shuffled. Early stopping holds out pairs at random, 65,536 at most.

    Parameters
    ----------
    classifier : PairClassifier
        With any model but a scikit-learn classifier; it is fitted and returned.
    items, ids : path-like
        As in `pairlearn.tables.read_items`. Features of an ``.npy`` file stay in the file.
    pairs : path-like
        The ``.parquet`` file of pairs; `rewrite_pairs` makes one of CSV.
    noisy : bool
        Admit finite judgements outside their ranges.
    progress, checkpoint
        Callbacks beside those of the classifier. Training resumes in the middle of an epoch.
    scratch : path-like, optional
        Folder for the standardised features of ``.npy`` items, 4 bytes a number, while this
        lasts; that for temporary files by default.
    block_pairs : int
        About how many pairs are shuffled together; some four blocks are in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.estimators import PairClassifier
    >>> from pairlearn.data.simulation import simulate
    >>> from pairlearn.tables import write_items, write_pairs
    >>> told = simulate(pairs=200)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items = write_items(told.items, f"{folder}/items.csv")
    ...     pairs = write_pairs(told.pairs, f"{folder}/pairs.parquet")
    ...     classifier = PairClassifier(model="linear", epochs=5, random_state=0)
    ...     fit_file(classifier, items, pairs).n_iter_
    5
    """
    check_streamable(classifier)
    file = PairFile(Path(pairs), read_items(items, ids, mapped=True), noisy=noisy)
    table = survey_for(classifier, file, scratch, block_pairs)
    fit_table(classifier, table, progress, checkpoint)
    return classifier


def fit_table(
    classifier: PairClassifier,
    table: Table,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Fit to a table, with callbacks beside those of the classifier."""
    own = classifier.callbacks
    classifier.callbacks = [*(own or ()), *filter(None, [progress, checkpoint])]
    try:
        classifier.fit(table, None)
    finally:
        classifier.callbacks = own


def check_streamable(classifier: PairClassifier) -> None:
    """Refuse a classifier that cannot learn from a stream."""
    check_parameters(classifier)
    if is_scikit_learn(classifier.model):
        raise ValueError(
            f"model {type(classifier.model).__name__} is a scikit-learn classifier, which needs "
            "all pairs in memory: use PairClassifier.fit, or model='linear' or 'mlp-bn'"
        )


class NothingLeftError(TableError):
    """All rows are held out."""


@dataclass(frozen=True)
class StreamedTable(Table):
    """What `fit` learns from where the rows stay in their file, after a first pass over it.

    ``fingerprint`` is the same for the same file, items and split. In the rows that are not for
    measuring, ``instance_weight`` (2, m) is how much each item counts in pairs and alone, and
    ``told`` (m,) whether more is said of it than its group's share; ``named`` (m,) are all in the
    file, and ``connected`` those that its pairs connect. ``counts`` are of kinds, of "self_pairs"
    and of "pairs" not for measuring; ``sums`` those of w s and of w over similarities, and of w
    over training rows. Kept are random rows for training (``sampled``), those that early stopping
    looks at (``validating``), those to measure with (``apart``), and the ``first`` training row of
    each kind. `judged` is the sample, with one row of every kind at least.
    """

    file: PairFile = field(kw_only=True)
    split: Split = field(kw_only=True)
    fingerprint: str = field(kw_only=True)
    block_pairs: int = BLOCK_PAIRS
    instance_weight: Floats = field(kw_only=True)
    told: Mask = field(kw_only=True)
    named: Mask = field(kw_only=True)
    connected: Connected = field(kw_only=True)
    group_training: list[int] = field(kw_only=True)
    counts: Counter[str] = field(default_factory=Counter)
    sums: Floats = field(default_factory=lambda: np.zeros(3))
    sampled: list[Judgements] = field(default_factory=list)
    validating: list[Judgements] = field(default_factory=list)
    apart: list[Judgements] = field(default_factory=list)
    first: dict[str, Judgements] = field(default_factory=dict)

    @property
    def in_memory(self) -> bool:
        """No: `judged` is a sample."""
        return False

    @property
    def training(self) -> int:
        """Training rows."""
        return sum(self.group_training)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of training rows that there are, in the order of the registry."""
        return tuple(one.name for one in KINDS if one.name in self.first)

    @property
    def used(self) -> Indices:
        """As in `Table`."""
        return np.flatnonzero(self.told)

    def sample(self) -> PairTable:
        """Some of the rows as a table with ids."""
        said = Judgements.concatenate(self.sampled)
        table = PairTable.from_judgements(said, self.file.items.ids)
        return table.changed(ignored=self.file.ignored())

    def item_weight(self) -> Floats:
        """As in `Table`."""
        in_pairs: Floats = self.instance_weight[0]
        alone: Floats = self.instance_weight[1]
        return in_pairs if in_pairs.any() else alone

    def rows(self, labelled_weight: float | str) -> Judgements:
        """The sample."""
        return self.judged

    def held_out(
        self, rows: Judgements, fraction: float, seed: int
    ) -> tuple[Judgements, Judgements | None]:
        """The sample, and the rows of the kinds that are trained on that were drawn before."""
        held = Judgements.concatenate([rows[:0], *self.validating]).doubled()
        held = held[held.of(*self.kinds)]
        return rows, held if len(held) else None

    def hold_out(self, fraction: float, seed: int) -> HeldOut | None:
        """As in `Table`, by another pass over the file; no more than `MEASURED_PAIRS`, about."""
        file = self.file
        apart = self.connected.held_out(fraction, MEASURED_PAIRS, seed)
        try:
            rest = survey_pairs(file, replace(self.split, held=apart), shown=True)
        except NothingLeftError:
            return None
        said = Judgements.concatenate(rest.apart)
        training = rest.counts["pairs"]
        dropped = self.counts["pairs"] - training - len(said)
        rest = replace(rest, scratch=self.scratch, block_pairs=self.block_pairs)
        return HeldOut(rest, said, training, dropped, fraction * file.rows > MEASURED_PAIRS)

    def prior(self, rows: Judgements, majority: Literal["positive", "negative"]) -> float:
        """As in `Table`, by all similarities for training."""
        total, weight, _ = self.sums
        if not weight:
            return super().prior(rows, majority)  # which says what to do
        # The estimate depends on the mean alone; only its interval needs the rows.
        return estimate_prior(np.full(2, total / weight), majority).value

    def count(self, rows: Judgements) -> int:
        """As in `Table`."""
        return self.training

    def source(self, recipe: Recipe) -> PairStream:
        """As in `Table`."""
        return ParquetPairStream(self, recipe.batch_size, recipe.seed)

    def take(self, group: int, said: Judgements, drawn: Mask) -> None:
        """Take in some rows of a row group, those drawn into the sample too."""
        self.named[item_ends(said)] = True
        if self.split.held is None:
            self.connected.add(said.ends[~said.single])
        self.counts.update(said.counts())
        self.counts["self_pairs"] += int((said.ends[:, 0] == said.ends[:, 1]).sum())
        usable, training = self.split.usable(said), self.split.training(said)
        self.sampled.append(self.split.training(said[drawn]))
        if self.split.validation:
            self.validating.append(self.split.validating(said))
        self.apart.append(self.split.measuring(said))
        for weight, rows in zip(self.instance_weight, (~usable.single, usable.single), strict=True):
            if rows.any():
                weight += usable[rows].item_weight(len(weight))
        of_group = usable.joint & usable.single
        self.told[item_ends(usable[~of_group])] = True
        told, weight = usable[usable.has("similarity")], training.doubled().weight
        self.sums[:] += float(told.weight @ told.u), float(told.weight.sum()), float(weight.sum())
        self.counts["pairs"] += int((~usable.single).sum())
        self.group_training[group] += len(training)
        for name in training.kinds():
            if name not in self.first:
                self.first[name] = training[int(training.of(name).argmax())]


def survey_for(
    classifier: PairClassifier,
    file: PairFile,
    scratch: PathLike | None = None,
    block_pairs: int = BLOCK_PAIRS,
    *,
    shown: bool = False,
) -> StreamedTable:
    """Read a file once, for a training of this classifier; `scratch` is as in `fit_file`."""
    seed = int(check_random_state(classifier.random_state).randint(2**31 - 1))
    share = 0.0
    if classifier.early_stopping:
        share = min(float(classifier.validation_fraction), VALIDATION_PAIRS / file.rows)
    found = survey_pairs(file, Split(None, share, seed), shown=shown)
    folder = None if scratch is None else Path(scratch)
    return replace(found, scratch=folder, block_pairs=block_pairs)


def survey_pairs(
    file: PairFile, split: Split | None = None, *, sample: int = SAMPLE_PAIRS, shown: bool = False
) -> StreamedTable:
    """Read a file of pairs once: check every row, count, and keep about ``sample`` rows.

    Without a split all rows are for training. A bar is `shown` on a terminal. Raises TableError for
    the first row that cannot be used, NothingLeftError if none is left for training.
    """
    split = Split() if split is None else split
    digest = hashlib.sha256(f"{file.digest()} {split.validation} {split.seed}".encode())
    digest.update(b"" if split.held is None else split.held.data)
    items, groups = file.items, len(file.group_rows)
    found = StreamedTable(
        items.features,
        Judgements.silent([]),
        step=FeatureStep.of_items(items),
        ids=items.ids,
        # That of the split: without a random_state another one would be drawn.
        seed=split.seed,
        file=file,
        split=split,
        fingerprint=digest.hexdigest(),
        instance_weight=np.zeros((2, len(items))),
        told=np.zeros(len(items), bool),
        named=np.zeros(len(items), bool),
        connected=Connected(len(items)),
        group_training=[0] * groups,
    )
    share, present, done = min(1.0, sample / file.rows), -1, 0
    with bar("looking through", file.rows, unit="rows", shown=shown) as progress:
        for group, said in file.judgements(range(groups)):
            if group != present:
                present, rng = group, stream(split.seed, "sample", group)
            found.take(group, said, rng.bit_generator.random_raw(len(said)) / 2.0**64 < share)
            done += len(said)
            if progress is not None:
                progress(done)
    if not found.training:
        raise NothingLeftError(f"{file.path} has no row that is left for training")
    present_kinds = {name for part in found.sampled for name in part.kinds()}
    more = [row for name, row in found.first.items() if name not in present_kinds]
    return replace(found, judged=Judgements.concatenate([*found.sampled, *more]))


class ParquetPairStream:
    """The training rows of a Parquet file as a `pairlearn.training.PairStream`."""

    def __init__(self, table: StreamedTable, batch_size: int, seed: int) -> None:
        self.table, self.seed, self.pairs = table, seed, table.training
        batch_size = min(batch_size, self.pairs)
        self.block_pairs = max(1, table.block_pairs // batch_size) * batch_size
        about = f"{table.fingerprint} {seed} {self.block_pairs}"
        self.fingerprint = hashlib.sha256(about.encode()).hexdigest()

    def blocks(self, epoch: int, start: int) -> Iterator[Judgements]:
        """As in `PairStream`; the next block is read while one is in use."""
        return read_ahead(self._blocks(epoch, start))

    def _blocks(self, epoch: int, start: int) -> Iterator[Judgements]:
        counts = np.asarray(self.table.group_training)
        order = permutation(stream(self.seed, "row groups", epoch), len(counts))
        ends = np.cumsum(counts[order])
        first = start * self.block_pairs
        group = int(np.searchsorted(ends, first, side="right"))
        rows = self._rows(order[group:].tolist(), first - int(ends[group - 1]) if group else first)
        scale = self.pairs / float(self.table.sums[2])
        blocks = rechunk(rows, self.block_pairs, Judgements.concatenate)
        for number, block in enumerate(blocks, start):
            shuffle = shuffled(stream(self.seed, "block", epoch, number), len(block))
            yield block[shuffle].doubled().scaled(scale)

    def _rows(self, groups: Iterable[int], skipped: int) -> Iterator[Judgements]:
        """The training rows of row groups, but for the first ones."""
        for _, said in self.table.file.judgements(groups):
            training = self.table.split.training(said)
            if skipped < len(training):
                yield training[skipped:]
            skipped = max(0, skipped - len(training))


def shuffled(rng: np.random.Generator, n: int) -> Indices:
    """The numbers 0 to n − 1 in random order, the same in every version of numpy.

    `pairlearn.randomness.permutation` sorts by 64 random bits; here it is 32, in two halves, which
    numpy sorts by their digits: a million numbers in two fifths of the time. Some 250 of these
    draw the same bits as another, and keep their order.
    """
    bits = rng.bit_generator.random_raw(n)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    high = (bits >> np.uint64(16)).astype(np.uint16)
    return np.asarray(order[np.argsort(high[order], kind="stable")])


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made in a thread while one is in use.

    An error of the thread comes up where its item would have. When nobody asks for more, the
    thread ends with the item that it is at.
    """
    done = object()
    with ThreadPoolExecutor(1, "pairlearn-read-ahead") as pool:
        ahead: Any = pool.submit(next, items, done)
        try:
            while (item := ahead.result()) is not done:
                ahead = pool.submit(next, items, done)
                yield item
        finally:
            ahead.cancel()
