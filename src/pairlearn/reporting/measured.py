"""Everything that a report about a model shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairlearn.diagnostics import CheckReport, check
from pairlearn.evaluation import (
    CalibrationCurve,
    Evaluation,
    RocCurve,
    Sensitivity,
    calibration_curve,
    roc_curve,
    sensitivity,
)
from pairlearn.reporting.annotators import AnnotatorRow, compare_annotators, model_labels
from pairlearn.tables import ItemTable, PairTable, TableError

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier

__all__ = ["Disagreement", "Measured", "measure"]

Floats = NDArray[np.float64]
T = TypeVar("T")

SHOWN = 12
"""Pairs on which model and annotators are furthest apart that are named."""


@dataclass(frozen=True)
class Disagreement:
    """A pair, what was said of it and what the model says; NaN is not given.

    Examples
    --------
    >>> Disagreement("a", "b", "", (0.9, 0.1), (0.2, 0.0)).left
    'a'
    """

    left: str
    right: str
    annotator: str
    said: tuple[float, float]
    model: tuple[float, float]


@dataclass(frozen=True)
class Measured:
    """A model, judged pairs, and what they tell about it.

    Parameters
    ----------
    model, pairs : str
        What they are called.
    evaluation : Evaluation
        Accuracy and rates.
    threshold : float
        Probability above which an item is called positive.
    warnings : tuple of str
        Reasons for doubt in the evaluation.
    check : CheckReport
        What is to be known about the table.
    table : PairTable
        The judgements.
    probabilities : array
        Of the positive class, of the different items in the pairs.
    roc, calibration, band : optional
        Where the judgements allow them.
    reasons : dict of str to str
        Why one of those is not there.
    annotators : tuple of AnnotatorRow
        Empty where the table names none.
    disagreements : tuple of Disagreement
        Pairs on which model and annotators are furthest apart, the furthest first.
    history : list of dict
        Of the training; empty where the folder keeps none.
    facts : dict of str to str
        What else is to be known about the model.
    classes : (str, str)
        Names of the negative and of the positive class.

    Examples
    --------
    See `measure`.
    """

    model: str
    pairs: str
    evaluation: Evaluation
    threshold: float
    warnings: tuple[str, ...]
    check: CheckReport
    table: PairTable
    probabilities: Floats
    roc: RocCurve | None
    calibration: CalibrationCurve | None
    band: Sensitivity | None
    reasons: dict[str, str]
    annotators: tuple[AnnotatorRow, ...]
    disagreements: tuple[Disagreement, ...]
    history: list[dict[str, float]]
    facts: dict[str, str]
    classes: tuple[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Counts and the accuracy, for JSON."""
        return {
            "pairs": self.evaluation.n,
            "items": len(self.probabilities),
            "annotators": len(self.annotators),
            "accuracy": self.evaluation.accuracy.to_dict(),
            "warnings": [*self.warnings, *(f.message for f in self.check.of("warning"))],
            "errors": [f.message for f in self.check.of("error")],
            "epochs": len(self.history),
        }


def measure(
    classifier: PairClassifier,
    items: ItemTable,
    table: PairTable,
    evaluation: Evaluation,
    *,
    names: tuple[str, str],
    source: str | Path = "items",
    threshold: float = 0.5,
    prior: float | None = None,
    warnings: Sequence[str] = (),
) -> Measured:
    """Find out what a report shows, beside what an evaluation has found.

    Parameters
    ----------
    classifier : PairClassifier
        Fitted.
    items : ItemTable
        Where the items of the pairs are.
    table : PairTable
        The judgements.
    evaluation : Evaluation
        Of the classifier on them.
    names : (model, pairs)
        What both are called.
    source : path-like
        The file of the items, for messages.
    threshold, prior : float
        Those of the evaluation; the threshold is a probability.
    warnings : sequence of str
        Further reasons for doubt.

    Returns
    -------
    Measured

    Examples
    --------
    >>> from pairlearn.estimators import PairClassifier
    >>> from pairlearn.data.simulation import simulate
    >>> told = simulate(pairs=120)
    >>> ends = told.items.features[told.pairs.ids()]
    >>> model = PairClassifier(model="linear", epochs=5, random_state=0)
    >>> found = model.fit(ends, told.pairs.labels()).evaluate(ends, told.pairs.labels())
    >>> measure(model, told.items, told.pairs, found, names=("model", "pairs")).reasons
    {}
    """
    from pairlearn.estimators.streaming import log_odds

    used = table[table.judged]
    try:
        ends = used.positions(items)
    except TableError as error:
        raise TableError(f"{names[1]}, {error} in {source}") from None
    needed, places = np.unique(ends, return_inverse=True)
    z = log_odds(classifier, items[needed], source)
    both = z[places.reshape(ends.shape)]
    reasons: dict[str, str] = {}
    options: dict[str, Any] = {"weight": used.weight, "confidence": evaluation.confidence}
    labels, (z_left, z_right), (p, p_prime) = used.labels(), both.T, _sigmoid(both.T)
    return Measured(
        model=names[0],
        pairs=names[1],
        evaluation=evaluation,
        threshold=threshold,
        warnings=tuple(warnings),
        check=check(table, items=items, prior=prior),
        table=used,
        probabilities=_sigmoid(z),
        roc=_tried("roc", reasons, lambda: roc_curve(z_left, z_right, labels, weight=used.weight)),
        calibration=_tried(
            "calibration",
            reasons,
            lambda: calibration_curve(p, p_prime, labels, prior=prior, items=ends, **options),
        ),
        band=_tried(
            "band", reasons, lambda: sensitivity(z_left, z_right, labels, items=ends, **options)
        ),
        reasons=reasons,
        annotators=compare_annotators(used, both),
        disagreements=_disagreements(used, both),
        history=_history(classifier),
        facts=_facts(classifier),
        classes=(str(classifier.classes_[0]), str(classifier.classes_[1])),
    )


def _tried(name: str, reasons: dict[str, str], compute: Callable[[], T]) -> T | None:
    """What judgements of one kind alone do not tell is left out, with the reason."""
    try:
        return compute()
    except ValueError as error:
        reasons[name] = str(error)
        return None


def _disagreements(table: PairTable, both: Floats) -> tuple[Disagreement, ...]:
    model = np.stack(model_labels(both), 1)
    said = np.stack([table.similarity, table.difference], 1)
    far = np.nansum((said - model) ** 2, axis=1)
    first = np.argsort(-far, kind="stable")[:SHOWN]
    who = table.annotator
    return tuple(
        Disagreement(
            str(table.left[row]),
            str(table.right[row]),
            "" if who is None else str(who[row]),
            (float(said[row, 0]), float(said[row, 1])),
            (float(model[row, 0]), float(model[row, 1])),
        )
        for row in first
    )


def _history(classifier: PairClassifier) -> list[dict[str, float]]:
    """Of every epoch, or of every round where a scikit-learn classifier was completed."""
    rows = getattr(classifier, "history_", [])
    return [{"epoch": float(place), **row} for place, row in enumerate(rows, 1)]


def _facts(classifier: PairClassifier) -> dict[str, str]:
    stated = classifier.prior
    facts = {
        "Risk": f"{classifier.risk}, correction {classifier.correction}",
        "Model": (
            classifier.model
            if isinstance(classifier.model, str)
            else type(classifier.model).__name__
        ),
        "Features of an item": f"{classifier.n_features_in_:,}",
        "Share of positives in training": (
            f"{classifier.prior_:.3f}" + (" (estimated)" if stated == "estimate" else " (stated)")
        ),
        "Weights of epoch": f"{classifier.n_iter_:,}",
    }
    if classifier.target_prior is not None:
        facts["Meant for a share of positives of"] = f"{float(classifier.target_prior):g}"
    if not math.isclose(classifier.shift_, 0.0):
        facts["Shift of the log-odds"] = f"{classifier.shift_:+.3f}"
    before = getattr(classifier, "trained_on_", None)
    if isinstance(before, dict):
        facts |= {
            f"Trained on: {name.replace('_', ' ')}": str(value)
            for name, value in before.items()
            if isinstance(value, str | int) and "sha256" not in name
        }
    return facts


def _sigmoid(z: Floats) -> Floats:
    p: Floats = (1 + np.tanh(z / 2)) / 2
    return p
