"""A table of judgements as the checks see it: the only module here that reads table columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators import Annotators, findings
from pairlearn.columns import Floats, Indices, Mask, find_rows
from pairlearn.dependence import CLEAR, Dependence, correlated_ends
from pairlearn.finding import Finding
from pairlearn.io import ItemTable
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import LEAST_ANSWERS, AnswerScale, scale_of
from pairlearn.judgements.scales import Scale, find_scale
from pairlearn.labels import TOLERANCE, PairLabels
from pairlearn.prior import Majority, PriorEstimate, estimate_prior

#: Differences that nearly determine the similarity: s lies in [(1 − c²)/2, 1 − |c|], a strip of
#: width (1 − |c|)²/2, at most 0.08 here.
LARGE = 0.6
#: Rows whose features are compared; a correlation of 0.03 is clear with so many.
MOST_ROWS = 20_000


class InfeasibleRows(NamedTuple):
    """Judgements that no posteriors produce: their rows, by side of the region, and distances."""

    rows: Indices = np.empty(0, np.int64)
    above: Indices = np.empty(0, np.int64)
    below: Indices = np.empty(0, np.int64)
    distance: Floats = np.empty(0)


@dataclass(frozen=True)
class TableView:
    """The rows of a table that are about pairs, and what the caller knows.

    Attributes
    ----------
    stated_s, stated_c : array
        Similarities and differences as they are in the table, NaN where not given. The checks of
        meaning use ``s`` and ``c``, which have none of a question that is on another scale.
    preference : array
        −1 left, +1 right, 0 none.
    weight, names : array
        Weight of each row, and its annotator or "".
    ends : array of shape (n, 2)
        Positions in ``ids``.
    statements : Judgements
        All statements, also those about single items, of which ``other_ids`` are in no pair.
    rows : array
        Rows of the table.
    item_ids, features, feature_names
        The items, where known: their ids, and the features of ``ids`` and then ``other_ids``.
    """

    stated_s: Floats
    stated_c: Floats
    preference: Indices
    weight: Floats
    ends: Indices
    ids: NDArray[Any]
    names: NDArray[np.str_]
    statements: Judgements
    rows: Indices
    other_ids: NDArray[Any]
    item_ids: NDArray[Any] | None = None
    features: NDArray[Any] | None = None
    feature_names: tuple[str, ...] = ()
    constant_features: bool = False
    prior: float | None = None
    majority: Majority | None = None

    @classmethod
    def of(
        cls,
        table: Judgements,
        items: Any = None,
        prior: float | None = None,
        majority: Majority | None = None,
    ) -> TableView:
        """View a table, with its items, an ItemTable or their ids, and what else is known."""
        row = table.file_rows()
        first = np.flatnonzero(np.diff(row, prepend=-1))
        values = np.full((3, len(first)), np.nan)
        for k, (name, place) in enumerate(
            {"similarity": 0, "difference": 1, "preference": 0}.items()
        ):
            rows = table.has(name)
            values[k, row[rows]] = table.values[rows, place]
        pairs = ~table.single[first]
        (similarity, difference, choice), first = values[:, pairs], first[pairs]
        known_ids = np.arange(1 + table.ends.max(initial=-1)) if table.ids is None else table.ids
        used, ends = np.unique(table.ends[first], return_inverse=True)
        singles = table.ends[table.single, 0]
        others = np.setdiff1d(singles, used)
        places = np.full(len(known_ids) + 1, -1)
        places[np.concatenate([used, others])] = np.arange(len(used) + len(others))
        ids, other_ids = known_ids[used], known_ids[others]
        all_ids = np.concatenate([ids, other_ids])
        has_features = isinstance(items, ItemTable)
        constant = has_features and _constant(items.features)
        features = None
        if has_features and len(first) and not constant:
            found = find_rows(all_ids, items.ids)
            features = items.features[found] if (found >= 0).all() else None
        known = items.ids if has_features else items
        return cls(
            stated_s=similarity,
            stated_c=difference,
            preference=np.nan_to_num(choice).astype(np.int64),
            weight=table.weight[first],
            ends=ends.reshape(-1, 2).astype(np.int64),
            ids=ids,
            names=(np.full(len(table), "") if table.annotator is None else table.annotator)[first],
            statements=replace(table, ends=places[table.ends], ids=None),
            rows=np.flatnonzero(pairs),
            other_ids=other_ids,
            item_ids=None if known is None else np.asarray(known),
            features=features,
            feature_names=tuple(items.names) if has_features else (),
            constant_features=constant,
            prior=prior,
            majority=majority,
        )

    def __len__(self) -> int:
        return len(self.stated_s)

    # ---- answers ------------------------------------------------------------------------------

    @cached_property
    def scales(self) -> dict[str, Scale | None]:
        """The scale of each question, None if it is the right one."""
        return {
            "similarity": find_scale(self.stated_s, 0),
            "difference": find_scale(self.stated_c, -1),
        }

    @cached_property
    def s(self) -> Floats:
        """Similarities, none if they are on another scale."""
        stated = self.stated_s
        return np.full_like(stated, np.nan) if self.scales["similarity"] else stated

    @cached_property
    def c(self) -> Floats:
        """Differences, none if they are on another scale."""
        stated = self.stated_c
        return np.full_like(stated, np.nan) if self.scales["difference"] else stated

    @cached_property
    def has_s(self) -> Mask:
        """Rows with a similarity on its scale."""
        return ~np.isnan(self.s)

    @cached_property
    def has_c(self) -> Mask:
        """Rows with a difference on its scale."""
        return ~np.isnan(self.c)

    @cached_property
    def readable(self) -> bool:
        """Whether both questions are on their scales."""
        return not any(self.scales.values())

    @cached_property
    def answer_scales(self) -> dict[str, AnswerScale]:
        """The levels of each annotator's answers, by name."""
        names, who = np.unique(self.names, return_inverse=True)
        ends = np.cumsum(np.bincount(who, minlength=len(names)))[:-1]
        order = np.split(np.argsort(who, kind="stable"), ends)[: len(names)]
        return {
            str(name): scale_of(self.s[rows], self.c[rows])
            for name, rows in zip(names, order, strict=True)
        }

    @cached_property
    def annotators(self) -> NDArray[np.str_]:
        """The names in the table."""
        names: NDArray[np.str_] = np.unique(self.names[self.names != ""])
        return names

    @property
    def judgements(self) -> Judgements:
        """The statements about pairs."""
        return self.statements[~self.statements.single]

    @cached_property
    def people(self) -> Annotators:
        """How each annotator answers, learnt from the answers alone, if there are several."""
        return Annotators.learn(self.judgements) if len(self.annotators) > 1 else Annotators()

    @cached_property
    def habits(self) -> list[Finding]:
        """What the model of annotators does not contain."""
        return findings(self.judgements)

    @cached_property
    def labels(self) -> PairLabels:
        """The answers of rows with both, other than pairs of an item with itself."""
        rows = self.has_s & self.has_c & ~self.self_pairs
        return PairLabels(self.s[rows], self.c[rows], noisy=True)

    @cached_property
    def infeasible(self) -> InfeasibleRows:
        """Rows with both judgements that no posteriors produce, even if rounded."""
        both = np.flatnonzero(self.has_s & self.has_c)
        if not len(both):
            return InfeasibleRows()
        labels = PairLabels(self.s[both], self.c[both], noisy=True)
        outside = ~labels.feasible()
        for name, scale in self.answer_scales.items():
            mine = np.flatnonzero(outside & (self.names[both] == name))
            outside[mine] = ~scale.admits(self.s[both[mine]], self.c[both[mine]])
        wrong, rows = labels[outside], both[outside]
        over = wrong.similarity > 1 - np.abs(wrong.difference) + TOLERANCE
        return InfeasibleRows(rows, rows[over], rows[~over], distances(wrong))

    # ---- pairs and items ----------------------------------------------------------------------

    @cached_property
    def self_pairs(self) -> Mask:
        """Rows that pair an item with itself."""
        return np.asarray(self.ends[:, 0] == self.ends[:, 1])

    @cached_property
    def pair(self) -> Indices:
        """Number of the unordered pair of each row."""
        low, high = self.ends.min(axis=1), self.ends.max(axis=1)
        _, numbers = np.unique(low * len(self.ids) + high, return_inverse=True)
        return numbers.reshape(-1).astype(np.int64)

    @cached_property
    def orientation(self) -> Indices:
        """−1 where a row has its pair in reverse, which changes the sign of c; else +1."""
        return np.where(self.ends[:, 0] <= self.ends[:, 1], 1, -1)

    @cached_property
    def unknown_ids(self) -> NDArray[Any]:
        """Ids of the table that are not among the items."""
        if self.item_ids is None:
            return self.ids[:0]
        missing = (ids[find_rows(ids, self.item_ids) < 0] for ids in (self.ids, self.other_ids))
        return np.concatenate([*missing])

    @cached_property
    def compared(self) -> tuple[Indices, Floats, Floats]:
        """Rows spread evenly over the table, and the features of both items of each."""
        rows = np.flatnonzero(~self.self_pairs)
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int)]
        if self.features is None or len(rows) < LEAST_ANSWERS:
            return rows[:0], np.empty((0, 0)), np.empty((0, 0))
        left, right = (np.asarray(self.features[k], np.float64) for k in self.ends[rows].T)
        return rows, left, right

    @cached_property
    def correlation(self) -> tuple[float, Floats] | None:
        """How alike the items of a pair are, over all features and in each; None as by chance."""
        rows, left, right = self.compared
        if not len(rows):
            return None
        dependence = Dependence.of(self.ends[rows], len(rows))
        return correlated_ends(left, right, self.weight[rows], dependence)

    # ---- classes ------------------------------------------------------------------------------

    @cached_property
    def learnable(self) -> str:
        """What can be learnt from the table."""
        if self.statements.classes is not None:
            named = zip(self.statements.classes, self.statements.members().sum(0), strict=True)
            classes = ", ".join(f"{name} (rows: {rows:,})" for name, rows in named)
            return f"posteriors of the classes {classes}, and no other"
        fixed = self.statements.fixed()
        if {"level", "side"} <= fixed:  # without pairs, one answer may agree with all
            return "nothing" if not len(self) and np.ptp(self.statements.u) == 0 else "everything"
        if "level" in fixed:
            return "classes up to a swap"
        return "a ranking" if len(self) and "scale" not in fixed else "posteriors up to a shift"

    @cached_property
    def comparable(self) -> Mask:
        """Rows whose similarity tells how frequent the classes are."""
        return self.has_s & ~self.self_pairs

    @cached_property
    def known_majority(self) -> Majority | None:
        """The larger class, if the arguments or known classes of items in pairs tell it.

        Whatever items have a known class, they are alike to most others if their class is the
        larger one: s − ½ = (2r − 1)(2r' − 1)/2, with r known and r' that of a random item.
        """
        if self.majority is not None:
            return self.majority
        if self.prior is not None:
            return "positive" if self.prior > 0.5 else "negative"
        known = self.statements[self.statements.known]
        classes = np.zeros(len(self.ids) + len(self.other_ids))
        classes[known.ends[:, 0]] = 2 * known.u - 1
        ends = self.ends[self.comparable]
        added = classes[ends].sum(1) * (self.s[self.comparable] - 0.5)
        if not clear(added, ends):
            return None
        return "positive" if added.sum() > 0 else "negative"

    @cached_property
    def implied_prior(self) -> PriorEstimate | None:
        """The share of positives that the similarities imply; None from too few.

        It lies on the side of ½ that is known, and else on the lower side.
        """
        return self._prior(0.95)

    @cached_property
    def clear_prior(self) -> PriorEstimate | None:
        """The same with an interval of `CLEAR` standard errors."""
        return self._prior(math.erf(CLEAR / math.sqrt(2)))

    def _prior(self, confidence: float) -> PriorEstimate | None:
        if self.comparable.sum() < LEAST_ANSWERS:
            return None
        s, weight, ends = (v[self.comparable] for v in (self.s, self.weight, self.ends))
        majority = self.known_majority or "negative"
        return estimate_prior(s, majority, confidence=confidence, weight=weight, items=ends)

    @cached_property
    def too_unlike(self) -> bool:
        """Whether similarities average clearly below ½, which those of random pairs cannot."""
        implied = self.clear_prior
        return (
            implied is not None
            and implied.low == implied.high == 0.5
            and round(implied.mean_similarity, 3) < 0.5
        )


def _constant(features: NDArray[Any]) -> bool:
    """Whether there are several items, and all have the same features."""
    parts = range(1, len(features), MOST_ROWS)
    return len(parts) > 0 and all((features[k : k + MOST_ROWS] == features[0]).all() for k in parts)


def distances(labels: PairLabels) -> Floats:
    """Distances of answers to the feasible region."""
    s, c = np.asarray(labels.project().to_array() - labels.to_array(), np.float64).T
    return np.asarray(np.hypot(s, c))


def clear(added: Floats, ends: Indices) -> bool:
    """Whether a sum over pairs, which may share items, differs clearly from 0."""
    if not len(added):
        return False
    error = math.sqrt(max(float(Dependence.of(ends, len(added)).variance(added)), 0.0))
    return bool(abs(added.sum()) > CLEAR * error)
