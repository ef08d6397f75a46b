"""All annotators of a table under one model, for `check`, the studio and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pairlearn.annotators.answers import (
    Answers,
    alike,
    listed,
    untouched,
    without_copies,
    without_fixed,
)
from pairlearn.annotators.linear import linear_scores, standardised
from pairlearn.annotators.link import PAIRS, Link, expect, learn_link, of_ends
from pairlearn.annotators.manner import Manner, Phrase, in_words
from pairlearn.annotators.scale import SIZE
from pairlearn.annotators.sides import sides_of, with_sides_exchanged
from pairlearn.columns import Floats, Indices
from pairlearn.judgements import Judgements

FOLDS = 5
CLEAR = 3.0
"""Standard errors by which a linear score must predict differences to be used."""
VOICES = 6
"""Annotators, those with the most answers, whose differences are tried as targets."""
TINY = 1e-9
AGREEING = 3
"""Annotators who must agree to prove others wrong whose answers are possible: two may copy."""
KNOWN = 20
"""Answers from which on an annotator is described."""
MANY, LEAN = 0.15, 0.05
"""Share of guesses, and lean, that are reported if significant."""


Rivals: TypeAlias = tuple[tuple[str, ...], ...]


class Doubt(NamedTuple):
    """A finding about some annotators."""

    code: str
    names: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Crowd:
    """The annotators of a table.

    Attributes
    ----------
    manners : dict of str to Manner
        How everybody answers, by name, as far as the answers themselves tell.
    copies : dict of str to str
        Who repeats whom, to the last digit or nearly.
    turned, contrary : tuple of str
        Annotators who have left and right exchanged, compared to most others or, if
        ``by_classes``, to known classes; and those who contradict each other, where nothing tells
        who has.
    rivals : tuple of tuple of str
        Groups of annotators who contradict each other, where nothing tells which is right.
    untouched : mapping of str to float
        Share of answers like sliders that nobody moved, by name; the manners leave these out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> from pairlearn.labels import PairLabels
    >>> careful = np.asarray(PairLabels.from_posteriors(*rng.beta(0.5, 0.5, (2, 60))).to_array())
    >>> ends, constant = np.arange(120).reshape(-1, 2), np.tile([1.0, 0.0], (60, 1))
    >>> crowd = Crowd.of(Judgements.concatenate([
    ...     Judgements.from_pairs(ends, answers, [name] * 60)
    ...     for name, answers in (("ann", careful), ("bob", constant))]))
    >>> crowd.words("ann"), [doubt.words for doubt in crowd.doubts()]
    ('nothing to correct', ['bob: gives one answer to everything'])
    """

    manners: dict[str, Manner]
    copies: dict[str, str]
    turned: tuple[str, ...] = ()
    contrary: tuple[str, ...] = ()
    rivals: Rivals = ()
    untouched: Mapping[str, float] = field(default_factory=dict)
    by_classes: bool = False

    @classmethod
    def of(cls, judged: Judgements, features: Any = None, known: Judgements | None = None) -> Crowd:
        """Learn how everybody answers.

        Sliders that nobody moved are left out, and what somebody always answers alike. Nothing is
        learnt where noise was added to the answers, nor about a single annotator whose answers are
        consistent. With `features` (N, d) of the items, linear scores predict the answers; without
        them, only other people's answers can show that consistent answers are unrelated to the
        items. Classes of items that are `known` tell who has left and right exchanged.
        """
        middles, shares = untouched(judged)
        judged, fixed = without_fixed(judged[~middles])
        judged, copied = without_copies(judged)
        everything = judged if known is None else Judgements.concatenate([judged, known])
        sides = sides_of(everything, features)
        answers = Answers.of(with_sides_exchanged(judged, sides.others))
        values = [answers.values[rows] for rows in answers.each()]
        several = len(values) > 1 and max(map(len, values)) >= KNOWN and not answers.beyond
        rivals: Rivals = ()
        if several or answers.reason_to_learn() is not None:
            link, scores = learn_link(answers), None
            if features is not None and (scores := rough_log_odds(answers, features)) is not None:
                link = learn_with_items(answers, scores, start=link)
            learnt = with_errors(link, answers, scores)
            rivals = rivals_in(replace(link, manners=learnt), answers, scores)
        else:
            learnt = tuple(
                replace(Manner.unknown(name, constant), answers=len(own))
                for name, own, constant in zip(
                    answers.names, values, answers.constant(), strict=True
                )
            )
        manners = {m.name: m.with_fixed(fixed) for m in sides.told(learnt)}
        for name, other in copied:
            manners[name] = replace(manners[other], name=name)
        manners = {name: manners[name] for name in sorted(manners)}
        return cls(
            manners,
            dict(copied),
            sides.exchanged,
            sides.contrary,
            rivals,
            shares,
            sides.by_classes,
        )

    def words(self, name: str) -> str:
        """How an annotator answers, as a sentence."""
        return in_words(self.phrases(name))

    def phrases(self, name: str) -> list[Phrase]:
        """Parts of that sentence, as keys of the tables of translations."""
        phrases = self._habits(name)
        if name in self.untouched:
            share = {"share": self.untouched[name]}
            phrases = [phrase for phrase in phrases if phrase[0] != "nothing to correct"]
            phrases.insert(0, ("{share:.0%} of the answers are exactly in the middle", share))
        return phrases

    def _habits(self, name: str) -> list[Phrase]:
        if name in self.copies:
            return [("has the same answers as {other}", {"other": self.copies[name]})]
        if name in self.rivalling:
            return [contradicted(self.rivals, name)]
        manner = self.manners.get(name)
        sided = name in self.turned or name in self.contrary
        if manner is None or (manner.answers < KNOWN and not sided):
            return [("has too few answers to say", {})]
        return manner.phrases()

    @property
    def rivalling(self) -> tuple[str, ...]:
        """All names in `rivals`."""
        return tuple(name for group in self.rivals for name in group)

    def described(self, names: Iterable[str]) -> str:
        """How some annotators answer, those alike together."""
        return alike(names, self.words)

    def doubts(self) -> list[Doubt]:
        """Findings for `check` and the supervisor's page."""
        known = [
            manner
            for name, manner in self.manners.items()
            if manner.answers >= KNOWN and name not in {*self.copies, *self.turned, *self.contrary}
        ]
        # The most trusted of several is never reported as outlying.
        best = max(known, key=lambda m: m.trust) if len(self.manners) > 1 and known else None
        rest = [manner for manner in known if manner.name not in self.rivalling]
        outlying = [m.name for m in rest if _outlies(m) and (m.constant or m is not best)]
        leaning = [m.name for m in rest if m.name not in outlying and _leans(m)]
        groups = {
            "copied-annotator": self.copies,
            "reversed-annotator": self.turned,
            "contrary-annotators": self.contrary,
            "rival-annotators": self.rivalling,
            "untouched": [name for name in self.untouched if name],
            "outlying-annotator": outlying,
            "leaning-annotator": leaning,
        }

        def words(code: str, names: Iterable[str]) -> str:
            if code == "rival-annotators":
                return " against ".join(map(listed, self.rivals))
            return self.described(names)

        return [
            Doubt(code, tuple(names), words(code, names)) for code, names in groups.items() if names
        ]

    def weights(self) -> dict[str, float]:
        """Weights of annotators: `Manner.trust`, scaled to a mean of one.

        With fewer than twenty answers the weight is shrunk towards the mean of the others, in
        proportion; annotators who contradict each other get the same weight, those who have left
        and right exchanged next to none, and copies that of their originals.
        """
        trust = {name: manner.trust for name, manner in self.manners.items()}
        known = [name for name, manner in self.manners.items() if manner.answers >= KNOWN]
        trust |= dict.fromkeys(self.turned, Manner("", constant=True).trust)
        for names in (self.contrary, self.rivalling):
            trust |= dict.fromkeys(names, _mean([trust[name] for name in names]))
        trust |= {copy: trust[original] for copy, original in self.copies.items()}
        usual = _mean([trust[name] for name in known])
        for name, manner in self.manners.items():
            share = min(manner.answers / KNOWN, 1.0)
            trust[name] = share * trust[name] + (1 - share) * usual
        scale = _mean(list(trust.values()))
        return {name: value / scale for name, value in sorted(trust.items())}


def learn_with_items(answers: Answers, log_odds: Floats, start: Link, seed: int = 0) -> Link:
    """A link learnt with log-odds (P, 2) that believes nobody who misleads it."""
    link = learn_link(answers, log_odds, start=start, seed=seed)
    if not (misleading := misleading_in(link, answers, log_odds)):
        return link
    return learn_link(answers, log_odds, astray=misleading, seed=seed)


def misleading_in(link: Link, answers: Answers, log_odds: Floats) -> frozenset[str]:
    """Annotators whom a link believes against the items, perhaps because they share guesses.

    Their answers are unrelated to log-odds (P, 2) that fit another's: to all pairs, or to those
    where somebody who contradicts them is taken to guess.
    """
    strays = answers.strays(log_odds)
    for accused, pairs in _contested(link, answers, log_odds if len(link.edges) else None):
        there = answers.part(pairs).strays(log_odds[pairs])
        if accused.name not in there:
            strays |= there
    return strays.intersection(manner.name for manner in link.manners if manner.believable)


def _contested(
    link: Link, answers: Answers, log_odds: Floats | None
) -> Iterator[tuple[Manner, Indices]]:
    """Annotators who are taken to guess, and the pairs of these guesses."""
    sure = expect(link, answers, log_odds).sure
    for number, manner in enumerate(link.manners):
        rows = answers.by(number)
        pairs = np.unique(answers.pair[rows[sure[rows] < 0.5]])
        if not manner.constant and manner.guesses > MANY and len(pairs) >= KNOWN:
            yield manner, pairs


def contradicted(rivals: Rivals, name: str) -> Phrase:
    """What to say of one of the rivals."""
    others = ", ".join(other for group in rivals if name not in group for other in group)
    return "contradicts {others}, and either may be right", {"others": others}


def words_of(manner: Manner, rivals: Rivals) -> str:
    """A manner in words; of rivals, that they contradict each other."""
    if any(manner.name in group for group in rivals):
        return in_words([contradicted(rivals, manner.name)])
    return manner.words()


def rivals_in(link: Link, answers: Answers, log_odds: Floats | None) -> Rivals:
    """Groups of annotators who contradict each other, where nothing tells which is right.

    Whoever gives answers that are possible, as a whole, could be right against two who agree: these
    may have copied each other. The features decide, or three who agree. Answers that are far off
    but still related to the others' do not contradict them: they are imprecise.
    """
    varied = [m for m in link.manners if not m.constant and m.answers >= KNOWN]
    best = max(varied, key=lambda m: m.trust, default=None)
    doubtful = [m for m in varied if m is not best and (_outlies(m) or not m.believable)]
    believed = tuple(m.name for m in varied if m not in doubtful)
    theirs = answers.without({*answers.names}.difference(believed)).pair
    accused = []
    for manner, pairs in _contested(link, answers, log_odds):
        number = answers.names.index(manner.name)
        shared = np.isin(answers.pair[answers.by(number)], theirs).sum()
        if manner.name in believed or shared < KNOWN:
            continue
        # Imprecise answers still point the same way as those of others who agree.
        close = answers.part(pairs).confirmed((manner.name, *believed))
        if len(believed) > 1 and manner.name in close:
            continue
        if log_odds is not None:
            fits, root = answers.part(pairs).fits(log_odds[pairs])
            best_fit = max(fits[answers.names.index(name)] for name in believed)
            if min(best_fit, best_fit - fits[number]) * root[number] > CLEAR:
                continue
        (alone,) = learn_link(answers.only(manner.name)).manners
        if alone.guesses < manner.guesses / 2:
            accused.append(manner.name)
    if not accused:
        return ()
    against = len(answers.confirmed(accused))
    if len(answers.confirmed(believed)) > max(AGREEING - 1, against):
        return ()
    groups, together = [believed], answers.together()
    for name in accused:
        row = together[answers.names.index(name)]
        friends = [g for g in groups[1:] if any(row[answers.names.index(other)] for other in g)]
        groups = [g for g in groups if g not in friends]
        groups.append((*(other for group in friends for other in group), name))
    return tuple(sorted(groups))


def rough_log_odds(answers: Answers, features: Any) -> Floats | None:
    """Log-odds (P, 2) of the items by linear models of other pairs; None if they predict nothing.

    The target is the mean difference, or one annotator's differences if these are predicted
    better: guesses of others only blur the mean.
    """
    count, answered = len(answers.ends), ~np.isnan(answers.values)
    used, ends = np.unique(answers.ends, return_inverse=True)
    if not (seen := features[used]).size:
        return None
    x, clear, best = standardised(seen), CLEAR, None
    voices = sorted(answers.each(), key=len, reverse=True)[:VOICES]
    for rows in (np.arange(len(answers)), *(voices if len(voices) > 1 else ())):
        given, differs, c = np.zeros((3, count))
        np.add.at(given, answers.pair[rows], answered[rows, 1])
        np.add.at(differs, answers.pair[rows], np.nan_to_num(1 - answers.values[rows, 0]))
        np.add.at(c, answers.pair[rows], np.nan_to_num(answers.values[rows, 1]))
        if given.sum() < KNOWN:
            continue
        c /= given.clip(1)
        scores = linear_scores(x, ends.reshape(-1, 2), c, given, FOLDS, PAIRS)
        gap, some = scores[:, 1] - scores[:, 0], given > 0
        right = (c * gap)[some]
        errors = float(right.mean() / (right.std() / np.sqrt(len(right)) + TINY))
        if errors < clear:
            continue
        # Zero half way between the classes, with the slope at which c grows with the score.
        middle = differs @ scores.mean(1) / differs.sum().clip(TINY)
        slope = 4 * (c[some] @ gap[some]) / (gap[some] @ gap[some])
        clear, best = errors, np.asarray(slope * (scores - middle))
    return best


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 1.0


def _outlies(manner: Manner) -> bool:
    return not manner.useful or manner.guesses - 2 * manner.guesses_error > MANY


def _leans(manner: Manner) -> bool:
    leans = ((manner.lean_same, manner.same_error), (manner.lean_right, manner.right_error))
    # Answers that vary a lot stop at the ends of the scales, which looks like a lean.
    least = max(LEAN, 1.5 * manner.spread)
    return any(abs(lean) > max(least, 2 * error) for lean, error in leans)


ROUGH = np.array([0.3, 0.1, 0.1])
"""Prior standard deviations of guesses and of the two leans."""


def with_errors(link: Link, answers: Answers, log_odds: Any = None) -> tuple[Manner, ...]:
    """Manners of a link with standard errors of guesses and leans.

    The covariance is estimated by the inverse of the sum of outer products of score vectors: the
    derivatives of the log-likelihood of each pair by the share of guesses, by a constant added to
    similarities and to differences, and by the distribution of the posteriors, which is learnt as
    well and can look like a lean. ``answers`` and ``log_odds`` (P, 2) are those that the link was
    learnt from.
    """
    some = answers.spread(PAIRS)
    scores_of = None if log_odds is None else np.asarray(log_odds, np.float64)[some]
    answers = answers.part(some)
    state = expect(link, answers, scores_of)
    people = len(link.manners)
    scores = np.zeros((len(answers.ends), 3 * people + SIZE))
    for number, (manner, rows) in enumerate(zip(link.manners, answers.each(), strict=True)):
        if manner.constant or not len(rows):
            continue
        share, sure = min(max(manner.guesses, 1e-4), 1 - 1e-4), state.sure[rows]
        derivatives = np.stack(
            [
                (1 - sure) / share - sure / (1 - share),
                *manner.slopes(answers.values[rows], state.honest[number]).T,
            ],
            axis=1,
        )
        np.add.at(scores[:, 3 * number : 3 * number + 3], answers.pair[rows], derivatives)
    expected = link.posteriors[state.bins].sum(1)
    scores[:, 3 * people :] = of_ends(link, state.bins, state.grid).sum(1) - expected
    ridge = np.r_[np.tile(ROUGH**-2, people), np.ones(SIZE)]
    information = scores.T @ scores + np.diag(ridge)
    variances = np.diag(np.linalg.inv(information))[: 3 * people].reshape(people, 3).copy()
    # At no guesses, the boundary, the likelihood has a slope.
    falls = np.minimum(scores.sum(0)[: 3 * people : 3], 0)
    variances[:, 0] = 1 / (1 / variances[:, 0] + falls**2)
    names = ("random_error", "same_error", "right_error")
    return tuple(
        replace(manner, **dict(zip(names, errors.tolist(), strict=True)))
        for manner, errors in zip(link.manners, np.sqrt(variances), strict=True)
    )
