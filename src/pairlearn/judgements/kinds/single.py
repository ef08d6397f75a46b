"""Statements about one item: its class, how likely it is positive, or nothing."""

from __future__ import annotations

import numpy as np

from pairlearn.judgements.kinds.statement import Column, Floats, Kind, divergence, without_v
from pairlearn.randomness import uniform


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
