"""Figures of the theory: functions that draw rows into given axes and return them.

The rows come from `pairlearn.experiments.theory`. Colours are those of Okabe and Ito; what a
colour tells, a marker or a line style tells too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.atomic import replacing
from pairlearn.experiments.figure_files import _STYLE, save_figure
from pairlearn.experiments.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, YELLOW
from pairlearn.experiments.render import to_csv
from pairlearn.experiments.theory import Row
from pairlearn.labels import PairLabels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_theory",
    "plot_beta_plane",
    "plot_beta_variance",
    "plot_bounds",
    "plot_confidence_vectors",
    "plot_label_plane",
    "plot_lambda_variance",
    "plot_posterior_square",
    "plot_prior_coverage",
    "plot_prior_error",
    "save_theory",
]

EXAMPLE = (0.85, 0.65)
"""Posteriors (r, r') of the pair that the geometric panels follow."""

_PRIOR_STYLES = ((BLUE, "o"), (GREEN, "s"), (PURPLE, "^"), (ORANGE, "D"))
_MEMBERS = {  # title, marker, shift of the title in points, its alignment
    "confdiff": ("ConfDiff", "v", (6, 4), "left"),
    "convex-0.5": ("Convex(½)", "s", (6, 3), "left"),
    "sconf": ("Sconf", "^", (6, 3), "left"),
    "sconfconfdiff": ("SconfConfDiff", "o", (-7, -3), "right"),
    "nonnegative": ("non-negative", "D", (6, -9), "left"),
    "optimum": ("optimum", "*", (7, -2), "left"),
}


def plot_label_plane(rows: Sequence[Row], ax: Axes, example: tuple[float, float] = EXAMPLE) -> Axes:
    """The plane of difference and similarity, with lines of constant r.

    Parameters
    ----------
    rows : sequence of dict
        Of `geometry_rows`.
    ax : matplotlib Axes
        Where to draw.
    example : tuple of float
        Posteriors (r, r') of a pair to mark, with the two tangents through its label.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_label_plane([], Figure().subplots()).get_xlabel()
    'difference c'
    """
    from matplotlib import colormaps

    c = np.linspace(-1, 1, 201)
    ax.fill_between(c, (1 - c**2) / 2, 1 - abs(c), color="0.94", lw=0)
    for level in dict.fromkeys(row["r"] for row in rows):
        line = [row for row in rows if row["r"] == level]
        at = [row["difference"] for row in line], [row["similarity"] for row in line]
        color = colormaps["cividis"](0.75 * level)
        ax.plot(*at, color=color, lw=0.8)
        if round(10 * level) % 2 == 0:
            ax.annotate(
                f"r={level:g}" if level in (0, 1) else f"{level:g}", (at[0][-1], at[1][-1]),
                xytext=(2, 1), textcoords="offset points", fontsize=6.5, color=color,
            )  # fmt: skip
    ax.plot(c, (1 - c**2) / 2, color="black", lw=1.6)
    ax.plot([-1, 0, 1], [0, 1, 0], color="black", lw=0.8)
    below: Any = {"fontsize": 7, "ha": "center", "va": "center"}
    ax.text(0, 0.36, "r + r′ = 1\nc² = 1 − 2s", **below)
    ax.text(0, 0.12, "no pair of posteriors\ngives such labels", color=GREY, **below)
    s_at, c_at = _labels(example)
    for level, color, side, name in (
        (example[0], BLUE, "right", "slope 2r − 1"),
        (1 - example[1], ORANGE, "left", "slope 1 − 2r′"),
    ):
        touch_s, touch_c = _labels((level, 1 - level))
        ax.plot([c_at, touch_c], [s_at, touch_s], color=color, lw=2)
        ax.plot(touch_c, touch_s, "o", ms=4, color=color, mfc="white")
        edge = -0.48 if side == "right" else 0.34
        ax.text(edge, 0.62 if side == "right" else 0.74, name, color=color, ha=side, fontsize=7.5)
    ax.plot(c_at, s_at, "o", ms=5, color="black", zorder=5)
    ax.set(xlabel="difference c", ylabel="similarity s", xlim=(-1.05, 1.12), ylim=(-0.03, 1.06))
    ax.set_box_aspect(1)
    return ax


def plot_posterior_square(ax: Axes, example: tuple[float, float] = EXAMPLE) -> Axes:
    """The square of posteriors, with lines of equal s and c and the fold between branches.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    example : tuple of float
        Posteriors (r, r') of a pair to mark, with the mirror image that has the same label.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_posterior_square(Figure().subplots()).get_xlabel()
    'r = P(y = +1 | x)'
    """
    side = np.linspace(0, 1, 101)
    r, r_prime = np.meshgrid(side, side)
    ax.fill_between(side, 1 - side, 1, color=BLUE, alpha=0.10, lw=0)
    ax.fill_between(side, 0, 1 - side, color=ORANGE, alpha=0.10, lw=0)
    same = ax.contour(
        r, r_prime, r * r_prime + (1 - r) * (1 - r_prime), [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9],
        colors="0.35", linewidths=0.8,
    )  # fmt: skip
    ax.clabel(same, [0.2, 0.8], fmt="s=%g", fontsize=6)
    ax.plot([0.5, 0.5], [0, 1], color="0.35", lw=0.8)  # s = ½ is a cross
    ax.plot([0, 1], [0.5, 0.5], color="0.35", lw=0.8)
    ax.contour(r, r_prime, r_prime - r, 7, colors=GREEN, linewidths=0.7, linestyles="dashed")
    ax.plot([0, 1], [1, 0], color="black", lw=1.6)
    mirror = 1 - example[1], 1 - example[0]
    ax.plot(*zip(example, mirror, strict=True), color="black", lw=1, ls=":")
    for point, color, name, shift in (
        (example, BLUE, "(r, r′)", (-16, 7)),
        (mirror, ORANGE, "(1 − r′, 1 − r)", (-24, -13)),
    ):
        ax.plot(*point, "o", ms=6, color=color, mec="black", zorder=5)
        box = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.8}
        ax.annotate(
            name, point, xytext=shift, textcoords="offset points", fontsize=7, color=color,
            weight="bold", bbox=box,
        )  # fmt: skip
    ax.set(xlabel="r = P(y = +1 | x)", ylabel="r′ = P(y′ = +1 | x′)", xlim=(0, 1), ylim=(0, 1))
    ax.set_aspect("equal")
    return ax


def plot_confidence_vectors(ax: Axes, example: tuple[float, float] = EXAMPLE) -> Axes:
    """The paper's picture: s is an inner product, c a distance along the horizontal axis.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    example : tuple of float
        Posteriors (r, r'), the vectors (r, 1 − r) and (r', 1 − r').

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_confidence_vectors(Figure().subplots()).get_xlabel()
    'P(+1)'
    """
    s, c = _labels(example)
    ax.plot([0, 1], [1, 0], color="0.6", lw=1)
    vectors = [np.array([p, 1 - p]) for p in example]
    names = (("(r, 1 − r)", BLUE), ("(r′, 1 − r′)", ORANGE))
    for vector, (name, color) in zip(vectors, names, strict=True):
        ax.annotate(
            "", tuple(vector), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.8}
        )
        ax.annotate(
            name, tuple(vector), xytext=(4, 3), textcoords="offset points", color=color, fontsize=8
        )
        ax.plot([vector[0]] * 2, [vector[1], -0.05], color=color, lw=0.8, ls=":")
    first, second = vectors
    foot = first * s / (first @ first)
    ax.plot(*zip(second, foot, strict=True), color=GREY, lw=0.9, ls="--")
    ax.plot(*zip((0, 0), foot, strict=True), color="black", lw=3.2, alpha=0.30)
    ends = {"arrowstyle": "<-", "color": GREEN, "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (example[0], -0.05), (example[1], -0.05), arrowprops=ends)
    middle = sum(example) / 2
    value = f"c = {c:.2f}".replace("-", "−")
    ax.text(middle, -0.06, value, color=GREEN, ha="center", va="top", fontsize=8)
    text = f"s = inner product = {s:.3f}:\nthe shadow of one on the\nother, times its length"
    ax.text(1.14, 0.98, text, fontsize=7.5, ha="right", va="top")
    ax.text(0.14, 0.76, "all confidences", color="0.45", rotation=-45, fontsize=7, va="center")
    ax.set(xlabel="P(+1)", ylabel="P(−1)", xlim=(0, 1.16), ylim=(-0.14, 1.02))
    ax.set_aspect("equal")
    return ax


def plot_prior_error(rows: Sequence[Row], ax: Axes) -> Axes:
    """Root mean square error of the class prior against n, with its limit as a line.

    Parameters
    ----------
    rows : sequence of dict
        Of `prior_rows`.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_prior_error([], Figure().subplots()).get_xlabel()
    'pairs n'
    """
    for prior, line, color, marker in _by_prior(rows):
        sizes = [row["n"] for row in line]
        ax.plot(sizes, [row["rmse_limit"] for row in line], color=color, lw=0.9)
        if prior in (rows[0]["prior"], 0.5):
            place = line[len(line) // 2]
            rate = r"$\propto n^{-1/4}$" if prior == 0.5 else r"$\propto n^{-1/2}$"
            up = prior == 0.5
            ax.annotate(
                rate,
                (place["n"], place["rmse_limit"]),
                xytext=(8, 6 if up else -14),
                textcoords="offset points",
                color=color,
                ha="left" if up else "right",
            )
        errors = [row["rmse"] for row in line]
        ax.plot(sizes, errors, marker, ms=4.5, color=color, mec="white", mew=0.5,
                label=f"π₊ = {prior:g}")  # fmt: skip
    ax.plot([], [], color=GREY, lw=0.9, label="limit, large n")
    note = "exp(−n), as printed, would be\n$10^{-13}$ at n = 30: far below"
    ax.text(0.03, 0.04, note, transform=ax.transAxes, fontsize=7, color=GREY)
    ax.set(xscale="log", yscale="log", xlabel="pairs n", ylabel="root mean square error of π₊")
    return ax


def plot_prior_coverage(rows: Sequence[Row], ax: Axes) -> Axes:
    """How often the two 95% intervals contain the class prior.

    Parameters
    ----------
    rows : sequence of dict
        Of `prior_rows`.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_prior_coverage([], Figure().subplots()).get_ylabel()
    'coverage of the 95% interval'
    """
    ax.axhline(0.95, color="black", lw=0.8)
    for place, (_, line, color, marker) in enumerate(_by_prior(rows)):
        shifted = [row["n"] * 1.07 ** (place - 1.5) for row in line]  # or they would overlap
        for interval, fill in (("normal", color), ("mcdiarmid", "white")):
            coverage = np.array([row[f"coverage_{interval}"] for row in line])
            spread = 1.96 * np.sqrt(coverage * (1 - coverage) / [r["repetitions"] for r in line])
            ax.errorbar(shifted, coverage, spread, fmt=marker, ms=4, color=color, mfc=fill,
                        lw=0.7, mew=0.9)  # fmt: skip
    ax.plot([], [], "o", color=GREY, ms=4, label="normal")
    ax.plot([], [], "o", color=GREY, mfc="white", ms=4, label="McDiarmid")
    ax.set(
        xscale="log", xlabel="pairs n", ylabel="coverage of the 95% interval", ylim=(0.89, 1.005)
    )
    return ax


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
        ax.plot(least["lam"], least["exact"], "*", ms=11, color=YELLOW, mec="black", zorder=5)
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
    for member in members:
        name, beta, exact = member["member"], member["beta_plus"], member["exact"]
        if name in ("optimum-same", "optimum-opposite"):
            ax.plot(beta, exact, "*", ms=11, color=YELLOW, mec="black", zorder=5)
        elif name in ("confdiff", "sconf", "sconfconfdiff"):
            title, marker, _, _ = _MEMBERS[name]
            ax.plot(beta, exact, marker, ms=5.5, color="black", zorder=4)
            shift, side = {
                "confdiff": ((7, -2), "left"),
                "sconf": ((8, 2), "left"),
                "sconfconfdiff": ((-8, -4), "right"),
            }[name]
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
            title, marker, shift, side = _MEMBERS[member["member"]]
            star = marker == "*"
            at = member["beta_plus"], member["beta_minus"]
            ax.plot(*at, marker, ms=11 if star else 5.5, color=YELLOW if star else "black",
                    mec="black", zorder=5)  # fmt: skip
            box = {"fc": "white", "ec": "none", "alpha": 0.75, "pad": 0.6}
            ax.annotate(title, at, xytext=shift, textcoords="offset points", ha=side, fontsize=7,
                        bbox=box, zorder=4)  # fmt: skip
    ax.set(xlim=(min(plus), max(plus)), ylim=(min(minus), max(minus)))
    return ax


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


def draw_theory(tables: Mapping[str, Sequence[Row]]) -> list[tuple[str, Figure]]:
    """The four figures of the theory, with names for their files.

    Parameters
    ----------
    tables : mapping of str to sequence of dict
        Of `compute_theory`.

    Returns
    -------
    list of tuple of str and matplotlib Figure

    Examples
    --------
    >>> from pairlearn.experiments.theory import TheorySettings, compute_theory
    >>> tables = compute_theory(TheorySettings((0.2,), (30,), 5, 10, (30,), 1))
    >>> [name for name, _ in draw_theory(tables)]
    ['geometry', 'prior', 'variance', 'bounds']
    """
    try:
        import matplotlib
    except ImportError:
        raise ImportError('figures need matplotlib: pip install "pairlearn[plot]"') from None
    with matplotlib.rc_context(_STYLE):
        return [
            ("geometry", _geometry(tables["geometry"])),
            ("prior", _prior(tables["prior"])),
            ("variance", _variance(tables)),
            ("bounds", _bounds(tables["bounds"])),
        ]


def save_theory(tables: Mapping[str, Sequence[Row]], folder: str | os.PathLike[str]) -> list[Path]:
    """Write every table as CSV and every figure as PNG; each file is whole or is not there.

    Parameters
    ----------
    tables : mapping of str to sequence of dict
        Of `compute_theory`.
    folder : path-like
        Where the files go.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.experiments.theory import TheorySettings, compute_theory
    >>> tables = compute_theory(TheorySettings((0.2,), (30,), 5, 10, (30,), 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(save_theory(tables, folder))
    11
    """
    figures = draw_theory(tables)
    files = []
    for name, rows in tables.items():
        files.append(Path(folder, f"{name}.csv"))
        with replacing(files[-1]) as part:
            part.write_text(to_csv(rows), encoding="utf-8")
    return files + [save_figure(figure, Path(folder, f"{name}.png")) for name, figure in figures]


def _geometry(rows: Sequence[Row]) -> Figure:
    figure, axes = _row_of_panels((8.6, 3.1), (1.25, 1, 1.05))
    plot_label_plane(rows, axes[0]).set_title("every label lies on two tangents …")
    plot_posterior_square(axes[1]).set_title("… for two pairs of posteriors")
    plot_confidence_vectors(axes[2]).set_title("two ways to compare confidences")
    return figure


def _prior(rows: Sequence[Row]) -> Figure:
    figure, axes = _row_of_panels((7.2, 3.1), (1, 1))
    plot_prior_error(rows, axes[0]).set_title("error of the estimated class prior")
    plot_prior_coverage(rows, axes[1]).set_title("intervals that contain it")
    handles, names = axes[0].get_legend_handles_labels()
    more, further = axes[1].get_legend_handles_labels()
    figure.legend(
        handles + more, names + further, loc="outside lower center", ncols=7, columnspacing=1.3
    )
    return figure


def _variance(tables: Mapping[str, Sequence[Row]]) -> Figure:
    members = tables["variance-members"]
    figure, axes = _row_of_panels((8.6, 3.1), (0.8, 1, 1.05))
    plot_lambda_variance(tables["variance-lambda"], axes[0]).set_title("least at λ = ½")
    plot_beta_variance(tables["variance-beta"], members, axes[1]).set_title("two slices")
    plot_beta_plane(tables["variance-plane"], members, axes[2]).set_title("the affine family")
    for ax in axes[:2]:
        ax.legend(loc="upper center", fontsize=7)
    return figure


def _bounds(rows: Sequence[Row]) -> Figure:
    figure, axes = _row_of_panels((8.6, 3.2), (1, 1, 1), sharey=True)
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


def _row_of_panels(
    size: tuple[float, float], widths: Sequence[float], sharey: bool = False
) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=list(widths), sharey=sharey)
    return figure, axes


def _plot_variance(
    rows: Sequence[Row], x: str, ax: Axes, *, color: str, marker: str, label: str
) -> None:
    at = [row[x] for row in rows]
    ax.plot(at, [row["exact"] for row in rows], color=color, lw=1.3, label=label)
    some = rows[:: max(1, len(rows) // 15)]
    spread = [1.96 * row["standard_error"] for row in some]
    ax.errorbar([row[x] for row in some], [row["simulated"] for row in some], spread, fmt=marker,
                ms=3, lw=0.8, color=color, mfc="white")  # fmt: skip


def _by_prior(rows: Sequence[Row]) -> list[tuple[float, list[Row], str, str]]:
    priors = list(dict.fromkeys(row["prior"] for row in rows))
    return [
        (prior, [row for row in rows if row["prior"] == prior], *_PRIOR_STYLES[k % 4])
        for k, prior in enumerate(priors)
    ]


def _labels(posteriors: tuple[float, float]) -> tuple[float, float]:
    """Similarity and difference of one pair."""
    s, c = PairLabels.from_posteriors(*([p] for p in posteriors)).to_array()[0]
    return float(s), float(c)


def _two_digits(value: float) -> int:
    return int(float(f"{value:.2g}"))
