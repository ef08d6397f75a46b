"""Items that a model was trained on: it does better on them than on others.

A fitted model keeps two hashes of each training item, one of its features and one of its
features and its id. Items without ids are recognised by their features.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "NO_ACCURACY",
    "SeenItemsWarning",
    "doubt_of_seen",
    "fingerprints",
    "row_hashes",
    "same_rows",
    "seen_items",
]

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

NO_ACCURACY = "this is not an accuracy"
"""How a doubt begins where all pairs have items of the training."""


class SeenItemsWarning(UserWarning):
    """A model is measured on items that it was trained on, which is not its accuracy."""


def row_hashes(features: Any, ids: Any = None, dtype: Any = np.float64) -> Indices:
    """64-bit hashes of the features of items, as numbers of a type, and of their ids as text.

    Examples
    --------
    >>> one, other, same = row_hashes(np.array([[0.1, 2], [0.1, 3], [0.1, 2]]))
    >>> one == other, one == same
    (np.False_, np.True_)
    """
    rows = np.asarray(features).reshape(len(features), -1)
    names = [b""] * len(rows) if ids is None else [str(i).encode() for i in np.asarray(ids)]
    hashes = np.empty(len(rows), np.int64)
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        data = (row.astype(dtype) + dtype(0)).tobytes()  # −0 is 0
        digest = blake2b(data + name, digest_size=8).digest()
        hashes[number] = int.from_bytes(digest, "little", signed=True)
    return hashes


def same_rows(features: Any) -> tuple[Indices, Indices]:
    """The first row of each distinct one, in their order, and which of those each row is.

    Examples
    --------
    >>> same_rows(np.array([[3.0], [1.0], [3.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    _, first, which = np.unique(row_hashes(features), return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order].astype(np.int64), place[which.reshape(-1)].astype(np.int64)


def fingerprints(features: Any, ids: Any = None) -> Indices:
    """What a model keeps of its training items: hashes (m, 2), the second 0 without ids.

    Features are compared in float32, as tables of items have them.
    """
    rows = row_hashes(features, dtype=np.float32)
    named = np.zeros_like(rows) if ids is None else row_hashes(features, ids, np.float32)
    return np.stack([rows, named], 1)


def seen_items(kept: Any, features: Any, ids: Any = None) -> Mask:
    """Which items a model was trained on; none where it keeps no fingerprints.

    Parameters
    ----------
    kept : array of shape (k, 2), or None
        The model's `fingerprints`.
    features : array of shape (m, d, ...)
        The items.
    ids : array of shape (m,), optional
        Their ids, which must then be the same too, if the model has any.

    Examples
    --------
    >>> kept = fingerprints(np.array([[1.0], [2.0]]), ["a", "b"])
    >>> seen_items(kept, np.array([[1.0], [2.0]]), ["a", "c"]), seen_items(kept, np.array([[2.0]]))
    (array([ True, False]), array([ True]))
    """
    if kept is None:
        return np.zeros(len(features), bool)
    kept = np.asarray(kept)
    if kept.ndim != 2 or kept.shape[1] != 2 or kept.dtype != np.int64:
        raise ValueError(
            "training_items_ must be int64 of shape (k, 2); got "
            f"{kept.dtype} of shape {kept.shape}: fit the model again"
        )
    named = ids is not None and bool(kept[:, 1].any())
    hashes = row_hashes(features, ids if named else None, np.float32)
    return np.isin(hashes, kept[:, int(named)])


def doubt_of_seen(new: Mask) -> str | None:
    """What is wrong with measuring on pairs, if something is.

    Parameters
    ----------
    new : array of bool, shape (n,)
        Pairs without an item that the model was trained on.

    Examples
    --------
    >>> doubt_of_seen(np.array([True, True, False]))
    'the model was trained on items of 1 of the 3 pairs, and does better on those: measured on \
the other 2'
    """
    old = int((~new).sum())
    if not old:
        return None
    if new.sum() < 2:
        return (
            f"{NO_ACCURACY}: the model was trained on items of {old:,} of the {len(new):,} pairs, "
            "and does better on those than on others. Split by items before training: "
            "`pairlearn split`, hold_out_items, or cv=ItemKFold()"
        )
    return (
        f"the model was trained on items of {old:,} of the {len(new):,} pairs, and does better on "
        f"those: measured on the other {int(new.sum()):,}"
    )
