"""Statistics of annotators: pace, drift, how they answer, and which of them deserve a look."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators import Annotators, Phrase, findings, in_words
from pairlearn.columns import Floats
from pairlearn.finding import Finding
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import scale_of
from pairlearn_studio.records import Annotator, Known, StoredAnswer

#: Standard errors below this come from rounding: all answers are the same.
ROUNDING = 1e-9


def column(answers: Sequence[StoredAnswer], name: str) -> Floats:
    """A field of answers as an array; None becomes NaN."""
    return np.array([getattr(answer, name) for answer in answers], np.float64)


def infeasible_rows(answers: Sequence[StoredAnswer]) -> NDArray[np.bool_]:
    """Whether no posteriors produce s and c, even if an annotator rounds to few levels."""
    infeasible = np.zeros(len(answers), np.bool_)
    s, c = column(answers, "similarity"), column(answers, "difference")
    names = np.array([answer.annotator for answer in answers], np.str_)
    for name in np.unique(names):
        theirs = names == name
        rows = theirs & ~np.isnan(s + c)
        infeasible[rows] = ~scale_of(s[theirs], c[theirs]).admits(s[rows], c[rows])
    return infeasible


@dataclass(frozen=True)
class AnnotatorOverview:
    """One line of the supervisor's page; NaN where nothing is known yet.

    ``infeasible`` is the share of answers that no posteriors produce even after rounding.
    ``drift`` is the mean similarity of the last third of the answers minus that of the first, and
    ``drift_z`` the same in standard errors. Pairs of a uniform plan come in random order, so that
    beyond chance only a change in the annotator moves these from 0: by chance ``drift_z`` exceeds
    2 once in twenty times and 3 hardly ever. ``right`` of their answers to ``known`` pairs are
    right, and ``flags`` are reasons for a closer look by simple rules. ``words`` says how they
    answer, and ``doubt`` marks those that deserve a look: the forecast learns both.
    """

    annotator: Annotator
    done: int
    total: int
    cant_say: int
    median_seconds: float
    infeasible: float
    drift: float
    drift_z: float
    known: int
    right: int
    flags: list[Phrase]
    words: str = "–"
    doubt: bool = False


def overview_of(
    answers: Sequence[StoredAnswer],
    totals: Mapping[Annotator, int],
    checks: Mapping[int, Known] = MappingProxyType({}),
    manners: Mapping[str, tuple[Sequence[Phrase], bool]] = MappingProxyType({}),
) -> list[AnnotatorOverview]:
    """Statistics of each annotator, from the answers in their order and the pairs of each.

    ``checks`` maps ids of pairs to known answers; ``manners`` has the phrases and the doubt about
    each, as the forecast learnt them.
    """
    answers_of = group_by(answers, "annotator")

    def overview(annotator: Annotator, total: int) -> AnnotatorOverview:
        theirs = answers_of.get(annotator.name, [])
        both = np.array([None not in answer.numbers for answer in theirs], np.bool_)
        known = [answer for answer in theirs if answer.pair in checks]
        right = sum(checks[answer.pair].agrees(answer) for answer in known)
        drift, drift_z = _drift(column(theirs, "similarity"))
        phrases, doubt = manners.get(annotator.name, ((), False))
        return AnnotatorOverview(
            annotator=annotator,
            done=len(theirs),
            total=total,
            cant_say=sum(answer.cant_say for answer in theirs),
            median_seconds=_median(theirs),
            infeasible=_mean(infeasible_rows(theirs)[both].astype(np.float64)),
            drift=drift,
            drift_z=drift_z,
            known=len(known),
            right=right,
            flags=_flags(annotator, theirs, len(known), right),
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
    statements = {name: column(judged, name) for name in ("similarity", "difference")}
    sides = [answer.others.get("preference", math.nan) for answer in judged]
    statements["preference"] = np.array(sides, np.float64)
    ends = np.array([(2 * answer.pair, 2 * answer.pair + 1) for answer in judged], np.int64)
    names = np.array([answer.annotator for answer in judged], np.str_)
    table = Judgements.from_columns(ends.reshape(-1, 2), statements, annotator=names)
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


def _median(answers: Sequence[StoredAnswer]) -> float:
    return statistics.median(answer.seconds for answer in answers) if answers else math.nan


def _flags(
    annotator: Annotator, answers: Sequence[StoredAnswer], known: int, right: int
) -> list[Phrase]:
    """Reasons for a closer look; nothing is concluded from the speed of models."""
    flags: list[Phrase] = []
    if known >= LEAST_KNOWN and right < PASS * known:
        words = "only {number} of {all} known pairs right"
        flags.append((words, {"number": right, "all": known}))
    timed = [] if annotator.origin == "model" else [one for one in answers if one.seconds > 0]
    if len(answers) >= LEAST_ANSWERS and _median(timed) < FAST_SECONDS:
        words = "half of the answers took less than {seconds:g} s"
        flags.append((words, {"seconds": FAST_SECONDS}))
    return flags


def agreement(answers: Sequence[StoredAnswer]) -> dict[str, Any]:
    """How far annotators agree on shared pairs.

    Krippendorff's α of similarities and of differences, and ``kappas``: two names and the weighted
    κ of their differences, the lowest first, for those who share at least `LEAST_ANSWERS` pairs.
    """
    pair = np.array([answer.pair for answer in answers], np.int64)
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
        "similarity": krippendorff_alpha(pair, column(answers, "similarity")),
        "difference": krippendorff_alpha(pair, column(answers, "difference")),
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
