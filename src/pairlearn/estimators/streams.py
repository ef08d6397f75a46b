"""Training on files of pairs of any size in constant memory.

A first pass checks and counts all rows and keeps a sample. Then each epoch visits the row groups of
the file in a new order, cuts their rows into blocks, and shuffles each block. Both orders follow
from the seed, the epoch and the number of the block, so that an epoch can be resumed at any block:
only the rows before it in the same row group are decoded again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from pairlearn.columns import Floats, Indices, Mask, TableError
from pairlearn.estimators.features import FeatureStep
from pairlearn.estimators.files import PairFile, PathLike
from pairlearn.estimators.parameters import check_parameters, is_scikit_learn
from pairlearn.estimators.population import Majority
from pairlearn.estimators.splits import Connected, Split, item_ends
from pairlearn.estimators.table import HeldOut, Table
from pairlearn.io import PairTable, read_items
from pairlearn.io.read import rechunk
from pairlearn.judgements import Judgements
from pairlearn.judgements.kinds import KINDS
from pairlearn.prior import estimate_prior
from pairlearn.progress import Progress, bar
from pairlearn.randomness import permutation, stream
from pairlearn.training import Checkpoint, PairStream, Recipe

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

T = TypeVar("T")
BLOCK_PAIRS = 1 << 20
"""About how many pairs are shuffled together; some four blocks are in memory at a time."""
SAMPLE_PAIRS = 1 << 16
"""About how many rows the sample in memory has."""
VALIDATION_PAIRS = 1 << 16
"""About the most pairs that early stopping looks at."""
MEASURED_PAIRS = 100_000
"""About the most pairs of a file that the accuracy is measured with."""


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
        As in `pairlearn.io.read_items`. Features of an ``.npy`` file stay in the file.
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
    >>> from pairlearn.simulation import simulate
    >>> from pairlearn.io import write_items, write_pairs
    >>> simulated = simulate(pairs=200)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items = write_items(simulated.items, f"{folder}/items.csv")
    ...     pairs = write_pairs(simulated.pairs, f"{folder}/pairs.parquet")
    ...     classifier = PairClassifier(model="linear", epochs=5, random_state=0)
    ...     fit_file(classifier, items, pairs).n_iter_
    5
    """
    check_parameters(classifier)
    if is_scikit_learn(classifier.model):
        raise ValueError(
            f"model {type(classifier.model).__name__} is a scikit-learn classifier, which needs "
            "all pairs in memory: use PairClassifier.fit, or model='linear' or 'mlp-bn'"
        )
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
    callbacks = classifier.callbacks
    classifier.callbacks = [*(callbacks or ()), progress, checkpoint]
    try:
        classifier.fit(table, None)
    finally:
        classifier.callbacks = callbacks


class NothingLeftError(TableError):
    """All rows are held out."""


@dataclass(frozen=True)
class StreamedTable(Table):
    """Input of `fit` whose rows stay in their file, after a first pass over it.

    ``fingerprint`` is the same for the same file, items and split. Over the rows that are not for
    measuring, ``instance_weight`` (2, m) is the weight of each item in pairs and alone, and
    ``has_statement`` (m,) marks items with a statement other than their group's share; over all
    rows, ``mentioned`` (m,) marks items, and ``connected`` are their components. ``counts`` are of
    kinds, of "soft" statements, of "self_pairs", and of "pairs" not for measuring; ``sums`` those
    of w s and of w over similarities, and of w over training rows. Kept in memory are random
    training rows (``sampled``), the rows for early stopping (``validating``) and for measuring
    (``measuring``), and the ``first`` training row of each kind. `judged` is the sample, with at
    least one row of every kind.
    """

    file: PairFile = field(kw_only=True)
    split: Split = field(kw_only=True)
    fingerprint: str = field(kw_only=True)
    block_pairs: int = BLOCK_PAIRS
    instance_weight: Floats = field(kw_only=True)
    has_statement: Mask = field(kw_only=True)
    mentioned: Mask = field(kw_only=True)
    connected: Connected = field(kw_only=True)
    group_training: list[int] = field(kw_only=True)
    counts: Counter[str] = field(default_factory=Counter)
    sums: Floats = field(default_factory=lambda: np.zeros(3))
    sampled: list[Judgements] = field(default_factory=list)
    validating: list[Judgements] = field(default_factory=list)
    measuring: list[Judgements] = field(default_factory=list)
    first: dict[str, Judgements] = field(default_factory=dict)

    @property
    def in_memory(self) -> bool:
        """False: `judged` is a sample."""
        return False

    @property
    def training(self) -> int:
        """Number of training rows."""
        return sum(self.group_training)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the training rows, in the order of the registry."""
        return tuple(kind.name for kind in KINDS if kind.name in self.first)

    @property
    def used(self) -> Indices:
        """As in `Table`."""
        return np.flatnonzero(self.has_statement)

    def sample(self) -> PairTable:
        """The sampled rows as a table with ids."""
        rows = Judgements.concatenate(self.sampled)
        table = PairTable.from_judgements(rows, self.file.items.ids)
        return table.changed(ignored=self.file.ignored())

    def item_weight(self) -> Floats:
        """As in `Table`."""
        in_pairs, alone = self.instance_weight
        return np.asarray(in_pairs if in_pairs.any() else alone)

    def rows(self, labelled_weight: float | str) -> Judgements:
        """The sample."""
        return self.judged

    def held_out(
        self, rows: Judgements, fraction: float, seed: int
    ) -> tuple[Judgements, Judgements | None]:
        """The sample, and the rows for early stopping whose kinds are trained on."""
        held = Judgements.concatenate([rows[:0], *self.validating]).doubled()
        held = held[held.of(*self.kinds)]
        return rows, held if len(held) else None

    def hold_out(self, fraction: float, seed: int) -> HeldOut | None:
        """As in `Table`, by another pass over the file; about `MEASURED_PAIRS` at most."""
        held = self.connected.held_out(fraction, MEASURED_PAIRS, seed)
        try:
            rest = survey_pairs(self.file, replace(self.split, held=held), shown=True)
        except NothingLeftError:
            return None
        judged = Judgements.concatenate(rest.measuring)
        training = rest.counts["pairs"]
        dropped = self.counts["pairs"] - training - len(judged)
        rest = replace(rest, scratch=self.scratch, block_pairs=self.block_pairs)
        return HeldOut(rest, judged, training, dropped, fraction * self.file.rows > MEASURED_PAIRS)

    def prior(self, rows: Judgements, majority: Majority) -> float:
        """As in `Table`, by the similarities of all rows that are not for measuring."""
        total, weight, _ = self.sums
        if not weight:
            return super().prior(rows, majority)  # which raises the error
        # The estimate depends on the mean alone; only its interval needs the rows.
        return estimate_prior(np.full(2, total / weight), majority).value

    def count(self, rows: Judgements) -> int:
        """As in `Table`."""
        return self.training

    def source(self, recipe: Recipe) -> PairStream:
        """As in `Table`."""
        return ParquetPairStream(self, recipe.batch_size, recipe.seed)

    def add(self, group: int, rows: Judgements, drawn: Mask) -> None:
        """Add some rows of a row group; those drawn go into the sample too."""
        self.mentioned[item_ends(rows)] = True
        if self.split.held is None:
            self.connected.add(rows.ends[~rows.single])
        self.counts.update(rows.counts())
        self.counts["soft"] += int(rows.soft.sum())
        self.counts["self_pairs"] += int((rows.ends[:, 0] == rows.ends[:, 1]).sum())
        usable, training = self.split.usable(rows), self.split.training(rows)
        self.sampled.append(self.split.training(rows[drawn]))
        if self.split.validation:
            self.validating.append(self.split.validating(rows))
        self.measuring.append(self.split.measuring(rows))
        for weight, mask in zip(self.instance_weight, (~usable.single, usable.single), strict=True):
            if mask.any():
                weight += usable[mask].item_weight(len(weight))
        self.has_statement[item_ends(usable[~(usable.joint & usable.single)])] = True
        similar = usable[usable.has("similarity")]
        total = training.doubled().weight.sum()
        self.sums[:] += similar.weight @ similar.u, similar.weight.sum(), total
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
    """Read a file once, to train this classifier; `scratch` is as in `fit_file`."""
    seed = int(check_random_state(classifier.random_state).randint(2**31 - 1))
    share = 0.0
    if classifier.early_stopping:
        share = min(float(classifier.validation_fraction), VALIDATION_PAIRS / file.rows)
    table = survey_pairs(file, Split(None, share, seed), shown=shown)
    folder = None if scratch is None else Path(scratch)
    return replace(table, scratch=folder, block_pairs=block_pairs)


def survey_pairs(
    file: PairFile, split: Split | None = None, *, sample: int = SAMPLE_PAIRS, shown: bool = False
) -> StreamedTable:
    """Read a file of pairs once: check every row, count, and keep about ``sample`` rows.

    Without a split all rows are for training. A bar is `shown` on a terminal. Raises TableError for
    the first bad row, NothingLeftError if none is left for training.
    """
    split = split or Split()
    digest = hashlib.sha256(f"{file.digest()} {split.validation} {split.seed}".encode())
    digest.update(b"" if split.held is None else split.held.data)
    items, groups = file.items, len(file.group_rows)
    table = StreamedTable(
        items.features,
        Judgements.silent([]),
        step=FeatureStep.of_items(items),
        ids=items.ids,
        seed=split.seed,  # without a random_state `fit` would draw another one
        file=file,
        split=split,
        fingerprint=digest.hexdigest(),
        instance_weight=np.zeros((2, len(items))),
        has_statement=np.zeros(len(items), bool),
        mentioned=np.zeros(len(items), bool),
        connected=Connected(len(items)),
        group_training=[0] * groups,
    )
    share, current, done = min(1.0, sample / file.rows), -1, 0
    with bar("looking through", file.rows, unit="rows", shown=shown) as progress:
        for group, rows in file.judgements(range(groups)):
            if group != current:
                current, rng = group, stream(split.seed, "sample", group)
            table.add(group, rows, rng.bit_generator.random_raw(len(rows)) / 2.0**64 < share)
            done += len(rows)
            if progress is not None:
                progress(done)
    if not table.training:
        raise NothingLeftError(f"{file.path} has no row that is left for training")
    sampled = Judgements.concatenate(table.sampled)
    missing = [row for name, row in table.first.items() if name not in sampled.kinds()]
    return replace(table, judged=Judgements.concatenate([sampled, *missing]))


class ParquetPairStream:
    """The training rows of a Parquet file as a `pairlearn.training.PairStream`."""

    def __init__(self, table: StreamedTable, batch_size: int, seed: int) -> None:
        self.table, self.seed, self.pairs = table, seed, table.training
        batch_size = min(batch_size, self.pairs)
        self.block_pairs = max(1, table.block_pairs // batch_size) * batch_size
        order = f"{table.fingerprint} {seed} {self.block_pairs}"
        self.fingerprint = hashlib.sha256(order.encode()).hexdigest()

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
        """The training rows of row groups, without the first ones."""
        for _, rows in self.table.file.judgements(groups):
            training = self.table.split.training(rows)
            if skipped < len(training):
                yield training[skipped:]
            skipped = max(0, skipped - len(training))


def shuffled(rng: np.random.Generator, n: int) -> Indices:
    """Random permutation of n numbers, the same in every version of numpy.

    `pairlearn.randomness.permutation` sorts by 64 random bits; this sorts by 32, in two halves, for
    which numpy has a radix sort: a million numbers take two fifths of the time. Some 250 of these
    draw the same bits as another, and keep their order.
    """
    bits = rng.bit_generator.random_raw(n)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    high = (bits >> np.uint64(16)).astype(np.uint16)
    return np.asarray(order[np.argsort(high[order], kind="stable")])


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, computing the next one in a thread.

    An error of the thread is raised in place of its item. When the iteration is abandoned, the
    thread ends after its current item.
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
