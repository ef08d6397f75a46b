"""How each annotator answers, learnt from the answers and the features, without labels.

Behind every pair stand two true posteriors (r, r'), and with them the honest answer
s = rr' + (1 − r)(1 − r'), c = r' − r. Annotator j

    bends it     by a lean to "same" or "different", or to left or right,
    blurs it     by a spread of their own; on a scale of few levels it goes to a near one, and
                 hard answers are drawn from the outcomes,
    or guesses   anything on the scales, or an answer that belongs to another pair.

Honest answers fill a sixth of the (s, c) plane: a lean shows as answers outside of it and a guess
as one far away; several answers to a pair show who goes with the others; and log-odds of a model
that did not see the pair tell what an answer should be about, and, where no two confirm each
other, whose answers are about something else. (r, r') is summed over a grid. Its
distribution, given the log-odds, and the manners of all annotators are found by expectation
maximisation. Where the data are silent, nothing is bent. A confidence that is wrong in everybody
cannot be learnt so: log-odds of all answers times k are the honest answers of another world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlearn.annotators.answers import Answers, named
from pairlearn.annotators.manner import Manner
from pairlearn.annotators.scale import HONEST, LEFT, POSTERIORS, RIGHT, SIZE, STEP
from pairlearn.columns import Floats, Indices
from pairlearn.judgements import Judgements

CONCENTRATION = 4.0
"""Of the posteriors given the log-odds, which one person's hard answers do not tell."""
BINS = 10
PAIRS = 1000
"""Pairs that manners are learnt from, of a larger table."""
CLOSE_CALL = 0.2
NEVER = 1e-300
"""Least density: people who contradict each other by far are all believed at first."""
TRIAL = 300
"""Pairs on which starts are compared."""


@dataclass(frozen=True)
class Link:
    """The manners of all annotators, and what follows for the pairs that they judged.

    ``manners`` are in the order of `Answers.names`; ``posteriors`` (bins, grid) is the distribution
    of true posteriors given the log-odds of an item, whose bins ``edges`` divide (none without
    log-odds); ``fit`` is the mean log-likelihood of a pair; ``rivals`` says that other annotators
    than these could be the useful ones, ``unconfirmed`` that nobody confirms the only useful one.
    """

    manners: tuple[Manner, ...]
    posteriors: Floats
    edges: Floats
    fit: float = -np.inf
    rivals: bool = False
    unconfirmed: bool = False

    @classmethod
    def naive(cls, answers: Answers) -> Link:
        """Everybody is believed: what is heard is the mean."""
        manners = tuple(Manner.believed(name) for name in answers.names)
        return cls(manners, np.full((1, SIZE), 1 / SIZE), np.empty(0))

    @property
    def blind(self) -> Link:
        """The same people, who are no rivals any more, where there are no log-odds."""
        overall = self.posteriors.mean(0)[None]
        return replace(self, posteriors=overall, edges=np.empty(0), rivals=False)

    def heard(self, answers: Answers, log_odds: Floats | None = None) -> tuple[Floats, Floats]:
        """What all that was said about a pair comes to, (P, 2), and how much that is worth.

        Corrected answers count by their precision, and by how likely they are no guess; what the
        log-odds lead one to expect counts as one more voice. The worth of a pair, (P,), is the
        share of the voices other than that.
        """
        state = expect(self, answers, log_odds)
        spread = state.prior_variance.clip(1e-6)
        numerator, total = state.prior / spread, 1 / spread
        for number, manner in enumerate(self.manners):
            if manner.constant:
                continue
            rows = answers.by(number)
            pair, values = answers.pair[rows], answers.values[rows]
            if manner.hard:
                mended, noise = state.mean[pair], spread[pair]
                given = ~np.isnan(values)
            else:
                mended = manner.inverse(values, state.mean[pair])
                noise = np.broadcast_to(manner.noise(), values.shape)
                given = ~np.isnan(mended)
            sure = state.sure[rows].clip(1e-9)
            voice = given / (noise + ((1 - sure) / sure)[:, None] * spread[pair])
            np.add.at(numerator, pair, voice * np.where(given, mended, 0))
            np.add.at(total, pair, voice)
        worth = 1 - 1 / (spread * total)
        return numerator / total, worth.max(1)

    def statements(
        self, judged: Judgements, answers: Answers, log_odds: Floats | None = None
    ) -> Judgements:
        """One statement for each pair, with what was said of other kinds."""
        values, worth = self.heard(answers, log_odds)
        given = np.zeros(values.shape, bool)
        np.logical_or.at(given, answers.pair, ~np.isnan(answers.values))
        values = np.where(given, values, np.nan)
        weight = answers.weight * np.maximum(worth, 1e-3)
        columns = {"similarity": values[:, 0], "difference": values[:, 1]}
        joined = Judgements.from_columns(answers.ends, columns, weight)
        others = judged[~judged.soft]
        if not len(others):
            return joined
        return Judgements.concatenate([joined, replace(others, annotator=None)])


@dataclass(frozen=True)
class _State:
    """What is expected of the pairs and the answers, given a link."""

    grid: Floats  # (P, grid) posterior of the couples
    prior: Floats  # (P, 2) honest answer expected from log-odds
    prior_variance: Floats
    mean: Floats  # (P, 2) with the answers
    sure: Floats  # (n,) how likely each answer is no guess
    honest: list[Floats]  # of each annotator (n_j, grid)
    typical: Floats  # (n,) share of borrowed answers among guesses
    bins: Indices
    fit: float


def expect(link: Link, answers: Answers, log_odds: Floats | None) -> _State:
    """What a link leads one to expect of every pair and every answer."""
    count = len(answers.ends)
    bins = np.zeros((count, 2), np.int64)
    if log_odds is not None:
        bins = np.digitize(log_odds, link.edges)
    ends = link.posteriors[bins]
    prior = ends[:, 0][:, LEFT] * ends[:, 1][:, RIGHT]
    overall = link.posteriors.mean(0)
    anywhere = overall[LEFT] * overall[RIGHT]
    logs = np.zeros((count, len(HONEST)))
    honest, guesses = [], []
    typical = np.zeros(len(answers))
    for number, manner in enumerate(link.manners):
        rows = answers.by(number)
        if manner.constant or not len(rows):
            honest.append(np.zeros((len(rows), len(HONEST))))
            guesses.append(np.ones(len(rows)))
            continue
        density = manner.density(answers.values[rows])
        elsewhere = anywhere
        if log_odds is not None and len(link.manners) > 1:
            # Of their own answers to other pairs, which need not be like those of the rest.
            own = density * anywhere
            elsewhere = (own / own.sum(1, keepdims=True).clip(NEVER)).mean(0)
        borrowed = manner.borrowed * (density @ elsewhere)
        guess = manner.random * manner.anything(answers.values[rows]) + borrowed
        typical[rows] = borrowed / guess.clip(NEVER)
        density *= 1 - manner.guesses
        told, pair = np.log((density + guess[:, None]).clip(NEVER)), answers.pair[rows]
        if len(np.unique(pair)) == len(pair):
            logs[pair] += told
        else:  # which takes ten times as long
            np.add.at(logs, pair, told)
        honest.append(density)
        guesses.append(guess)
    top = logs.max(1, keepdims=True)
    grid = prior * np.exp(logs - top)
    total = grid.sum(1, keepdims=True)
    grid /= total
    sure = np.empty(len(answers))
    for number in range(len(link.manners)):
        rows = answers.by(number)
        density = honest[number]
        density *= grid[answers.pair[rows]] / (density + guesses[number][:, None]).clip(NEVER)
        sure[rows] = density.sum(1)
    mean = prior @ HONEST
    variance = prior @ HONEST**2 - mean**2
    fit = float((np.log(total) + top).sum()) / count
    return _State(grid, mean, variance, grid @ HONEST, sure, honest, typical, bins, fit)


def _improve(
    link: Link,
    answers: Answers,
    log_odds: Floats | None,
    state: _State,
    known: frozenset[str] = frozenset(),
) -> Link:
    borrows = log_odds is not None or len(link.manners) > 1
    manners = tuple(
        manner
        if manner.name in known or manner.constant
        else manner.updated(
            answers.values[answers.by(number)],
            state.honest[number],
            state.typical[answers.by(number)],
            borrows,
        )
        for number, manner in enumerate(link.manners)
    )
    couples = state.grid.reshape(-1, SIZE, SIZE)
    counts = np.zeros(link.posteriors.shape)
    np.add.at(counts, state.bins[:, 0], couples.sum(2))
    np.add.at(counts, state.bins[:, 1], couples.sum(1))
    if len(manners) == 1 and manners[0].hard:
        means = counts @ POSTERIORS / counts.sum(1).clip(1e-9)
        posteriors = _spread_out(means, CONCENTRATION)
    else:
        counts += 2 * counts.sum(0) / counts.sum() + 0.05 / SIZE
        posteriors = counts / counts.sum(1, keepdims=True)
    return replace(link, manners=manners, posteriors=posteriors, fit=state.fit)


def _spread_out(means: Floats, concentration: float) -> Floats:
    """Beta distributions on the grid, (bins, grid)."""
    means = means.clip(0.01, 0.99)[:, None]
    logs = concentration * (means * np.log(POSTERIORS) + (1 - means) * np.log1p(-POSTERIORS))
    mass = np.exp(logs) * np.gradient(POSTERIORS)
    return np.asarray(mass / mass.sum(1, keepdims=True))


def learn_link(
    answers: Answers,
    log_odds: Any = None,
    *,
    start: Link | None = None,
    seed: int = 0,
    iterations: int = 40,
) -> Link:
    """Learn the manner of every annotator.

    Parameters
    ----------
    answers : Answers
    log_odds : array of shape (P, 2), optional
        Of the items of each pair, by a model that was not trained on the pair.
    start : Link, optional
        Where to begin, as learnt before, unless there were rivals: then, and without it, everybody
        in turn is believed at first, and the start that explains the answers best goes on.
    seed : int
        Of the pairs that are looked at, of a large table.

    Examples
    --------
    An annotator who says "same" by 0.15 too much:

    >>> from pairlearn.labels import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> told = PairLabels.from_posteriors(*rng.beta(0.4, 0.4, size=(2, 400)))
    >>> values = np.stack([(told.similarity + 0.15).clip(0, 1), told.difference], 1)
    >>> table = Judgements.from_pairs(np.arange(800).reshape(-1, 2), values)
    >>> manner, = learn_link(Answers.of(table)).manners
    >>> manner.same_form, round(manner.same_amount, 2), round(manner.guesses, 2)
    ('shift', 0.15, 0.0)
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(answers.ends))
    scores = None if log_odds is None else np.asarray(log_odds, np.float64)
    agreeing, strays = answers.together(), frozenset[str]()
    if scores is not None and not agreeing.any():
        strays = answers.strays(scores)
    heard = answers.without(strays)

    def some(count: int) -> tuple[Answers, Floats | None]:
        chosen = np.sort(order[:count])
        return heard.part(chosen), None if scores is None else scores[chosen]

    small, rest = some(TRIAL), some(PAIRS)
    begins = [] if start is None or start.rivals else [start.manners]
    if not begins or len(answers.names) > 1:
        begins = _starts(answers) + begins
    begins = [tuple(one.astray if one.name in strays else one for one in m) for m in begins]
    trials = [_climb(_begin(m, scores), *small, iterations // 3, strays) for m in begins]
    if scores is not None and len(answers.names) > 1:
        # Those who begin as learnt before are ahead at first: the best two go on to the end.
        trials.sort(key=lambda link: link.fit)
        trials[-2:] = [_climb(link, *small, iterations, strays) for link in trials[-2:]]
    best = max(trials, key=lambda link: link.fit)
    useful = [one.useful for one in best.manners]
    others = [link for link in trials if [one.useful for one in link.manners] != useful]
    # Where no two confirm each other, others are rivals who, alone, would be as believable.
    believed = np.array([one.believable for one in best.manners])
    unconfirmed = (
        scores is None
        and not agreeing[np.ix_(believed, believed)].any()
        and any(
            one.believable and not taken
            for link in trials
            for one, taken in zip(link.manners, believed, strict=True)
        )
    )
    rivals = unconfirmed or any(link.fit > best.fit - CLOSE_CALL for link in others)
    if start is None or start.rivals:
        best = _polished(best, *small, iterations // 4, strays)
    best = _climb(best, *rest, iterations, strays)
    return replace(best, rivals=rivals, unconfirmed=unconfirmed)


def _starts(answers: Answers) -> list[tuple[Manner, ...]]:
    plain = [
        Manner.start(name, answers.values[answers.by(number)])
        for number, name in enumerate(answers.names)
    ]
    found = [tuple(plain)]
    if len(plain) > 1:
        # With many annotators those who said most are tried.
        for trusted in np.argsort([-one.answers for one in plain], kind="stable")[:6]:
            found.append(
                tuple(
                    replace(one, random=0.02 if number == trusted else 0.8)
                    for number, one in enumerate(plain)
                )
            )
    return found


def _begin(manners: tuple[Manner, ...], scores: Floats | None) -> Link:
    if scores is not None or len(manners) > 1:
        manners = tuple(replace(one, borrowed=max(one.borrowed, 0.02)) for one in manners)
    if scores is None:
        return Link(manners, np.full((1, SIZE), 1 / SIZE), np.empty(0))
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = np.digitize(scores, edges)
    middle = np.array([np.median(scores[bins == b]) for b in range(len(edges) + 1)])
    return Link(manners, _spread_out(1 / (1 + np.exp(-middle.clip(-30, 30))), 6.0), edges)


def _polished(
    link: Link, answers: Answers, scores: Floats | None, iterations: int, known: frozenset[str]
) -> Link:
    """With leans of other forms and sizes where they explain more: small steps stop early."""

    def tried(number: int, word: str, form: str, amount: float) -> Link:
        changed: dict[str, Any] = {f"{word}_form": form, f"{word}_amount": amount}
        other = replace(link.manners[number], **changed)
        manners = (*link.manners[:number], other, *link.manners[number + 1 :])
        return _climb(replace(link, manners=manners), answers, scores, iterations, known)

    for number in range(len(link.manners)):
        for word in ("same", "right"):
            manner = link.manners[number]
            lean, amount = getattr(manner, f"lean_{word}"), getattr(manner, f"{word}_amount")
            if manner.hard or not manner.useful or not amount:
                continue
            sizes = [float(np.sign(lean)) * size for size in (0.05, 0.1, 0.15, 0.2, 0.3)]
            trials = [tried(number, word, form, s) for form in ("shift", "pull") for s in sizes]
            link = max(link, *trials, key=lambda one: one.fit)
            for _ in range(4):
                form, amount = link.manners[number].bends[("same", "right").index(word)]
                steps = [tried(number, word, form, amount + step) for step in (-STEP, STEP)]
                best = max(link, *steps, key=lambda one: one.fit)
                if best.manners[number].bends == link.manners[number].bends:
                    break
                link = best
    return link


def _climb(
    link: Link,
    answers: Answers,
    scores: Floats | None,
    iterations: int,
    known: frozenset[str] = frozenset(),
) -> Link:
    for _ in range(iterations):
        state = expect(link, answers, scores)
        done = abs(state.fit - link.fit) < 1e-4
        link = _improve(link, answers, scores, state, known)
        if done:
            break
    return link


CLOSE = 0.005
"""Variances of answers that are much below this count alike when something is measured."""
MOST_GUESSES = 0.5
"""Who guesses more is not measured with where the others say more: an error in the share of the
guesses would do more harm than the rest does good."""


def fair(manners: Sequence[Manner], said: Judgements) -> Judgements:
    """Judgements to measure with: right on average where annotators have these manners.

    Leans are taken back. Guesses, as far as the answers themselves show them, count little, and
    what they add to the others on average is taken off. Annotators without information, or with
    little beside others, are left out, and so are rows without a similarity or a difference.
    Nothing here depends on a classifier, whose accuracy is to be measured. Unknown annotators are
    believed, unless they always say the same; without manners those of one annotator stay.

    Examples
    --------
    >>> said = Judgements.from_pairs([[0, 1], [2, 3]], [[0.7, 0.3], [0.6, 0.5]])
    >>> fair([Manner("", random=0.0, right_form="shift", right_amount=0.2)], said).v.round(2)
    array([0.1, 0.3])
    """
    if not manners and (said.annotator is None or len(np.unique(named(said.annotator))) < 2):
        return said
    said = said[said.soft]
    answers = Answers.of(said)
    by_name = {one.name: one for one in manners}
    begin = []
    for number, name in enumerate(answers.names):
        values = answers.values[answers.by(number)]
        manner = by_name.get(name)
        # Answers on another scale than before are another manner.
        if manner is None or not manner.suits(values):
            manner = Manner.unknown(name, values)
        begin.append(manner)
    link = Link(tuple(begin), np.full((1, SIZE), 1 / SIZE), np.empty(0))
    some = answers.part(answers.spread(PAIRS))
    link = _climb(link, some, None, 40, frozenset(answers.names))
    state = expect(link, answers, None)
    values, weight = answers.values.copy(), np.zeros(len(answers))
    least = min(float(one.noise().mean()) for one in link.manners)
    told = [len(rows) * (1 - one.guesses) ** 2 * one.useful
            for rows, one in zip(answers.each(), link.manners, strict=True)]  # fmt: skip
    doubtful = [one.guesses > MOST_GUESSES for one in link.manners]
    enough = 2 * np.dot(told, np.invert(doubtful)) > np.sum(told)
    for number, manner in enumerate(link.manners):
        rows = answers.by(number)
        if not manner.useful or (enough and doubtful[number]):
            continue
        mended = manner.inverse(answers.values[rows], state.mean[answers.pair[rows]])
        sure = state.sure[rows]
        if manner.guesses > 0.01:
            doubt = sure * (1 - sure)
            share = float(doubt.sum() / sure.sum())
            guessed = np.nansum(doubt[:, None] * mended, 0) / max(doubt.sum(), 1e-9)
            mended = (mended - share * guessed) / (1 - share)
        values[rows] = mended
        weight[rows] = sure * (least + CLOSE) / (float(manner.noise().mean()) + CLOSE)
    values[answers.turned, 1] *= -1
    kept = weight > 0
    return replace(
        said, values=np.where(np.isnan(values), said.values, values), weight=said.weight * weight
    )[kept if kept.any() else slice(None)]
