"""NPY files of features, mapped into memory and never unpickled."""

from __future__ import annotations

import math
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.tables.errors import TableError, placed
from pairlearn.tables.ids import Ids, as_ids
from pairlearn.tables.items import ItemTable, as_features, default_names

__all__ = ["npy_items"]

BATCH = 65536


def npy_items(path: Path, ids: Path | None) -> Iterator[ItemTable]:
    """The rows of a feature matrix, some at a time.

    Parameters
    ----------
    path : Path
        NPY file of shape (m, d).
    ids : Path, optional
        NPY file of m ids; 0, 1, …, m − 1 if not given.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.eye(2))
    ...     [items.ids for items in npy_items(Path(folder, "x.npy"), None)]
    [array([0, 1])]
    """
    features = _mapped(path)
    if features.ndim != 2:
        raise TableError(f"{path} has shape {features.shape}; features have shape (m, d)")
    if features.dtype.kind not in "fiub":
        raise TableError(f"{path} has the type {features.dtype}; features are numbers")
    m, d = features.shape
    if m == 0:
        raise TableError(f"{path} has no rows")
    if d == 0:
        raise TableError(f"{path} has no features")
    known = None if ids is None else _read_ids(ids, path, m)
    names = default_names(d)

    def place(row: int) -> str:
        return f"{path}, row {row + 1}"

    for start in range(0, m, BATCH):
        rows = slice(start, min(start + BATCH, m))
        with placed(place, start):
            part = np.array(as_features(names, features[rows]))
        some = np.arange(rows.start, rows.stop) if known is None else known[rows]
        yield ItemTable.trusted(some, part, names)


def _read_ids(path: Path, features: Path, m: int) -> Ids:
    array = _mapped(path)
    if array.ndim != 1:
        raise TableError(f"{path} has shape {array.shape}; ids have shape (m,)")
    if array.dtype.kind not in "iuU":
        raise TableError(f"{path} has the type {array.dtype}; ids are integers or text")
    if len(array) != m:
        raise TableError(f"{path} has {len(array)} ids, but {features} has {m} rows")
    with placed(lambda row: f"{path}, row {row + 1}"):
        return as_ids("id", np.array(array))


def _mapped(path: Path) -> NDArray[Any]:
    """The array of a file, without reading it; no more than its header is trusted."""
    shape, fortran, dtype, offset = _header(path)
    if dtype.hasobject:
        raise TableError(
            f"{path} holds Python objects, which could run code when read; save plain numbers"
        )
    size = path.stat().st_size
    # In Python's integers: numpy multiplies a shape in 64 bits.
    if min(shape, default=0) < 0 or offset + math.prod(shape) * dtype.itemsize > size:
        raise _damaged(path, f"shape {shape} in {size} bytes")
    try:
        if 0 in shape or dtype.itemsize == 0:
            return np.empty(shape, dtype=dtype)
        order: Literal["F", "C"] = "F" if fortran else "C"
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)
    except (ValueError, OSError, OverflowError, TypeError) as error:
        raise _damaged(path, str(error)) from None


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran's order, type, and where the data begin."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        # numpy warns of headers that Python 2 wrote, and reads them all the same.
        with warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(file)
            if version not in readers:
                raise ValueError(f"version {version} of the format")
            return *readers[version](file), file.tell()
    except (*_HEADER_ERRORS, tokenize.TokenError) as error:
        raise _damaged(path, str(error)) from None


_HEADER_ERRORS = (
    ValueError,
    TypeError,
    SyntaxError,
    EOFError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""What numpy raises on a header, which it parses as Python."""


def _damaged(path: Path, reason: str) -> TableError:
    first = (reason.splitlines() or ["no reason given"])[0].rstrip(".")
    return TableError(f"{path} is not an NPY file, or is damaged ({first})")
