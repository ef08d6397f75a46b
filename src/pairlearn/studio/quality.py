"""What deserves a look about somebody's answers, in words."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pairlearn.annotators.manner import Phrase, in_words
from pairlearn.studio.graded import Levels
from pairlearn.studio.known import Known, near
from pairlearn.studio.records import StoredAnswer

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
