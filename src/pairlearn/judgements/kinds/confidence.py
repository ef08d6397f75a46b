"""How likely an item is positive."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.base import Column, Floats, Kind, divergence, without_v


class Confidence(Kind):
    """P(y = +1 | x) of one item, as the annotator sees it: u in [0, 1].

    Its loss is the cross-entropy to the stated probability, under every risk.
    """

    name, plural = "confidence", "confidences"
    columns = (Column("confidence", 0, 1),)
    single = states = True

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """Odds (1 − r)/r of the negative class for items known to be positive, for `Pconf`."""
        if (u <= 0).any() or (v <= 0).any():
            raise ValueError("confidence is 0 for an item that is positive, which cannot be")
        return (1 - u) / u, (1 - v) / v

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The stated probabilities, whatever the model predicts."""
        return u, v

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Kullback-Leibler divergence of the stated probability from the model's."""
        return divergence(u, p) + divergence(1 - u, 1 - p)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The posterior itself."""
        return without_v(r)
