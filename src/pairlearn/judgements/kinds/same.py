"""Whether two items are of the same class, yes or no."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.base import Column, Floats, without_v
from pairlearn.judgements.kinds.soft import Similarity
from pairlearn.randomness import uniform


class Same(Similarity):
    """A hard answer to whether both are of one class: a similarity of 1 (yes) or 0 (no)."""

    name, plural = "same", "answers “same” or “different”"
    singular = "answer “same” or “different”"
    columns = (
        Column("same", 0, 1, {"yes": 1, "no": 0, "1": 1, "0": 0, "same": 1, "different": 0}),
    )
    means = ("similarity",)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Whether two classes drawn from the posteriors agree."""
        same = (uniform(rng, len(r)) < r) == (uniform(rng, len(r)) < q)
        return without_v(same.astype(np.float64))
