"""Two readings of the same answers, which bracket every measure of a classifier.

An annotator who knows V states r = P(y=+1 | V). With the class prior π, the share of the variance
of the class that the annotator knows is κ = Var(r)/(π(1 − π)). Pairs with independent ends have
E[c²] = 2 Var(r) and E[1 − s] = 2π(1 − π), so that

    κ = E[c²] / E[1 − s].

Judged pairs determine p̃ = E[r | decided positive] and õ = E[r | decided negative], and nothing
about the classes beyond that. Two assumptions turn them into rates of positives:

informed
    The annotators knew everything that the decision depends on: p = p̃ and o = õ.
independent
    Given the class, the annotators' mistakes are unrelated to the decision. Then
    E[r | y] = π(1 − κ) + κy, so that p = π + (p̃ − π)/κ, and likewise for o.

Both need calibrated annotators. A classifier that uses some of what they know and something that
they do not know lies between the two. Every measure is a function of (q, p, o), so a reading only
maps p and o; the AUC is ½ + (AUC̃ − ½)/κ.

Noise in the answers inflates E[c²], and its variance is subtracted. Hard answers are draws from a
belief, with c² = 1 − s whatever was believed. For these κ comes from two people who judged the same
pair, E[c₁c₂]/E[1 − s]: κ if both know the same, and less otherwise. Without such pairs κ may be
anything, and the independent reading is bounded by a perfect classifier only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlearn.columns import Floats, check_share
from pairlearn.evaluation.decisions import Decisions, Measure
from pairlearn.evaluation.judged import Bracket, Estimate, JudgedPairs, hull


@dataclass(frozen=True)
class Knowledge:
    """Share κ of the variance of the class that annotators know.

    Attributes
    ----------
    share : Estimate
        κ in [0, 1] with its interval.
    known : bool
        Whether the answers determine κ; not if its interval contains 0.
    influence : array of shape (n,)
        Influences of the pairs on κ.
    """

    share: Estimate
    known: bool
    influence: Floats

    def independent(self, rate: Any, prior: Any, influence: Any, prior_influence: Any) -> Any:
        """A mean of r under the independent reading, not clipped, and its influences."""
        kappa, excess = self.share.value, rate - prior
        moved = (influence - prior_influence - excess / kappa * self.influence) / kappa
        return prior + excess / kappa, prior_influence + moved


def knowledge_of(pairs: JudgedPairs) -> Knowledge:
    """Estimate κ from differences and similarities, or from pairs that two people judged."""
    different, different_influence = _mean_dissimilarity(pairs)
    squares = _mean_square(pairs) or _mean_product(pairs)
    if squares is None or different <= 0:
        return Knowledge(Estimate(math.nan, 0.0, 1.0), False, np.zeros(len(pairs)))
    kappa = squares[0] / different
    influence = (squares[1] - kappa * different_influence) / different
    half = pairs.quantile * math.sqrt(float(pairs.dependence.variance(influence)))
    ends = (min(max(x, 0.0), 1.0) for x in (kappa, kappa - half, kappa + half))
    return Knowledge(Estimate(*ends), kappa > half, influence)


def _mean_dissimilarity(pairs: JudgedPairs) -> tuple[float, Floats]:
    """E[1 − s] with influences, or 2π(1 − π) of a known prior if there are no similarities."""
    has = pairs.has_similarity
    if has.any():
        return _mean(np.where(has, 1 - pairs.similarity, 0.0), np.where(has, pairs.weight, 0.0))
    prior = 0.0 if pairs.prior is None else pairs.prior
    return 2 * prior * (1 - prior), np.zeros(len(pairs))


def _mean_square(pairs: JudgedPairs) -> tuple[float, Floats] | None:
    """E[c²] without noise, from the rows whose noise is known."""
    assert pairs.noise is not None
    squares = pairs.difference**2 - pairs.noise
    known = ~np.isnan(squares)
    if not known.any():
        return None
    return _mean(np.where(known, squares, 0.0), np.where(known, pairs.weight, 0.0))


def _mean_product(pairs: JudgedPairs) -> tuple[float, Floats] | None:
    """E[c₁c₂] over couples of items that several people judged; rows without names count as one."""
    couples, ends = pairs.dependence.couples, pairs.dependence.ends
    if couples is None or ends is None:
        return None
    rows = np.flatnonzero(pairs.has_difference)
    couple = couples[rows]
    towards = np.where(ends[rows, 0] < ends[rows, 1], 1.0, -1.0) * pairs.difference[rows]
    person = np.arange(len(rows)) if pairs.annotator is None else pairs.annotator[rows]
    _, code = np.unique(np.stack([couple, person]), axis=1, return_inverse=True)
    code = code.reshape(-1)
    opinion = np.bincount(code, towards) / np.bincount(code)
    owner = np.zeros(len(opinion), np.intp)
    owner[code] = couple
    people = np.bincount(owner, minlength=couples.max() + 1)
    total, squares = (np.bincount(owner, x, len(people)) for x in (opinion, opinion**2))
    shared = people > 1
    if not shared.any():
        return None
    product = np.where(shared, total**2 - squares, 0.0) / np.maximum(people * (people - 1), 1)
    counted = np.bincount(couple, minlength=len(people))[couple]
    weight = np.zeros(len(pairs))
    weight[rows] = np.where(shared[couple], pairs.weight[rows] / counted, 0.0)
    values = np.zeros(len(pairs))
    values[rows] = product[couple]
    return _mean(values, weight)


def _mean(values: Floats, weight: Floats) -> tuple[float, Floats]:
    """A weighted mean, and the influence of each row on it."""
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, share * (values - mean)


def bracket_measures(
    solutions: Sequence[Decisions], measures: Sequence[Measure], knowledge: Knowledge
) -> list[Bracket]:
    """Measures under both readings; intervals contain those of all solutions."""
    by_solution = []
    for solution in solutions:
        informed = solution.estimates(measures)
        both = zip(informed, _independent(solution, measures, knowledge, informed), strict=True)
        by_solution.append([(x, x if math.isnan(x.value) else y) for x, y in both])
    return [
        Bracket.of(hull(one for one, _ in several), hull(two for _, two in several))
        for several in zip(*by_solution, strict=True)
    ]


def _independent(
    solution: Decisions,
    measures: Sequence[Measure],
    knowledge: Knowledge,
    informed: Sequence[Estimate],
) -> list[Estimate]:
    """The measures under the independent reading.

    Their intervals are normal: the error of κ does not vanish with the classifier's errors, and
    Wilson's form would be far too wide near 1.
    """
    q, p, o = solution.theta
    prior = q * p + (1 - q) * o
    if not knowledge.known:
        limits = [[float(m.value(q, *rates)) for m in measures] for rates in _limits(solution)]
        return [_open(one.value, *ends) for one, *ends in zip(informed, *limits, strict=True)]
    d_q, d_p, d_o = solution.influence.T
    d_prior = (p - o) * d_q + q * d_p + (1 - q) * d_o
    rates = [knowledge.independent(r, prior, d_r, d_prior) for r, d_r in ((p, d_p), (o, d_o))]
    theta = np.array([q, *(min(max(float(rate), 0.0), 1.0) for rate, _ in rates)])
    influence = np.column_stack([d_q, *(d_rate for _, d_rate in rates)])
    mapped = Decisions(solution.pairs, theta, influence, solution.log_likelihood)
    values = [mapped.value(measure) for measure in measures]
    return wald(solution.pairs, values, mapped.influences(measures))


def wald(pairs: JudgedPairs, values: Sequence[float], influence: Floats) -> list[Estimate]:
    """Proportions with normal intervals from the influences (n, k) of the pairs, in [0, 1]."""
    halves = pairs.quantile * np.sqrt(np.atleast_1d(pairs.dependence.variance(influence)))
    values = [min(max(value, 0.0), 1.0) for value in values]
    return [
        Estimate(value, max(value - half, 0.0), min(value + half, 1.0))
        for value, half in zip(values, halves.tolist(), strict=True)
    ]


def _limits(solution: Decisions) -> list[tuple[float, float]]:
    """Rates (p, o) as κ approaches 0: those of perfect decisions, or of perfectly wrong ones.

    Both, if the answers do not tell whether decisions follow the classes.
    """
    _, p, o = solution.theta
    error = solution.pairs.dependence.variance(solution.influence[:, 1] - solution.influence[:, 2])
    clear = abs(p - o) > solution.pairs.quantile * math.sqrt(float(error))
    right, wrong = (1.0, 0.0), (0.0, 1.0)
    return [right if p > o else wrong] if clear else [right, wrong]


def _open(informed: float, *limits: float) -> Estimate:
    """Everything between the informed reading and the limits."""
    return Estimate(math.nan, min(informed, *limits), max(informed, *limits))


def bracket_area(pairs: JudgedPairs, knowledge: Knowledge) -> Bracket:
    """The AUC, P(output of a positive > output of a negative) with ties half, under both readings.

    By dissimilar pairs it is ½ + E[c·order]/(2 E[1 − s]), with order ±1 by the larger output. NaN
    if it is not determined; with one kind of judgement, a prior does not help here.
    """
    has_c, (different, of_s) = pairs.has_difference, _mean_dissimilarity(pairs)
    if not (pairs.has_similarity.any() and has_c.any() and different > 0):
        return Bracket.of(*[Estimate(math.nan, 0.0, 1.0)] * 2)
    # Not the sign of a difference, since outputs may be infinite.
    order = (pairs.z_prime > pairs.z) * 1.0 - (pairs.z > pairs.z_prime)
    towards = np.where(has_c, pairs.difference * order, 0.0)
    mean, of_c = _mean(towards, np.where(has_c, pairs.weight, 0.0))
    influence = (of_c - mean / different * of_s) / (2 * different)
    value, count = 0.5 + mean / different / 2, pairs.effective_ends / 2 * different
    (informed,) = pairs.estimates([value], influence[:, None], [count])
    if knowledge.known:
        value, moved = knowledge.independent(informed.value, 0.5, influence, 0.0)
        return Bracket.of(informed, wald(pairs, [value], moved[:, None])[0])
    low = informed.value if informed.low > 0.5 else 0.0
    high = informed.value if informed.high < 0.5 else 1.0
    return Bracket.of(informed, Estimate(math.nan, low, high))


def independent_probability(probability: Any, prior: float, knowledge: float) -> Floats:
    """Probabilities under the independent reading, from those that a model learnt from answers.

    A model learns E[r | x]. If the annotators' mistakes are unrelated to the features, that is
    π(1 − κ) + κ P(y=+1 | x), so

        P(y=+1 | x) = (E[r | x] − π(1 − κ)) / κ,   clipped to [0, 1].

    Parameters
    ----------
    probability : array
        Learnt probabilities E[r | x].
    prior : float
        Class prior π.
    knowledge : float
        κ in (0, 1].

    Examples
    --------
    At a prior of 0.1, with annotators who know 60% of the variance, the learnt 0.34 means 0.5:

    >>> independent_probability([0.04, 0.34, 0.64], prior=0.1, knowledge=0.6).round(3)
    array([0. , 0.5, 1. ])
    """
    _check(prior, knowledge)
    mapped = (np.asarray(probability, np.float64) - prior * (1 - knowledge)) / knowledge
    return np.asarray(mapped.clip(0, 1))


def independent_threshold(prior: float, knowledge: float, threshold: float = 0.5) -> float:
    """Learnt probability that means `threshold` under the independent reading: π(1 − κ) + κt.

    Examples
    --------
    For classes of equal size, the decision is the same under both readings:

    >>> independent_threshold(0.5, 0.6), round(independent_threshold(0.03, 0.6), 3)
    (0.5, 0.312)
    """
    _check(prior, knowledge)
    return prior * (1 - knowledge) + knowledge * threshold


def _check(prior: float, knowledge: float) -> None:
    check_share("prior", prior)
    if not 0 < knowledge <= 1:
        raise ValueError(f"knowledge must lie in (0, 1]; got {knowledge:g}")
