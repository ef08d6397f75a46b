"""The judgements in the (c, s) plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.labels import PairLabels
from pairlearn.style import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CORNERS = (
    (-1.0, 0.0, "left +, right −", "left", -6),
    (1.0, 0.0, "left −, right +", "right", -6),
    (0.0, 1.0, "same class", "center", 6),
)


def plot_plane(labels: PairLabels | None, ax: Axes) -> Axes:
    """Draw judgements in the plane of difference and similarity; None draws the region alone.

    The feasible region, between the parabola 2s = 1 − c² and the edges s = 1 − |c|, is shaded. Its
    corners are the certain outcomes. A pair with one judgement only is a tick in the margin.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_plane(PairLabels([0.5], [0.1]), Figure().subplots()).get_xlabel()
    'difference c = P(right is +) − P(left is +)'
    """
    _draw_region(ax)
    labels = PairLabels([], []) if labels is None else labels
    s, c = (np.asarray(v, dtype=np.float64) for v in (labels.similarity, labels.difference))
    fits = np.asarray(labels.feasible())
    both = ~np.isnan(s) & ~np.isnan(c)
    alpha = float(np.clip(40 / np.sqrt(max(int(both.sum()), 1)), 0.15, 0.75))
    size = float(np.clip(4000 / max(int(both.sum()), 1), 5, 20))
    for rows, colour, marker, name in (
        (both & fits, BLUE, "o", "feasible"),
        (both & ~fits, ORANGE, "D", "no posteriors give this"),
    ):
        if rows.any():
            label = f"{name} ({int(rows.sum()):,})"
            style: dict[str, Any] = {"color": colour, "marker": marker, "linewidths": 0}
            ax.scatter(c[rows], s[rows], s=size, alpha=alpha, label=label, zorder=3, **style)
    _draw_single(ax, s[np.isnan(c)], c[np.isnan(s)])
    ax.set(
        xlabel="difference c = P(right is +) − P(left is +)",
        ylabel="similarity s = P(same class)",
        xlim=(np.nanmin(c - 0.05, initial=-1.14), np.nanmax(c + 0.05, initial=1.14)),
        ylim=(np.nanmin(s - 0.05, initial=-0.14), np.nanmax(s + 0.05, initial=1.12)),
        xticks=[-1, -0.5, 0, 0.5, 1],
        yticks=[0, 0.25, 0.5, 0.75, 1],
    )
    _draw_legend(ax)
    return ax


def _draw_region(ax: Axes) -> None:
    c = np.linspace(-1, 1, 201)
    ax.fill_between(c, (1 - c**2) / 2, 1 - abs(c), color="0.92", lw=0, zorder=0)
    ax.plot(c, 1 - abs(c), color="0.6", lw=0.8, zorder=1)
    ax.plot(c, (1 - c**2) / 2, color="0.6", lw=0.8, zorder=1)
    for x, y, name, side, shift in _CORNERS:
        ax.plot([x], [y], "s", ms=5, mfc="white", mec=GREY, mew=1, zorder=4, clip_on=False)
        style: Any = {"ha": side, "va": "bottom" if shift > 0 else "top", "color": GREY}
        ax.annotate(name, (x, y), (0, shift), textcoords="offset points", fontsize="small", **style)


def _draw_single(ax: Axes, s: Any, c: Any) -> None:
    """Ticks in the margins for pairs with one judgement."""
    style: dict[str, Any] = {"color": BLUE, "alpha": 0.35, "lw": 0, "ms": 7, "mew": 0.8}
    if len(s):
        ax.plot(np.full(len(s), -1.09), s, "_", label=f"similarity only ({len(s):,})", **style)
    if len(c):
        ax.plot(c, np.full(len(c), -0.1), "|", label=f"difference only ({len(c):,})", **style)


def _draw_legend(ax: Axes) -> None:
    if not ax.get_legend_handles_labels()[0]:
        return
    # Above the axes, because judgements may be anywhere inside.
    legend = ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
