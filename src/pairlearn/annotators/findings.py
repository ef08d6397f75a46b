"""What the model of annotators does not contain: findings about some of them.

A finding changes no answer, no weight and no fit. Each has its evidence in numbers, and says what
to do. A name is in it only where chance would put it there in fewer than one of a thousand honest
tables; `bench/speed/annotators.py --honest` counts how often it does. An annotator who
is named once is not examined further. The docstring of a function that looks for one is its
sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from pairlearn.annotators.answers import Answers
from pairlearn.columns import Floats, Mask
from pairlearn.finding import Finding
from pairlearn.io.cells import list_names
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import scale_of

#: Answers from which on habits, or relations of two people, are looked for: with fewer even a
#: strong relation is not significant at `CLEAR`.
SHARED = 20
#: Annotators, those with the most answers, who are compared with each other.
MOST = 30
#: Standard errors from which on a relation is not taken for chance. With 30 people there are 435
#: couples, of which 0.01 exceed it by chance.
CLEAR = 4.0
#: Correlation that two people who judge by the same items exceed in all honest crowds of
#: `bench/speed/annotators.py`.
RELATED = 0.3
#: Share of answers in the exact middle of both scales: honest ones on scales without levels hardly
#: ever repeat a point.
MIDDLE = 0.1
#: Who predicts differences from the features.
MODEL = "a model of the other pairs"

#: The numbers of the annotators that a finding is about, and what fills its sentence.
Found: TypeAlias = Iterator[tuple[list[int], dict[str, Any]]]


def findings(judged: Judgements, log_odds: Any = None) -> list[Finding]:
    """Find what the model of annotators does not contain.

    Parameters
    ----------
    judged : Judgements
        Similarities and differences, with the names of the annotators.
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
    >>> [(finding.code, finding.ids) for finding in findings(judged)]
    [('reversed-annotator', ('cy',))]
    """
    answers = Answers.of(judged)
    people = np.argsort([-len(rows) for rows in answers.each], kind="stable").tolist()
    scores, found = answers.scores(log_odds), list[Finding]()
    for code, look in LOOKS.items():
        for who, numbers in look(answers, people, scores):
            names = [answers.names[k] for k in who]
            numbers["by"] = f" by {names[0]}" if names[0] else ""
            ids = tuple(filter(None, names))
            found.append(Finding("warning", code, SENTENCES[code], len(ids), (), ids, numbers))
            people = [k for k in people if k not in who]
    return found


def _one_answer(answers: Answers, people: list[int], scores: Floats | None) -> Found:
    """All {answers:,} answers{by} have {said}, which says nothing about the pairs. Check that these
    are the right columns, and ask again.
    """
    for who in people:
        for columns in ([0, 1], [0], [1]):
            own = answers.values[answers.each[who]][:, columns]
            own = own[~np.isnan(own).any(1)]
            if len(own) < SHARED or (own != own[0]).any():
                continue
            # Where the others' answers vary that is no chance. Where none differs there is in any
            # case nothing to learn.
            given = answers.values[:, columns]
            others = int((~np.isnan(given)).all(1).sum()) - len(own)
            alike = int((given == own[0]).all(1).sum()) - len(own)
            chance = ((alike + 1) / (others + 2)) ** len(own)
            if alike < others and chance > NormalDist().cdf(-CLEAR) / len(answers.names):
                continue
            words = zip(np.array(["similarity", "difference"])[columns], own[0], strict=True)
            said = " and ".join(f"{word} {value:g}" for word, value in words)
            yield [who], {"answers": len(own), "said": said, "chance": chance}
            break


def _untouched(answers: Answers, people: list[int], scores: Floats | None) -> Found:
    """{share:.0%} of {answers:,} answers{by} are exactly in the middle of both scales (similarity
    0.5, difference 0), like sliders that were not moved. If they mean “no answer”, drop these rows
    from all files.
    """
    for who in people:
        values = answers.values[answers.each[who]]
        share = float((values == [0.5, 0]).all(1).mean())
        if share > MIDDLE and len(values) >= SHARED and not scale_of(*values.T).coarse:
            yield [who], {"share": share, "answers": len(values)}


def _copies(answers: Answers, people: list[int], scores: Floats | None) -> Found:
    """All {shared:,} answers{by} equal those of {other} to the last digit on the pairs that both
    judged. A table imported twice, one model under two names or people who copy each other count as
    one annotator: leave one of them out.
    """
    columns = {k: answers.by_pair(k) for k in sorted(people[:MOST])}
    copied = set[int]()
    for first, later in combinations(columns, 2):
        both = np.stack([columns[first], columns[later]])
        ours, theirs = both[:, ~np.isnan(both).all(2).any(0)]
        # Honest answers on few levels agree as well.
        points = len(np.unique(np.nan_to_num(ours, nan=9), axis=0))
        if later in copied or points < SHARED or not np.array_equal(ours, theirs, equal_nan=True):
            continue
        copied.add(later)
        yield [later], {"other": answers.names[first] or "the others", "shared": len(ours)}


def _reversed(answers: Answers, people: list[int], scores: Floats | None) -> Found:
    """Differences{by} contradict those of the others (correlation {correlation:.2f} with {other}
    on {shared:,} pairs): left and right seem to be exchanged. A difference above 0 says that the
    right item is the more positive one. Ask this annotator, and reverse the signs if confirmed.
    """
    people = people[:MOST]
    correlation, shared = _correlations(answers, people, scores)
    along, against = _clear(correlation, shared), _clear(-correlation, shared)
    for k, who in enumerate(people):
        enemies = np.flatnonzero(against[k])
        # None agrees with this annotator; two do with those on the other side, or with each other.
        if along[k].any() or along[enemies].sum() < 2:
            continue
        worst = int(enemies[correlation[k, enemies].argmin()])
        other = answers.names[people[worst]] if worst < len(people) else MODEL
        numbers = {"correlation": float(correlation[k, worst]), "other": other}
        yield [who], numbers | {"shared": int(shared[k, worst])}


def _camps(answers: Answers, people: list[int], scores: Floats | None) -> Found:
    """{one} and {other} disagree about the same pairs (mean correlation of their differences
    {correlation:.2f}), and the answers do not show which of the two is right. Look at some of these
    pairs yourself, or have other people judge them.
    """
    from scipy.sparse.csgraph import connected_components  # slow to import

    if len(people := people[:MOST]) < 2:
        return
    correlation, shared = _correlations(answers, people, scores)
    # Two people who judge the same pairs by the same items are related.
    apart = (shared >= SHARED) & (correlation + CLEAR / np.sqrt(shared.clip(1)) < RELATED)
    count, camp = connected_components(_clear(correlation, shared), directed=False)
    groups = [np.flatnonzero(camp == number) for number in range(count)]
    # One who is apart from a group guesses, which the model contains. Where the features do not
    # predict what a group agrees on, the group may.
    two = max(map(len, groups)) == 1 and len(people) == 2
    groups = [group for group in groups if len(group) > 1 or (group[0] < len(people)) == two]
    for first, second in combinations(groups, 2):
        between = np.ix_(first, second)
        if not apart[between].any():
            continue
        sides = [[people[k] for k in side if k < len(people)] for side in (first, second)]
        one, other = (list_names([answers.names[k] for k in s]) or MODEL for s in sides)
        value = float(correlation[between][apart[between]].mean())
        yield [*sides[0], *sides[1]], {"one": one, "other": other, "correlation": value}


def _correlations(
    answers: Answers, people: list[int], scores: Floats | None
) -> tuple[Floats, Floats]:
    """Correlations of people's differences, and on how many pairs; the last are those of `MODEL`.

    They are uncentred, since 0 has a meaning: both items are alike.
    """
    voices = [answers.by_pair(k)[:, 1] for k in people]
    if scores is not None:
        voices.append(np.diff(1 / (1 + np.exp(-scores.clip(-30, 30))))[:, 0])
    columns = np.stack(voices, 1) if voices else np.empty((0, 0))
    given, values = (~np.isnan(columns)).astype(np.float64), np.nan_to_num(columns)
    shared, squares = given.T @ given, np.square(values).T @ given
    correlation = (values.T @ values) / np.sqrt(squares * squares.T + 1e-12)
    np.fill_diagonal(correlation, 0)
    return np.where(shared >= SHARED, correlation, 0), shared


def _clear(correlation: Floats, shared: Floats) -> Mask:
    """Which correlations are strong and significant."""
    return np.asarray((correlation > RELATED) & (correlation * np.sqrt(shared) > CLEAR))


#: What to look for, by code, in this order; the docstring is the sentence.
LOOKS = {
    "constant-answers": _one_answer,
    "untouched": _untouched,
    "copied-annotator": _copies,
    "reversed-annotator": _reversed,
    "rival-annotators": _camps,
}
#: Sentences of all findings by code.
SENTENCES = {code: " ".join((look.__doc__ or "").split()) for code, look in LOOKS.items()}
