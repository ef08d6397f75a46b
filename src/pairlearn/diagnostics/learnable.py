"""What a table of judgements can and cannot teach, and what it says about the prior."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from pairlearn.dependence import Dependence
from pairlearn.diagnostics.columns import Columns
from pairlearn.diagnostics.report import Finding, finding_at
from pairlearn.labels import PairLabels
from pairlearn.planning import annotator_accuracy, annotator_strength, expected_half_width
from pairlearn.prior import PriorEstimate, estimate_prior

__all__ = [
    "check_comparisons",
    "check_learnable",
    "check_precision",
    "check_prior",
    "implied_prior",
    "learnable",
]

Majority = Literal["positive", "negative"]
LEAST_SIMILARITIES = 10
"""Fewer say nothing about the prior."""
SLACK = 1.1
"""How far mean |c| may be above its bound: noise of σ = ½ raises it by 3%."""


def learnable(columns: Columns) -> str:
    """What the table can teach: "everything", "up to a swap", and so on.

    Examples
    --------
    >>> from pairlearn.tables import PairTable
    >>> learnable(Columns.of(PairTable([1], [2], [0.5], None)))
    'classes up to a swap'
    """
    if not len(columns):
        return "nothing"
    if columns.has_s.any() and columns.has_c.any():
        return "everything"
    if columns.has_s.any():
        ranked = (columns.preference != 0).any()
        return "everything" if ranked else "classes up to a swap"
    return "posteriors up to a shift" if columns.has_c.any() else "a ranking"


def check_learnable(
    columns: Columns, prior: float | None, majority: Majority | None
) -> Iterator[Finding]:
    """Say what is missing for training, or that nothing is."""
    kind = learnable(columns)
    told = "prior" if prior is not None and prior != 0.5 else "majority" if majority else None
    if kind == "everything":
        yield Finding(
            "note",
            "learnable",
            "Similarities together with differences or preferences fix the posteriors: no prior "
            "has to be known for training.",
        )
    elif kind == "classes up to a swap":
        yield Finding(
            "error" if told is None else "note",
            "needs-majority",
            "There are similarities only. They say which items belong together and nothing "
            "about which class is the positive one: "
            + (
                "say which is the larger (--majority)."
                if told is None
                else f"your {told} tells that."
            ),
        )
    elif kind == "posteriors up to a shift":
        yield Finding(
            "error" if prior is None else "note",
            "needs-prior",
            "There are differences only. They fix the posteriors up to an added constant: "
            + ("give the class prior (--prior)." if prior is None else "your prior settles that."),
        )
    elif kind == "a ranking":
        yield Finding(
            "warning",
            "ranking-only",
            "There are preferences only. They teach which items are the more positive, not "
            "where to cut and not how likely, and no accuracy can be estimated from them.",
        )
    missing = ~(columns.has_s & columns.has_c)
    if kind == "everything" and missing.any():
        yield finding_at(
            "note",
            "missing",
            f"{missing.mean():.0%} of the rows lack the similarity, the difference or both. "
            "What there is counts, in training as in the estimate of the accuracy.",
            np.flatnonzero(missing),
        )


def implied_prior(
    columns: Columns, prior: float | None, majority: Majority | None
) -> PriorEstimate | None:
    """The prior that the similarities imply, on the side that is known, or else below ½."""
    # An item paired with itself tells nothing about two independent ones.
    given = columns.has_s & (columns.ends[:, 0] != columns.ends[:, 1])
    if given.sum() < LEAST_SIMILARITIES:
        return None
    side: Majority = "positive" if prior is not None and prior > 0.5 else "negative"
    return estimate_prior(
        columns.s[given],
        majority or side,
        weight=columns.weight[given],
        items=columns.ends[given],
    )


def check_prior(
    columns: Columns,
    implied: PriorEstimate | None,
    prior: float | None,
    majority: Majority | None,
) -> Iterator[Finding]:
    """Compare the implied prior with the stated one, and look for signs of selection."""
    if implied is not None:
        yield Finding("note", "implied-prior", _implied(implied, prior, majority))
        if prior is not None and not implied.low <= prior <= implied.high:
            yield Finding(
                "warning",
                "prior-disagrees",
                f"The stated prior {prior:g} lies outside {implied.low:.3f} to {implied.high:.3f}, "
                f"the 95% interval around the {implied.value:.3f} that the similarities imply. "
                "Either it is not the prior of these pairs, or the annotators judge by another "
                "population: see target_prior and annotator_prior.",
            )
        if implied.low == implied.high == 0.5:
            yield Finding(
                "warning",
                "too-unlike",
                f"The similarities average {implied.mean_similarity:.3f}, clearly below ½. Pairs "
                "of independent items cannot: either unlike pairs were chosen on purpose, and "
                "weights should undo that, or similarity is judged too low.",
            )
        told = majority is not None or (prior is not None and prior != 0.5)
        unclear = implied.low <= 0.5 <= implied.high
        if told and unclear and learnable(columns) == "classes up to a swap":
            yield Finding(
                "warning",
                "majority-unclear",
                f"The similarities allow for classes of equal size ({implied.low:.3f} to "
                f"{implied.high:.3f}), and the larger class is all that tells which is which: it "
                "may be a coin toss. Give more pairs, or some differences, preferences or known "
                "classes.",
            )
    yield from _order(columns)
    effective = effective_rows(columns)
    if effective < 0.9 * len(columns):
        yield Finding(
            "warning" if effective < 0.25 * len(columns) else "note",
            "weights",
            f"Weights differ: {len(columns):,} judgements are worth {effective:,.0f} of equal "
            "weight, (Σw)²/Σw².",
        )


def _implied(implied: PriorEstimate, prior: float | None, majority: Majority | None) -> str:
    """What the similarities say of the prior, once where both sides of ½ are the same."""
    value, low, high = (f"{x:.3f}" for x in (implied.value, implied.low, implied.high))
    start = f"The similarities average {implied.mean_similarity:.3f} and imply"
    known = prior is not None or majority is not None
    if value == "0.500":
        span = f"{low} to {high}" if known else f"{low} to {1 - implied.low:.3f}"
        return f"{start} classes of equal size, a share of positives of 0.500 (95%: {span})."
    text = f"{start} a share of positives of {value} (95%: {low} to {high})"
    if not known:
        text += (
            f", or {1 - implied.value:.3f} if the positive class is the majority, which "
            "similarities cannot tell"
        )
    return f"{text}."


def check_comparisons(columns: Columns, prior: float | None) -> Iterator[Finding]:
    """Differences that say which one is the more positive, and not by how much.

    |c| is at most P(y ≠ y'), so that over pairs of independent items the mean of |c| is at
    most 2π(1 − π), and at most ½ whatever π is.

    Examples
    --------
    >>> from pairlearn.tables import PairTable
    >>> ids = np.arange(80).reshape(2, 40)
    >>> table = PairTable(*ids, None, np.where(np.arange(40) % 2, 1, -1))
    >>> [found.code for found in check_comparisons(Columns.of(table), None)]
    ['comparisons']
    """
    rows = columns.has_c & (columns.ends[:, 0] != columns.ends[:, 1])
    if rows.sum() < LEAST_SIMILARITIES:
        return
    c, weight = np.abs(columns.c[rows]), columns.weight[rows] / columns.weight[rows].sum()
    mean = float(weight @ c)
    dependence = Dependence.of(columns.ends[rows], len(c))
    error = math.sqrt(float(dependence.variance((c - mean) * weight)))
    if columns.has_s.any():
        prior = None  # similarities are compared with it, and with the differences
    most = 0.5 if prior is None else 2 * prior * (1 - prior)
    if mean - 3 * error <= SLACK * most:
        return
    hard = bool(np.isin(c, (0, 1)).all())
    known = "" if prior is None else f" at a share of positives of {prior:g}"
    text = (
        f"The differences average {mean:.2f} without their sign, and pairs of independent items "
        f"cannot average more than {most:.2f}{known}. "
    )
    if hard:
        text += (
            "Values of -1, 0 and 1 are certainties as differences. If they say which item is the "
            "more positive, and not by how much, read them with --difference-means preference, or "
            "give them as the column preference"
        )
    else:
        text += "If they compare items on a scale of their own, they overstate how sure they are"
    text += (
        "; if unlike pairs were chosen on purpose, give weights that undo it, or say "
        "--difference-means difference."
    )
    yield Finding("error" if hard else "warning", "comparisons", text)


def effective_rows(columns: Columns) -> float:
    """(Σw)²/Σw²."""
    weight = columns.weight / max(columns.weight.max(initial=0.0), 1e-300)
    return float(weight.sum() ** 2 / max((weight**2).sum(), 1e-300))


def _order(columns: Columns) -> Iterator[Finding]:
    """Differences that lean to one side: the order within pairs is not random."""
    c = columns.c[columns.has_c]
    if len(c) < 30:
        return
    mean, error = float(c.mean()), float(c.std(ddof=1)) / math.sqrt(len(c))
    if abs(mean) > 4 * error and abs(mean) > 0.02:
        side = "right" if mean > 0 else "left"
        yield Finding(
            "warning",
            "ordered-pairs",
            f"The {side} item is the more positive one on average (mean difference {mean:+.3f}). "
            "Estimators with a prior assume that either could stand on either side: shuffle "
            "left and right, changing the sign of the difference, or find out why.",
        )


def check_precision(columns: Columns, implied: PriorEstimate | None) -> Iterator[Finding]:
    """How well an accuracy could be known from these pairs."""
    both = columns.has_s & columns.has_c
    n = int(both.sum() * effective_rows(columns) / max(len(columns), 1))
    if implied is None or n < 30:
        return
    prior = min(max(implied.value, 0.02), 0.98)
    labels = PairLabels(columns.s[both], columns.c[both], noisy=True)
    if not (labels.similarity < 1).any():
        return
    strength = annotator_strength(labels, prior)
    accuracy = min(0.95, annotator_accuracy(strength, prior))
    if accuracy <= 0.55:
        return
    width = expected_half_width(n, accuracy=accuracy, prior=prior, strength=strength)
    yield Finding(
        "note",
        "precision",
        f"Held out from training, {n:,} independent pairs like these would tell an accuracy of "
        f"{accuracy:.2f} to about ±{width:.3f}; `pairlearn plan` says how many it takes for "
        "other widths.",
    )
