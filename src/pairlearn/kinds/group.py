"""How many of a group of items are positive: "about 30% of these"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pairlearn.kinds.base import TINY, Column, Floats, Kind, divergence, sums_by_number


class GroupShare(Kind):
    """An item of group number v, of which a share u is positive: "about 30% of these".

    Every item of a group has a row with its share and the group's number. Before each epoch the
    model's posteriors are moved, by one shift of the log-odds for each group, until their mean is
    the share (posterior regularisation: Ganchev et al., 2010). Two groups with different shares are
    the unlabelled-unlabelled setting.
    """

    name, plural = "group", "shares of groups"
    columns = (Column("share", 0, 1), Column("group", 0, np.inf, place=1))
    single, states, joint = True, False, True

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """The share."""
        return u, u

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The model's posteriors, shifted to the share of their group."""
        from scipy.special import expit, logit  # heavy, and kinds are imported everywhere

        of = np.unique(v, return_inverse=True)[1].ravel()
        z = logit(np.clip(p, TINY, 1 - TINY))
        wanted = self._mean(of, u)
        low, high = np.full_like(wanted, -40.0), np.full_like(wanted, 40.0)
        for _ in range(50):  # halves the interval of each group's shift
            middle = (low + high) / 2
            above = self._mean(of, expit(z + middle[of])) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        found = expit(z + middle[of])
        return found, found

    def mistakes(self, ends: Any, u: Floats, v: Floats) -> Iterator[str]:
        """Groups with more shares than one."""
        total, count = sums_by_number(v, u, np.ones_like(u))
        for number in v[~np.isclose(u * count, total)][:1]:
            shares = " and ".join(f"{share:g}" for share in np.unique(u[v == number])[:2])
            yield f"group {number:g} has a share of {shares}: give one share to each group"

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Of the shares from the mean posteriors of the groups."""
        total, count = sums_by_number(v, p, np.ones_like(p))
        return divergence(u, total / count) + divergence(1 - u, 1 - total / count)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Two groups: four in five of the positive items are in one, a fifth of the others."""
        positive = rng.random(len(r)) < r
        of = (rng.random(len(r)) < np.where(positive, 0.8, 0.2)).astype(np.int64)
        return np.stack([self._mean(of, positive.astype(np.float64))[of], of.astype(np.float64)], 1)

    @staticmethod
    def _mean(of: Any, values: Floats) -> Floats:
        return np.bincount(of, values) / np.maximum(np.bincount(of), 1)
