"""Keeping the first epochs of the likelihood on the right side.

Two judgements are the same with both posteriors reflected, (r, r') ↔ (1 − r', 1 − r). Pairs of
one class, s near 1 and c near 0, are then as likely as pairs of the other. Where they are
most of a table of few pairs, at a prior far from ½, a network can learn them all reflected,
and each pair of different classes by heart: the loss hardly shows it, and nearly every
prediction is wrong. On Optdigits at π₊ = .1, with 100 pairs, that happened to the network
"mlp" in half of the trainings.

A linear model cannot learn pairs by heart. Its decisions tell which class is the larger one,
similarities tell how much larger, and in the first quarter of the epochs mean(p) is drawn to
that prior, by KL(π ‖ mean p) with a weight that falls from one to zero. After that the
likelihood is alone, and goes where it would have gone from a better start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairlearn.estimators.rows import KINDS, Rows
from pairlearn.estimators.trainer import Recipe, module_logits, train
from pairlearn.prior import estimate_prior
from pairlearn.risks import PairLikelihood

__all__ = ["Rates", "guiding_prior", "linear_rates"]

ROWS = 4096
"""More do not change which class is the larger one."""
UNEVEN = 0.6
"""Classes nearer to each other than this have no wrong side to be on."""
TOLD_APART = 0.25
"""Least difference of the rates of a linear model whose decisions are believed."""


class Rates(NamedTuple):
    """How often a model says positive: of positives, of negatives, and of all items."""

    hits: float
    alarms: float
    decided: float

    @property
    def prior(self) -> float:
        """π₊ = (mean h − FPR)/(TPR − FPR), right for decisions better than chance."""
        return (self.decided - self.alarms) / (self.hits - self.alarms)


def linear_rates(features: Any, rows: Rows, seed: int, device: str) -> Rates | None:
    """Rates of a linear model that the pair likelihood trains; None without pairs to tell.

        TPR = Σ(a h + b h')/Σ(1 − s),  FPR = Σ(b h + a h')/Σ(1 − s)

    over pairs with both judgements, of its decisions h.
    """
    both = rows[rows.kind == KINDS.index("both")]
    different = float(both.weight @ (1 - both.u))
    if not len(both) or different <= 0:
        return None
    recipe = Recipe(
        epochs=max(5, -(-300 // -(-len(rows) // 256))),
        batch_size=256,
        learning_rate=1e-2,
        weight_decay=1e-4,
        patience=1,
        device=device,
        seed=seed,
    )
    flat = features.reshape(len(features), -1)
    trained = train(flat, rows, PairLikelihood(correction="abs"), "linear", recipe)
    z = trained.sign * module_logits(trained.module, flat[both.ends.ravel()]).reshape(-1, 2)
    h, h_prime = (z > 0).T
    a, b = (1 - both.u - both.v) / 2, (1 - both.u + both.v) / 2
    return Rates(
        float(both.weight @ (a * h + b * h_prime)) / different,
        float(both.weight @ (b * h + a * h_prime)) / different,
        float(both.weight @ (h + 0.0 + h_prime)) / (2 * float(both.weight.sum())),
    )


def guiding_prior(features: Any, rows: Rows, seed: int, device: str) -> float | None:
    """The class prior to draw the first epochs to; None where none is needed or clear.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances.
    rows : Rows
        What to learn from.
    seed : int
        Of the linear model.
    device : str
        Where to train it.
    """
    told = rows[np.isin(rows.kind, [KINDS.index("both"), KINDS.index("similarity")])]
    if len(told) < 2:
        return None
    larger = estimate_prior(told.u, "positive", weight=told.weight).value
    if larger < UNEVEN:
        return None
    rates = linear_rates(features, rows[:ROWS], seed, device)
    if rates is None or abs(rates.hits - rates.alarms) < TOLD_APART:
        return None
    if abs(rates.prior - 0.5) < UNEVEN - 0.5:
        return None
    return larger if rates.prior > 0.5 else 1 - larger
