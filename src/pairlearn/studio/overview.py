"""How annotators work: their pace and drift, how they answer, and what deserves a look."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators import Manner, scale_of
from pairlearn.annotators.crowd import Crowd
from pairlearn.annotators.manner import Phrase, in_words
from pairlearn.columns import Floats
from pairlearn.judgements import Judgements
from pairlearn.studio.records import Annotator, Known, Levels, StoredAnswer, nearly_agree

ROUNDING = 1e-9
"""Standard errors below this are of answers that are all the same."""


class AnswerColumns:
    """Answers as arrays; NaN where one was not given."""

    def __init__(self, answers: Sequence[StoredAnswer]) -> None:
        def array(name: str, kind: Any) -> Any:
            return np.array([getattr(one, name) for one in answers], dtype=kind)

        self.annotator: NDArray[np.str_] = array("annotator", np.str_)
        self.pair: NDArray[np.int64] = array("pair", np.int64)
        self.similarity: Floats = array("similarity", np.float64)  # None becomes NaN
        self.difference: Floats = array("difference", np.float64)
        self.preference: NDArray[np.int8] = array("preference", np.int8)
        self.seconds: Floats = array("seconds", np.float64)
        self.cant_say: NDArray[np.bool_] = array("cant_say", np.bool_)
        self.weight: Floats = array("weight", np.float64)
        self.both: NDArray[np.bool_] = ~np.isnan(self.similarity + self.difference)

    @cached_property
    def infeasible_rows(self) -> NDArray[np.bool_]:
        """Whether no posteriors produce s and c, even if an annotator rounds to few levels."""
        found = np.zeros(len(self.both), np.bool_)
        for name in np.unique(self.annotator):
            theirs = self.annotator == name
            s, c = self.similarity, self.difference
            rows = theirs & self.both
            found[rows] = ~scale_of(s[theirs], c[theirs]).admits(s[rows], c[rows])
        return found


@dataclass(frozen=True)
class Drift:
    """Mean of the last third of an annotator's answers less that of the first third.

    Pairs of a uniform plan come in random order, so that only the annotator can move these from 0
    by more than chance. ``_z`` is the difference in standard errors: chance takes it beyond 2 once
    in twenty times and beyond 3 hardly ever; NaN where all answers are the same. ``strength`` is
    |c|, and ``seconds`` the ratio of the median times.
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
    doubted = {name for doubt in crowd.doubts() for name in doubt.names}
    found = []
    for annotator, total in totals.items():
        mine = columns.annotator == annotator.name
        s, c, seconds = columns.similarity[mine], columns.difference[mine], columns.seconds[mine]
        typical = float(np.median(seconds)) if len(seconds) else math.nan
        found.append(
            AnnotatorOverview(
                annotator=annotator,
                done=int(mine.sum()),
                total=total,
                cant_say=int(columns.cant_say[mine].sum()),
                per_hour=3600 / typical if typical > 0 else math.nan,
                median_seconds=typical,
                infeasible=_mean(columns.infeasible_rows[mine & columns.both].astype(np.float64)),
                drift=_drift(s, c, seconds),
                manner=crowd.manners.get(annotator.name),
                words=crowd.words(annotator.name),
                doubt=annotator.name in doubted,
            )
        )
    return found


def _drift(s: Floats, c: Floats, seconds: Floats) -> Drift:
    def change(values: Floats) -> tuple[float, float]:
        given = values[~np.isnan(values)]
        third = len(given) // 3
        first, last = given[:third], given[len(given) - third :]
        gap = _mean(last) - _mean(first)
        if third < 2:
            return gap, math.nan
        error = math.sqrt((first.var(ddof=1) + last.var(ddof=1)) / third)
        # Of equal answers nothing is left but how they were rounded.
        return gap, gap / error if error > ROUNDING else math.nan

    third = len(seconds) // 3
    before = float(np.median(seconds[:third])) if third else 0.0
    slower = float(np.median(seconds[-third:])) / before if before > 0 else math.nan
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


def group_by(answers: Iterable[StoredAnswer], name: str) -> dict[Any, list[StoredAnswer]]:
    """The answers by one of their fields."""
    found: dict[Any, list[StoredAnswer]] = {}
    for one in answers:
        found.setdefault(getattr(one, name), []).append(one)
    return found


def format_number(value: float, style: str) -> str:
    """A number for people, with a dash for what is not known.

    >>> format_number(-0.25, "+.0%"), format_number(math.nan, ".1f")
    ('−25%', '–')
    """
    return "–" if math.isnan(value) else format(value, style).replace("-", "−")


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


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
    for name, theirs in group_by(answers, "annotator").items():
        checks = [one for one in theirs if one.pair in known]
        right = sum(known[one.pair].agrees(one, levels) for one in checks)
        first = {one.pair: one for one in theirs}
        twice = [
            (one, first[repeats[one.pair]]) for one in theirs if repeats.get(one.pair) in first
        ]
        agree = sum(_agree(again, before) for again, before in twice)
        result = found[name] = Quality(len(checks), right, len(twice), agree)
        for number, of, words in (
            (agree, len(twice), "only {number} of {all} repeated pairs answered alike"),
            (right, len(checks), "only {number} of {all} known pairs right"),
        ):
            if of >= LEAST_KNOWN and number < PASS * of:
                result.phrases.append((words, {"number": number, "all": of}))
        if len(theirs) < LEAST:
            continue
        most = max(Counter((*one.numbers, one.level) for one in theirs).values())
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
    alike = nearly_agree((again.similarity, turned), before.numbers)
    return again.cant_say == before.cant_say and alike
