"""What a comparison found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pairlearn.evaluation import Estimate

__all__ = ["Comparison", "MethodResult"]


@dataclass(frozen=True)
class MethodResult:
    """How one method did.

    Attributes
    ----------
    name : str
        The method, as `PairClassifier` and `make_risk` name it.
    accuracy : Estimate
        Mean accuracy of its models, as the annotator sees it, on held-out pairs.
    difference : Estimate
        Its accuracy less that of the best; the intervals of all differences hold together.
    tie : bool
        Whether the interval of the difference contains 0, so that the two cannot be told
        apart. False for the best itself.
    """

    name: str
    accuracy: Estimate
    difference: Estimate
    tie: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "accuracy": self.accuracy.to_dict(),
            "difference": self.difference.to_dict(),
            "tie": self.tie,
        }


@dataclass(frozen=True)
class Comparison:
    """Methods from the best to the worst, and how they were compared.

    Attributes
    ----------
    rows : tuple of MethodResult
        The first one is the best.
    pairs : int
        Judgements in the table.
    tested : int
        Judgements that tested models, those of all repeats counted.
    dropped : int
        Judgements of pairs whose ends were in different folds, summed over the repeats:
        they tested no model.
    folds, repeats : int
        Of the cross-validation.
    prior : float or None
        The class prior of the affine risks: as given, or as the similarities of the whole
        table imply; None if no method needs one.
    confidence : float
        Of each accuracy's interval, and of all intervals of differences together.
    warnings : tuple of str
        What to know before relying on the ranking.

    Examples
    --------
    >>> rows = (MethodResult("likelihood-abs", Estimate(0.97, 0.96, 0.98),
    ...                      Estimate(0.0, 0.0, 0.0), False),
    ...         MethodResult("sconf-abs", Estimate(0.91, 0.9, 0.93),
    ...                      Estimate(-0.06, -0.08, -0.04), False))
    >>> print(Comparison(rows, 500, 500, 0, 5, 1, 0.3, 0.95))
    method          accuracy           less than the best by
    likelihood-abs  .970 [.960, .980]
    sconf-abs       .910 [.900, .930]  .060 [.040, .080]
    """

    rows: tuple[MethodResult, ...]
    pairs: int
    tested: int
    dropped: int
    folds: int
    repeats: int
    prior: float | None
    confidence: float
    warnings: tuple[str, ...] = ()

    @property
    def best(self) -> MethodResult:
        """The method with the highest estimated accuracy."""
        return self.rows[0]

    @property
    def ties(self) -> tuple[str, ...]:
        """Methods that cannot be told from the best."""
        return tuple(row.name for row in self.rows if row.tie)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "methods": [row.to_dict() for row in self.rows],
            "best": self.best.name,
            "ties": list(self.ties),
            "pairs": self.pairs,
            "tested": self.tested,
            "dropped": self.dropped,
            "folds": self.folds,
            "repeats": self.repeats,
            "prior": self.prior,
            "confidence": self.confidence,
            "warnings": list(self.warnings),
        }

    def table(self) -> list[tuple[str, str, str]]:
        """Method, accuracy and what it lacks to the best, as text, with the ties marked."""
        lines = []
        for row in self.rows:
            ends = (row.difference.value, row.difference.high, row.difference.low)
            lacks, least, most = (_signed(-x) for x in ends)
            text = f"{lacks} [{least}, {most}]{' tie' if row.tie else ''}"
            lines.append((row.name, str(row.accuracy), "" if row is self.best else text))
        return lines

    def __str__(self) -> str:
        lines = [("method", "accuracy", "less than the best by"), *self.table()]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        shown = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join(shown)


def _signed(x: float) -> str:
    """Three places, with no zero before the point; a small negative number is zero."""
    text = f"{x:.3f}".replace("0.", ".", 1) if abs(x) < 1 else f"{x:.3f}"
    return ".000" if text == "-.000" else text
