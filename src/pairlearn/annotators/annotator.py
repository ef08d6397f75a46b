"""One annotator: guess, lean and spread, as a likelihood of answers on a grid of posteriors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from pairlearn.annotators.grid import HARD, HONEST, outcome_chances, outcome_of
from pairlearn.columns import Floats, Indices
from pairlearn.judgements.answer_scale import RANGES, scale_of

Phrase: TypeAlias = tuple[str, dict[str, Any]]
"""A text, and the values of its names in braces."""
GRID = np.array([0.0015, 0.003])
"""Mean squared distances of honest s and c from the nearest cell of the grid."""
START = np.array([0.02, 0.06])
"""Variances of s and c to start from: about those of the honest answers themselves."""
LEANS = np.arange(-12, 13) / 40
"""Candidate leans, in steps that the grid resolves. Beyond 0.3 most answers would be clipped."""
LEAST_LEAN = 0.03
"""Least lean that is told from none: the standard deviation of the grid's own error."""
SPREADS = np.sqrt(np.geomspace(0.02, 1, 8))
"""Candidate spreads of answers on levels, as factors of the spread to start from."""
MOST_LEVELS = 25
"""Levels that are modelled one by one; finer scales are as good as continuous."""
PRIOR_ANSWERS, PRIOR_VARIANCE = 5.0, 0.01
"""Weak prior of the spread: five answers that are off by 0.1. It keeps the spread of people with
few answers from 0."""
NOTHING_ELSE = 0.999
"""Share of guesses of who gives one answer to everything."""
SAME = ("says “same” {lean} too much", "says “different” {lean} too much")
RIGHT = ("favours the right one by {lean}", "favours the left one by {lean}")
UNRELATED = 0.8
"""Share of guesses from which on the answers say next to nothing about the pairs."""


@dataclass(frozen=True)
class Annotator:
    """How one annotator answers.

    Attributes
    ----------
    name : str
        Name of the annotator; "" where the table has none.
    answers : int
        Number of answers that this was learnt from.
    guesses, guesses_error : float
        Share of answers that are unrelated to the pair, and its standard error.
    borrowed : float
        The part of that share that looks like answers to other pairs. The rest is anything on the
        scales.
    lean_same, lean_same_error, lean_right, lean_right_error : float
        What is added to similarities and to differences.
    spread_same, spread_same_error, spread_right, spread_right_error : float
        Standard deviations of similarities and differences around what the annotator would say on
        average; 0 for hard answers.
    scale : {"soft", "levels", "hard"}
        Whether answers take any value, are rounded to a few, or are yes or no.
    levels : tuple of two tuples of float
        The levels of similarities and of differences in use; empty where they take any value.

    Examples
    --------
    >>> Annotator("ann", 100, guesses=0.2, lean_right=-0.1).sentence()
    'a fifth of the answers are guesses; favours the left one by 0.10'
    """

    name: str
    answers: int = 0
    guesses: float = 0.0
    guesses_error: float = 0.0
    borrowed: float = 0.0
    lean_same: float = 0.0
    lean_same_error: float = 0.0
    lean_right: float = 0.0
    lean_right_error: float = 0.0
    spread_same: float = 0.0
    spread_same_error: float = 0.0
    spread_right: float = 0.0
    spread_right_error: float = 0.0
    scale: Literal["soft", "levels", "hard"] = "soft"
    levels: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    @classmethod
    def start(cls, name: str, values: Floats) -> Annotator:
        """A starting point: some guesses, no lean, and the scale that the answers show."""
        found = scale_of(*values.T)
        levels = tuple(
            tuple(np.unique(column[~np.isnan(column)]).tolist()) if count else ()
            for column, count in zip(values.T, found.levels, strict=True)
        )
        if found.hard or max(map(len, levels)) > MOST_LEVELS:
            levels = ((), ())
        same, right = (0.0, 0.0) if found.hard else np.sqrt(START).tolist()
        scale: Any = "hard" if found.hard else "levels" if any(levels) else "soft"
        # One answer to everything says nothing about any pair.
        constant = len(np.unique(np.nan_to_num(values, nan=9), axis=0)) == 1
        random, borrowed = (0.0, NOTHING_ELSE) if constant else (0.1, 0.02)
        return cls(
            name,
            len(values),
            guesses=random + borrowed,
            borrowed=borrowed,
            spread_same=same,
            spread_right=right,
            scale=scale,
            levels=(levels[0], levels[1]),
        )

    @property
    def informative(self) -> bool:
        """Whether the answers tell something about the pairs."""
        return self.guesses < UNRELATED

    @property
    def ideal(self) -> bool:
        """Whether there is nothing to correct."""
        return self.guesses < 0.02 and not self.lean_same and not self.lean_right

    @property
    def leans(self) -> Floats:
        """Leans of similarities and of differences."""
        return np.array([self.lean_same, self.lean_right])

    @property
    def noise(self) -> Floats:
        """Variances (2,) of similarities and differences around the honest ones, without lean.

        Rounding to levels adds a twelfth of the squared step. Hard answers vary as draws of the
        outcomes do, on average over the grid.
        """
        if self.scale == "hard":
            s, c = HONEST.T
            return np.array([(s * (1 - s)).mean(), (1 - s - c**2).mean()])
        steps = [np.diff(levels).mean() if len(levels) > 1 else 0.0 for levels in self.levels]
        return np.square([self.spread_same, self.spread_right]) + np.square(steps) / 12

    def admits(self, values: Floats) -> bool:
        """Whether answers (n, 2) are on the scale that this was learnt from."""
        return self.scale in ("soft", Annotator.start("", values).scale)

    def density(self, values: Floats) -> Floats:
        """Density (n, cells) of answers (n, 2) that are no guesses; probabilities of levels."""
        return np.exp(self._logs(values, *self.leans))

    def anything(self, values: Floats) -> Floats:
        """Density (n,) of answers at random on the scales."""
        if self.scale == "hard":
            return np.full(len(values), 1 / (len(HARD) + 1))
        sizes = [
            len(levels) or high - low
            for levels, (low, high) in zip(self.levels, RANGES, strict=True)
        ]
        return np.asarray(np.where(np.isnan(values), 1, 1 / np.array(sizes, np.float64)).prod(1))

    def slopes(self, values: Floats, honest: Floats) -> Floats:
        """Derivatives (n, 2) of the log-likelihood of each answer by the two leans.

        ``honest`` (n, cells) is the probability of each cell and that the answer is no guess.
        """
        step = LEAST_LEAN / 2
        return np.stack(
            [
                (honest * (self._logs(values, *up) - self._logs(values, *down))).sum(1) / (2 * step)
                for up, down in (
                    (self.leans + move, self.leans - move) for move in step * np.eye(2)
                )
            ],
            axis=1,
        )

    def updated(
        self, values: Floats, honest: Floats, borrowed: Floats, leaning: bool, sharp: bool
    ) -> Annotator:
        """The maximisation step.

        ``values`` (n, 2) are the answers, ``honest`` (n, cells) as in `slopes`, and ``borrowed``
        (n,) the probability that each belongs to another pair. Unless ``leaning``, leans stay,
        and unless ``sharp`` spreads. A lean costs ½ log n of the log-likelihood, as by the Bayesian
        information criterion, and ten answers more than there are keep the share of guesses from
        its ends.
        """
        if self.borrowed == NOTHING_ELSE or not len(values):
            return self
        n, guesses = len(values), float((1 - honest.sum(1)).sum())
        person = replace(
            self, guesses=(guesses + 0.5) / (n + 10), borrowed=float(borrowed.sum()) / (n + 10)
        )
        cost, leans = np.log(n) / 2, LEANS[(LEANS == 0) | (np.abs(LEANS) >= LEAST_LEAN)]
        for side, word in enumerate(("same", "right")):
            tried = leans if leaning else self.leans[side, None]
            find = person._likeliest if self.scale == "soft" else person._likeliest_level
            lean, spread = find(side, tried, cost, values, honest)
            fitted: dict[str, Any] = {f"lean_{word}": lean}
            person = replace(person, **fitted | ({f"spread_{word}": spread} if sharp else {}))
        return person

    def _likeliest(
        self, side: int, leans: Floats, cost: float, values: Floats, honest: Floats
    ) -> tuple[float, float]:
        """Lean and spread of least squares, of similarities or of differences."""
        given = ~np.isnan(values[:, side])
        answers, means = np.where(given, values[:, side], 0), self._mean(side, leans[:, None])
        total, summed = given @ honest, answers @ honest
        left = honest.sum(1) @ answers**2 + means**2 @ total - 2 * means @ summed
        best = int((-left / (2 * self._variance(side)) - cost * (leans != 0)).argmax())
        prior = PRIOR_ANSWERS * PRIOR_VARIANCE
        variance = (float(left[best]) + prior) / (float(total.sum()) + PRIOR_ANSWERS)
        return float(leans[best]), float(np.sqrt(max(variance - GRID[side], 0.0)))

    def _likeliest_level(
        self, side: int, leans: Floats, cost: float, values: Floats, honest: Floats
    ) -> tuple[float, float]:
        """Lean and spread of the greatest likelihood, of answers on levels and hard ones."""
        kept = np.nan_to_num(values, nan=np.inf)
        used, first, which = np.unique(kept, axis=0, return_index=True, return_inverse=True)
        counts = np.zeros((len(used), len(HONEST)))
        np.add.at(counts, which.ravel(), honest)
        word = ("same", "right")[side]

        def gain(lean: float, spread: float) -> float:
            changed: dict[str, Any] = {f"lean_{word}": lean, f"spread_{word}": spread}
            person = replace(self, **changed)
            logs = person._logs(values[first], *person.leans)
            return float((logs * counts).sum()) - cost * (lean != 0)

        here = (self.spread_same, self.spread_right)[side]
        lean = max(leans.tolist(), key=lambda lean: gain(lean, here))
        if self.scale == "hard":
            return lean, here
        spreads = (SPREADS * np.sqrt(START[side])).tolist()
        return lean, max(spreads, key=lambda spread: gain(lean, spread))

    def _mean(self, side: int, lean: Any) -> Floats:
        """Honest answers of the grid with a lean, clipped to the scale."""
        return np.asarray(np.clip(HONEST[:, side] + lean, *RANGES[side]))

    def _variance(self, side: int) -> float:
        return float(GRID[side]) + (self.spread_same, self.spread_right)[side] ** 2

    def _logs(self, values: Floats, *leans: float) -> Floats:
        """Log-densities (n, cells) of answers that are no guesses, with these leans."""
        if self.scale == "hard":
            chances = outcome_chances(self._mean(0, leans[0]), self._mean(1, leans[1]))
            return np.asarray(np.log(chances)[:, outcome_of(values)].T)
        logs = np.zeros((len(values), len(HONEST)))
        for side, lean in enumerate(leans):
            given = ~np.isnan(values[:, side])
            variance = self._variance(side)
            if self.levels[side]:
                table = self._level_logs(side, lean)
                logs += given[:, None] * table[:, self._level(side, values[:, side])].T
                continue
            answers, means = np.where(given, values[:, side], 0), self._mean(side, lean)
            # Squared distances, expanded so that one matrix product computes them.
            fixed = answers**2 / variance + np.log(2 * np.pi * variance)
            terms = np.stack([given / variance, answers / variance, given * fixed], 1)
            logs += terms @ np.stack([-(means**2) / 2, means, np.full(len(HONEST), -0.5)])
        return logs

    def _level(self, side: int, values: Floats) -> Indices:
        """Index of the nearest level of each answer."""
        edges = np.array(self.levels[side])
        return np.digitize(np.nan_to_num(values), (edges[1:] + edges[:-1]) / 2)

    def _level_logs(self, side: int, lean: float) -> Floats:
        """Log-probabilities (cells, levels): of values between the middles of levels."""
        from scipy.special import ndtr  # slow to import

        levels = np.array(self.levels[side])
        gaps = (levels[1:] + levels[:-1]) / 2 - self._mean(side, lean)[:, None]
        below = ndtr(gaps / np.sqrt(self._variance(side)))
        return np.asarray(np.log(np.diff(below, prepend=0.0, append=1.0).clip(1e-9)))

    def phrases(self) -> list[Phrase]:
        """Parts of the sentence, as keys of tables of translations.

        Shares and leans are left out where their interval includes 0, and a share of guesses that
        is known to no better than ±½ is not told.
        """
        if self.borrowed == NOTHING_ELSE:
            return [("gives one answer to everything", {})]
        if not self.informative:
            return [("answers are hardly related to the pairs", {})]
        low, high = np.clip(self.guesses + 1.96 * self.guesses_error * np.array([-1, 1]), 0, 1)
        phrases: list[Phrase] = []
        if high - low > 0.5:
            phrases.append(("too little to tell how many of the answers are guesses", {}))
        elif low >= 0.01:
            text = "{share} of the answers are guesses"
            if self.guesses_error:
                text = "{share} of the answers are guesses ({low:.0%} to {high:.0%})"
            shares = {"share": _in_words(self.guesses), "low": float(low), "high": float(high)}
            phrases.append((text, shares))
        for lean, error, texts in (
            (self.lean_same, self.lean_same_error, SAME),
            (self.lean_right, self.lean_right_error, RIGHT),
        ):
            if abs(lean) > 1.96 * error:
                amount = f"{abs(lean):.2f}" + f" ± {1.96 * error:.2f}" * bool(error)
                phrases.append((texts[lean < 0], {"lean": amount}))
        spread = float(np.sqrt((self.spread_same**2 + self.spread_right**2 / 4) / 2))
        if spread >= 0.05:
            phrases.append(("answers vary by {spread:.2f}", {"spread": spread}))
        return phrases or [("nothing to correct", {})]

    def sentence(self) -> str:
        """How the annotator answers, in words."""
        return in_words(self.phrases())


def in_words(phrases: list[Phrase]) -> str:
    """A sentence from its parts."""
    return "; ".join(text.format(**values) for text, values in phrases)


def _in_words(share: float) -> str:
    for value, word in ((0.2, "a fifth"), (0.25, "a quarter"), (1 / 3, "a third"), (0.5, "half")):
        if abs(share - value) < 0.02:
            return word
    return f"{share:.0%}"
