"""The theory in numbers: geometry, class prior, variance, and bounds beside what is measured.

Every function is pure and returns rows, dictionaries with stable columns: what it draws at
random follows from its seed alone. `compute_theory` gathers them into tables, `summarize_theory`
says in a few numbers what they show, and `pairlearn.experiments.theory_figures` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn import bounds
from pairlearn.labels import PairLabels
from pairlearn.losses import make_loss
from pairlearn.prior import estimate_prior
from pairlearn.risks import (
    ConfDiff,
    NonNegative,
    Risk,
    Sconf,
    SconfConfDiff,
    affine_table,
    contract,
    make_risk,
    pair_moments,
)
from pairlearn.sampling import stream

__all__ = [
    "FULL",
    "QUICK",
    "SmallWorld",
    "TheorySettings",
    "TwoGaussians",
    "beta_rows",
    "bound_rows",
    "compute_theory",
    "geometry_rows",
    "lambda_rows",
    "limiting_prior_error",
    "log_log_slope",
    "member_rows",
    "plane_rows",
    "prior_rows",
    "summarize_theory",
]

Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, list[Row]]
Progress: TypeAlias = Callable[[int, int, str], None]

SEPARATION = 5.0
"""μ of the soft annotator: logit r = μu + logit π₊ with u ~ N(±μ/2, 1)."""

DELTA = 0.05
"""The bounds may fail with this probability, so they face the 95% quantile of the errors."""


@dataclass(frozen=True)
class TheorySettings:
    """How much to compute.

    Examples
    --------
    >>> FULL.prior_repetitions > QUICK.prior_repetitions
    True
    """

    priors: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5)
    prior_sizes: tuple[int, ...] = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
    prior_repetitions: int = 4_000
    variance_repetitions: int = 20_000
    bound_sizes: tuple[int, ...] = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
    bound_repetitions: int = 200


FULL = TheorySettings()
QUICK = TheorySettings(
    prior_sizes=(30, 300, 3_000),
    prior_repetitions=200,
    variance_repetitions=2_000,
    bound_sizes=(100, 1_000),
    bound_repetitions=6,
)


# ---- geometry -----------------------------------------------------------------------------------


def geometry_rows(levels: int = 11, points: int = 21) -> list[Row]:
    """Lines of constant r in the plane of the two labels.

    For a fixed r they are straight, s = 1 − r + (2r − 1)(c + r), and touch the parabola
    s = (1 − c²)/2 where r' = 1 − r: the edge of the feasible region is their envelope. The
    line of constant r' is that of r = 1 − r', so each label lies on two tangents, one for r
    and one for r', and does not say which is which.

    Parameters
    ----------
    levels, points : int
        Number of values of r, and of r' on each line; both from 0 to 1.

    Returns
    -------
    list of dict
        r, r_prime, difference, similarity, and branch: the sign of r + r' − 1.

    Examples
    --------
    >>> geometry_rows(levels=3, points=3)[1]
    {'r': 0.0, 'r_prime': 0.5, 'difference': 0.5, 'similarity': 0.5, 'branch': -1}
    """
    r, r_prime = (
        axis.ravel()
        for axis in np.meshgrid(np.linspace(0, 1, levels), np.linspace(0, 1, points), indexing="ij")
    )
    labels = PairLabels.from_posteriors(r, r_prime)
    branch = np.sign(np.round(r + r_prime - 1, 9)).astype(int)
    columns = (r, r_prime, labels.difference, labels.similarity, branch)
    names = ("r", "r_prime", "difference", "similarity", "branch")
    return [_rounded(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


# ---- class prior --------------------------------------------------------------------------------


def prior_rows(prior: float, sizes: Sequence[int], *, repetitions: int, seed: int = 0) -> list[Row]:
    """Errors and coverage of `estimate_prior` over simulated tables of similarities.

    Parameters
    ----------
    prior : float
        π₊; the estimator is told the majority, which is "positive" at ½.
    sizes : sequence of int
        Numbers n of pairs in a table.
    repetitions : int
        Number of tables of each size.
    seed : int
        The tables follow from it.

    Returns
    -------
    list of dict
        For each n the bias and the root mean square error, the latter's limit for large n,
        and for both intervals the share that contains π₊ and the mean width.

    Examples
    --------
    >>> (row,) = prior_rows(0.2, [300], repetitions=50)
    >>> 0 < row["rmse"] < 0.1
    True
    """
    return [_prior_row(prior, n, repetitions, seed) for n in sizes]


def _prior_row(prior: float, n: int, repetitions: int, seed: int) -> Row:
    rng = stream(seed, "prior error", n, round(1e6 * prior))
    majority: Literal["positive", "negative"] = "positive" if prior >= 0.5 else "negative"
    errors, inside, widths = [], [], []
    for _ in range(repetitions):
        similarity = _soft_similarities(rng, prior, n)
        estimates = [
            estimate_prior(similarity, majority),
            estimate_prior(similarity, majority, interval="mcdiarmid"),
        ]
        errors.append(estimates[0].value - prior)
        inside.append([e.low <= prior <= e.high for e in estimates])
        widths.append([e.high - e.low for e in estimates])
    coverage, width = np.mean(inside, axis=0), np.mean(widths, axis=0)
    row = {
        "prior": prior,
        "n": n,
        "repetitions": repetitions,
        "bias": np.mean(errors),
        "rmse": math.sqrt(np.mean(np.square(errors))),
        "rmse_limit": limiting_prior_error(prior, n),
        "coverage_normal": coverage[0],
        "coverage_mcdiarmid": coverage[1],
        "width_normal": width[0],
        "width_mcdiarmid": width[1],
    }
    return _rounded(row)


def limiting_prior_error(prior: float, n: int) -> float:
    """Root mean square error of the class prior for large n, in closed form.

    With σ the standard deviation of s, mean(s) is off by σZ/√n, Z standard normal. Through
    the square root that is σ/(2|π₊ − π₋|√n), and at ½, where only Z > 0 counts,
    √(σ/√(8π)) n^−¼. Here σ² = 4(E[d²]² − E[d]⁴) with d = r − ½.

    Examples
    --------
    >>> round(limiting_prior_error(0.2, 400) / limiting_prior_error(0.2, 1600), 6)
    2.0
    >>> round(limiting_prior_error(0.5, 100) / limiting_prior_error(0.5, 1600), 6)
    2.0
    """
    u = np.linspace(-SEPARATION / 2 - 10, SEPARATION / 2 + 10, 4001)
    density = prior * _normal(u - SEPARATION / 2) + (1 - prior) * _normal(u + SEPARATION / 2)
    d = _sigmoid(SEPARATION * u + _logit(prior)) - 0.5
    square = float(density @ d**2 / density.sum())
    sigma = 2 * math.sqrt(square**2 - (prior - 0.5) ** 4)
    if prior == 0.5:
        return math.sqrt(sigma / math.sqrt(8 * math.pi * n))
    return sigma / (2 * abs(2 * prior - 1) * math.sqrt(n))


def log_log_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y against log x by least squares: the exponent of a power law.

    Examples
    --------
    >>> round(log_log_slope([1, 10, 100], [5, 0.5, 0.05]), 6)
    -1.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _soft_similarities(rng: np.random.Generator, prior: float, n: int) -> Floats:
    positive = rng.random((2, n)) < prior
    u = rng.standard_normal((2, n)) + np.where(positive, SEPARATION / 2, -SEPARATION / 2)
    r, r_prime = _sigmoid(SEPARATION * u + _logit(prior))
    similarity: Floats = PairLabels.from_posteriors(r, r_prime).similarity
    return similarity


# ---- variance -----------------------------------------------------------------------------------


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


SAME, OPPOSITE = (1.0, 1.0), (1.0, -1.0)
"""Slices of the affine family: ConfDiff to SconfConfDiff, and ConfDiff to Sconf."""


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
        _rounded({"beta_plus": plus, "beta_minus": minus, "exact": world.variance(table)})
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
        _rounded(
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
        _rounded({**p, "exact": world.variance(t), "simulated": v, "standard_error": v * error})
        for p, t, v in zip(places, tables, sampled, strict=True)
    ]


# ---- bounds and measured excess risk ------------------------------------------------------------


@dataclass(frozen=True)
class TwoGaussians:
    """Two Gaussian classes, linear classifiers ‖w‖ ≤ B, sigmoid loss: the exact risk is known.

    x ~ N(±m e₁, I) in `dimension` features, and a constant feature carries the bias. The
    sigmoid loss has L = ¼ and C = 1 for all logits, so the features need no bound: the
    Rademacher complexity is at most B√(E‖x‖²/n). The risk depends on w only through w₁, the
    norm of the weights and the bias, and is a one-dimensional integral.

    Examples
    --------
    >>> task = TwoGaussians()
    >>> round(task.best_risk, 4), [round(floor, 4) for floor in task.floors]
    (0.181, [0.0085, 0.0339, 0.0085, 0.0339])
    """

    prior: float = 0.2
    mean: float = 1.0
    dimension: int = 10
    radius: float = 2.0
    loss: str = "sigmoid"
    best_risk: float = field(init=False)
    floors: tuple[float, float, float, float] = field(init=False)

    def __post_init__(self) -> None:
        positive, negative = (self._lowest(classes) / 2 for classes in ((1, 0), (0, 1)))
        object.__setattr__(self, "best_risk", self._lowest((1, 1)))
        object.__setattr__(self, "floors", (positive, negative, positive, negative))

    def class_risks(self, weights: Floats) -> Floats:
        """Exact π₊E₊[ℓ(g, +1)] and π₋E₋[ℓ(g, −1)] of weights (..., dimension + 1)."""
        nodes = np.linspace(-9, 9, 361)
        masses = _normal(nodes) / _normal(nodes).sum()
        noise = np.linalg.norm(weights[..., :-1], axis=-1)[..., None] * nodes
        shift, bias = self.mean * weights[..., :1], weights[..., -1:]
        plus = self.prior * _sigmoid(-(bias + shift + noise)) @ masses
        minus = (1 - self.prior) * _sigmoid(bias - shift + noise) @ masses
        return np.stack([plus, minus], axis=-1)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[torch.Tensor, PairLabels]:
        """Features (n, 2, dimension + 1) of n pairs and the labels from their true posteriors."""
        x = rng.standard_normal((n, 2, self.dimension + 1))
        x[..., 0] += np.where(rng.random((n, 2)) < self.prior, self.mean, -self.mean)
        x[..., -1] = 1.0
        r = _sigmoid(2 * self.mean * x[..., 0] + _logit(self.prior))
        labels = PairLabels.from_posteriors(*torch.from_numpy(r.T.copy()))
        return torch.from_numpy(x), labels

    def minimise(self, risk: Risk, features: torch.Tensor, labels: PairLabels) -> Floats:
        """Weights in the ball that minimise the empirical risk, by L-BFGS from zero."""
        v = torch.zeros(features.shape[-1], dtype=features.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [v], max_iter=60, tolerance_grad=1e-9, tolerance_change=1e-12,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def weights() -> torch.Tensor:
            # B·sin‖v‖ is at most B, and smooth where the best classifiers are: on the sphere.
            return self.radius * v * torch.sinc(torch.linalg.vector_norm(v) / math.pi)

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            logits = features @ weights()
            value: torch.Tensor = risk(*logits.unbind(1), labels.similarity, labels.difference)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        optimiser.step(closure)  # type: ignore[no-untyped-call]
        found: Floats = weights().detach().numpy()
        return found

    def error_bounds(self, n: int) -> dict[str, dict[str, float | None]]:
        """For each estimator the bounds on its excess risk: printed, rederived and uniform."""
        size = math.sqrt(self.mean**2 + self.dimension + 1)
        loss = make_loss(self.loss)
        given: dict[str, Any] = {
            "n": n,
            "delta": DELTA,
            "prior": self.prior,
            "lipschitz": loss.lipschitz(math.inf),
            "loss_bound": loss.bound(math.inf),
            "rademacher": bounds.linear_rademacher(
                n=n, weight_norm=self.radius, feature_radius=size
            ),
        }
        forms: tuple[bounds.Form, bounds.Form] = ("printed", "rederived")
        found: dict[str, dict[str, float | None]] = {name: {} for name in ESTIMATORS}
        for form in forms:
            negativity = bounds.delta_scd(
                n=n, prior=self.prior, loss_bound=1.0, floors=self.floors, form=form
            )
            values = (
                bounds.estimation_error(**given, form=form),
                bounds.corrected_estimation_error(
                    **given, correction_lipschitz=1.0, negativity=negativity, form=form
                ),
                bounds.convex_estimation_error(**given, gamma=0.5, form=form),
            )
            for name, value in zip(ESTIMATORS, values, strict=True):
                found[name][f"bound_{form}"] = value
        uniform = bounds.uniform_corrected_estimation_error(**given, correction_lipschitz=1.0)
        for name in ESTIMATORS:
            found[name]["bound_uniform"] = uniform if name.endswith("-abs") else None
        return found

    def _lowest(self, classes: tuple[int, int]) -> float:
        """The lowest sum of these class risks in the ball.

        Only w₁ and the bias can help, and the more of them the better: it lies on a circle.
        """
        center, width, lowest = 0.0, math.pi, math.inf
        for _ in range(3):
            angles = center + np.linspace(-width, width, 1001)
            weights = np.zeros((len(angles), self.dimension + 1))
            weights[:, 0], weights[:, -1] = np.cos(angles), np.sin(angles)
            values = self.class_risks(self.radius * weights) @ np.array(classes)
            center, width, lowest = float(angles[values.argmin()]), width / 250, values.min()
        return float(lowest)


ESTIMATORS = ("sconfconfdiff-none", "sconfconfdiff-abs", "convex-0.5-none")
"""What is trained, in the order of the theorems 3.5, 3.9 and B.1."""


def bound_rows(n: int, *, repetitions: int, seed: int = 0) -> list[Row]:
    """Bounds on the excess risk at n pairs, and the excess risk of trained minimisers.

    Returns
    -------
    list of dict
        For each estimator: the mean, 95% quantile and maximum of R(ĝ) − R(g*) over
        repetitions, with exact risks; the share of them in which a partial risk of ĝ was
        negative, so that a correction would act; and the bounds.

    Examples
    --------
    >>> rows = bound_rows(100, repetitions=2)
    >>> all(0 <= row["excess_max"] < row["bound_rederived"] for row in rows)
    True
    """
    task = TwoGaussians()
    risks = {name: make_risk(name, prior=task.prior, loss=task.loss) for name in ESTIMATORS}
    excess: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    negative: dict[str, list[bool]] = {name: [] for name in ESTIMATORS}
    with _one_thread():
        for repetition in range(repetitions):
            features, labels = task.sample(n, stream(seed, "bounds", n, repetition))
            for name, risk in risks.items():
                # A corrected risk is nowhere below its unbiased one. Where that has no negative
                # part at its minimiser, the two agree there, and the minimiser is the same.
                if name != "sconfconfdiff-abs" or negative["sconfconfdiff-none"][-1]:
                    weights = task.minimise(risk, features, labels)
                z, z_prime = (features @ torch.from_numpy(weights)).unbind(1)
                parts = risk.partial_risks(z, z_prime, labels.similarity, labels.difference)
                negative[name].append(bool((parts < 0).any()))
                excess[name].append(float(task.class_risks(weights).sum()) - task.best_risk)
    limits = task.error_bounds(n)
    return [
        _rounded(
            {
                "n": n,
                "risk": name,
                "repetitions": repetitions,
                "excess_mean": np.mean(excess[name]),
                "excess_q95": np.quantile(excess[name], 1 - DELTA),
                "excess_max": max(excess[name]),
                "negative_share": np.mean(negative[name]),
                **limits[name],
            }
        )
        for name in ESTIMATORS
    ]


# ---- everything ---------------------------------------------------------------------------------


def compute_theory(
    settings: TheorySettings = FULL, *, seed: int = 0, progress: Progress | None = None
) -> Tables:
    """All tables by name: what `pairlearn bench theory` writes.

    Parameters
    ----------
    settings : TheorySettings
        How much to compute.
    seed : int
        Everything follows from it.
    progress : callable, optional
        Called with the steps done, all steps, and what comes next.

    Returns
    -------
    dict of str to list of dict
        geometry, prior, variance-lambda, variance-beta, variance-plane,
        variance-members, bounds.

    Examples
    --------
    >>> tiny = TheorySettings((0.2,), (30,), 5, 10, (30,), 1)
    >>> list(compute_theory(tiny))[:3]
    ['geometry', 'prior', 'variance-lambda']
    """
    chosen = {"repetitions": settings.prior_repetitions, "seed": seed}
    steps: list[tuple[str, Callable[[], list[Row]]]] = [("geometry", geometry_rows)]
    for prior in settings.priors:
        for n in settings.prior_sizes:
            steps.append(("prior", partial(prior_rows, prior, [n], **chosen)))
    chosen = {"repetitions": settings.variance_repetitions, "seed": seed}
    steps += [
        ("variance-lambda", partial(lambda_rows, **chosen)),
        ("variance-beta", partial(beta_rows, **chosen)),
        ("variance-plane", plane_rows),
        ("variance-members", member_rows),
    ]
    chosen = {"repetitions": settings.bound_repetitions, "seed": seed}
    for n in settings.bound_sizes:
        steps.append(("bounds", partial(bound_rows, n, **chosen)))
    tables: Tables = {}
    for done, (name, step) in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), name)
        tables.setdefault(name, []).extend(step())
    return tables


def summarize_theory(tables: Mapping[str, Sequence[Row]]) -> dict[str, float]:
    """What the tables show, in a few numbers.

    Examples
    --------
    >>> tiny = TheorySettings((0.2,), (100, 1000), 20, 10, (30, 100), 2)
    >>> summary = summarize_theory(compute_theory(tiny))
    >>> summary["least variance at lambda"]
    0.5
    """
    summary: dict[str, float] = {}
    for prior in dict.fromkeys(row["prior"] for row in tables["prior"]):
        # Below 100 pairs a prior of .3 is not yet far from ½.
        rows = [r for r in tables["prior"] if r["prior"] == prior and r["n"] >= 100]
        slope = log_log_slope([r["n"] for r in rows], [r["rmse"] for r in rows])
        summary[f"exponent of the prior's error at {prior:g}"] = slope
    least = min(tables["variance-lambda"], key=lambda row: float(row["exact"]))
    summary["least variance at lambda"] = least["lam"]
    for row in tables["variance-members"]:
        if row["member"] != "optimum":
            summary[f"variance of {row['member']} over the optimum's"] = row["relative"]
    for name in ESTIMATORS:
        rows = [row for row in tables["bounds"] if row["risk"] == name]
        slope = log_log_slope([r["n"] for r in rows], [r["excess_mean"] for r in rows])
        summary[f"exponent of the excess risk, {name}"] = slope
        for row in (rows[0], rows[-1]):
            limits = (row["bound_rederived"], row["bound_uniform"])
            factor = min(limit for limit in limits if limit is not None) / row["excess_q95"]
            summary[f"least bound over excess risk at n = {row['n']}, {name}"] = factor
    return _rounded(summary)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Operations as small as these lose more by waiting for other threads than they gain."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _rounded(row: Row) -> Row:
    """Numbers with six digits: what is beyond them differs between machines."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else _plain(value)
        for name, value in row.items()
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-z))


def _logit(p: float) -> float:
    return math.log(p / (1 - p))


def _normal(z: Floats) -> Floats:
    """The standard normal density, up to its constant."""
    return np.exp(-(z**2) / 2)
