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
    """A text for the supervisor, with the English words that a language has a table for.

    Examples
    --------
    >>> Flag("{number} of {all}", number=3, all=4)
    '3 of 4'
    """

    template: str
    values: dict[str, object]

    def __new__(cls, template: str, **values: object) -> Self:
        """The text in English."""
        made = super().__new__(cls, template.format(**values))
        made.template, made.values = template, values
        return made


@dataclass
class Quality:
    """Of one annotator: known pairs judged and right, repeats and those that agree, and flags.

    Examples
    --------
    >>> Quality(known=4, right=3).flags
    []
    """

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
    """How good the answers of everybody are, as far as simple rules tell.

    Parameters
    ----------
    answers : sequence of StoredAnswer
        Those that stand.
    known : mapping of int to Known
        The checks, by the numbers of their pairs.
    levels : mapping
        What the known answers mean.
    repeats : mapping of int to int
        Pairs by the numbers of their repeats, the other way round.

    Examples
    --------
    >>> rows = [StoredAnswer(k, "ann", k, "a", "b", 0.5, 0.0, 0, False, "", 0.4, "", 1)
    ...         for k in range(20)]
    >>> quality_of(rows, {}, {})["ann"].flags
    ['20 of 20 answers are the same', 'half of the answers took less than 1 s']
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
