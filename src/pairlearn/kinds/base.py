"""A kind: what one sentence about items means.

Everything that reads, checks, learns from or simulates judgements goes over the registry
of kinds and asks them; nothing asks ``if kind ==``. A new kind is one file with a subclass
of `Kind` and one line in the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pairlearn.risks.base import Risk

__all__ = ["Column", "Kind", "divergence", "logarithm_guard"]

Floats = NDArray[np.float64]
TINY = 1e-7
"""Posteriors stay this far from 0 and 1 where their logarithm is asked for."""


@dataclass(frozen=True)
class Column:
    """One number that a statement has: its name in files, its range, and words for values.

    `place` is 0 for the statement's value u and 1 for v.

    Examples
    --------
    >>> preference = Column("preference", -1, 1, {"left": -1, "right": 1})
    >>> preference.name, preference.words["left"]
    ('preference', -1)
    """

    name: str
    low: float
    high: float
    words: Mapping[str, float] = field(default_factory=dict)
    place: int = 0


class Kind:
    """What a statement means: the columns it fills, its likelihood, what it leaves open.

    A statement is about an ordered pair (x, x') or, if `single`, about x alone, and has up
    to two values u and v. p and p' are the posteriors of a model, r and r' the true ones.

    Attributes
    ----------
    name : str
        As in messages and counts.
    columns : tuple of Column
        The file's columns that hold u and v.
    single : bool
        About one item. For training, single statements of a kind are put two in a row,
        and `table` reads the value of the second as v.
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    single: ClassVar[bool] = False

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """What such statements settle: the "level" of the posteriors, and their "side".

        Without a level the posteriors are known up to an added constant, and the class
        prior must be given; without a side up to an exchange of the classes, and the
        larger class must be given. `prior_known` is true for risks that have the prior.
        """
        return frozenset({"level", "side"})

    def table(self, risk: Risk) -> Tensor:
        """Coefficients (k, 8, 3) of the statement's partial risks under a risk."""
        raise TypeError(f"kind {self.name!r} has no table")

    def completes(self, risk: Risk) -> bool:
        """Whether `table` reads what `targets` makes of the values, and not the values."""
        return False

    def targets(self, left: Tensor, right: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Values for `table` that depend on the model's log-odds of both items."""
        return u, v

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Weights of (+, −) and (−, +) that follow from the values without a model."""
        return np.zeros_like(u), np.zeros_like(u)

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Targets of x and x': the model's posteriors p and q = p' given the statement."""
        raise TypeError(f"kind {self.name!r} does not complete posteriors")

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """How far the model is from the statements, 0 where they agree."""
        raise TypeError(f"kind {self.name!r} has no divergence")

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Values (n, 2) that an honest annotator would give for posteriors r and q = r'."""
        raise TypeError(f"kind {self.name!r} cannot be simulated")

    def __repr__(self) -> str:
        return f"<kind {self.name}>"


def divergence(share: Floats, model: Floats) -> Floats:
    """Of one outcome: share · log(share/model), 0 for an empty share."""
    share = np.maximum(share, 0)
    some = share > 0
    ratio = np.where(some, share, 1) / np.maximum(model, TINY * TINY)
    return np.where(some, share, 0) * np.log(ratio)


def logarithm_guard(p: Floats) -> Floats:
    """Probabilities kept from 0, whose logarithm is asked for."""
    return np.maximum(p, TINY)
