"""The class of an item."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.base import Column, Floats, without_v
from pairlearn.judgements.kinds.confidence import Confidence
from pairlearn.randomness import uniform


class Label(Confidence):
    """The class of an item: u = 1 positive, u = 0 negative.

    Its loss is the cross-entropy, halved like the pair likelihood: each judged pair and each
    labelled item counts as one observation.
    """

    name, plural = "label", "known classes"
    singular = "known class"
    columns = (Column("label", 0, 1, {"positive": 1, "negative": 0, "1": 1, "0": 0}),)

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """The items of one class: all are positive, or none."""
        return u, v

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """A class drawn from the posterior."""
        return without_v((uniform(rng, len(r)) < r).astype(np.float64))
