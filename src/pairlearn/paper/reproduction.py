"""Ours against the published numbers, cell by cell.

A cell agrees if it lies within what rounding, small differences of protocol and chance allow:

    |ours − published| ≤ 0.006 + 2 √(σ²/n + σ_paper²/5),

with n seeds of ours (five, as in the paper, unless chosen otherwise).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pairlearn.paper.cells import (
    PUBLISHED_SEEDS,
    WITHOUT_PRIOR,
    Cell,
    PublishedCell,
    match,
    place,
)

BASE_TOLERANCE = 0.006
REQUIRED_SHARE = 0.85
WORST_ALLOWED = 0.02
ON_OTHER_IMAGES = ("cifar10",)
"""Data sets whose published numbers are on other images than the proper ones."""
ROUNDING = 1e-9
"""Of sums of decimal fractions."""


@dataclass(frozen=True)
class ComparedCell:
    """A published mean and ours, and how far apart they may be.

    ``is_copy``: the published numbers repeat those of another noise, and count for nothing.
    ``is_steady``: a method that hardly depends on chance, supervised or with ABS. ``variant``: that
    ours is on images as published, with which network.

    Examples
    --------
    >>> cell = ComparedCell("mnist", 0.2, 1.0, 0.0, "Sconf-ABS", 0.960, 0.970, 0.009)
    >>> round(cell.difference, 3), cell.ok
    (0.01, False)
    """

    dataset: str
    prior: float
    prior_factor: float
    label_noise: float
    method: str
    published: float
    ours: float
    tolerance: float
    is_copy: bool = False
    is_steady: bool = False
    variant: str = ""

    @classmethod
    def of(cls, cell: Cell, published: PublishedCell) -> ComparedCell:
        """Compare one cell."""
        return cls(
            published.dataset,
            published.prior,
            published.prior_factor,
            published.label_noise,
            method=cell.method.title,
            published=published.mean,
            ours=cell.mean,
            tolerance=tolerance(cell.std, len(cell.seeds), published.std),
            is_copy=published.copy_of is not None,
            is_steady=cell.method.correction == "abs" or not cell.method.is_weak,
            variant=cell.config.variant,
        )

    @property
    def difference(self) -> float:
        """Ours less the published."""
        return self.ours - self.published

    @property
    def counts(self) -> bool:
        """Whether it says anything: no copy, and on the same images."""
        return not self.is_copy and is_comparable(self)

    @property
    def ok(self) -> bool:
        """Whether they agree."""
        return abs(self.difference) <= self.tolerance + ROUNDING


@dataclass(frozen=True)
class Comparison:
    """All cells that are both published and ours; ``absent`` counts published ones not run."""

    cells: tuple[ComparedCell, ...]
    absent: int

    @property
    def evidence(self) -> tuple[ComparedCell, ...]:
        """The cells that count: no copies, none on other images."""
        return tuple(cell for cell in self.cells if cell.counts)

    @property
    def share(self) -> float | None:
        """Share of the cells that agree; None without cells."""
        cells = self.evidence
        return sum(cell.ok for cell in cells) / len(cells) if cells else None

    @property
    def worst(self) -> ComparedCell | None:
        """The supervised or ABS cell that is the furthest off."""
        steady = [cell for cell in self.evidence if cell.is_steady]
        return max(steady, key=lambda cell: abs(cell.difference), default=None)

    @property
    def ok(self) -> bool:
        """Whether enough cells agree and no supervised or ABS cell is far off."""
        enough = self.share is not None and self.share >= REQUIRED_SHARE - ROUNDING
        far = self.worst is not None and abs(self.worst.difference) > WORST_ALLOWED + ROUNDING
        return enough and not far


def is_comparable(item: Any) -> bool:
    """Whether published numbers are on the images of a run, or of a compared cell."""
    return item.dataset not in ON_OTHER_IMAGES or bool(item.variant)


def tolerance(std: float, seeds: int, published_std: float) -> float:
    """How far a mean may be from the published one.

    Both are population standard deviations over seeds, the published one over five.

    Examples
    --------
    >>> round(tolerance(0.003, 5, 0.004), 6)  # 0.006 + 2·0.005/√5
    0.010472
    """
    return BASE_TOLERANCE + 2 * math.sqrt(std**2 / seeds + published_std**2 / PUBLISHED_SEEDS)


def compare_with_published(cells: Iterable[Cell], published: Sequence[PublishedCell]) -> Comparison:
    """Compare cells of one test subset with :func:`published_accuracy` or `published_robustness`.

    Cells that were never published are passed over.

    Examples
    --------
    >>> from pairlearn.paper import published_accuracy
    >>> compare_with_published([], published_accuracy()).absent
    360
    """
    matched = match(cells, published)
    absent = len(published) - len(set(matched.values()))
    return Comparison(tuple(ComparedCell.of(*pair) for pair in matched.items()), absent)


AnyCell = TypeVar("AnyCell", Cell, PublishedCell)


def best_of(cells: Iterable[AnyCell]) -> dict[Any, AnyCell]:
    """The best of the cells in each place, whatever prior its estimator was given."""
    best: dict[Any, AnyCell] = {}
    for cell in cells:
        at = place(cell, WITHOUT_PRIOR)
        if at not in best or cell.mean > best[at].mean:
            best[at] = cell
    return best
