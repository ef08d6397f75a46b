"""Variance of the risk over the λ-estimators and the affine family, exact and simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pairlearn.data.sampling import stream
from pairlearn.experiments.theory.numbers import Floats, Row, rounded
from pairlearn.labels import PairLabels
from pairlearn.losses import make_loss
from pairlearn.risks import (
    ConfDiff,
    NonNegative,
    Sconf,
    SconfConfDiff,
    affine_table,
    contract,
    pair_moments,
)

__all__ = ["SmallWorld", "beta_rows", "lambda_rows", "member_rows", "plane_rows"]

SAME, OPPOSITE = (1.0, 1.0), (1.0, -1.0)
"""Slices of the affine family: ConfDiff to SconfConfDiff, and ConfDiff to Sconf."""


@dataclass(frozen=True)
class SmallWorld:
    """A few instances with masses, posteriors and logits: moments of pairs are finite sums.

    Examples
    --------
    >>> world = SmallWorld()
    >>> round(world.prior, 9), len(world.pair_losses(affine_table(world.prior, 0.0, 0.0)))
    (0.3, 25)
    """

    mass: tuple[float, ...] = (0.30, 0.25, 0.20, 0.15, 0.10)
    posterior: tuple[float, ...] = (0.02, 0.12, 0.32, 0.70, 0.95)
    logit: tuple[float, ...] = (-2.5, -1.5, 0.5, 1.0, 2.0)

    @property
    def prior(self) -> float:
        """The class prior π₊."""
        return float(np.dot(self.mass, self.posterior))

    @property
    def pair_mass(self) -> Floats:
        """Probability of each ordered pair of instances."""
        return np.outer(self.mass, self.mass).ravel()

    def pair_losses(self, table: torch.Tensor) -> Floats:
        """What each ordered pair adds to the risk with this table (k, 5, 3)."""
        size = len(self.mass)
        i, j = np.divmod(np.arange(size**2), size)
        r, z = np.array(self.posterior), np.array(self.logit)
        labels = PairLabels.from_posteriors(r[i], r[j])
        columns = (z[i], z[j], labels.similarity, labels.difference)
        # Each pair is a batch of its own.
        logits, logits_prime, s, c = (torch.from_numpy(v).unsqueeze(-1) for v in columns)
        moments = pair_moments(logits, logits_prime, s, c, make_loss("logistic"), same=False)
        losses: Floats = contract(table, moments).sum(-1).numpy()
        return losses

    def variance(self, table: torch.Tensor) -> float:
        """Exact variance of one pair's loss: n times that of the mean of n pairs."""
        losses = self.pair_losses(table)
        return float(self.pair_mass @ (losses - self.pair_mass @ losses) ** 2)

    def optimal_betas(self, *directions: tuple[float, float]) -> tuple[float, float]:
        """The least variance among (β₊, β₋) in the span of the directions, in closed form.

        The pair's loss is L₀ + Σ βₖ Uₖ, and E[Uₖ] = 0 because E[T | x] = 0: T is a control
        variate, with optimum β = −Cov(U)⁻¹ Cov(U, L₀).
        """
        start = self.pair_losses(affine_table(self.prior, 0.0, 0.0))
        moves = np.stack(
            [self.pair_losses(affine_table(self.prior, *way)) - start for way in directions]
        )
        weighted = moves * self.pair_mass
        steps = np.linalg.solve(weighted @ moves.T, -weighted @ start)
        plus, minus = steps @ np.array(directions)
        return float(plus), float(minus)

    def sampled_variances(
        self, tables: Sequence[torch.Tensor], repetitions: int, rng: np.random.Generator
    ) -> Floats:
        """The variances again, from simulated means of 200 pairs that the tables share."""
        n = 200
        counts = rng.multinomial(n, self.pair_mass, size=repetitions) / n
        losses = np.stack([self.pair_losses(table) for table in tables], axis=1)
        variances: Floats = n * np.var(counts @ losses, axis=0, ddof=1)
        return variances


def lambda_rows(*, repetitions: int, seed: int = 0) -> list[Row]:
    """Variance of the λ-estimator, exact and simulated, for λ = 0, 0.05, …, 1.

    Returns
    -------
    list of dict
        lam, the exact variance of one pair's loss, the simulated one, its standard error.

    Examples
    --------
    >>> rows = lambda_rows(repetitions=100)
    >>> min(rows, key=lambda row: row["exact"])["lam"]
    0.5
    """
    world = SmallWorld()
    places = [{"lam": k / 20} for k in range(21)]
    tables = [SconfConfDiff(world.prior, lam=place["lam"]).table for place in places]
    return _variance_rows(world, places, tables, repetitions, stream(seed, "lambda"))


def beta_rows(*, repetitions: int, seed: int = 0) -> list[Row]:
    """Variance along two slices of the affine family, exact and simulated.

    Returns
    -------
    list of dict
        direction ("same": β₊ = β₋ = β, "opposite": β₊ = −β₋ = β), beta, beta_plus,
        beta_minus, the exact variance, the simulated one, its standard error.

    Examples
    --------
    >>> {row["direction"] for row in beta_rows(repetitions=10)} == {"same", "opposite"}
    True
    """
    world = SmallWorld()
    places = [
        {"direction": name, "beta": beta, "beta_plus": way[0] * beta, "beta_minus": way[1] * beta}
        for name, way in (("same", SAME), ("opposite", OPPOSITE))
        for beta in np.linspace(-3, 1.5, 46).round(6).tolist()
    ]
    tables = [affine_table(world.prior, p["beta_plus"], p["beta_minus"]) for p in places]
    return _variance_rows(world, places, tables, repetitions, stream(seed, "beta"))


def plane_rows() -> list[Row]:
    """Exact variance over the plane of all members (β₊, β₋) of the affine family.

    Examples
    --------
    >>> plane_rows()[0]["beta_plus"]
    -3.0
    """
    world = SmallWorld()
    return [
        rounded({"beta_plus": plus, "beta_minus": minus, "exact": world.variance(table)})
        for minus in np.linspace(-3, 3, 31).round(6).tolist()
        for plus in np.linspace(-3, 1.5, 31).round(6).tolist()
        for table in [affine_table(world.prior, plus, minus)]
    ]


def member_rows() -> list[Row]:
    """The named members of the affine family and the optima, with their exact variances.

    Returns
    -------
    list of dict
        member, beta_plus, beta_minus, exact, and relative: exact over the optimum's.

    Examples
    --------
    >>> [row["member"] for row in member_rows() if row["relative"] == 1.0]
    ['optimum']
    """
    world = SmallWorld()
    sconf = Sconf(world.prior).betas()
    members = {
        "confdiff": ConfDiff(world.prior).betas(),
        "convex-0.5": (sconf[0] / 2, sconf[1] / 2),
        "sconf": sconf,
        "sconfconfdiff": SconfConfDiff(world.prior).betas(),
        "nonnegative": NonNegative(world.prior).betas(),
        "optimum-same": world.optimal_betas(SAME),
        "optimum-opposite": world.optimal_betas(OPPOSITE),
        "optimum": world.optimal_betas((1.0, 0.0), (0.0, 1.0)),
    }
    exact = {name: world.variance(affine_table(world.prior, *at)) for name, at in members.items()}
    return [
        rounded(
            {
                "member": name,
                "beta_plus": plus,
                "beta_minus": minus,
                "exact": exact[name],
                "relative": exact[name] / exact["optimum"],
            }
        )
        for name, (plus, minus) in members.items()
    ]


def _variance_rows(
    world: SmallWorld,
    places: Sequence[Row],
    tables: Sequence[torch.Tensor],
    repetitions: int,
    rng: np.random.Generator,
) -> list[Row]:
    sampled = world.sampled_variances(tables, repetitions, rng)
    error = math.sqrt(2 / (repetitions - 1))  # of a variance of nearly normal means
    return [
        rounded({**p, "exact": world.variance(t), "simulated": v, "standard_error": v * error})
        for p, t, v in zip(places, tables, sampled, strict=True)
    ]
