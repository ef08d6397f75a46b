"""The picture of the first page: the tutorial's run, from judged pairs to a checked accuracy.

Draw it again with ``python docs/figures/home.py``: it runs the commands of docs/tutorial.md in an
empty folder, writes docs/images/home.svg, and prints the numbers that the picture shows.
"""

from __future__ import annotations

import contextlib
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from typer.testing import CliRunner

from pairlearn.cli.root import app
from pairlearn.style import BLUE, GREEN, GREY, ORANGE, STYLE

OUT = Path(__file__).resolve().parents[1] / "images" / "home.svg"
COMMANDS = """
simulate clinic --from breast-cancer --pairs 240 --items 510 --annotators 2
split clinic/pairs.csv train.csv held_out.csv
fit clinic/items.csv train.csv --out model --model linear --epochs 50
predict model clinic/items.csv --out predictions.csv
evaluate model clinic/items.csv held_out.csv --json
"""


def run_tutorial() -> dict[str, Any]:
    """A judged pair, the probabilities of items in no training pair, and the accuracies."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for line in COMMANDS.strip().splitlines():
            done = CliRunner().invoke(app, line.split(), catch_exceptions=False)
            assert done.exit_code == 0, done.output
        tables = ("train.csv", "clinic/truth.csv", "predictions.csv")
        texts = (Path(table).read_text(encoding="utf-8").splitlines() for table in tables)
        train, truth, scores = (list(csv.DictReader(text)) for text in texts)
    learnt = {row[end] for row in train for end in ("left", "right")}
    rows = [
        (float(score["probability"]), row["class"] == "1")
        for score, row in zip(scores, truth, strict=True)
        if score["id"] not in learnt
    ]
    return {"pair": train[0], "items": rows, "accuracy": json.loads(done.stdout)}


def plot_pair(pair: dict[str, str], ax: Axes) -> Axes:
    """A pair and a doctor's answers about it."""
    ax.set(xlim=(0, 10), ylim=(0, 10))
    ax.axis("off")
    for left, name in ((0.4, pair["left"]), (5.6, pair["right"])):
        ax.add_patch(Rectangle((left, 6.3), 4, 2.9, fc="0.95", ec=GREY, lw=0.8))
        ax.text(left + 2, 7.75, f"biopsy {name}\n30 numbers", ha="center", va="center")
    for height, low, name, text in (
        (3.9, 0, "similarity", "same kind?"),
        (0.9, -1, "difference", "right one more likely malignant?"),
    ):
        value = float(pair[name])
        at = 1 + 8 * (value - low) / (1 - low)
        ax.text(5, height + 1.15, text, ha="center", va="center")
        ax.plot([1, 9], [height, height], color="0.8", lw=3, solid_capstyle="round")
        ax.plot(at, height, "o", ms=7, color="black")
        number = f"{value:.2f}".replace("-", "−")
        ax.text(at, height - 0.95, number, ha="center", va="center", weight="bold")
    return ax


def plot_scores(items: list[tuple[float, bool]], ax: Axes) -> Axes:
    """The probabilities of single items, by their true class."""
    groups = [[p for p, malignant in items if malignant is kind] for kind in (False, True)]
    names = ["benign", "malignant"]
    bins = np.linspace(0, 1, 21).tolist()
    ax.hist(groups, bins=bins, stacked=True, color=[BLUE, ORANGE], label=names)
    ax.axvline(0.5, color="black", lw=0.8, ls=":")
    ax.set(xlabel="probability of malignant", ylabel="new biopsies", xlim=(0, 1))
    ax.legend(title="true class", loc="upper left", bbox_to_anchor=(0.5, 1), frameon=False)
    return ax


def plot_accuracy(estimates: dict[str, Any], truth: float, ax: Axes) -> Axes:
    """The estimates without labels, and the accuracy by the true classes."""
    accuracy = estimates["accuracy"]
    rows = (
        (2, accuracy["independent"], GREY, "if their mistakes are unrelated to the model's"),
        (1, accuracy["informed"], GREEN, "if they knew everything that the model uses"),
    )
    for height, limits, color, text in rows:
        low, high = limits["low"], limits["high"]
        ax.plot([low, high], [height, height], color=color, lw=5, solid_capstyle="butt")
        ax.text(0.852, height + 0.22, text, va="bottom")
        ax.text(low - 0.001, height, f"{low:.3f}", ha="right", va="center")
        crossed = high < truth < high + 0.018  # the line would run through the number
        place = (high, height - 0.22) if crossed else (high + 0.001, height)
        ax.text(*place, f"{high:.3f}", ha="center" if crossed else "left", va="center")
    ax.plot(accuracy["informed"]["value"], 1, "o", color="black", ms=4)
    ax.axvline(truth, ymax=0.8, color="black", lw=1)
    ax.text(truth - 0.002, 0.2, f"by the true classes: {truth:.3f}", ha="right", va="center")
    ax.set(xlim=(0.85, 1.005), ylim=(0, 2.7), yticks=[])
    ax.set_xlabel("accuracy, estimated without labels")
    return ax


def draw(result: dict[str, Any]) -> Figure:
    """The pairs, the scores of single items, and the accuracy with its intervals."""
    figure = Figure((5.6, 4.7), layout="constrained")  # still legible on a phone
    above, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    pair, scores = above.subplots(1, 2, width_ratios=(1.1, 1))
    accuracy = below.subplots()
    right = np.mean([(p > 0.5) == malignant for p, malignant in result["items"]])
    plot_pair(result["pair"], pair).set_title("1  doctors compare 240 pairs …")
    plot_scores(result["items"], scores).set_title("2  … a model scores biopsies …")
    title = "3  … and the answers show its accuracy"
    plot_accuracy(result["accuracy"], float(right), accuracy).set_title(title)
    return figure


if __name__ == "__main__":
    result = run_tutorial()
    with rc_context(STYLE | {"font.size": 9}):
        draw(result).savefig(OUT, metadata={"Date": None})
    print(result["accuracy"])
