"""What a fleet is made of: members in groups, with test sets; bad input never trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pairlearn.risks import Risk, Supervised
from pairlearn.training.batches import PairStream


@dataclass(frozen=True)
class Member:
    """One model of a fleet, which minimises a risk.

    Parameters
    ----------
    risk : Risk
    labels : array of shape (n, 2), or None
        The two judgements that the risk reads for each pair of the group: similarity and
        difference, or the two classes for `Supervised`. None for pairs of a stream.
    learning_rate, weight_decay : float
        Of Adam, with the decay in the gradient.
    seed : int
        Of the initial weights.
    held_prior : float, optional
        Class prior that mean(p) is held to, where no statement fixes the level.
    guiding_prior : float, optional
        Class prior that mean(p) is drawn to in the first epochs.
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

    def columns(self) -> NDArray[np.float64]:
        """The labels as two rows (2, n), classes as indicators of the positive one."""
        labels = np.asarray(self.labels, dtype=np.float64)
        for what, bad in (("missing (NaN)", np.isnan(labels)), ("infinite", np.isinf(labels))):
            if bad.any():
                row = int(bad.any(1).argmax())
                raise ValueError(f"labels of {self.risk} are {what} in row {row}")
        if isinstance(self.risk, Supervised):
            labels = (labels > 0).astype(np.float64)
        return np.ascontiguousarray(labels.T)


@dataclass(frozen=True)
class TestSet:
    """Labelled instances to measure accuracy on, with named subsets.

    Parameters
    ----------
    rows : array of int, shape (t,)
        Rows of the fleet's features.
    positive : array of bool, shape (t,)
        Their classes.
    subsets : mapping of str to array of int
        Positions in `rows`; "all" by default.
    thresholds : mapping of str to float
        Logits above which an instance of a subset counts as positive, where not zero.
    """

    __test__ = False  # pytest: not a test

    rows: Any
    positive: Any
    subsets: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Models that train on the same pairs in the same order.

    Parameters
    ----------
    pairs : array of int, shape (n, 2), or PairStream
        Rows of x and x' in the fleet's features. A stream brings the labels with it, and
        trains one member.
    members : sequence of Member
    seed : int
        Of the order of the batches.
    test : TestSet, optional
        Evaluated during training.
    kinds : sequence of str
        Kinds of the rows.
    columns : sequence of arrays of shape (n,)
        For each kind the weights of its rows, zero for the others; empty where all rows are
        of one kind and weight. A stream brings its own.
    """

    pairs: Any
    members: Sequence[Member]
    seed: int = 0
    test: TestSet | None = None
    kinds: Sequence[str] = ("both",)
    columns: Sequence[Any] = ()


def of_members(groups: Sequence[Group], value: Callable[[Member], float | None]) -> Tensor:
    """A number of all members (G, M), NaN where it is None and for idle places."""
    width = max(len(group.members) for group in groups)
    values = torch.full((len(groups), width), math.nan, dtype=torch.float64)
    for g, group in enumerate(groups):
        for m, member in enumerate(group.members):
            number = value(member)
            values[g, m] = math.nan if number is None else float(number)
    return values


def check_groups(groups: Sequence[Group], instances: int) -> None:
    """Refuse groups that cannot train together, naming what is wrong."""
    if not groups or not all(group.members for group in groups):
        raise ValueError("a fleet needs at least one group, and a group at least one member")
    if any(isinstance(group.pairs, PairStream) for group in groups):
        if len(groups) > 1 or len(groups[0].members) > 1 or groups[0].members[0].labels is not None:
            raise ValueError("a stream of pairs trains one member, and brings its labels with it")
        _check_tests([group.test for group in groups if group.test is not None], instances)
        return
    pairs = len(groups[0].pairs)
    for index, group in enumerate(groups):
        if tuple(group.kinds) != tuple(groups[0].kinds) or len(group.columns) not in (
            0,
            len(group.kinds),
        ):
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
    _check_tests([group.test for group in groups if group.test is not None], instances)


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


def _check_rows(what: str, rows: NDArray[Any], instances: int) -> None:
    if rows.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers; got {rows.dtype}")
    if rows.size and (rows.min() < 0 or rows.max() >= instances):
        raise ValueError(f"{what} point outside the {instances} instances")
