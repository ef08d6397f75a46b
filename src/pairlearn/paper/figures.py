"""Figures of the experiments: functions that draw into given axes and return them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.paper.against_published import condition
from pairlearn.paper.methods import CORRECTIONS, Method
from pairlearn.paper.published import published_accuracy
from pairlearn.paper.summary import Cell, index_cells
from pairlearn.style import GREY, axis_label, label_axes, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARE = "share correct"
_ACCURACY_TICKS = (0.2, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
_PUBLISHED: dict[str, Any] = {"color": GREY, "marker": "|"}
_LEAST_ERROR = 5e-4  # an error of 0 has no place on a logarithmic axis


def plot_gamma(cells: Sequence[Cell], ax: Axes) -> Axes:
    """The convex combination from ConfDiff (γ = 0) to Sconf (γ = 1), for each correction.

    Bands are one standard deviation over seeds to either side.

    Parameters
    ----------
    cells : sequence of Cell
        Of one data set and prior.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_gamma([], Figure().subplots()).get_xlabel()
    'γ (share of Sconf)'
    """
    for correction in CORRECTIONS:
        line = [c for c in cells if c.gamma is not None and c.method.correction == correction]
        title = Method("convex", None, correction).correction_title
        style = method_style(f"convex-{correction}").line()
        _plot_line(ax, line, lambda cell: cell.gamma, label=title, **style)
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    ax.set_xlim(-0.03, 1.03)
    return label_axes(ax, "γ", "accuracy", x_unit="share of Sconf", y_unit=_SHARE)


def plot_limited(cells: Sequence[Cell], ax: Axes) -> Axes:
    """Accuracy against the number of pairs, a line for each method.

    Bands are one standard deviation over seeds to either side.

    Parameters
    ----------
    cells : sequence of Cell
        Of one data set and prior.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_limited([], Figure().subplots()).get_xlabel()
    'training pairs (number)'
    """
    for name in dict.fromkeys(cell.config.method for cell in cells):
        method = Method.parse(name)
        line = [cell for cell in cells if cell.config.method == name]
        pairs = lambda cell: cell.config.n_training_pairs  # noqa: E731
        _plot_line(ax, line, pairs, label=method.title, **method_style(name).line())
    return label_axes(ax, "training pairs", "accuracy", x_unit="number", y_unit=_SHARE)


def plot_robustness_heatmap(
    cells: Sequence[Cell], ax: Axes, limits: tuple[float, float] | None = None
) -> Axes:
    """Accuracy of one method for every ε and σ, as numbers on colours.

    Parameters
    ----------
    cells : sequence of Cell
        Of one data set and method.
    ax : matplotlib Axes
        Where to draw.
    limits : tuple of float, optional
        Accuracies at the ends of the colour scale; those of the cells by default.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_robustness_heatmap([], Figure().subplots()).get_xlabel()
    'label noise σ'
    """
    factors, noises, means = _noise_grid(cells)
    if means.size:
        low, high = limits or (float(np.nanmin(means)), float(np.nanmax(means)))
        edges = [np.arange(size + 1) - 0.5 for size in means.shape]
        ax.pcolormesh(*edges[::-1], means, vmin=low, vmax=high, cmap="viridis")
        for (i, j), mean in np.ndenumerate(means):
            if np.isfinite(mean):
                dark = mean < low + 0.6 * (high - low)
                style: dict[str, Any] = {"color": "0.99" if dark else "0.05", "fontsize": 7}
                ax.text(j, i, f"{mean:.3f}", ha="center", va="center", **style)
    ax.set_xticks(range(len(noises)), [f"{noise:g}" for noise in noises])
    ax.set_yticks(range(len(factors)), [f"{factor:g}" for factor in factors])
    ax.set(xlabel="label noise σ", ylabel="prior factor ε")
    return ax


def plot_robustness_bars(
    cells: Sequence[Cell], ax: Any, limits: tuple[float, float] | None = None
) -> Any:
    """Accuracy of one method for every ε and σ, as the paper draws it.

    Height and colour both show the accuracy; the floor is the lower limit, not 0.

    Parameters
    ----------
    cells : sequence of Cell
        Of one data set and method.
    ax : matplotlib 3-D Axes
        Where to draw.
    limits : tuple of float, optional
        Accuracies at the floor and at the top of the colour scale.

    Returns
    -------
    matplotlib 3-D Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot(projection="3d")
    >>> plot_robustness_bars([], ax).get_zlabel()
    'accuracy (share correct)'
    """
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    factors, noises, means = _noise_grid(cells)
    if means.size:
        low, high = limits or (float(np.nanmin(means)) - 0.02, float(np.nanmax(means)))
        scale = Normalize(low, high)
        for (i, j), mean in np.ndenumerate(means):
            if np.isfinite(mean):
                color = colormaps["viridis"](scale(mean))
                ax.bar3d(j - 0.35, i - 0.35, low, 0.7, 0.7, max(mean - low, 0), color=color)
        ax.set_zlim(low, high)
    ax.set_xticks(range(len(noises)), [f"{noise:g}" for noise in noises])
    ax.set_yticks(range(len(factors)), [f"{factor:g}" for factor in factors])
    ax.set(xlabel="label noise σ", ylabel="prior factor ε", zlabel=axis_label("accuracy", _SHARE))
    ax.tick_params(labelsize=6, pad=-1)
    ax.set_box_aspect(None, zoom=0.82)  # or its labels would leave the axes
    ax.view_init(elev=28, azim=-55)
    return ax


def plot_accuracy(cells: Sequence[Cell], ax: Axes) -> Axes:
    """Every method, beside its published number, with the supervised accuracy as a line.

    The axis is logarithmic in the error, so that 0.98 and 0.99 are as far apart as 0.90
    and 0.95. Bars are one standard deviation over seeds to either side. What was published
    was measured on the paper's test subset, so it stands beside cells of that subset only.

    Parameters
    ----------
    cells : sequence of Cell
        Of one data set and prior.
    ax : matplotlib Axes
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_accuracy([], Figure().subplots()).get_xlabel()
    'accuracy (log of error)'
    """
    published = {(*condition(cell), cell.method): cell for cell in published_accuracy()}
    weak = [cell for cell in cells if cell.method.is_weak]
    errors = [1 - cell.mean for cell in cells]
    for place, cell in enumerate(weak):
        style = method_style(cell.config.method).points()
        _plot_error(ax, place - 0.17, cell.mean, cell.std, style)
        printed = published.get((*condition(cell), cell.method))
        if printed is not None and cell.test_subset == "paper":
            _plot_error(ax, place + 0.17, printed.mean, printed.std, _PUBLISHED)
            errors.append(1 - printed.mean)
    for cell in cells:
        if not cell.method.is_weak:
            color = method_style("supervised").color
            ax.axvline(1 - cell.mean, color=color, ls="--", lw=1.0, label="supervised, ours")
    if len(errors) > len(cells):
        ax.plot([], [], ls="", ms=4, label="published", **_PUBLISHED)
    if weak:
        ax.plot([], [], "o", ms=3.5, color=GREY, label="ours, coloured by method")
    if errors:
        _scale_by_error(ax, *(max(end(errors), _LEAST_ERROR) for end in (max, min)))
    ax.set_yticks(range(len(weak)), [cell.method.title for cell in weak])
    ax.set_ylim(max(len(weak), 1) - 0.4, -0.6)
    ax.grid(axis="y", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(axis_label("accuracy", "log of error"))
    return ax


def _plot_line(
    ax: Axes, cells: Sequence[Cell], x: Callable[[Cell], float | None], **style: Any
) -> None:
    points = sorted((x(cell) or 0.0, cell.mean, cell.std) for cell in cells)
    if not points:
        return
    at, mean, std = np.array(points).T
    ax.plot(at, mean, ms=3.8, mew=0.9, lw=1.3, **style)
    band = np.clip([mean - std, mean + std], 0, 1)
    ax.fill_between(at, *band, color=style["color"], alpha=0.18, lw=0)


def _plot_error(ax: Axes, y: float, mean: float, std: float, style: dict[str, Any]) -> None:
    error = max(1 - mean, _LEAST_ERROR)
    span = [[min(std, 0.9 * error)], [std]]
    ax.errorbar([error], [y], xerr=span, ls="", ms=3.8, mew=0.9, lw=1, **style)


def _scale_by_error(ax: Axes, high: float, low: float) -> None:
    """A logarithmic axis from high to low error, labelled with accuracies that keep apart."""
    high, low = min(1.0, 1.5 * high), low / 1.5
    ticks: list[float] = []
    for tick in (t for t in _ACCURACY_TICKS if low <= 1 - t <= high):
        if not ticks or math.log((1 - ticks[-1]) / (1 - tick)) > 0.16 * math.log(high / low):
            ticks.append(tick)
    ax.set_xlim(high, low)
    ax.set_xscale("log")
    ax.set_xticks([1 - tick for tick in ticks], [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def _noise_grid(cells: Sequence[Cell]) -> tuple[list[float], list[float], Any]:
    places = index_cells(cells, lambda c: (c.config.prior_factor, c.config.label_noise))
    factors = sorted({factor for factor, _ in places})
    noises = sorted({noise for _, noise in places})
    means = np.full((len(factors), len(noises)), np.nan)
    for (factor, noise), cell in places.items():
        means[factors.index(factor), noises.index(noise)] = cell.mean
    return factors, noises, means
