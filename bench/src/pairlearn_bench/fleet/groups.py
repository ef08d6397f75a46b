"""The data of a fleet: members in groups, their test sets, and batches of their pairs.

The batches depend only on the seed, the epoch and the step, so that training can resume in the
middle of an epoch. Bad input never trains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairlearn.columns import Floats, first_rows
from pairlearn.randomness import permutation, stream
from pairlearn.risks import Risk, Supervised


@dataclass(frozen=True)
class Member:
    """One model of a fleet, and the risk that it minimises.

    Parameters
    ----------
    risk : Risk
    labels : array of shape (n, 2)
        The two values of each pair that the risk reads: similarity and difference, or the
        two classes for `Supervised`.
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
    pairs : array of int, shape (n, 2)
        Rows of x and x' in the fleet's features.
    members : sequence of Member
    seed : int
        Seed of the order of the batches.
    test : TestSet, optional
        Evaluated during training.
    kinds, columns : sequences of str and of arrays of shape (n,)
        Kinds of the rows, and for each the weights of its rows, zero for the others; no columns
        where all rows have one kind and weight. Groups of a fleet may have different kinds.
    """

    pairs: Any
    members: Sequence[Member]
    seed: int = 0
    test: TestSet | None = None
    kinds: Sequence[str] = ("both",)
    columns: Sequence[Any] = ()

    def weights(self, name: str) -> Any:
        """Weights (n,) of the rows of a kind, zero for the others."""
        if name not in self.kinds:
            return np.zeros(len(self.pairs))
        return self.columns[self.kinds.index(name)] if self.columns else np.ones(len(self.pairs))


def of_members(groups: Sequence[Group], name: str) -> Tensor:
    """An attribute of each member (G, M), NaN where it is None and in idle places."""
    width = max(len(group.members) for group in groups)
    values = torch.full((len(groups), width), math.nan, dtype=torch.float64)
    for g, group in enumerate(groups):
        for m, member in enumerate(group.members):
            number = getattr(member, name)
            values[g, m] = math.nan if number is None else number
    return values


def check_groups(groups: Sequence[Group], instances: int) -> None:
    """Raise ValueError for groups that cannot train together."""
    if not groups or not all(group.members for group in groups):
        raise ValueError("a fleet needs at least one group, and a group at least one member")
    pairs = len(groups[0].pairs)
    for index, group in enumerate(groups):
        if len(group.columns) not in (0, len(group.kinds)):
            raise ValueError(
                f"a group needs a column of weights for each of its kinds of rows: group {index} "
                f"has {tuple(group.kinds)} and {len(group.columns)} columns"
            )
        ends = np.asarray(group.pairs)
        if ends.shape != (pairs, 2) or pairs == 0:
            raise ValueError(
                f"pairs of group {index} must have shape ({pairs}, 2), n > 0; got {ends.shape}"
            )
        if ends.dtype.kind not in "iu":
            raise ValueError(f"pairs of group {index} must be integers; got {ends.dtype}")
        if ends.min() < 0 or ends.max() >= instances:
            raise ValueError(f"pairs of group {index} point outside the {instances} instances")
        for member in group.members:
            shape = np.shape(member.labels)
            if shape != (pairs, 2):
                raise ValueError(
                    f"labels of {member.risk} in group {index} must have shape ({pairs}, 2); "
                    f"got {shape}"
                )


class Batches:
    """The pairs of a fleet as tensors on its device, and positions in them for each step.

    Pairs are shuffled for each epoch; groups with the same seed share the order. With ``pads`` a
    short last batch is padded with pairs of weight zero, so that all steps have the same shape.
    ``tensors`` are both ends (G, n) of the pairs, their values u and v, and weights for each kind
    (G, M, n).
    """

    def __init__(
        self, tensors: list[Tensor], seeds: Sequence[int], batch_size: int, *, pads: bool
    ) -> None:
        self.tensors, self.seeds, self.batch_size, self.pads = tensors, seeds, batch_size, pads
        self.pairs = tensors[0].shape[1]
        self.steps = -(-self.pairs // batch_size)
        self._next: dict[int, list[tuple[Tensor, Tensor]]] = {}

    @property
    def values(self) -> list[Tensor]:
        """Values u and v of the pairs, each (G, M, n)."""
        return self.tensors[2:4]

    def epoch(self, epoch: int, start: int = 0) -> list[tuple[Tensor, Tensor]]:
        """Positions (G, B) and weights (B,) of the pairs for each step from `start` on."""
        self.prepare(epoch)
        return self._next.pop(epoch)[start:]

    def prepare(self, epoch: int) -> None:
        """Put the order of an epoch's pairs on the device."""
        if epoch in self._next:
            return
        orders = {
            seed: permutation(stream(seed, "batches", epoch), self.pairs) for seed in {*self.seeds}
        }
        order = np.stack([orders[seed] for seed in self.seeds])
        padding = (self.steps * self.batch_size - self.pairs) * self.pads
        weight = np.pad(np.ones(self.pairs), (0, padding))
        positions = torch.from_numpy(np.pad(order, ((0, 0), (0, padding))))
        size, like = self.batch_size, self.values[0]
        chosen = torch.split(positions.to(like.device), size, 1)
        weights = torch.split(torch.from_numpy(weight).to(like), size)
        self._next = {epoch: [*zip(chosen, weights, strict=True)]}
