"""The class prior π₊ from similarities alone.

Two independent instances agree with probability π₊² + π₋², which mean(s)
estimates without bias (paper, theorem on prior estimation). Hence

    π₊ = (1 ± √(2·mean(s) − 1)) / 2,

with + if the positive class is the majority. The error decreases like n^−½, near π₊ = ½ like
n^−¼ because of the square root. (The paper prints exp(−n), which is the tail probability at a
fixed error, not the rate.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from pairlearn.columns import Floats, as_floats, as_weights, check_confidence
from pairlearn.dependence import Dependence

__all__ = ["Majority", "PriorEstimate", "class_priors", "estimate_prior"]

Majority = Literal["positive", "negative"]


@dataclass(frozen=True)
class PriorEstimate:
    """An estimated class prior with a confidence interval.

    Attributes
    ----------
    value, low, high : float
        The estimate of π₊ and the ends of its interval.
    mean_similarity : float
        mean(s); below ½ no prior fits, and the estimate is ½.
    n : int
        Number of similarities that are not missing.
    """

    value: float
    low: float
    high: float
    mean_similarity: float
    n: int


def estimate_prior(
    similarity: Any,
    majority: Majority = "positive",
    *,
    interval: Literal["normal", "mcdiarmid"] = "normal",
    confidence: float = 0.95,
    weight: Any = None,
    items: Any = None,
) -> PriorEstimate:
    """Estimate π₊ from the similarities of pairs with independent ends.

    Parameters
    ----------
    similarity : array of shape (n,)
        Similarities; NaN entries are ignored, which is harmless if they are missing at random.
        Leave out those of annotators whose answers carry no information.
    majority : {"positive", "negative"}
        Which class is the larger one. Similarities cannot tell.
    interval : {"normal", "mcdiarmid"}
        "normal" uses the sample variance, "mcdiarmid" only that every s lies in [0, 1]: it
        holds for every n, and is wider.
    confidence : float
        Coverage of the interval, in (0, 1).
    weight : array of shape (n,), optional
        Weights of the pairs in mean(s), for instance inverse probabilities of inclusion.
    items : array of shape (n, 2), optional
        Ids of both ends. Items that recur make pairs dependent: the "normal" interval then
        uses the dyadic-robust variance (`pairlearn.dependence`), and "mcdiarmid" that changing
        an item changes mean(s) by at most its share of the weight.

    Returns
    -------
    PriorEstimate
        The interval for mean(s) is mapped through the formula above, so it stays in [½, 1] (or
        [0, ½]), and is valid for mean(s) below ½, where the value is ½.

    See Also
    --------
    pairlearn.evaluation.evaluate : Estimates the prior from both answers, with a model.

    References
    ----------
    Tate, Sugiyama and Uchida, `Learning from Similarity-Confidence and Confidence-Difference
    <https://arxiv.org/abs/2508.05108>`__, 2025.

    Examples
    --------
    >>> estimate = estimate_prior([0.9, 0.5, 0.64, 0.68], majority="negative")
    >>> round(estimate.value, 3), round(estimate.low, 3), round(estimate.high, 3)
    (0.2, 0.086, 0.406)
    """
    if majority not in ("positive", "negative"):
        raise ValueError(f"majority must be 'positive' or 'negative'; got {majority!r}")
    check_confidence(confidence)
    s, share, dependence = _read_similarities(similarity, weight, items)
    mean, n = float(share @ s), len(s)
    if interval == "normal":
        if n < 2:
            raise ValueError("similarity has one value: a normal interval needs at least two")
        variance = float(dependence.variance(share * (s - mean)))
        half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    elif interval == "mcdiarmid":
        if s.min() < 0 or s.max() > 1:
            raise ValueError("similarity leaves [0, 1]: McDiarmid's interval needs bounded values")
        squares = dependence.squared_shares(share)
        half = math.sqrt(math.log(2 / (1 - confidence)) * squares / 2)
    else:
        raise ValueError(f"interval must be 'normal' or 'mcdiarmid'; got {interval!r}")
    value, low, high = (_majority_share(m) for m in (mean, mean - half, mean + half))
    if majority == "negative":
        value, low, high = 1 - value, 1 - high, 1 - low
    return PriorEstimate(value, low, high, mean, n)


def class_priors(different: Floats, noise: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Priors of K classes from E[1 − s_k] = 2π_k(1 − π_k), and their derivatives.

    ``different`` (K,) are means of 1 − s_k in statements about class k, and ``noise`` their
    standard errors. At most one class is larger than one half: it is the one, if any, with which
    the sum of the priors is nearest to one. Where 1 − 2 E[1 − s_k] is within its noise of zero, it
    is the noise.

    Examples
    --------
    >>> class_priors(np.array([0.48, 0.32, 0.32]))[0].round(3).tolist()
    [0.6, 0.2, 0.2]
    """
    roots = np.sqrt(np.maximum(1 - 2 * different, np.maximum(2 * np.asarray(noise), 1e-12)))
    sign, small = np.ones(len(different)), float((1 - roots).sum()) / 2
    off = [abs(small - 1), *np.abs(small + roots - 1)]
    if best := int(np.argmin(off)):
        sign[best - 1] = -1
    return (1 - sign * roots) / 2, sign / (2 * roots)


def _read_similarities(
    similarity: Any, weight: Any, items: Any
) -> tuple[Floats, Floats, Dependence]:
    """Similarities that are not missing, their shares of the weight, and their dependence."""
    try:
        s = as_floats(similarity)
    except (TypeError, ValueError) as error:
        raise ValueError(f"similarity must be numbers: {error}") from None
    if s.ndim != 1:
        raise ValueError(f"similarity must have shape (n,); got {s.shape}")
    present = ~np.isnan(s)
    if not present.any():
        raise ValueError("similarity has no value: every entry is missing, or it is empty")
    if not np.isfinite(s[present]).all():
        raise ValueError("similarity is infinite somewhere: use NaN where it is not given")
    weights = as_weights(weight, len(s))[present]
    dependence = Dependence.of(items, len(s)).rows(present)
    return s[present], weights / weights.sum(), dependence


def _majority_share(mean_similarity: float) -> float:
    return (1 + math.sqrt(min(max(2 * mean_similarity - 1, 0.0), 1.0))) / 2
