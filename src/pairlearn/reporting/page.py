"""The report as a page."""

from __future__ import annotations

import math

import pairlearn
from pairlearn.pages import (
    Column,
    Html,
    TableCell,
    TableRow,
    document,
    joined,
    percent,
    signed,
    table,
    tag,
)
from pairlearn.reporting.charts import (
    calibration_figure,
    histogram_figure,
    learning_figure,
    plane_figure,
    roc_figure,
)
from pairlearn.reporting.measured import Measured
from pairlearn.reporting.words import GLOSSARY, MEASURES, first_words, told

__all__ = ["build_report"]


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
    >>> from pairlearn.reporting import measure
    >>> from pairlearn.data.simulation import simulate
    >>> data = simulate(pairs=120)
    >>> ends, labels = data.items.features[data.pairs.ids()], data.pairs.labels()
    >>> model = PairClassifier(model="linear", epochs=5, random_state=0).fit(ends, labels)
    >>> found = model.evaluate(ends, labels)
    >>> page = build_report(measure(model, data.items, data.pairs, found, names=("m", "p")))
    >>> page.startswith("<!doctype html>"), "as the annotators see it" in page
    (True, True)
    """
    sections = [
        ("quality", "How good the model is", _quality(measured)),
        ("warnings", "Warnings and notes", _warnings(measured)),
        ("judgements", "What the annotators said", _judgements(measured)),
        ("probabilities", "Its probabilities", _probabilities(measured)),
        ("annotators", "The annotators", _annotators(measured)),
        ("training", "How it was trained", _training(measured)),
        ("glossary", "Words on this page", _glossary()),
    ]
    lead = joined([first_words(measured), _tiles(measured)])
    title = f"{measured.model}: how good is it?"
    foot = (
        f"Made by pairlearn {pairlearn.__version__} from the model {measured.model} and "
        f"{measured.evaluation.n:,} judged pairs of {measured.pairs}."
    )
    return document(title, lead, sections, foot)


def _tiles(measured: Measured) -> Html:
    found = measured.evaluation
    positive = _class_names(measured)[1]
    tiles = [
        ("Accuracy", found.accuracy, "right, as the annotators see it"),
        (f"Found of those that are {positive}", found.true_positive_rate, "true positive rate"),
        (f"Right when it says {positive}", found.precision, "precision"),
        ("Share of positives", found.prior, "class prior of these items"),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", percent(one.value)),
                tag("dd", f"{percent(one.low)} to {percent(one.high)}: {words}"))
            for name, one, words in tiles
        ),
        class_="tiles",
    )  # fmt: skip


def _quality(measured: Measured) -> Html:
    found = measured.evaluation
    columns = [
        Column("measure"),
        Column("what it is"),
        Column("estimate", "number"),
        Column(f"{found.confidence:.0%} interval"),
    ]
    rows = []
    for name, (title, words) in MEASURES.items():
        one = getattr(found, name)
        value, span = told(one)
        known = None if math.isnan(one.value) else one.value
        cells = [TableCell(title), TableCell(words, classes="wide"), TableCell(value, known)]
        rows.append(TableRow([*cells, TableCell(span)]))
    caption = (
        f"Measures on {found.n:,} judged pairs, worth {found.effective_pairs:,.0f} independent "
        f"ones; positive above a probability of {measured.threshold:g}"
    )
    parts = [table(caption, columns, rows), _confusion(measured)]
    if measured.roc is None:
        parts.append(_missing("A ROC curve", measured.reasons["roc"]))
    else:
        area = found.roc_auc
        text = " (".join(told(area)) + ")"
        parts.append(tag("div", roc_figure(measured.roc, text), class_="figures"))
    return joined(parts)


def _confusion(measured: Measured) -> Html:
    negative, positive = _class_names(measured)
    names = {
        "true_positive": (positive, positive, "right"),
        "false_negative": (positive, negative, "wrong"),
        "false_positive": (negative, positive, "wrong"),
        "true_negative": (negative, negative, "right"),
    }
    rows = []
    for name, (truth, said, verdict) in names.items():
        one = measured.evaluation.confusion[name]
        span = f"{1000 * one.low:.0f} to {1000 * one.high:.0f}"
        number = TableCell("–")
        if not math.isnan(one.value):
            number = TableCell(f"{1000 * one.value:.0f}", 1000 * one.value)
        cells = [TableCell(truth), TableCell(said), TableCell(verdict), number, TableCell(span)]
        rows.append(TableRow(cells))
    columns = [
        Column("class, as the annotators see it"),
        Column("what the model says"),
        Column("so it is"),
        Column("of 1,000 items", "number"),
        Column(f"{measured.evaluation.confidence:.0%} interval"),
    ]
    return table("Of 1,000 items like these, how many end up where", columns, rows)


def _warnings(measured: Measured) -> Html:
    notes = [("warning", text, "") for text in measured.warnings]
    for finding in measured.check.findings:
        where = []
        if finding.rows:
            where.append(f"first rows: {', '.join(map(str, finding.rows))}")
        if finding.ids:
            where.append(f"for instance: {', '.join(map(str, finding.ids))}")
        notes.append((finding.severity, finding.message, "; ".join(where)))
    titles = {"error": "Error:", "warning": "Warning:", "note": "Note:"}
    order = list(titles)
    items = [
        tag(
            "li",
            tag("strong", titles[severity]),
            f" {text}",
            *([tag("div", tag("bdi", where), class_="soft")] if where else []),
            class_=severity,
        )
        for severity, text, where in sorted(notes, key=lambda note: order.index(note[0]))
    ]
    if not items:
        return tag("p", "Nothing was found that speaks against these figures.")
    return tag("ul", *items, class_="notes")


def _judgements(measured: Measured) -> Html:
    summary = measured.check.summary
    words = (
        f"{summary.rows:,} judgements of {summary.pairs:,} pairs of {summary.items:,} items. Each "
        "is a point: up is “the same class”, left and right say which item is the positive one. "
        "In the shaded region both answers fit together."
    )
    parts = [
        tag("p", words, class_="prose"),
        tag("div", plane_figure(measured.table.labels(), measured.disagreements),
            class_="figures one"),
    ]  # fmt: skip
    if summary.prior is not None:
        prior = summary.prior
        text = (
            f"How often they call two items the same implies that a share of {prior.value:.3f} "
            f"(95%: {prior.low:.3f} to {prior.high:.3f}) belongs to one of the classes; together "
            f"with the model's decisions, {percent(measured.evaluation.prior.value)} are positive."
        )
        parts.append(tag("p", text, class_="prose"))
    parts.append(_disagreements(measured))
    return joined(parts)


def _disagreements(measured: Measured) -> Html:
    columns = [
        Column("left item"),
        Column("right item"),
        Column("annotator"),
        Column("similarity, said", "number"),
        Column("similarity, model", "number"),
        Column("difference, said", "number"),
        Column("difference, model", "number"),
    ]
    rows = [
        TableRow(
            [
                *(_named(text) for text in (one.left, one.right, one.annotator or "–")),
                *(
                    _number(value)
                    for k in range(2)
                    for value in (one.said[k], one.model[k])
                ),
            ]
        )
        for one in measured.disagreements
    ]  # fmt: skip
    return table("Pairs on which the model is furthest from what was said", columns, rows)


def _probabilities(measured: Measured) -> Html:
    figures = [histogram_figure(measured.probabilities, measured.threshold)]
    parts = []
    if measured.calibration is None:
        parts.append(_missing("A calibration curve", measured.reasons["calibration"]))
    else:
        figures.append(calibration_figure(measured.calibration))
    return joined([tag("div", *figures, class_="figures two"), *parts])


def _annotators(measured: Measured) -> Html:
    if not measured.annotators:
        return tag("p", "The table of pairs does not say who judged: it has no column annotator.")
    columns = [
        Column("annotator"),
        Column("judgements", "number"),
        Column("of pairs that others judged too", "number"),
        Column("mean distance to the others", "number"),
        Column("similarity above others'", "number"),
        Column("difference to the right of others'", "number"),
        Column("mean distance to the model", "number"),
    ]
    rows = []
    for one in measured.annotators:
        signs = (one.similarity_bias, one.difference_bias)
        cells = [
            _named(one.name),
            TableCell(f"{one.judgements:,}", one.judgements),
            TableCell(f"{one.shared:,}", one.shared),
            _number(one.gap),
            *(TableCell("–") if math.isnan(x) else TableCell(signed(x), x) for x in signs),
            _number(one.model_gap),
        ]
        rows.append(TableRow(cells))
    words = (
        "Distances are on the scales of the questions: 0 is the same answer, 1 is the distance "
        "from “surely different” to “surely the same”. Someone who stands out is not wrong for "
        "that alone."
    )
    return joined(
        [tag("p", words, class_="prose"), table("Annotators beside one another", columns, rows)]
    )


def _training(measured: Measured) -> Html:
    facts = tag(
        "dl",
        *(joined([tag("dt", name), tag("dd", text)]) for name, text in measured.facts.items()),
        class_="facts",
    )
    drawn = learning_figure(measured)
    if drawn is None:
        return joined([facts, tag("p", "The model folder keeps no history of the training.")])
    return joined([facts, tag("div", drawn, class_="figures one")])


def _class_names(measured: Measured) -> tuple[str, str]:
    """Names for readers: −1 and 1 are no names."""
    if measured.classes == ("-1", "1"):
        return "negative", "positive"
    return f"negative ({measured.classes[0]})", f"positive ({measured.classes[1]})"


def _glossary() -> Html:
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", words)) for name, words in GLOSSARY.items()),
        class_="glossary",
    )


def _missing(what: str, reason: str) -> Html:
    return tag("p", f"{what} cannot be drawn: {reason}.", class_="soft")


def _named(text: str) -> TableCell:
    # A name may be written from right to left, and must not turn what is around it.
    return TableCell(tag("bdi", text), classes="wide")


def _number(value: float) -> TableCell:
    return (
        TableCell("–") if math.isnan(value) else TableCell(f"{value:.2f}".replace("-", "−"), value)
    )
