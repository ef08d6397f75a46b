"""Compare our numbers with the published ones, cell by cell.

A cell agrees if the means differ by at most one standard deviation over seeds of each:

    |ours − published| ≤ σ + σ_paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pairlearn_bench.cells import Cell, PublishedCell, dataset_title, departures, match
from pairlearn_bench.runs import PUBLISHED_IMAGES
from pairlearn_bench.tables import aligned

#: The cells that are counted apart: steady methods, others, and those that test hardly anything.
GROUPS = {
    "reproduced": "ABS and supervised",
    "uncorrected": "unbiased and ReLU",
    "wide": "published spread above 0.05",
}
#: A published standard deviation above which agreement says little: the standard error of such a
#: mean of five seeds is above 0.022, more than lies between most methods.
WIDE = 0.05
#: Data sets whose published numbers were measured on scrambled images.
ON_OTHER_IMAGES = ("cifar10",)
ROUNDING = 1e-9  # of sums of decimal fractions


@dataclass(frozen=True)
class ComparedCell:
    """A published mean and ours, and the tolerance for their difference.

    ``is_copy``: the published numbers repeat those of another noise and are no evidence.
    ``group``: a key of ``GROUPS``. ``variant``: as in :class:`Run`. ``changes``: how the
    training departs from the paper's, in words.

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
    group: str = "reproduced"
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
            tolerance=cell.std + published.std,
            is_copy=published.copy_of is not None,
            group=_group(published),
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

    def within(self, group: str) -> tuple[int, int]:
        """How many cells of a group agree, and how many there are."""
        cells = [cell.ok for cell in self.evidence if cell.group == group]
        return sum(cells), len(cells)

    @property
    def ok(self) -> bool:
        """Whether all cells agree that are supervised or with ABS."""
        agree, cells = self.within("reproduced")
        return agree == cells

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ok": self.ok,
            "within_tolerance": {group: self.within(group) for group in GROUPS},
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
        for group, title in GROUPS.items():
            agree, cells = self.within(group)
            if cells:
                lines.append(f"Within tolerance, {title}: {agree} of {cells} cells")
        if copies := sum(cell.is_copy for cell in self.cells):
            lines.append(f"Left out, published numbers copied from a smaller noise: {copies} cells")
        if others := sum(not (cell.is_copy or cell.counts) for cell in self.cells):
            lines.append(f"Left out, published on other images: {others} cells")
        lines += departures("accuracy", self.cells)
        if self.absent:
            lines.append(f"Published cells without runs of ours: {self.absent}")
        return lines


_OK = {True: "yes", False: "NO", None: "–"}


def is_comparable(item: Any) -> bool:
    """Whether a run or a compared cell uses the images of the published numbers."""
    return item.dataset not in ON_OTHER_IMAGES or item.variant.startswith(PUBLISHED_IMAGES)


def _group(published: PublishedCell) -> str:
    if published.std > WIDE:
        return "wide"
    method = published.method
    return "uncorrected" if method.is_weak and method.correction != "abs" else "reproduced"


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
