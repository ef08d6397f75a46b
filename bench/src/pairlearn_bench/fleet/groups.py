"""The data of a fleet: members in groups, their test sets, and batches of their pairs.

Pairs come from memory or from a stream of blocks. The batches depend only on the seed, the epoch
and the step, so that training can resume in the middle of an epoch. With several ranks each takes
its part of every batch. Bad input never trains.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairlearn.columns import Floats, Indices, first_rows
from pairlearn.judgements import Judgements
from pairlearn.randomness import permutation, stream
from pairlearn.risks import Risk, Supervised
from pairlearn.training.ranks import Ranks


@dataclass(frozen=True)
class Member:
    """One model of a fleet, and the risk that it minimises.

    Parameters
    ----------
    risk : Risk
    labels : array of shape (n, 2), or None
        The two values of each pair that the risk reads: similarity and difference, or the
        two classes for `Supervised`. None for the pairs of a stream.
    learning_rate, weight_decay : float
        Parameters of Adam, with the decay in the gradient.
    seed : int
        Seed of the initial weights.
    held_prior, guiding_prior : float, optional
        Class prior that mean(p) is held to where no statement fixes the level, and that it is
        drawn to in the first epochs.
    """

    risk: Risk
    labels: Any
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    seed: int = 0
    held_prior: float | None = None
    guiding_prior: float | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "weight_decay"):
            rate = getattr(self, name)
            if not (math.isfinite(rate) and rate >= 0):
                raise ValueError(f"{name} must be a number of at least 0; got {rate}")

    def values(self) -> Floats:
        """The labels (2, n), with classes as indicators of the positive one."""
        labels = np.asarray(self.labels, dtype=np.float64)
        for fault, bad in (("missing (NaN)", np.isnan(labels)), ("infinite", np.isinf(labels))):
            for row in first_rows(bad.any(1)):
                raise ValueError(f"labels of {self.risk} are {fault} in row {row}")
        if isinstance(self.risk, Supervised):
            labels = (labels > 0).astype(np.float64)
        return np.ascontiguousarray(labels.T)


@dataclass(frozen=True)
class TestSet:
    """Labelled instances to measure accuracy on, with named subsets.

    ``rows`` (t,) are rows of the fleet's features, and ``positive`` (t,) says whether each is
    positive; ``subsets`` are positions in ``rows`` by name, by default "all"; ``thresholds`` are
    the logits above which an instance of a subset counts as positive, by default zero.
    """

    __test__ = False  # pytest: not a test

    rows: Any
    positive: Any
    subsets: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def accuracy(self, logits: NDArray[Any]) -> dict[str, Floats]:
        """Accuracies (M,) on each subset of models with logits (M, t)."""
        return {
            name: (
                (logits[:, subset] > self.thresholds.get(name, 0.0)) == self.positive[subset]
            ).mean(-1)
            for name, subset in (self.subsets or {"all": slice(None)}).items()
        }


@dataclass(frozen=True)
class Group:
    """Models that train on the same pairs in the same order.

    Parameters
    ----------
    pairs : array of int, shape (n, 2), or PairStream
        Rows of x and x' in the fleet's features. A stream has its own labels and weights, and
        trains one member.
    members : sequence of Member
    seed : int
        Seed of the order of the batches.
    test : TestSet, optional
        Evaluated during training.
    kinds, columns : sequences of str and of arrays of shape (n,)
        Kinds of the rows, and for each the weights of its rows, zero for the others; no columns
        where all rows have one kind and weight.
    """

    pairs: Any
    members: Sequence[Member]
    seed: int = 0
    test: TestSet | None = None
    kinds: Sequence[str] = ("both",)
    columns: Sequence[Any] = ()


def of_members(groups: Sequence[Group], value: Callable[[Member], float | None]) -> Tensor:
    """A number of each member (G, M), NaN where it is None and in idle places."""
    width = max(len(group.members) for group in groups)
    values = torch.full((len(groups), width), math.nan, dtype=torch.float64)
    for g, group in enumerate(groups):
        for m, member in enumerate(group.members):
            number = value(member)
            values[g, m] = math.nan if number is None else float(number)
    return values


def check_groups(groups: Sequence[Group], instances: int) -> None:
    """Raise ValueError for groups that cannot train together."""
    if not groups or not all(group.members for group in groups):
        raise ValueError("a fleet needs at least one group, and a group at least one member")
    if any(isinstance(group.pairs, PairStream) for group in groups):
        if len(groups) > 1 or len(groups[0].members) > 1 or groups[0].members[0].labels is not None:
            raise ValueError("a stream of pairs trains one member, and has its own labels")
    else:
        _check_pairs(groups, instances)
    _check_tests([group.test for group in groups if group.test is not None], instances)


def _check_pairs(groups: Sequence[Group], instances: int) -> None:
    pairs, kinds = len(groups[0].pairs), tuple(groups[0].kinds)
    for index, group in enumerate(groups):
        if tuple(group.kinds) != kinds or len(group.columns) not in (0, len(kinds)):
            raise ValueError(
                f"the groups of a fleet must share their kinds of rows, with a column of weights "
                f"for each: group {index} has {tuple(group.kinds)} and {len(group.columns)} columns"
            )
        ends = np.asarray(group.pairs)
        if ends.shape != (pairs, 2) or pairs == 0:
            raise ValueError(
                f"pairs of group {index} must have shape ({pairs}, 2), n > 0; got {ends.shape}"
            )
        _check_rows(f"pairs of group {index}", ends, instances)
        for member in group.members:
            shape = np.shape(member.labels)
            if shape != (pairs, 2):
                raise ValueError(
                    f"labels of {member.risk} in group {index} must have shape ({pairs}, 2); "
                    f"got {shape}"
                )


def _check_tests(tests: list[TestSet], instances: int) -> None:
    for index, test in enumerate(tests):
        rows, positive = np.asarray(test.rows), np.asarray(test.positive)
        _check_rows(f"test rows of group {index}", rows, instances)
        if positive.dtype != np.bool_ or positive.shape != rows.shape or rows.ndim != 1:
            raise ValueError(
                f"test classes of group {index} must be booleans of shape {rows.shape}, true "
                f"for positive; got {positive.dtype} {positive.shape}"
            )
        for name, subset in test.subsets.items():
            if not len(subset):
                raise ValueError(f"test subset {name!r} of group {index} is empty")
            _check_rows(f"test subset {name!r} of group {index}", np.asarray(subset), len(rows))
        if len(rows) != len(tests[0].rows) or list(test.subsets) != list(tests[0].subsets):
            raise ValueError(
                f"the test sets of a fleet must share size and subsets: group 0 has "
                f"{len(tests[0].rows)} rows and subsets {list(tests[0].subsets)}, group {index} "
                f"{len(rows)} and {list(test.subsets)}"
            )


def _check_rows(name: str, rows: NDArray[Any], instances: int) -> None:
    if rows.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers; got {rows.dtype}")
    if rows.size and (rows.min() < 0 or rows.max() >= instances):
        raise ValueError(f"{name} point outside the {instances} instances")


@runtime_checkable
class PairStream(Protocol):
    """Judged pairs that are read block by block, since they may not fit into memory.

    An epoch has ``pairs`` rows; every block but its last has ``block_pairs``, a multiple of the
    batch size. ``fingerprint`` is the same for the same rows in the same order.
    """

    pairs: int
    block_pairs: int
    fingerprint: str

    def blocks(self, epoch: int, start: int) -> Iterator[Judgements]:
        """The shuffled blocks of an epoch from number `start` on; weights have mean one."""


class Batches(ABC):
    """The pairs of a fleet as tensors on its device, and positions in them for each step.

    ``batch_size`` counts pairs over all ranks. With ``pads`` batches are padded with pairs of
    weight zero, so that all steps have the same shape. ``tensors`` are both ends (G, n) of the
    pairs, their values u and v, and weights for each kind (G, M, n).
    """

    tensors: list[Tensor]

    def __init__(self, pairs: int, batch_size: int, ranks: Ranks, *, pads: bool) -> None:
        self.pairs, self.batch_size, self.ranks, self.pads = pairs, batch_size, ranks, pads
        self.steps = -(-pairs // batch_size)
        self.share = -(-batch_size // ranks.size)

    @property
    def values(self) -> list[Tensor]:
        """Values u and v of the pairs, each (G, M, n)."""
        return self.tensors[2:4]

    @abstractmethod
    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Positions (G, B) and weights (B,) of this rank's pairs for each step from `start` on."""

    def prepare(self, epoch: int) -> None:
        """Prepare an epoch while the device is busy."""
        return

    def _steps(self, order: Indices) -> list[tuple[Tensor, Tensor]]:
        """Positions and weights of this rank's pairs in each batch of an order (G, n) of pairs."""
        size, cut = self.batch_size, order.shape[1] // self.batch_size * self.batch_size
        chosen, weights, counts = [], [], []
        for batches in (order[:, :cut].reshape(len(order), -1, size), order[:, None, cut:]):
            if not batches.size:
                continue
            part = batches[..., self.ranks.part(batches.shape[-1])]
            # Every rank takes part in every sum: one without pairs takes a pair of weight zero.
            missing = (self.share if self.pads else max(part.shape[-1], 1)) - part.shape[-1]
            ones = np.pad(np.ones(part.shape[-1]), (0, missing))
            weights.append(np.tile(ones, part.shape[1]))
            chosen.append(np.pad(part, ((0, 0), (0, 0), (0, missing))).reshape(len(order), -1))
            counts += [len(ones)] * part.shape[1]
        like = self.values[0]
        positions = torch.from_numpy(np.concatenate(chosen, 1)).to(like.device)
        weight = torch.from_numpy(np.concatenate(weights)).to(like)
        return [*zip(torch.split(positions, counts, 1), torch.split(weight, counts), strict=True)]


class MemoryBatches(Batches):
    """All pairs in memory, shuffled for each epoch; groups with the same seed share the order."""

    def __init__(
        self,
        tensors: list[Tensor],
        seeds: Sequence[int],
        batch_size: int,
        ranks: Ranks,
        *,
        pads: bool,
    ) -> None:
        super().__init__(tensors[0].shape[1], batch_size, ranks, pads=pads)
        self.tensors, self.seeds = tensors, seeds
        self._next: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """As in `Batches`."""
        self.prepare(epoch)
        yield from self._next.pop(epoch)[start:]

    def prepare(self, epoch: int) -> None:
        """Put the order of an epoch's pairs on the device."""
        if epoch in self._next:
            return
        orders = {
            seed: permutation(stream(seed, "batches", epoch), self.pairs) for seed in {*self.seeds}
        }
        self._next = {epoch: self._steps(np.stack([orders[seed] for seed in self.seeds]))}


class StreamBatches(Batches):
    """Pairs of a stream, one block at a time on the device.

    ``kinds`` are those of the rows; the objective needs a column of weights for each of them.
    ``like`` has the dtype and device of the values.
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
        self.tensors = ends + [like.new_zeros(1, 1, size) for _ in range(2 + len(kinds))]

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """As in `Batches`."""
        per_block = max(1, self.source.block_pairs // self.batch_size)
        first, skipped = divmod(start, per_block)
        seen = first * self.source.block_pairs
        for block in self.source.blocks(epoch, first):
            self._load(block)
            seen += len(block)
            yield from self._steps(np.arange(len(block))[None])[skipped:]
            skipped = 0
        if seen != self.pairs:
            raise ValueError(f"the stream gave {seen:,} pairs instead of {self.pairs:,}")

    def _load(self, block: Judgements) -> None:
        weights = [np.where(block.of(name), block.weight, 0.0) for name in self.kinds]
        columns = [*block.ends.T, block.u, block.v, *weights]
        for tensor, column in zip(self.tensors, columns, strict=True):
            tensor[..., : len(column)].copy_(torch.from_numpy(np.ascontiguousarray(column)))
