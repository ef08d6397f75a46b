"""An item that is certainly positive, as in positive-unlabelled learning."""

from __future__ import annotations

import numpy as np

from pairlearn.kinds.base import Column, Floats
from pairlearn.kinds.label import Label
from pairlearn.randomness import uniform


class Positive(Label):
    """One item of the positive class; of an item without this, nothing is known.

    The loss is −log p. Such items say which class is which, and nothing of how frequent it
    is: alone they fit a model that calls everything positive, so they need the prior.
    """

    name, plural = "positive", "known positives"
    columns = (Column("positive", 1, 1, {"yes": 1, "1": 1}),)
    settles = frozenset({"side"})

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Said of the items whose class, drawn from the posterior, is positive."""
        said = np.where(uniform(rng, len(r)) < r, 1.0, np.nan)
        return np.stack([said, np.zeros_like(r)], 1)
