"""Which rows of a stream are for training, decided row by row, the same in every pass."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.data.sampling import stream
from pairlearn.estimators.table import Judgements

__all__ = ["Split", "chosen", "held_items"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """Rows to train on, to stop by and to measure with.

    Parameters
    ----------
    held : array of bool, shape (m,), optional
        Items that no training row may have. Rows with two of them are for measuring; rows
        with one are for nothing.
    validation : float
        Share of the unordered pairs among the others that early stopping looks at.
    seed : int
        Which those are follows from it.

    Examples
    --------
    >>> ends = np.array([[0, 1], [1, 2], [2, 3]])
    >>> said = Judgements(ends, *np.zeros((3, 3)), np.ones(3))
    >>> split = Split(np.array([False, False, True, True]))
    >>> split.training(said).ends.tolist(), split.measuring(said).ends.tolist()
    ([[0, 1]], [[2, 3]])
    """

    held: Mask | None = None
    validation: float = 0.0
    seed: int = 0

    def usable(self, said: Judgements) -> Judgements | None:
        """The rows without an item that is held out; None if there are none."""
        return said if self.held is None else chosen(said, self._open(said))

    def training(self, said: Judgements) -> Judgements | None:
        """The rows to train on; None if there are none."""
        if self.held is None and not self.validation:
            return said
        return chosen(said, self._open(said) & ~self._drawn(said))

    def validating(self, said: Judgements) -> Judgements | None:
        """The rows that early stopping looks at; None if there are none."""
        if not self.validation:
            return None
        return chosen(said, self._open(said) & self._drawn(said))

    def measuring(self, said: Judgements) -> Judgements | None:
        """Rows of two different items that are held out; None if there are none."""
        if self.held is None:
            return None
        left, right = said.ends.T
        return chosen(said, self.held[left] & self.held[right] & (left != right))

    def _open(self, said: Judgements) -> Mask:
        if self.held is None:
            return np.ones(len(said.ends), bool)
        return np.asarray(~self.held[said.ends].any(1))

    def _drawn(self, said: Judgements) -> Mask:
        """Pairs that a hash of their two items chooses, so that all rows of a pair go together."""
        if not self.validation:
            return np.zeros(len(said.ends), bool)
        low, high = np.sort(said.ends, axis=1).T.astype(np.uint64)
        seed = np.uint64(self.seed % 2**64)
        bits = _mixed(_mixed(_mixed(np.full(len(low), seed)) ^ low) ^ high)
        return np.asarray(bits < np.uint64(self.validation * 2.0**64))


def held_items(count: int, pairs: int, fraction: float, most: int, seed: int) -> Mask:
    """Items to hold out so that about a fraction of the pairs, and not too many, is measured with.

    A pair of random items is held out if both are, so that √f of the items is drawn.

    Parameters
    ----------
    count : int
        Items.
    pairs : int
        Pairs in the table.
    fraction : float
        The share of pairs wanted, in (0, 1).
    most : int
        The largest number of pairs wanted, about.
    seed : int
        The choice follows from it.

    Examples
    --------
    >>> int(held_items(10_000, 1_000_000, 0.2, 10_000, seed=0).sum())
    972
    """
    share = math.sqrt(min(fraction, most / pairs))
    bits = stream(seed, "split").bit_generator.random_raw(count)
    return np.asarray(bits < np.uint64(share * 2.0**64))


def chosen(said: Judgements, rows: Any) -> Judgements | None:
    """Some rows of what was said, by a mask; None if there are none."""
    if not rows.any():
        return None
    names = ("ends", "similarity", "difference", "preference", "weight")
    return replace(said, **{name: getattr(said, name)[rows] for name in names})


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on every bit given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed
