"""Which pairs a fleet sees in which step: from memory, or from a stream of blocks.

Both give batches that depend on the seed, the epoch and the step alone, so that training can
go on in the middle of an epoch. With several ranks each takes its part of every batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairlearn.judgements import Judgements
from pairlearn.randomness import permutation, stream
from pairlearn.training.ranks import Ranks


@runtime_checkable
class PairStream(Protocol):
    """Judged pairs that are read a block at a time, more than memory may hold.

    An epoch has ``pairs`` rows; every block but its last has ``block_pairs``, a multiple of the
    batch size. ``fingerprint`` is the same for the same rows in the same order.
    """

    pairs: int
    block_pairs: int
    fingerprint: str

    def blocks(self, epoch: int, start: int) -> Iterator[Judgements]:
        """The blocks of an epoch, shuffled, from number `start` on; weights have mean one."""


class Batches(ABC):
    """The pairs of a fleet as tensors on its device, and positions in them for each step.

    ``batch_size`` counts pairs over all ranks. With ``pads`` batches are filled up with pairs of
    weight zero, so that all steps have the same shape. ``held`` has both ends (G, n) of pairs,
    their two judgements and further columns (G, M, n).
    """

    held: list[Tensor]

    def __init__(self, pairs: int, batch_size: int, ranks: Ranks, *, pads: bool) -> None:
        self.pairs, self.batch_size, self.ranks, self.pads = pairs, batch_size, ranks, pads
        self.steps = -(-pairs // batch_size)
        self.share = -(-batch_size // ranks.size)

    @abstractmethod
    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Positions (G, B) and weights (B,) of this rank's pairs in each step from `start` on."""

    def prepare(self, epoch: int) -> None:
        """Do ahead what can be done while the device is busy: here nothing."""
        return

    def _parts(
        self, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], list[int]]:
        """The pairs of this rank in all batches in a row, their weights, and how many in each."""
        size, n = self.batch_size, order.shape[1]
        if self.pads and self.ranks.size == 1:
            missing = -n % size
            order = np.pad(order, ((0, 0), (0, missing)))
            weight = np.pad(np.ones(n), (0, missing))
            return order, weight, [size] * (len(weight) // size)
        chosen, weights, counts = [], [], []
        for start in range(0, n, size):
            batch = order[:, start : start + size]
            part = batch[:, self.ranks.part(batch.shape[1])]
            # Every rank takes part in every sum: one without a pair takes one of weight zero.
            missing = (self.share if self.pads else max(part.shape[1], 1)) - part.shape[1]
            weights.append(np.pad(np.ones(part.shape[1]), (0, missing)))
            chosen.append(np.pad(part, ((0, 0), (0, missing))))
            counts.append(part.shape[1] + missing)
        return np.concatenate(chosen, 1), np.concatenate(weights), counts


class MemoryBatches(Batches):
    """All pairs in memory, shuffled anew for each epoch; groups of one seed share the order."""

    def __init__(
        self,
        held: list[Tensor],
        seeds: Sequence[int],
        batch_size: int,
        ranks: Ranks,
        *,
        pads: bool,
    ) -> None:
        super().__init__(held[0].shape[1], batch_size, ranks, pads=pads)
        self.held, self.seeds = held, seeds
        self._next: dict[int, tuple[Tensor, Tensor, list[int]]] = {}

    def restart(self, held: Sequence[Tensor], seeds: Sequence[int]) -> None:
        """Take other pairs of the same number, in the same place."""
        for tensor, new in zip(self.held, held, strict=True):
            tensor.copy_(new)
        self.seeds, self._next = seeds, {}

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """As in `Batches`."""
        self.prepare(epoch)
        chosen, weight, counts = self._next.pop(epoch)
        parts = zip(torch.split(chosen, counts, 1), torch.split(weight, counts), strict=True)
        for step, part in enumerate(parts):
            if step >= start:
                yield part

    def prepare(self, epoch: int) -> None:
        """Put an epoch's order of the pairs on the device."""
        if epoch in self._next:
            return
        orders = {
            seed: permutation(stream(seed, "batches", epoch), self.pairs) for seed in {*self.seeds}
        }
        order, weight, counts = self._parts(np.stack([orders[seed] for seed in self.seeds]))
        like = self.held[2]
        chosen = torch.from_numpy(order).to(like.device)
        self._next = {epoch: (chosen, torch.from_numpy(weight).to(like), counts)}


class StreamBatches(Batches):
    """Pairs of a stream: one block at a time is on the device.

    ``kinds`` are those of the rows, for each of which the objective needs a column of weights;
    ``like`` has the type and device of the judgements.
    """

    def __init__(
        self,
        source: PairStream,
        batch_size: int,
        ranks: Ranks,
        kinds: Sequence[str],
        like: Tensor,
        *,
        pads: bool,
    ) -> None:
        super().__init__(source.pairs, batch_size, ranks, pads=pads)
        if source.block_pairs % batch_size and source.block_pairs < source.pairs:
            raise ValueError(
                f"blocks of {source.block_pairs} pairs do not divide into batches of {batch_size}"
            )
        self.source, self.kinds = source, kinds
        size = min(source.block_pairs, source.pairs)
        ends = [torch.zeros(1, size, dtype=torch.int64, device=like.device) for _ in range(2)]
        self.held = ends + [like.new_zeros(1, 1, size) for _ in range(2 + len(kinds))]

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """As in `Batches`."""
        per_block = max(1, self.source.block_pairs // self.batch_size)
        first, skipped = divmod(start, per_block)
        seen = first * self.source.block_pairs
        for block in self.source.blocks(epoch, first):
            self._take(block)
            seen += len(block)
            order, weight, counts = self._parts(np.arange(len(block))[None])
            chosen = torch.split(torch.from_numpy(order).to(self.held[0].device), counts, 1)
            weights = torch.split(torch.from_numpy(weight).to(self.held[2]), counts)
            yield from zip(chosen[skipped:], weights[skipped:], strict=True)
            skipped = 0
        if seen != self.pairs:
            raise ValueError(f"the stream gave {seen:,} pairs in place of {self.pairs:,}")

    def _take(self, block: Judgements) -> None:
        weights = [np.where(block.of(name), block.weight, 0.0) for name in self.kinds]
        columns = [*block.ends.T, block.u, block.v, *weights]
        for tensor, column in zip(self.held, columns, strict=True):
            tensor[..., : len(column)].copy_(torch.from_numpy(np.ascontiguousarray(column)))
