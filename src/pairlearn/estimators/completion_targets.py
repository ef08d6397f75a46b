"""Class targets of the two ends of a pair, completed from the judgements and a model.

The two classes of a pair have four joint values. A judgement says how likely some
groups of them are, the model's posteriors p and p' divide each group:

    similarity and   a = P(+, −), b = P(−, +) as judged; s between (+, +) and (−, −)
    difference       as pp' : (1 − p)(1 − p')
    similarity       s as above; 1 − s between (+, −) and (−, +) as p(1 − p') : (1 − p)p'
    difference       the sum is the model's, the difference the judge's:
                     ((p + p' − c)/2, (p + p' + c)/2), the sum first cut to [|c|, 2 − |c|]
    preference       right over left is the event "not (+, −)": the other three values
                     keep their proportions under the model

The sums over joint values with y = + and with y' = + are the targets of x and of x'.
Fitting the model to them and completing again is expectation-maximisation for the
pair likelihood (for one kind of judgement at a time: Chen et al., ICML 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.labels import PairLabels
from pairlearn.prior import estimate_prior

__all__ = ["Judgements"]

Floats = NDArray[np.float64]
TINY = 1e-7
"""Posteriors stay this far from 0 and 1: trees do predict 0, and its logarithm is asked for."""


@dataclass(frozen=True)
class Judgements:
    """What was said about n pairs of m items, checked and made feasible.

    Labels with noise are moved to the nearest feasible ones: targets are used as sample
    weights, which must not be negative. A row with a preference besides s or c counts as
    two judgements of its pair.

    Attributes
    ----------
    left, right : array of int, shape (n,)
        Rows of x and x' among the items.
    similarity, difference : array of shape (n,)
        NaN where not given.
    preference : array of shape (n,)
        −1 the left one is the more positive, +1 the right one, 0 not given.
    weight : array of shape (n,)
        Weights with mean 1.
    items : int
        m.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: Floats
    difference: Floats
    preference: Floats
    weight: Floats
    items: int

    @classmethod
    def checked(
        cls,
        pairs: Any,
        similarity: Any,
        difference: Any,
        preference: Any,
        weight: Any,
        items: int,
    ) -> Judgements:
        """Check the columns of a table of judgements."""
        ends = np.asarray(pairs)
        if ends.ndim != 2 or ends.shape[1] != 2 or not np.issubdtype(ends.dtype, np.integer):
            raise ValueError(
                f"pairs must be integers of shape (n, 2), rows of features; "
                f"got {ends.dtype} {ends.shape}"
            )
        n = len(ends)
        if not n:
            raise ValueError("pairs is empty: there is nothing to learn from")
        outside = (ends < 0) | (ends >= items)
        if outside.any():
            row = int(outside.any(1).argmax())
            raise ValueError(
                f"pairs row {row} is {ends[row].tolist()}, and features has rows 0 to {items - 1}"
            )
        s, c = _column("similarity", similarity, n), _column("difference", difference, n)
        chosen = _column("preference", preference, n)
        chosen[np.isnan(chosen)] = 0
        _check(np.isin(chosen, (-1, 0, 1)), chosen, "preference", "−1 (left), +1 (right) or 0")
        stated = ~(np.isnan(s) & np.isnan(c))
        if not (stated | (chosen != 0)).all():
            row = int((~stated & (chosen == 0)).argmax())
            raise ValueError(
                f"row {row} has no similarity, no difference and no preference: drop it"
            )
        if stated.any():
            nearest = PairLabels(s[stated], c[stated], noisy=True).project()
            s[stated], c[stated] = nearest.similarity, nearest.difference
        w = np.ones(n) if weight is None else _column("weight", weight, n)
        _check((w >= 0) & np.isfinite(w), w, "weight", "at least 0 and finite")
        if not w.any():
            raise ValueError("weight is 0 for every pair: there is nothing to learn from")
        left, right = ends.astype(np.int64).T
        return cls(left, right, s, c, chosen, w / w.mean(), items)

    @property
    def fixes_level(self) -> bool:
        """Whether some judgement tells how frequent the classes are."""
        return bool((~np.isnan(self.similarity)).any())

    @property
    def fixes_direction(self) -> bool:
        """Whether some judgement tells the classes apart."""
        return bool((~np.isnan(self.difference)).any() or self.preference.any())

    def per_item(self, target: Floats, target_prime: Floats) -> Floats:
        """Sum values of the left and right ends over the pairs of each item, weighted."""
        sums = np.bincount(self.left, self.weight * target, self.items).astype(np.float64)
        return sums + np.bincount(self.right, self.weight * target_prime, self.items)

    def dissimilar(self) -> tuple[Floats, Floats]:
        """Weights of the outcomes (+, −) and (−, +): class information without a model.

        From s and c they are a and b; from c alone their lower bounds max(∓c, 0); a
        preference gives its outcome 1/3, as the model p = p' = ½ would; s alone nothing.
        """
        a, b = self._judged_outcomes()
        return a + (self.preference < 0) / 3, b + (self.preference > 0) / 3

    def _judged_outcomes(self) -> tuple[Floats, Floats]:
        s, c = self.similarity, self.difference
        alone = np.isnan(s) & ~np.isnan(c)
        a = np.where(alone, np.maximum(-c, 0), (1 - s - c) / 2)
        b = np.where(alone, np.maximum(c, 0), (1 - s + c) / 2)
        # Exact labels on the edge of the region round to −1e-17 now and then.
        a, b = (np.where(np.isnan(one), 0, np.maximum(one, 0)) for one in (a, b))
        return a, b

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
            weighted = np.average(self.similarity, weights=self.weight)
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
        return np.clip((self.similarity - (1 - prior)) / gap, 0, 1)

    @property
    def occurrences(self) -> Floats:
        """Weighted number of times that each item is an end of a pair."""
        once = np.ones(len(self.left))
        return self.per_item(once, once)

    def complete(self, posterior: Floats) -> tuple[Floats, Floats]:
        """The weights of both classes of every item, and the targets of all ends.

        Parameters
        ----------
        posterior : array of shape (m,)
            The model's P(+) of every item.

        Returns
        -------
        weights : array of shape (2, m)
            Of class + and of class −, for the next fit.
        targets : array
            All completed targets, to see how much they move.
        """
        p, p_prime = self._ends(posterior)
        stated = ~(np.isnan(self.similarity) & np.isnan(self.difference))
        preferred = self.preference != 0
        judged = _complete_labels(p, p_prime, self.similarity, self.difference)
        chosen = _complete_preference(p, p_prime, self.preference)
        positive = self.per_item(
            *(np.where(stated, j, 0) + preferred * q for j, q in zip(judged, chosen, strict=True))
        )
        count = stated.astype(float) + preferred
        negative = np.maximum(self.per_item(count, count) - positive, 0)
        targets = np.concatenate(
            [one[mask] for mask, pair in ((stated, judged), (preferred, chosen)) for one in pair]
        )
        return np.stack([positive, negative]), targets

    def risk(self, posterior: Floats) -> float:
        """Weighted mean divergence of the model from the judgements, 0 where they agree.

        The Kullback-Leibler divergence of the judged outcomes from the model's (of the
        completed targets for a difference alone), and −log P(event) for a preference.
        """
        p, p_prime = self._ends(posterior)
        s, c = self.similarity, self.difference
        no_s, no_c = np.isnan(s), np.isnan(c)
        up, down = p * (1 - p_prime), (1 - p) * p_prime
        same = 1 - up - down
        a, b = self._judged_outcomes()
        both = _divergence(a, up) + _divergence(b, down) + _divergence(s, same)
        only_s = _divergence(s, same) + _divergence(1 - s, 1 - same)
        q, q_prime = _complete_difference(p, p_prime, c)
        only_c = sum(
            _divergence(t, m) + _divergence(1 - t, 1 - m) for t, m in ((q, p), (q_prime, p_prime))
        )
        stated = np.where(no_c, np.where(no_s, 0, only_s), np.where(no_s, only_c, both))
        event = np.where(self.preference > 0, 1 - up, 1 - down)
        chosen = np.where(self.preference != 0, -np.log(np.maximum(event, TINY)), 0)
        total = float(self.weight @ (stated + chosen))
        return total / float(self.weight @ (~(no_s & no_c) + 1.0 * (self.preference != 0)))

    def _ends(self, posterior: Floats) -> tuple[Floats, Floats]:
        posterior = np.clip(posterior, TINY, 1 - TINY)
        return posterior[self.left], posterior[self.right]


def _complete_labels(p: Floats, p_prime: Floats, s: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Targets from a similarity, a difference, or both; NaN where neither is given."""
    same = p * p_prime + (1 - p) * (1 - p_prime)
    both_positive = s * p * p_prime / same
    left_positive = (1 - s) * p * (1 - p_prime) / (1 - same)
    from_c = _complete_difference(p, p_prime, c)
    no_s, no_c = np.isnan(s), np.isnan(c)
    outcomes = (
        (left_positive, (1 - s - c) / 2),
        (1 - s - left_positive, (1 - s + c) / 2),
    )
    left, right = (
        np.where(no_s, alone, both_positive + np.where(no_c, split, judged))
        for alone, (split, judged) in zip(from_c, outcomes, strict=True)
    )
    return np.clip(left, 0, 1), np.clip(right, 0, 1)


def _complete_difference(p: Floats, p_prime: Floats, c: Floats) -> tuple[Floats, Floats]:
    total = np.clip(p + p_prime, abs(c), 2 - abs(c))
    return (total - c) / 2, (total + c) / 2


def _complete_preference(p: Floats, p_prime: Floats, preference: Floats) -> tuple[Floats, Floats]:
    """Targets given the event 'not (+, −)' for right over left, 'not (−, +)' for left."""
    right = preference > 0
    event = 1 - np.where(right, p * (1 - p_prime), (1 - p) * p_prime)
    both = p * p_prime
    return np.where(right, both, p) / event, np.where(right, p_prime, both) / event


def _divergence(share: Floats, model: Floats) -> Floats:
    """Of one outcome: share · log(share/model), 0 for an empty share."""
    share = np.maximum(share, 0)
    return np.where(share > 0, share, 0) * np.log(
        np.where(share > 0, share, 1) / np.maximum(model, TINY * TINY)
    )


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
