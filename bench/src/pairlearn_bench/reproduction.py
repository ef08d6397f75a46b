"""Compare our numbers with the published ones, cell by cell.

A cell agrees if it is within what rounding, small differences of protocol and chance allow:

    |ours − published| ≤ 0.006 + 2 √(σ²/n + σ_paper²/5),

with n seeds of ours (by default five, as in the paper).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from pairlearn_bench.cells import (
    PUBLISHED_SEEDS,
    Cell,
    PublishedCell,
    dataset_title,
    departures,
    describe,
    match,
)
from pairlearn_bench.runs import PUBLISHED_IMAGES
from pairlearn_bench.tables import aligned

BASE_TOLERANCE = 0.006
REQUIRED_SHARE = 0.85
WORST_ALLOWED = 0.02
ON_OTHER_IMAGES = ("cifar10",)
"""Data sets whose published numbers were measured on scrambled images."""
ROUNDING = 1e-9  # of sums of decimal fractions


@dataclass(frozen=True)
class ComparedCell:
    """A published mean and ours, and the tolerance for their difference.

    ``is_copy``: the published numbers repeat those of another noise and are no evidence.
    ``is_steady``: the method hardly depends on chance: supervised or with ABS. ``variant``:
    as in :class:`Run`. ``changes``: how the training departs from the paper's, in words.

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
    changes: tuple[str, ...] = ()

    @classmethod
    def of(cls, cell: Cell, published: PublishedCell) -> ComparedCell:
        """Compare a cell with the published one."""
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
            changes=cell.config.changes,
        )

    @property
    def difference(self) -> float:
        """Our mean less the published one."""
        return self.ours - self.published

    @property
    def counts(self) -> bool:
        """Whether it is evidence: not a copy, and on the same images."""
        return not self.is_copy and is_comparable(self)

    @property
    def ok(self) -> bool:
        """Whether the means agree."""
        return abs(self.difference) <= self.tolerance + ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"difference": self.difference, "ok": self.ok}


@dataclass(frozen=True)
class Comparison:
    """All cells that are both published and run; ``absent`` counts published cells not run."""

    cells: tuple[ComparedCell, ...]
    absent: int

    @property
    def evidence(self) -> tuple[ComparedCell, ...]:
        """The cells that count: no copies, none on other images."""
        return tuple(cell for cell in self.cells if cell.counts)

    @property
    def share(self) -> float | None:
        """Share of the cells that agree; None without cells."""
        return fmean(cell.ok for cell in self.evidence) if self.evidence else None

    @property
    def worst(self) -> ComparedCell | None:
        """The supervised or ABS cell with the largest difference."""
        steady = [cell for cell in self.evidence if cell.is_steady]
        return max(steady, key=lambda cell: abs(cell.difference), default=None)

    @property
    def ok(self) -> bool:
        """Whether enough cells agree and no supervised or ABS cell is far off."""
        enough = self.share is not None and self.share >= REQUIRED_SHARE - ROUNDING
        far = self.worst is not None and abs(self.worst.difference) > WORST_ALLOWED + ROUNDING
        return enough and not far

    @property
    def passes(self) -> bool:
        """Whether the comparison is ok or has no evidence."""
        return self.ok or not self.evidence

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ok": self.passes,
            "share_within_tolerance": self.share,
            "worst_steady": self.worst and self.worst.to_dict(),
            "absent": self.absent,
            "cells": [cell.to_dict() for cell in self.cells],
        }

    def __str__(self) -> str:
        """A Markdown table, followed by a summary."""
        rows = [
            {
                "data set": dataset_title(cell.dataset, cell.variant),
                "π₊": f"{cell.prior:g}",
                "ε": f"{cell.prior_factor:g}",
                "σ": f"{cell.label_noise:g}",
                "method": cell.method,
                "published": f"{cell.published:.3f}",
                "ours": f"{cell.ours:.4f}",
                "difference": f"{cell.difference:+.4f}",
                "tolerance": f"{cell.tolerance:.4f}",
                "ok": "copy" if cell.is_copy else _OK[cell.ok if cell.counts else None],
            }
            for cell in self.cells
        ]
        noisy = any((row["ε"], row["σ"]) != ("1", "0") for row in rows)
        shown = [name for name in rows[0] if noisy or name not in ("ε", "σ")]
        table = aligned(shown, [[row[name] for name in shown] for row in rows])
        return "\n".join([table, "", *self._summary()])

    def _summary(self) -> list[str]:
        """Lines on how many cells agree, the worst one, and those left out."""
        lines = []
        if self.share is not None:
            count = f"{sum(cell.ok for cell in self.evidence)} of {len(self.evidence)}"
            share = f"{self.share:.1%} (at least {REQUIRED_SHARE:.0%} wanted)"
            lines.append(f"Within tolerance: {count} cells, {share}")
        if copies := sum(cell.is_copy for cell in self.cells):
            lines.append(f"Left out, published numbers copied from a smaller noise: {copies} cells")
        if others := sum(not (cell.is_copy or cell.counts) for cell in self.cells):
            lines.append(f"Left out, published on other images: {others} cells")
        if worst := self.worst:
            cell = f"{describe(worst)}, {worst.method} (at most {WORST_ALLOWED:g} wanted)"
            lines.append(f"Furthest supervised or ABS cell: {worst.difference:+.4f}, {cell}")
        lines += departures("accuracy", self.cells)
        if self.absent:
            lines.append(f"Published cells without runs of ours: {self.absent}")
        return lines


_OK = {True: "yes", False: "NO", None: "–"}


def is_comparable(item: Any) -> bool:
    """Whether a run or a compared cell uses the images of the published numbers."""
    return item.dataset not in ON_OTHER_IMAGES or item.variant.startswith(PUBLISHED_IMAGES)


def tolerance(std: float, seeds: int, published_std: float) -> float:
    """The largest difference from a published mean that counts as agreement.

    Both standard deviations are of the population over seeds, the published one over five.

    Examples
    --------
    >>> round(tolerance(0.003, 5, 0.004), 6)  # 0.006 + 2·0.005/√5
    0.010472
    """
    return BASE_TOLERANCE + 2 * math.sqrt(std**2 / seeds + published_std**2 / PUBLISHED_SEEDS)


def compare_with_published(cells: Iterable[Cell], published: Sequence[PublishedCell]) -> Comparison:
    """Compare cells of one test subset with :func:`published_accuracy` or `published_robustness`.

    Cells that were not published are skipped.

    Examples
    --------
    >>> from pairlearn_bench import published_accuracy
    >>> compare_with_published([], published_accuracy()).absent
    360
    """
    matched = match(cells, published)
    absent = len(published) - len(set(matched.values()))
    return Comparison(tuple(ComparedCell.of(*pair) for pair in matched.items()), absent)
