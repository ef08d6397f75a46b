"""Whether two items are of the same class: a hard answer, yes or no."""

from __future__ import annotations

import numpy as np

from pairlearn.kinds.base import Column, Floats
from pairlearn.kinds.soft import Similarity
from pairlearn.randomness import uniform


class Same(Similarity):
    """A similarity of 1 (yes) or 0 (no)."""

    name, plural = "same", "answers “same” or “different”"
    columns = (Column("same", 0, 1, {"yes": 1, "no": 0, "1": 1, "0": 0}),)
    means = ("similarity",)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Of two classes drawn from the posteriors."""
        drawn = (uniform(rng, len(r)) < r) == (uniform(rng, len(r)) < q)
        return np.stack([drawn.astype(np.float64), np.zeros_like(r)], 1)
