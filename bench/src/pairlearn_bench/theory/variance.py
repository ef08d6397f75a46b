"""Variance of the risk in the λ-estimators and the affine family, exact and simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pairlearn.columns import Floats
from pairlearn.labels import PairLabels
from pairlearn.losses import make_loss
from pairlearn.randomness import stream
from pairlearn.risks import (
    ConfDiff,
    NonNegative,
    Sconf,
    SconfConfDiff,
    affine_table,
    contract,
    pair_moments,
)
from pairlearn.style import BLUE, ORANGE, YELLOW, method_style
from pairlearn_bench.theory.rows import Row, columns, note, rounded, row_of_panels, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Slices of the affine family: ConfDiff to SconfConfDiff, and ConfDiff to Sconf.
SAME, OPPOSITE = (1.0, 1.0), (1.0, -1.0)


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
        """The loss of each ordered pair under the risk with this table (k, 8, 3)."""
        size = len(self.mass)
        i, j = np.divmod(np.arange(size**2), size)
        r, z = np.array(self.posterior), np.array(self.logit)
        labels = PairLabels.from_posteriors(r[i], r[j])
        # Each pair is a separate batch.
        values = (z[i], z[j], labels.similarity, labels.difference)
        logits, logits_prime, s, c = (torch.from_numpy(value).unsqueeze(-1) for value in values)
        moments = pair_moments(logits, logits_prime, s, c, make_loss("logistic"), terms=4)
        losses: Floats = contract(table, moments).sum(-1).numpy()
        return losses

    def variance(self, table: torch.Tensor) -> float:
        """Exact variance of one pair's loss: n times that of the mean of n pairs."""
        losses = self.pair_losses(table)
        return float(self.pair_mass @ (losses - self.pair_mass @ losses) ** 2)

    def optimal_betas(self, *directions: tuple[float, float]) -> tuple[float, float]:
        """The (β₊, β₋) of least variance in the span of the directions, in closed form.

        The pair's loss is L₀ + Σ βₖ Uₖ, and E[Uₖ] = 0 because E[T | x] = 0: T is a control
        variate, with optimum β = −Cov(U)⁻¹ Cov(U, L₀).
        """
        origin = self.pair_losses(affine_table(self.prior, 0.0, 0.0))
        losses = [self.pair_losses(affine_table(self.prior, *betas)) for betas in directions]
        variates = np.stack(losses) - origin
        weighted = variates * self.pair_mass
        steps = np.linalg.solve(weighted @ variates.T, -weighted @ origin)
        plus, minus = steps @ np.array(directions)
        return float(plus), float(minus)

    def sampled_variances(
        self, tables: Sequence[torch.Tensor], repetitions: int, rng: np.random.Generator
    ) -> Floats:
        """The same variances, estimated from simulated means of 200 pairs common to all tables."""
        n = 200
        counts = rng.multinomial(n, self.pair_mass, size=repetitions) / n
        losses = np.stack([self.pair_losses(table) for table in tables], axis=1)
        variances: Floats = n * np.var(counts @ losses, axis=0, ddof=1)
        return variances


def lambda_rows(*, repetitions: int, seed: int = 0) -> list[Row]:
    """Variance of the λ-estimator for λ = 0, 0.05, …, 1: exact, simulated, its standard error.

    Examples
    --------
    >>> rows = lambda_rows(repetitions=100)
    >>> min(rows, key=lambda row: row["exact"])["lam"]
    0.5
    """
    world = SmallWorld()
    points = [{"lam": k / 20} for k in range(21)]
    tables = [SconfConfDiff(world.prior, lam=point["lam"]).table for point in points]
    return _variance_rows(world, points, tables, repetitions, stream(seed, "lambda"))


def beta_rows(*, repetitions: int, seed: int = 0) -> list[Row]:
    """Variance along two slices of the affine family: exact, simulated, its standard error.

    The direction is "same" for β₊ = β₋ = β and "opposite" for β₊ = −β₋ = β.

    Examples
    --------
    >>> {row["direction"] for row in beta_rows(repetitions=10)} == {"same", "opposite"}
    True
    """
    world = SmallWorld()
    points = [
        {"direction": name, "beta": beta, "beta_plus": plus * beta, "beta_minus": minus * beta}
        for name, (plus, minus) in (("same", SAME), ("opposite", OPPOSITE))
        for beta in np.linspace(-3, 1.5, 46).round(6).tolist()
    ]
    tables = [affine_table(world.prior, p["beta_plus"], p["beta_minus"]) for p in points]
    return _variance_rows(world, points, tables, repetitions, stream(seed, "beta"))


def plane_rows() -> list[Row]:
    """Exact variance over the plane of all members (β₊, β₋) of the affine family."""
    world = SmallWorld()
    return [
        rounded({"beta_plus": plus, "beta_minus": minus, "exact": world.variance(table)})
        for minus in np.linspace(-3, 3, 31).round(6).tolist()
        for plus in np.linspace(-3, 1.5, 31).round(6).tolist()
        for table in [affine_table(world.prior, plus, minus)]
    ]


def member_rows() -> list[Row]:
    """The named members of the affine family and the optima, with their exact variances.

    ``relative`` is the variance over the optimum's.

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
    exact = {k: world.variance(affine_table(world.prior, *betas)) for k, betas in members.items()}
    names = ("member", "beta_plus", "beta_minus", "exact", "relative")
    rows = [(k, *betas, exact[k], exact[k] / exact["optimum"]) for k, betas in members.items()]
    return [rounded(dict(zip(names, row, strict=True))) for row in rows]


def _variance_rows(
    world: SmallWorld,
    points: Sequence[Row],
    tables: Sequence[torch.Tensor],
    repetitions: int,
    rng: np.random.Generator,
) -> list[Row]:
    sampled = world.sampled_variances(tables, repetitions, rng)
    error = math.sqrt(2 / (repetitions - 1))  # of a variance of nearly normal means
    return [
        rounded({**p, "exact": world.variance(t), "simulated": v, "standard_error": v * error})
        for p, t, v in zip(points, tables, sampled, strict=True)
    ]


_MEMBERS = {  # title, shift of the title in points, its alignment
    "confdiff": ("ConfDiff", (6, 4), "left"),
    "convex-0.5": ("Convex(½)", (6, 3), "left"),
    "sconf": ("Sconf", (6, 3), "left"),
    "sconfconfdiff": ("SconfConfDiff", (-7, -3), "right"),
    "nonnegative": ("non-negative", (6, -9), "left"),
    "optimum": ("optimum", (7, -2), "left"),
}


def draw_variance(tables: Mapping[str, Sequence[Row]]) -> Figure:
    """Draw the three panels of the variance."""
    members = tables["variance-members"]
    figure, axes = row_of_panels((8.6, 3.1), (0.8, 1, 1.05))
    plot_lambda_variance(tables["variance-lambda"], axes[0]).set_title("least at λ = ½")
    plot_beta_variance(tables["variance-beta"], members, axes[1]).set_title("two slices")
    plot_beta_plane(tables["variance-plane"], members, axes[2]).set_title("the affine family")
    for ax in axes[:2]:
        ax.legend(loc="upper center", fontsize=7)
    return figure


def plot_lambda_variance(rows: Sequence[Row], ax: Axes) -> Axes:
    """Plot the variance of `lambda_rows` against λ, exact as a line and simulated as points."""
    ax.axvline(0.5, color="0.6", lw=0.8, ls=":")
    _plot_variance(rows, "lam", ax, color=BLUE, marker="o", label="exact")
    ax.plot([], [], "o", ms=3, color=BLUE, mfc="white", label="simulated, ± 95%")
    least = min(rows, key=lambda row: float(row["exact"]))
    _mark(ax, (least["lam"], least["exact"]), "optimum")
    ax.set(xlabel="λ", ylabel="n × variance of the risk")
    return ax


def plot_beta_variance(rows: Sequence[Row], members: Sequence[Row], ax: Axes) -> Axes:
    """Plot the variance of `beta_rows` on two slices, with the optima of `member_rows`."""
    for direction, color, marker, title in (
        ("same", BLUE, "o", "β₊ = β₋ = β"),
        ("opposite", ORANGE, "s", "β₊ = −β₋ = β"),
    ):
        line = where(rows, "direction", direction)
        _plot_variance(line, "beta", ax, color=color, marker=marker, label=title)
    near = {
        "confdiff": ((7, -2), "left"),
        "sconf": ((8, 2), "left"),
        "sconfconfdiff": ((-8, -4), "right"),
    }
    for member in members:
        name, beta, exact = member["member"], member["beta_plus"], member["exact"]
        if name in ("optimum-same", "optimum-opposite"):
            _mark(ax, (beta, exact), "optimum")
        elif name in near:
            _mark(ax, (beta, exact), name)
            note(ax, _MEMBERS[name][0], (beta, exact), near[name][0], ha=near[name][1])
    ax.set(xlabel="β", ylabel="n × variance of the risk", yscale="log")
    return ax


def plot_beta_plane(rows: Sequence[Row], members: Sequence[Row], ax: Axes) -> Axes:
    """Plot the variance of `plane_rows` relative to the optimum, with members of the family."""
    least = min(member["exact"] for member in members)
    plus, minus = (sorted({row[name] for row in rows}) for name in ("beta_plus", "beta_minus"))
    values = {(row["beta_plus"], row["beta_minus"]): row["exact"] / least for row in rows}
    grid = np.array([[values[p, m] for p in plus] for m in minus])
    levels = [1.1, 1.5, 2, 3, 5, 10, 20, 40]
    depth = np.log(grid)
    ax.contourf(plus, minus, depth, 48, cmap="Blues", vmax=2 * depth.max())
    lines = ax.contour(plus, minus, grid, levels, colors="0.35", linewidths=0.7)
    ax.clabel(lines, levels[1:], fmt="%g×", fontsize=6)
    ends = np.array([min(plus), max(plus)])
    ax.plot(ends, ends, color=BLUE, lw=1, ls="--")
    ax.plot(ends, -ends, color=ORANGE, lw=1, ls="--")
    for member in members:
        if member["member"] in _MEMBERS:
            title, shift, side = _MEMBERS[member["member"]]
            at = member["beta_plus"], member["beta_minus"]
            _mark(ax, at, member["member"])
            box = {"fc": "white", "ec": "none", "alpha": 0.75, "pad": 0.8}
            note(ax, title, at, shift, ha=side, zorder=4, bbox=box)
    limits = {"xlim": (min(plus), max(plus)), "ylim": (min(minus), max(minus))}
    ax.set(xlabel="β₊", ylabel="β₋", **limits)
    return ax


def _mark(ax: Axes, at: tuple[float, float], member: str) -> None:
    """Mark a member of the family in the method's colour, or an optimum as a star."""
    if member == "optimum":
        ax.plot(*at, "*", ms=11, color=YELLOW, mec="black", zorder=5)
    else:
        style = method_style(f"{member}-abs")  # a full marker shows best on contours
        ax.plot(*at, style.marker, ms=6, color=style.color, mec="white", mew=0.7, zorder=5)


def _plot_variance(
    rows: Sequence[Row], x: str, ax: Axes, *, color: str, marker: str, label: str
) -> None:
    ax.plot(*columns(rows, x, "exact"), color=color, lw=1.3, label=label)
    some = rows[:: max(1, len(rows) // 15)]
    spread = [1.96 * row["standard_error"] for row in some]
    style: dict[str, Any] = {"ms": 3, "lw": 0.8, "color": color, "mfc": "white"}
    positions, simulated = columns(some, x, "simulated")
    ax.errorbar(positions, simulated, spread, fmt=marker, **style)
