"""The class prior: errors of its estimate, and coverage of its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit, logit

from pairlearn.columns import Floats
from pairlearn.labels import PairLabels
from pairlearn.prior import estimate_prior
from pairlearn.randomness import stream
from pairlearn.style import BLUE, GREEN, GREY, ORANGE, PURPLE, label_axes
from pairlearn_bench.runs import grouped
from pairlearn_bench.theory.rows import Row, columns, normal_shape, note, rounded, row_of_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: μ of the soft annotator: logit r = μu + logit π₊ with u ~ N(±μ/2, 1).
SEPARATION = 5.0

_INTERVALS: tuple[Literal["normal", "mcdiarmid"], ...] = ("normal", "mcdiarmid")
_PRIOR_STYLES = ((BLUE, "o"), (GREEN, "s"), (PURPLE, "^"), (ORANGE, "D"))


def prior_rows(prior: float, sizes: Sequence[int], *, repetitions: int, seed: int = 0) -> list[Row]:
    """Errors and coverage of `estimate_prior` over simulated tables of similarities.

    For each number n of pairs in ``sizes``, over the ``repetitions``: the bias, the root mean
    square error and its limit for large n, and for both intervals the share that contains π₊ and
    the mean width. The estimator is given the majority, which is "positive" at ½.

    Examples
    --------
    >>> (row,) = prior_rows(0.2, [300], repetitions=50)
    >>> 0 < row["rmse"] < 0.1
    True
    """
    return [_prior_row(prior, n, repetitions, seed) for n in sizes]


def limiting_prior_error(prior: float, n: int) -> float:
    """Root mean square error of the class prior for large n, in closed form.

    With σ the standard deviation of s, mean(s) is off by σZ/√n, Z standard normal. Through the
    square root that is σ/(2|π₊ − π₋|√n), and at ½, where only Z > 0 counts, √(σ/√(8π)) n^−¼. Here
    σ² = 4(E[d²]² − E[d]⁴) with d = r − ½.

    Examples
    --------
    >>> round(limiting_prior_error(0.2, 400) / limiting_prior_error(0.2, 1600), 6)
    2.0
    """
    u = np.linspace(-SEPARATION / 2 - 10, SEPARATION / 2 + 10, 4001)
    plus, minus = normal_shape(u - SEPARATION / 2), normal_shape(u + SEPARATION / 2)
    density = prior * plus + (1 - prior) * minus
    d = expit(SEPARATION * u + logit(prior)) - 0.5
    square = float(density @ d**2 / density.sum())
    sigma = 2 * math.sqrt(square**2 - (prior - 0.5) ** 4)
    if prior == 0.5:
        return math.sqrt(sigma / math.sqrt(8 * math.pi * n))
    return sigma / (2 * abs(2 * prior - 1) * math.sqrt(n))


def draw_prior(rows: Sequence[Row]) -> Figure:
    """Draw error and coverage side by side, with one legend."""
    figure, axes = row_of_panels((7.2, 3.1), (1, 1))
    plot_prior_error(rows, axes[0]).set_title("error of the estimated class prior")
    plot_prior_coverage(rows, axes[1]).set_title("intervals that contain it")
    handles, names = axes[0].get_legend_handles_labels()
    others, other_names = axes[1].get_legend_handles_labels()
    style: Any = {"loc": "outside lower center", "ncols": 7, "columnspacing": 1.3}
    figure.legend(handles + others, names + other_names, **style)
    return figure


def plot_prior_error(rows: Sequence[Row], ax: Axes) -> Axes:
    """Plot the root mean square error of `prior_rows` against n, with its limit as a line."""
    for prior, line, color, marker in _by_prior(rows):
        sizes, limits, errors = columns(line, "n", "rmse_limit", "rmse")
        ax.plot(sizes, limits, color=color, lw=0.9)
        if prior in (rows[0]["prior"], 0.5):
            at = sizes[len(line) // 2], limits[len(line) // 2]
            root, shift, side = (4, (8, 6), "left") if prior == 0.5 else (2, (8, -14), "right")
            note(ax, rf"$\propto n^{{-1/{root}}}$", at, shift, color=color, ha=side, fontsize=8)
        style: dict[str, Any] = {"ms": 4.5, "color": color, "mec": "white", "mew": 0.5}
        ax.plot(sizes, errors, marker, label=f"π₊ = {prior:g}", **style)
    ax.plot([], [], color=GREY, lw=0.9, label="limit, large n")
    text = "exp(−n), as printed, would be\n$10^{-13}$ at n = 30: far below"
    ax.text(0.03, 0.04, text, transform=ax.transAxes, fontsize=7, color=GREY)
    ax.set(xscale="log", yscale="log", xlabel="pairs n", ylabel="root mean square error of π₊")
    return ax


def plot_prior_coverage(rows: Sequence[Row], ax: Axes) -> Axes:
    """Plot how often the two 95% intervals of `prior_rows` contain the class prior.

    The axis is logarithmic in the share of misses, as those of accuracies are in the error.
    """
    ax.axhline(0.05, color="black", lw=0.8)
    for number, (_, line, color, marker) in enumerate(_by_prior(rows)):
        shifted = [row["n"] * 1.07 ** (number - 1.5) for row in line]  # keeps markers apart
        for interval, fill in (("normal", color), ("mcdiarmid", "white")):
            shares, counts = np.array(columns(line, f"coverage_{interval}", "repetitions"))
            missed = np.maximum(1 - shares, 0.5 / counts)  # this axis cannot show 0
            spread = 1.96 * np.sqrt(missed * (1 - missed) / counts)
            below = np.minimum(spread, missed / 2)
            style: dict[str, Any] = {"ms": 4, "color": color, "mfc": fill, "lw": 0.7, "mew": 0.9}
            ax.errorbar(shifted, missed, [below, spread], fmt=marker, **style)
    ax.plot([], [], "o", color=GREY, ms=4, label="normal")
    ax.plot([], [], "o", color=GREY, mfc="white", ms=4, label="McDiarmid")
    ax.set(xscale="log", yscale="log", ylim=(1, 5e-5))
    ticks = (0, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
    ax.set_yticks([1 - tick for tick in ticks], [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    return label_axes(ax, "pairs n", "95% intervals that hold (log of misses)")


def _prior_row(prior: float, n: int, repetitions: int, seed: int) -> Row:
    rng = stream(seed, "prior error", n, round(1e6 * prior))
    majority: Literal["positive", "negative"] = "positive" if prior >= 0.5 else "negative"
    values = np.empty((repetitions, 2, 3))
    for table in values:
        similarity = _soft_similarities(rng, prior, n)
        estimates = [estimate_prior(similarity, majority, interval=name) for name in _INTERVALS]
        table[:] = [(e.value - prior, e.low <= prior <= e.high, e.high - e.low) for e in estimates]
    errors = values[:, 0, 0]
    coverage, width = values[:, :, 1:].mean(0).T
    row = {
        "prior": prior,
        "n": n,
        "repetitions": repetitions,
        "bias": errors.mean(),
        "rmse": math.sqrt(np.square(errors).mean()),
        "rmse_limit": limiting_prior_error(prior, n),
    }
    row |= {f"coverage_{name}": value for name, value in zip(_INTERVALS, coverage, strict=True)}
    row |= {f"width_{name}": value for name, value in zip(_INTERVALS, width, strict=True)}
    return rounded(row)


def _soft_similarities(rng: np.random.Generator, prior: float, n: int) -> Floats:
    positive = rng.random((2, n)) < prior
    u = rng.standard_normal((2, n)) + np.where(positive, SEPARATION / 2, -SEPARATION / 2)
    r, r_prime = expit(SEPARATION * u + logit(prior))
    similarity: Floats = PairLabels.from_posteriors(r, r_prime).similarity
    return similarity


def _by_prior(rows: Sequence[Row]) -> list[tuple[float, list[Row], str, str]]:
    lines = grouped(rows, lambda row: row["prior"]).items()
    return [(prior, line, *_PRIOR_STYLES[k % 4]) for k, (prior, line) in enumerate(lines)]
