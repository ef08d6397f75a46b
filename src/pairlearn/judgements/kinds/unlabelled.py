"""An item about whose class nothing is stated."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.base import Column, Floats, Kind, without_v


class Unlabelled(Kind):
    """An item of the population about whose class nothing is stated.

    It costs nothing by itself. It counts where the mean posterior is held to the class
    prior, and in risks that read unlabelled items.
    """

    name, plural = "unlabelled", "items without a class"
    singular = "item without a class"
    columns = (Column("unlabelled", 1, 1, {"yes": 1, "1": 1}),)
    opposite = (1, 1, 0)
    single = implied = about_all = True
    settles = frozenset()
    partial_risks = ({},)

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """The share of positives in the whole population."""
        return np.full_like(u, prior), np.full_like(u, prior)

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The model's own posteriors."""
        return p, q

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Every item alike."""
        return without_v(np.ones_like(r))
