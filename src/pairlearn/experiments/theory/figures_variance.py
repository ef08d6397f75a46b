"""Figures of the variance: along λ, along two slices, and over the affine family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairlearn.experiments.theory.numbers import Row
from pairlearn.experiments.theory.panels import row_of_panels
from pairlearn.style import BLUE, ORANGE, YELLOW, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_variance", "plot_beta_plane", "plot_beta_variance", "plot_lambda_variance"]

_MEMBERS = {  # title, shift of the title in points, its alignment
    "confdiff": ("ConfDiff", (6, 4), "left"),
    "convex-0.5": ("Convex(½)", (6, 3), "left"),
    "sconf": ("Sconf", (6, 3), "left"),
    "sconfconfdiff": ("SconfConfDiff", (-7, -3), "right"),
    "nonnegative": ("non-negative", (6, -9), "left"),
    "optimum": ("optimum", (7, -2), "left"),
}


def draw_variance(tables: Mapping[str, Sequence[Row]]) -> Figure:
    """The three panels of the variance.

    Examples
    --------
    >>> names = ("variance-lambda", "variance-beta", "variance-plane", "variance-members")
    >>> len(draw_variance({name: [] for name in names}).axes)
    3
    """
    members = tables["variance-members"]
    figure, axes = row_of_panels((8.6, 3.1), (0.8, 1, 1.05))
    plot_lambda_variance(tables["variance-lambda"], axes[0]).set_title("least at λ = ½")
    plot_beta_variance(tables["variance-beta"], members, axes[1]).set_title("two slices")
    plot_beta_plane(tables["variance-plane"], members, axes[2]).set_title("the affine family")
    for ax in axes[:2]:
        ax.legend(loc="upper center", fontsize=7)
    return figure


def plot_lambda_variance(rows: Sequence[Row], ax: Axes) -> Axes:
    """Variance of the λ-estimator against λ, exact as a line and simulated as points.

    Parameters
    ----------
    rows : sequence of dict
        Of `lambda_rows`.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_lambda_variance([], Figure().subplots()).get_xlabel()
    'λ'
    """
    ax.axvline(0.5, color="0.6", lw=0.8, ls=":")
    _plot_variance(rows, "lam", ax, color=BLUE, marker="o", label="exact")
    ax.plot([], [], "o", ms=3, color=BLUE, mfc="white", label="simulated, ± 95%")
    if rows:
        least = min(rows, key=lambda row: float(row["exact"]))
        _mark(ax, (least["lam"], least["exact"]), "optimum")
    ax.set(xlabel="λ", ylabel="n × variance of the risk")
    return ax


def plot_beta_variance(rows: Sequence[Row], members: Sequence[Row], ax: Axes) -> Axes:
    """Variance along two slices of the affine family, with the closed-form optima as stars.

    Parameters
    ----------
    rows, members : sequence of dict
        Of `beta_rows` and `member_rows`.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_beta_variance([], [], Figure().subplots()).get_xlabel()
    'β'
    """
    for direction, color, marker, title in (
        ("same", BLUE, "o", "β₊ = β₋ = β"),
        ("opposite", ORANGE, "s", "β₊ = −β₋ = β"),
    ):
        line = [row for row in rows if row["direction"] == direction]
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
            (title, _, _), (shift, side) = _MEMBERS[name], near[name]
            _mark(ax, (beta, exact), name)
            ax.annotate(title, (beta, exact), xytext=shift, textcoords="offset points", ha=side,
                        fontsize=7)  # fmt: skip
    ax.set(xlabel="β", ylabel="n × variance of the risk", yscale="log")
    return ax


def plot_beta_plane(rows: Sequence[Row], members: Sequence[Row], ax: Axes) -> Axes:
    """Variance of every member of the affine family, over the optimum's, with the named ones.

    Parameters
    ----------
    rows, members : sequence of dict
        Of `plane_rows` and `member_rows`.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_beta_plane([], [], Figure().subplots()).get_xlabel()
    'β₊'
    """
    ax.set(xlabel="β₊", ylabel="β₋")
    if not rows:
        return ax
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
            box = {"fc": "white", "ec": "none", "alpha": 0.75, "pad": 0.6}
            ax.annotate(title, at, xytext=shift, textcoords="offset points", ha=side, fontsize=7,
                        bbox=box, zorder=4)  # fmt: skip
    ax.set(xlim=(min(plus), max(plus)), ylim=(min(minus), max(minus)))
    return ax


def _mark(ax: Axes, at: tuple[float, float], member: str) -> None:
    """A member of the family in the method's colour, or the star of an optimum."""
    if member == "optimum":
        ax.plot(*at, "*", ms=11, color=YELLOW, mec="black", zorder=5)
    else:
        style = method_style(f"{member}-abs")  # a full marker shows best on contours
        ax.plot(*at, style.marker, ms=6, color=style.color, mec="white", mew=0.7, zorder=5)


def _plot_variance(
    rows: Sequence[Row], x: str, ax: Axes, *, color: str, marker: str, label: str
) -> None:
    at = [row[x] for row in rows]
    ax.plot(at, [row["exact"] for row in rows], color=color, lw=1.3, label=label)
    some = rows[:: max(1, len(rows) // 15)]
    spread = [1.96 * row["standard_error"] for row in some]
    ax.errorbar([row[x] for row in some], [row["simulated"] for row in some], spread, fmt=marker,
                ms=3, lw=0.8, color=color, mfc="white")  # fmt: skip
