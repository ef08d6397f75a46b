"""Fingerprints: of a file's bytes, and of a data set's content whatever file it came in."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Parameters
    ----------
    path : Path
        Which file.

    Returns
    -------
    str

    Examples
    --------
    >>> file_digest(Path(__file__)) == file_digest(Path(__file__))
    True
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def canonical_order(x: NDArray[np.uint8], y: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Order of the rows by label, then by their values from the first to the last.

    Copies of one data set whose rows stand in different orders agree after it. Rows that
    tie are equal in every value, so their order among themselves cannot matter.

    Parameters
    ----------
    x : ndarray of uint8, shape (n, ...)
        Instances.
    y : ndarray of uint8, shape (n,)
        Labels.

    Returns
    -------
    ndarray of int, shape (n,)

    Examples
    --------
    >>> x = np.array([[7, 1], [3, 9], [3, 2]], np.uint8)
    >>> canonical_order(x, np.array([0, 1, 1], np.uint8))
    array([0, 2, 1])
    """
    columns = x.reshape(len(x), -1).T
    return np.lexsort((*columns[::-1], y))


def content_digest(x: NDArray[np.uint8], y: NDArray[np.uint8], *, pooled: bool = False) -> str:
    """SHA-256 of a data set's content: type, shape and bytes of ``x``, then of ``y``.

    Parameters
    ----------
    x : ndarray of uint8, shape (n, ...)
        Instances.
    y : ndarray of uint8, shape (n,)
        Labels.
    pooled : bool
        Take the rows in :func:`canonical_order`. Sources of the pooled sets differ in
        their row order, which means nothing there; in an official split it does.

    Returns
    -------
    str

    Examples
    --------
    >>> x, y = np.array([[1], [2]], np.uint8), np.array([0, 1], np.uint8)
    >>> content_digest(x, y) == content_digest(x[::-1], y[::-1])
    False
    >>> content_digest(x, y, pooled=True) == content_digest(x[::-1], y[::-1], pooled=True)
    True
    """
    if pooled:
        order = canonical_order(x, y)
        x, y = x[order], y[order]
    digest = hashlib.sha256()
    for array in (x, y):
        digest.update(f"{array.dtype.name} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
