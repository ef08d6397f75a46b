"""How each annotator answers, learnt from the answers and the features, without labels.

Behind every pair stand two true posteriors (r, r'), and with them the honest answer
s = rr' + (1 − r)(1 − r'), c = r' − r. Annotator j

    bends it     by a lean to "same" or "different", to left or right, or to the middle,
    blurs it     by a spread of their own; hard answers are drawn from the outcomes instead,
    or guesses   anything on the scales, or an answer that belongs to another pair.

Honest answers fill a sixth of the (s, c) plane, so that a lean shows as answers outside of it
and a guess as one far away; several answers to a pair show who goes with the others; and
log-odds of a model that did not see the pair tell what an answer should be about. (r, r') is
summed over a grid. Its distribution, given the log-odds, and the manners of all annotators are
found by expectation maximisation. Where the data are silent, nothing is bent.

What cannot be learnt in this way is a confidence that is wrong in everybody: log-odds of all
answers times k are the honest answers of another world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairlearn.judgements import Judgements
from pairlearn.labels import PairLabels

__all__ = ["Answers", "Link", "Manner", "fair", "learn_link"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Form = Literal["pull", "shift", "dull"]

_LOW = [0.003, 0.02, 0.05, 0.1, 0.17, 0.25, 0.33, 0.42]
POSTERIORS = np.array([*_LOW, 0.5, *(1 - r for r in reversed(_LOW))])
SIZE = len(POSTERIORS)
LEFT, RIGHT = (grid.ravel() for grid in np.indices((SIZE, SIZE)))
HONEST = np.stack(
    [
        POSTERIORS[LEFT] * POSTERIORS[RIGHT] + (1 - POSTERIORS[LEFT]) * (1 - POSTERIORS[RIGHT]),
        POSTERIORS[RIGHT] - POSTERIORS[LEFT],
    ],
    axis=1,
)
"""Honest answers (s, c) to all couples of posteriors."""
RANGES = ((0.0, 1.0), (-1.0, 1.0))
AMOUNTS = np.linspace(-1, 1, 81)
STEP = 0.025
LEAST_LEAN = 0.03
"""Less is not told from none: the grid is no finer."""
LEAST_DULLNESS = 0.5
COST = 3.0
"""Log-likelihood that a lean must gain to be believed."""
FLOOR = np.array([0.0015, 0.003])
"""Variances of s and c that are blurred by the grid alone."""
HARD = np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0]])
CONCENTRATION = 4.0
"""Of the posteriors given the log-odds, which one person's hard answers do not tell."""
BINS = 10
PAIRS = 1000
"""Pairs that manners are learnt from, of a larger table."""
TRIAL = 300
"""Pairs on which starts are compared."""


def bend(form: Form, amount: Any, side: int, honest: Any) -> Floats:
    """What is made of honest similarities (side 0) or differences (side 1).

    "pull" draws them to an end of the scale, "shift" adds and stops at the ends, and "dull"
    draws them to the middle.
    """
    low, high = RANGES[side]
    if form == "shift":
        return np.asarray(np.clip(honest + amount, low, high))
    to = (low + high) / 2 if form == "dull" else np.where(np.asarray(amount) > 0, high, low)
    share = np.abs(amount)
    return np.asarray((1 - share) * honest + share * to)


BENT = {
    (side, form): bend(form, AMOUNTS[:, None], side, HONEST[:, side])
    for side in (0, 1)
    for form in ("pull", "shift", "dull")
}


@dataclass(frozen=True)
class Manner:
    """How somebody answers.

    Attributes
    ----------
    name : str
        Who; "" where the table does not say.
    answers : int
        Answers that this was learnt from.
    guesses, guesses_error : float
        Share of answers that are unrelated to the pair, and its standard error.
    lean_same, lean_right : float
        What the lean adds, on average over the pairs, to similarities and to differences.
    lean_error : float
        Standard error of the leans.
    spread : float
        Standard deviation, on the scale of s, of what is left; of hard answers 0.
    hard : bool
        Whether answers are yes or no.
    """

    name: str
    answers: int = 0
    borrowed: float = 0.0
    random: float = 0.1
    same_form: str = "pull"
    same_amount: float = 0.0
    right_form: str = "pull"
    right_amount: float = 0.0
    same_variance: float = 0.02
    right_variance: float = 0.06
    hard: bool = False
    same_floor: float = float(FLOOR[0])
    right_floor: float = float(FLOOR[1])
    lean_same: float = 0.0
    lean_right: float = 0.0

    @property
    def guesses(self) -> float:
        """Share of answers that are unrelated to the pair."""
        return self.random + self.borrowed

    @property
    def guesses_error(self) -> float:
        """Its standard error."""
        share = (self.guesses * self.answers + 0.5) / (self.answers + 1)
        return float(np.sqrt(share * (1 - share) / max(self.answers, 1)))

    @property
    def lean_error(self) -> float:
        """Standard error of the leans."""
        answers = max(self.answers * (1 - self.guesses), 1)
        variance = 0.25 if self.hard else max(self.same_variance, self.right_variance / 4)
        return float(np.sqrt(variance / answers))

    @property
    def spread(self) -> float:
        """Standard deviation of what is left, on the scale of s."""
        blurred = [
            max(self.same_variance - self.same_floor, 0),
            max(self.right_variance - self.right_floor, 0) / 4,
        ]
        return 0.0 if self.hard else float(np.sqrt(np.mean(blurred)))

    @property
    def constant(self) -> bool:
        """Whether nothing of the honest answer is left in what they say."""
        return (
            abs(self.same_amount) > 0.95
            and abs(self.right_amount) > 0.95
            and "shift" not in (self.same_form, self.right_form)
        )

    @property
    def useful(self) -> bool:
        """Whether there is something to learn from the answers."""
        return not self.constant and self.guesses < 0.8

    @property
    def honest(self) -> bool:
        """Whether nothing was found to mend."""
        return self.guesses < 0.02 and not self.same_amount and not self.right_amount

    def words(self) -> str:
        """The manner in a sentence.

        Examples
        --------
        >>> Manner("ann", 200, random=0.5, hard=True).words()
        'half of the answers are guesses'
        >>> Manner("bob", 200, random=0.0, same_amount=0.15, lean_same=0.12, hard=True).words()
        'says “same” 0.12 too much'
        """
        if self.constant:
            return "gives one answer to everything"
        if self.guesses >= 0.8:
            return "answers are hardly related to the pairs"
        found = []
        if self.guesses >= 0.02:
            found.append(f"{_share(self.guesses)} of the answers are guesses")
        for lean, more, less in (
            (self.lean_same, "says “same”", "says “different”"),
            (self.lean_right, "favours the right one by", "favours the left one by"),
        ):
            if abs(lean) >= LEAST_LEAN / 2:
                say = more if lean > 0 else less
                found.append(f"{say} {abs(lean):.2f}{' too much' if 'says' in say else ''}")
        if self.spread >= 0.05:
            found.append(f"answers vary by {self.spread:.2f}")
        return "; ".join(found) or "nothing to mend"

    def mean(self, side: int) -> Floats:
        """What is said on average to each couple of posteriors of the grid."""
        form, amount = self.bends[side]
        return bend(form, amount, side, HONEST[:, side])

    @property
    def bends(self) -> tuple[tuple[Any, float], tuple[Any, float]]:
        """Form and amount for similarities and for differences."""
        return (self.same_form, self.same_amount), (self.right_form, self.right_amount)

    @property
    def variances(self) -> Floats:
        """Of similarities and differences, to which the grid adds."""
        return np.array([self.same_variance, self.right_variance])

    @property
    def floors(self) -> Floats:
        """Variances that come from the grid and from the steps of the scale."""
        return np.array([self.same_floor, self.right_floor])

    def density(self, values: Floats) -> Floats:
        """Density (n, grid) of honest answers."""
        if self.hard:
            return _chances(self.mean(0), self.mean(1))[:, _outcome(values)].T
        total = np.zeros((len(values), len(HONEST)))
        scale = np.ones(len(values))
        for side in (0, 1):
            given = ~np.isnan(values[:, side])
            off = np.where(given, values[:, side], 0)[:, None] - self.mean(side)
            total += given[:, None] * off**2 / self.variances[side]
            scale *= np.where(given, 1 / np.sqrt(2 * np.pi * self.variances[side]), 1)
        return np.asarray(np.exp(-total / 2) * scale[:, None])

    def anything(self, values: Floats) -> Floats:
        """Density (n,) of answers at random on the scales."""
        if self.hard:
            return np.full(len(values), 0.25)
        # Rounded answers stand for a range each, also beyond the ends of the scale.
        steps = np.where(self.floors > FLOOR, np.sqrt(8 * self.floors), 0)
        chance = [1 / (high - low + step) for (low, high), step in zip(RANGES, steps, strict=True)]
        return np.asarray(np.where(np.isnan(values), 1, chance).prod(1))

    def inverse(self, values: Floats, expected: Floats) -> Floats:
        """Answers (n, 2) without the lean; those at the end of a scale become what is expected."""
        mended = values.copy()
        for side, (form, amount) in enumerate(self.bends):
            low, high = RANGES[side]
            if form == "shift" and amount:
                mended[:, side] -= amount
                at_end = values[:, side] >= high if amount > 0 else values[:, side] <= low
                mended[at_end, side] = expected[at_end, side]
            elif amount:
                to = (low + high) / 2 if form == "dull" else high if amount > 0 else low
                kept = max(1 - abs(amount), 1e-3)
                mended[:, side] = (values[:, side] - abs(amount) * to) / kept
        return mended

    def noise(self) -> Floats:
        """Variances of mended answers; answers that are only blurred by the grid have none."""
        kept = [
            1.0 if form == "shift" else max(1 - abs(amount), 1e-3) for form, amount in self.bends
        ]
        clear = self.variances < 1.5 * self.floors
        return np.where(clear, 1e-6, self.variances) / np.square(kept)

    @classmethod
    def start(cls, name: str, values: Floats) -> Manner:
        """Where to begin: no lean, and the steps of the scale seen in the answers."""
        floors = FLOOR.copy()
        for side in (0, 1):
            levels = np.unique(values[~np.isnan(values[:, side]), side])
            if 1 < len(levels) <= 11:
                floors[side] = max(floors[side], np.diff(levels).min() ** 2 / 8)
        varied = len(np.unique(np.nan_to_num(values, nan=9), axis=0)) > 1
        return cls(
            name,
            answers=len(values),
            hard=varied and is_hard(values),
            same_floor=float(floors[0]),
            right_floor=float(floors[1]),
            same_variance=float(max(0.02, floors[0])),
            right_variance=float(max(0.06, floors[1])),
        )

    def updated(self, values: Floats, honest: Floats, typical: Floats, borrows: bool) -> Manner:
        """The manner that fits best, given how likely each answer is honest and about what.

        Parameters
        ----------
        values : array of shape (n, 2)
            The answers.
        honest : array of shape (n, grid)
            How likely each is an honest answer about each couple of posteriors.
        typical : array of shape (n,)
            Share of the rest that belongs to answers borrowed from other pairs.
        borrows : bool
            Whether such answers can be told at all.
        """
        n, guessed = len(values), 1 - honest.sum(1)
        borrowed = float(guessed @ typical) if borrows else 0.0
        found = replace(
            self,
            random=(float(guessed.sum()) - borrowed + 0.5) / (n + 10),
            borrowed=borrowed / (n + 10),
        )
        return found._bent_hard(values, honest) if self.hard else found._bent(values, honest)

    def _bent(self, values: Floats, honest: Floats) -> Manner:
        fitted: dict[str, Any] = {}
        for side, word in enumerate(("same", "right")):
            given = ~np.isnan(values[:, side])
            said, weight = values[given, side], honest[given]
            total, first = weight.sum(0), weight.T @ said
            squares = float(weight.sum(1) @ said**2)
            best: tuple[float, Any, float, float] = (-np.inf, "pull", 0.0, 0.0)
            for form in ("pull", "shift", "dull"):
                mean = BENT[side, form]
                left = squares - 2 * mean @ first + mean**2 @ total
                gain = -left / (2 * self.variances[side]) - _cost(form)
                at = int(gain.argmax())
                if gain[at] > best[0] + 1e-9:
                    best = (float(gain[at]), form, float(AMOUNTS[at]), float(left[at]))
            _, fitted[f"{word}_form"], fitted[f"{word}_amount"], left_over = best
            variance = (left_over + 0.05) / (float(total.sum()) + 5)
            fitted[f"{word}_variance"] = max(variance, float(self.floors[side]))
            bent = bend(fitted[f"{word}_form"], fitted[f"{word}_amount"], side, HONEST[:, side])
            fitted[f"lean_{word}"] = _mean_gap(bent - HONEST[:, side], total)
        return replace(self, **fitted)

    def _bent_hard(self, values: Floats, honest: Floats) -> Manner:
        outcome = _outcome(values)
        counts = np.stack([honest[outcome == k].sum(0) for k in range(len(HARD) + 1)], 1)
        found = self
        for side, word in enumerate(("same", "right")):
            other = found.mean(1 - side)[None]
            means = (BENT[side, "pull"], other) if side == 0 else (other, BENT[side, "pull"])
            gain = (np.log(_chances(*means)) * counts).sum((-1, -2)) - _cost("pull")
            amount = float(AMOUNTS[int(gain.argmax())])
            lean = bend("pull", amount, side, HONEST[:, side]) - HONEST[:, side]
            fitted: dict[str, Any] = {f"{word}_amount": amount}
            fitted[f"lean_{word}"] = _mean_gap(lean, counts.sum(1))
            found = replace(found, **fitted)
        return found


def is_hard(values: Floats) -> bool:
    """Whether all answers are yes or no: s of 0 or 1, and c of −1, 0 or 1."""
    s, c = values[:, 0], values[:, 1]
    return bool(
        (np.isnan(s) | np.isin(s, (0, 1))).all() and (np.isnan(c) | np.isin(c, (-1, 0, 1))).all()
    )


def _cost(form: str) -> Floats:
    # A little dullness of both answers is a want of confidence, which answers do not tell.
    least = LEAST_DULLNESS if form == "dull" else LEAST_LEAN
    small = (np.abs(AMOUNTS) < least) & (np.abs(AMOUNTS) > 1e-9)
    return np.where(small, np.inf, COST * (np.abs(AMOUNTS) > 1e-9))


def _mean_gap(gap: Floats, weight: Floats) -> float:
    return float(gap @ weight / max(weight.sum(), 1e-9))


def _share(value: float) -> str:
    for share, word in ((0.2, "a fifth"), (0.25, "a quarter"), (1 / 3, "a third"), (0.5, "half")):
        if abs(value - share) < 0.02:
            return word
    return f"{value:.0%}"


def _outcome(values: Floats) -> Indices:
    """Which of the hard answers each is; one after the last for those that no outcome gives."""
    s, c = values[:, 0], values[:, 1]
    # One answer alone stands for the outcome that it leaves likeliest.
    s = np.where(np.isnan(s), np.where(c == 0, 1, 0), s)
    c = np.where(np.isnan(c), 0, c)
    found = np.full(len(values), len(HARD), np.int64)
    for number, (same, right) in enumerate(HARD):
        found[(s == same) & (c == right)] = number
    return found


def _chances(same: Floats, right: Floats) -> Floats:
    """Chances (..., 4) of the three outcomes, and of an answer that is none."""
    parts = np.broadcast_arrays((1 - same - right) / 2, (1 - same + right) / 2, same)
    chances = np.stack([*parts, np.full(parts[0].shape, 1e-6)], -1).clip(1e-6)
    return np.asarray(chances / chances.sum(-1, keepdims=True))


@dataclass(frozen=True)
class Answers:
    """Similarities and differences, with who gave them and on which pair.

    Attributes
    ----------
    pair : array of shape (n,)
        Number of the pair, whichever way round it was shown.
    who : array of shape (n,)
        Place in `names`.
    values : array of shape (n, 2)
        Similarity and difference, NaN where not given, the difference for the pair as it
        stands in `ends`.
    names : tuple of str
        Of the annotators; one "" where a table has none.
    ends : array of shape (P, 2)
        The items of each pair.
    weight : array of shape (P,)
        Mean weight of the rows of each pair.
    """

    pair: Indices
    who: Indices
    values: Floats
    names: tuple[str, ...]
    ends: Indices
    weight: Floats

    @classmethod
    def of(cls, judged: Judgements) -> Answers:
        """Those of a table; statements of other kinds are left out.

        Examples
        --------
        >>> table = Judgements.from_pairs([[0, 1], [1, 0]], [[0.9, 0.1], [0.8, -0.1]])
        >>> Answers.of(table).values.tolist()
        [[0.9, 0.1], [0.8, 0.1]]
        """
        rows = judged[judged.has("similarity") | judged.has("difference")]
        values = np.stack(
            [
                np.where(rows.has("similarity"), rows.u, np.nan),
                np.where(rows.has("difference"), rows.v, np.nan),
            ],
            axis=1,
        )
        turned = rows.ends[:, 0] > rows.ends[:, 1]
        values[turned, 1] *= -1
        ends, pair = np.unique(np.sort(rows.ends, axis=1), axis=0, return_inverse=True)
        annotator = np.full(len(rows), "") if rows.annotator is None else rows.annotator
        names, who = np.unique(annotator, return_inverse=True)
        pair = pair.ravel().astype(np.int64)
        count = np.bincount(pair, minlength=len(ends))
        weight = np.bincount(pair, rows.weight, minlength=len(ends)) / np.maximum(count, 1)
        return cls(pair, who.ravel(), values, tuple(map(str, names)), ends, weight)

    def __len__(self) -> int:
        return len(self.pair)

    def part(self, pairs: Indices) -> Answers:
        """The answers on some of the pairs."""
        place = np.full(len(self.ends), -1)
        place[pairs] = np.arange(len(pairs))
        rows = place[self.pair] >= 0
        return replace(
            self,
            pair=place[self.pair[rows]],
            who=self.who[rows],
            values=self.values[rows],
            ends=self.ends[pairs],
            weight=self.weight[pairs],
        )

    def by(self, annotator: int) -> Indices:
        """Rows of one annotator."""
        return np.flatnonzero(self.who == annotator)

    def off_plane(self) -> Floats:
        """Distance of each answer from what two posteriors can give, less what rounding does."""
        whole = ~np.isnan(self.values).any(1)
        distance = np.zeros(len(self))
        if whole.any():
            said = PairLabels(*self.values[whole].T, noisy=True)
            nearest = np.asarray(said.project().to_array())
            distance[whole] = np.abs(nearest - self.values[whole]).max(1)
        for number, name in enumerate(self.names):
            rows = self.by(number)
            floors = Manner.start(name, self.values[rows]).floors
            step = np.sqrt(8 * floors.max()) if (floors > FLOOR).any() else 0.02
            distance[rows] = np.maximum(distance[rows] - step, 0)
        return distance

    def speak(self) -> str | None:
        """Why the annotators should not be taken for one ideal voice, if so.

        Answers beyond the ends of the scales are nobody's: noise was added to them, which
        training corrects for where it is right on average.
        """
        beyond = [
            (self.values[:, side] < low) | (self.values[:, side] > high)
            for side, (low, high) in enumerate(RANGES)
        ]
        if np.logical_or(*beyond).mean() > 0.01:
            return None
        counts = np.bincount(self.who, minlength=len(self.names))
        if (counts >= 10).sum() > 1:
            return f"{len(self.names)} annotators"
        off = float((self.off_plane() > 0).mean()) if len(self) else 0.0
        if off > 0.02 and len(self) >= 20:
            return f"{off:.0%} of the answers are such that no two posteriors give them"
        return None


@dataclass(frozen=True)
class Link:
    """The manners of all annotators, and what follows for the pairs that they judged.

    Attributes
    ----------
    manners : tuple of Manner
        In the order of `Answers.names`.
    posteriors : array of shape (bins, grid)
        Distribution of true posteriors given the log-odds of an item.
    edges : array of shape (bins − 1,)
        Between the bins of log-odds; none where there were no log-odds.
    fit : float
        Log-likelihood of a pair, on average.
    """

    manners: tuple[Manner, ...]
    posteriors: Floats
    edges: Floats
    fit: float = -np.inf

    def heard(self, answers: Answers, log_odds: Floats | None = None) -> tuple[Floats, Floats]:
        """What all that was said about a pair comes to, (P, 2), and how much that is worth.

        Mended answers count by their precision, and by how likely they are no guess, and what
        the log-odds lead one to expect counts as one more voice. The worth of a pair, (P,), is
        the share of the voices other than that.
        """
        state = _expect(self, answers, log_odds)
        spread = state.prior_variance.clip(1e-6)
        numerator, total = state.prior / spread, 1 / spread
        for number, manner in enumerate(self.manners):
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
        others = judged[~(judged.has("similarity") | judged.has("difference"))]
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


def _expect(link: Link, answers: Answers, log_odds: Floats | None) -> _State:
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
        density = manner.density(answers.values[rows])
        borrowed = manner.borrowed * (density @ anywhere)
        guess = manner.random * manner.anything(answers.values[rows]) + borrowed
        typical[rows] = borrowed / guess.clip(1e-300)
        density *= 1 - manner.guesses
        np.add.at(logs, answers.pair[rows], np.log(density + guess[:, None]))
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
        density *= grid[answers.pair[rows]] / (density + guesses[number][:, None])
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
        if manner.name in known
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
    start: Sequence[Manner] | None = None,
    seed: int = 0,
    iterations: int = 40,
) -> Link:
    """Learn the manner of every annotator.

    Parameters
    ----------
    answers : Answers
        What was said.
    log_odds : array of shape (P, 2), optional
        Of the items of each pair, by a model that was not trained on the pair.
    start : sequence of Manner, optional
        Where to begin, as learnt before; otherwise everybody in turn is believed at first,
        and the start that comes to explain the answers best goes on.
    seed : int
        Of the pairs that are looked at, of a large table.

    Examples
    --------
    An annotator who says "same" by 0.15 too much:

    >>> rng = np.random.default_rng(0)
    >>> told = PairLabels.from_posteriors(*rng.beta(0.4, 0.4, size=(2, 400)))
    >>> values = np.stack([(told.similarity + 0.15).clip(0, 1), told.difference], 1)
    >>> table = Judgements.from_pairs(np.arange(800).reshape(-1, 2), values)
    >>> link = learn_link(Answers.of(table))
    >>> manner, = link.manners
    >>> manner.same_form, round(manner.same_amount, 2), round(manner.guesses, 2)
    ('shift', 0.15, 0.0)
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(answers.ends))
    scores = None if log_odds is None else np.asarray(log_odds, np.float64)

    def some(count: int) -> tuple[Answers, Floats | None]:
        chosen = np.sort(order[:count])
        return answers.part(chosen), None if scores is None else scores[chosen]

    small, rest = some(TRIAL), some(PAIRS)
    begins = [tuple(start)] if start is not None else _starts(answers)
    trials = [_climb(_begin(manners, scores), *small, iterations // 3) for manners in begins]
    best = _polished(max(trials, key=lambda link: link.fit), *small, iterations // 4)
    return _climb(best, *rest, iterations)


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


def _polished(link: Link, answers: Answers, scores: Floats | None, iterations: int) -> Link:
    """With leans of other forms and sizes where they explain more: small steps stop early."""

    def tried(number: int, word: str, form: str, amount: float) -> Link:
        changed: dict[str, Any] = {f"{word}_form": form, f"{word}_amount": amount}
        other = replace(link.manners[number], **changed)
        manners = (*link.manners[:number], other, *link.manners[number + 1 :])
        return _climb(replace(link, manners=manners), answers, scores, iterations)

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
        state = _expect(link, answers, scores)
        done = abs(state.fit - link.fit) < 1e-4
        link = _improve(link, answers, scores, state, known)
        if done:
            break
    return link


CLOSE = 0.005
"""Variances of answers that are much below this count alike when something is measured."""


def fair(manners: Sequence[Manner], said: Judgements) -> Judgements:
    """Judgements to measure with: right on average where annotators have these manners.

    Leans are taken back. Guesses, as far as the answers themselves show them, count little,
    and what they add to the others on average is taken off. Those who have nothing to say
    are left out. Nothing here depends on a classifier, whose accuracy is to be measured. The
    manner of annotators who are not known is learnt from the table.

    Parameters
    ----------
    manners : sequence of Manner
        As learnt from other pairs; none leaves judgements as they are.
    said : Judgements
        Rows without a similarity or a difference are left out.

    Examples
    --------
    >>> said = Judgements.from_pairs([[0, 1], [2, 3]], [[0.7, 0.3], [0.6, 0.5]])
    >>> fair([Manner("", random=0.0, right_form="shift", right_amount=0.2)], said).v.round(2)
    array([0.1, 0.3])
    """
    if not manners:
        return said
    said = said[said.has("similarity") | said.has("difference")]
    answers = Answers.of(said)
    by_name = {one.name: one for one in manners}
    begin = tuple(
        by_name.get(name) or Manner.start(name, answers.values[answers.by(number)])
        for number, name in enumerate(answers.names)
    )
    link = Link(begin, np.full((1, SIZE), 1 / SIZE), np.empty(0))
    some = answers.part(np.arange(min(PAIRS, len(answers.ends))))
    link = _climb(link, some, None, 40, frozenset(by_name))
    state = _expect(link, answers, None)
    values, weight = answers.values.copy(), np.zeros(len(answers))
    least = min(float(one.noise().mean()) for one in link.manners)
    for number, manner in enumerate(link.manners):
        rows = answers.by(number)
        if not manner.useful:
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
    turned = said.ends[:, 0] > said.ends[:, 1]
    values[turned, 1] *= -1
    kept = weight > 0
    return replace(
        said, values=np.where(np.isnan(values), said.values, values), weight=said.weight * weight
    )[kept if kept.any() else slice(None)]
