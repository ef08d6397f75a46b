"""An item of which nothing is known but that it belongs to the population."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairlearn.kinds.base import Column, Floats, Kind

if TYPE_CHECKING:
    from torch import Tensor

    from pairlearn.risks.base import Risk


class Unlabelled(Kind):
    """One item without any statement about its class.

    It costs nothing by itself. It counts where the mean posterior is held to the class
    prior, and in risks that read unlabelled items.
    """

    name, plural = "unlabelled", "items without a class"
    columns = (Column("unlabelled", 1, 1, {"yes": 1, "1": 1}),)
    single = True
    states = False
    implied = True
    settles = frozenset()

    def table(self, risk: Risk) -> Tensor:
        """Nothing, whatever the model says."""
        from pairlearn.risks.base import make_table

        return make_table({})

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """As many are positive as in the whole population."""
        return np.full_like(u, prior), np.full_like(u, prior)

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The model's own posteriors."""
        return p, q

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The same of every item."""
        return np.stack([np.ones_like(r), np.zeros_like(r)], 1)
