"""Similarity and difference of a pair, together or alone; the hard answer "same".

With p = σ(g(x)) and p' = σ(g(x')), by the pair likelihood:

    both         the three outcomes, as in `PairLikelihood`
    similarity   −[s log P(same) + (1 − s) log P(different)]/2
    difference   the sum t = p + p' is completed from the model, clipped to [|c|, 2 − |c|];
                 then the cross-entropies to r = (t − c)/2 and r' = (t + c)/2

The affine risks use `Sconf` where a similarity stands alone and `ConfDiff` where a difference
does. The completions are those of expectation-maximisation (for one kind of
judgement at a time: Chen et al., ICML 2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.columns import first_rows
from pairlearn.judgements.kinds.statement import Column, Floats, Kind, divergence, without_v
from pairlearn.randomness import uniform

if TYPE_CHECKING:
    from torch import Tensor

    from pairlearn.risks.base import Risk


SIMILARITY = Column("similarity", 0, 1, noisy=True)
DIFFERENCE = Column("difference", -1, 1, place=1, noisy=True)


def share_of_similar(s: Floats, prior: float) -> float:
    """Share of positives among the items of similar pairs; ValueError for soft answers."""
    for row in first_rows((s != 0) & (s != 1)):
        raise ValueError(
            f"similarity is {s[row]:g}, and this risk reads hard answers, 1 for the same class and "
            "0 for different ones: use sconf, sconfconfdiff or likelihood for soft ones"
        )
    return prior**2 / (prior**2 + (1 - prior) ** 2)


class Both(Kind):
    """Similarity s = P(y = y') and difference c = P(y' = +1) − P(y = +1)."""

    name, plural = "both", "similarities with differences"
    singular = "similarity with a difference"
    columns = (SIMILARITY, DIFFERENCE)
    opposite = (1, -1, 0)

    def table(self, risk: Risk) -> Tensor:
        """The table of the risk itself."""
        return risk.table

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """The outcomes a = (1 − s − c)/2 and b = (1 − s + c)/2, which may round to −1e-17."""
        return np.maximum((1 - u - v) / 2, 0), np.maximum((1 - u + v) / 2, 0)

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """Hard outcomes: the sign of the difference gives both classes of a dissimilar pair."""
        both = u * share_of_similar(u, prior)
        return both + (1 - u) * (v < 0), both + (1 - u) * (v > 0)

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Outcomes a, b as stated; s split into (+, +) and (−, −) as pp' : (1 − p)(1 − p')."""
        positive = u * p * q / (p * q + (1 - p) * (1 - q))
        return np.clip(positive + (1 - u - v) / 2, 0, 1), np.clip(positive + (1 - u + v) / 2, 0, 1)

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Kullback-Leibler divergence of the stated outcomes from the model's."""
        a, b = self.outcomes(u, v)
        up, down = p * (1 - q), (1 - p) * q
        return divergence(a, up) + divergence(b, down) + divergence(u, 1 - up - down)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The exact s and c."""
        return np.stack([r * q + (1 - r) * (1 - q), q - r], 1)


class Similarity(Kind):
    """Similarity alone, which exchanging the classes leaves unchanged."""

    name, plural = "similarity", "similarities"
    columns = (SIMILARITY,)
    opposite = (1, 1, 0)
    about_all = True
    partial_risks = ({"log_same": (0.0, -0.5, 0.0)}, {"log_different": (-0.5, 0.5, 0.0)})

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """The level, and with a prior the side."""
        return frozenset({"level", "side"} if prior_known else {"level"})

    def table(self, risk: Risk) -> Tensor:
        """The two outcomes same and different, or `Sconf`."""
        from pairlearn.risks.affine import Sconf

        return Sconf(risk.prior).table if risk.needs_prior else super().table(risk)  # type: ignore[arg-type]

    def reading(self, u: Floats, v: Floats, prior: float) -> tuple[Floats, Floats]:
        """Hard answers: half of the items of dissimilar pairs are positive."""
        share = u * share_of_similar(u, prior) + (1 - u) / 2
        return share, share

    def complete(self, p: Floats, q: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """As with both for s; 1 − s split between (+, −) and (−, +) as p(1 − p') : (1 − p)p'."""
        same = p * q + (1 - p) * (1 - q)
        positive, left = u * p * q / same, (1 - u) * p * (1 - q) / (1 - same)
        return np.clip(positive + left, 0, 1), np.clip(positive + 1 - u - left, 0, 1)

    def divergence(self, p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
        """Divergence over the two outcomes same and different."""
        same = p * q + (1 - p) * (1 - q)
        return divergence(u, same) + divergence(1 - u, 1 - same)

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The similarity s."""
        return without_v(r * q + (1 - r) * (1 - q))


class Difference(Kind):
    """Difference alone, which determines the posteriors up to a constant."""

    name, plural = "difference", "differences"
    columns = (DIFFERENCE,)
    opposite = (1, -1, 0)

    def fixes(self, prior_known: bool) -> frozenset[str]:
        """The side and the scale, and with a prior the level."""
        return frozenset({"level", "side"} if prior_known else {"side", "scale"})

    def table(self, risk: Risk) -> Tensor:
        """Cross-entropies to the completed posteriors, or `ConfDiff`."""
        from pairlearn.risks.affine import ConfDiff

        return ConfDiff(risk.prior).table if risk.needs_prior else super().table(risk)  # type: ignore[arg-type]

    def completes(self, risk: Risk) -> bool:
        """Under the likelihood."""
        return not risk.needs_prior

    def outcomes(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Their lower bounds max(∓c, 0)."""
        return np.maximum(-v, 0), np.maximum(v, 0)

    def complete(self, p: Any, q: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Posteriors with the stated difference and the model's sum, clipped to [|c|, 2 − |c|]."""
        c = v.clip(-1, 1)
        total = (p + q).clip(abs(c), 2 - abs(c))
        return (total - c) / 2, (total + c) / 2

    def simulate(self, r: Floats, q: Floats, rng: np.random.Generator) -> Floats:
        """The difference c."""
        return np.stack([np.zeros_like(r), q - r], 1)


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
