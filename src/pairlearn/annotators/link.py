"""How each annotator answers, learnt from the answers and the features, without labels.

Behind every pair stand two true posteriors (r, r'), and with them the honest answer
s = rr' + (1 − r)(1 − r'), c = r' − r. Annotator j

    sharpens it  by a factor of the log-odds, compared to others who answer the same pairs,
    bends it     by a lean to "same" or "different", or to left or right,
    blurs it     by a spread of their own; on a scale of few levels it goes to a near one, and
                 hard answers are drawn from the outcomes,
    or guesses   anything on the scales, or an answer that belongs to another pair.

Honest answers fill a sixth of the (s, c) plane, so that leans push answers out of it and most
guesses lie far from it. Several answers to a pair show who agrees with whom. Log-odds of a model
that did not see the pair predict the answer, and show whose answers are unrelated to the items
where no two annotators agree. Expectation maximisation, with (r, r') on a grid, estimates the
distribution of the posteriors given the log-odds and the parameters of all annotators, which
shrink to "ideal". A confidence that is wrong in everybody cannot be learnt: if all log-odds are
multiplied by k, the answers are honest answers to another problem.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlearn.annotators.answers import Answers
from pairlearn.annotators.confidence import compared
from pairlearn.annotators.manner import COST, Manner
from pairlearn.annotators.scale import CELL, HONEST, POSTERIORS, SIZE, STEP, cells, spread_out
from pairlearn.columns import Floats, Indices
from pairlearn.judgements import Judgements

CONCENTRATION = 4.0
"""Of posteriors given log-odds, which hard answers of one person do not determine."""
BINS = 10
PAIRS = 1000
"""Most pairs that manners are learnt from."""
CLOSE_CALL = 0.2
"""Difference in mean log-likelihood under which two solutions are rivals."""
NEVER = 1e-300
"""Least density, where believed annotators contradict each other completely."""
TRIAL = 300
"""Pairs on which starting points are compared."""
SOONER = (0, 5)
"""Steps after which leans are possible, tried beside a climb without any. Until positives are known
to be rare that looks like a lean; real leans are found best from the start."""
ANYWHERE = (1 + (0.5 - POSTERIORS) / 2)[None] / SIZE
"""A distribution of posteriors to start from. Exchanged classes give the same answers, so that from
a symmetric start both classes would stay equally frequent."""


@dataclass(frozen=True)
class Link:
    """The manners of all annotators, and the posteriors of the pairs that they judged.

    ``manners`` are in the order of `Answers.names`; ``posteriors`` (bins, grid) is the distribution
    of true posteriors given the log-odds of an item, which ``edges`` divide into bins (one without
    log-odds); ``fit`` is the mean log-likelihood of a pair; ``rivals`` tells that other annotators
    could be the useful ones.
    """

    manners: tuple[Manner, ...]
    posteriors: Floats
    edges: Floats
    fit: float = -np.inf
    rivals: bool = False

    @classmethod
    def naive(cls, answers: Answers) -> Link:
        """A link that believes everybody: answers combine to their mean."""
        manners = tuple(Manner.believed(name) for name in answers.names)
        return cls(manners, ANYWHERE, np.empty(0))

    @property
    def leans(self) -> int:
        """Number of leans."""
        return sum(amount != 0 for manner in self.manners for _, amount in manner.bends)

    @property
    def blind(self) -> Link:
        """The same link for pairs without log-odds, with the question of rivals settled."""
        overall = self.posteriors.mean(0)[None]
        return replace(self, posteriors=overall, edges=np.empty(0), rivals=False)

    def combined(self, answers: Answers, log_odds: Floats | None = None) -> tuple[Floats, Floats]:
        """One answer (P, 2) for each pair, and its weight (P,).

        Corrected answers are weighted by their precision and by the probability that they are no
        guess; the answer expected from the log-odds counts as one more. The weight of a pair is
        the share of the others in the sum.
        """
        state = expect(self, answers, log_odds)
        spread = state.prior_variance.clip(1e-6)
        numerator, total = state.prior / spread, 1 / spread
        for number, manner in enumerate(self.manners):
            if manner.constant:
                continue
            rows = answers.by(number)
            pair, values = answers.pair[rows], answers.values[rows]
            corrected = manner.inverse(values, state.grid[pair])
            noise = np.broadcast_to(manner.noise(), values.shape)
            given = ~np.isnan(corrected)
            sure = state.sure[rows].clip(1e-9)
            precision = given / (noise + ((1 - sure) / sure)[:, None] * spread[pair])
            np.add.at(numerator, pair, precision * np.where(given, corrected, 0))
            np.add.at(total, pair, precision)
        worth = 1 - 1 / (spread * total)
        return numerator / total, worth.max(1)

    def statements(
        self, judged: Judgements, answers: Answers, log_odds: Floats | None = None
    ) -> Judgements:
        """One statement for each pair, followed by the statements of other kinds."""
        values, worth = self.combined(answers, log_odds)
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
    """Expectations of pairs and answers under a link."""

    grid: Floats  # (P, grid) distribution of (r, r') given the answers
    prior: Floats  # (P, 2) honest answer expected from the log-odds alone
    prior_variance: Floats
    mean: Floats  # (P, 2) honest answer expected from log-odds and answers
    sure: Floats  # (n,) probability that an answer is no guess
    honest: list[Floats]  # (n_j, grid) for each annotator: joint with (r, r')
    typical: Floats  # (n,) probability that a guess is an answer to another pair
    bins: Indices  # (P, 2) of the log-odds
    fit: float


def expect(link: Link, answers: Answers, log_odds: Floats | None) -> _State:
    """The expectation step: pairs and answers under a link."""
    count = len(answers.ends)
    bins = np.zeros((count, 2), np.int64)
    if log_odds is not None:
        bins = np.digitize(log_odds, link.edges)
    size = len(link.posteriors)
    every = cells(*(link.posteriors[at.ravel()] for at in np.indices((size, size))))
    both = size * bins[:, 0] + bins[:, 1]
    overall = link.posteriors.mean(0)[None]
    anywhere = cells(overall, overall)[0]
    grid, logs = np.ones((count, len(HONEST))), np.zeros(count)  # likelihoods of the answers
    honest = []
    typical = np.zeros(len(answers))
    for number, manner in enumerate(link.manners):
        rows = answers.by(number)
        if manner.constant or not len(rows):
            honest.append(np.zeros((len(rows), len(HONEST))))
            continue
        density = manner.density(answers.values[rows])
        elsewhere = anywhere
        if log_odds is not None and len(link.manners) > 1:
            # Their own answers to other pairs, which may be distributed unlike those of others.
            total = (density @ anywhere).clip(NEVER)
            elsewhere = anywhere * ((1 / total) @ density) / len(rows)
        borrowed = manner.borrowed * (density @ elsewhere)
        guess = manner.random * manner.anything(answers.values[rows]) + borrowed
        guess = guess.clip(NEVER)
        typical[rows] = borrowed / guess
        density *= 1 - manner.guesses
        likelihood, pair = density + guess[:, None], answers.pair[rows]
        density /= likelihood
        honest.append(density)
        if np.bincount(pair).max() > 1:
            pair, likelihood, tops = _multiplied(pair, likelihood)
            logs[pair] += tops
        # Divided by the largest, so that products of many do not vanish.
        likelihood *= grid.take(pair, 0)
        top = likelihood.max(1)
        likelihood /= top[:, None]
        grid[pair] = likelihood
        logs[pair] += np.log(top)
    grid *= every.take(both, 0)
    total = grid.sum(1)
    grid /= total[:, None]
    sure = np.empty(len(answers))
    for number, density in enumerate(honest):
        rows = answers.by(number)
        density *= grid.take(answers.pair[rows], 0)
        sure[rows] = density.sum(1)
    mean = every @ HONEST
    variance = every @ HONEST**2 - mean**2
    fit = float((np.log(total) + logs).sum()) / count
    return _State(grid, mean[both], variance[both], grid @ HONEST, sure, honest, typical, bins, fit)


def _multiplied(pair: Indices, likelihood: Floats) -> tuple[Indices, Floats, Floats]:
    """Products of the rows of each pair: its index, the products over the largest, and its log."""
    order = np.argsort(pair, kind="stable")
    pairs, starts = np.unique(pair[order], return_index=True)
    logs = np.add.reduceat(np.log(likelihood[order]), starts)
    tops = logs.max(1)
    return pairs, np.exp(logs - tops[:, None]), tops


def of_ends(link: Link, bins: Indices, grid: Floats) -> Floats:
    """Distributions (n, 2, SIZE) of r and of r' from those of both (n, grid).

    ``bins`` (n, 2) are those of the log-odds, on which it depends how likely each of the two
    couples of posteriors in a cell is.
    """
    left, right = link.posteriors[bins.T]
    couples = (grid / cells(left, right).clip(NEVER)).take(CELL, 1)
    return np.stack(
        [left * (couples @ right[..., None])[..., 0], right * (left[:, None] @ couples)[:, 0]], 1
    )


def _improve(
    link: Link,
    answers: Answers,
    log_odds: Floats | None,
    state: _State,
    known: frozenset[str] = frozenset(),
    leans: bool = True,
) -> Link:
    """The maximisation step; annotators in `known` keep their manners."""
    borrows = log_odds is not None or len(link.manners) > 1
    manners = tuple(
        manner
        if manner.name in known or manner.constant
        else manner.updated(
            answers.values[answers.by(number)],
            state.honest[number],
            state.typical[answers.by(number)],
            borrows,
            leans,
        )
        for number, manner in enumerate(link.manners)
    )
    bins, grid = _summed(state.bins, state.grid)
    counts = np.zeros(link.posteriors.shape)
    np.add.at(counts, bins.ravel(), of_ends(link, bins, grid).reshape(-1, SIZE))
    if len(manners) == 1 and manners[0].hard:
        means = counts @ POSTERIORS / counts.sum(1).clip(1e-9)
        posteriors = spread_out(means, CONCENTRATION)
    else:
        counts += 2 * counts.sum(0) / counts.sum() + 0.05 / SIZE
        posteriors = counts / counts.sum(1, keepdims=True)
    return replace(link, manners=manners, posteriors=posteriors, fit=state.fit)


def _summed(bins: Indices, grid: Floats) -> tuple[Indices, Floats]:
    """Couples of bins in use (n, 2), and the sum of the grid over the pairs of each."""
    both = BINS * bins[:, 0] + bins[:, 1]
    order = np.argsort(both, kind="stable")
    _, starts = np.unique(both[order], return_index=True)
    return bins[order[starts]], np.add.reduceat(grid.take(order, 0), starts)


def learn_link(
    answers: Answers,
    log_odds: Any = None,
    *,
    start: Link | None = None,
    astray: Collection[str] = (),
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
        Learnt before: where to start, unless there were rivals. In addition, or without it, each
        annotator in turn is believed at first; the start that explains the answers best goes on.
    astray : collection of str
        Annotators known to answer other pairs, beside those whom the log-odds show.
    seed : int
        Seed of the pairs that are used of a large table.

    Examples
    --------
    An annotator who says "same" by 0.15 too much:

    >>> from pairlearn.labels import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> honest = PairLabels.from_posteriors(*rng.beta(0.4, 0.4, size=(2, 400)))
    >>> values = np.stack([(honest.similarity + 0.15).clip(0, 1), honest.difference], 1)
    >>> table = Judgements.from_pairs(np.arange(800).reshape(-1, 2), values)
    >>> manner, = learn_link(Answers.of(table)).manners
    >>> manner.same_form, round(manner.same_amount, 2), round(manner.guesses, 2)
    ('shift', 0.15, 0.0)
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(answers.ends))
    scores = None if log_odds is None else np.asarray(log_odds, np.float64)
    agreeing = answers.together()
    strays = frozenset(astray) | (frozenset() if scores is None else answers.strays(scores))
    others = answers.without(strays)

    def some(count: int) -> tuple[Answers, Floats | None]:
        chosen = np.sort(order[:count])
        return others.part(chosen), None if scores is None else scores[chosen]

    small, rest, first = some(TRIAL), some(PAIRS), iterations // 3
    implied = spread_out(np.array([others.implied_share()]), 1.0)

    def tried(manners: tuple[Manner, ...], held: int) -> Link:
        manners = tuple(m.astray if m.name in strays else m for m in manners)
        # Rare positives look like a lean until they are known to be rare.
        anywhere = implied if held == first else ANYWHERE
        return climb(_begin(manners, scores, anywhere), *small, first, strays, held)

    def worth(link: Link) -> float:
        return link.fit - COST * link.leans / len(small[0].ends)

    known = () if start is None or start.rivals else start.manners
    trials = [tried(known, held) for held in (0, first) if known]
    if not known or len(answers.names) > 1:
        trials = [tried(manners, first) for manners in _starts(answers)] + trials
    if scores is not None and len(answers.names) > 1:
        # What was learnt before is ahead at first, so the best two go on to the end.
        trials.sort(key=worth)
        trials[-2:] = [climb(link, *small, iterations, strays) for link in trials[-2:]]
    best = max(trials, key=worth)
    vague = tuple(manner.vague for manner in best.manners)
    steps = (*SOONER, first) if best.leans else SOONER
    best = max(best, *(tried(vague, held) for held in steps), key=worth)
    useful = [manner.useful for manner in best.manners]
    different = [link for link in trials if [m.useful for m in link.manners] != useful]
    # Where no two confirm each other, whoever would be as believable alone is a rival.
    believed = np.array([manner.believable for manner in best.manners])
    unconfirmed = (
        scores is None
        and not agreeing[np.ix_(believed, believed)].any()
        and any(
            manner.believable and not taken
            for link in trials
            for manner, taken in zip(link.manners, believed, strict=True)
        )
    )
    rivals = unconfirmed or any(link.fit > best.fit - CLOSE_CALL for link in different)
    if start is None or start.rivals:

        def onward(link: Link) -> Link:
            return climb(link, *small, iterations // 4, strays)

        best = compared(best, onward, agreeing, len(small[0].ends))
        best = _polished(best, *small, iterations // 4, strays)
    best = climb(best, *rest, iterations, strays)
    return replace(best, rivals=rivals)


def _starts(answers: Answers) -> list[tuple[Manner, ...]]:
    """Starting points: everybody alike, and one annotator believed more than the others."""
    plain = [
        Manner.start(name, answers.values[rows], constant)
        for name, rows, constant in zip(
            answers.names, answers.each(), answers.constant(), strict=True
        )
    ]
    starts = [tuple(plain)]
    if len(plain) > 1:
        # Of many annotators, those with the most answers.
        for trusted in np.argsort([-manner.answers for manner in plain], kind="stable")[:6]:
            starts.append(
                tuple(
                    replace(manner, random=0.02 if number == trusted else 0.8)
                    for number, manner in enumerate(plain)
                )
            )
    return starts


def _begin(manners: tuple[Manner, ...], scores: Floats | None, anywhere: Floats) -> Link:
    if scores is not None or len(manners) > 1:
        manners = tuple(replace(m, borrowed=max(m.borrowed, 0.02)) for m in manners)
    if scores is None:
        return Link(manners, anywhere, np.empty(0))
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = np.digitize(scores, edges)
    middle = np.array([np.median(scores[bins == b]) for b in range(len(edges) + 1)])
    believed = spread_out(1 / (1 + np.exp(-middle.clip(-30, 30))), 6.0)
    # Half of it anywhere: log-odds may know the order of the items only.
    return Link(manners, (believed + anywhere) / 2, edges)


def _polished(
    link: Link, answers: Answers, scores: Floats | None, iterations: int, known: frozenset[str]
) -> Link:
    """Search over forms and sizes of leans, where expectation maximisation gets stuck."""

    def tried(number: int, word: str, form: str, amount: float) -> Link:
        changed: dict[str, Any] = {f"{word}_form": form, f"{word}_amount": amount}
        other = replace(link.manners[number], **changed)
        manners = (*link.manners[:number], other, *link.manners[number + 1 :])
        changed_link = replace(link, manners=manners)
        return climb(changed_link, answers, scores, iterations, known, iterations // 2)

    for number in range(len(link.manners)):
        for word in ("same", "right"):
            manner = link.manners[number]
            lean, amount = getattr(manner, f"lean_{word}"), getattr(manner, f"{word}_amount")
            if manner.hard or not manner.useful or not amount:
                continue
            sizes = [float(np.sign(lean)) * size for size in (0.05, 0.1, 0.15, 0.2, 0.3)]
            trials = [tried(number, word, form, s) for form in ("shift", "pull") for s in sizes]
            link = max(link, *trials, key=lambda trial: trial.fit)
            for _ in range(4):
                form, amount = link.manners[number].bends[("same", "right").index(word)]
                steps = [tried(number, word, form, amount + step) for step in (-STEP, STEP)]
                best = max(link, *steps, key=lambda trial: trial.fit)
                if best.manners[number].bends == link.manners[number].bends:
                    break
                link = best
    return link


def climb(
    link: Link,
    answers: Answers,
    scores: Floats | None,
    iterations: int,
    known: frozenset[str] = frozenset(),
    held: int = 0,
) -> Link:
    """Expectation maximisation until the likelihood no longer grows.

    Annotators in `known` keep their manners, and in the first steps, so many as `held`, everybody
    keeps their leans.
    """
    for number in range(iterations):
        state = expect(link, answers, scores)
        done = abs(state.fit - link.fit) < 1e-4 and not number < held < iterations
        link = _improve(link, answers, scores, state, known, number >= held)
        if done:
            break
    return link
