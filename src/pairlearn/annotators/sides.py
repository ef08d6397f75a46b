"""Who has left and right exchanged.

Honest differences are c = g(x') − g(x), with the same g for everybody: a Gaussian process, the sum
of a smooth function of the features, where these are known, and of a value of each item. From the
answers of all others it predicts those of one annotator, be they about the same pairs, other pairs
of the same items, or similar items. Whoever answers the opposite has left and right exchanged,
compared to the others. Known classes decide who is right, by how g ranks these items, or else most
people; if as many people do it one way as the other, nothing tells. If g ranks known classes the
wrong way round, everybody has left and right exchanged, or the classes are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlearn.annotators.answers import CLEAR, MOST, named
from pairlearn.annotators.linear import standardised
from pairlearn.annotators.manner import Manner
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements import Judgements

LEAST = 0.3
"""Least correlation with what others predict, of opposite sign, from which on it is the side."""
COUNTED = 2.0
"""Standard errors from which on somebody counts for a side; to decide it takes `CLEAR`."""
DOUBT = 1.0
"""Standard errors by which known classes keep most people from deciding against them."""
REVERSED = 2.5
"""Standard errors by which ranks are clearly reversed: five items of each class suffice."""
ANSWERS = 10
"""Answers of somebody who may have sides exchanged."""
ROWS = 1000
"""Most answers that are compared, as many of each annotator as possible."""
FEATURES, NOISE = 2.0, 0.5
"""Variance due to the features compared to that of the items, and of the noise to both."""
TINY = 1e-12


@dataclass(frozen=True)
class Sides:
    """People who answer one way round, and those who have left and right exchanged.

    Without anybody in ``others`` nothing is exchanged. Unless ``decided``, by most people or
    ``by_classes`` that are known, it may as well be the first group who has.
    """

    first: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    decided: bool = True
    by_classes: bool = False

    @property
    def exchanged(self) -> tuple[str, ...]:
        """Who has left and right exchanged for certain."""
        return self.others if self.decided else ()

    @property
    def contrary(self) -> tuple[str, ...]:
        """All who contradict each other, where nothing tells who is right."""
        return () if self.decided else (*self.first, *self.others)

    def against(self, name: str) -> tuple[str, ...]:
        """Who contradicts somebody, where nothing tells who is right."""
        if name not in self.contrary:
            return ()
        return self.others if name in self.first else self.first

    def told(self, manners: Collection[Manner]) -> tuple[Manner, ...]:
        """The same manners, which tell of the sides, and those of people who have none."""
        sided = {*self.exchanged, *self.contrary}.difference(m.name for m in manners)
        return tuple(
            replace(m, exchanged=m.name in self.others, against=self.against(m.name))
            for m in (*manners, *map(Manner, sorted(sided)))
        )

    def with_copies(self, copies: Collection[tuple[str, str]]) -> Sides:
        """The same with copies beside their originals."""
        first, others = (
            tuple(sorted({*group, *(copy for copy, original in copies if original in group)}))
            for group in (self.first, self.others)
        )
        return replace(self, first=first, others=others)


def with_sides_exchanged(judged: Judgements, names: Collection[str]) -> Judgements:
    """Judgements in which left and right are exchanged in all pairs of some annotators."""
    if judged.annotator is None or not names:
        return judged
    turned = np.isin(named(judged.annotator), list(names)) & ~judged.single
    return replace(judged, ends=np.where(turned[:, None], judged.ends[:, ::-1], judged.ends))


def with_sides_right(judged: Judgements, manners: Iterable[Manner]) -> Judgements:
    """Judgements in which the sides of those who have them exchanged are put right."""
    return with_sides_exchanged(judged, [m.name for m in manners if m.exchanged])


def sides_of(judged: Judgements, features: Any = None) -> Sides:
    """Find annotators who have left and right exchanged.

    Parameters
    ----------
    judged : Judgements
        Their differences and preferences are compared, with each other and with known classes.
    features : array of shape (N, ...), optional
        Of the items. Without them, only answers about the same items are compared.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, ends = rng.normal(size=(240, 2)), np.arange(240).reshape(-1, 2)
    >>> c = np.diff(np.tanh(x[:, 0])[ends])[:, 0] / 2
    >>> c[:40] *= -1
    >>> columns = {"difference": c}
    >>> who = np.repeat(["ann", "bob", "cy"], 40)
    >>> sides_of(Judgements.from_columns(ends, columns, annotator=who), x).exchanged
    ('ann',)
    """
    rows = _sided(judged)
    if judged.annotator is None or not len(rows):
        return Sides()
    names, who = np.unique(named(rows.annotator), return_inverse=True)
    if len(names) < 2:
        return Sides()
    some = _some(rows.ends, who.ravel())
    rows, who = rows[some], who.ravel()[some]
    c = _signed(rows)
    people = np.unique(who)
    own = [np.flatnonzero(who == person) for person in people]
    for mine in own:
        c[mine] -= c[mine].mean()
    classes = _classes(judged)
    covariances, with_known = _covariances(rows.ends, classes.ends[:, 0], features)
    sign, clear = _compared(covariances, c, own)
    counted = clear > COUNTED
    groups = [people[counted & (sign == side)] for side in (1, -1)]
    if not all(map(len, groups)):
        return Sides()
    said = c * sign[np.searchsorted(people, who)]
    scores = _predicted(covariances, said) @ with_known
    groups.sort(key=lambda group: (-len(group), -np.isin(who, group).sum(), group[0]))
    # How clearly the known classes are on the side of the first group.
    agree = sign[people == groups[0][0]].item() * _ranked_alike(scores, classes.u)
    if agree < -COUNTED:
        groups.reverse()
    first, others = (tuple(names[group].tolist()) for group in groups)
    if abs(agree) > COUNTED:
        return Sides(first, others, by_classes=True)
    # Those beyond as many as the others have decide, and could be somebody who guesses.
    more = np.sort(clear[np.isin(people, groups[0])])[: len(groups[0]) - len(groups[1])]
    majority = np.sqrt(np.square(more).sum()) > CLEAR
    return Sides(first, others, bool(majority and agree > -DOUBT))


def against_classes(judged: Judgements, features: Any = None) -> float | None:
    """Share of couples of known classes that differences and preferences rank the wrong way round.

    None unless it is clearly above a half: then everybody has left and right exchanged, or the
    classes are.

    Examples
    --------
    >>> ends = np.arange(40).reshape(-1, 2)
    >>> c = np.tile([0.6, -0.6], 10)
    >>> y = (np.stack([-c, c], 1) > 0).ravel()
    >>> judged = Judgements.from_columns(ends, {"difference": c})
    >>> for classes in (y, ~y):
    ...     known = Judgements.about_items("label", np.arange(12), classes[:12])
    ...     print(against_classes(Judgements.concatenate([judged, known])))
    None
    1.0
    """
    rows, classes = _sided(judged), _classes(judged)
    if len(rows) < ANSWERS or len(np.unique(classes.u)) < 2:
        return None
    rows = rows[_some(rows.ends, np.zeros(len(rows), np.int64))]
    c = _signed(rows)
    covariances, with_known = _covariances(rows.ends, classes.ends[:, 0], features)
    return reversed_share(_predicted(covariances, c - c.mean()) @ with_known, classes.u > 0.5)


def reversed_share(scores: Floats, positive: Mask) -> float | None:
    """Share of couples of two classes that scores rank the wrong way round.

    None unless it is clearly above a half, by the rank-sum test.
    """
    if _ranked_alike(scores, positive) > -REVERSED:
        return None
    above = scores[~positive][:, None] - scores[positive]
    return float((np.sign(above).mean() + 1) / 2)


def _sided(judged: Judgements) -> Judgements:
    """Differences and preferences between two items."""
    sided = judged.has("difference") | judged.has("preference")
    return judged[sided & (judged.ends[:, 0] != judged.ends[:, 1])]


def _signed(rows: Judgements) -> Floats:
    return np.where(rows.has("difference"), rows.v, rows.u)


def _classes(judged: Judgements) -> Judgements:
    """Known classes, no more than `ROWS`."""
    classes = judged[judged.known]
    return classes[np.random.default_rng(0).permutation(len(classes))[:ROWS]]


def _predicted(covariances: Floats, c: Floats) -> Floats:
    """Factors of the covariances with anything else, which predict it from differences c."""
    return np.asarray(np.linalg.solve(covariances + NOISE * np.eye(len(c)), c))


def _some(ends: Indices, who: Indices) -> Indices:
    """Rows to compare: of those with the most answers, and about pairs with the most answers."""
    counts = np.bincount(who)
    most = np.argsort(-counts, kind="stable")[:MOST]
    quota = next(q for q in range(ROWS, 0, -1) if np.minimum(counts[most], q).sum() <= ROWS)
    pairs = np.sort(ends, axis=1) @ np.array([int(ends.max()) + 1, 1])
    _, pair, times = np.unique(pairs, return_inverse=True, return_counts=True)
    order = np.random.default_rng(0).permutation(len(times))
    ranked = np.lexsort((order[pair.ravel()], -times[pair.ravel()]))
    chosen = [ranked[who[ranked] == person][:quota] for person in most]
    return np.sort(np.concatenate(chosen))


def _covariances(ends: Indices, known: Indices, features: Any) -> tuple[Floats, Floats]:
    """Covariances of the differences of pairs (n, n), with a mean of 1, and with items (n, k)."""
    used, places = np.unique(np.concatenate([ends.ravel(), known]), return_inverse=True)
    left, right = places[: ends.size].reshape(-1, 2).T
    items = np.eye(len(used))
    if features is not None and (x := features[used]).size:
        items += FEATURES * _similar(standardised(x))
    pairs = items[right] - items[left]
    with_known = pairs[:, places[ends.size :]]
    pairs = pairs[:, right] - pairs[:, left]
    scale = np.trace(pairs) / len(pairs)
    return pairs / scale, with_known / scale


def _similar(x: Floats) -> Floats:
    """A Gaussian kernel (m, m) of features with their median distance."""
    squares = np.square(x).sum(1)
    far = (squares[:, None] + squares - 2 * x @ x.T).clip(0)
    return np.asarray(np.exp(-far / (np.median(far) + TINY)))


def _compared(covariances: Floats, c: Floats, own: list[Indices]) -> tuple[Floats, Floats]:
    """Sides (people,) as signs, and the standard errors by which everybody agrees with theirs.

    ``own`` are everybody's rows. Whoever contradicts the others most is turned first.
    """
    n, sign = len(c), np.ones(len(own))
    noisy = covariances + NOISE * np.eye(n)
    inverse = np.linalg.inv(noisy)
    # What all others say about one's own pairs, and oneself about those of all others.
    by_others = [-np.linalg.solve(inverse[np.ix_(rows, rows)], inverse[rows]) for rows in own]
    by_own = [np.linalg.solve(noisy[np.ix_(rows, rows)], covariances[rows]).T for rows in own]
    while True:
        clear, worst, most = np.zeros(len(own)), -CLEAR, -1
        said = np.empty(n)
        for number, rows in enumerate(own):
            said[rows] = sign[number] * c[rows]
        for number, rows in enumerate(own):
            rest = said.copy()
            rest[rows] = 0
            others = np.delete(np.arange(n), rows)
            fit = _correlation(said[rows], by_others[number] @ rest)
            back = _correlation(said[others], (by_own[number] @ said[rows])[others])
            errors = fit * np.sqrt(len(rows)), back * np.sqrt(len(others))
            # Scores learnt from guesses go with honest answers by chance, but not both ways.
            clear[number] = min(errors, key=abs) if errors[0] * errors[1] > 0 else 0
            if clear[number] < worst and fit < -LEAST and len(rows) >= ANSWERS and sign[number] > 0:
                worst, most = clear[number], number
        if most < 0:
            return sign, clear
        sign[most] = -1


def _ranked_alike(scores: Floats, classes: Floats | Mask) -> float:
    """Standard errors by which scores rank positive items above negative ones: the rank-sum test.

    0 without items of both classes. One item that is far off hardly counts.
    """
    if len(np.unique(classes)) < 2:
        return 0.0
    from scipy.stats import rankdata

    alike = _correlation(rankdata(scores), rankdata(classes))
    return alike * float(np.sqrt(len(classes) - 1))


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b) + TINY))
