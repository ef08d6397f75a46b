"""Everybody who judged a table, by one model: for `check`, the studio and the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pairlearn.annotators.answers import Answers, named, opposed, without_copies
from pairlearn.annotators.linear import linear_scores
from pairlearn.annotators.link import PAIRS, Link, expect, learn_link
from pairlearn.annotators.manner import Manner, Phrase, in_words
from pairlearn.annotators.scale import SIZE
from pairlearn.columns import Floats
from pairlearn.judgements import Judgements

FOLDS = 5
CLEAR = 3.0
"""Standard errors by which a linear score must predict differences to be of use."""
CLEAR_PAIRS = 100
"""Pairs from which on such scores tell which one of two is right."""
VOICES = 6
"""Annotators, those who said most, of whom linear scores are tried."""
TINY = 1e-9
KNOWN = 20
"""Answers from which on something is said about somebody."""
MANY, LEAN = 0.15, 0.05
"""Share of guesses, and lean, that deserve a look where they exceed twice their errors."""


class Doubt(NamedTuple):
    """Something about some annotators that deserves a look."""

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
        Who repeats whom, to the last digit.
    turned, contrary : tuple of str
        Those whose differences or preferences run against those of the others; and those of whom
        some have left and right exchanged, and nothing tells who.
    rivals : bool
        Whether there are some who do not go together, and any of them could be right.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> from pairlearn.labels import PairLabels
    >>> careful = np.asarray(PairLabels.from_posteriors(*rng.beta(0.5, 0.5, (2, 60))).to_array())
    >>> ends, constant = np.arange(120).reshape(-1, 2), np.tile([1.0, 0.0], (60, 1))
    >>> crowd = Crowd.of(Judgements.concatenate([
    ...     Judgements.from_pairs(ends, said, [name] * 60)
    ...     for name, said in (("ann", careful), ("bob", constant))]))
    >>> crowd.words("ann"), [doubt.words for doubt in crowd.doubts()]
    ('nothing to correct', ['bob gives one answer to everything'])
    """

    manners: dict[str, Manner]
    copies: dict[str, str]
    turned: tuple[str, ...] = ()
    contrary: tuple[str, ...] = ()
    rivals: bool = False

    @classmethod
    def of(cls, judged: Judgements, features: Any = None) -> Crowd:
        """Learn about everybody who judged.

        Answers beyond the ends of the scales are nobody's manner, since noise was added to
        them; and of one annotator whose answers fit together there is nothing to learn. With
        `features` (N, d) of the items, linear scores say what an answer should be about; without,
        somebody whose answers fit together, but not the items, is seen by other people's alone.
        """
        judged, copied = without_copies(judged)
        against = opposed(judged)
        contrary = dict.fromkeys(name for two in against for name in two)
        # Who turns the scale around makes everybody who is compared with them look so.
        turned = tuple(name for name in contrary if all(name in two for two in against))
        lost: dict[str, Manner] = {}
        if len(turned) == 1:
            contrary = {}
            rows = named(judged.annotator) == turned[0]
            lost[turned[0]] = Manner(turned[0], answers=int(rows.sum()), random=1.0)
            judged = judged[~rows]
        answers = Answers.of(judged)
        told = [answers.values[rows] for rows in answers.each()]
        several = len(told) > 1 and max(map(len, told)) >= KNOWN and not answers.beyond
        rivals = False
        if several or answers.speak() is not None:
            link, scores = learn_link(answers), None
            if features is not None and (scores := rough_log_odds(answers, features)) is not None:
                link = learn_link(answers, scores, start=link)
            found = with_errors(link, answers, scores)
            voices = [one for one in found if not one.constant]
            # Of two of whom one answers other pairs it could be either; the features decide.
            mixed_up = any(_outlies(one) and one.borrowed > one.random for one in voices)
            decided = scores is not None and (len(scores) >= CLEAR_PAIRS or not link.rivals)
            rivals = not decided and (link.unconfirmed or (len(voices) == 2 and mixed_up))
        else:
            found = tuple(
                replace(Manner.unknown(name, values), answers=len(values))
                for name, values in zip(answers.names, told, strict=True)
            )
        manners = {one.name: one for one in found} | lost
        for name, other in copied:
            manners[name] = replace(manners[other], name=name)
        return cls(manners, dict(copied), tuple(lost), tuple(contrary), rivals)

    def words(self, name: str) -> str:
        """How somebody answers, in a sentence."""
        return in_words(self.phrases(name))

    def phrases(self, name: str) -> list[Phrase]:
        """The parts of the sentence, which other languages have tables for."""
        if name in self.copies:
            return [("repeats the answers of {other}", {"other": self.copies[name]})]
        if name in self.turned:
            return [("has left and right exchanged", {})]
        if name in self.contrary:
            others = ", ".join(one for one in self.contrary if one != name)
            return [("runs against {others}", {"others": others})]
        manner = self.manners.get(name)
        if manner is None or manner.answers < KNOWN:
            return [("has too few answers to say", {})]
        return manner.phrases()

    def doubts(self) -> list[Doubt]:
        """What deserves a look, for `check` and the supervisor's page."""
        rest = [
            one
            for name, one in self.manners.items()
            if one.answers >= KNOWN and name not in {*self.copies, *self.turned, *self.contrary}
        ]
        # Somebody is the best of several, whatever the others make of the answers.
        best = max(rest, key=lambda one: one.trust).name if len(self.manners) > 1 and rest else None
        outlying = [
            one.name for one in rest if _outlies(one) and (one.constant or one.name != best)
        ]
        leaning = [one.name for one in rest if one.name not in outlying and _leans(one)]
        if self.rivals:
            outlying = [name for name in outlying if self.manners[name].constant]
        groups = {
            "copied-annotator": self.copies,
            "reversed-annotator": self.turned,
            "contrary-annotators": self.contrary,
            "rival-annotators": [one.name for one in rest if not one.constant] * self.rivals,
            "outlying-annotator": outlying,
            "leaning-annotator": leaning,
        }

        def told(code: str, name: str) -> str:
            # What rivals look like depends on which of them is believed.
            return name if code == "rival-annotators" else f"{name} {self.words(name)}".strip()

        return [
            Doubt(code, tuple(names), "; ".join(told(code, name) for name in names))
            for code, names in groups.items()
            if names
        ]

    def weights(self) -> dict[str, float]:
        """How much everybody should count: `Manner.trust`, scaled to a mean of one.

        Those who gave fewer than twenty answers count in between what these say and the mean of
        the others, in proportion; those who contradict one another count alike.
        """
        trust = {name: one.trust for name, one in self.manners.items()}
        known = [name for name, one in self.manners.items() if one.answers >= KNOWN]
        trust |= dict.fromkeys(self.contrary, _mean([trust[name] for name in self.contrary]))
        usual = _mean([trust[name] for name in known])
        for name, one in self.manners.items():
            share = min(one.answers / KNOWN, 1.0)
            trust[name] = share * trust[name] + (1 - share) * usual
        scale = _mean(list(trust.values()))
        return {name: value / scale for name, value in sorted(trust.items())}


def rough_log_odds(answers: Answers, features: Any) -> Floats | None:
    """Log-odds (P, 2) of the items, by linear models of other pairs; None if they fail.

    They are learnt from what all say on average, or from one person's differences, whichever such
    models predict best: guesses of others only blur those.
    """
    count, told = len(answers.ends), ~np.isnan(answers.values)
    used, ends = np.unique(answers.ends, return_inverse=True)
    seen, clear, found = features[used], CLEAR, None
    if not seen.size:
        return None
    x = _standard(seen)
    voices = sorted(answers.each(), key=len, reverse=True)[:VOICES]
    for rows in (np.arange(len(answers)), *(voices if len(voices) > 1 else ())):
        given, differs, c = np.zeros((3, count))
        np.add.at(given, answers.pair[rows], told[rows, 1])
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
        # Half way between the classes it is zero, and r grows with it as c does.
        middle = differs @ scores.mean(1) / differs.sum().clip(TINY)
        slope = 4 * (c[some] @ gap[some]) / (gap[some] @ gap[some])
        clear, found = errors, np.asarray(slope * (scores - middle))
    return found


def _standard(features: Any) -> Floats:
    """Features (m, d) of mean 0 and standard deviation 1, and 0 where one is missing."""
    x = np.asarray(features, np.float64).reshape(len(features), -1)
    known = ~np.isnan(x)
    count = known.sum(0).clip(1)
    x = np.where(known, x - np.where(known, x, 0).sum(0) / count, 0)
    return np.asarray(x / (np.sqrt(np.square(x).sum(0) / count) + TINY))


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 1.0


def _outlies(one: Manner) -> bool:
    return not one.useful or one.guesses - 2 * one.guesses_error > MANY


def _leans(one: Manner) -> bool:
    leans = ((one.lean_same, one.same_error), (one.lean_right, one.right_error))
    # Answers that vary a lot stop at the ends of the scales, which looks like a lean.
    least = max(LEAN, 1.5 * one.spread)
    return any(abs(lean) > max(least, 2 * error) for lean, error in leans)


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
