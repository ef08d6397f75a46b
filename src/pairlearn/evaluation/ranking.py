"""Accuracies of several classifiers on the same held-out pairs, and their differences.

Every accuracy is estimated from the same judgements, and is to first order a sum of influences ψ
of the pairs. The difference of two accuracies then has the influences ψ_i − ψ_j: what is hard to
judge about a pair is hard for both and cancels.

The best is the one that looks best, so a plain interval of a difference to it would be too short.
Here the intervals of the differences hold *together*, for all couples of methods: their quantile
is that of

    max over i < j of |Z_i − Z_j| / sd(Z_i − Z_j),

Z normal with the covariance of the estimated accuracies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pairlearn.evaluation.decisions import MEASURES, agreeing, fit_decisions
from pairlearn.evaluation.judged import Estimate, JudgedPairs, largest_deviation
from pairlearn.labels import PairLabels

__all__ = ["Comparison", "MethodResult", "rank"]


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
    same_as : str or None
        A method before it in the ranking that decides all held-out pairs as it does. Risks
        often coincide: on feasible labels no correction changes the non-negative one.
    """

    name: str
    accuracy: Estimate
    difference: Estimate
    tie: bool
    same_as: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def rank(
    names: Sequence[str],
    logits: Any,
    labels: PairLabels,
    *,
    weight: Any = None,
    items: Any = None,
    confidence: float = 0.95,
    prior: float | None = None,
) -> tuple[MethodResult, ...]:
    """Rank classifiers by their accuracies on held-out judged pairs.

    ``logits`` (k, n, 2) are their outputs for both ends of n pairs; the rest is as in
    `estimate_accuracy`, whose intervals the accuracies have. Equal ones stay in their order.
    """
    outputs = np.asarray(logits, dtype=np.float64)
    options = (labels, weight, items, confidence, prior)
    first = JudgedPairs.of(outputs[0, :, 0], outputs[0, :, 1], *options)
    solutions = agreeing(
        [fit_decisions(replace(first, z=z[:, 0], z_prime=z[:, 1])) for z in outputs]
    )
    accuracy = [MEASURES["accuracy"]]
    influences = np.hstack([solution.influences(accuracy) for solution in solutions])
    estimates = [solution.estimates(accuracy)[0] for solution in solutions]
    order = np.argsort([-estimate.value for estimate in estimates], kind="stable")
    best, ends = int(order[0]), first.effective_ends
    covariance = first.dependence.covariance(influences)
    together = largest_deviation(covariance, confidence, ends, differences=True)
    apart = first.dependence.variance(influences - influences[:, best : best + 1])
    decided: dict[bytes, str] = {}
    rows = []
    for place, i in enumerate(order):
        difference = Estimate(0.0, 0.0, 0.0)
        if place:
            gap = estimates[i].value - estimates[best].value
            # As in `proportion`: one more instance is decided differently, among all of them.
            half = together * float(np.sqrt(apart[i] + 1 / ends**2))
            difference = Estimate(gap, max(gap - half, -1.0), min(gap + half, 1.0))
        same = decided.setdefault((outputs[i] > 0).tobytes(), names[i])
        alike = same if same != names[i] else None
        tie = place > 0 and difference.high >= 0
        rows.append(MethodResult(names[i], estimates[i], difference, tie, alike))
    return tuple(rows)


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

    @property
    def distinct(self) -> dict[str, MethodResult]:
        """One method of each that decide alike, by a name that tells the others."""
        return {self._title(row): row for row in self.rows if row.same_as is None}

    def _title(self, row: MethodResult) -> str:
        same = [other.name for other in self.rows if other.same_as == row.name]
        return f"{row.name} (= {', '.join(same)})" if same else row.name

    @property
    def verdict(self) -> str:
        """The best method, and those that cannot be told from it."""
        best, *others = self.distinct.items()
        ties = [title for title, row in others if row.tie]
        rest = f"cannot be told from it: {', '.join(ties)}" if ties else "no other comes near it"
        return f"best: {best[0]}; {rest}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self) | {"warnings": list(self.warnings)}
        methods = told.pop("rows")
        return {"methods": methods, "best": self.best.name, "ties": list(self.ties), **told}

    def table(self) -> list[tuple[str, str, str]]:
        """Method, accuracy and what it lacks to the best, as text, with the ties marked.

        Methods that decide alike are one line.
        """
        lines = []
        for title, row in self.distinct.items():
            ends = (row.difference.value, row.difference.high, row.difference.low)
            lacks = Estimate(*(-x + 0.0 for x in ends))
            text = "" if row is self.best else f"{lacks}{' tie' if row.tie else ''}"
            lines.append((title, str(row.accuracy), text))
        return lines

    def __str__(self) -> str:
        lines = [("method", "accuracy", "less than the best by"), *self.table()]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        shown = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join(shown)
