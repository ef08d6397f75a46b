"""What the model of annotators does not contain: findings about some of them.

A finding changes no answer, no weight and no fit. Each has its evidence in numbers, and says what
to do. A name is in it only where chance would put it there in fewer than one of a thousand honest
tables; `bench/speed/annotators.py --honest` counts how often it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
CHANCE = 0.001
"""Probability of one answer to everything in a table without such people."""


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
    ...     [Judgements.from_pairs(ends, v, [name] * 60) for name, v in parts.items()])
    >>> [(finding.code, finding.names) for finding in findings(judged)]
    [('reversed-annotator', ('cy',))]
    """
    answers = Answers.of(judged)
    if not len(answers):
        return []
    scores = None if log_odds is None else np.asarray(log_odds, np.float64)[answers.rows]
    found = [*_one_answer(answers), *_untouched(answers)]
    constant = {
        name
        for finding in found
        if finding.code in ("constant-annotator", "constant-difference")
        for name in finding.names
    }
    order = np.argsort([-len(rows) for rows in answers.each], kind="stable")[:MOST]
    people = [int(k) for k in order if answers.names[k] not in constant]
    columns = {k: answers.by_pair(k) for k in people}
    copies = [*_copies(answers, columns)]
    copied = {name for finding in copies for name in finding.names}
    columns = {k: own for k, own in columns.items() if answers.names[k] not in copied}
    return [*found, *copies, *_relations(answers, columns, scores)]


def _one_answer(answers: Answers) -> Iterator[AnnotatorFinding]:
    """Annotators who give one answer to everything, or always one similarity or difference.

    Where the others' answers vary that is no chance; where there are no others it is in any case
    nothing to learn from.
    """
    from scipy.special import bdtrc  # slow to import

    named_before: set[str] = set()
    for code, columns in (("annotator", [0, 1]), ("similarity", [0]), ("difference", [1])):
        values = answers.values[:, columns]
        given = np.asarray(~np.isnan(values).any(1))
        codes = np.unique(np.nan_to_num(values, nan=9), axis=0, return_inverse=True)[1].ravel()
        for name, rows in zip(answers.names, answers.each, strict=True):
            own = rows[given[rows]]
            if len(own) < SHARED or len(np.unique(codes[own])) > 1 or name in named_before:
                continue
            others = codes[given & (answers.who != answers.who[own[0]])]
            usual = (np.count_nonzero(others == codes[own[0]]) + 1) / (len(others) + 2)
            chance = float(bdtrc(len(own) - 1, len(own), usual))
            if chance > CHANCE / len(answers.names) and len(others):
                continue
            named_before |= {name} if code == "annotator" else set()
            words = ("similarity", "difference")
            said = " and ".join(f"{words[k]} {answers.values[own[0], k]:g}" for k in columns)
            yield AnnotatorFinding(
                f"constant-{code}",
                (name,),
                f"{_whose(name)} {len(own):,} answers all have {said}, which says nothing about "
                "the pairs. Check that these are the right columns, and ask again",
                {"answers": len(own), "chance": chance},
            )


def _untouched(answers: Answers) -> Iterator[AnnotatorFinding]:
    """Answers exactly in the middle of both scales, like sliders that were not moved."""
    for name, rows in zip(answers.names, answers.each, strict=True):
        values = answers.values[rows]
        share = float((values == [0.5, 0]).all(1).mean())
        if not MIDDLE < share < 1 or len(rows) < SHARED or scale_of(*values.T).coarse:
            continue
        yield AnnotatorFinding(
            "untouched",
            (name,),
            f"{share:.0%} of {_whose(name)} {len(rows):,} answers are exactly in the middle of "
            "both scales (similarity 0.5, difference 0), like sliders that were not moved. If they "
            "mean “no answer”, drop these rows from all files",
            {"share": share, "answers": len(rows)},
        )


def _copies(answers: Answers, columns: dict[int, Floats]) -> Iterator[AnnotatorFinding]:
    """Annotators whose soft answers equal another's to the last digit on all shared pairs."""
    numbers = sorted(columns)
    for later, number in enumerate(numbers):
        for first in numbers[:later]:
            shared = ~np.isnan(columns[first]).all(1) & ~np.isnan(columns[number]).all(1)
            ours, theirs = columns[first][shared], columns[number][shared]
            points = len(np.unique(np.nan_to_num(ours, nan=9), axis=0))
            # Honest answers on few levels agree as well.
            if points < SHARED or not np.array_equal(ours, theirs, equal_nan=True):
                continue
            name, other = answers.names[number], answers.names[first]
            yield AnnotatorFinding(
                "copied-annotator",
                (name,),
                f"{_whose(name)} answers equal those of {other or 'the others'} to the last digit "
                f"on all {shared.sum():,} pairs that both judged. A table imported twice, one "
                "model under two names, or people who copy each other are one voice: leave one "
                "of them out",
                {"other": other, "shared": int(shared.sum())},
            )
            break


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
    yield from _camps([names[k] for k in rest], *(m[np.ix_(rest, rest)]
                      for m in (correlation, errors, shared)))  # fmt: skip


def _camps(
    names: Sequence[str], correlation: Floats, errors: Floats, shared: Floats
) -> Iterator[AnnotatorFinding]:
    """Two groups of annotators whose answers to the same pairs are unrelated or opposite.

    Two people who judge the same pairs by the same items are related; where the upper end of the
    interval of their correlation is below that, they are apart. Somebody who is apart from
    everybody guesses, which the model contains, unless there is nobody else.
    """
    spread = CLEAR / np.sqrt(shared.clip(1))
    apart = (shared >= SHARED) & (correlation + spread < RELATED)
    along = (correlation > RELATED) & (errors > CLEAR)
    groups: list[list[int]] = []
    for k in range(len(names)):
        friends = [group for group in groups if along[k, group].any()]
        groups = [group for group in groups if group not in friends]
        groups.append(sorted([k, *(member for group in friends for member in group)]))
    groups = [group for group in groups if len(group) > 1 or len(names) == 2]
    for number, second in enumerate(groups):
        for first in groups[:number]:
            between = np.ix_(first, second)
            if not apart[between].any() or along[between].any():
                continue
            sides = [[names[k] for k in group] for group in (first, second)]
            value = float(correlation[between][apart[between]].mean())
            yield AnnotatorFinding(
                "rival-annotators",
                tuple(sides[0] + sides[1]),
                f"{listed(sides[0])} and {listed(sides[1])} contradict each other on the same "
                f"pairs (mean correlation of their differences {value:.2f}), and the answers do "
                "not show which of the two is right. Look at some of these pairs yourself, or have "
                "other people judge them",
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
