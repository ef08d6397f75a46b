"""What deserves a look about somebody's answers, in words."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

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


class Flag(str):
    """A text for the supervisor that keeps its English template and values, for translation."""

    template: str
    values: dict[str, object]

    def __new__(cls, template: str, **values: object) -> Self:
        """The text in English."""
        made = super().__new__(cls, template.format(**values))
        made.template, made.values = template, values
        return made


@dataclass
class Quality:
    """One annotator's known pairs judged and right, repeats judged and consistent, and flags."""

    known: int = 0
    right: int = 0
    repeats: int = 0
    agree: int = 0
    flags: list[Flag] = field(default_factory=list)


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
            result.flags.append(Flag(words, number=agree, all=len(twice)))
        if len(checks) >= LEAST_KNOWN and right < PASS * len(checks):
            words = "only {number} of {all} known pairs right"
            result.flags.append(Flag(words, number=right, all=len(checks)))
        if len(theirs) < LEAST:
            continue
        said = Counter((one.similarity, one.difference, one.level) for one in theirs)
        most = max(said.values())
        if most >= CONSTANT * len(theirs):
            words = "{number} of {all} answers are the same"
            result.flags.append(Flag(words, number=most, all=len(theirs)))
        seconds = [one.seconds for one in theirs if one.seconds > 0]
        if seconds and statistics.median(seconds) < FAST_SECONDS:
            words = "half of the answers took less than {seconds:g} s"
            result.flags.append(Flag(words, seconds=FAST_SECONDS))
    return found


def _agree(again: StoredAnswer, before: StoredAnswer) -> bool:
    """Whether somebody said the same of a pair the other way round."""
    turned = None if again.difference is None else -again.difference
    given = (before.similarity, before.difference)
    return again.cant_say == before.cant_say and near((again.similarity, turned), given)
