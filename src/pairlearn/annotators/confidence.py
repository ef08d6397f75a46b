"""Who is more confident than others that answer the same pairs.

The factors of everybody's log-odds are known up to a common one: who is right takes labels. So
their median is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pairlearn.annotators.link import Link
    from pairlearn.annotators.manner import Manner

FACTORS = tuple(float(factor) for factor in 2 ** np.linspace(-1.5, 1.5, 13))
FIRST = (FACTORS.index(0.5), FACTORS.index(2.0))
COST = 10.0
"""Gain in log-likelihood that a difference in confidence must bring."""
MOST_GUESSES = 0.2
"""Share of guesses from which on answers do not show a confidence."""


def compared(
    link: Link, climb: Callable[[Link], Link], agreeing: NDArray[np.bool_], pairs: int
) -> Link:
    """A link with people of different confidence, if that explains the answers better.

    ``climb`` improves a link by its likelihood on so many ``pairs``; ``agreeing`` tells who agrees
    with whom. Only people with something to correct are tried: others agree with the rest.
    """

    def tried(number: int, at: int) -> Link:
        other = replace(
            link.manners[number].vague, confidence=FACTORS[at], random=0.02, borrowed=0.02
        )
        return climb(_with(link, number, other))

    for number, manner in enumerate(link.manners):
        useful = np.array([other.useful for other in link.manners])
        if not manner.comparable or not agreeing[number][useful].any():
            continue
        found = {at: tried(number, at) for at in FIRST}
        while True:
            best = max(found, key=lambda at: found[at].fit)
            near = [at for at in (best - 1, best + 1) if 0 <= at < len(FACTORS) and at not in found]
            if not near or found[best].fit < link.fit:
                break
            found |= {at: tried(number, at) for at in near}
        better = pairs * (found[best].fit - link.fit) > COST
        if better and found[best].manners[number].guesses < MOST_GUESSES:
            link = found[best]
    return _centred(link, climb)


def _with(link: Link, number: int, manner: Manner) -> Link:
    return replace(link, manners=(*link.manners[:number], manner, *link.manners[number + 1 :]))


def _centred(link: Link, climb: Callable[[Link], Link]) -> Link:
    """The same with a median confidence of 1 among those whose confidence shows."""
    logs = [np.log(manner.confidence) for manner in link.manners if manner.shows_confidence]
    middle = float(np.exp(np.median(logs))) if logs else 1.0
    if abs(middle - 1) < 1e-6:
        return link
    manners = tuple(
        replace(manner, confidence=round(manner.confidence / middle, 4))
        if manner.shows_confidence
        else manner
        for manner in link.manners
    )
    return climb(replace(link, manners=manners))
