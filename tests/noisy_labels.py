"""Judgements with the label noise of the literature."""

from pairlearn import PairLabels
from pairlearn.randomness import normal, stream


def add_noise(labels: PairLabels, sigma: float, seed: int) -> PairLabels:
    """Multiply every judgement by a factor drawn from N(1, σ²); nothing is clipped."""
    factors = 1 + sigma * normal(stream(seed, "label noise"), 2 * len(labels)).reshape(2, -1)
    return PairLabels(labels.similarity * factors[0], labels.difference * factors[1], noisy=True)
