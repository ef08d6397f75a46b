"""All annotators of a table under one model, learnt by expectation maximisation.

The model is that of Dawid and Skene (1979) for answers that are numbers. There, behind every
question stands a true class, and each annotator has a confusion matrix; here, behind every pair
stand two true posteriors r and r', and each annotator has four habits. The honest answer is

    s = rr' + (1 − r)(1 − r'),   c = r' − r .

With several classes, r is the posterior of the set of classes that the question is about.

Annotator j, asked about a pair,

- **guesses** with probability ε_j: an answer that is uniform on the scales, or one that belongs to
  another pair;
- otherwise **knows** something of their own: a share κ_j of what r and r' leave open. That moves
  each of them to a value of the same mean, with the variance κ_j r(1 − r), and the answer is the
  honest one for these;
- **leans**: adds a constant to s and one to c, and clips them to the scales;
- and **blurs**: a normal spread around that, of s and of c. An answer on a scale of levels says
  that the value lay nearer to this level than to others. A hard answer is one draw of the three
  outcomes (left, right, alike), with the leaning s and c as probabilities.

Posteriors are values of a grid of 17. Since (r, r') and (1 − r', 1 − r) have the same honest
answer, a pair is in one of 153 cells. The distribution of posteriors is learnt as well: one for
each tenth of the log-odds that a model, which did not see the pair, gives to an item; one for all
without log-odds. This is where the features come in: a person whose answers are unrelated to the
log-odds guesses, even where no two people judge the same pair.

The E-step computes for each pair the probabilities of the cells, and for each answer the
probability that it is no guess. The M-step counts guesses and posteriors, and takes for each person
the likeliest lean, spread and knowledge of a few values. Without log-odds it starts from the
answers: all people alike, posteriors anywhere. With them it also starts from the log-odds,
believed, and keeps the better likelihood.

Identified without labels are guesses, leans and spreads: honest answers fill a sixth of the (s, c)
plane, so that leans push answers out of it and most guesses lie outside. So is knowledge where
others, who do not guess, judge the same pairs. A confidence error that all people share is not
identified, nor exchanged classes, nor an error that follows the features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from pairlearn.annotators.annotator import Annotator
from pairlearn.annotators.answers import Answers, modelled
from pairlearn.annotators.grid import ANYWHERE, CELL, HONEST, SHARES, SIZE, betas, cells, knowing
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.io.cells import list_names
from pairlearn.judgements import Judgements
from pairlearn.judgements.answer_scale import RANGES, scale_of

#: Questions that learning needs: with fewer a share of guesses is known to no better than ±0.2.
LEAST = 20
#: Answers from which on a person counts as one of several.
ONE_OF_SEVERAL = 10
#: Share of answers that no posteriors give from which on a single annotator is learnt: those of an
#: ideal one have none, and those of one in fifty at random more. And the distance from the feasible
#: region that counts as rounding by hand: two answers that are each off by 0.01.
INFEASIBLE, SLACK = 0.02, 0.02
#: Tenths of the log-odds, each with a distribution of posteriors of its own.
BINS = 10
#: Most pairs that are learnt from: standard errors of 0.01 are enough for a correction.
PAIRS = 1000
#: Pairs that are corrected at a time, which bounds the memory.
BLOCK = 10_000
#: Most steps of expectation maximisation, and growth of the mean log-likelihood of a pair at which
#: to stop before: a change of 0.1 in that of 1,000 pairs.
STEPS, GAIN = 60, 1e-4
#: First steps without leans, unless log-odds are believed: until positives are known to be rare,
#: that looks like a lean to "same" (`bench/speed/annotators.py`, "3% positives").
UPRIGHT = 5
#: Steps between two looks at private knowledge, which cost as much as these steps.
PATIENCE = 3
#: Of posteriors around believed log-odds, to start from: those of a decent model.
CONCENTRATION = 6.0
TINY = np.finfo(np.float64).tiny


class Corrected(NamedTuple):
    """Statements without guesses and leans, and what is left of the spread of people.

    ``noise`` (n,) is the variance of the difference of each statement around the honest one, None
    where nothing was learnt. The mean square of differences exceeds that of posteriors by it
    (`pairlearn.evaluation.readings`).
    """

    judged: Judgements
    noise: Floats | None


@dataclass(frozen=True)
class Annotators:
    """How the annotators of a table answer.

    Attributes
    ----------
    people : tuple of Annotator
        Sorted by name; empty where nothing was learnt, and answers are taken as they are.

    Examples
    --------
    An annotator who favours the left one by 0.2:

    >>> from pairlearn.labels import PairLabels
    >>> rng = np.random.default_rng(0)
    >>> honest = PairLabels.from_posteriors(*rng.beta(0.4, 0.4, size=(2, 400)))
    >>> values = (honest.to_array() - [0, 0.2]).clip([0, -1], [1, 1])
    >>> ends = np.arange(800).reshape(-1, 2)
    >>> judged = Judgements.from_pairs(ends, values, annotator=["ann"] * 400)
    >>> annotators = Annotators.learn(judged)
    >>> [round(lean, 1) for lean in annotators.people[0].leans]
    [0.0, -0.2]
    >>> corrected = annotators.correct(judged).judged
    >>> bool(np.abs(corrected.v - honest.difference).mean() < 0.03)
    True
    """

    people: tuple[Annotator, ...] = ()

    @classmethod
    def needed(cls, judged: Judgements) -> bool:
        """Whether annotators should not be taken as ideal.

        They should not where several people answer, or where no two posteriors give the answers:
        leans and guesses make such answers (`bench/speed/annotators.py`). They should where noise
        was added to the answers, as values beyond the scales show, which training corrects for if
        its mean is zero, and where most rows have one of the two answers: that hardly tells a lean
        from the truth.
        """
        answers, (low, high) = Answers.of(judged), np.transpose(RANGES)
        values = answers.values
        beyond = ((values < low) | (values > high)).any()
        if not len(answers) or beyond or np.isnan(values).any(1).mean() > 0.5:
            return False
        if sum(len(rows) >= ONE_OF_SEVERAL for rows in answers.each) > 1:
            return True
        own = [values[rows].T for rows in answers.each]
        feasible = sum(scale_of(s, c).admits(s, c, SLACK).sum() for s, c in own)
        return bool(1 - feasible / len(answers) > INFEASIBLE)

    @classmethod
    def learn(cls, judged: Judgements, log_odds: Any = None, *, seed: int = 0) -> Self:
        """Learn how each annotator answers.

        Parameters
        ----------
        judged : Judgements
            Similarities and differences; other kinds are left aside. With several classes each is
            about a set of them.
        log_odds : array of shape (n, 2), optional
            Of the two items of each row, that they are in the set that it is about, by a model that
            was not trained on the pair; NaN for rows of other kinds.
        seed : int
            Seed of the pairs that are used of a large table.
        """
        answers = Answers.of(judged)
        if len(answers.rows) < LEAST:
            return cls()
        start = tuple(
            Annotator.start(name, answers.values[rows])
            for name, rows in zip(answers.names, answers.each, strict=True)
        )
        order = np.random.default_rng(seed).permutation(len(answers.rows))
        answers = answers.part(np.sort(order[:PAIRS]))
        anywhere = _Fit.anywhere(start, answers.scores(log_odds))
        best = anywhere.climb(answers, upright=UPRIGHT)
        if anywhere.scores is not None:
            believed = anywhere.believing(anywhere.scores).climb(answers)
            best = max(best, believed, key=lambda fit: fit.worth)
        return cls(best.with_errors(answers))

    def correct(self, judged: Judgements, log_odds: Any = None) -> Corrected:
        """One statement for each question without guesses and leans, and other kinds as they are.

        Answers count by their precision and by the probability that they are no guess. The weight
        of a statement is the share of their precision in the whole, to which the distribution of
        honest answers adds its own. With log-odds, as in `learn`, the answer that they let expect
        counts as one more: the least error, to train with. Without them it does not, and the mean
        of remaining guesses is subtracted: right on average, to measure with. People who are not in
        `people` are believed; answers without a name are those of the only annotator there is.
        """
        answers = Answers.of(judged)
        if not self.people or not len(answers):
            return Corrected(judged, None)
        people = tuple(
            self._person(name, answers.values[rows])
            for name, rows in zip(answers.names, answers.each, strict=True)
        )
        count, scores = len(answers.rows), answers.scores(log_odds)
        some = np.linspace(0, count - 1, min(PAIRS, count)).astype(np.int64)
        fit = _Fit.anywhere(people, None if scores is None else scores[some])
        fit = fit.climb(answers.part(some), learning=False)
        values, weight, noise = _combined(fit, answers, scores)
        columns = {"similarity": values[:, 0], "difference": values[:, 1]}
        own, asked = modelled(judged), judged[answers.rows]
        rows = np.bincount(answers.pair, judged.weight[own]) / np.bincount(answers.pair)
        corrected = Judgements.from_columns(
            asked.ends, columns, rows * weight, about=asked.about, q=asked.q
        )
        corrected = replace(corrected, classes=judged.classes)
        others = replace(judged[~own], annotator=None)
        if len(others):
            corrected = Judgements.concatenate([corrected, others])
        return Corrected(corrected, np.append(noise, np.zeros(len(others))))

    def describe(self, name: str) -> str:
        """How one annotator answers, as a sentence."""
        person = self.find(name)
        return "nothing is known about the answers" if person is None else person.sentence()

    def find(self, name: str) -> Annotator | None:
        """The annotator of a name, if there is one."""
        return next((person for person in self.people if person.name == name), None)

    def _person(self, name: str, values: Floats) -> Annotator:
        """The annotator with this name; an ideal one if unknown or on another scale."""
        person, start = self.find(name), Annotator.start(name, values)
        if not name and person is None:
            if len(self.people) > 1:
                names = [known.name for known in self.people]
                raise ValueError(
                    "the answers do not name their annotators, and the model has learnt how "
                    f"{len(names)} annotators answer ({list_names(names)}): add the "
                    "names, in a column annotator of the file or as annotator=, or fit with "
                    "annotators='ideal' to take all answers as they are"
                )
            person = self.people[0]
        if person is None or person.scale not in ("soft", start.scale):
            return replace(start, guesses=0.0, borrowed=0.0, spreads=(0.0, 0.0))
        return person


@dataclass(frozen=True)
class _Heard:
    """The answers of one person in the E-step: all that depends on the pair or the answer."""

    person: Annotator
    density: Floats  # (n, cells) probability of each answer, if the cell were the person's own
    guess: Floats  # (n,) probability that an answer is a guess and comes out like this
    taken: Floats  # (n,) the part of it that belongs to another pair
    rest: Floats  # (n, cells) distribution of (r, r') over the probability of the answer

    def honest(self, share: float | None = None) -> Floats:
        """Probability (n, cells) that the answer is no guess and the person's own cell is this."""
        share = self.person.knowledge if share is None else share
        known = self.rest @ knowing(share) if share else self.rest
        return (1 - self.person.guesses) * self.density * known

    def more_knowledge(self, shared: Mask) -> float:
        """The likeliest share of private knowledge, of the present one and its neighbours.

        It shows in the answers (n,) that are ``shared``: others answered the same pairs, and did
        not guess. As a lean, it costs ½ log n.
        """
        if not shared.any():
            return 0.0
        at, cost = SHARES.index(self.person.knowledge), np.log(len(self.guess)) / 2
        guess = self.rest.sum(1) * self.guess

        def gain(share: float) -> float:
            likelihood = (self.honest(share).sum(1) + guess)[shared]
            return float(np.log(likelihood.clip(TINY)).sum() - cost * (share > 0))

        return max(SHARES[max(at - 1, 0) : at + 2], key=gain)


@dataclass(frozen=True)
class _Expected:
    """The E-step: expectations of pairs and answers."""

    grid: Floats  # (P, cells) distribution of (r, r') given the answers
    sure: Floats  # (n,) probability that an answer is no guess
    heard: list[_Heard]  # of each annotator
    prior: Floats  # (P, 2) honest answer expected from the log-odds alone
    prior_variance: Floats
    bins: Indices  # (P, 2) of the log-odds
    likelihood: float


@dataclass(frozen=True)
class _Fit:
    """Annotators, and the distribution of posteriors (bins, SIZE) given log-odds (P, 2)."""

    people: tuple[Annotator, ...]
    posteriors: Floats
    edges: Floats
    scores: Floats | None = None
    likelihood: float = -np.inf

    @classmethod
    def anywhere(cls, people: tuple[Annotator, ...], scores: Floats | None) -> _Fit:
        """The start from the answers."""
        edges = np.empty(0)
        if scores is not None:
            edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1]))
        return cls(people, np.tile(ANYWHERE, (len(edges) + 1, 1)), edges, scores)

    def believing(self, scores: Floats) -> _Fit:
        """The start from the scores."""
        bins = np.digitize(scores, self.edges)
        middle = np.array([np.median(scores[bins == b]) for b in range(len(self.posteriors))])
        means = 1 / (1 + np.exp(-middle.clip(-30, 30)))
        return replace(self, posteriors=betas(means, CONCENTRATION))

    @property
    def worth(self) -> float:
        """The likelihood, less the cost of each lean as in `Annotator.updated`."""
        leans = sum(np.log(max(p.answers, 1)) / 2 * np.count_nonzero(p.leans) for p in self.people)
        return self.likelihood - float(leans) / (1 if self.scores is None else len(self.scores))

    def expect(self, answers: Answers, scores: Floats | None) -> _Expected:
        """The E-step."""
        count, size = len(answers.rows), len(self.posteriors)
        bins = np.digitize(np.zeros((count, 2)) if scores is None else scores, self.edges)
        every = cells(*(self.posteriors[at.ravel()] for at in np.indices((size, size))))
        both = bins @ np.array([size, 1])
        overall = self.posteriors.mean(0)[None]
        logs = np.log(every.take(both, 0).clip(TINY))
        elsewhere, heard = cells(overall, overall)[0], []
        for person, rows in zip(self.people, answers.each, strict=True):
            density = np.exp(person.logs(answers.values[rows], person.leans))
            known = density @ knowing(person.knowledge).T if person.knowledge else density
            taken = person.borrowed * (known @ elsewhere)
            random = (person.guesses - person.borrowed) * person.anything(answers.values[rows])
            guess = (random + taken).clip(TINY)
            likelihood = (1 - person.guesses) * known + guess[:, None]
            heard.append(_Heard(person, density, guess, taken, likelihood))
            logs += _sums(answers.pair[rows], np.log(likelihood), count)
        top = logs.max(1, keepdims=True)
        grid = np.exp(logs - top)
        total = grid.sum(1, keepdims=True)
        grid /= total
        sure = np.zeros(len(answers))
        for k, rows in enumerate(answers.each):
            heard[k] = replace(heard[k], rest=grid.take(answers.pair[rows], 0) / heard[k].rest)
            sure[rows] = 1 - heard[k].guess * heard[k].rest.sum(1)
        mean = every @ HONEST
        variance = (every @ HONEST**2 - mean**2)[both]
        likelihood = float((np.log(total) + top).mean())
        return _Expected(grid, sure, heard, mean[both], variance, bins, likelihood)

    def climb(self, answers: Answers, *, learning: bool = True, upright: int = 0) -> _Fit:
        """Expectation maximisation; of the posteriors alone unless ``learning`` about people.

        There are no leans in the first ``upright`` steps.
        """
        fit, borrows = self, self.scores is not None or len(self.people) > 1
        for step in range(STEPS):
            state = fit.expect(answers, self.scores)
            grown = state.likelihood - fit.likelihood
            others = np.bincount(answers.pair, state.sure)[answers.pair] - state.sure > 0.5
            people = [] if learning else list(fit.people)
            for heard, rows in zip(state.heard, answers.each, strict=True) if learning else ():
                borrowed = heard.taken * heard.rest.sum(1) * borrows
                values, honest = answers.values[rows], heard.honest()
                person = heard.person.updated(values, honest, borrowed, step >= upright)
                if step % PATIENCE == 0:
                    person = replace(person, knowledge=heard.more_knowledge(others[rows]))
                people.append(person)
            size = len(fit.posteriors)
            couples = np.indices((size, size)).reshape(2, -1).T
            grid = _sums(state.bins @ np.array([size, 1]), state.grid, len(couples))
            counts = _sums(couples.ravel(), fit.of_ends(couples, grid).reshape(-1, SIZE), size)
            # Each bin counts two items more, distributed like all.
            counts += 2 * counts.sum(0) / counts.sum() + 0.05 / SIZE
            posteriors = counts / counts.sum(1, keepdims=True)
            fit = replace(
                fit, people=tuple(people), posteriors=posteriors, likelihood=state.likelihood
            )
            if step > upright and abs(grown) < GAIN:
                break
        return fit

    def of_ends(self, bins: Indices, grid: Floats) -> Floats:
        """Distributions (n, 2, SIZE) of r and of r' from those of both (n, cells).

        ``bins`` (n, 2) are those of the log-odds, on which it depends how likely each of the two
        couples of posteriors in a cell is.
        """
        left, right = self.posteriors[bins.T]
        couples = (grid / cells(left, right).clip(TINY)).take(CELL, 1)
        couples *= left[:, :, None] * right[:, None]
        return np.stack([couples.sum(2), couples.sum(1)], 1)

    def with_errors(self, answers: Answers) -> tuple[Annotator, ...]:
        """People with standard errors of guesses, leans and spreads.

        The covariance is the inverse of the sum of outer products of score vectors: derivatives of
        the log-likelihood of each pair by guesses and leans, and by the distribution of the
        posteriors, which is learnt as well and can look like a lean. At no guesses, the end of
        the range, the likelihood falls, and its slope takes the place of the curvature. A spread
        of n answers has the error of a standard deviation.
        """
        state, people = self.expect(answers, self.scores), len(self.people)
        scores = np.zeros((len(answers.rows), 3 * people + SIZE))
        for k, (person, rows) in enumerate(zip(self.people, answers.each, strict=True)):
            share, sure = np.clip(person.guesses, 1e-4, 1 - 1e-4), state.sure[rows]
            own = np.empty((len(rows), 3))
            own[:, 0] = (1 - sure) / share - sure / (1 - share)
            for side, step in enumerate(np.eye(2) / 80):  # half a step of the leans
                up, down = (
                    person.logs(answers.values[rows], np.add(person.leans, move).tolist())
                    for move in (step, -step)
                )
                own[:, 1 + side] = 40 * (state.heard[k].honest() * (up - down)).sum(1)
            scores[:, 3 * k : 3 * k + 3] = _sums(answers.pair[rows], own, len(scores))
        expected = self.posteriors[state.bins].sum(1)
        scores[:, 3 * people :] = self.of_ends(state.bins, state.grid).sum(1) - expected
        # Before any answer a share is known to ±0.3, and a lean to ±0.1.
        ridge = np.r_[np.tile(np.array([0.3, 0.1, 0.1]) ** -2, people), np.ones(SIZE)]
        inverse = np.linalg.inv(scores.T @ scores + np.diag(ridge))
        variances = np.diag(inverse)[: 3 * people].reshape(people, 3).copy()
        falls = np.minimum(scores.sum(0)[: 3 * people : 3], 0)
        variances[:, 0] = 1 / (1 / variances[:, 0] + falls**2)
        known = []
        each = zip(self.people, np.sqrt(variances).tolist(), strict=True)
        for person, (guesses, same, right) in each:
            n = max(person.answers, 1)
            share = (person.guesses * n + 0.5) / (n + 1)
            error = float(max(guesses, np.sqrt(share * (1 - share) / n)))
            few = float(np.sqrt(2 * max(n * (1 - person.guesses), 1)))
            spreads = (person.spreads[0] / few, person.spreads[1] / few)
            errors = replace(person, guesses_error=error, lean_errors=(same, right))
            known.append(replace(errors, spread_errors=spreads))
        return tuple(known)


def _sums(at: Indices, rows: Floats, count: int) -> Floats:
    """Sums (count, k) of the rows (n, k) with each index."""
    from scipy.sparse import csr_array  # slow to import

    places = csr_array((np.ones(len(at)), (at, np.arange(len(at)))), (count, len(at)))
    return np.asarray(places @ rows)


def _combined(fit: _Fit, answers: Answers, scores: Floats | None) -> tuple[Floats, Floats, Floats]:
    """One answer (P, 2) to each question, NaN where nothing was said, its weight and its noise."""
    count = len(answers.rows)
    sure, mean = np.zeros(len(answers)), np.zeros((count, 2))
    prior, variance = np.zeros((2, count, 2))
    for first in range(0, count, BLOCK):
        pairs = np.arange(first, min(first + BLOCK, count))
        own = (answers.pair >= first) & (answers.pair < first + BLOCK)
        state = fit.expect(answers.part(pairs), None if scores is None else scores[pairs])
        sure[own], mean[pairs] = state.sure, state.grid @ HONEST
        prior[pairs], variance[pairs] = state.prior, state.prior_variance.clip(1e-6)
    leans = np.stack([person.leans for person in fit.people])[answers.who]
    noise = np.stack([person.noise for person in fit.people])[answers.who]
    private = np.stack([person.own_variance for person in fit.people])[answers.who]
    low, high = np.transpose(RANGES)
    # At the end of a scale a lean leaves no trace, and the expected answer stands in.
    clipped = np.where(leans > 0, answers.values >= high, answers.values <= low) & (leans != 0)
    honest = np.where(clipped, mean[answers.pair], np.nan_to_num(answers.values) - leans)
    for rows in answers.each if scores is None else ():
        doubt = sure[rows] * (1 - sure[rows]) + 1e-12
        share = doubt.sum() / (sure[rows].sum() + 1e-9)
        if share < 0.5:
            guess = (doubt[:, None] * honest[rows]).sum(0) / doubt.sum()
            honest[rows] = (honest[rows] - share * guess) / (1 - share)
    doubted = ((1 - sure) / sure.clip(1e-9))[:, None] * variance[answers.pair]
    precision = ~np.isnan(answers.values) / (noise + private + doubted + 1e-6)
    total, summed, squares = (
        _sums(answers.pair, precision * x, count) for x in (1, honest, honest**2 - noise)
    )
    safe = np.where(total > 0, total, np.nan)
    weight = (1 - 1 / (1 + variance * total)).max(1)
    left = ((summed / safe) ** 2 - squares / safe)[:, 1]
    if scores is not None:
        summed, total = summed + prior / variance, np.where(total > 0, total + 1 / variance, 0)
    return summed / np.where(total > 0, total, np.nan), weight, left
