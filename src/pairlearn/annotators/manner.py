"""How one annotator answers: leans, spread and guesses, on a grid of true posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pairlearn.annotators.scale import (
    AMOUNTS,
    HARD,
    HONEST,
    LEAST_LEAN,
    RANGES,
    STEP,
    bend,
    bent,
    distances,
    honest_answers,
    outcome_chances,
    outcome_of,
    scale_of,
)
from pairlearn.annotators.wording import phrases_of
from pairlearn.columns import Floats, Indices
from pairlearn.labels import TOLERANCE

Phrase: TypeAlias = tuple[str, dict[str, Any]]
"""A text, and the values of its names in braces."""

COST = 3.0
"""Gain in log-likelihood that a lean must bring."""
COSTS = np.where(np.abs(AMOUNTS) > 1e-9, COST, 0.0)
COSTS[(np.abs(AMOUNTS) < LEAST_LEAN) & (COSTS > 0)] = np.inf
FLOOR = np.array([0.0015, 0.003])
"""Variances of s and c due to the grid alone."""
MOST_LEVELS = 25
SPREADS = np.geomspace(0.1, 1, 8)[:, None] * [0.02, 0.06]
"""Candidate variances of s and c of answers on a few levels."""


@dataclass(frozen=True)
class Manner:
    """How an annotator answers.

    Attributes
    ----------
    name : str
        Of the annotator; "" where the table has none.
    answers : int
        Number of answers that this was learnt from.
    guesses, guesses_error : float
        Share of answers that are unrelated to the pair, and its standard error.
    lean_same, lean_right : float
        Mean amount that is added to similarities and to differences.
    random_error, same_error, right_error : float
        Standard errors of guesses and of both leans, set by `with_errors`.
    spread : float
        Residual standard deviation, on the scale of s; 0 for hard answers.
    hard : bool
        Whether answers are yes or no.
    levels : tuple of (float, float)
        The answers (s, c) in use, where they are few and not yes or no.
    constant : bool
        Whether nearly all answers are the same, and those of others are not (`constant_people`).
    confidence : float
        Factor of log-odds, compared to the others who answer the same pairs.
    exchanged : bool
        Whether left and right are exchanged. They are put right before anything else is learnt.
    against : tuple of str
        Annotators who have the sides the other way round, where nothing tells who is right.
    fixed : str
        "similarity" or "difference", if it is always the same; it is left out then.
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
    levels: tuple[tuple[float, float], ...] = ()
    same_floor: float = float(FLOOR[0])
    right_floor: float = float(FLOOR[1])
    lean_same: float = 0.0
    lean_right: float = 0.0
    constant: bool = False
    random_error: float = 0.0
    same_error: float = 0.0
    right_error: float = 0.0
    confidence: float = 1.0
    exchanged: bool = False
    against: tuple[str, ...] = ()
    fixed: str = ""

    @property
    def guesses(self) -> float:
        """Share of answers that are unrelated to the pair."""
        return self.random + self.borrowed

    @property
    def guesses_error(self) -> float:
        """Standard error of `guesses`."""
        share = (self.guesses * self.answers + 0.5) / (self.answers + 1)
        return max(self.random_error, float(np.sqrt(share * (1 - share) / max(self.answers, 1))))

    @property
    def spread(self) -> float:
        """Residual standard deviation, on the scale of s."""
        blurred = [
            max(self.same_variance - self.same_floor, 0),
            max(self.right_variance - self.right_floor, 0) / 4,
        ]
        return 0.0 if self.hard else float(np.sqrt(np.mean(blurred)))

    @property
    def spread_error(self) -> float:
        """Standard error of the spread."""
        return self.spread / float(np.sqrt(2 * max(self.answers * (1 - self.guesses), 1)))

    @property
    def useful(self) -> bool:
        """Whether the answers have information."""
        return not self.constant and self.guesses < 0.8

    @property
    def believable(self) -> bool:
        """Whether most answers are no guesses."""
        return self.useful and self.guesses < 0.5

    @property
    def shows_confidence(self) -> bool:
        """Whether the answers show how confident the annotator is."""
        return self.useful and not self.hard and not self.levels

    @property
    def comparable(self) -> bool:
        """Whether another confidence might explain what there is to correct."""
        return self.shows_confidence and (self.spread > 0.02 or not self.honest)

    @property
    def vague(self) -> Manner:
        """The same guesses, with the spread of a starting point and without leans."""
        s, c = np.maximum([0.02, 0.06], self.floors).tolist()
        return replace(self, same_variance=s, right_variance=c, same_amount=0.0, right_amount=0.0)

    @property
    def astray(self) -> Manner:
        """The same scale, but nearly all answers belong to other pairs."""
        return self if self.constant else replace(self, random=0.02, borrowed=0.95)

    @property
    def trust(self) -> float:
        """Weight of an answer relative to others: its precision, less for guesses."""
        if not self.useful:
            return 0.01
        noise = 0.0 if self.hard else float(self.noise().mean())
        return (1 - self.guesses) / (noise + 0.01)

    @property
    def honest(self) -> bool:
        """Whether there is nothing to correct."""
        straight = not self.same_amount and not self.right_amount
        sided = not self.exchanged and not self.against
        straight = straight and not self.fixed and self.confidence == 1
        return self.guesses < 0.02 and straight and sided

    def words(self) -> str:
        """The manner as a sentence."""
        return in_words(self.phrases())

    def phrases(self) -> list[Phrase]:
        """Parts of that sentence, as keys of the tables of translations."""
        return phrases_of(self)

    def mean(self, side: int) -> Floats:
        """Mean answer to each pair of posteriors of the grid."""
        form, amount = self.bends[side]
        return bend(form, amount, side, honest_answers(self.confidence)[:, side])

    @property
    def bends(self) -> tuple[tuple[Any, float], tuple[Any, float]]:
        """Form and amount for similarities and for differences."""
        return (self.same_form, self.same_amount), (self.right_form, self.right_amount)

    @property
    def variances(self) -> Floats:
        """Variances of similarities and differences, including that of the grid."""
        return np.array([self.same_variance, self.right_variance])

    @property
    def floors(self) -> Floats:
        """Variances due to the grid and to the steps of the scale."""
        return np.array([self.same_floor, self.right_floor])

    def density(self, values: Floats) -> Floats:
        """Density (n, grid) of honest answers; for levels, their probability."""
        if self.hard or self.levels:
            return self._chances(self.mean(0), self.mean(1))[:, self._which(values)].T
        given = ~np.isnan(values)
        answers, means = np.where(given, values, 0), np.stack([self.mean(0), self.mean(1)])
        # Squared distances, expanded so that one matrix product computes the logarithms.
        fixed = given * np.log(2 * np.pi * self.variances) + answers**2 / self.variances
        terms = (given / self.variances, answers / self.variances, fixed.sum(1, keepdims=True))
        logs = np.hstack(terms) @ np.vstack([-(means**2) / 2, means, np.full(len(HONEST), -0.5)])
        return np.asarray(np.exp(logs, out=logs))

    def slopes(self, values: Floats, honest: Floats) -> Floats:
        """Derivatives (n, 2) of log-likelihoods by a constant added to s and to c."""
        slopes = np.zeros((len(values), 2))
        if self.hard:
            same, right = self.mean(0).clip(0.02, 0.98), self.mean(1)
            left_over, right_over = ((1 - same + sign * right).clip(0.02) for sign in (-1, 1))
            none = np.zeros_like(same)
            by_same = np.stack([-1 / (1 - same), -1 / (1 - same), 1 / same, none])
            by_right = np.stack([-1 / left_over, 1 / right_over, none, none])
            outcome = outcome_of(values)
            slopes[:, 0] = (honest * by_same[outcome]).sum(1)
            slopes[:, 1] = (honest * by_right[outcome]).sum(1)
            return slopes * ~np.isnan(values)
        if self.levels:
            chances, which = self._chances(self.mean(0), self.mean(1)), self._which(values)
            for side, level in enumerate(np.array(self.levels).T):
                gap = level[which] * honest.sum(1) - honest @ (chances @ level)
                slopes[:, side] = gap / self.variances[side]
            return slopes
        for side in (0, 1):
            off = np.nan_to_num(values[:, side])
            gap = off * honest.sum(1) - honest @ self.mean(side)
            slopes[:, side] = np.where(np.isnan(values[:, side]), 0, gap / self.variances[side])
        return slopes

    def anything(self, values: Floats) -> Floats:
        """Density (n,) of answers at random on the scales."""
        if self.hard or self.levels:
            return np.full(len(values), 1 / (len(self.levels) or 4))
        # A rounded answer stands for a range, which may extend beyond the scale.
        steps = np.where(self.floors > FLOOR, np.sqrt(8 * self.floors), 0)
        chance = [1 / (high - low + step) for (low, high), step in zip(RANGES, steps, strict=True)]
        return np.asarray(np.where(np.isnan(values), 1, chance).prod(1))

    def suits(self, values: Floats, constant: bool) -> bool:
        """Whether answers are on the scale that this was learnt from; for levels, most of them."""
        if self.levels:
            whole = values[~np.isnan(values).any(1)]
            off = np.abs(whole[:, None] - np.array(self.levels)).max(-1).min(1)
            return not len(whole) or bool((off < TOLERANCE).mean() > 0.5)
        return self.hard == (not constant and scale_of(*values.T).hard)

    def inverse(self, values: Floats, grid: Floats) -> Floats:
        """Answers (n, 2) without lean and with the confidence of the others.

        ``grid`` (n, grid) is the distribution of the posteriors of each pair. At the end of a scale
        it gives the expected answer.
        """
        corrected, honest = values.copy(), honest_answers(self.confidence)
        expected = grid @ honest
        for side, (form, amount) in enumerate(self.bends):
            low, high = RANGES[side]
            if form == "shift" and amount:
                corrected[:, side] -= amount
                at_end = values[:, side] >= high if amount > 0 else values[:, side] <= low
                corrected[at_end, side] = expected[at_end, side]
            elif amount:
                to = high if amount > 0 else low
                kept = max(1 - abs(amount), 1e-3)
                corrected[:, side] = (values[:, side] - abs(amount) * to) / kept
        return corrected if self.confidence == 1 else corrected + grid @ (HONEST - honest)

    def noise(self) -> Floats:
        """Variances of corrected answers, next to zero if only the grid blurs them."""
        kept = [
            1.0 if form == "shift" else max(1 - abs(amount), 1e-3) for form, amount in self.bends
        ]
        clear = (self.variances < 1.5 * self.floors) & (self.confidence == 1)
        return np.where(clear, 1e-6, self.variances) / np.square(kept)

    def with_fixed(self, fixed: Mapping[str, str]) -> Manner:
        """The same, which tells what its annotator always answers alike."""
        return replace(self, fixed=fixed[self.name]) if self.name in fixed else self

    @classmethod
    def believed(cls, name: str) -> Manner:
        """An ideal annotator."""
        s, c = FLOOR.tolist()
        return cls(name, random=0.0, same_variance=s, right_variance=c)

    @classmethod
    def unknown(cls, name: str, constant: bool) -> Manner:
        """An annotator who is believed, unless nearly all answers are the same."""
        return replace(cls.believed(name), constant=constant)

    @classmethod
    def start(cls, name: str, values: Floats, constant: bool) -> Manner:
        """A starting point: no lean, and the scale that the answers show."""
        scale = scale_of(*values.T)
        floors = np.maximum(FLOOR, np.square(scale.steps) / 8)
        levels = np.unique(values, axis=0).tolist() if scale.coarse and not scale.hard else []
        if np.isnan(levels).any() or len(levels) > MOST_LEVELS:
            levels = []
        elif levels:
            floors = SPREADS[0]
        return cls(
            name,
            answers=len(values),
            constant=constant,
            hard=not constant and scale.hard,
            levels=tuple((s, c) for s, c in levels),
            same_floor=float(floors[0]),
            right_floor=float(floors[1]),
            same_variance=float(max(0.02, floors[0])),
            right_variance=float(max(0.06, floors[1])),
        )

    def updated(
        self, values: Floats, honest: Floats, typical: Floats, borrows: bool, leans: bool
    ) -> Manner:
        """The maximisation step for one annotator.

        ``values`` (n, 2) are the answers, ``honest`` (n, grid) the probability that each is an
        honest answer to each pair of posteriors, and ``typical`` (n,) the probability that a guess
        is an answer to another pair, which counts only if ``borrows``. Unless ``leans``, these
        stay as they are.
        """
        n, guessed = len(values), 1 - honest.sum(1)
        borrowed = float(guessed @ typical) if borrows else 0.0
        updated = replace(
            self,
            random=(float(guessed.sum()) - borrowed + 0.5) / (n + 10),
            borrowed=borrowed / (n + 10),
        )
        if self.hard:
            return updated._bent_hard(values, honest, leans)
        if self.levels:
            return updated._graded(values, honest, leans)
        return updated._bent(values, honest, leans)

    def _costs(self, side: int, leans: bool) -> Floats:
        """Costs of the leans, infinite for all but the present one unless they may change."""
        here = np.abs(AMOUNTS - self.bends[side][1]) < STEP / 2
        return COSTS if leans else np.where(here, 0.0, np.inf)

    def _bent(self, values: Floats, honest: Floats, leans: bool) -> Manner:
        fitted: dict[str, Any] = {}
        given = ~np.isnan(values)
        answers = np.where(given, values, 0)
        moments = np.stack([given, answers], -1).reshape(-1, 4).T @ honest
        squares = honest.sum(1) @ answers**2
        for side, word in enumerate(("same", "right")):
            total, own = moments[2 * side], moments[2 * side : 2 * side + 2].ravel()
            best: tuple[float, Any, float, float] = (-np.inf, "pull", 0.0, 0.0)
            costs = self._costs(side, leans)
            for form in ("pull", "shift") if leans else (self.bends[side][0],):
                left = squares[side] + distances(side, form, self.confidence) @ own
                gain = -left / (2 * self.variances[side]) - costs
                at = int(gain.argmax())
                if gain[at] > best[0] + 1e-9:
                    best = (float(gain[at]), form, float(AMOUNTS[at]), float(left[at]))
            _, fitted[f"{word}_form"], fitted[f"{word}_amount"], left_over = best
            variance = (left_over + 0.05) / (float(total.sum()) + 5)
            fitted[f"{word}_variance"] = max(variance, float(self.floors[side]))
            honest_mean = honest_answers(self.confidence)[:, side]
            leaning = bend(fitted[f"{word}_form"], fitted[f"{word}_amount"], side, honest_mean)
            fitted[f"lean_{word}"] = _mean_gap(leaning - honest_mean, total)
        return replace(self, **fitted)

    def _bent_hard(self, values: Floats, honest: Floats, leans: bool) -> Manner:
        outcome = outcome_of(values)
        counts = np.stack([honest[outcome == k].sum(0) for k in range(len(HARD) + 1)], 1)
        manner = self
        for side, word in enumerate(("same", "right")):
            other = manner.mean(1 - side)[None]
            pulled = bent(side, "pull", 1.0)
            means = (pulled, other) if side == 0 else (other, pulled)
            gain = (np.log(outcome_chances(*means)) * counts).sum((-1, -2))
            gain -= self._costs(side, leans)
            amount = float(AMOUNTS[int(gain.argmax())])
            lean = bend("pull", amount, side, HONEST[:, side]) - HONEST[:, side]
            fitted: dict[str, Any] = {f"{word}_amount": amount}
            fitted[f"lean_{word}"] = _mean_gap(lean, counts.sum(1))
            manner = replace(manner, **fitted)
        return manner

    def _graded(self, values: Floats, honest: Floats, leans: bool) -> Manner:
        which = self._which(values)
        counts = np.stack([honest[which == k].sum(0) for k in range(len(self.levels))], 1)

        def gain(manner: Manner) -> float:
            chances = manner._chances(manner.mean(0), manner.mean(1))
            bent = sum(amount != 0 for _, amount in manner.bends)
            return float((np.log(chances) * counts).sum()) - COST * bent

        spreads = [
            replace(self, same_variance=float(s), right_variance=float(c)) for s, c in SPREADS
        ]
        manner = max(self, *spreads, key=gain)
        for side, word in enumerate(("same", "right")):
            form, amount = manner.bends[side]
            others = [(form, amount + step) for step in (-2 * STEP, 2 * STEP)]
            others += [("pull", 0.0), ("shift" if form == "pull" else "pull", amount)]
            tried = [
                replace(manner, **{f"{word}_form": form, f"{word}_amount": round(amount, 3)})
                for form, amount in others
                if abs(amount) < 1 and leans
            ]
            manner = max(manner, *tried, key=gain) if tried else manner
            lean = _mean_gap(manner.mean(side) - HONEST[:, side], counts.sum(1))
            fitted: dict[str, Any] = {f"lean_{word}": lean}
            manner = replace(manner, **fitted)
        return manner

    def _which(self, values: Floats) -> Indices:
        """Index of the hard answer, or of the nearest level, of each answer."""
        if self.hard:
            return outcome_of(values)
        off = np.nan_to_num(values)[:, None] - np.array(self.levels)
        return np.asarray((off**2 / SPREADS[0]).sum(-1).argmin(1))

    def _chances(self, same: Floats, right: Floats) -> Floats:
        """Probabilities (grid, k) of the hard answers, or of the levels."""
        if self.hard:
            return outcome_chances(same, right)
        off = np.stack([same, right], -1)[:, None] - np.array(self.levels)
        logs = -(off**2 / self.variances).sum(-1) / 2
        chances = np.exp(logs - logs.max(1, keepdims=True)).clip(1e-9)
        return np.asarray(chances / chances.sum(1, keepdims=True))


def _mean_gap(gap: Floats, weight: Floats) -> float:
    return float(gap @ weight / max(weight.sum(), 1e-9))


def in_words(phrases: Sequence[Phrase]) -> str:
    """A sentence from its parts."""
    return "; ".join(text.format(**values) for text, values in phrases)
