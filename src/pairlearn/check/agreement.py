"""Checks of annotators: their habits, their consistency, and how they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pairlearn.check.columns import Columns, Floats, Indices, Infeasible
from pairlearn.check.findings import SHOWN, Finding, Severity

__all__ = ["check_annotators"]

LEAST_ANSWERS = 20
"""Answers from which on the habits of an annotator are looked at."""
LEAST_SHARED = 8
"""Comparisons with others from which on agreement is looked at."""
DEVIATIONS = 3.5
"""Standard errors from which on an annotator stands out."""


def check_annotators(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    """Check each annotator, or the table as one where it names none."""
    yield from _habits(columns)
    if len(columns.annotators) > 1:
        yield from _inconsistent(columns, infeasible)
        yield from _outlying(columns)


def _habits(columns: Columns) -> Iterator[Finding]:
    """Annotators with one answer to everything, or with hardly more."""
    for question, values in (("similarity", columns.s), ("difference", columns.c)):
        constant: list[int] = []
        coarse: list[int] = []
        for who in range(len(columns.annotators)) if len(columns.annotators) else (-1,):
            given = values[(columns.who == who) & ~np.isnan(values)]
            if len(given) >= LEAST_ANSWERS:
                kinds = len(np.unique(given))
                if kinds == 1:
                    constant.append(who)
                elif kinds <= 5 and np.isin(given, [-1, -0.5, 0, 0.5, 1]).all():
                    coarse.append(who)
        if constant:
            yield _about(
                columns,
                "warning",
                f"constant-{question}",
                f"Always the same {question}: such answers teach nothing.",
                constant,
            )
        if coarse:
            yield _about(
                columns,
                "note",
                f"coarse-{question}",
                f"Every {question} is a whole or a half. Hard answers are fine where they are "
                "meant; if soft ones were asked, probabilities in between are lost.",
                coarse,
            )


def _inconsistent(columns: Columns, infeasible: Infeasible) -> Iterator[Finding]:
    """Annotators whose two answers fit together less well than those of the others."""
    distance = np.zeros(len(columns))
    distance[infeasible.rows] = infeasible.distance
    both = columns.has_s & columns.has_c
    found, details = [], []
    for who in range(len(columns.annotators)):
        mine = distance[both & (columns.who == who)]
        others = distance[both & (columns.who != who)]
        if min(len(mine), len(others)) >= LEAST_ANSWERS and _stands_out(mine, others):
            found.append(who)
            details.append(f"{mine.mean():.2f} against {others.mean():.2f}")
    if found:
        yield _about(
            columns,
            "warning",
            "inconsistent-annotator",
            "Similarity and difference are further from what two posteriors can give than with "
            f"the others (on average {', '.join(details[:SHOWN])}). Perhaps one of the questions "
            "was misunderstood.",
            found,
        )


class _Comparisons(NamedTuple):
    """Answers of two annotators to one pair, in the same order of its ends."""

    one: Indices
    two: Indices
    s: Floats  # (n, 2)
    c: Floats  # (n, 2)


def _outlying(columns: Columns) -> Iterator[Finding]:
    """Annotators who disagree with the others more than those do among themselves."""
    shared = _compare(columns)
    gaps = np.nanmean(
        np.stack(
            [np.abs(shared.s[:, 0] - shared.s[:, 1]), np.abs(shared.c[:, 0] - shared.c[:, 1])]
        ),
        axis=0,
    )
    reversed_, outlying, details = [], [], []
    for who in range(len(columns.annotators)):
        mine = (shared.one == who) | (shared.two == who)
        if mine.sum() < LEAST_SHARED:
            continue
        if _correlation(shared.c[mine]) < -0.5:
            reversed_.append(who)
        elif (~mine).sum() >= LEAST_SHARED and _stands_out(gaps[mine], gaps[~mine]):
            outlying.append(who)
            details.append(f"{gaps[mine].mean():.2f} against {gaps[~mine].mean():.2f}")
    # Someone who turns the scale around makes everybody who is compared with them look so.
    if reversed_:
        share = [np.mean((shared.one == w) | (shared.two == w)) for w in reversed_]
        worst = [w for w, x in zip(reversed_, share, strict=True) if x == max(share)]
        yield _about(
            columns,
            "warning",
            "reversed-annotator",
            "Differences run against those of the others on the same pairs: perhaps left and "
            "right were mixed up. A difference above 0 says that the right one is the more "
            "positive.",
            worst,
        )
    if outlying:
        yield _about(
            columns,
            "warning",
            "outlying-annotator",
            "Answers are further from those of the others on the same pairs than those are "
            f"from one another (mean gap {', '.join(details[:SHOWN])}).",
            outlying,
        )


def _compare(columns: Columns) -> _Comparisons:
    order = np.lexsort((columns.who, columns.pair))
    first: list[Indices] = []
    second: list[Indices] = []
    # Neighbours at every distance, so that k judgements of a pair are compared two by two.
    # Beyond 20 judgements of one pair more comparisons would tell nothing new.
    for step in range(1, 21):
        one, two = order[:-step], order[step:]
        same = columns.pair[one] == columns.pair[two]
        if not same.any():
            break
        same &= (columns.who[one] != columns.who[two]) & (columns.who[one] >= 0)
        same &= columns.who[two] >= 0
        first.append(one[same])
        second.append(two[same])
    i = np.concatenate(first) if first else np.empty(0, np.int64)
    k = np.concatenate(second) if second else np.empty(0, np.int64)
    c = columns.c * columns.turn
    s_ends, c_ends = (np.stack([v[i], v[k]], axis=1) for v in (columns.s, c))
    useful = ~(np.isnan(s_ends).any(axis=1) & np.isnan(c_ends).any(axis=1))
    return _Comparisons(
        columns.who[i][useful], columns.who[k][useful], s_ends[useful], c_ends[useful]
    )


def _correlation(answers: Floats) -> float:
    """Correlation around 0 of two columns, 0 where there are too few."""
    given = answers[~np.isnan(answers).any(axis=1)]
    scale = math.sqrt(float((given[:, 0] ** 2).sum() * (given[:, 1] ** 2).sum()))
    if len(given) < LEAST_SHARED or not scale:
        return 0.0
    return float((given[:, 0] * given[:, 1]).sum()) / scale


def _stands_out(mine: Floats, others: Floats) -> bool:
    error = math.sqrt(float(mine.var() / len(mine) + others.var() / len(others)))
    gap = float(mine.mean() - others.mean())
    return gap > 0.03 and gap > DEVIATIONS * error and mine.mean() > 1.5 * others.mean()


def _about(
    columns: Columns, severity: Severity, code: str, message: str, who: list[int]
) -> Finding:
    names = tuple(str(columns.annotators[w]) for w in who) if len(columns.annotators) else ()
    return Finding(severity, code, message, len(names), (), names[:SHOWN])
