"""Corrected judgements to measure an accuracy with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pairlearn.annotators.answers import Answers, named, without_fixed
from pairlearn.annotators.link import ANYWHERE, PAIRS, Link, climb, expect
from pairlearn.annotators.manner import Manner
from pairlearn.annotators.sides import with_sides_right
from pairlearn.judgements import Judgements

CLOSE = 0.005
"""Variances of answers far below this get the same weight in measurements."""
MOST_GUESSES = 0.5
"""Share of guesses above which an annotator is left out of measurements, if others have more
information: an error in that share would do more harm than the answers do good."""


def fixed_in(manners: Sequence[Manner]) -> dict[str, str]:
    """What somebody always answers alike, by name."""
    return {manner.name: manner.fixed for manner in manners if manner.fixed}


def fair(manners: Sequence[Manner], judgements: Judgements) -> Judgements:
    """Judgements to measure with: unbiased if annotators have these manners.

    Sides are put right, and leans removed. Guesses, as far as the answers themselves show them, get
    little weight, and their mean contribution is subtracted. Annotators without information, or
    with little compared to others, are left out, and so are rows without a similarity or a
    difference, and what somebody always answers alike. Nothing here depends on the classifier whose
    accuracy is measured. Unknown annotators are believed, unless they always give the same answer;
    without manners, a table of one annotator stays as it is.

    Examples
    --------
    >>> judgements = Judgements.from_pairs([[0, 1], [2, 3]], [[0.7, 0.3], [0.6, 0.5]])
    >>> fair([Manner("", random=0.0, right_form="shift", right_amount=0.2)], judgements).v.round(2)
    array([0.1, 0.3])
    """
    names = judgements.annotator
    if not manners and (names is None or len(np.unique(named(names))) < 2):
        return judgements
    judgements = with_sides_right(judgements[judgements.soft], manners)
    judgements, _ = without_fixed(judgements, fixed_in(manners))
    answers = Answers.of(judgements)
    by_name = {manner.name: manner for manner in manners}
    start = []
    for name, rows, constant in zip(answers.names, answers.each(), answers.constant(), strict=True):
        manner = by_name.get(name)
        # A manner that was learnt on another scale does not apply.
        if manner is None or not manner.suits(answers.values[rows], constant):
            manner = Manner.unknown(name, constant)
        start.append(manner)
    link = Link(tuple(start), ANYWHERE, np.empty(0))
    some = answers.part(answers.spread(PAIRS))
    link = climb(link, some, None, 40, frozenset(answers.names))
    state = expect(link, answers, None)
    values, weight = answers.values.copy(), np.zeros(len(answers))
    least = min(float(manner.noise().mean()) for manner in link.manners)
    information = [len(rows) * (1 - manner.guesses) ** 2 * manner.useful
                   for rows, manner in zip(answers.each(), link.manners, strict=True)]  # fmt: skip
    doubtful = [manner.guesses > MOST_GUESSES for manner in link.manners]
    enough = 2 * np.dot(information, np.invert(doubtful)) > np.sum(information)
    for number, manner in enumerate(link.manners):
        rows = answers.by(number)
        if not manner.useful or (enough and doubtful[number]):
            continue
        corrected = manner.inverse(answers.values[rows], state.grid[answers.pair[rows]])
        sure = state.sure[rows]
        if manner.guesses > 0.01:
            doubt = sure * (1 - sure)
            share = float(doubt.sum() / sure.sum())
            guessed = np.nansum(doubt[:, None] * corrected, 0) / max(doubt.sum(), 1e-9)
            corrected = (corrected - share * guessed) / (1 - share)
        values[rows] = corrected
        weight[rows] = sure * (least + CLOSE) / (float(manner.noise().mean()) + CLOSE)
    values[answers.turned, 1] *= -1
    kept = weight > 0
    return replace(
        judgements,
        values=np.where(np.isnan(values), judgements.values, values),
        weight=judgements.weight * weight,
    )[kept if kept.any() else slice(None)]
