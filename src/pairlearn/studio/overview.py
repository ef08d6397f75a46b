"""How annotators work: their pace and drift, how they answer, and what deserves a look."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from pairlearn.annotators import Manner, scale_of
from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.manner import Phrase, in_words
from pairlearn.judgements import Judgements
from pairlearn.studio.known import Known, Levels, near
from pairlearn.studio.records import Annotator, AnswerColumns, Floats, StoredAnswer

ROUNDING = 1e-9
"""Standard errors below this are of answers that are all the same."""


@dataclass(frozen=True)
class Drift:
    """Mean of the last third of an annotator's answers less that of the first third.

    Pairs of a uniform plan come in random order, so only the annotator can move these from 0 by
    more than chance; ``_z`` is the difference in standard errors, which chance takes beyond 2 once
    in twenty times and beyond 3 hardly ever. NaN where all answers are the same. Where a model
    chooses the pairs, they differ by themselves. ``strength`` is |c|, and ``seconds`` the ratio of
    the median times.
    """

    similarity: float
    similarity_z: float
    strength: float
    strength_z: float
    seconds: float


@dataclass(frozen=True)
class AnnotatorOverview:
    """One line of the supervisor's page; NaN where nothing is known yet.

    ``per_hour`` is the pace by the median time, ``infeasible`` the share of answers that no
    posteriors produce even after rounding, ``words`` the ``manner`` in a sentence, and ``doubt``
    whether that deserves a look.
    """

    annotator: Annotator
    done: int
    total: int
    cant_say: int
    per_hour: float
    median_seconds: float
    infeasible: float
    drift: Drift
    manner: Manner | None
    words: str
    doubt: bool


def overview_of(
    answers: Sequence[StoredAnswer], totals: Mapping[Annotator, int], crowd: Crowd | None = None
) -> list[AnnotatorOverview]:
    """How every annotator works, from the answers in their order and the pairs each has in all."""
    columns = AnswerColumns(answers)
    crowd = crowd or crowd_of(answers)
    return [_overview(who, total, columns, crowd) for who, total in totals.items()]


def _overview(
    annotator: Annotator, total: int, columns: AnswerColumns, crowd: Crowd
) -> AnnotatorOverview:
    mine = columns.annotator == annotator.name
    s, c, seconds = columns.similarity[mine], columns.difference[mine], columns.seconds[mine]
    typical = float(np.median(seconds)) if len(seconds) else math.nan
    both = ~np.isnan(s) & ~np.isnan(c)
    return AnnotatorOverview(
        annotator=annotator,
        done=int(mine.sum()),
        total=total,
        cant_say=int(columns.cant_say[mine].sum()),
        per_hour=3600 / typical if typical > 0 else math.nan,
        median_seconds=typical,
        infeasible=1 - _mean(scale_of(s, c).admits(s[both], c[both]).astype(np.float64)),
        drift=_drift(s, c, seconds),
        manner=crowd.manners.get(annotator.name),
        words=crowd.words(annotator.name),
        doubt=any(annotator.name in doubt.names for doubt in crowd.doubts()),
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


def crowd_of(answers: Sequence[StoredAnswer]) -> Crowd:
    """How everybody answers, people and models alike, as far as the answers themselves tell."""
    said = [one for one in answers if not one.cant_say]
    columns = AnswerColumns(said)
    items = 2 * columns.pair
    given = {"similarity": columns.similarity, "difference": columns.difference}
    given["preference"] = np.where(columns.preference == 0, np.nan, columns.preference)
    ends = np.stack([items, items + 1], 1)
    return Crowd.of(Judgements.from_columns(ends, given, annotator=columns.annotator))


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


LEAST = 10
"""Answers from which on habits are spoken of."""
LEAST_KNOWN = 3
CONSTANT = 0.9
FAST_SECONDS = 1.0
PASS = 0.6
"""Share of the known pairs that somebody who reads them has right at least."""


@dataclass
class Quality:
    """One annotator's known pairs judged and right, repeats judged and consistent, and flags."""

    known: int = 0
    right: int = 0
    repeats: int = 0
    agree: int = 0
    phrases: list[Phrase] = field(default_factory=list)

    @property
    def flags(self) -> list[str]:
        """What deserves a look, in English."""
        return [in_words([one]) for one in self.phrases]


def quality_of(
    answers: Sequence[StoredAnswer],
    known: Mapping[int, Known],
    levels: Levels,
    repeats: Mapping[int, int] = MappingProxyType({}),
) -> dict[str, Quality]:
    """How good everybody's answers are, by simple rules.

    ``known`` has the checks by the numbers of their pairs, and ``repeats`` the original pair of
    each repeat, which is shown the other way round.
    """
    found: dict[str, Quality] = {}
    by_name: dict[str, list[StoredAnswer]] = {}
    for one in answers:
        by_name.setdefault(one.annotator, []).append(one)
    for name, theirs in by_name.items():
        checks = [one for one in theirs if one.pair in known]
        right = sum(known[one.pair].agrees(one, levels) for one in checks)
        first = {one.pair: one for one in theirs}
        twice = [
            (one, first[repeats[one.pair]]) for one in theirs if repeats.get(one.pair) in first
        ]
        agree = sum(_agree(again, before) for again, before in twice)
        result = found[name] = Quality(len(checks), right, len(twice), agree)
        if len(twice) >= LEAST_KNOWN and agree < PASS * len(twice):
            words = "only {number} of {all} repeated pairs answered alike"
            result.phrases.append((words, {"number": agree, "all": len(twice)}))
        if len(checks) >= LEAST_KNOWN and right < PASS * len(checks):
            words = "only {number} of {all} known pairs right"
            result.phrases.append((words, {"number": right, "all": len(checks)}))
        if len(theirs) < LEAST:
            continue
        said = Counter((one.similarity, one.difference, one.level) for one in theirs)
        most = max(said.values())
        if most >= CONSTANT * len(theirs):
            words = "{number} of {all} answers are the same"
            result.phrases.append((words, {"number": most, "all": len(theirs)}))
        seconds = [one.seconds for one in theirs if one.seconds > 0]
        if seconds and statistics.median(seconds) < FAST_SECONDS:
            words = "half of the answers took less than {seconds:g} s"
            result.phrases.append((words, {"seconds": FAST_SECONDS}))
    return found


def _agree(again: StoredAnswer, before: StoredAnswer) -> bool:
    """Whether somebody said the same of a pair the other way round."""
    turned = None if again.difference is None else -again.difference
    given = (before.similarity, before.difference)
    return again.cant_say == before.cant_say and near((again.similarity, turned), given)
