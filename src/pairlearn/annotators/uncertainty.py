"""Standard errors of what was learnt about annotators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.annotators.answers import Answers
from pairlearn.annotators.grid import SIZE
from pairlearn.annotators.link import PAIRS, Link, expect
from pairlearn.annotators.manner import Manner

__all__ = ["with_errors"]

Floats = NDArray[np.float64]
ROUGH = np.array([0.3, 0.1, 0.1])
"""Errors of guesses and of the two leans where the answers say nothing."""


def with_errors(link: Link, answers: Answers, log_odds: Any = None) -> tuple[Manner, ...]:
    """The manners of a link, with standard errors of guesses and leans.

    From the scores of the pairs: the derivatives of their log-likelihoods by the share of guesses,
    by something added to similarities and to differences, and by the distribution of the
    posteriors, which must be learnt too and can look like a lean. The inverse of the sum of their
    outer products estimates the covariance of what was learnt. ``answers`` and ``log_odds`` (P, 2)
    are those that the link was learnt from.
    """
    scores_of = None if log_odds is None else np.asarray(log_odds, np.float64)[:PAIRS]
    answers = answers.part(np.arange(min(PAIRS, len(answers.ends))))
    state = expect(link, answers, scores_of)
    people = len(link.manners)
    scores = np.zeros((len(answers.ends), 3 * people + SIZE))
    for number, (manner, rows) in enumerate(zip(link.manners, answers.each(), strict=True)):
        if manner.constant or not len(rows):
            continue
        share, sure = min(max(manner.guesses, 1e-4), 1 - 1e-4), state.sure[rows]
        told = np.stack(
            [
                (1 - sure) / share - sure / (1 - share),
                *manner.slopes(answers.values[rows], state.honest[number]).T,
            ],
            axis=1,
        )
        np.add.at(scores[:, 3 * number : 3 * number + 3], answers.pair[rows], told)
    couples = state.grid.reshape(-1, SIZE, SIZE)
    expected = link.posteriors[state.bins].sum(1)
    scores[:, 3 * people :] = couples.sum(2) + couples.sum(1) - expected
    ridge = np.r_[np.tile(ROUGH**-2, people), np.ones(SIZE)]
    information = scores.T @ scores + np.diag(ridge)
    variances = np.diag(np.linalg.inv(information))[: 3 * people].reshape(people, 3).copy()
    # Where there are no guesses, the likelihood of more falls at once.
    falls = np.minimum(scores.sum(0)[: 3 * people : 3], 0)
    variances[:, 0] = 1 / (1 / variances[:, 0] + falls**2)
    names = ("random_error", "same_error", "right_error")
    return tuple(
        replace(one, **dict(zip(names, errors.tolist(), strict=True)))
        for one, errors in zip(link.manners, np.sqrt(variances), strict=True)
    )
