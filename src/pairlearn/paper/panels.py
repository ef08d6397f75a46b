"""Whole figures of an experiment, and their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.extras import missing_extra
from pairlearn.paper.figures import (
    plot_accuracy,
    plot_gamma,
    plot_limited,
    plot_robustness_bars,
    plot_robustness_heatmap,
)
from pairlearn.paper.methods import Method
from pairlearn.paper.summary import Cell, dataset_title
from pairlearn.report.figures import save_figure
from pairlearn.style import SPREAD, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NamedFigure = tuple[str, "Figure"]


def draw_figures(grid: str, cells: Sequence[Cell]) -> list[NamedFigure]:
    """Every figure of an experiment, with a name for its file.

    Parameters
    ----------
    grid : {"accuracy", "gamma", "limited", "robustness"}
        Which experiment.
    cells : sequence of Cell
        Its summary on one test subset.

    Returns
    -------
    list of tuple of str and matplotlib Figure

    Examples
    --------
    >>> draw_figures("gamma", [])
    []
    """
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plot", "matplotlib", "a figure") from None
    with matplotlib.rc_context(STYLE):
        return list(FIGURES[grid](cells))


def save_figures(
    grid: str,
    cells: Sequence[Cell],
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Draw every figure of an experiment and write it in every format.

    Parameters
    ----------
    grid : {"accuracy", "gamma", "limited", "robustness"}
        Which experiment.
    cells : sequence of Cell
        Its summary on one test subset.
    folder : path-like
        Where the files go.
    formats : sequence of str
        Endings of files.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> save_figures("gamma", [], "figures")
    []
    """
    return [
        save_figure(figure, Path(folder, f"{name}.{kind}"))
        for name, figure in draw_figures(grid, cells)
        for kind in formats
    ]


def _accuracy(cells: Sequence[Cell]) -> Iterator[NamedFigure]:
    for prior in _priors(cells):
        at = [cell for cell in cells if cell.config.prior == prior]
        rows = {
            tuple(c.config.method for c in at if c.config.dataset == name and c.method.is_weak)
            for name in _datasets(at)
        }
        size = (2.1, 0.13 * max(map(len, rows)) + 0.6)
        # With the same methods in every panel, those on the left name them for all.
        shared = len(rows) == 1
        figure = _panels(
            at, plot_accuracy, columns=4, size=size, spread="bars", label_width=1.2,
            share_rows=shared,
        )  # fmt: skip
        yield f"accuracy-{prior:g}", figure


def _curves(
    name: str, plot: Callable[[Sequence[Cell], Axes], Axes], cells: Sequence[Cell]
) -> Iterator[NamedFigure]:
    for prior in _priors(cells):
        at = [cell for cell in cells if cell.config.prior == prior]
        figure = _panels(at, plot, columns=4, size=(2.1, 1.9), spread="bands")
        yield f"{name}-{prior:g}", figure


def _robustness(cells: Sequence[Cell]) -> Iterator[NamedFigure]:
    for dataset in _datasets(cells):
        here = [cell for cell in cells if cell.config.dataset == dataset]
        means = [cell.mean for cell in here]
        limits = min(means), max(means)
        yield f"robustness-{dataset}", _noise_figure(here, limits, None)
        floor = limits[0] - 0.1 * (limits[1] - limits[0]) - 0.005
        yield f"robustness-bars-{dataset}", _noise_figure(here, (floor, limits[1]), "3d")


FIGURES: dict[str, Callable[[Sequence[Cell]], Iterator[NamedFigure]]] = {
    "accuracy": _accuracy,
    "gamma": partial(_curves, "gamma", plot_gamma),
    "limited": partial(_curves, "limited", plot_limited),
    "robustness": _robustness,
}
"""What draws the figures of each grid."""


def _panels(
    cells: Sequence[Cell],
    plot: Callable[[Sequence[Cell], Axes], Axes],
    *,
    columns: int,
    size: tuple[float, float],
    spread: str,
    label_width: float = 0.2,
    share_rows: bool = False,
) -> Figure:
    """A panel for each data set in at most so many columns, and one legend below them all."""
    from matplotlib.figure import Figure

    datasets = _datasets(cells)
    rows = -(-len(datasets) // columns)
    columns = -(-len(datasets) // rows)
    width = columns * size[0] + (1 if share_rows else columns) * label_width
    figure = Figure((width, rows * size[1] + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(datasets) :]:
        ax.set_visible(False)
    labelled: dict[str, Any] = {}
    for place, (dataset, ax) in enumerate(zip(datasets, grid.flat, strict=False)):
        plot([cell for cell in cells if cell.config.dataset == dataset], ax)
        ax.set_title(dataset_title(dataset))
        if place % columns:
            ax.set_ylabel("")
            if share_rows:
                ax.tick_params(labelleft=False)
        if place + columns < len(datasets):
            ax.set_xlabel("")
        handles, labels = ax.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    lines = -(-len(labelled) // max(1, int(width / 1.75)))
    figure.legend(
        list(labelled.values()),
        list(labelled),
        loc="outside lower center",
        ncols=-(-len(labelled) // lines),
    )
    figure.suptitle(f"{_origin(cells)}; {spread} {SPREAD}")
    return figure


def _noise_figure(
    cells: Sequence[Cell], limits: tuple[float, float], projection: str | None
) -> Figure:
    """A panel for each method, all with the same scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(cell.config.method for cell in cells))
    solid = projection == "3d"
    size = (2.5, 2.8) if solid else (2.3, 2.3)
    figure = Figure((size[0] * len(methods) + 0.7, size[1]), layout="constrained")
    plot: Callable[..., Any] = plot_robustness_bars if solid else plot_robustness_heatmap
    axes = []
    for place, method in enumerate(methods):
        ax: Any = figure.add_subplot(1, len(methods), place + 1, projection=projection)
        plot([cell for cell in cells if cell.config.method == method], ax, limits)
        ax.set_title(Method.parse(method).title)
        if place and not solid:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        if solid:
            ax.set_zlabel("")  # the colour bar says it, and the next panel would cover it
        axes.append(ax)
    scale = ScalarMappable(Normalize(*limits), "viridis")
    figure.colorbar(scale, ax=axes, label="accuracy (share correct)", shrink=0.75 if solid else 1.0)
    figure.suptitle(f"{dataset_title(cells[0].config.dataset)}, {_origin(cells)}")
    return figure


def _origin(cells: Sequence[Cell]) -> str:
    """What all panels of a figure have in common."""
    return f"π₊ = {cells[0].config.prior:g}, {cells[0].test_subset} test subset"


def _datasets(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.config.dataset for cell in cells))


def _priors(cells: Sequence[Cell]) -> list[float]:
    return sorted({cell.config.prior for cell in cells})
