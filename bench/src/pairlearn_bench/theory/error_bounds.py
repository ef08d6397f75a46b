"""A task with a known exact risk, and bounds on the excess risk of learning it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from scipy.special import expit, logit

from pairlearn.columns import Floats
from pairlearn.labels import PairLabels
from pairlearn.losses import make_loss
from pairlearn.randomness import stream
from pairlearn.risks import Risk, make_risk
from pairlearn.style import BLUE, GREEN, GREY, ORANGE
from pairlearn.training.devices import at_most_threads
from pairlearn_bench import bounds
from pairlearn_bench.bounds import Form
from pairlearn_bench.theory.rows import (
    Row,
    columns,
    normal_shape,
    note,
    rounded,
    row_of_panels,
    where,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Failure probability of the bounds, which are compared with the 95% quantile of the errors.
DELTA = 0.05

#: The trained estimators, in the order of the theorems 3.5, 3.9 and B.1.
ESTIMATORS = ("sconfconfdiff-none", "sconfconfdiff-abs", "convex-0.5-none")


@dataclass(frozen=True)
class TwoGaussians:
    """Two Gaussian classes, linear classifiers ‖w‖ ≤ B, sigmoid loss: the exact risk is known.

    x ~ N(±m e₁, I) in `dimension` features, and a constant feature carries the bias. The sigmoid
    loss has L = ¼ and C = 1 for all logits, so the features need no bound: the Rademacher
    complexity is at most B√(E‖x‖²/n). The risk, a one-dimensional integral, depends on w only
    through w₁, the norm of the weights and the bias.

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
        masses = normal_shape(nodes) / normal_shape(nodes).sum()
        noise = np.linalg.norm(weights[..., :-1], axis=-1)[..., None] * nodes
        shift, bias = self.mean * weights[..., :1], weights[..., -1:]
        plus = self.prior * expit(-(bias + shift + noise)) @ masses
        minus = (1 - self.prior) * expit(bias - shift + noise) @ masses
        return np.stack([plus, minus], axis=-1)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[torch.Tensor, PairLabels]:
        """Draw features (n, 2, dimension + 1) of n pairs, with labels from true posteriors."""
        x = rng.standard_normal((n, 2, self.dimension + 1))
        x[..., 0] += np.where(rng.random((n, 2)) < self.prior, self.mean, -self.mean)
        x[..., -1] = 1.0
        r = expit(2 * self.mean * x[..., 0] + logit(self.prior))
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
        minimiser: Floats = weights().detach().numpy()
        return minimiser

    def error_bounds(self, n: int) -> dict[str, dict[str, float | None]]:
        """For each estimator the bounds on its excess risk: printed, rederived and uniform."""
        size = math.sqrt(self.mean**2 + self.dimension + 1)
        complexity = bounds.linear_rademacher(n=n, weight_norm=self.radius, feature_radius=size)
        loss = make_loss(self.loss)
        setting: dict[str, Any] = {
            "n": n,
            "delta": DELTA,
            "prior": self.prior,
            "lipschitz": loss.lipschitz(math.inf),
            "loss_bound": loss.bound(math.inf),
            "rademacher": complexity,
        }
        corrected = {**setting, "correction_lipschitz": 1.0}
        limits: dict[str, dict[str, float | None]] = {name: {} for name in ESTIMATORS}
        for form in get_args(Form):
            partial = {"n": n, "prior": self.prior, "loss_bound": 1.0, "form": form}
            delta = bounds.delta_scd(floors=self.floors, **partial)
            values = (
                bounds.estimation_error(**setting, form=form),
                bounds.corrected_estimation_error(**corrected, negativity=delta, form=form),
                bounds.convex_estimation_error(**setting, gamma=0.5, form=form),
            )
            for name, value in zip(ESTIMATORS, values, strict=True):
                limits[name][f"bound_{form}"] = value
        uniform = bounds.uniform_corrected_estimation_error(**corrected)
        for name in ESTIMATORS:
            limits[name]["bound_uniform"] = uniform if name.endswith("-abs") else None
        return limits

    def _lowest(self, classes: tuple[int, int]) -> float:
        """The lowest sum of these class risks in the ball.

        Only w₁ and the bias reduce the risk, and longer weights do so more: it is on a circle.
        """
        center, width, lowest = 0.0, math.pi, math.inf
        for _ in range(3):
            angles = center + np.linspace(-width, width, 1001)
            weights = np.zeros((len(angles), self.dimension + 1))
            weights[:, 0], weights[:, -1] = np.cos(angles), np.sin(angles)
            values = self.class_risks(self.radius * weights) @ np.array(classes)
            center, width, lowest = float(angles[values.argmin()]), width / 250, values.min()
        return float(lowest)


def bound_rows(n: int, *, repetitions: int, seed: int = 0) -> list[Row]:
    """Bounds on the excess risk at n pairs, and the excess risk of trained minimisers.

    For each estimator: the mean, 95% quantile and maximum of R(ĝ) − R(g*) over repetitions, with
    exact risks; the share of them in which a partial risk of ĝ was negative, so that a correction
    would act; and the bounds.

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
    # On several threads such small operations lose more by waiting than they gain.
    with at_most_threads(1):
        for repetition in range(repetitions):
            features, labels = task.sample(n, stream(seed, "bounds", n, repetition))
            for name, risk in risks.items():
                # A corrected risk is nowhere below the unbiased one, and equal to it where no
                # part is negative: if that holds at the unbiased minimiser, both have the same.
                if name != "sconfconfdiff-abs" or negative["sconfconfdiff-none"][-1]:
                    weights = task.minimise(risk, features, labels)
                z, z_prime = (features @ torch.from_numpy(weights)).unbind(1)
                parts = risk.partial_risks(z, z_prime, labels.similarity, labels.difference)
                negative[name].append(bool((parts < 0).any()))
                excess[name].append(float(task.class_risks(weights).sum()) - task.best_risk)
    limits = task.error_bounds(n)
    return [
        rounded(
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


def draw_bounds(rows: Sequence[Row]) -> Figure:
    """Draw a panel for each estimator, with a common scale and legend."""
    figure, axes = row_of_panels((8.6, 3.2), (1, 1, 1), sharey=True)
    titles = {
        "sconfconfdiff-none": "SconfConfDiff, Theorem 3.5",
        "sconfconfdiff-abs": "SconfConfDiff-ABS, Theorem 3.9",
        "convex-0.5-none": "Convex(½), Theorem B.1",
    }
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        plot_bounds(where(rows, "risk", name), ax).set_title(title)
        ax.label_outer()
    beside: Any = {"xycoords": ("axes fraction", "data"), "ha": "right", "color": GREY}
    note(axes[0], "the loss is at most 1", (0.98, 1), (0, 2), **beside)
    handles, names = axes[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5)
    return figure


def plot_bounds(rows: Sequence[Row], ax: Axes) -> Axes:
    """Plot the bounds of one estimator from `bound_rows` with its measured excess risk."""
    sizes, mean, high = columns(rows, "n", "excess_mean", "excess_q95")
    ax.axhline(1, color="0.6", lw=0.8)
    for column, color, style, title in (
        ("bound_printed", ORANGE, "--", "bound, printed"),
        ("bound_rederived", BLUE, "-", "bound, rederived"),
        ("bound_uniform", GREEN, "-.", "bound without Δ (ours)"),
    ):
        (values,) = columns(rows, column)
        if any(value is not None for value in values):
            ax.plot(sizes, values, style, color=color, lw=1.5, label=title)
    dots: dict[str, Any] = {"color": "black", "ls": ":", "lw": 0.8}
    ax.plot(sizes, high, "^", ms=4.5, label="measured, 95% quantile", **dots)
    ax.plot(sizes, mean, "o", ms=4, mfc="white", label="measured, mean", **dots)
    for row in (rows[0], rows[-1]):
        best = least_bound(row)
        arrow = {"arrowstyle": "<->", "color": GREY, "lw": 0.8, "shrinkA": 3, "shrinkB": 3}
        ax.annotate("", (row["n"], best), (row["n"], row["excess_q95"]), arrowprops=arrow)
        shift, side = (4, "left") if row is rows[0] else (-4, "right")
        at = row["n"], np.sqrt(best * row["excess_q95"])
        factor = float(f"{best / row['excess_q95']:.2g}")  # two digits
        note(ax, f"× {int(factor):,}", at, (shift, 0), ha=side, va="center", color=GREY, fontsize=8)
    ax.set(xscale="log", yscale="log", xlabel="pairs n", ylabel="excess risk")
    return ax


def least_bound(row: Row) -> float:
    """The smallest of the proved bounds on an excess risk."""
    limits = (row["bound_rederived"], row["bound_uniform"])
    return float(min(limit for limit in limits if limit is not None))
