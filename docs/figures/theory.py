"""The pictures of the theory pages.

Draw them again with ``python docs/figures/theory.py``: it writes docs/images/theory-*.svg, the
same bytes every time. Functions take the axes that they draw on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from pairlearn import PairLabels, PairLikelihood
from pairlearn.annotators import Annotators
from pairlearn.check import plot_plane
from pairlearn.judgements import Judgements
from pairlearn.report.figures import plot_annotators
from pairlearn.risks import ConfDiff, NonNegative, Sconf, SconfConfDiff, correct
from pairlearn.style import BLUE, GREEN, GREY, ORANGE, STYLE, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).parents[1] / "images"
EXAMPLE = (0.85, 0.65)
"""Posteriors (r, r') of the pair that several pictures follow."""
OUTCOMES = {"only the left\nis positive, a": BLUE, "only the right\nis positive, b": ORANGE,
            "both alike\ns": GREEN}  # fmt: skip


# --- the idea -------------------------------------------------------------------------------


def draw_idea() -> Figure:
    """From two answers about a pair to a classifier of single instances."""
    figure = Figure((8.4, 2.5), layout="constrained")
    question, outcomes, plane = figure.subplots(1, 3, width_ratios=(1.25, 1, 1.05))
    plot_question(question).set_title("1  two soft answers about a pair …")
    plot_outcomes(outcomes).set_title("2  … are three probabilities …")
    plot_classifier(plane).set_title("3  … that a classifier has to explain")
    return figure


def plot_question(ax: Axes) -> Axes:
    """A pair and the two questions about it."""
    ax.set(xlim=(0, 10), ylim=(0, 10))
    ax.axis("off")
    for left, name in ((0.7, "left  x"), (5.7, "right  x′")):
        ax.add_patch(Rectangle((left, 6.4), 3.6, 3, fc="0.95", ec=GREY, lw=0.8))
        ax.text(left + 1.8, 7.9, name, ha="center", va="center", fontsize=9)
    for height, low, value, high, text in (
        (4.3, 0.0, 0.605, 1.0, "Same class?  s = 0.6"),
        (1.3, -1.0, -0.2, 1.0, "How much likelier is the right one positive?  c = −0.2"),
    ):
        ax.text(5, height + 1.0, text, ha="center", va="center", fontsize=7.5)
        ax.plot([1, 9], [height, height], color="0.8", lw=3, solid_capstyle="round")
        ax.plot(1 + 8 * (value - low) / (high - low), height, "o", ms=7, color="black")
        for at, number in ((1, low), (9, high)):
            text = f"{number:g}".replace("-", "−")
            ax.text(at, height - 0.85, text, ha="center", va="center", fontsize=7, color=GREY)
    return ax


def plot_outcomes(ax: Axes) -> Axes:
    """The three probabilities of the example."""
    shares = PairLabels.from_posteriors(*np.array([EXAMPLE]).T).outcomes()[0]
    for at, (share, (name, color)) in enumerate(zip(shares, OUTCOMES.items(), strict=True)):
        ax.bar(at, share, color=color, width=0.7)
        ax.text(at, share + 0.02, f"{share:.2f}", ha="center", fontsize=8)
        ax.text(at, -0.04, name, ha="center", va="top", fontsize=7, color=color)
    ax.set(xticks=[], ylim=(0, 0.72), ylabel="probability")
    ax.spines["bottom"].set_visible(False)
    return ax


def plot_classifier(ax: Axes) -> Axes:
    """Two classes that nobody named, pairs between them, and the line that was learnt."""
    rng = np.random.default_rng(3)
    centre = np.array([1.1, 0.5])
    points = np.concatenate([rng.normal(size=(26, 2)) * 0.75 + sign * centre for sign in (1, -1)])
    order = rng.permutation(len(points))[:24].reshape(-1, 2)
    for left, right in order:
        ax.plot(*points[[left, right]].T, color="0.75", lw=0.7, zorder=1)
    ax.plot(*points.T, "o", ms=3.5, color="0.35", zorder=2)
    y = np.array([-2.6, 2.6])
    ax.plot(-y * centre[1] / centre[0], y, color="black", lw=1.6)
    side = np.array([-3.6, 3.6])
    edge = np.interp(y, y, -y * centre[1] / centre[0])
    ax.fill_betweenx(y, edge, side[1], color=BLUE, alpha=0.12, lw=0)
    ax.fill_betweenx(y, side[0], edge, color=ORANGE, alpha=0.12, lw=0)
    ax.text(3.3, -2.2, "positive", ha="right", color=BLUE)
    ax.text(-3.3, 2.0, "negative", color=ORANGE)
    ax.set(xlim=side, ylim=y, xticks=[], yticks=[], xlabel="items; grey lines: judged pairs")
    return ax


# --- three outcomes -------------------------------------------------------------------------


def draw_outcomes() -> Figure:
    """The labels as a distribution over three events, and the posteriors behind it."""
    figure = Figure((8.4, 3.1), layout="constrained")
    simplex, plane, square = figure.subplots(1, 3)
    plot_simplex(simplex).set_title("three probabilities: the simplex")
    plot_region(plane).set_title("the same in answers c and s")
    plot_square(square).set_title("two pairs of posteriors fit")
    return figure


def plot_simplex(ax: Axes) -> Axes:
    """All distributions over the three outcomes, those of independent ends shaded.

    Corners are certainty. c = b − a runs to the right and s upwards, so this is the plane of
    the next panel with its height stretched.
    """
    c = np.linspace(-1, 1, 201)
    ax.fill([-1, 1, 0], [0, 0, np.sqrt(3)], fc="white", ec="black", lw=0.8)
    ax.fill_between(c, np.sqrt(3) * (1 - c**2) / 2, np.sqrt(3) * (1 - abs(c)), color="0.88", lw=0)
    ax.plot(c, np.sqrt(3) * (1 - c**2) / 2, color="black", lw=1.5)
    for at, text, shift in (
        ((-1, 0), "a = 1\n(+, −)", (0, -4)),
        ((1, 0), "b = 1\n(−, +)", (0, -4)),
        ((0, np.sqrt(3)), "s = 1, same class", (0, 11)),
    ):
        ax.annotate(text, at, xytext=shift, textcoords="offset points", ha="center", va="top",
                    fontsize=7.5)  # fmt: skip
    ax.text(0, 0.32, "no independent\npair does this", ha="center", color=GREY, fontsize=7)
    ax.text(0.18, 1.12, "feasible", ha="center", fontsize=7.5)
    a, b, s = PairLabels.from_posteriors(*np.array([EXAMPLE]).T).outcomes()[0]
    ax.plot(b - a, np.sqrt(3) * s, "o", ms=5, color="black")
    ax.set(xlim=(-1.3, 1.3), ylim=(-0.45, 2.0), aspect="equal")
    ax.axis("off")
    return ax


def plot_region(ax: Axes) -> Axes:
    """The feasible region in the plane of the two answers, with its two edges named."""
    plot_plane(None, ax)
    ax.text(0, 0.24, "too unlike for\nso small a difference", ha="center", color=GREY, fontsize=7)
    for at in (-0.78, 0.78):
        ax.text(at, 0.8, "too alike\nfor this c", ha="center", color=GREY, fontsize=7)
    ax.annotate("s = 1 − |c|", (0.42, 0.58), xytext=(6, 2), textcoords="offset points", fontsize=7)
    ax.annotate("2s = 1 − c²", (0, 0.5), xytext=(0, 4), textcoords="offset points", fontsize=7,
                ha="center")  # fmt: skip
    label = PairLabels.from_posteriors(*np.array([EXAMPLE]).T)
    ax.plot(label.difference, label.similarity, "o", ms=5, color="black")
    ax.set(xlabel="difference c", ylabel="similarity s")
    ax.set_box_aspect(1)
    return ax


def plot_square(ax: Axes) -> Axes:
    """The square of posteriors, the example and its mirror image."""
    side = np.linspace(0, 1, 101)
    r, r_prime = np.meshgrid(side, side)
    ax.fill_between(side, 1 - side, 1, color=BLUE, alpha=0.10, lw=0)
    ax.fill_between(side, 0, 1 - side, color=ORANGE, alpha=0.10, lw=0)
    same = r * r_prime + (1 - r) * (1 - r_prime)
    ax.contour(r, r_prime, same, [0.605], colors=GREEN, linewidths=1.2)
    ax.plot([0.2, 1], [0, 0.8], color="0.35", lw=1.2, ls="--")
    ax.plot([0, 1], [1, 0], color="black", lw=1)
    mirror = (1 - EXAMPLE[1], 1 - EXAMPLE[0])
    ax.add_patch(FancyArrowPatch(EXAMPLE, mirror, arrowstyle="<->", mutation_scale=9, lw=0.9,
                                 connectionstyle="arc3,rad=.35", shrinkA=4, shrinkB=4))  # fmt: skip
    for point, color, name, shift in (
        (EXAMPLE, BLUE, "(r, r′)", (-12, 8)),
        (mirror, ORANGE, "(1 − r′, 1 − r)", (7, -8)),
    ):
        ax.plot(*point, "o", ms=6, color=color, mec="black", zorder=5)
        ax.annotate(name, point, xytext=shift, textcoords="offset points", fontsize=7.5,
                    color=color)  # fmt: skip
    ax.text(0.03, 0.42, "s = .605", color=GREEN, fontsize=7)
    ax.text(0.71, 0.44, "c = −.2", color="0.35", fontsize=7)
    ax.set(xlabel="r = P(y = +1 | x)", ylabel="r′ = P(y′ = +1 | x′)", xlim=(0, 1), ylim=(0, 1))
    ax.set_box_aspect(1)
    return ax


# --- weights and corrections ----------------------------------------------------------------


def draw_weights(prior: float = 0.2) -> Figure:
    """The weight of ℓ(g(x), +1) over the feasible labels, for four members of the family."""
    figure = Figure((8.4, 2.5), layout="constrained")
    axes = figure.subplots(1, 4, sharey=True)
    for ax, risk in zip(
        axes, (ConfDiff(prior), Sconf(prior), SconfConfDiff(prior), NonNegative(prior)), strict=True
    ):
        drawn = plot_weight(risk, ax)
        ax.set_title(type(risk).__name__, color=method_style(risk.family).color)
        ax.set_xlabel("difference c")
    axes[0].set_ylabel("similarity s")
    figure.colorbar(drawn, ax=axes, label="weight of ℓ(g(x), +1)", shrink=0.9)
    return figure


def plot_weight(risk: Any, ax: Axes) -> Any:
    """The weight as a colour, its zero as a black line; negative weights are orange."""
    c, s = np.meshgrid(np.linspace(-1, 1, 241), np.linspace(0, 1, 121))
    one, u, v = (float(x) for x in risk.table[:, 0].sum(0))
    weight = np.where((s <= 1 - abs(c)) & (2 * s >= 1 - c**2), one + u * s + v * c, np.nan)
    drawn = ax.contourf(c, s, weight, np.linspace(-0.6, 0.6, 13), cmap="PuOr",
                        extend="both")  # fmt: skip
    ax.contour(c, s, weight, [0], colors="black", linewidths=1.2)
    edge = np.linspace(-1, 1, 201)
    ax.plot(edge, (1 - edge**2) / 2, color="0.5", lw=0.7)
    ax.plot([-1, 0, 1], [0, 1, 0], color="0.5", lw=0.7)
    return drawn


def draw_corrections() -> Figure:
    """The correction as a function of a partial risk."""
    figure = Figure((3.6, 2.4), layout="constrained")
    ax = figure.subplots()
    z = torch.linspace(-1, 1, 3)
    for slope, name, dash in ((-1.0, "none, τ = −1", "dotted"), (0.0, "ReLU, τ = 0", "dashed"),
                              (1.0, "ABS, τ = 1", "solid")):  # fmt: skip
        ax.plot(z, correct(z, slope), ls=dash, color="black", lw=1.5, label=name)
    ax.axhline(0, color="0.8", lw=0.7)
    ax.set(xlabel="partial risk z of a batch", ylabel="what counts, max(z, −τz)")
    ax.legend(loc="upper center", fontsize=7)
    return figure


# --- likelihood and prior -------------------------------------------------------------------


def draw_likelihood() -> Figure:
    """The pair likelihood of one label over the posteriors of a model."""
    figure = Figure((4.2, 3.1), layout="constrained")
    ax = figure.subplots()
    side = np.linspace(0.02, 0.98, 65)
    p, p_prime = np.meshgrid(side, side)
    least = pair_scores(np.array(EXAMPLE[0]), np.array(EXAMPLE[1]), EXAMPLE)
    excess = pair_scores(p, p_prime, EXAMPLE) - least
    levels = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
    norm = BoundaryNorm(levels, 256)
    drawn = ax.contourf(p, p_prime, excess, levels, cmap="cividis_r", norm=norm, extend="max")
    ax.plot([0, 1], [1, 0], color="white", lw=1, ls="--")
    for point, name in ((EXAMPLE, "truth"), ((1 - EXAMPLE[1], 1 - EXAMPLE[0]), "mirror image")):
        ax.plot(*point, "*", ms=9, color="white", mec="black")
        ax.annotate(name, point, xytext=(0, -15), textcoords="offset points", ha="center",
                    fontsize=7)  # fmt: skip
    ax.set(xlabel="the model's p", ylabel="the model's p′", xlim=(0, 1), ylim=(0, 1))
    ax.set_box_aspect(1)
    figure.colorbar(drawn, ax=ax, label="loss above its least value")
    return figure


def pair_scores(p: Any, p_prime: Any, posteriors: tuple[float, float]) -> Any:
    """The likelihood's loss at each (p, p'), of the labels that the posteriors give."""
    label = PairLabels.from_posteriors(*np.array([posteriors]).T)
    s, c = (torch.as_tensor(column) for column in (label.similarity, label.difference))
    z, z_prime = (torch.logit(torch.as_tensor(x).reshape(-1, 1)) for x in (p, p_prime))
    risk = PairLikelihood()
    values = [float(risk(a, b, s, c)) for a, b in zip(z, z_prime, strict=True)]
    return np.array(values).reshape(np.shape(p))


def draw_prior() -> Figure:
    """Mean similarity and class prior, and why the middle is hard."""
    figure = Figure((3.9, 2.6), layout="constrained")
    ax = figure.subplots()
    prior = np.linspace(0, 1, 201)
    ax.plot(prior, prior**2 + (1 - prior) ** 2, color="black", lw=1.5)
    for mean, color in ((0.68, BLUE), (0.51, ORANGE)):
        half = 0.03
        ends = [(1 - np.sqrt(max(2 * m - 1, 0))) / 2 for m in (mean + half, mean - half)]
        ax.fill_between(ends, 0.45, mean + half, color=color, alpha=0.18, lw=0)
        ax.fill_betweenx([mean - half, mean + half], 0, ends[1], color=color, alpha=0.18, lw=0)
        ax.annotate(f"±{half:g}", (0.01, mean), fontsize=7, va="center", color=color)
        ax.annotate(f"{ends[0]:.2f} to {ends[1]:.2f}", (sum(ends) / 2, 0.463), fontsize=7,
                    ha="center", color=color)  # fmt: skip
    ax.set(xlabel="class prior π₊", ylabel="mean similarity", xlim=(0, 1), ylim=(0.45, 1))
    return figure


def draw_annotators() -> Figure:
    """How five annotators answer, as learnt from 200 pairs."""
    rng = np.random.default_rng(0)
    honest = np.asarray(PairLabels.from_posteriors(*rng.beta(0.5, 0.5, (2, 200))).to_array())
    anything = np.stack([rng.random(200), rng.uniform(-1, 1, 200)], axis=1)
    crowd_answers = {
        "careful": honest + rng.normal(0, 0.02, honest.shape),
        "says “same” too often": honest + np.array([0.15, 0]),
        "hasty": honest + rng.normal(0, 0.15, honest.shape),
        "half at random": np.where(rng.random((200, 1)) < 0.5, anything, honest),
        "bored": np.tile([1.0, 0.0], (200, 1)),
    }
    answers = np.concatenate([answer.clip([0, -1], [1, 1]) for answer in crowd_answers.values()])
    ends = np.tile(np.arange(400).reshape(-1, 2), (len(crowd_answers), 1))
    learnt = Annotators.learn(
        Judgements.from_pairs(ends, answers, annotator=np.repeat(list(crowd_answers), 200))
    )
    figure = Figure((5.2, 3.2), layout="constrained")
    plot_annotators(
        [p for name in crowd_answers for p in [learnt.find(name)] if p], figure.subplots()
    )
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "idea": draw_idea,
    "outcomes": draw_outcomes,
    "weights": draw_weights,
    "corrections": draw_corrections,
    "likelihood": draw_likelihood,
    "prior": draw_prior,
    "annotators": draw_annotators,
}


def main() -> None:
    """Write every picture."""
    for name, draw in PICTURES.items():
        with rc_context(STYLE):
            path = IMAGES / f"theory-{name}.svg"
            draw().savefig(path, metadata={"Date": None})
            print(path.relative_to(IMAGES.parent.parent), f"{path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
