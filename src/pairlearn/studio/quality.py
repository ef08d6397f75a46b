"""What deserves a look about somebody's answers, in words."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pairlearn.studio.graded import Levels
from pairlearn.studio.known import Known
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
    """Of one annotator: known pairs judged and right, and what deserves a look.

    Examples
    --------
    >>> Quality(known=4, right=3).flags
    []
    """

    known: int = 0
    right: int = 0
    flags: list[str] = field(default_factory=list)


def quality_of(
    answers: Sequence[StoredAnswer], known: Mapping[int, Known], levels: Levels
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
        result = found[name] = Quality(len(checks), right)
        if len(checks) >= LEAST_KNOWN and right < PASS * len(checks):
            result.flags.append(f"only {right} of {len(checks)} known pairs right")
        if len(theirs) < LEAST:
            continue
        said = Counter((one.similarity, one.difference, one.level) for one in theirs)
        most = max(said.values())
        if most >= CONSTANT * len(theirs):
            result.flags.append(f"{most} of {len(theirs)} answers are the same")
        seconds = [one.seconds for one in theirs if one.seconds > 0]
        if seconds and statistics.median(seconds) < FAST_SECONDS:
            result.flags.append(f"half of the answers took less than {FAST_SECONDS:g} s")
    return found
