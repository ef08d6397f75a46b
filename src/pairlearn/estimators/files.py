"""Files that need not fit into memory: judged pairs to learn from, items to predict."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from pairlearn.columns import (
    Floats,
    Ids,
    Indices,
    Mask,
    RowError,
    check_share,
    first_rows,
    locate_errors,
    quote,
    unknown_id,
)
from pairlearn.estimators.prediction import PairPredictor
from pairlearn.io import ItemTable, PairTable, TableError, iter_items, iter_pairs, open_rows
from pairlearn.io.pairs import check_pairs
from pairlearn.io.read import find_pair_columns, read_statements
from pairlearn.io.scales import Scale, rescale
from pairlearn.io.sources import ParquetSource, open_source, suffix_of
from pairlearn.io.write import file_columns
from pairlearn.judgements import Judgements

PathLike = str | os.PathLike[str]
BATCH = 1 << 17
"""Most rows decoded at a time."""
SHOWN = 5
"""Columns listed in a note."""
NUMBERS = 1 << 20
"""Features predicted at a time."""
MOST_COMPARED = 10_000_000
"""Rows of predictions whose ids are compared, at 8 bytes each."""
NO_ANNOTATORS = "the column annotator is not read from a stream: all answers count as one person's"


class ItemIndex:
    """Rows of items by their unique ids; the ids 0, 1, …, m − 1 need no search."""

    def __init__(self, ids: Ids) -> None:
        # Whole numbers need 16 bytes an item, text a hash table.
        self.ids, self.whole = ids, ids.dtype.kind == "i"
        self.counts = self.whole and np.array_equal(ids, np.arange(len(ids)))
        if self.whole and not self.counts:
            self._order = np.argsort(ids, kind="stable")
            self._sorted: Any = ids[self._order]

    def rows(self, column: Any) -> Indices:
        """Rows of the items in an Arrow array of ids; −1 for unknown ids and nulls."""
        import pyarrow
        from pyarrow import compute

        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if self.whole and pyarrow.types.is_integer(column.type):
            known = np.asarray(column.is_valid())
            wanted = column.fill_null(0).to_numpy(zero_copy_only=False)
            if self.counts:
                known &= (wanted >= 0) & (wanted < len(self.ids))
                return np.where(known, wanted, -1).astype(np.int64)
            place = np.searchsorted(self._sorted, wanted).clip(max=len(self._sorted) - 1)
            return np.where(known & (self._sorted[place] == wanted), self._order[place], -1)
        names = pyarrow.array(self.ids.astype(np.str_))
        rows = compute.index_in(column.cast(names.type), value_set=names)
        return np.asarray(compute.fill_null(rows, -1), dtype=np.int64)


class PairFile:
    """A Parquet file of judged pairs of items.

    ``noisy`` and ``scales`` are as in `pairlearn.io.read_pairs`; ``group_rows`` counts the rows
    of each row group.
    """

    def __init__(
        self,
        path: Path,
        items: ItemTable,
        *,
        noisy: bool = False,
        scales: Sequence[Scale | None] = (None, None),
    ) -> None:
        self.path, self.items, self.noisy, self.scales = Path(path), items, noisy, scales
        self.index = ItemIndex(items.ids)
        if self.path.suffix.lower() != ".parquet":
            raise TableError(
                f"{path}: pairs are streamed from Parquet files; "
                f"pairlearn.estimators.rewrite_pairs({str(path)!r}, 'pairs.parquet') makes one"
            )
        source = open_source(self.path, "streamed pairs")
        assert isinstance(source, ParquetSource)
        self._source = source
        self._names = [name for name in find_pair_columns(source) if name != "annotator"]
        self.notes = [NO_ANNOTATORS] * ("annotator" in source.names)
        self._ignored: dict[int, Mapping[str, int]] = {}
        self.group_rows = source.group_rows
        self.rows = sum(self.group_rows)
        if not self.rows:
            raise TableError(f"{path} has a header but no rows")
        self._starts = np.cumsum([0, *self.group_rows])
        self._state = self._stat()

    def judgements(self, groups: Iterable[int]) -> Iterator[tuple[int, Judgements]]:
        """Number and statements of row groups, in parts; TableError for bad rows or changes."""
        if self._stat() != self._state:
            raise TableError(f"{self.path} was changed while it was being read: start anew")
        group, done = -1, 0
        for number, columns in self._source.group_batches(self._names, groups, BATCH):
            done = done if number == group else 0
            group = number
            start = int(self._starts[group]) + done
            with locate_errors(self._source.place, start):
                rows, self._ignored[start] = self._statements(columns)
            done += len(columns["left"])
            yield group, rows

    def digest(self) -> str:
        """SHA-256 of the file, the scales and the ids of the items."""
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(",".join(map(str, self.scales)).encode())
        ids = self.items.ids
        digest.update(
            str(len(ids)).encode() if self.index.counts else np.ascontiguousarray(ids).data
        )
        return digest.hexdigest()

    def ignored(self) -> dict[str, int]:
        """As `PairTable.ignored`, for the rows that were read so far."""
        return dict(sum(map(Counter, self._ignored.values()), Counter[str]()))

    def _statements(self, columns: dict[str, Any]) -> tuple[Judgements, Mapping[str, int]]:
        """Statements of a batch of rows, checked as by `read_pairs`, and what it ignores."""
        alone = _is_empty(columns["right"])
        left = self._find_items("left", columns["left"], np.zeros_like(alone))
        right = self._find_items("right", columns["right"], alone)
        values = read_statements(self._source, columns, alone)
        table = rescale(PairTable.trusted(left=left, right=right, **values), *self.scales)
        check_pairs(table, alone, noisy=self.noisy)
        ends = np.stack([left, right]).T
        rows = Judgements.from_columns(ends, table.statements(), table.weight, whole=False)
        return rows, table.ignored

    def _find_items(self, side: str, column: Any, empty: Mask) -> Indices:
        rows = self.index.rows(column)
        for row in first_rows((rows < 0) & ~empty):
            value = column[row].as_py()
            if value is None:
                raise RowError(row, f"{side} is empty; every row needs it")
            raise RowError(row, unknown_id(side, value, self.items.ids, self.items.path))
        return rows

    def _stat(self) -> tuple[int, int]:
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns


def _is_empty(ids: Any) -> Mask:
    """Mask of the empty ids in an Arrow array."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_integer(ids.type):
        return np.asarray(ids.is_null())
    return np.asarray(compute.equal(ids.cast("string").fill_null(""), ""))


def rewrite_pairs(source: PathLike, out: PathLike, *, rows: int = 1 << 17) -> int:
    r"""Write a table of pairs as Parquet in row groups of equal size, in constant memory.

    Parameters
    ----------
    source, out : path-like
        A ``.csv`` or ``.parquet`` file of pairs, and another ``.parquet`` file.
    rows : int
        Rows of a row group. How many there are in all is returned.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     csv = Path(folder, "pairs.csv")
    ...     _ = csv.write_text("left,right,similarity\n7,9,0.8\n9,4,0.1\n4,7,1\n")
    ...     rewrite_pairs(csv, Path(folder, "pairs.parquet"), rows=2)
    3
    """
    source, out = Path(source), Path(out)
    suffix_of(out, "streamed pairs", (".parquet",))
    if out.exists() and source.exists() and out.samefile(source):
        raise TableError(f"{out} is what is read here: choose another file to write")
    tables = iter_pairs(source, rows, noisy=True)
    first = next(tables)
    with open_rows(out, list(first.columns())) as written:
        for table in chain([first], tables):
            written.write(file_columns(table))
        return written.count


@dataclass(frozen=True)
class Predicted:
    """Rows that `predict_file` wrote, how many of them are positive, and notes."""

    rows: int
    positive: int
    notes: tuple[str, ...] = ()


def predict_file(
    classifier: PairPredictor,
    items: PathLike,
    out: PathLike,
    *,
    ids: PathLike | None = None,
    threshold: float = 0.5,
    progress: Callable[[int], None] | None = None,
) -> Predicted:
    """Predict a table of items from file to file.

    Writes the columns ``id``, ``label`` (of `classes_`) and ``probability`` (of the positive
    class), in the order of the items. The file appears when it is complete.

    Parameters
    ----------
    classifier : PairClassifier
        Fitted.
    items, ids : path-like
        As in `pairlearn.io.iter_items`. Columns are found by their names; those that the
        model was not fitted to are left out with a note.
    out : path-like
        The ``.csv`` or ``.parquet`` file.
    threshold : float
        Items with a higher probability are called positive.
    progress : callable, optional
        Called repeatedly with the number of rows done.
    """
    check_share("threshold", threshold)
    cut = logit(threshold)
    batch_rows = min(max(NUMBERS // math.prod(classifier.instance_shape_), 64), 65536)
    batches = iter_items(items, batch_rows, ids, columns=classifier.columns())
    positive, far, notes = 0, 0, tuple[str, ...]()
    codes = [np.empty(0, np.int64)]
    far_columns = np.zeros(math.prod(classifier.instance_shape_), bool)
    with open_rows(out, ["id", "label", "probability"]) as rows:
        for batch in batches:
            z = log_odds(classifier, batch, items)
            above = z > cut
            label = classifier.classes_[above.astype(np.intp)]
            rows.write({"id": batch.ids, "label": label, "probability": expit(z)})
            positive, notes = positive + int(above.sum()), batch.notes
            strange = classifier.strange(batch.features)
            far, far_columns = far + int(strange.any(1).sum()), far_columns | strange.any(0)
            columns = np.array(batch.names)[far_columns].tolist()
            if rows.count <= MOST_COMPARED:
                codes.append(_id_codes(batch.ids))
            if progress is not None:
                progress(rows.count)
    if repeated := sum(map(len, codes)) - len(np.unique(np.concatenate(codes))):
        notes += (f"{items}: ids come again in {repeated:,} rows: the predictions have them again",)
    if far:
        listed = ", ".join(columns[:SHOWN]) + ", …" * (len(columns) > SHOWN)
        notes += (
            f"{items}: {far:,} of {rows.count:,} rows have values far outside of those in "
            f"training, in {len(columns):,} of {len(far_columns):,} columns ({listed}): do not "
            "rely on their predictions",
        )
    return Predicted(rows.count, positive, notes)


def _id_codes(ids: NDArray[Any]) -> Indices:
    """Integers that are equal where ids are, but for colliding hashes."""
    if ids.dtype.kind == "i":
        return np.asarray(ids, np.int64)
    return np.array([hash(name) for name in ids.tolist()], np.int64)


def log_odds(classifier: PairPredictor, items: ItemTable, source: PathLike) -> Floats:
    """Log-odds of items from a file that was read with the columns of the classifier.

    Raises TableError if the number of features is not that of training, or the model overflows.
    """
    wanted = math.prod(classifier.instance_shape_)
    if items.features.shape[1] != wanted:
        raise TableError(
            f"{source} has {items.features.shape[1]} features, and the model was fitted to {wanted}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if classifier.features is None:
            z = classifier.log_odds(items.features.reshape(-1, *classifier.instance_shape_))
        else:
            z = classifier.log_odds(classifier._instances(items.features))
    for row in first_rows(~np.isfinite(z)):
        raise TableError(
            f"{source}: the item {quote(items.ids[row].item())} gets log-odds of {z[row]}: its "
            "features are far outside of those in training"
        )
    return z
