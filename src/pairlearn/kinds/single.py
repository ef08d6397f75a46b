"""Statements about one item: its class, how likely it is, that nothing is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairlearn.kinds.base import Column, Floats, Kind, divergence
from pairlearn.randomness import uniform

if TYPE_CHECKING:
    from torch import Tensor

    from pairlearn.risks.base import Risk


class Confidence(Kind):
    """P(y = +1 | x) of one item, as the annotator sees it: u in [0, 1].

    Its loss is the cross-entropy to the stated probability, under every risk.
    """

    name, plural = "confidence", "confidences"
    columns = (Column("confidence", 0, 1),)
    single = True

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """Of items that are positive, the odds (1 − r)/r of the other class, for `Pconf`."""
        if (u <= 0).any() or (v <= 0).any():
            raise ValueError("confidence is 0 for an item that is positive, which cannot be")
        return (1 - u) / u, (1 - v) / v

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The stated probabilities, whatever the model says."""
        return u, v

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Kullback-Leibler divergence of the stated probability from the model's."""
        return divergence(u, p) + divergence(1 - u, 1 - p)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The posterior itself."""
        return np.stack([r, np.zeros_like(r)], 1)


class Label(Confidence):
    """The class of an item: u = 1 positive, u = 0 negative.

    Its loss is the cross-entropy, ½ for each item, as the pair likelihood is halved: each
    judged pair and each labelled item counts as one observation.
    """

    name, plural = "label", "known classes"
    columns = (Column("label", 0, 1, {"positive": 1, "negative": 0, "1": 1, "0": 0}),)

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """All of the class, or none."""
        return u, v

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """A class drawn from the posterior."""
        return np.stack([(uniform(rng, len(r)) < r).astype(np.float64), np.zeros_like(r)], 1)


class Positive(Label):
    """One item of the positive class; of an item without this, nothing is known.

    The loss is −log p. Such items say which class is which, and nothing of how frequent it
    is: alone they fit a model that calls everything positive, so they need the prior.
    """

    name, plural = "positive", "known positives"
    columns = (Column("positive", 1, 1, {"yes": 1, "1": 1}),)
    settles = frozenset({"side"})

    def table(self, risk: Risk) -> Tensor:
        """−log p of two items."""
        from pairlearn.risks.base import make_table

        return make_table({"positive": (0.5, 0.0, 0.0), "positive_prime": (0.5, 0.0, 0.0)})

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """Said of the items whose class, drawn from the posterior, is positive."""
        said = np.where(uniform(rng, len(r)) < r, 1.0, np.nan)
        return np.stack([said, np.zeros_like(r)], 1)


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

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Nothing."""
        return np.zeros_like(p)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The same of every item."""
        return np.stack([np.ones_like(r), np.zeros_like(r)], 1)
