"""Several judgements of a pair as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotate.agreement import reliabilities
from pairlearn.annotate.records import StoredAnswer

__all__ = ["Rule", "aggregate"]

Rule: TypeAlias = Literal["mean", "median", "reliability"]
Floats: TypeAlias = NDArray[np.float64]


def aggregate(answers: Sequence[StoredAnswer], rule: Rule) -> list[StoredAnswer]:
    """One judgement for each pair, by an annotator named after the rule.

    Similarities and differences are taken together separately, each from those who gave
    it. The pair likelihood is linear in (s, c), so that training on the mean is training
    on all judgements with equal weights; the median withstands single slips; "reliability"
    is a mean with the weights of `reliabilities`. The feasible region is not convex: two
    feasible judgements can have an infeasible mean, which `pairlearn check` reports, and
    which is given as it is.

    Where nobody gave a number, the preference of the majority is kept; a draw says
    nothing, and such a pair is left out.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand, without those that could not say.
    rule : {"mean", "median", "reliability"}
        How.

    Examples
    --------
    >>> def row(name, s, c):
    ...     return StoredAnswer(1, name, 7, "a", "b", s, c, 0, False, "", 4.0, "", 1)
    >>> one, = aggregate([row("x", 0.5, None), row("y", 0.5, 0.2), row("z", 0.8, 0.4)], "mean")
    >>> round(one.similarity, 3), round(one.difference, 3), one.annotator
    (0.6, 0.3, 'mean')
    """
    if rule not in ("mean", "median", "reliability"):
        raise ValueError(f"rule must be 'mean', 'median' or 'reliability'; got {rule!r}")
    weights = reliabilities(answers) if rule == "reliability" else {}
    by_pair: dict[int, list[StoredAnswer]] = {}
    for answer in answers:
        by_pair.setdefault(answer.pair, []).append(answer)
    middle = _median if rule == "median" else _mean
    joined = [_join(by_pair[pair], rule, middle, weights) for pair in sorted(by_pair)]
    return [one for one in joined if one is not None]


def _join(
    answers: Sequence[StoredAnswer],
    rule: Rule,
    middle: Callable[[Floats, Floats], float],
    weights: Mapping[str, float],
) -> StoredAnswer | None:
    def value(column: Sequence[float | None]) -> float | None:
        given = [
            (v, weights.get(one.annotator, 1.0))
            for v, one in zip(column, answers, strict=True)
            if v is not None
        ]
        if not given:
            return None
        numbers, shares = np.array(given).T
        return middle(numbers, shares)

    similarity = value([one.similarity for one in answers])
    difference = value([one.difference for one in answers])
    preference = 0
    if similarity is None and difference is None:
        preference = int(np.sign(sum(one.preference for one in answers)))
        if preference == 0:
            return None
    return replace(
        answers[-1],
        annotator=rule,
        similarity=similarity,
        difference=difference,
        preference=preference,
        note="",
        seconds=math.fsum(one.seconds for one in answers),
    )


def _mean(values: Floats, weights: Floats) -> float:
    # Rounding must not carry a mean out of the range of what was said.
    return float(np.clip((values * weights).sum() / weights.sum(), values.min(), values.max()))


def _median(values: Floats, weights: Floats) -> float:
    return float(np.median(values))
