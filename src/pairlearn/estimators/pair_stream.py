"""Judged pairs of a Parquet file, a block at a time.

An epoch visits the row groups of the file in an order of its own. Their rows, one after the
other, are cut into blocks of S rows, and each block is shuffled. Both orders follow from the
seed, the epoch and the number of the block, so that an epoch can be taken up at any block:
what comes before it in the same row group is decoded once more, and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pairlearn.columns import RowError, placed, shown
from pairlearn.estimators.stream_items import StreamItems
from pairlearn.judgements import Judgements
from pairlearn.randomness import permutation, stream
from pairlearn.tables import PairTable, TableError
from pairlearn.tables.pairs import check_pairs, columns_about
from pairlearn.tables.read import named_pairs, statements
from pairlearn.tables.sources import ParquetSource, open_source
from pairlearn.training.stream import Block

if TYPE_CHECKING:
    from pairlearn.estimators.survey import Survey

__all__ = ["BLOCK_PAIRS", "PairFile", "ParquetPairStream", "read_ahead", "shuffled"]

T = TypeVar("T")

BLOCK_PAIRS = 1 << 20
"""Pairs that are shuffled together, about; some four blocks are in memory at a time."""
BATCH = 1 << 17
"""Most rows that are decoded at a time."""


class PairFile:
    """A Parquet file of judged pairs, its ids looked up among items.

    Parameters
    ----------
    path : Path
        The file.
    items : StreamItems
        Where the ids are found.
    noisy : bool
        As in `pairlearn.tables.read_pairs`.

    Attributes
    ----------
    group_rows : list of int
        Rows in each row group.
    rows : int
        Rows of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.estimators.stream_items import open_items
    >>> from pairlearn.tables import write_pairs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     np.save(f"{folder}/ids.npy", np.array(["a", "b", "c"]))
    ...     table = PairTable(["c", "b"], ["a", "c"], [0.5, 0.9], None)
    ...     path = write_pairs(table, f"{folder}/pairs.parquet")
    ...     file = PairFile(path, open_items(f"{folder}/x.npy", f"{folder}/ids.npy"))
    ...     [said.ends.tolist() for _, said in file.judgements([0])]
    [[[2, 0], [1, 2]]]
    """

    def __init__(self, path: Path, items: StreamItems, *, noisy: bool = False) -> None:
        self.path, self.items, self.noisy = Path(path), items, noisy
        if self.path.suffix.lower() != ".parquet":
            raise TableError(
                f"{path}: pairs are streamed from Parquet files; "
                f"pairlearn.estimators.rewrite_pairs({str(path)!r}, 'pairs.parquet') makes one"
            )
        source = open_source(self.path, "streamed pairs")
        assert isinstance(source, ParquetSource)
        self._source = source
        unused = {"annotator", *columns_about(single=True)}
        self._names = [name for name in named_pairs(source) if name not in unused]
        self.group_rows = source.group_rows
        self.rows = sum(self.group_rows)
        if not self.rows:
            raise TableError(f"{path} has a header but no rows")
        self._starts = np.cumsum([0, *self.group_rows])
        self._state = self._stat()

    def judgements(self, groups: Iterable[int]) -> Iterator[tuple[int, Judgements]]:
        """What was said in some row groups, each with its number, some rows at a time.

        Raises
        ------
        TableError
            For the first bad row, or if the file is another than it was.
        """
        if self._stat() != self._state:
            raise TableError(f"{self.path} was changed while it was being read: start anew")
        group, done = -1, 0
        for number, columns in self._source.group_batches(self._names, groups, BATCH):
            done = done if number == group else 0
            group = number
            with placed(self._source.place, int(self._starts[group]) + done):
                said = self._said(columns)
            done += len(columns["left"])
            yield group, said

    def digest(self) -> str:
        """SHA-256 of the file, and of what its ids stand for."""
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        ids = self.items.index.ids
        digest.update(str(ids).encode() if isinstance(ids, int) else np.ascontiguousarray(ids).data)
        return digest.hexdigest()

    def _said(self, columns: dict[str, Any]) -> Judgements:
        """A batch of rows, checked as `read_pairs` does."""
        ends = [self._rows_of(side, columns[side]) for side in ("left", "right")]
        said = statements(self._source, columns)
        table = PairTable.trusted(left=ends[0], right=ends[1], **said)
        check_pairs(table, noisy=self.noisy)
        return Judgements.from_columns(np.stack(ends).T, table.said(), table.weight)

    def _rows_of(self, side: str, column: Any) -> NDArray[np.int64]:
        if column.null_count:
            row = int(np.asarray(column.is_null()).argmax())
            raise RowError(row, f"{side} is empty; every row needs it")
        rows = self.items.index.rows(column)
        if rows.size and rows.min() < 0:
            row = int((rows < 0).argmax())
            value = shown(column[row].as_py())
            raise RowError(row, f"{side} {value} is not among the items in {self.items.path}")
        return rows

    def _stat(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns


class ParquetPairStream:
    """The training rows of a Parquet file as a `pairlearn.training.PairStream`.

    Parameters
    ----------
    survey : Survey
        Of the file; says which of its rows are for training, and how many.
    batch_size : int
        Pairs in a step.
    seed : int
        Everything random follows from it.
    block_pairs : int
        About how many pairs are shuffled together.
    dtype : dtype
        Of judgements and weights.

    Attributes
    ----------
    pairs, block_pairs, fingerprint
        As in `PairStream`.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.estimators.stream_items import open_items
    >>> from pairlearn.estimators.survey import survey_pairs
    >>> from pairlearn.tables import write_pairs
    >>> table = PairTable(range(5), range(1, 6), np.arange(5) / 8, np.zeros(5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(6))
    ...     path = write_pairs(table, f"{folder}/pairs.parquet")
    ...     survey = survey_pairs(PairFile(path, open_items(f"{folder}/x.npy")))
    ...     source = ParquetPairStream(survey, batch_size=2, seed=0, block_pairs=4)
    ...     [block.u.tolist() for block in source.blocks(epoch=0, start=0)]
    [[0.125, 0.0, 0.25, 0.375], [0.5]]
    """

    def __init__(
        self,
        survey: Survey,
        batch_size: int,
        seed: int,
        *,
        block_pairs: int = BLOCK_PAIRS,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.survey, self.seed, self.dtype = survey, seed, np.dtype(dtype)
        self.pairs = survey.training
        batch_size = min(batch_size, self.pairs)
        self.block_pairs = max(1, block_pairs // batch_size) * batch_size
        about = f"{survey.fingerprint} {seed} {self.block_pairs} {self.dtype}"
        self.fingerprint = hashlib.sha256(about.encode()).hexdigest()

    def blocks(self, epoch: int, start: int) -> Iterator[Block]:
        """As in `PairStream`; the next block is read while one is in use."""
        return read_ahead(self._blocks(epoch, start))

    def _blocks(self, epoch: int, start: int) -> Iterator[Block]:
        counts = np.asarray(self.survey.group_training)
        order = permutation(stream(self.seed, "row groups", epoch), len(counts))
        ends = np.cumsum(counts[order])
        first = start * self.block_pairs
        group = int(np.searchsorted(ends, first, side="right"))
        skipped = first - int(ends[group - 1]) if group else first
        number, size = start, self._size(start)
        if not size:
            return
        block, order_in, filled = self._empty(size), self._order(epoch, number, size), 0
        for rows in self._rows(order[group:].tolist()):
            begin = min(skipped, len(rows))
            skipped -= begin
            while begin < len(rows):
                if not size:
                    raise TableError(f"{self.survey.file.path} has more rows than it had")
                count = min(len(rows) - begin, size - filled)
                self._fill(block, order_in[filled : filled + count], rows[begin : begin + count])
                begin, filled = begin + count, filled + count
                if filled == size:
                    yield block
                    number, filled = number + 1, 0
                    size = self._size(number)
                    # Of its own: the one before is still in use.
                    block, order_in = self._empty(size), self._order(epoch, number, size)

    def _rows(self, groups: list[int]) -> Iterator[Judgements]:
        """The training rows of row groups."""
        for _, said in self.survey.file.judgements(groups):
            if (kept := self.survey.split.training(said)) is not None:
                yield kept

    def _size(self, number: int) -> int:
        return min(self.block_pairs, max(0, self.pairs - number * self.block_pairs))

    def _order(self, epoch: int, number: int, size: int) -> NDArray[np.int64]:
        return shuffled(stream(self.seed, "block", epoch, number), size)

    def _empty(self, size: int) -> Block:
        # Both ends in a row each, as they are used.
        numbers = np.empty((2 + len(self.survey.kinds), size), self.dtype)
        return Block(np.empty((2, size), np.int64).T, numbers[0], numbers[1], [*numbers[2:]])

    def _fill(self, block: Block, places: NDArray[np.int64], rows: Judgements) -> None:
        """Put rows where the order of the block has them."""
        for side in (0, 1):
            block.ends[:, side][places] = rows.ends[:, side]
        block.u[places], block.v[places] = rows.u, rows.v
        weight = rows.weight * (self.pairs / self.survey.weight)
        for column, kind in zip(block.columns, self.survey.kinds, strict=True):
            told = rows.of(kind)
            column[places] = weight if told.all() else np.where(told, weight, 0.0)


def shuffled(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """The numbers 0 to n − 1 in random order, the same in every version of numpy.

    `pairlearn.data.sampling.permutation` sorts by 64 random bits; here it is 32, in two halves,
    which numpy sorts by their digits: a million numbers in two fifths of the time. Some 250 of
    these draw the same bits as another, and keep their order.

    Examples
    --------
    >>> shuffled(stream(0, "block"), 5).tolist()
    [1, 0, 2, 4, 3]
    """
    bits = rng.bit_generator.random_raw(n)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    high = (bits >> np.uint64(16)).astype(np.uint16)
    return np.asarray(order[np.argsort(high[order], kind="stable")])


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made in a thread while one is in use.

    An error of the thread comes up where its item would have. When nobody asks for more, the
    thread ends with the item that it is at.

    Examples
    --------
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
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
