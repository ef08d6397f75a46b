"""How annotators work: their pace, their habits, and how far they agree with the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators import Answers, Manner, learn_link
from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels
from pairlearn.studio.records import Annotator, AnswerColumns, Floats, StoredAnswer

LEAST_ANSWERS = 20
"""Answers from which on somebody's manner is looked at."""
ROUNDING = 1e-9
"""Standard errors below this are of answers that are all the same."""


@dataclass(frozen=True)
class Agreement:
    """How somebody's answers compare with those of the others on the same pairs.

    Each comparison is one answer of theirs with one of another annotator. NaN where
    there is nothing to compare.

    Parameters
    ----------
    comparisons : int
    similarity_gap, difference_gap : float
        Means of |Δs| and of |Δc|.
    similarity_correlation, difference_correlation : float
        Pearson's.
    same_sign : float
        Share of comparisons, with both differences other than 0, that favour the same side.

    Examples
    --------
    >>> Agreement(0, *[math.nan] * 5).comparisons
    0
    """

    comparisons: int
    similarity_gap: float
    difference_gap: float
    similarity_correlation: float
    difference_correlation: float
    same_sign: float


@dataclass(frozen=True)
class Drift:
    """Mean of the last third of somebody's answers less that of the first third.

    The pairs of a uniform plan come in random order, so that nothing but the annotator
    can make these differ from 0 by more than chance; ``_z`` is the difference in standard
    errors, which chance takes beyond 2 once in twenty times, also of a fixed rule, and
    beyond 3 hardly ever. NaN where all answers are the same. Where a model chooses the pairs,
    they differ by themselves.

    Parameters
    ----------
    similarity, similarity_z : float
        Of s.
    strength, strength_z : float
        Of |c|: how strongly one of the two is favoured.
    seconds : float
        Ratio of the median times.

    Examples
    --------
    >>> Drift(0.1, 2.5, 0.0, 0.1, 0.8).similarity_z
    2.5
    """

    similarity: float
    similarity_z: float
    strength: float
    strength_z: float
    seconds: float


@dataclass(frozen=True)
class AnnotatorOverview:
    """One line of the supervisor's page. NaN where there is nothing to say yet.

    Parameters
    ----------
    annotator : Annotator
    done, total : int
        Pairs answered, of those that are theirs.
    cant_say : int
        Among them.
    per_hour : float
        Pace, by the median of their times.
    median_seconds : float
    infeasible : float
        Share of answers, with both s and c, that no posteriors produce.
    leaning, leaning_z : float
        Mean of c: pairs lie in random directions, so that a mean away from 0 by many
        standard errors (``_z``) is a habit of favouring one side of the page.
    drift : Drift
    agreement : Agreement

    Examples
    --------
    >>> overview_of([], {Annotator(1, "ann"): 5})[0].done
    0
    """

    annotator: Annotator
    done: int
    total: int
    cant_say: int
    per_hour: float
    median_seconds: float
    infeasible: float
    leaning: float
    leaning_z: float
    drift: Drift
    agreement: Agreement


def overview_of(
    answers: Sequence[StoredAnswer], totals: Mapping[Annotator, int]
) -> list[AnnotatorOverview]:
    """How every annotator works.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand, in the order of being given.
    totals : mapping of Annotator to int
        How many pairs each has.

    Examples
    --------
    >>> rows = [
    ...     StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.0, 0, False, "", 4.0, "", 1),
    ...     StoredAnswer(2, "bob", 7, "a", "b", 0.6, 0.2, 0, False, "", 6.0, "", 1),
    ... ]
    >>> ann, bob = overview_of(rows, {Annotator(1, "ann"): 5, Annotator(2, "bob"): 5})
    >>> ann.per_hour, round(ann.agreement.similarity_gap, 3)
    (900.0, 0.3)
    """
    columns = _Answers(answers)
    return [_overview(who, total, columns) for who, total in totals.items()]


class _Answers(AnswerColumns):
    """With the rows of each pair of which something was said."""

    def __init__(self, answers: Sequence[StoredAnswer]) -> None:
        super().__init__(answers)
        self.by_pair: dict[int, list[int]] = {}
        for row in np.flatnonzero(~self.cant_say).tolist():
            self.by_pair.setdefault(int(self.pair[row]), []).append(row)


def _overview(annotator: Annotator, total: int, columns: _Answers) -> AnnotatorOverview:
    mine = columns.annotator == annotator.name
    s, c, seconds = columns.similarity[mine], columns.difference[mine], columns.seconds[mine]
    typical = float(np.median(seconds)) if len(seconds) else math.nan
    both = ~np.isnan(s) & ~np.isnan(c)
    infeasible = math.nan
    if both.any():
        infeasible = float(1 - PairLabels(s[both], c[both]).feasible().mean())
    leaning = c[~np.isnan(c)]
    return AnnotatorOverview(
        annotator=annotator,
        done=int(mine.sum()),
        total=total,
        cant_say=int(columns.cant_say[mine].sum()),
        per_hour=3600 / typical if typical > 0 else math.nan,
        median_seconds=typical,
        infeasible=infeasible,
        leaning=_mean(leaning),
        leaning_z=_ratio(_mean(leaning), math.sqrt(_squared_error(leaning))),
        drift=_drift(s, c, seconds),
        agreement=_agreement(mine, columns),
    )


def _drift(s: Floats, c: Floats, seconds: Floats) -> Drift:
    def change(values: Floats) -> tuple[float, float]:
        given = values[~np.isnan(values)]
        third = len(given) // 3
        first, last = given[:third], given[len(given) - third :]
        gap = _mean(last) - _mean(first)
        error = math.sqrt(_squared_error(first) + _squared_error(last))
        # Of equal answers nothing is left but how they were rounded.
        return gap, _ratio(gap, error) if error > ROUNDING else math.nan

    third = len(seconds) // 3
    slower = math.nan
    if third:
        slower = _ratio(float(np.median(seconds[-third:])), float(np.median(seconds[:third])))
    return Drift(*change(s), *change(np.abs(c)), slower)


def _agreement(mine: NDArray[np.bool_], columns: _Answers) -> Agreement:
    at, other = _shared(mine, columns)
    s, c = (
        np.stack([values[at], values[other]]) for values in (columns.similarity, columns.difference)
    )
    signed = (c[0] != 0) & (c[1] != 0) & ~np.isnan(c).any(0)
    return Agreement(
        comparisons=len(at),
        similarity_gap=_gap(s),
        difference_gap=_gap(c),
        similarity_correlation=_correlation(s),
        difference_correlation=_correlation(c),
        same_sign=_mean((np.sign(c[0]) == np.sign(c[1]))[signed].astype(np.float64)),
    )


def _shared(
    mine: NDArray[np.bool_], columns: _Answers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of theirs and rows of others on the same pair, every combination."""
    found = [
        (row, other)
        for row in np.flatnonzero(mine & ~columns.cant_say).tolist()
        for other in columns.by_pair[int(columns.pair[row])]
        if not mine[other]
    ]
    array = np.array(found, dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def manners(answers: Sequence[StoredAnswer]) -> dict[str, Manner]:
    """How everybody answers, by name, as far as the answers themselves tell.

    Nobody is known by fewer than twenty answers.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand.

    Examples
    --------
    >>> manners([StoredAnswer(1, "ann", 7, "a", "b", 0.9, 0.0, 0, False, "", 4.0, "", 1)])
    {}
    """
    columns = _Answers(answers)
    given = ~(np.isnan(columns.similarity) & np.isnan(columns.difference)) & ~columns.cant_say
    names, counts = np.unique(columns.annotator[given], return_counts=True)
    given &= np.isin(columns.annotator, names[counts >= LEAST_ANSWERS])
    if not given.any():
        return {}
    items = 2 * columns.pair[given]
    said = Judgements.from_columns(
        np.stack([items, items + 1], 1),
        {"similarity": columns.similarity[given], "difference": columns.difference[given]},
        annotator=columns.annotator[given],
    )
    return {one.name: one for one in learn_link(Answers.of(said)).manners}


def reliabilities(answers: Sequence[StoredAnswer]) -> dict[str, float]:
    """Weights of annotators by their manner: `Manner.trust`, scaled to a mean of one.

    Those who are known by too few answers have the weight of the average.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand.

    Returns
    -------
    dict of str to float
        By name; their mean is 1.

    Examples
    --------
    >>> def row(name, s):
    ...     return StoredAnswer(1, name, 7, "a", "b", s, None, 0, False, "", 4.0, "", 1)
    >>> reliabilities([row("ann", 0.5), row("bob", 0.9)])
    {'ann': 1.0, 'bob': 1.0}
    """
    known = manners(answers)
    usual = float(np.mean([one.trust for one in known.values()])) if known else 1.0
    names = sorted({one.annotator for one in answers})
    trust = {name: known[name].trust if name in known else usual for name in names}
    scale = sum(trust.values()) / len(trust) if trust else 1.0
    return {name: value / scale for name, value in trust.items()}


def figure(value: float, style: str) -> str:
    """A number for people, with a dash for what is not known.

    Examples
    --------
    >>> figure(-0.25, "+.0%"), figure(math.nan, ".1f")
    ('−25%', '–')
    """
    return "–" if math.isnan(value) else format(value, style).replace("-", "−")


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _squared_error(values: Floats) -> float:
    """Of the mean."""
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else math.nan


def _ratio(number: float, by: float) -> float:
    return number / by if by > 0 else math.nan


def _gap(values: Floats) -> float:
    gaps = np.abs(values[0] - values[1])
    return _mean(gaps[~np.isnan(gaps)])


def _correlation(values: Floats) -> float:
    both = values[:, ~np.isnan(values).any(0)]
    if both.shape[1] < 2 or (both.std(1) == 0).any():
        return math.nan
    return float(np.asarray(np.corrcoef(both))[0, 1])
