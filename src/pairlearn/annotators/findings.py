"""What the model of annotators does not contain: findings about some of them.

A finding changes no answer, no weight and no fit. Each has its evidence in numbers, and says what
to do. A name is in it only where chance would put it there in fewer than one of a thousand honest
tables; `bench/speed/annotators.py --honest` counts how often it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from pairlearn.annotators.answers import Answers, listed
from pairlearn.columns import Floats
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import scale_of

SHARED = 20
"""Answers from which on habits, or relations of two people, are looked for: with fewer even a
strong relation is not significant at `CLEAR`."""
MOST = 30
"""Annotators, those with the most answers, who are compared with each other."""
CLEAR = 4.0
"""Standard errors from which on a relation is not taken for chance. With 30 people there are 435
couples, of which 0.01 exceed it by chance."""
RELATED = 0.3
"""Correlation that two people who judge by the same items exceed in all honest crowds of
`bench/speed/annotators.py`."""
MIDDLE = 0.1
"""Share of answers in the exact middle of both scales: honest ones on scales without levels hardly
ever repeat a point."""


@dataclass(frozen=True)
class AnnotatorFinding:
    """A finding about annotators: a code, whom it is about, numbers, and a sentence."""

    code: str
    names: tuple[str, ...]
    sentence: str
    numbers: dict[str, Any] = field(default_factory=dict)


def findings(judged: Judgements, log_odds: Any = None) -> list[AnnotatorFinding]:
    """Find what the model of annotators does not contain.

    Parameters
    ----------
    judged : Judgements
        Similarities, differences and preferences, with the names of the annotators.
    log_odds : array of shape (n, 2), optional
        Of the two items of each row, by a model that was not trained on the pair.

    Examples
    --------
    >>> from pairlearn.labels import PairLabels
    >>> honest = PairLabels.from_posteriors(*np.random.default_rng(0).random((2, 60)))
    >>> ends, flipped = np.arange(120).reshape(-1, 2), honest.to_array() * [1, -1]
    >>> parts = {"ann": honest, "bob": honest.to_array() + 0.001, "cy": flipped}
    >>> judged = Judgements.concatenate(
    ...     [Judgements.from_pairs(ends, v, annotator=[name] * 60) for name, v in parts.items()])
    >>> [(finding.code, finding.names) for finding in findings(judged)]
    [('reversed-annotator', ('cy',))]
    """
    answers = Answers.of(judged)
    if not len(answers):
        return []
    scores = None if log_odds is None else np.asarray(log_odds, np.float64)[answers.rows]
    found = [*_one_answer(answers), *_untouched(answers)]
    order = np.argsort([-len(rows) for rows in answers.each], kind="stable")[:MOST]
    columns = {int(k): answers.by_pair(k) for k in order}
    silent = [x for x in found if x.code in ("constant-annotator", "constant-difference")]
    columns = _others(answers, columns, silent)
    copies = [*_copies(answers, columns)]
    return [*found, *copies, *_relations(answers, _others(answers, columns, copies), scores)]


def _others(
    answers: Answers, columns: dict[int, Floats], found: Sequence[AnnotatorFinding]
) -> dict[int, Floats]:
    """Columns of those whom no finding names."""
    names = {name for finding in found for name in finding.names}
    return {k: own for k, own in columns.items() if answers.names[k] not in names}


def _one_answer(answers: Answers) -> Iterator[AnnotatorFinding]:
    """Annotators who give one answer to everything, or always one similarity or difference.

    Where the others' answers vary that is no chance; where there are no others it is in any case
    nothing to learn from.
    """
    for who, (name, rows) in enumerate(zip(answers.names, answers.each, strict=True)):
        for code, columns in (("annotator", [0, 1]), ("similarity", [0]), ("difference", [1])):
            own, others = (
                values[~np.isnan(values).any(1)]
                for values in (
                    v[:, columns]
                    for v in (answers.values[rows], answers.values[answers.who != who])
                )
            )
            if len(own) < SHARED or (own != own[0]).any():
                continue
            usual = ((others == own[0]).all(1).sum() + 1) / (len(others) + 2)
            chance = float(usual ** len(own))
            if len(others) and chance > NormalDist().cdf(-CLEAR) / len(answers.names):
                continue
            words = zip(np.array(["similarity", "difference"])[columns], own[0], strict=True)
            said = " and ".join(f"{word} {value:g}" for word, value in words)
            yield AnnotatorFinding(
                f"constant-{code}",
                (name,),
                f"{_whose(name)} {len(own):,} answers all have {said}, which says nothing about "
                "the pairs. Check that these are the right columns, and ask again",
                {"answers": len(own), "chance": chance},
            )
            break


def _untouched(answers: Answers) -> Iterator[AnnotatorFinding]:
    """Answers exactly in the middle of both scales, like sliders that were not moved."""
    for name, rows in zip(answers.names, answers.each, strict=True):
        values = answers.values[rows]
        share = float((values == [0.5, 0]).all(1).mean())
        if MIDDLE < share < 1 and len(rows) >= SHARED and not scale_of(*values.T).coarse:
            yield AnnotatorFinding(
                "untouched",
                (name,),
                f"{share:.0%} of {_whose(name)} {len(rows):,} answers are exactly in the middle of "
                "both scales (similarity 0.5, difference 0), like sliders that were not moved. If "
                "they mean “no answer”, drop these rows from all files",
                {"share": share, "answers": len(rows)},
            )


def _copies(answers: Answers, columns: dict[int, Floats]) -> Iterator[AnnotatorFinding]:
    """Annotators whose soft answers equal another's to the last digit on all shared pairs."""
    copied: set[int] = set()
    for first, number in combinations(sorted(columns), 2):
        both = np.stack([columns[first], columns[number]])
        ours, theirs = both[:, ~np.isnan(both).all(2).any(0)]
        # Honest answers on few levels agree as well.
        points = len(np.unique(np.nan_to_num(ours, nan=9), axis=0))
        if number in copied or points < SHARED or not np.array_equal(ours, theirs, equal_nan=True):
            continue
        copied.add(number)
        yield AnnotatorFinding(
            "copied-annotator",
            (answers.names[number],),
            f"{_whose(answers.names[number])} answers equal those of "
            f"{answers.names[first] or 'the others'} to the last digit on all {len(ours):,} pairs "
            "that both judged. A table imported twice, one model under two names, or people who "
            "copy each other are one voice: leave one of them out",
            {"other": answers.names[first], "shared": len(ours)},
        )


def _relations(
    answers: Answers, columns: dict[int, Floats], scores: Floats | None
) -> Iterator[AnnotatorFinding]:
    """Annotators whose differences run against the others and the scores, and camps."""
    numbers = list(columns)
    voices = [columns[k][:, 1] for k in numbers]
    if scores is not None:
        voices.append(np.diff(1 / (1 + np.exp(-scores.clip(-30, 30))))[:, 0])
    if len(voices) < 2:
        return
    correlation, errors, shared = _correlations(np.stack(voices, 1))
    names = [answers.names[k] for k in numbers]
    against = (correlation < -RELATED) & (errors < -CLEAR)
    along = (correlation > RELATED) & (errors > CLEAR)
    reversed_: list[str] = []
    for k, name in enumerate(names):
        enemies = np.flatnonzero(against[k])
        # More voices that agree with each other than with this one, and none on its side.
        if len(enemies) < 2 or along[k].any() or not along[np.ix_(enemies, enemies)].any():
            continue
        reversed_.append(name)
        worst = int(enemies[correlation[k, enemies].argmin()])
        other = names[worst] if worst < len(names) else "a model of the other pairs"
        yield AnnotatorFinding(
            "reversed-annotator",
            (name,),
            f"{_whose(name)} differences run against those of the others (correlation "
            f"{correlation[k, worst]:.2f} with {other} on {shared[k, worst]:,.0f} pairs): left and "
            "right seem to be exchanged. A difference above 0 says that the right item is the more "
            "positive one. Ask, and change the sign of theirs",
            {"correlation": float(correlation[k, worst]), "shared": int(shared[k, worst])},
        )
    rest = [k for k, name in enumerate(names) if name not in reversed_]
    matrices = (matrix[np.ix_(rest, rest)] for matrix in (correlation, errors, shared))
    yield from _camps([names[k] for k in rest], *matrices)


def _camps(
    names: Sequence[str], correlation: Floats, errors: Floats, shared: Floats
) -> Iterator[AnnotatorFinding]:
    """Two groups of annotators whose answers to the same pairs are unrelated or opposite.

    Two people who judge the same pairs by the same items are related; where the upper end of the
    interval of their correlation is below that, they are apart. An annotator who is apart
    from all others guesses, which the model contains, unless there are only two.
    """
    from scipy.sparse.csgraph import connected_components  # slow to import

    apart = (shared >= SHARED) & (correlation + CLEAR / np.sqrt(shared.clip(1)) < RELATED)
    along = (correlation > RELATED) & (errors > CLEAR)
    count, camp = connected_components(along, directed=False)
    groups = [np.flatnonzero(camp == number).tolist() for number in range(count)]
    groups = [group for group in groups if len(group) > 1 or len(names) == 2]
    for first, second in combinations(groups, 2):
        between = np.ix_(first, second)
        if not apart[between].any():
            continue
        sides = [[names[k] for k in group] for group in (first, second)]
        value = float(correlation[between][apart[between]].mean())
        yield AnnotatorFinding(
            "rival-annotators",
            tuple(sides[0] + sides[1]),
            f"{listed(sides[0])} and {listed(sides[1])} contradict each other on the same pairs "
            f"(mean correlation of their differences {value:.2f}), and the answers do not show "
            "which of the two is right. Look at some of these pairs yourself, or have other people "
            "judge them",
            {"groups": sides, "correlation": value},
        )


def _correlations(voices: Floats) -> tuple[Floats, Floats, Floats]:
    """Correlations of columns where both are given, in standard errors, and how many those are.

    They are uncentred, since 0 has a meaning: both items are alike.
    """
    given = (~np.isnan(voices)).astype(np.float64)
    values = np.nan_to_num(voices)
    shared, squares = given.T @ given, np.square(values).T @ given
    correlation = (values.T @ values) / np.sqrt(squares * squares.T + 1e-12)
    np.fill_diagonal(correlation, 0)
    correlation = np.where(shared >= SHARED, correlation, 0)
    return correlation, correlation * np.sqrt(shared), shared


def _whose(name: str) -> str:
    return f"{name}'s" if name else "the"
