"""Geometry of the labels: which posteriors a pair of labels leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.check.plane import plot_plane
from pairlearn.labels import PairLabels
from pairlearn.paper.theory.rows import Row, boxed, columns, note, rounded, row_of_panels, where
from pairlearn.style import BLUE, GREEN, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXAMPLE = (0.85, 0.65)
"""Posteriors (r, r') of the pair that the geometric panels follow."""


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
    values = (r, r_prime, labels.difference, labels.similarity, branch)
    names = ("r", "r_prime", "difference", "similarity", "branch")
    return [rounded(dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]


def draw_geometry(rows: Sequence[Row]) -> Figure:
    """The three panels of the geometry.

    Examples
    --------
    >>> len(draw_geometry(geometry_rows()).axes)
    3
    """
    figure, axes = row_of_panels((8.6, 3.0), (1, 1, 1))
    plot_label_plane(rows, axes[0]).set_title("every label lies on two tangents …")
    plot_posterior_square(axes[1]).set_title("… for two pairs of posteriors")
    plot_confidence_vectors(axes[2]).set_title("two ways to compare confidences")
    return figure


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
    plot_plane(None, ax)
    for level in dict.fromkeys(row["r"] for row in rows):
        c, s = columns(where(rows, "r", level), "difference", "similarity")
        ax.plot(c, s, color=GREY, lw=0.7)
        if round(10 * level) % 2 == 0 and 0 < level < 1:
            note(ax, f"r={level:g}", (c[-1], s[-1]), (2, 1), fontsize=6.5, color=GREY)
    below: Any = {"fontsize": 7, "ha": "center", "va": "center"}
    ax.text(0, 0.36, "r + r′ = 1\nc² = 1 − 2s", **below)
    ax.text(0, 0.12, "no pair of posteriors\ngives such labels", color=GREY, **below)
    s_at, c_at = _labels(example)
    for level, color, side, place, name in (
        (example[0], BLUE, "right", (-0.40, 0.62), "slope 2r − 1"),
        (1 - example[1], ORANGE, "left", (0.34, 0.74), "slope 1 − 2r′"),
    ):
        touch_s, touch_c = _labels((level, 1 - level))
        ax.plot([c_at, touch_c], [s_at, touch_s], color=color, lw=2)
        ax.plot(touch_c, touch_s, "o", ms=4, color=color, mfc="white")
        ax.text(*place, name, color=color, ha=side, fontsize=7)
    ax.plot(c_at, s_at, "o", ms=5, color="black", zorder=5)
    ax.set(xlabel="difference c", ylabel="similarity s", xlim=(-1.1, 1.14), ylim=(-0.12, 1.1))
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
    steps = [-0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75]
    apart = ax.contour(
        r, r_prime, r_prime - r, steps, colors=GREEN, linewidths=0.7, linestyles="dashed"
    )
    ax.clabel(apart, [-0.5, 0.5], fmt="c=%g", fontsize=6)
    ax.plot([0, 1], [1, 0], color="black", lw=1.6)
    mirror = 1 - example[1], 1 - example[0]
    ax.plot(*zip(example, mirror, strict=True), color="black", lw=1, ls=":")
    for point, color, name, shift in (
        (example, BLUE, "(r, r′)", (-16, 7)),
        (mirror, ORANGE, "(1 − r′, 1 − r)", (-24, -13)),
    ):
        ax.plot(*point, "o", ms=6, color=color, mec="black", zorder=5)
        note(ax, name, point, shift, color=color, weight="bold", **boxed(0.8))
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
    first, second = (np.array([p, 1 - p]) for p in example)
    for vector, name, color in ((first, "(r, 1 − r)", BLUE), (second, "(r′, 1 − r′)", ORANGE)):
        arrow = {"arrowstyle": "-|>", "color": color, "lw": 1.8}
        ax.annotate("", tuple(vector), (0, 0), arrowprops=arrow)
        note(ax, name, tuple(vector), (4, 3), color=color, fontsize=8)
        ax.plot([vector[0]] * 2, [vector[1], -0.05], color=color, lw=0.8, ls=":")
    foot = first * s / (first @ first)
    ax.plot(*zip(second, foot, strict=True), color=GREY, lw=0.9, ls="--")
    ax.plot(*zip((0, 0), foot, strict=True), color="black", lw=3.2, alpha=0.30)
    ends = {"arrowstyle": "<-", "color": GREEN, "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (example[0], -0.05), (example[1], -0.05), arrowprops=ends)
    middle = sum(example) / 2
    value = f"c = {c:.2f}".replace("-", "−")
    ax.text(middle, -0.08, value, color=GREEN, ha="center", va="top", fontsize=8)
    text = f"s = inner product = {s:.3f}:\nthe shadow of one on the\nother, times its length"
    ax.text(1.14, 0.98, text, fontsize=7.5, ha="right", va="top")
    ax.text(0.14, 0.76, "all confidences", color="0.45", rotation=-45, fontsize=7, va="center")
    ax.set(xlabel="P(+1)", ylabel="P(−1)", xlim=(0, 1.16), ylim=(-0.15, 1.01))
    ax.set_aspect("equal")
    return ax


def _labels(posteriors: tuple[float, float]) -> tuple[float, float]:
    """Similarity and difference of one pair."""
    s, c = PairLabels.from_posteriors(*([p] for p in posteriors)).to_array()[0]
    return float(s), float(c)
