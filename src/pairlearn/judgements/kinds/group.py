"""The share of positives in a group of items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pairlearn.judgements.kinds.base import TINY, Column, Floats, Kind, divergence, sums_by_number


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
