"""Items for a training that streams its pairs: features mapped from their file, ids looked up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import Ids, check_unique, placed, same_kind
from pairlearn.estimators.scaling import CHUNK, standardised
from pairlearn.tables import read_items
from pairlearn.tables.items import npy_items

__all__ = ["ItemIndex", "StreamItems", "mapped_features", "open_items"]

PathLike = str | os.PathLike[str]
Floats = NDArray[np.float64]
SPREAD = 8
"""Integer ids that range over less than this many times their number have a table of places."""


class ItemIndex:
    """Where items stand, by their ids.

    Parameters
    ----------
    ids : int or array of shape (m,)
        Ids of the items, each once; a number m stands for 0, 1, …, m − 1. Whole numbers
        need 8 bytes an item, text that of a hash table.

    Examples
    --------
    >>> import pyarrow
    >>> ItemIndex(np.array([30, 10])).rows(pyarrow.array([10, 20, 30]))
    array([ 1, -1,  0])
    >>> ItemIndex(np.array(["a", "b"])).rows(pyarrow.array(["b", "c"]))
    array([ 1, -1])
    """

    def __init__(self, ids: int | Ids) -> None:
        self.count = ids if isinstance(ids, int) else len(ids)
        self.ids: int | Ids = ids
        self._least, self._places = 0, np.empty(0, np.int64)
        self._order, self._sorted = np.empty(0, np.int64), np.empty(0, np.int64)
        self._names: Any = None
        if isinstance(ids, int):
            return
        if ids.dtype.kind != "i":
            import pyarrow

            self._names = pyarrow.array(ids)
            return
        whole = ids.astype(np.int64)
        least, most = int(whole.min()), int(whole.max())
        if np.array_equal(whole, np.arange(len(whole))):
            self.ids = len(whole)
        elif most - least < SPREAD * len(whole):
            self._least, self._places = least, np.full(most - least + 1, -1, np.int64)
            self._places[whole - least] = np.arange(len(whole))
        else:
            self._order = np.argsort(whole, kind="stable")
            self._sorted = whole[self._order]

    def rows(self, column: Any) -> NDArray[np.int64]:
        """Rows of the items in an Arrow array of ids without nulls, −1 for unknown ones."""
        import pyarrow
        from pyarrow import compute

        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        whole = pyarrow.types.is_integer(column.type)
        if self._names is None and whole:
            return self._of_integers(column.to_numpy(zero_copy_only=False))
        names = self._names
        if names is None:  # integers in the items, text in the pairs
            known = np.arange(self.ids) if isinstance(self.ids, int) else self.ids
            names = pyarrow.array(known.astype(np.str_))
        found = compute.index_in(column.cast(names.type), value_set=names)
        return np.asarray(compute.fill_null(found, -1), dtype=np.int64)

    def _of_integers(self, wanted: NDArray[Any]) -> NDArray[np.int64]:
        if isinstance(self.ids, int):
            known = (wanted >= 0) & (wanted < self.ids)
            if known.all():
                return wanted.astype(np.int64, copy=False)
            return np.where(known, wanted, -1).astype(np.int64)
        if len(self._places):
            place = wanted.astype(np.int64) - self._least
            known = (place >= 0) & (place < len(self._places)) & (wanted >= self._least)
            return np.where(known, self._places[np.where(known, place, 0)], -1)
        place = np.searchsorted(self._sorted, wanted).clip(max=len(self._sorted) - 1)
        return np.where(self._sorted[place] == wanted, self._order[place], -1)


@dataclass(frozen=True)
class StreamItems:
    """Items that pairs refer to.

    Attributes
    ----------
    path : Path
        Their file.
    features : array of shape (m, d)
        Mapped from the file if that is NPY, else in memory.
    names : tuple of str
        Of the features.
    index : ItemIndex
        Where each id stands.
    """

    path: Path
    features: NDArray[Any]
    names: tuple[str, ...]
    index: ItemIndex

    def __len__(self) -> int:
        return len(self.features)


def open_items(path: PathLike, ids: PathLike | None = None) -> StreamItems:
    """Check a file of items, and map its features where that can be done.

    Parameters
    ----------
    path, ids : path-like
        As in `pairlearn.tables.read_items`. Features of an ``.npy`` file stay in the file;
        those of other files are read into memory.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(3))
    ...     items = open_items(f"{folder}/x.npy")
    ...     len(items), items.names, type(items.features).__name__
    (3, ('x0', 'x1', 'x2'), 'memmap')
    """
    path = Path(path)
    if path.suffix.lower() != ".npy" or not path.is_file():
        table = read_items(path, ids)
        return StreamItems(path, table.features, table.names, ItemIndex(table.ids))
    known: list[Ids] = []
    names: tuple[str, ...] = ()
    for part in npy_items(path, None if ids is None else Path(ids)):  # which checks every row
        names = part.names
        if ids is not None:
            known.append(part.ids)
    features = np.load(path, mmap_mode="r", allow_pickle=False)
    if ids is None:
        return StreamItems(path, features, names, ItemIndex(len(features)))
    all_ids: Any = np.concatenate(same_kind(known))
    with placed(lambda row: f"{ids}, row {row + 1}"):
        check_unique("id", all_ids)
    return StreamItems(path, features, names, ItemIndex(all_ids))


@contextmanager
def mapped_features(
    features: NDArray[Any], mean: Floats, scale: Floats, scratch: PathLike | None = None
) -> Iterator[NDArray[np.float32]]:
    """Standardised features in float32, of a mapped array in a file of their own.

    That file has no name and is gone when the block ends, or the process.

    Parameters
    ----------
    features : array of shape (m, d)
        Mapped or not.
    mean, scale : array
        As `feature_scale` gives them; zero and one leave features as they are.
    scratch : path-like, optional
        Folder with room for m · d · 4 bytes; that for temporary files by default.

    Examples
    --------
    >>> with mapped_features(np.array([[1.0], [3.0]]), np.array([2.0]), np.ones(1)) as ready:
    ...     ready.ravel()
    array([-1.,  1.], dtype=float32)
    """
    if not isinstance(features, np.memmap):
        yield standardised(features, mean, scale)
        return
    with tempfile.TemporaryFile(dir=scratch, prefix="pairlearn-") as file:
        rows = max(1, CHUNK // features.shape[1])
        for start in range(0, len(features), rows):
            file.write(standardised(features[start : start + rows], mean, scale).data)
        file.flush()
        # Private pages: torch takes no array that it could not write to.
        yield np.memmap(file, np.float32, "c", shape=features.shape)
