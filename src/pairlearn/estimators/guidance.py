"""Keeping the first epochs of the likelihood on the right side.

Two judgements are the same with both posteriors reflected, (r, r') ↔ (1 − r', 1 − r). Pairs of
one class, s near 1 and c near 0, are then as likely as pairs of the other. Where they are most
of a table, at a prior far from ½, a model can begin on the wrong side and stay there. A network
with few pairs can even learn all pairs of one class reflected, and those of different classes
by heart: the loss hardly shows it, and nearly every prediction is wrong. On Optdigits at
π₊ = .1, with 100 pairs, that happened to "mlp" in half of the trainings.

Differences know the side. Let g be a linear score that predicts them, c ≈ g(x') − g(x). The
two items of a pair of different classes are one of each, so that over all pairs

    M = Σ(1 − s)(g + g')/2 / Σ(1 − s)     is half way between the classes' mean scores,
    ḡ = mean of (g + g')/2                is π₊ of the way,

and the positive class is the larger one where ḡ > M. How much larger similarities say. In the
first quarter of the epochs mean(p) is drawn to that prior, by KL(π ‖ mean p) with a weight that
falls from one to zero; then the likelihood is alone.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.judgements import Judgements
from pairlearn.prior import estimate_prior
from pairlearn.randomness import permutation, stream

__all__ = [
    "KnownClassesWarning",
    "classes_against_differences",
    "guiding_prior",
    "larger_class",
]

Floats = NDArray[np.float64]

ROWS = 4096
"""More do not change which class is the larger one."""
FOLDS = 10
UNEVEN = 0.6
"""Classes nearer to each other than this have no wrong side to be on."""
EXCHANGED = 2.5
"""Standard errors by which ranks must be the wrong way round: five items of each class do."""
CLEAR = 1.5
"""Least distance from chance, in standard errors, that is believed."""


class KnownClassesWarning(UserWarning):
    """Known classes and differences contradict each other."""


def classes_against_differences(features: Any, judged: Judgements, known: Judgements) -> str | None:
    """Why known classes cannot be right if differences are, if so.

    A linear score is fitted to the differences, and ranks the items of known class. Where
    it ranks the negative ones above the positive ones, clearly by the rank-sum test, one
    of the two has the classes exchanged.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances, about standardised.
    judged, known : Judgements
        Statements about pairs, and labels.
    """
    told = judged[judged.has("difference") | judged.has("preference")][:ROWS]
    positive = known.u > 0.5
    if len(told) < FOLDS or positive.all() or not positive.any():
        return None
    from scipy.stats import rankdata

    flat = features.reshape(len(features), -1)
    left, right = (flat[end].astype(np.float64) for end in told.ends.T)
    values = np.where(told.has("difference"), told.v, told.u)
    score = flat[known.ends[:, 0]].astype(np.float64) @ _ridge(right - left, values, told.weight)
    n, m = int(positive.sum()), int((~positive).sum())
    wins = float(rankdata(score)[positive].sum()) - n * (n + 1) / 2
    if (wins - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12) > -EXCHANGED:
        return None
    return (
        "the known classes contradict the differences: by these, an item called negative is the "
        f"more positive one in {1 - wins / (n * m):.0%} of the couples. Either positive= is the "
        "other class, or differences are above 0 where the left item is the more positive one: "
        "then change their sign"
    )


def guiding_prior(features: Any, rows: Judgements, seed: int) -> float | None:
    """The class prior to draw the first epochs to; None where none is needed or clear.

    Parameters
    ----------
    features : array of shape (N, ...)
        Instances, about standardised.
    rows : Judgements
        What to learn from.
    seed : int
        Of the rows that are looked at, if there are many.
    """
    told = rows[rows.has("similarity")]
    if len(told) < 2:
        return None
    larger = estimate_prior(told.u, "positive", weight=told.weight).value
    if larger < UNEVEN:
        return None
    side = larger_class(features, rows, seed)
    return None if side is None else larger if side == "positive" else 1 - larger


def larger_class(
    features: Any, rows: Judgements, seed: int = 0
) -> Literal["positive", "negative"] | None:
    """The larger class, as differences and similarities together tell it; None if unclear.

    Scores are those of a ridge regression that was fitted to other rows.
    """
    both = rows[rows.of("both")]
    both = both[permutation(stream(seed, "guidance"), len(both))[:ROWS]]
    if len(both) < FOLDS:
        return None
    flat = features.reshape(len(features), -1)
    left, right = (flat[end].astype(np.float64) for end in both.ends.T)
    g, g_prime = np.empty((2, len(both)))
    for fold in range(FOLDS):
        held = np.arange(len(both)) % FOLDS == fold
        kept = ~held
        w = _ridge((right - left)[kept], both.v[kept], both.weight[kept])
        g[held], g_prime[held] = left[held] @ w, right[held] @ w
    weight, different = both.weight / both.weight.sum(), 1 - both.u
    share = float(weight @ different)
    if share <= 0:
        return None
    # μ₊ − μ₋, whether the score knows the classes at all, and ḡ − M; with what each row adds.
    scored = both.v * (g_prime - g)
    apart = float(weight @ scored) / share
    middle = (g + g_prime) / 2
    centred = middle - float(weight @ (different * middle)) / share
    side = float(weight @ centred)
    if _in_errors(apart, weight, (scored - apart * different) / share) < CLEAR:
        return None
    if _in_errors(abs(side), weight, centred * (1 - different / share) - side) < CLEAR:
        return None
    return "positive" if side > 0 else "negative"


def _in_errors(value: float, weight: Floats, added: Floats) -> float:
    """A weighted mean in standard errors, from what each row adds to it."""
    error = float(np.sqrt(np.square(weight * added).sum()))
    return value / error if error > 0 else 0.0


def _ridge(d: Floats, c: Floats, weight: Floats) -> Floats:
    """Weights of a linear score whose differences d predict c, by the smaller of two systems."""
    root = np.sqrt(weight / weight.mean())[:, None]
    d, c = d * root, c * root[:, 0]
    n, size = d.shape
    penalty = float(np.square(d).sum()) / size + 1e-12
    if n < size:
        solved: Floats = d.T @ np.linalg.solve(d @ d.T + penalty * np.eye(n), c)
    else:
        solved = np.linalg.solve(d.T @ d + penalty * np.eye(size), d.T @ c)
    return solved
