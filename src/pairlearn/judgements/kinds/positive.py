"""An item that is known to be positive."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.base import Column, Floats, without_v
from pairlearn.judgements.kinds.label import Label
from pairlearn.randomness import uniform


class Positive(Label):
    """An item known to be positive, as in positive-unlabelled learning.

    The loss is −log p. Such items say which class is which but not how frequent it is: on their
    own they fit a model that calls everything positive, so they need the prior.
    """

    name, plural = "positive", "known positives"
    singular = "known positive"
    columns = (Column("positive", 1, 1, {"yes": 1, "1": 1}),)
    settles = frozenset({"side"})

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Only items whose class, drawn from the posterior, is positive."""
        return without_v(np.where(uniform(rng, len(r)) < r, 1.0, np.nan))
