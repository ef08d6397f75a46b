"""Training on files of pairs of any size in constant memory.

A first pass checks and counts all rows and keeps a sample. Then an epoch visits the row groups of
the file in an order of its own. Their rows are cut into blocks of S rows, and each block is
shuffled. Both orders follow from the seed, the epoch and the number of the block, so that an epoch
can be resumed at any block: only what comes before it in the same row group is decoded once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from pairlearn.columns import Floats, Indices
from pairlearn.estimators.features import FeatureStep
from pairlearn.estimators.instances import CHUNK, fingerprints
from pairlearn.estimators.pair_files import PairFile, PathLike, open_items
from pairlearn.estimators.parameters import check_parameters, is_scikit_learn
from pairlearn.estimators.survey import Survey, survey_for
from pairlearn.estimators.table import CLASSES, Table
from pairlearn.judgements import Judgements
from pairlearn.progress import Progress
from pairlearn.randomness import permutation, stream
from pairlearn.tables.read import rechunked
from pairlearn.training import Checkpoint, PairStream, Recipe

if TYPE_CHECKING:
    from pairlearn.estimators.classifier import PairClassifier

T = TypeVar("T")
BLOCK_PAIRS = 1 << 20
"""Pairs that are shuffled together, about; some four blocks are in memory at a time."""


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
    survey = survey_for(classifier, PairFile(Path(pairs), open_items(items, ids), noisy=noisy))
    fit_survey(classifier, survey, progress, checkpoint, scratch, block_pairs)
    return classifier


def fit_survey(
    classifier: PairClassifier,
    survey: Survey,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    scratch: PathLike | None = None,
    block_pairs: int = BLOCK_PAIRS,
) -> None:
    """Fit to a file that `survey_for` looked through for the same classifier."""
    own = classifier.callbacks
    classifier.callbacks = [*(own or ()), *filter(None, [progress, checkpoint])]
    try:
        classifier.fit(streamed_table(survey, scratch, block_pairs), None)
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


@dataclass(frozen=True)
class StreamedTable(Table):
    """What `fit` learns from where the rows stay in their file: `judged` is a sample of them."""

    survey: Survey = field(kw_only=True)
    block_pairs: int = BLOCK_PAIRS

    def item_weight(self) -> Floats:
        """As in `Table`."""
        return self.survey.instance_weight

    def fingerprints(self) -> Indices:
        """As in `Table`, of features that are read in parts."""
        used, ids = np.flatnonzero(self.survey.instance_weight), self.survey.file.items.ids
        parts = [used[start : start + CHUNK] for start in range(0, len(used), CHUNK)]
        hashes = [fingerprints(self.features[part], ids[part]) for part in parts]
        return np.concatenate([np.empty((0, 2), np.int64), *hashes])

    def rows(self, labelled_weight: float | str) -> Judgements:
        """The sample."""
        return self.judged

    def held_out(
        self, rows: Judgements, fraction: float, seed: int
    ) -> tuple[Judgements, Judgements | None]:
        """The sample, and the rows of the kinds that are trained on that were drawn before."""
        held = Judgements.concatenate([rows[:0], *self.survey.validating]).doubled()
        held = held[held.of(*self.survey.kinds)]
        return rows, held if len(held) else None

    def prior(self, rows: Judgements, majority: Literal["positive", "negative"]) -> float:
        """As in `Table`, by all rows."""
        return self.survey.prior(majority)

    def count(self, rows: Judgements) -> int:
        """As in `Table`."""
        return self.survey.training

    def source(self, recipe: Recipe) -> PairStream:
        """As in `Table`."""
        return ParquetPairStream(
            self.survey, recipe.batch_size, recipe.seed, block_pairs=self.block_pairs
        )


def streamed_table(
    survey: Survey, scratch: PathLike | None = None, block_pairs: int = BLOCK_PAIRS
) -> StreamedTable:
    """The table of a file that was looked through."""
    items, step = survey.file.items, FeatureStep()
    step.take(items.names, items.encoder)
    return StreamedTable(
        items.features,
        survey.sample_rows(),
        None,
        CLASSES,
        step,
        # The seed of the survey: without a random_state another one would be drawn.
        seed=survey.split.seed,
        scratch=None if scratch is None else Path(scratch),
        survey=survey,
        block_pairs=block_pairs,
    )


class ParquetPairStream:
    """The training rows of a surveyed Parquet file as a `pairlearn.training.PairStream`.

    About ``block_pairs`` pairs are shuffled together.
    """

    def __init__(
        self, survey: Survey, batch_size: int, seed: int, *, block_pairs: int = BLOCK_PAIRS
    ) -> None:
        self.survey, self.seed, self.pairs = survey, seed, survey.training
        batch_size = min(batch_size, self.pairs)
        self.block_pairs = max(1, block_pairs // batch_size) * batch_size
        about = f"{survey.fingerprint} {seed} {self.block_pairs}"
        self.fingerprint = hashlib.sha256(about.encode()).hexdigest()

    def blocks(self, epoch: int, start: int) -> Iterator[Judgements]:
        """As in `PairStream`; the next block is read while one is in use."""
        return read_ahead(self._blocks(epoch, start))

    def _blocks(self, epoch: int, start: int) -> Iterator[Judgements]:
        counts = np.asarray(self.survey.group_training)
        order = permutation(stream(self.seed, "row groups", epoch), len(counts))
        ends = np.cumsum(counts[order])
        first = start * self.block_pairs
        group = int(np.searchsorted(ends, first, side="right"))
        rows = self._rows(order[group:].tolist(), first - int(ends[group - 1]) if group else first)
        scale = self.pairs / self.survey.weight
        blocks = rechunked(rows, self.block_pairs, Judgements.concatenate)
        for number, block in enumerate(blocks, start):
            shuffle = shuffled(stream(self.seed, "block", epoch, number), len(block))
            yield block[shuffle].doubled().scaled(scale)

    def _rows(self, groups: Iterable[int], skipped: int) -> Iterator[Judgements]:
        """The training rows of row groups, but for the first ones."""
        for _, said in self.survey.file.judgements(groups):
            training = self.survey.split.training(said)
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
