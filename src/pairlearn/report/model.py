"""A fitted model as a page for readers who do not know the method."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pairlearn.diagnostics import plot_plane
from pairlearn.report.figures import (
    PageFigure,
    draw,
    evenly,
    plot_calibration,
    plot_histogram,
    plot_learning,
    plot_roc,
)
from pairlearn.report.html import HtmlTable, TableCell, number_cell, percent, render, signed
from pairlearn.report.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairlearn.evaluation import Estimate

MOST_DOTS = 2000
"""Judgements that are drawn; of more, as many evenly from the whole table."""

_SECTIONS = {
    "quality": "How good the model is",
    "warnings": "Warnings and notes",
    "judgements": "What the annotators said",
    "probabilities": "Its probabilities",
    "annotators": "The annotators",
    "training": "How it was trained",
    "glossary": "Words on this page",
}
_MEASURES = {
    "accuracy": ("Accuracy", "share of items that get the right class"),
    "balanced_accuracy": ("Balanced accuracy", "mean of the shares right in either class"),
    "roc_auc": (
        "ROC AUC",
        "how often a positive item gets a higher probability than a negative one",
    ),
    "true_positive_rate": ("True positive rate", "share of the positive items that are found"),
    "false_positive_rate": (
        "False positive rate",
        "share of the negative items that are called positive",
    ),
    "precision": ("Precision", "share of positives among the items called positive"),
    "f1": ("F1", "harmonic mean of precision and true positive rate"),
    "prior": ("Share of positives", "in the items of these pairs, as judgements imply it"),
}
_SEVERITIES = ("error", "warning", "note")


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
    >>> data = simulate(pairs=120)
    >>> ends, labels = data.items.features[data.pairs.ids()], data.pairs.labels()
    >>> model = PairClassifier(model="linear", epochs=5, random_state=0).fit(ends, labels)
    >>> found = model.evaluate(ends, labels)
    >>> page = build_report(measure(model, data.items, data.pairs, found, names=("m", "p")))
    >>> page.startswith("<!doctype html>"), "as the annotators see it" in page
    (True, True)
    """
    found, check = measured.evaluation, measured.check
    negative, positive = _class_names(measured)
    tiles = (
        ("Accuracy", found.accuracy, "right, as the annotators see it"),
        (f"Found of those that are {positive}", found.true_positive_rate, "true positive rate"),
        (f"Right when it says {positive}", found.precision, "precision"),
        ("Share of positives", found.prior, "class prior of these items"),
    )
    return render(
        "model.html",
        title=f"{measured.model}: how good is it?",
        sections=_SECTIONS,
        measured=measured,
        accuracy=None if math.isnan(found.accuracy.value) else found.accuracy,
        doubts=len(measured.warnings) + len(check.of("error")) + len(check.of("warning")),
        figures_first=[
            (name, percent(one.value), f"{percent(one.low)} to {percent(one.high)}: {words}")
            for name, one, words in tiles
        ],
        measures=_measures(measured),
        confusion=_confusion(measured, negative, positive),
        notes=_notes(measured),
        charts=_charts(measured),
        disagreements=_disagreements(measured),
        annotators=_annotators(measured),
        foot=f"from the model {measured.model} and {found.n:,} judged pairs of {measured.pairs}",
    )


def _charts(measured: Measured) -> dict[str, PageFigure]:
    """The figures that there are data for."""
    called = (measured.probabilities > measured.threshold).sum()
    charts = {
        "plane": _plane(measured),
        "histogram": PageFigure(
            "How sure the model is",
            draw(
                partial(plot_histogram, measured.probabilities, measured.threshold),
                f"Histogram of the probabilities of {len(measured.probabilities):,} items, of "
                f"which {called:,} are called positive",
            ),
            f"dashed: called positive above {measured.threshold:g}",
        ),
    }
    if measured.calibration is not None:
        told = "; ".join(
            f"{percent(float(at))} predicted, {percent(one.value)} implied"
            for at, one in zip(measured.calibration.predicted, measured.calibration.implied,
                               strict=True)
        )  # fmt: skip
        charts["calibration"] = PageFigure(
            "Do probabilities mean what they say?",
            draw(partial(plot_calibration, measured.calibration), f"Calibration curve: {told}"),
            "on the dashed line they do; bars are the intervals of the shares",
        )
    if measured.roc is not None:
        area = " (".join(_told(measured.evaluation.roc_auc)) + ")"
        charts["roc"] = PageFigure(
            "Found positives and false alarms",
            draw(partial(plot_roc, measured.roc), f"ROC curve with the area {area}"),
            f"area under the curve: {area}",
        )
    history = [row for row in measured.history if np.isfinite(row.get("risk", np.nan))]
    if len(history) > 1:
        told = (
            f"from {history[0]['risk']:.3f} to {history[-1]['risk']:.3f} in {len(history)} rounds"
        )
        charts["learning"] = PageFigure(
            "How training went",
            draw(partial(plot_learning, history), f"Learning curve: the risk {told}", (5.2, 3.2)),
            "the risk, which training minimises; it should fall and level off",
        )
    return charts


def _plane(measured: Measured) -> PageFigure:
    labels = measured.table.labels()
    some = labels[evenly(len(labels), MOST_DOTS)]

    def plot(ax: Axes) -> None:
        plot_plane(some, ax)
        if measured.disagreements:
            s, c = zip(*(one.said for one in measured.disagreements), strict=True)
            ax.plot(c, s, "D", ms=5, mfc="none", mec="black", zorder=4)

    marked = "diamonds: where the model is furthest from what was said"
    alt = f"{len(labels):,} judgements in the plane of difference and similarity"
    return PageFigure("Every judgement is a point", draw(plot, alt, (5.2, 4.4)), marked)


def _measures(measured: Measured) -> HtmlTable:
    found = measured.evaluation
    rows = []
    for name, (title, words) in _MEASURES.items():
        value, span = _told(getattr(found, name))
        known = None if value == "–" else getattr(found, name).value
        cells = TableCell(title), TableCell(words, None, "wide"), TableCell(value, known)
        rows.append([*cells, TableCell(span)])
    return HtmlTable(
        f"Measures on {found.n:,} judged pairs, worth {found.effective_pairs:,.0f} independent "
        f"ones; positive above a probability of {measured.threshold:g}",
        ("measure", "what it is", "estimate", f"{found.confidence:.0%} interval"),
        rows,
    )


def _confusion(measured: Measured, negative: str, positive: str) -> HtmlTable:
    names = {
        "true_positive": (positive, positive, "right"),
        "false_negative": (positive, negative, "wrong"),
        "false_positive": (negative, positive, "wrong"),
        "true_negative": (negative, negative, "right"),
    }
    rows = []
    for name, words in names.items():
        one = measured.evaluation.confusion[name]
        span = TableCell(f"{1000 * one.low:.0f} to {1000 * one.high:.0f}")
        rows.append([*map(TableCell, words), number_cell(1000 * one.value, "{:.0f}"), span])
    columns = (
        "class, as the annotators see it",
        "what the model says",
        "so it is",
        "of 1,000 items",
        f"{measured.evaluation.confidence:.0%} interval",
    )
    return HtmlTable("Of 1,000 items like these, how many end up where", columns, rows)


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
    return sorted(notes, key=lambda note: _SEVERITIES.index(note[0]))


def _disagreements(measured: Measured) -> HtmlTable:
    rows = [
        [
            *(TableCell(text, None, "wide") for text in (a.left, a.right, a.annotator or "–")),
            *(number_cell(x, "{:.2f}") for k in range(2) for x in (a.said[k], a.model[k])),
        ]
        for a in measured.disagreements
    ]
    kinds = ("similarity, said", "similarity, model", "difference, said", "difference, model")
    columns = ("left item", "right item", "annotator", *kinds)
    return HtmlTable("Pairs on which the model is furthest from what was said", columns, rows)


def _annotators(measured: Measured) -> HtmlTable:
    columns = (
        *("annotator", "judgements", "of pairs that others judged too"),
        *("mean distance to the others", "similarity above others'"),
        *("difference to the right of others'", "mean distance to the model"),
    )
    rows = []
    for one in measured.annotators:
        signs = (one.similarity_bias, one.difference_bias)
        cells = [
            TableCell(one.name, None, "wide"),
            *(number_cell(count, "{:,}") for count in (one.judgements, one.shared)),
            number_cell(one.gap, "{:.2f}"),
            *(TableCell("–") if math.isnan(x) else TableCell(signed(x), x) for x in signs),
            number_cell(one.model_gap, "{:.2f}"),
        ]
        rows.append(cells)
    return HtmlTable("Annotators beside one another", columns, rows)


def _class_names(measured: Measured) -> tuple[str, str]:
    """Names for readers: −1 and 1 are no names."""
    if measured.classes == ("-1", "1"):
        return "negative", "positive"
    return f"negative ({measured.classes[0]})", f"positive ({measured.classes[1]})"


def _told(found: Estimate) -> tuple[str, str]:
    """A value and its interval, or dashes where it is not defined."""
    if math.isnan(found.value):
        return "–", "–"
    return f"{found.value:.3f}", f"{found.low:.3f} to {found.high:.3f}"
