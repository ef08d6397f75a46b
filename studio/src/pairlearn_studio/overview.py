"""Statistics of annotators: pace, drift, how they answer, and which of them deserve a look."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators import Annotators, findings
from pairlearn.annotators.annotator import Phrase, in_words
from pairlearn.columns import Floats
from pairlearn.finding import Finding
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import scale_of
from pairlearn_studio.records import Annotator, Known, StoredAnswer

#: Standard errors below this come from rounding: all answers are the same.
ROUNDING = 1e-9


class AnswerColumns:
    """Answers as arrays; missing numbers are NaN."""

    def __init__(self, answers: Sequence[StoredAnswer]) -> None:
        def array(name: str, dtype: Any) -> Any:
            return np.array([getattr(answer, name) for answer in answers], dtype=dtype)

        self.annotator: NDArray[np.str_] = array("annotator", np.str_)
        self.pair: NDArray[np.int64] = array("pair", np.int64)
        self.similarity: Floats = array("similarity", np.float64)  # None becomes NaN
        self.difference: Floats = array("difference", np.float64)
        self.seconds: Floats = array("seconds", np.float64)
        self.cant_say: NDArray[np.bool_] = array("cant_say", np.bool_)
        self.both: NDArray[np.bool_] = ~np.isnan(self.similarity + self.difference)

    @cached_property
    def infeasible_rows(self) -> NDArray[np.bool_]:
        """Whether no posteriors produce s and c, even if an annotator rounds to few levels."""
        infeasible = np.zeros(len(self.both), np.bool_)
        s, c = self.similarity, self.difference
        for name in np.unique(self.annotator):
            theirs = self.annotator == name
            rows = theirs & self.both
            infeasible[rows] = ~scale_of(s[theirs], c[theirs]).admits(s[rows], c[rows])
        return infeasible


@dataclass(frozen=True)
class AnnotatorOverview:
    """One line of the supervisor's page; NaN where nothing is known yet.

    ``infeasible`` is the share of answers that no posteriors produce even after rounding.
    ``drift`` is the mean similarity of the last third of the answers minus that of the first, and
    ``drift_z`` the same in standard errors. Pairs of a uniform plan come in random order, so that
    beyond chance only a change in the annotator moves these from 0: by chance ``drift_z`` exceeds
    2 once in twenty times and 3 hardly ever. ``words`` says how they answer, and ``doubt`` marks
    those that deserve a look: the forecast learns both.
    """

    annotator: Annotator
    done: int
    total: int
    cant_say: int
    median_seconds: float
    infeasible: float
    drift: float
    drift_z: float
    words: str = "–"
    doubt: bool = False


def overview_of(
    columns: AnswerColumns,
    totals: Mapping[Annotator, int],
    manners: Mapping[str, tuple[Sequence[Phrase], bool]] = MappingProxyType({}),
) -> list[AnnotatorOverview]:
    """Statistics of each annotator, from the answers in their order and the pairs of each.

    ``manners`` has the phrases and the doubt about each, as the forecast learnt them.
    """

    def overview(annotator: Annotator, total: int) -> AnnotatorOverview:
        theirs = columns.annotator == annotator.name
        seconds = columns.seconds[theirs]
        phrases, doubt = manners.get(annotator.name, ((), False))
        median_seconds = float(np.median(seconds)) if len(seconds) else math.nan
        drift, drift_z = _drift(columns.similarity[theirs])
        return AnnotatorOverview(
            annotator=annotator,
            done=int(theirs.sum()),
            total=total,
            cant_say=int(columns.cant_say[theirs].sum()),
            median_seconds=median_seconds,
            infeasible=_mean(columns.infeasible_rows[theirs & columns.both].astype(np.float64)),
            drift=drift,
            drift_z=drift_z,
            words=in_words([*phrases]) or "–",
            doubt=doubt,
        )

    return [overview(annotator, total) for annotator, total in totals.items()]


def _drift(similarity: Floats) -> tuple[float, float]:
    values = similarity[~np.isnan(similarity)]
    third = len(values) // 3
    first, last = values[:third], values[len(values) - third :]
    gap = _mean(last) - _mean(first)
    if third < 2:
        return gap, math.nan
    error = math.sqrt((first.var(ddof=1) + last.var(ddof=1)) / third)
    return gap, gap / error if error > ROUNDING else math.nan


#: Answers from which on an annotator is described: with fewer a share is known to no better than
#: ±0.2.
DESCRIBED = 20


@dataclass(frozen=True)
class People:
    """How annotators answer, people and models alike, and what is found about them."""

    annotators: Annotators = field(default_factory=Annotators)
    findings: tuple[Finding, ...] = ()

    @property
    def doubted(self) -> set[str]:
        """Annotators who deserve a look."""
        guessing = {person.name for person in self.annotators.people if person.outlying}
        return guessing.union(*(map(str, finding.ids) for finding in self.findings))

    def phrases(self, name: str) -> list[Phrase]:
        """Parts of a sentence about an annotator, as keys of the tables of translations."""
        person = self.annotators.find(name)
        if person is None or person.answers < DESCRIBED:
            return [("has too few answers to say", {})]
        found = {finding.code for finding in self.findings if name in finding.ids}
        if "reversed-annotator" in found:
            return [("has left and right exchanged", {})]
        return person.phrases()


def people_of(answers: Sequence[StoredAnswer]) -> People:
    """How annotators answer, learnt from the answers alone."""
    judged = [answer for answer in answers if not answer.cant_say]
    columns = AnswerColumns(judged)
    statements = {"similarity": columns.similarity, "difference": columns.difference}
    sides = [answer.others.get("preference", math.nan) for answer in judged]
    statements["preference"] = np.array(sides, np.float64)
    ends = np.stack([2 * columns.pair, 2 * columns.pair + 1], 1)
    table = Judgements.from_columns(ends, statements, annotator=columns.annotator)
    return People(Annotators.learn(table), tuple(findings(table)))


def group_by(answers: Iterable[StoredAnswer], name: str) -> dict[Any, list[StoredAnswer]]:
    """Answers grouped by one of their fields."""
    groups: dict[Any, list[StoredAnswer]] = {}
    for answer in answers:
        groups.setdefault(getattr(answer, name), []).append(answer)
    return groups


def format_number(value: float, style: str) -> str:
    """Format a number for people, with a dash for NaN.

    >>> format_number(-0.25, "+.0%"), format_number(math.nan, ".1f")
    ('−25%', '–')
    """
    return "–" if math.isnan(value) else format(value, style).replace("-", "−")


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


#: Fewest answers that show habits.
LEAST_ANSWERS = 10
LEAST_KNOWN = 3
FAST_SECONDS = 1.0
#: Least share of known pairs that an attentive annotator has right.
PASS = 0.6


@dataclass
class Quality:
    """Numbers of an annotator's known pairs and of right ones among them."""

    known: int = 0
    right: int = 0
    phrases: list[Phrase] = field(default_factory=list)


def quality_of(
    answers: Sequence[StoredAnswer], known: Mapping[int, Known], models: Container[str] = ()
) -> dict[str, Quality]:
    """Quality of each annotator's answers, by simple rules; ``known`` maps pair ids to checks.

    Nothing is concluded from the speed of ``models``.
    """
    qualities: dict[str, Quality] = {}
    for name, theirs in group_by(answers, "annotator").items():
        checks = [answer for answer in theirs if answer.pair in known]
        right = sum(known[answer.pair].agrees(answer) for answer in checks)
        quality = Quality(len(checks), right)
        quality.phrases = _flags(quality, [] if name in models else theirs)
        qualities[name] = quality
    return qualities


def _flags(quality: Quality, answers: Sequence[StoredAnswer]) -> list[Phrase]:
    """Reasons for a closer look at an annotator."""
    flags: list[Phrase] = []
    if quality.known >= LEAST_KNOWN and quality.right < PASS * quality.known:
        words = "only {number} of {all} known pairs right"
        flags.append((words, {"number": quality.right, "all": quality.known}))
    if len(answers) < LEAST_ANSWERS:
        return flags
    seconds = [answer.seconds for answer in answers if answer.seconds > 0]
    if seconds and statistics.median(seconds) < FAST_SECONDS:
        words = "half of the answers took less than {seconds:g} s"
        flags.append((words, {"seconds": FAST_SECONDS}))
    return flags


def agreement(answers: Sequence[StoredAnswer]) -> dict[str, Any]:
    """How far annotators agree on shared pairs.

    Krippendorff's α of similarities and of differences, and ``kappas``: two names and the weighted
    κ of their differences, the lowest first, for those who share at least `LEAST_ANSWERS` pairs.
    """
    columns = AnswerColumns(answers)
    numbers: dict[str, dict[int, float]] = {}
    for answer in answers:
        if answer.difference is not None:
            numbers.setdefault(answer.annotator, {})[answer.pair] = answer.difference
    kappas = []
    for first, second in combinations(numbers, 2):
        both = [numbers[name] for name in (first, second)]
        shared = both[0].keys() & both[1].keys()
        if len(shared) >= LEAST_ANSWERS:
            values = (np.array([one[pair] for pair in shared]) for one in both)
            kappas.append((first, second, weighted_kappa(*values)))
    return {
        "similarity": krippendorff_alpha(columns.pair, columns.similarity),
        "difference": krippendorff_alpha(columns.pair, columns.difference),
        "kappas": sorted(kappas, key=itemgetter(2)),
    }


def weighted_kappa(first: Floats, second: Floats) -> float:
    """Cohen's κ with quadratic weights of two annotators' numbers about the same pairs.

    κ = 1 − mean (xᵢ − yᵢ)² / mean (xᵢ − yⱼ)² over all i and j (Cohen, "Weighted kappa", 1968): 1 is
    perfect agreement, 0 is that of chance.

    Examples
    --------
    >>> weighted_kappa(np.array([0.9, -0.6, 0.0]), np.array([0.9, -0.6, 0.0]))
    1.0
    """
    by_chance = first.var() + second.var() + (first.mean() - second.mean()) ** 2
    return float(1 - ((first - second) ** 2).mean() / by_chance) if by_chance > 0 else 1.0


def krippendorff_alpha(pair: NDArray[np.int64], values: Floats) -> float:
    """Krippendorff's α of numbers about pairs, with squared differences; NaN without shared pairs.

    α = 1 − D_o/D_e, the mean squared difference of two answers to one pair relative to that of any
    two answers (Krippendorff, "Content Analysis", 2018, chapter 12): 1 is perfect agreement, 0 is
    that of chance. Missing values are NaN.

    Examples
    --------
    >>> krippendorff_alpha(np.array([1, 1, 2, 2]), np.array([0.9, 0.9, 0.1, 0.1]))
    1.0
    """
    given = ~np.isnan(values)
    _, pair, count = np.unique(pair[given], return_inverse=True, return_counts=True)
    shared = count[pair] > 1
    values, pair = values[given][shared], pair[shared]
    if not len(values):
        return math.nan
    # Squared differences of all ordered pairs of m values sum to 2m times those from their mean.
    mean = np.bincount(pair, values, len(count)) / count
    squares = np.bincount(pair, (values - mean[pair]) ** 2, len(count))
    observed = float((2 * count * squares / np.maximum(count - 1, 1)).sum())
    expected = 2 * len(values) ** 2 * values.var() / (len(values) - 1)
    return float(1 - observed / expected) if expected > 0 else math.nan
