"""Class rates of groups of instances, from judgements about pairs of them.

Sort the instances into K levels by the output of the classifier (two levels are its two
decisions). Level k has a share w_k of the instances, of which a rate ρ_k = P(y=+1 | k) is
positive. The two ends of a pair are independent, so a pair of levels (j, k) has the mean
judgements

    E[s | j, k] = ρ_j ρ_k + (1 − ρ_j)(1 − ρ_k),        E[c | j, k] = ρ_k − ρ_j.

The rates solve the score equations of the pair likelihood for these K constants,

    Σ_pairs D' V⁻¹ (judgements − their means) = 0,      D = ∂means/∂ρ,

where V is the covariance of certain judgements (plus that of noise, if some are infeasible). A
pair with one judgement contributes that alone. The means are right for every calibrated annotator,
so the rates are consistent, and their influences give standard errors that are right whatever the
true covariance is. The affine estimators use the same means with fixed or prior-dependent weights;
this one weights them by their information.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairlearn.columns import Floats, Indices
from pairlearn.evaluation.judged import JudgedPairs
from pairlearn.labels import PairLabels

#: Distance of rates from 0 and 1, where the score is not defined.
EDGE = 1e-6
#: Pseudo-observations of either class in each level, which define the rates of empty levels.
WEAK = 0.01


@dataclass(frozen=True)
class LevelFit:
    """Shares w and rates ρ of K levels, with the influences (n, K) of the pairs on them."""

    shares: Floats
    rates: Floats
    share_influence: Floats
    rate_influence: Floats
    log_likelihood: float


class LevelTally:
    """Pairs counted by the levels 0 … count − 1 of their ends.

    `judgements` (n, 2) have differences towards the higher level. A cell is a couple of levels and
    the judgements that its rows have, `given` (m, 2): both, similarity or difference. `weight` (m,)
    and `sums` (m, 2) are sums over the rows of each cell. `member` (n, K) is the share of a pair's
    ends in each level, and `turn` half the difference of its ends, right less left.
    """

    def __init__(
        self, pairs: JudgedPairs, level: Indices, level_prime: Indices, count: int
    ) -> None:
        high, low = np.maximum(level, level_prime), np.minimum(level, level_prime)
        towards = np.where(level > level_prime, -pairs.difference, pairs.difference)
        self.pairs, self.count = pairs, count
        self.judgements = np.stack([pairs.similarity, towards], axis=1)
        given = ~np.isnan(self.judgements)
        code = (high * count + low) * 4 + 2 * given[:, 0] + given[:, 1]
        present, cell = np.unique(code, return_inverse=True)
        self.cell: Indices = cell.reshape(-1)
        self.high, self.low = present // 4 // count, present // 4 % count
        self.given = np.stack([present % 4 >= 2, present % 2 == 1], axis=1)
        self.weight = np.asarray(np.bincount(self.cell, pairs.weight), np.float64)
        finite = np.where(given, self.judgements, 0.0) * pairs.weight[:, None]
        self.sums = np.stack([np.bincount(self.cell, column) for column in finite.T], axis=1)
        left, right = np.eye(count)[level] / 2, np.eye(count)[level_prime] / 2
        self.member, self.turn = left + right, right - left
        self.shares = _mean(self.member, pairs.weight)
        self.noise = _noise(pairs)

    def start(self) -> Floats:
        """Consistent rates to start from, in closed form: ρ_k = π + E[c (1'_k − 1_k)]/(2 w_k).

        π comes from dissimilar pairs, for which Σ(a 1_k + b 1'_k)/Σ(1 − s) = P(k | +), and P(k | −)
        with a and b swapped, by least squares of w = π P(· | +) + π₋ P(· | −).
        """
        pairs, prior = self.pairs, self.pairs.prior
        has_s, has_c = pairs.has_similarity, pairs.has_difference
        if not has_c.any():
            return np.linspace(0.1, 0.9, self.count)
        towards = self.turn[has_c] * pairs.difference[has_c, None]
        covariation = _mean(towards, pairs.weight[has_c])
        if prior is None:
            different = (1 - pairs.similarity[has_s])[:, None]
            both = np.hstack([different * self.member[has_s], different])
            *middle, share = _mean(both, pairs.weight[has_s])
            spread = covariation / max(share, EDGE)
            gap = float(spread @ spread)
            if gap > EDGE:
                apart = self.shares - np.array(middle) / max(share, EDGE)
                prior = 0.5 + float(apart @ spread) / gap / 2
            else:  # Uninformative levels: the prior that the similarities imply, below ½.
                prior = 0.5 - float(np.sqrt(max(1 - 2 * share, 0.0))) / 2
            prior = min(max(prior, 0.02), 0.98)
        return np.asarray((prior + covariation / self.shares.clip(EDGE)).clip(0.01, 0.99))

    def solve(self, start: Floats) -> Floats:
        """Solve for the rates (K,) by scoring from `start`; there can be other solutions.

        A known prior is one more observation, that of Σ w ρ (see `fit`).
        """
        rates, prior = start.clip(EDGE, 1 - EDGE), self.pairs.prior
        for iteration in range(100):
            means, gain, blocks = self._model(rates)
            residual = np.where(self.given, self.sums - self.weight[:, None] * means, 0.0)
            score = WEAK / rates - WEAK / (1 - rates)
            ends = (gain @ residual[:, :, None])[:, :, 0]
            np.add.at(score, self.high, ends[:, 0])
            np.add.at(score, self.low, ends[:, 1])
            information = self._information(blocks, rates)
            if prior is not None:
                pull = self.shares / self.prior_variance(rates)
                score += pull * (prior - self.shares @ rates)
                information += np.outer(pull, self.shares)
            step = np.linalg.solve(information, score)
            # Three quarters of the way to 0 or 1 at most; half steps if scoring oscillates.
            step = step if iteration < 30 else step / 2
            moved = (rates + step).clip(rates / 4, 1 - (1 - rates) / 4).clip(EDGE, 1 - EDGE)
            done = np.abs(moved - rates).max() < 1e-7
            rates = moved
            if done:
                break
        return np.asarray(rates)

    def fit(self, rates: Floats) -> LevelFit:
        """Shares, the given solution for the rates, and the influences on both.

        A known prior is an observation of Σ w ρ with the variance v due to the sampled shares: one
        more term in the score of the rates, with log-likelihood −½ excess²/v. The shares then move
        to absorb the rest of the excess.
        """
        means, gain, blocks = self._model(rates)
        residual = np.nan_to_num(self.judgements - means[self.cell], nan=0.0)
        ends = (gain[self.cell] @ residual[:, :, None])[:, :, 0] * self.pairs.weight[:, None]
        n, k = len(self.pairs), self.count
        score, row = np.zeros((n, k)), np.arange(n)
        score[row, self.high[self.cell]] += ends[:, 0]
        score[row, self.low[self.cell]] += ends[:, 1]
        w, likelihood = self.shares, self.likelihood(rates)
        influence = (self.member - w) * (self.pairs.weight / n)[:, None]
        information = self._information(blocks, rates)
        prior = self.pairs.prior
        if prior is None:
            return LevelFit(w, rates, influence, _solve_rows(information, score), likelihood)
        variance, excess = self.prior_variance(rates), float(w @ rates - prior)
        score -= np.outer(influence @ rates, w) / variance
        rate_influence = _solve_rows(information + np.outer(w, w) / variance, score)
        lever = w * (rates - w @ rates)
        lever = lever / max(float(lever @ rates), EDGE)
        rest = influence @ rates + rate_influence @ w
        return LevelFit(
            (w - lever * excess).clip(0, 1),
            rates,
            influence - np.outer(rest, lever),
            rate_influence,
            likelihood - 0.5 * excess**2 / variance,
        )

    def prior_variance(self, rates: Floats) -> float:
        """Variance of Σ w ρ due to the shares, at known rates."""
        spread = float(self.shares @ (rates - self.shares @ rates) ** 2)
        return max(spread, EDGE) / (2 * len(self.pairs))

    def likelihood(self, rates: Floats) -> float:
        """Log-likelihood of the judgements at given rates; normal for differences alone."""
        a, b, same = self._outcomes(rates)
        s, c = self.sums.T
        different = self.weight - s
        with_both = (different + c) / 2 * np.log(a) + (different - c) / 2 * np.log(b)
        within = self.high == self.low
        split = np.where(self.given[:, 1] & ~within, with_both, different * np.log(a + b))
        variance = a + b - (a - b) ** 2
        normal = -((c - self.weight * (a - b)) ** 2) / (2 * self.weight * variance)
        alone = np.where(within, 0.0, normal)
        return float(np.where(self.given[:, 0], split + s * np.log(same), alone).sum())

    def _outcomes(self, rates: Floats) -> tuple[Floats, Floats, Floats]:
        upper, lower = rates[self.high], rates[self.low]
        a, b = upper * (1 - lower), (1 - upper) * lower
        return a, b, upper * lower + (1 - upper) * (1 - lower)

    def _model(self, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """Means (m, 2), D'V⁻¹ and D'V⁻¹D (m, 2, 2); D' has one row for each end."""
        a, b, same = self._outcomes(rates)
        # Within a level neither end is higher: the mean difference is 0 at any rate.
        across = np.where(self.high == self.low, 0.0, 1.0)
        m = len(a)
        slopes, precision = np.empty((2, m, 2, 2))
        slopes[:, 0, 0], slopes[:, 1, 0] = 2 * rates[self.low] - 1, 2 * rates[self.high] - 1
        slopes[:, 0, 1], slopes[:, 1, 1] = across, -across
        # V is the covariance of 1_same and 1_a − 1_b, with determinant 4 a b s, plus noise.
        v_s, v_c, v_sc = same * (1 - same), a + b - (a - b) ** 2, -same * (a - b)
        noise_s, noise_c = self.noise
        both = self.given.all(1)
        determinant = 4 * a * b * same + noise_s * v_c + noise_c * v_s + noise_s * noise_c
        v_s, v_c = v_s + noise_s, v_c + noise_c
        precision[:, 0, 0] = np.where(both, v_c / determinant, self.given[:, 0] / v_s)
        precision[:, 1, 1] = np.where(both, v_s / determinant, self.given[:, 1] / v_c)
        precision[:, 0, 1] = precision[:, 1, 0] = np.where(both, -v_sc / determinant, 0.0)
        gain = slopes @ precision
        return np.stack([same, across * (a - b)], 1), gain, gain @ slopes.transpose(0, 2, 1)

    def _information(self, blocks: Floats, rates: Floats) -> Floats:
        information = np.diag(2 * WEAK / (rates * (1 - rates)))
        weighted = blocks * self.weight[:, None, None]
        ends = (self.high, self.low)
        for i in range(2):
            for j in range(2):
                np.add.at(information, (ends[i], ends[j]), weighted[:, i, j])
        return information


def _noise(pairs: JudgedPairs) -> tuple[float, float]:
    """Variances of label noise: twice the mean squared distance from feasible labels.

    Noise shows only where it leaves the feasible region, about half of the time for confident
    judgements. It only enters the weights of the levels.
    """
    labels = PairLabels(pairs.similarity, pairs.difference, noisy=True)
    if bool(labels.feasible().all()):
        return 0.0, 0.0
    distance = np.nan_to_num(labels.to_array() - labels.project().to_array())
    noise_s, noise_c = 2 * _mean(distance**2, pairs.weight)
    return float(noise_s), float(noise_c)


def _solve_rows(information: Floats, score: Floats) -> Floats:
    """Influences (n, K) of scores (n, K)."""
    return np.asarray(np.linalg.solve(information, score.T).T, np.float64)


def _mean(columns: Floats, weight: Floats) -> Floats:
    return np.asarray(weight @ columns / weight.sum())
