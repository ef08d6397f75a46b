"""What a fleet needs of pairs that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "PairStream"]


@dataclass(frozen=True)
class Block:
    """Some pairs of a stream, in the order in which to train on them.

    Parameters
    ----------
    ends : array of int, shape (n, 2)
        Rows of x and x' in the fleet's features.
    u, v : array of shape (n,)
        The two judgements.
    columns : sequence of arrays of shape (n,)
        What the objective needs beside them.
    """

    ends: NDArray[np.int64]
    u: NDArray[Any]
    v: NDArray[Any]
    columns: Sequence[NDArray[Any]] = ()


@runtime_checkable
class PairStream(Protocol):
    """Judged pairs that are read a block at a time, more than memory may hold.

    Attributes
    ----------
    pairs : int
        Pairs in an epoch.
    block_pairs : int
        Pairs in every block of an epoch but its last: a multiple of the batch size.
    fingerprint : str
        The same for the same pairs in the same order.
    """

    pairs: int
    block_pairs: int
    fingerprint: str

    def blocks(self, epoch: int, start: int) -> Iterator[Block]:
        """The blocks of an epoch, shuffled, from number `start` on."""
