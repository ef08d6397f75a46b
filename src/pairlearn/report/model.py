"""A fitted model as a page for readers who do not know the method."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.check import plot_plane
from pairlearn.report import figures
from pairlearn.report.html import percent, render
from pairlearn.report.measured import Measured

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

MOST_DOTS = 2000
"""Judgements that are drawn; of more, as many evenly from the whole table."""


def build_report(measured: Measured) -> str:
    """Lay out a report about a model.

    Parameters
    ----------
    measured : Measured
        What was found, see `measure`.

    Returns
    -------
    str
        The page: HTML that needs nothing beside itself.

    Examples
    --------
    >>> from pairlearn.estimators import PairClassifier
    >>> from pairlearn.report import measure
    >>> from pairlearn.data.simulation import simulate
    >>> data, other = simulate(pairs=120, seed=0), simulate(pairs=120, seed=1)
    >>> pairs, labels = other.items.features[other.pairs.ids()], other.pairs.labels()
    >>> model = PairClassifier(model="linear", epochs=5, random_state=0).fit(pairs, labels)
    >>> found = model.evaluate(data.items.features[data.pairs.ids()], data.pairs.labels())
    >>> page = build_report(measure(model, data.items, data.pairs, found, names=("m", "p")))
    >>> page.startswith("<!doctype html>"), "as the annotators see it" in page
    (True, True)
    """
    found, check = measured.evaluation, measured.check
    area = found.roc_auc
    return render(
        "model.html",
        title=f"{measured.model}: how good is it?",
        measured=measured,
        accuracy=None if math.isnan(found.accuracy.value) else found.accuracy,
        doubts=len(measured.warnings) + len(check.of("error")) + len(check.of("warning")),
        **dict(zip(("negative", "positive"), _class_names(measured), strict=True)),
        notes=_notes(measured),
        charts=_charts(measured),
        area=f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f})",
        foot=f"from the model {measured.model} and {found.n:,} judged pairs of {measured.pairs}",
    )


def _charts(measured: Measured) -> dict[str, Markup]:
    """The figures that there are data for."""
    items = measured.probabilities
    labels = measured.table.labels()
    charts = {
        "plane": figures.draw(
            partial(_plot_judgements, measured),
            f"{len(labels):,} judgements in the plane of difference and similarity",
            (5.2, 4.4),
        ),
        "histogram": figures.draw(
            partial(figures.plot_histogram, items, measured.threshold),
            f"Histogram of the probabilities of {len(items):,} items, of which "
            f"{(items > measured.threshold).sum():,} are called positive",
        ),
    }
    if (curve := measured.calibration) is not None:
        told = "; ".join(
            f"{percent(float(at))} predicted, {percent(one.value)} implied"
            for at, one in zip(curve.predicted, curve.implied, strict=True)
        )
        plot: Any = partial(figures.plot_calibration, curve)
        charts["calibration"] = figures.draw(plot, f"Calibration curve: {told}")
    if measured.roc is not None:
        area = f"ROC curve with the area {measured.evaluation.roc_auc.value:.3f}"
        charts["roc"] = figures.draw(partial(figures.plot_roc, measured.roc), area)
    history = [row for row in measured.history if np.isfinite(row.get("risk", np.nan))]
    if len(history) > 1:
        first, last = history[0]["risk"], history[-1]["risk"]
        told = f"Learning curve: the risk from {first:.3f} to {last:.3f} in {len(history)} rounds"
        charts["learning"] = figures.draw(partial(figures.plot_learning, history), told, (5.2, 3.2))
    return charts


def _plot_judgements(measured: Measured, ax: Axes) -> None:
    labels = measured.table.labels()
    plot_plane(labels[figures.evenly(len(labels), MOST_DOTS)], ax)
    if measured.disagreements:
        s, c = zip(*(one.said for one in measured.disagreements), strict=True)
        ax.plot(c, s, "D", ms=5, mfc="none", mec="black", zorder=4)


def _notes(measured: Measured) -> list[tuple[str, str, str]]:
    """Severity, message and where, errors first."""
    notes = [("warning", text, "") for text in measured.warnings]
    for finding in measured.check.findings:
        where = []
        if finding.rows:
            where.append(f"first rows: {', '.join(map(str, finding.rows))}")
        if finding.ids:
            where.append(f"for instance: {', '.join(map(str, finding.ids))}")
        notes.append((finding.severity, finding.message, "; ".join(where)))
    return sorted(notes, key=lambda note: ("error", "warning", "note").index(note[0]))


def _class_names(measured: Measured) -> tuple[str, str]:
    """Names for readers: −1 and 1 are no names."""
    if measured.classes == ("-1", "1"):
        return "negative", "positive"
    return f"negative ({measured.classes[0]})", f"positive ({measured.classes[1]})"
