"""The picture of the scaling guide.

Draw it again with ``python docs/figures/scaling.py``: it reads bench/results/scaling/*.csv and
writes docs/images/scaling-curves.svg. Functions take the axes that they draw on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from pairlearn.style import GREEN, ORANGE, PURPLE, STYLE, YELLOW

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench" / "speed"))

from scaling import FOLDER, HELD_OUT_MODELS, Points, least, line  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_line(ax: Axes, points: Points, held_out: int, color: str, label: str) -> Axes:
    """Measured points, the line through them, and the held-out one, hollow."""
    fitted = {n: value for n, value in points.items() if n != held_out}
    a, b = line(fitted)
    n = np.geomspace(min(fitted), max(fitted), 100)
    ax.plot(n, a + b * n, color=color, lw=1)
    for size, value in points.items():
        ring = size == held_out
        ax.plot(size, value, "D" if ring else "o", ms=6 if ring else 4.5, color=color,
                mfc="white" if ring else color, mew=1.4)  # fmt: skip
    ax.plot([], [], "o-", ms=4.5, lw=1, color=color, label=label)
    ax.set(xscale="log", yscale="log")
    return ax


def plot_pairs(ax: Axes, key: str) -> Axes:
    """A column of pairs.csv over the number of pairs."""
    points = least(FOLDER / "pairs.csv", "pairs", {}, key)
    plot_line(ax, points, 0, ORANGE, "linear model")
    ax.set_xlabel("pairs")
    return ax


def plot_fleets(ax: Axes) -> Axes:
    """A step of a fleet over its models, on a CPU and on a GPU."""
    for what, color, label in (
        ("mlp, CPU", PURPLE, "MLP, 16 features, one core"),
        ("linear, CPU", YELLOW, "linear, 16 features, one core"),
        ("mlp, H200, bf16", GREEN, "MLP, 784 features, H200"),
    ):
        key = "ms_per_step" if "H200" in what else "cpu_ms_per_step"
        points = least(FOLDER / "fleets.csv", "models", {"what": what}, key)
        plot_line(ax, points, HELD_OUT_MODELS[what], color, label)
    ax.set(xlabel="models in the fleet", ylabel="milliseconds a step", ylim=(0.08, 4e5))
    ax.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    ax.minorticks_off()
    return ax


def draw_curves() -> Figure:
    """Time and memory over pairs, and time over models."""
    figure = Figure((8.4, 2.9), layout="constrained")
    seconds, memory, fleets = figure.subplots(1, 3)
    plot_pairs(seconds, "cpu_seconds").set(
        title="a fit of one epoch", ylabel="processor seconds", ylim=(2.5, 150)
    )
    plot_pairs(memory, "peak_mib").set(title="its peak memory", ylabel="MiB", ylim=(300, 6000))
    seconds.set_yticks([3, 10, 30, 100], ["3", "10", "30", "100"])
    seconds.minorticks_off()
    memory.set_yticks([500, 1000, 2000, 4000], ["500", "1,000", "2,000", "4,000"])
    memory.minorticks_off()
    plot_fleets(fleets).set_title("a step of a fleet")
    fleets.plot([], [], "D", ms=6, color="0.3", mfc="white", mew=1.4, label="held out")
    for ax in (seconds, memory, fleets):
        ax.legend(fontsize=7, loc="upper left")
    return figure


def main() -> None:
    """Write the picture."""
    path = ROOT / "docs" / "images" / "scaling-curves.svg"
    with rc_context(STYLE):
        draw_curves().savefig(path, metadata={"Date": None})
    print(path.relative_to(ROOT), f"{path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
