"""The paper's figures as charts that can be pointed at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from pairlearn.pages import Axis, Chart, Html, figure, legend, method_classes, signed, spread
from pairlearn.pages.axes import accuracy_axis, nice_ticks, span_of
from pairlearn.paper.methods import CORRECTIONS, Method
from pairlearn.paper.page_summary import GridSummary, Line
from pairlearn.paper.summary import TEST_SUBSETS, Cell, dataset_title
from pairlearn.style import method_style

Entry = tuple[Line, Cell]


def accuracy_figures(summary: GridSummary) -> Iterator[Html]:
    """Every method on a row, for each data set, prior and test subset.

    Parameters
    ----------
    summary : GridSummary
        The accuracy experiment.

    Yields
    ------
    Html

    Examples
    --------
    >>> from pairlearn.paper.page_summary import summarize_grid
    >>> list(accuracy_figures(summarize_grid("accuracy", [])))
    []
    """
    for title, facets, entries in _panels(summary):
        yield figure(_dots(title, entries, facets["subset"]), title, facets=facets)


def gamma_figures(summary: GridSummary) -> Iterator[Html]:
    """The convex combination from ConfDiff to Sconf, a line for each correction.

    Parameters
    ----------
    summary : GridSummary
        The γ experiment.

    Yields
    ------
    Html

    Examples
    --------
    >>> from pairlearn.paper.page_summary import summarize_grid
    >>> list(gamma_figures(summarize_grid("gamma", [])))
    []
    """
    for title, facets, entries in _panels(summary):
        lines = [
            (f"convex-{correction}", Method("convex", None, correction).correction_title,
             [entry for entry in entries if entry[1].method.correction == correction])
            for correction in CORRECTIONS
        ]  # fmt: skip
        axis = Axis("γ (share of Sconf)", 0, 1)
        chart = _curves(title, lines, axis, lambda cell: cell.gamma or 0.0, "γ = {:g}")
        yield figure(chart, title, facets=facets)


def limited_figures(summary: GridSummary) -> Iterator[Html]:
    """Accuracy against the number of pairs, a line for each method.

    Parameters
    ----------
    summary : GridSummary
        The experiment on limited data.

    Yields
    ------
    Html

    Examples
    --------
    >>> from pairlearn.paper.page_summary import summarize_grid
    >>> list(limited_figures(summarize_grid("limited", [])))
    []
    """
    for title, facets, entries in _panels(summary):
        names = list(dict.fromkeys(cell.config.method for _, cell in entries))
        lines = [
            (name, Method.parse(name).title, [e for e in entries if e[1].config.method == name])
            for name in names
        ]
        most = max(cell.config.n_training_pairs for _, cell in entries)
        ticks = [(tick, f"{tick:,g}") for tick in nice_ticks(0, most, 4)]
        axis = Axis("training pairs (number)", 0, most * 1.02, ticks)
        chart = _curves(
            title, lines, axis, lambda cell: cell.config.n_training_pairs, "{:,g} pairs"
        )
        yield figure(chart, title, facets=facets)


CHARTS: dict[str, Callable[[GridSummary], Iterator[Html]]] = {
    "accuracy": accuracy_figures,
    "gamma": gamma_figures,
    "limited": limited_figures,
}
"""What draws the figures of an experiment, but for the heat maps."""


def method_legend(summary: GridSummary) -> Html:
    """What lines and markers of an experiment's figures mean.

    Parameters
    ----------
    summary : GridSummary
        The experiment.

    Returns
    -------
    Html

    Examples
    --------
    >>> from pairlearn.paper.page_summary import summarize_grid
    >>> "ReLU" in method_legend(summarize_grid("gamma", []))
    True
    """
    if summary.grid == "gamma":
        titles = [
            (f"convex-{c}", f"Convex, {Method('convex', None, c).correction_title}")
            for c in CORRECTIONS
        ]
    else:
        names = dict.fromkeys(line.cell.config.method for line in summary.lines)
        titles = [(name, Method.parse(name).title) for name in names]
    if summary.grid == "accuracy":  # its rows say the rest
        families = dict.fromkeys(name.partition("-")[0] for name, _ in titles)
        titles = [
            (f"{name}-abs", Method(name, None, "abs").title.removesuffix("-ABS"))
            for name in families
        ]
    return legend(titles)


def _panels(summary: GridSummary) -> Iterator[tuple[str, dict[str, str], list[Entry]]]:
    """The title, the facets and the cells of each panel."""
    groups = groupby(summary.lines, key=lambda line: line.facets)
    for facets, lines in [(facets, list(lines)) for facets, lines in groups]:
        title = f"{dataset_title(facets['dataset'])}, π₊ = {facets['prior']}"
        for subset in reversed(TEST_SUBSETS):
            entries = [(line, line.cells[subset]) for line in lines if subset in line.cells]
            if entries:
                yield title, {**facets, "subset": subset}, entries


def _dots(title: str, entries: Sequence[Entry], subset: str) -> Html:
    rows = list(entries)
    values = [cell.mean for _, cell in rows]
    if subset == "paper":
        values += [line.published.mean for line, _ in rows if line.published is not None]
    taught = next((cell.annotator for _, cell in rows if cell.annotator is not None), None)
    names = [cell.method.title for _, cell in rows]
    if taught is not None:
        values, names = [*values, taught], [*names, "Annotator"]
    chart = Chart(
        title,
        accuracy_axis(values),
        Axis("", len(names) - 0.4, -0.6, list(enumerate(names))),
        height=15 * len(names) + 50,
        left=140,
    )
    for _, cell in rows:
        if not cell.method.is_weak:
            top, floor = (cell.mean, -0.6), (cell.mean, len(names) - 0.4)
            chart.line([top, floor], "c-supervised dashed thin")
    for place, (line, cell) in enumerate(rows):
        printed = line.published if subset == "paper" else None
        if printed is not None:
            y = place + 0.22
            tip = f"{cell.method.title}, published: {spread(printed.mean, printed.std)}"
            _whisker(chart, printed.mean, printed.std, y, "c-other")
            chart.mark(printed.mean, y, "|", "c-other", tip, radius=3)
        y = place - 0.18 if printed is not None else place
        name = cell.config.method
        _whisker(chart, cell.mean, cell.std, y, method_classes(name))
        chart.mark(cell.mean, y, method_style(name).marker, method_classes(name),
                   _tip(cell.method.title, line, cell))  # fmt: skip
    if taught is not None:
        tip = f"The annotator itself: {taught:.3f}"
        chart.mark(taught, len(rows), method_style("annotator").marker, "c-annotator", tip)
    return chart.html()


def _whisker(chart: Chart, mean: float, std: float, y: float, classes: str) -> None:
    chart.whisker((mean - std, y), (mean + std, y), classes.partition(" ")[0])


def _curves(
    title: str,
    lines: Iterable[tuple[str, str, Sequence[Entry]]],
    x: Axis,
    at: Callable[[Cell], float],
    place: str,
) -> Html:
    lines = [line for line in lines if line[2]]
    ends = [
        c.mean + side * c.std for _, _, entries in lines for _, c in entries for side in (-1, 1)
    ]
    low, high = span_of(ends)
    low, high = max(low, 0.0), min(high, 1.0) if max(ends) < 1 else 1.0
    chart = Chart(title, x, Axis("accuracy (share correct)", low, high))
    for name, _, entries in lines:
        cells = sorted((cell for _, cell in entries), key=at)
        xs, means = [at(c) for c in cells], [c.mean for c in cells]
        classes = method_classes(name)
        chart.band(xs, means, [c.std for c in cells], classes.partition(" ")[0])
        chart.line(list(zip(xs, means, strict=True)), classes)
    for name, shown, entries in lines:
        for line, cell in sorted(entries, key=lambda entry: at(entry[1])):
            tip = _tip(f"{shown}, {place.format(at(cell))}", line, cell)
            style = method_style(name)
            chart.mark(at(cell), cell.mean, style.marker, method_classes(name), tip, radius=3.2)
    return chart.html()


def _tip(what: str, line: Line, cell: Cell) -> str:
    seeds = len(cell.seeds)
    text = f"{what}: {spread(cell.mean, cell.std)} over {seeds} seed{'s' * (seeds != 1)}"
    if line.published is not None and cell.test_subset == "paper":
        away = cell.mean - line.published.mean
        known = spread(line.published.mean, line.published.std)
        text += f"\npublished {known}, difference {signed(away)}"
    return text if not math.isnan(cell.mean) else what
