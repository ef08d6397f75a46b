"""Statements of several rows, completed together: shares of groups, and triplets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pairlearn.judgements.kinds.statement import (
    TINY,
    Column,
    Floats,
    Kind,
    divergence,
    logarithm_guard,
    sums_by_number,
)
from pairlearn.randomness import uniform


class GroupShare(Kind):
    """An item of group number v, of which a share u is positive: "about 30% of these".

    Every item of a group has a row with its share and the group's number. Before each epoch the
    model's posteriors are moved, by one shift of the log-odds for each group, until their mean is
    the share (posterior regularisation: Ganchev et al., 2010). Two groups with different shares are
    the unlabelled-unlabelled setting.
    """

    name, plural = "group", "shares of groups"
    singular = "share of a group"
    columns = (Column("share", 0, 1), Column("group", 0, np.inf, place=1))
    single = joint = True

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """The share of the group."""
        return u, u

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The model's posteriors, shifted to the share of their group."""
        from scipy.special import expit, logit  # slow to import, and kinds are imported everywhere

        group = np.unique(v, return_inverse=True)[1].ravel()
        z = logit(np.clip(p, TINY, 1 - TINY))
        share = self._mean(group, u)
        low, high = np.full_like(share, -40.0), np.full_like(share, 40.0)
        for _ in range(50):  # bisection for each group's shift
            middle = (low + high) / 2
            above = self._mean(group, expit(z + middle[group])) > share
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        shifted = expit(z + middle[group])
        return shifted, shifted

    def mistakes(self, ends: Any, u: Floats, v: Floats) -> Iterator[str]:
        """Groups with more than one share."""
        total, count = sums_by_number(v, u, np.ones_like(u))
        for number in v[~np.isclose(u * count, total)][:1]:
            shares = " and ".join(f"{share:g}" for share in np.unique(u[v == number])[:2])
            yield f"group {number:g} has a share of {shares}: give one share to each group"

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Divergence of the shares from the mean posteriors of the groups."""
        total, count = sums_by_number(v, p, np.ones_like(p))
        return divergence(u, total / count) + divergence(1 - u, 1 - total / count)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Two groups: one has four fifths of the positive items and a fifth of the others."""
        positive = rng.random(len(r)) < r
        group = (rng.random(len(r)) < np.where(positive, 0.8, 0.2)).astype(np.int64)
        share = self._mean(group, positive.astype(np.float64))
        return np.stack([share[group], group.astype(np.float64)], 1)

    @staticmethod
    def _mean(group: Any, values: Floats) -> Floats:
        return np.bincount(group, values) / np.maximum(np.bincount(group), 1)


class Triplet(Kind):
    """One of the two pairs of triplet number v: u = 1 the closer one, u = 0 the other.

    "x is more like y than like z" is two rows with one number: (x, y) is the closer pair and (x, z)
    the other. The classes decide, and a coin where both or neither are of x's class:

        P(x is more like y) = ½ + [P(x same as y) − P(x same as z)]/2

    Training uses the cross-entropy to posteriors given the statement, which has the same gradient.
    """

    name, plural = "triplet", "triplets"
    columns = (Column("closer", 0, 1, {"yes": 1, "no": 0}), Column("triplet", 0, np.inf, place=1))
    opposite = (1, 1, 0)
    joint, shared = True, 2
    settles = frozenset({"level"})  # exchanging the classes changes nothing
    # Cross-entropies to the completed posteriors; x occurs in both rows and counts half in each.
    partial_risks = (
        {
            "positive": (0.0, 0.25, 0.0),
            "negative": (0.25, -0.25, 0.0),
            "positive_prime": (0.0, 0.0, 0.5),
            "negative_prime": (0.5, 0.0, -0.5),
        },
    )

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Posteriors given the triplet; an incomplete one leaves the model's as they are."""
        tilt, tilt_at_positive = self._tilts(p, q, u, v)
        event = np.maximum(0.5 + (2 * p - 1) * tilt, TINY)
        second = q * (0.5 + (2 * p - 1) * tilt_at_positive) / event
        return p * (0.5 + tilt) / event, np.clip(second, 0, 1)

    def mistakes(self, ends: Any, u: Floats, v: Floats) -> Iterator[str]:
        """Triplets that are not two rows about x and two others, one of them closer."""
        count, x, others, closer = sums_by_number(v, np.ones_like(u), *ends.T, u)
        valid = (count == 2) & (x == 2 * ends[:, 0]) & (others != 2 * ends[:, 1]) & (closer == 1)
        for number in v[~valid][:1]:
            yield f"triplet {number:g} must be two rows with one left, two rights, one closer"

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """−log P of the statement, half for each of its rows."""
        return -np.log(logarithm_guard(0.5 + (2 * p - 1) * self._tilts(p, q, u, v)[0])) / 2

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Rows two by two; the closer pair by classes drawn from the posteriors."""
        number = np.arange(len(r)) // 2.0
        positive = uniform(rng, len(r))[number.astype(int)] < r
        same = positive == (uniform(rng, len(r)) < q)
        likeness = same + uniform(rng, len(r)) / 2  # a coin where both or neither are the same
        other = np.append(likeness, np.nan)[np.arange(len(r)) ^ 1]
        return np.stack([np.where(np.isnan(other), np.nan, likeness > other), number], 1)

    @staticmethod
    def _tilts(p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """P(statement) − ½ if x is positive, and if the row's second item is as well."""
        count, of_x, both, closer = sums_by_number(v, np.ones_like(p), p, q, u)
        half = (u - 0.5) * ((count == 2) & (closer == 1) & np.isclose(of_x, 2 * p))
        return half * (2 * q - both), half * (1 + q - both)
