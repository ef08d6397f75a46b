"""Bounds on the excess risk beside the excess risk of trained minimisers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from pairlearn.data.sampling import stream
from pairlearn.experiments.theory.numbers import Row, rounded
from pairlearn.experiments.theory.panels import row_of_panels
from pairlearn.experiments.theory.two_gaussians import DELTA, ESTIMATORS, TwoGaussians
from pairlearn.risks import make_risk
from pairlearn.style import BLUE, GREEN, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bound_rows", "draw_bounds", "plot_bounds"]


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
    """A panel for each estimator, with one scale and one legend.

    Examples
    --------
    >>> len(draw_bounds(bound_rows(30, repetitions=1)).axes)
    3
    """
    figure, axes = row_of_panels((8.6, 3.2), (1, 1, 1), sharey=True)
    titles = {
        "sconfconfdiff-none": "SconfConfDiff, Theorem 3.5",
        "sconfconfdiff-abs": "SconfConfDiff-ABS, Theorem 3.9",
        "convex-0.5-none": "Convex(½), Theorem B.1",
    }
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        plot_bounds([row for row in rows if row["risk"] == name], ax).set_title(title)
        ax.label_outer()
    axes[0].annotate("the loss is at most 1", (0.98, 1), xycoords=("axes fraction", "data"),
                     xytext=(0, 2), textcoords="offset points", ha="right", color=GREY,
                     fontsize=7)  # fmt: skip
    handles, names = axes[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5)
    return figure


def plot_bounds(rows: Sequence[Row], ax: Axes) -> Axes:
    """Bounds on the excess risk of one estimator, and the excess risk that was measured.

    Parameters
    ----------
    rows : sequence of dict
        Of `bound_rows`, of one estimator.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_bounds([], Figure().subplots()).get_ylabel()
    'excess risk'
    """
    sizes = [row["n"] for row in rows]
    ax.axhline(1, color="0.6", lw=0.8)
    for column, color, style, title in (
        ("bound_printed", ORANGE, "--", "bound, printed"),
        ("bound_rederived", BLUE, "-", "bound, rederived"),
        ("bound_uniform", GREEN, "-.", "bound without Δ (ours)"),
    ):
        if any(row[column] is not None for row in rows):
            ax.plot(sizes, [row[column] for row in rows], style, color=color, lw=1.5, label=title)
    mean, high = ([row[name] for row in rows] for name in ("excess_mean", "excess_q95"))
    ax.plot(sizes, high, "^", color="black", ms=4.5, ls=":", lw=0.8, label="measured, 95% quantile")
    ax.plot(sizes, mean, "o", color="black", mfc="white", ms=4, ls=":", lw=0.8,
            label="measured, mean")  # fmt: skip
    for row in (rows[0], rows[-1]) if rows else ():
        best = min(row[k] for k in ("bound_rederived", "bound_uniform") if row[k] is not None)
        arrow = {"arrowstyle": "<->", "color": GREY, "lw": 0.8, "shrinkA": 3, "shrinkB": 3}
        ax.annotate("", (row["n"], best), (row["n"], row["excess_q95"]), arrowprops=arrow)
        left = row is rows[0]
        ax.annotate(
            f"× {_two_digits(best / row['excess_q95']):,}",
            (row["n"], np.sqrt(best * row["excess_q95"])), xytext=(4 if left else -4, 0),
            textcoords="offset points", ha="left" if left else "right", va="center", color=GREY,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="pairs n", ylabel="excess risk")
    return ax


@contextmanager
def _one_thread() -> Iterator[None]:
    """Operations as small as these lose more by waiting for other threads than they gain."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _two_digits(value: float) -> int:
    return int(float(f"{value:.2g}"))
