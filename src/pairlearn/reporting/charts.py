"""The charts of a report about a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairlearn.evaluation import CalibrationCurve, RocCurve
from pairlearn.labels import PairLabels
from pairlearn.pages import Axis, Chart, Html, figure, interval, nice_ticks, percent
from pairlearn.pages.axes import span_of
from pairlearn.reporting.measured import Disagreement, Floats, Measured

__all__ = [
    "calibration_figure",
    "histogram_figure",
    "learning_figure",
    "plane_figure",
    "roc_figure",
]

MOST_DOTS = 4000
"""Judgements that are drawn; of more, as many evenly from the whole table."""
MOST_MARKS = 60
_SHARES = [(tick / 4, f"{tick / 4:g}") for tick in range(5)]


def plane_figure(labels: PairLabels, apart: Sequence[Disagreement]) -> Html:
    """Judgements in the plane of difference and similarity.

    Parameters
    ----------
    labels : PairLabels
        The judgements.
    apart : sequence of Disagreement
        Pairs to mark.

    Returns
    -------
    Html

    Examples
    --------
    >>> "1 judgement fits" in plane_figure(PairLabels([0.5], [0.1]), [])
    True
    """
    s, c = (np.asarray(v, dtype=np.float64) for v in (labels.similarity, labels.difference))
    fits = np.asarray(labels.feasible())
    both = ~np.isnan(s) & ~np.isnan(c)
    chart = Chart(
        "Judgements in the plane of difference and similarity",
        Axis("difference c: right one is the likelier positive →",
             min(-1.14, np.nanmin(c, initial=0)), max(1.14, np.nanmax(c, initial=0)),
             [(t / 2, f"{t / 2:g}".replace("-", "−")) for t in range(-2, 3)]),
        Axis("similarity s: probability of one class",
             min(-0.14, np.nanmin(s, initial=0)), max(1.12, np.nanmax(s, initial=0)), _SHARES),
        width=420,
        height=340,
    )  # fmt: skip
    curve = [(t / 50, (1 - (t / 50) ** 2) / 2) for t in range(-50, 51)]
    chart.area([(-1, 0), (0, 1), (1, 0), *reversed(curve)], "region")
    notes = []
    for chosen, classes, words in (
        (both & fits, "c-up", "fit"),
        (both & ~fits, "c-down open", "do not fit any pair of probabilities"),
    ):
        if chosen.any():
            chart.dots(_thinned(c[chosen], s[chosen]), classes, radius=2.2)
            count = int(chosen.sum())
            some = f"{count:,} judgement{'s' if count > 1 else ''}"
            notes.append(f"{some} {words if count > 1 else words.replace('fit', 'fits')}")
    for values, kind in ((s[np.isnan(c)], "similarity"), (c[np.isnan(s)], "difference")):
        if len(values):
            flat = np.full(len(values), -1.09 if kind == "similarity" else -0.1)
            points = (flat, values) if kind == "similarity" else (values, flat)
            chart.dots(_thinned(*points), "c-up", radius=1.6)
            notes.append(f"{len(values):,} have a {kind} only, in the margin")
    for one in apart:
        if not any(map(np.isnan, one.said)):
            tip = f"{one.left} and {one.right}: {_said(one.said)}; the model: {_said(one.model)}"
            chart.mark(one.said[1], one.said[0], "D", "c-ink dotted", tip, radius=4)
    chart.text(-1, 0, "left +, right −", shift=(4, 14))
    chart.text(1, 0, "left −, right +", "end", shift=(-4, 14))
    chart.text(0, 1, "same class", "mid", shift=(0, -7))
    marked = "; diamonds: where the model is furthest from what was said" if apart else ""
    return figure(chart.html(), "Every judgement is a point", f"{'; '.join(notes)}{marked}")


def _said(pair: tuple[float, float]) -> str:
    return f"s = {pair[0]:.2f}, c = {pair[1]:.2f}".replace("-", "−")


def calibration_figure(curve: CalibrationCurve) -> Html:
    """Predicted probabilities against the shares that the judgements imply.

    Parameters
    ----------
    curve : CalibrationCurve
        Of the model.

    Returns
    -------
    Html

    Examples
    --------
    >>> from pairlearn.evaluation import Estimate
    >>> edges, half = np.array([0.0, 1.0]), np.array([0.5])
    >>> curve = CalibrationCurve(edges, half, (Estimate(0.4, 0.3, 0.5),), np.array([1.0]))
    >>> "imply 40%" in calibration_figure(curve)
    True
    """
    chart = _square("Calibration", "predicted probability of positive", "share of positives")
    chart.line([(0, 0), (1, 1)], "c-other dashed thin")
    for at, found, share in zip(curve.predicted, curve.implied, curve.shares, strict=True):
        x = float(at)
        chart.whisker((x, found.low), (x, found.high), "c-up")
        tip = (
            f"Predicted {percent(x)} on average; the judgements imply {percent(found.value)} "
            f"({interval(found.low, found.high)}). {percent(float(share))} of the items."
        )
        if not np.isnan(found.value):
            chart.mark(x, found.value, "o", "c-up", tip, radius=4.5)
    return figure(
        chart.html(),
        "Do probabilities mean what they say?",
        "on the dashed line they do; bars are the intervals of the shares",
    )


def roc_figure(curve: RocCurve, area: str) -> Html:
    """Found positives against false alarms, for every threshold.

    Parameters
    ----------
    curve : RocCurve
        Of the model.
    area : str
        The area under it, in words.

    Returns
    -------
    Html

    Examples
    --------
    >>> curve = RocCurve(np.array([np.inf, 0.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    >>> "0.5" in roc_figure(curve, "0.5")
    True
    """
    chart = _square("ROC curve", "share of negatives called positive",
                    "share of positives found")  # fmt: skip
    chart.line([(0, 0), (1, 1)], "c-other dashed thin")
    points = list(
        zip(curve.false_positive_rate.tolist(), curve.true_positive_rate.tolist(), strict=True)
    )
    some = _evenly(len(points), 400)
    chart.line([points[k] for k in some], "c-up")
    for k in _evenly(len(points), 21)[1:-1]:
        x, y = points[k]
        at = float((1 + np.tanh(curve.thresholds[k] / 2)) / 2)
        tip = f"Threshold {at:.3f}: finds {percent(y)} of the positives, {percent(x)} false alarms"
        chart.mark(x, y, "o", "c-up", tip, radius=3)
    return figure(chart.html(), "Found positives and false alarms", f"area under the curve: {area}")


def histogram_figure(probabilities: Floats, threshold: float) -> Html:
    """How often the model gives which probability.

    Parameters
    ----------
    probabilities : array
        Of the positive class.
    threshold : float
        Where the model decides.

    Returns
    -------
    Html

    Examples
    --------
    >>> "1 item (50%)" in histogram_figure(np.array([0.02, 0.97]), 0.5)
    True
    """
    counts, edges = np.histogram(probabilities, bins=20, range=(0, 1))
    most = int(counts.max(initial=1))
    ticks = [(t, f"{t:,g}") for t in nice_ticks(0, most, 4) if t == int(t)]
    chart = Chart(
        "Histogram of the predicted probabilities",
        Axis("predicted probability of positive", 0, 1, _SHARES),
        Axis("items (number)", 0, most * 1.05, ticks),
        width=360,
        height=330,
    )
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if count:
            items = f"{count:,} item{'s' if count > 1 else ''}"
            tip = f"{low:.2f} to {high:.2f}: {items} ({percent(count / len(probabilities))})"
            chart.box((low, 0), (high, count), "c-up", tip)
    chart.line([(threshold, 0), (threshold, most * 1.05)], "c-ink dashed thin")
    return figure(
        chart.html(), "How sure the model is", f"dashed: called positive above {threshold:g}"
    )


def learning_figure(measured: Measured) -> Html | None:
    """The risk in training, epoch by epoch; None where the folder keeps no history.

    Parameters
    ----------
    measured : Measured
        What is known of the model.

    Returns
    -------
    Html or None

    Examples
    --------
    See `pairlearn.reporting.build_report`.
    """
    rows = [row for row in measured.history if np.isfinite(row.get("risk", np.nan))]
    if len(rows) < 2:
        return None
    lines = [
        (name, classes, words)
        for name, classes, words in (
            ("risk", "c-up", "training"),
            ("validation_risk", "c-down dashed", "held-out rows"),
        )
        if all(np.isfinite(row.get(name, np.nan)) for row in rows)
    ]
    values = [row[name] for row in rows for name, _, _ in lines]
    last = rows[-1]["epoch"]
    chart = Chart(
        "Learning curve",
        Axis("epoch (passes over the pairs)", 0, last,
             [(t, f"{t:,g}") for t in nice_ticks(0, last, 5) if t == int(t)]),
        Axis("risk (mean loss)", *span_of(values, least=1e-6)),
        width=420,
        height=280,
    )  # fmt: skip
    for name, classes, words in lines:
        chart.line([(row["epoch"], row[name]) for row in rows], classes)
        for k in _evenly(len(rows), MOST_MARKS):
            tip = f"Epoch {rows[k]['epoch']:g}, {words}: {rows[k][name]:.4f}"
            marker = "o" if name == "risk" else "^"
            chart.mark(rows[k]["epoch"], rows[k][name], marker, classes.split()[0], tip, radius=2)
    held = " Dashed: rows held out from training." if len(lines) > 1 else ""
    return figure(
        chart.html(),
        "How training went",
        f"the risk that training makes small; it should fall and level off.{held}",
    )


def _square(title: str, x: str, y: str) -> Chart:
    return Chart(title, Axis(x, 0, 1, _SHARES), Axis(y, 0, 1, _SHARES), width=360, height=330)


def _thinned(x: Floats, y: Floats) -> list[tuple[float, float]]:
    some = _evenly(len(x), MOST_DOTS)
    return [(float(x[k]), float(y[k])) for k in some]


def _evenly(count: int, most: int) -> list[int]:
    """At most so many places among so many, both ends included."""
    if count <= most:
        return list(range(count))
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]
