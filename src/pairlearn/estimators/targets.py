"""Class targets of items, completed from judgements of pairs and a model's posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.judgements import Judgements
from pairlearn.kinds import kind
from pairlearn.kinds.base import TINY
from pairlearn.prior import estimate_prior

__all__ = ["Targets", "read_rows"]

Floats = NDArray[np.float64]
Weights = Floats
"""Shape (2, m): of class + and of class − of every item."""


class Targets:
    """Statements about pairs, by kind, and the targets of both ends that complete them.

    Labels with noise are moved to the nearest feasible ones: targets are used as sample
    weights, which must not be negative.
    """

    def __init__(self, rows: Judgements) -> None:
        values = rows.values.copy()
        soft = rows.has("similarity") | rows.has("difference")
        if soft.any():
            nearest = rows.labels().project().to_array()
            values[soft] = np.where(np.isnan(nearest), 0.0, nearest)
        self.items, ends = np.unique(rows.ends, return_inverse=True)
        self.rows = Judgements(ends.reshape(-1, 2), rows.kind, values, rows.weight)
        self.parts = [(kind(name), self.rows[self.rows.of(name)]) for name in rows.kinds()]
        once = [(part, np.ones(len(part)), np.ones(len(part))) for _, part in self.parts]
        self.occurrences = self.per_item(once)

    def fixes(self, what: str) -> bool:
        """Whether some judgement tells the "level" or the "side"."""
        return any(what in one.fixes(False) for one, _ in self.parts)

    def per_item(self, ends: list[tuple[Judgements, Floats, Floats]]) -> Floats:
        """Sum values of the left and right ends over the statements of each item, weighted."""
        sums = np.zeros(len(self.items))
        for part, left, right in ends:
            for side, value in enumerate((left, right)):
                sums += np.bincount(part.ends[:, side], part.weight * value, len(sums))
        return sums

    def dissimilar(self) -> Weights:
        """Weights of class + and of class − that follow without a model."""
        known = [(part, *one.outcomes(part.u, part.v)) for one, part in self.parts]
        swapped = [(part, b, a) for part, a, b in known]
        return np.stack([self.per_item(known), self.per_item(swapped)])

    def complete(self, posterior: Floats) -> tuple[Weights, Floats]:
        """The weights of both classes of every item, and the targets of all ends."""
        made = [
            (part, *one.complete(*self._ends(part, posterior), part.u, part.v))
            for one, part in self.parts
        ]
        positive = self.per_item(made)
        negative = np.maximum(self.occurrences - positive, 0)
        targets = np.concatenate([np.concatenate([left, right]) for _, left, right in made])
        return np.stack([positive, negative]), targets

    def risk(self, posterior: Floats) -> float:
        """Weighted mean divergence of the model from the judgements, 0 where they agree."""
        total = sum(
            float(part.weight @ one.divergence(*self._ends(part, posterior), part.u, part.v))
            for one, part in self.parts
        )
        return total / float(self.rows.weight.sum())

    def from_similarity(self, prior: float | None, majority: str | None) -> Floats:
        """Targets of both ends from s alone: (s − π₋)/(π₊ − π₋), which E[s|x] makes r.

        E[s|x] = rπ₊ + (1 − r)π₋, so that the sign of π₊ − π₋ tells the classes apart.
        """
        if prior is None:
            if majority not in ("positive", "negative"):
                raise ValueError(
                    "similarities alone cannot tell the classes apart: exchanging them leaves "
                    "every similarity as it is. Say which class is larger with "
                    f"majority='positive' or 'negative' (got {majority!r}), or give prior, "
                    "some differences, preferences or labelled instances"
                )
            weighted = np.average(self.rows.u, weights=self.rows.weight)
            # Only the value is used; this interval is the one that exists for a single mean.
            larger = estimate_prior([weighted], interval="mcdiarmid").value
            prior = larger if majority == "positive" else 1 - larger
        gap = 2 * prior - 1
        if abs(gap) < 1e-3:
            raise ValueError(
                f"the class prior is {prior:.3f}: between equally large classes similarities "
                "alone hold no direction to start from. Add some differences, preferences or "
                "labelled instances"
            )
        return np.clip((self.rows.u - (1 - prior)) / gap, 0, 1)

    def _ends(self, part: Judgements, posterior: Floats) -> tuple[Floats, Floats]:
        posterior = np.clip(posterior, TINY, 1 - TINY)
        return posterior[part.ends[:, 0]], posterior[part.ends[:, 1]]


def read_rows(
    features: Any,
    pairs: Any,
    similarity: Any,
    difference: Any,
    preference: Any,
    weight: Any,
    labelled: tuple[Any, Any] | None,
    labelled_weight: float,
) -> tuple[Any, Judgements]:
    """What `complete_and_fit` is given, checked: the items, labelled ones last, and a table."""
    x = _checked_features(features)
    said, known = _checked_pairs(pairs, len(x)), _checked_labelled(labelled, x)
    columns = {
        name: _column(name, values, len(said))
        for name, values in (
            ("similarity", similarity),
            ("difference", difference),
            ("preference", preference),
        )
    }
    columns["preference"][columns["preference"] == 0] = np.nan
    _check(
        np.isnan(columns["preference"]) | np.isin(columns["preference"], (-1, 1)),
        columns["preference"],
        "preference",
        "−1 (left), +1 (right) or 0",
    )
    silent = np.logical_and.reduce([np.isnan(column) for column in columns.values()])
    if silent.any():
        raise ValueError(
            f"row {int(silent.argmax())} has no similarity, no difference and no preference: "
            "drop it"
        )
    w = np.ones(len(said)) if weight is None else _column("weight", weight, len(said))
    _check((w >= 0) & np.isfinite(w), w, "weight", "at least 0 and finite")
    if not w.any():
        raise ValueError("weight is 0 for every pair: there is nothing to learn from")
    if not 0 < labelled_weight < np.inf:
        raise ValueError(f"labelled_weight must be positive and finite; got {labelled_weight:g}")
    table = Judgements.from_columns(said, columns, w / w.mean())
    if known is not None:
        rows = len(x) + np.arange(len(known[0]))
        told = Judgements.about_items("label", rows, known[1]).scaled(labelled_weight)
        table, x = Judgements.concatenate([table, told]), np.concatenate([x, known[0]])
    return x, table


def _checked_features(features: Any) -> Any:
    x = np.asarray(features)
    if x.ndim != 2 or not np.issubdtype(x.dtype, np.number):
        raise ValueError(f"features must be numbers of shape (m, d); got {x.dtype} {x.shape}")
    return x


def _checked_pairs(pairs: Any, items: int) -> NDArray[np.int64]:
    ends = np.asarray(pairs)
    if ends.ndim != 2 or ends.shape[1] != 2 or not np.issubdtype(ends.dtype, np.integer):
        raise ValueError(
            "pairs must be integers of shape (n, 2), rows of features; "
            f"got {ends.dtype} {ends.shape}"
        )
    if not len(ends):
        raise ValueError("pairs is empty: there is nothing to learn from")
    outside = (ends < 0) | (ends >= items)
    if outside.any():
        row = int(outside.any(1).argmax())
        raise ValueError(
            f"pairs row {row} is {ends[row].tolist()}, and features has rows 0 to {items - 1}"
        )
    return ends.astype(np.int64)


def _checked_labelled(labelled: tuple[Any, Any] | None, items: Any) -> tuple[Any, Floats] | None:
    d = items.shape[1]
    if labelled is None:
        return None
    x, y = np.asarray(labelled[0]), np.asarray(labelled[1])
    if x.ndim != 2 or x.shape[1] != d or y.shape != (len(x),):
        raise ValueError(
            f"labelled must be (X, y) of shapes (k, {d}) and (k,); got {x.shape} and {y.shape}"
        )
    wrong = ~np.isin(y, (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"labelled y must be 0 or 1; row {row} is {y[row]!r}")
    return x, y.astype(np.float64)


def _column(name: str, values: Any, n: int) -> Floats:
    """A copy of a column as float64; None is a column of NaN."""
    if values is None:
        return np.full(n, np.nan)
    try:
        column = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from None
    if column.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one a pair; got {column.shape}")
    return column


def _check(good: NDArray[np.bool_], values: Floats, name: str, wanted: str) -> None:
    if not good.all():
        row = int((~good).argmax())
        raise ValueError(f"{name} must be {wanted}; row {row} is {values[row]:g}")
