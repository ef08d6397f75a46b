"""One annotator: guess, lean and spread, as a likelihood of answers on a grid of posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from pairlearn.annotators.grid import HONEST, knowing, outcome_chances, outcome_of
from pairlearn.columns import Floats, Indices, Mask
from pairlearn.judgements.answer_scale import RANGES, scale_of

#: A text, and the values of its names in braces.
Phrase: TypeAlias = tuple[str, dict[str, Any]]
#: A number for similarities and one for differences.
Two: TypeAlias = tuple[float, float]
#: Mean squared distances of honest s and c from the nearest cell of the grid.
GRID = (0.0015, 0.003)
#: Levels that answers of any value are rounded to, in half the steps that the grid resolves.
STEPS = (tuple(np.linspace(0, 1, 51).tolist()), tuple(np.linspace(-1, 1, 51).tolist()))
#: Spreads of s and c to start from: about those of the honest answers themselves.
START = (0.14, 0.24)
#: Candidate leans, in steps that the grid resolves: its own error, a standard deviation of 0.03,
#: hides smaller ones than 0.05, and beyond 0.3 most answers would be clipped.
LEANS = np.r_[-12:-1, 0, 2:13] / 40
#: Candidate spreads, from none to that of answers which say nothing; a third apart, which is the
#: error of a spread of ten answers.
SPREADS = np.r_[0, np.geomspace(0.03, 0.5, 11)]
GUESSES = "{share:.0%} of the answers are guesses ({low:.0%} to {high:.0%})"
SAME = ("leans to “same” by {lean}", "leans to “different” by {lean}")
RIGHT = ("favours the right item by {lean}", "favours the left item by {lean}")
ALONE = "is sure about {share:.0%} of what the others leave open"
#: Guesses of an annotator who gives one answer to everything; 1 would leave no weight at all.
NOTHING_ELSE = 0.999
#: Share of guesses, and lean, that are reported if they are significant: none is in 300 honest
#: crowds of `bench/speed/annotators.py --honest`.
MANY_GUESSES, LEAN = 0.15, 0.05
#: Share of guesses from which on the answers say next to nothing about the pairs: a precision of
#: 1/16 of that of honest ones (`Annotators.correct`).
UNRELATED = 0.8


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
    leans, lean_errors : tuple of float
        What is added to similarities and to differences.
    spreads, spread_errors : tuple of float
        Standard deviations of similarities and of differences around what the annotator would say
        on average; 0 for hard answers.
    knowledge : float
        Share of what the others leave open that the annotator knows, or believes to know.
    scale : {"soft", "levels", "hard"}
        Whether answers take any value, are rounded to a few, or are yes or no.
    levels : tuple of two tuples of float
        The levels of similarities and of differences in use; empty where they take any value.

    Examples
    --------
    >>> Annotator("ann", 100, leans=(0.0, -0.1), lean_errors=(0.01, 0.01)).sentence()
    'favours the left item by 0.10 ± 0.02'
    """

    name: str
    answers: int = 0
    guesses: float = 0.0
    guesses_error: float = 0.0
    borrowed: float = 0.0
    leans: Two = (0.0, 0.0)
    lean_errors: Two = (0.0, 0.0)
    spreads: Two = (0.0, 0.0)
    spread_errors: Two = (0.0, 0.0)
    knowledge: float = 0.0
    scale: Literal["soft", "levels", "hard"] = "soft"
    levels: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    @classmethod
    def start(cls, name: str, values: Floats) -> Annotator:
        """A starting point: some guesses, no lean, and the scale that the answers show."""
        found = scale_of(*values.T)
        same, right = (
            tuple(np.unique(column[~np.isnan(column)]).tolist()) if count and not found.hard else ()
            for column, count in zip(values.T, found.levels, strict=True)
        )
        # One answer to everything says nothing about any pair: all of them belong to others.
        constant = len(np.unique(np.nan_to_num(values, nan=9), axis=0)) == 1
        return cls(
            name,
            len(values),
            guesses=NOTHING_ELSE if constant else 0.12,
            borrowed=NOTHING_ELSE if constant else 0.02,
            spreads=(0.0, 0.0) if found.hard else START,
            scale="hard" if found.hard else "levels" if same or right else "soft",
            levels=(same, right),
        )

    @property
    def constant(self) -> bool:
        """Whether all answers are the same."""
        return self.borrowed == NOTHING_ELSE

    @property
    def informative(self) -> bool:
        """Whether the answers tell something about the pairs."""
        return self.guesses < UNRELATED

    @property
    def outlying(self) -> bool:
        """Whether surely many answers are guesses, by three standard errors.

        With two, both of two people who do not agree would be named, of whom one may be careful.
        """
        return self.guesses - 3 * self.guesses_error > MANY_GUESSES

    @property
    def leaning(self) -> bool:
        """Whether answers that tell something surely lean."""
        clear = np.abs(self.leans) > LEAN + 2 * np.array(self.lean_errors)
        return self.informative and bool(clear.any())

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
        return np.square(self.spreads) + np.square(steps) / 12

    @property
    def own_variance(self) -> Floats:
        """Variances (2,) of similarities and differences by private knowledge."""
        if not self.knowledge:
            return np.zeros(2)
        chances = knowing(self.knowledge)
        return np.asarray((chances @ HONEST**2 - (chances @ HONEST) ** 2).mean(0))

    def anything(self, values: Floats) -> Floats:
        """Probabilities (n,) of answers at random on the scales."""
        if self.scale == "hard":
            return np.full(len(values), 1 / 4)
        sizes = np.array([len(self._levels(side)) for side in (0, 1)])
        return np.asarray(np.where(np.isnan(values), 1, 1 / sizes).prod(1))

    def logs(self, values: Floats, leans: Sequence[float]) -> Floats:
        """Log-probabilities (n, cells) of answers (n, 2) that are no guesses, with these leans."""
        logs = np.zeros((len(values), len(HONEST)))
        for side in (0,) if self.scale == "hard" else (0, 1):
            code, given = self._code(side, values)
            logs += given[:, None] * self._table(side, leans, self.spreads[side])[code]
        return logs

    def updated(self, values: Floats, honest: Floats, borrowed: Floats, leaning: bool) -> Annotator:
        """The maximisation step.

        ``values`` (n, 2) are the answers, ``honest`` (n, cells) is the probability of each cell and
        that the answer is no guess, and ``borrowed`` (n,) that it belongs to another pair. Unless
        ``leaning``, leans stay. A lean costs ½ log n of the
        log-likelihood, as by the Bayesian information criterion, and ten answers more than there
        are keep the share of guesses from its ends.
        """
        if self.constant or not len(values):
            return self
        guesses, taken = float((1 - honest.sum(1)).sum()) + 0.5, float(borrowed.sum())
        count = len(values) + 10
        person = replace(self, guesses=guesses / count, borrowed=taken / count)
        return person._fitted(0, values, honest, leaning)._fitted(1, values, honest, leaning)

    def _fitted(self, side: int, values: Floats, honest: Floats, leaning: bool) -> Annotator:
        """The same annotator with the likeliest lean and spread of one of the two answers."""
        leans, spreads = list(self.leans), list(self.spreads)
        code, given = self._code(side, values)
        counts = np.eye(code.max() + 1)[code].T @ (given[:, None] * honest)

        def gain(lean: float, spread: float) -> float:
            leans[side] = lean
            table = self._table(side, leans, spread)[: len(counts)]
            return float(np.vdot(table, counts) - np.log(len(values)) / 2 * (lean != 0))

        lean = leans[side]
        if leaning:
            lean = max(LEANS.tolist(), key=lambda lean: gain(lean, spreads[side]))
        if self.scale != "hard":
            spreads[side] = max(SPREADS.tolist(), key=lambda spread: gain(lean, spread))
        leans[side] = lean
        return replace(self, leans=(leans[0], leans[1]), spreads=(spreads[0], spreads[1]))

    def _levels(self, side: int) -> tuple[float, ...]:
        return self.levels[side] or STEPS[side]

    def _code(self, side: int, values: Floats) -> tuple[Indices, Mask]:
        """Index of the outcome, or of the nearest level, of each answer; and which are given."""
        if self.scale == "hard":
            return outcome_of(values), np.full(len(values), True)
        levels, column = np.array(self._levels(side)), values[:, side]
        return np.digitize(np.nan_to_num(column), _middles(levels)), ~np.isnan(column)

    def _table(self, side: int, leans: Sequence[float], spread: float) -> Floats:
        """Log-probabilities (codes, cells) of outcomes, or of levels."""
        if self.scale == "hard":
            return np.log(outcome_chances(*(_means(k, leans[k]) for k in (0, 1)))).T
        return _level_logs(side, self._levels(side), leans[side], spread)

    def phrases(self) -> list[Phrase]:
        """Parts of the sentence, as keys of tables of translations.

        Shares and leans are left out where their interval includes 0, and a share of guesses that
        is known to no better than ±½ is not reported.
        """
        if self.constant:
            return [("gives every pair the same answer", {})]
        if not self.informative:
            return [("answers are hardly related to the pairs", {})]
        low, high = np.clip(self.guesses + 1.96 * self.guesses_error * np.array([-1, 1]), 0, 1)
        phrases: list[Phrase] = []
        if high - low > 0.5:
            phrases.append(("too few answers to say how many are guesses", {}))
        elif low >= 0.01:
            shares = {"share": self.guesses, "low": float(low), "high": float(high)}
            phrases.append((GUESSES, shares))
        for lean, error, texts in zip(self.leans, self.lean_errors, (SAME, RIGHT), strict=True):
            if abs(lean) > 1.96 * error:
                amount = {"lean": f"{abs(lean):.2f} ± {1.96 * error:.2f}"}
                phrases.append((texts[int(lean < 0)], amount))
        if self.knowledge:
            phrases.append((ALONE, {"share": self.knowledge}))
        spread = float(np.sqrt((self.spreads[0] ** 2 + self.spreads[1] ** 2 / 4) / 2))
        if spread >= 0.05:
            phrases.append(("answers vary by {spread:.2f}", {"spread": spread}))
        return phrases or [("nothing to correct", {})]

    def sentence(self) -> str:
        """How the annotator answers, in words."""
        return in_words(self.phrases())


def in_words(phrases: list[Phrase]) -> str:
    """A sentence from its parts."""
    return ", ".join(text.format(**values) for text, values in phrases)


@lru_cache(1024)
def _level_logs(side: int, levels: tuple[float, ...], lean: float, spread: float) -> Floats:
    """Log-probabilities (levels, cells) that a value is nearest to each level."""
    from scipy.special import ndtr  # slow to import

    gaps = _middles(np.array(levels))[:, None] - _means(side, lean)
    below = ndtr(gaps / np.sqrt(GRID[side] + spread**2))
    return np.asarray(np.log(np.diff(below, axis=0, prepend=0.0, append=1.0).clip(1e-9)))


def _middles(levels: Floats) -> Floats:
    return (levels[1:] + levels[:-1]) / 2


def _means(side: int, lean: Any) -> Floats:
    """Honest answers of the grid with a lean, clipped to the scale."""
    return np.asarray(np.clip(HONEST[:, side] + lean, *RANGES[side]))
