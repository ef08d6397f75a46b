"""Draw the grid of several classes: accuracy by the number of pairs, for each kind of soft answer.

    python bench/results/classes.py

writes paper/figures/classes.png from runs/classes.parquet; build.py calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from pairlearn.report.figures import save_figure, styled
from pairlearn.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SPREAD
from pairlearn_bench.cells import Cell, summarize, table_order
from pairlearn_bench.runs import CLASSES, grouped
from pairlearn_bench.store import read_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESULTS = Path(__file__).parent
FILE = RESULTS / "paper" / "figures" / "classes.png"
LINES = {
    "classes-confidences": {"color": "#232222", "marker": "X", "linestyle": "dashed"},
    "classes-label": {"color": GREY, "marker": "x", "linestyle": "dashed"},
    "classes-all": {"color": GREEN, "marker": "D"},
    "classes-half": {"color": BLUE, "marker": "o"},
    "classes-proposed": {"color": ORANGE, "marker": "^"},
    "classes-same": {"color": PURPLE, "marker": "s"},
}
"""The methods that are drawn: labels dashed, answers about pairs solid."""
TICKS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


def main() -> None:
    """Write the figure."""
    cells = summarize(read_records(RESULTS / "runs" / "classes.parquet"), "stratified")
    with styled("a figure"):
        save_figure(draw(cells), FILE)


def draw(cells: Sequence[Cell]) -> Figure:
    """A panel for each data set."""
    figure = Figure(figsize=(7.6, 5.2), layout="constrained")
    sets = grouped(sorted(cells, key=lambda c: table_order(c.config)), lambda c: c.dataset_title)
    panels = figure.subplots(2, -(-len(sets) // 2), sharex=True)
    for ax, (title, own) in zip(panels.flat, sets.items(), strict=False):
        plot(own, ax).set_title(title)
    for ax in panels[-1]:
        ax.set_xlabel("pairs (number)")
    for ax in panels[:, 0]:
        ax.set_ylabel("accuracy (log-error scale)")
    labels = [CLASSES[name] for name in LINES]
    figure.legend(panels.flat[0].lines, labels, loc="outside lower center", ncols=3)
    figure.suptitle(f"All classes of the data, from n pairs; bands {SPREAD}")
    return figure


def plot(cells: Sequence[Cell], ax: Axes) -> Axes:
    """Accuracy of each method on one data set by the number of pairs."""
    for name, style in LINES.items():
        line = sorted((c for c in cells if c.config.method == name), key=lambda c: c.config.pairs)
        points = [(c.config.pairs, 1 - c.mean, c.std) for c in line]
        pairs, error, spread = np.array(points).reshape(-1, 3).T
        ax.plot(pairs, error, markersize=4, **style)
        ax.fill_between(pairs, error - spread, error + spread, color=style["color"], alpha=0.15)
    ax.set(xscale="log", yscale="log")
    low, high = ax.get_ylim()
    shown = [tick for tick in TICKS if low <= 1 - tick <= high]
    ax.set_ylim(high, low)
    ax.set_yticks([1 - tick for tick in shown], [f"{tick:g}" for tick in shown])
    ax.set_yticks([], minor=True)
    return ax


if __name__ == "__main__":
    main()
