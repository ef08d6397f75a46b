"""Accuracy under noise as heat maps, and the plane of the labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from pairlearn.pages import Axis, Chart, Html, figure, signed, spread
from pairlearn.paper.page_summary import GridSummary, Line
from pairlearn.paper.summary import TEST_SUBSETS, dataset_title
from pairlearn.paper.theory.geometry import geometry_rows

# Viridis at every eighth of its length: even in lightness, for colour-blind readers too.
_VIRIDIS = (
    *("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c"),
    *("#28ae80", "#5ec962", "#addc30", "#fde725"),
)


def heat_colour(share: float) -> str:
    """A colour from dark blue (0) to yellow (1).

    Examples
    --------
    >>> heat_colour(0), heat_colour(0.5), heat_colour(1)
    ('#440154', '#21918c', '#fde725')
    """
    at = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    first = min(int(at), len(_VIRIDIS) - 2)
    one, two = (
        [int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in _VIRIDIS[first : first + 2]
    )
    mixed = (round(a + (b - a) * (at - first)) for a, b in zip(one, two, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def noise_figures(summary: GridSummary) -> Iterator[Html]:
    """A heat map for each data set, method and test subset; one scale for a data set.

    Parameters
    ----------
    summary : GridSummary
        The robustness experiment.

    Yields
    ------
    Html

    Examples
    --------
    >>> from pairlearn.paper.page_summary import summarize_grid
    >>> list(noise_figures(summarize_grid("robustness", [])))
    []
    """
    groups = groupby(summary.lines, key=lambda line: line.facets)
    for facets, all_lines in [(facets, list(lines)) for facets, lines in groups]:
        for subset in reversed(TEST_SUBSETS):
            lines = [line for line in all_lines if subset in line.cells]
            means = [line.cells[subset].mean for line in lines]
            for name in dict.fromkeys(line.cell.config.method for line in lines):
                mine = [line for line in lines if line.cell.config.method == name]
                title = f"{dataset_title(facets['dataset'])}, {mine[0].cell.method.title}"
                chart = _heat_map(title, mine, subset, min(means), max(means))
                note = f"darkest {min(means):.3f}, brightest {max(means):.3f}"
                yield figure(chart, title, note, facets={**facets, "subset": subset})


def _heat_map(title: str, lines: list[Line], subset: str, low: float, high: float) -> Html:
    noises = sorted({line.cell.config.label_noise for line in lines})
    factors = sorted({line.cell.config.prior_factor for line in lines})
    chart = Chart(
        title,
        Axis("label noise σ", -0.5, len(noises) - 0.5, _ticks(noises)),
        Axis("prior factor ε", -0.5, len(factors) - 0.5, _ticks(factors)),
        height=230,
    )
    for line in lines:
        cell, config = line.cells[subset], line.cell.config
        x, y = noises.index(config.label_noise), factors.index(config.prior_factor)
        share = (cell.mean - low) / (high - low) if high > low else 1.0
        tip = (
            f"ε = {config.prior_factor:g}, σ = {config.label_noise:g}: "
            f"{spread(cell.mean, cell.std)} over {len(cell.seeds)} seeds"
        )
        if line.published is not None and line.compared is not None and subset == "paper":
            tip += f"\npublished {spread(line.published.mean, line.published.std)}, "
            tip += (
                f"a copy of σ = {line.published.copy_of:g}"
                if line.compared.is_copy
                else f"difference {signed(line.compared.difference)}"
            )
        colour = heat_colour(share)
        chart.box((x - 0.5, y - 0.5), (x + 0.5, y + 0.5), "", tip, colour)
        shade = "on-dark" if _is_dark(colour) else "on-light"
        chart.text(x, y, f"{cell.mean:.3f}", f"mid {shade}", shift=(0, 3.5))
    return chart.html()


def _is_dark(colour: str) -> bool:
    """Whether white has more contrast with it than black."""
    channels = [math.pow(int(colour[k : k + 2], 16) / 255, 2.2) for k in (1, 3, 5)]
    light = 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]
    return light < 0.18  # there (1 + 0.05)/(light + 0.05) = (light + 0.05)/0.05


def _ticks(values: list[float]) -> list[tuple[float, str]]:
    return [(place, f"{value:g}") for place, value in enumerate(values)]


def plane_figure() -> Html:
    """The plane of difference and similarity, with lines of constant posterior.

    Returns
    -------
    Html

    Examples
    --------
    >>> "c = 0.4, s = 0.44: r = 0.2, r′ = 0.6 or r = 0.4, r′ = 0.8" in plane_figure()
    True
    """
    chart = Chart(
        "The plane of the labels",
        Axis("difference c = r′ − r", -1.06, 1.06),
        Axis("similarity s = P(same class)", -0.04, 1.06),
        width=440,
        height=340,
    )
    curve = [(t / 50, (1 - (t / 50) ** 2) / 2) for t in range(-50, 51)]
    chart.area([(-1, 0), (0, 1), (1, 0), *reversed(curve)], "region")
    rows = geometry_rows(levels=11, points=11)
    for level in dict.fromkeys(row["r"] for row in rows):
        points = [(row["difference"], row["similarity"]) for row in rows if row["r"] == level]
        chart.line(points, "c-other thin")
    chart.line(curve, "c-ink")
    posteriors: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        at = row["difference"], row["similarity"]
        posteriors.setdefault(at, []).append(f"r = {row['r']:g}, r′ = {row['r_prime']:g}")
    for (c, s), both in posteriors.items():
        tip = f"c = {c:g}, s = {s:g}: {' or '.join(both)}".replace("-", "−")
        marker, colour = ("o", "c-up") if len(both) > 1 else ("D", "c-ink")
        chart.mark(c, s, marker, colour, tip, radius=3)
    chart.text(0, 0.2, "no posteriors give such labels", "mid faint")
    chart.text(-0.98, 0, "left +, right −", shift=(10, 12))
    chart.text(0.98, 0, "left −, right +", "end", shift=(-10, 12))
    chart.text(0, 1, "same class", "mid", shift=(0, -8))
    return figure(
        chart.html(),
        "Every label (c, s) and the posteriors behind it",
        "lines of constant r touch the parabola c² = 1 − 2s; circles have two pairs of "
        "posteriors, diamonds on the parabola one, with r + r′ = 1",
    )
