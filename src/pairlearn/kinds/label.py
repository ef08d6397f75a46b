"""An ordinary label: the class of one item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairlearn.kinds.base import Column, Floats, Kind, divergence
from pairlearn.randomness import uniform

if TYPE_CHECKING:
    from torch import Tensor

    from pairlearn.risks.base import Risk


class Label(Kind):
    """The class of an item: u = 1 positive, u = 0 negative.

    Its loss is the cross-entropy, ½ for each item, as the pair likelihood is halved: each
    judged pair and each labelled item counts as one observation.
    """

    name = "label"
    columns = (Column("label", 0, 1, {"positive": 1, "negative": 0, "1": 1, "0": 0}),)
    single = True

    def table(self, risk: Risk) -> Tensor:
        """Cross-entropy of two items."""
        from pairlearn.risks.supervised import Supervised

        return Supervised().table

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """All of the class, or none."""
        return u, v

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The class, whatever the model says."""
        return u, v

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Cross-entropy less what no model can avoid."""
        return divergence(u, p) + divergence(1 - u, 1 - p)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """A class drawn from the posterior."""
        return np.stack([(uniform(rng, len(r)) < r).astype(np.float64), np.zeros_like(r)], 1)
