"""What a report says in words that need no knowledge of the method."""

from __future__ import annotations

import math

from pairlearn.evaluation import Estimate
from pairlearn.pages import Html, interval, joined, percent, tag
from pairlearn.reporting.measured import Measured

__all__ = ["GLOSSARY", "MEASURES", "first_words"]

MEASURES: dict[str, tuple[str, str]] = {
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
"""Measures by their name in an evaluation: title, and what they are."""

GLOSSARY: dict[str, str] = {
    "As the annotators see it": "No item had a known class. A class counts as right here to the "
    "degree that the annotators' judgements say so. If they are right on average, so are the "
    "figures; if all of them err in the same way, the figures err with them.",
    "Similarity (s)": "How likely, from 0 to 1, both items of a pair are of the same class.",
    "Difference (c)": "How much likelier the right item is positive than the left one, from −1 "
    "(surely left) to 1 (surely right).",
    "Judgement": "What one annotator said of one pair: a similarity, a difference, or both.",
    "Interval": "The range that holds the true value in so many of a hundred repetitions; "
    "narrower with more pairs.",
    "Class prior": "The share of positive items.",
    "Probability": "What the model gives each item: how likely it is positive.",
    "Threshold": "Items with a higher probability are called positive.",
    "Calibrated": "Of items that get a probability of 80%, eight in ten are positive.",
    "ROC curve": "What share of the positives is found, for each share of false alarms that one "
    "is ready to bear.",
    "Risk": "What training makes small: how badly the model's probabilities fit the judgements.",
    "Shaded region": "Similarity and difference of one pair belong together: only some "
    "combinations can come from two probabilities. Judgements outside are contradictions.",
}


def first_words(measured: Measured) -> Html:
    """The first paragraphs: the accuracy, its interval, and what both mean.

    Parameters
    ----------
    measured : Measured
        What was found.

    Returns
    -------
    Html

    Examples
    --------
    See `pairlearn.reporting.build_report`.
    """
    told = measured.evaluation
    found, share = told.accuracy, told.prior.value
    if math.isnan(found.value):
        text = "These judgements do not tell how often the model is right."
        return tag("p", tag("strong", text), class_="lead")
    count = round(100 * found.value)
    always = max(share, 1 - share)
    words = [
        tag("strong", f"The model is right for about {percent(found.value)} of the items"),
        f", as the annotators see it: of 100 items like these, about {count} would get the class "
        f"that the judgements speak for. It was measured on {told.n:,} judged pairs, and with so "
        f"many the true figure may be anything from {percent(found.low)} to "
        f"{percent(found.high)} ({told.confidence:.0%} interval). ",
        f"For comparison: always naming the more frequent class would be right for "
        f"{percent(always)}. ",
    ]
    paragraphs = [tag("p", *words, class_="lead")]
    further = [
        "No item had a known class. The figure comes from what annotators said about pairs, so "
        "it is as good as they are: a mistake that all of them make is not seen here. "
    ]
    if measured.band is not None:
        further.append(
            f"If they were over- or underconfident by a factor of two, the accuracy would be "
            f"between {percent(measured.band.low)} and {percent(measured.band.high)}. "
        )
    paragraphs.append(tag("p", *further, class_="prose"))
    serious = len(measured.warnings) + len(measured.check.of("error"))
    doubts = serious + len(measured.check.of("warning"))
    if doubts:
        few = "is one warning" if doubts == 1 else f"are {doubts} warnings"
        link = tag("a", f"There {few}", href="#warnings")
        paragraphs.append(tag("p", link, " to read before relying on this.", class_="prose"))
    return joined(paragraphs)


def told(found: Estimate) -> tuple[str, str]:
    """A value and its interval, or dashes where it is not defined.

    Examples
    --------
    >>> told(Estimate(0.9, 0.8, 0.95)), told(Estimate(float("nan"), 0, 1))[0]
    (('0.900', '0.800 to 0.950'), '–')
    """
    if math.isnan(found.value):
        return "–", "–"
    return f"{found.value:.3f}", interval(found.low, found.high)
