"""What ``pairlearn evaluate`` measures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.cli.labelled import read_labelled
from pairlearn.cli.reading import Reading
from pairlearn.cli.training import as_options, digest
from pairlearn.estimators.instances import NO_ACCURACY, doubt_of_seen, seen_items
from pairlearn.evaluation import (
    CalibrationCurve,
    Estimate,
    Evaluation,
    Recalibration,
    Sensitivity,
    ThresholdChoice,
    calibration_curve,
    choose_threshold,
    evaluate,
    recalibrate,
    sensitivity,
)
from pairlearn.evaluation.decisions import Side
from pairlearn.labels import PairLabels
from pairlearn.tables import ItemTable, PairTable, TableError, read_items

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier

__all__ = ["Report", "Request", "measure_model"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Request:
    """What to measure, and how; the threshold is a probability."""

    threshold: float = 0.5
    cost: tuple[float, float] | None = None
    choose_threshold: bool = False
    sensitivity: bool = False
    calibration: bool = False
    prior: float | None = None
    confidence: float = 0.95


@dataclass(frozen=True)
class Report:
    """What was found.

    Attributes
    ----------
    request : Request
        What was asked for.
    evaluation : Evaluation
        All measures.
    choice, band, curve : optional
        The best threshold, in log-odds; sensitivity; calibration.
    mended : Recalibration or None
        How judgements were mended by known classes; everything else is after it.
    unmended : Estimate or None
        The accuracy before that.
    ignored : int
        Rows that say too little to be used.
    warnings : tuple of str
        Reasons for doubt.
    sampled_from : int or None
        Rows of the file, if what was measured with is a random sample of them.
    seen : str or None
        That pairs were left out because the model was trained on their items.
    items, table
        What was measured with.
    """

    request: Request
    evaluation: Evaluation
    choice: ThresholdChoice | None
    band: Sensitivity | None
    curve: CalibrationCurve | None
    mended: Recalibration | None
    unmended: Estimate | None
    ignored: int
    warnings: tuple[str, ...]
    sampled_from: int | None = None
    seen: str | None = None
    items: ItemTable | None = None
    table: PairTable | None = None

    @property
    def chosen_probability(self) -> float | None:
        """The best threshold as a probability."""
        if self.choice is None:
            return None
        return (1 + math.tanh(self.choice.threshold / 2)) / 2

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the threshold is a probability here."""
        told = self.evaluation.to_dict()
        told |= {
            "threshold": self.request.threshold,
            "ignored": self.ignored,
            "sampled_from": self.sampled_from,
            "seen": self.seen,
            "chosen_threshold": None,
            "sensitivity": None,
            "calibration": None,
            "recalibration": None,
            "warnings": list(self.warnings),
        }
        if self.choice is not None:
            told["chosen_threshold"] = {
                "probability": self.chosen_probability,
                "log_odds": self.choice.threshold,
                "expected_cost": self.choice.cost.to_dict(),
            }
        if self.band is not None:
            names = ("low", "high", "low_end", "high_end", "n")
            told["sensitivity"] = {name: getattr(self.band, name) for name in names} | {
                "by_slope": [
                    {"slope": k, "value": e.value, "low": e.low, "high": e.high}
                    for k, _, e in self.band.estimates
                ]
            }
        if self.curve is not None:
            told["calibration"] = {
                "predicted": self.curve.predicted.tolist(),
                "implied": [estimate.to_dict() for estimate in self.curve.implied],
                "shares": self.curve.shares.tolist(),
            }
        if self.mended is not None and self.unmended is not None:
            told["recalibration"] = {
                "slope": self.mended.slope,
                "shift": self.mended.shift,
                "labels": self.mended.n,
                "accuracy_before": self.unmended.to_dict(),
            }
        return told


@dataclass(frozen=True)
class _Held:
    """Judged pairs with the model's log-odds (n, 2) of both ends."""

    z: Floats
    labels: PairLabels
    weight: Floats | None
    ends: NDArray[np.int64]

    def options(self, request: Request) -> dict[str, Any]:
        return {
            "weight": self.weight,
            "items": self.ends,
            "confidence": request.confidence,
        }


def measure_model(
    classifier: PairClassifier,
    items: Path,
    ids: Path | None,
    pairs: Path,
    labelled: Path | None,
    positive: str | None,
    request: Request,
    *,
    reading: Reading,
    noisy: bool,
    stream: bool = False,
) -> Report:
    """Measure a model on the judged pairs of a file, or of a file that stays where it is."""
    sampled_from, ignored = None, 0
    if stream:
        from pairlearn.cli.streaming import sample_pairs_of

        scales = reading.stream_scales()
        found = sample_pairs_of(items, ids, pairs, noisy=noisy, scales=scales)
        known, table, ignored = found.items, found.table, found.ignored
        sampled_from = found.rows if found.rows - ignored > len(table) else None
    else:
        known = read_items(items, ids)
        table = reading.checked(pairs, noisy=noisy, prior=request.prior)
    new, seen = _unseen(classifier, known, items, table, pairs)
    table = table[new]
    rows = table.judged
    if labelled is not None:  # one judgement does not determine posteriors
        rows = np.asarray(~np.isnan(table.to_array()).any(1))
    used = table[rows]
    if len(used) < 2:
        both = " and a difference" if labelled is not None else " or a difference"
        raise TableError(f"{pairs}: {len(used)} rows have a similarity{both}; two are needed")
    held = _held(classifier, known, items, used, pairs)
    told = _evaluated(held, request, classifier.majority)
    mended, unmended = None, None
    if labelled is not None:
        mended = _mended(classifier, held, labelled, known, positive)
        unmended = told.accuracy
        held = _Held(held.z, mended.labels, held.weight, held.ends)
        told = _evaluated(held, request, classifier.majority)
    choice = band = curve = None
    z, z_prime = held.z.T
    options = held.options(request)
    if request.choose_threshold:
        choice = choose_threshold(
            z, z_prime, held.labels, cost=request.cost or (1, 1), prior=request.prior, **options
        )
    if request.sensitivity:
        band = sensitivity(z, z_prime, held.labels, **options)
    if request.calibration:
        p, p_prime = (1 + np.tanh(held.z.T / 2)) / 2
        curve = calibration_curve(p, p_prime, held.labels, prior=request.prior, **options)
    warned = [
        *reading.notes,
        *_doubts(classifier, pairs, told, request),
        *map(as_options, told.warnings),
    ]
    return Report(
        request,
        told,
        choice,
        band,
        curve,
        mended,
        unmended,
        ignored + int((~rows).sum()),
        tuple(warned),
        sampled_from,
        seen,
        known,
        table,
    )


def _unseen(
    classifier: PairClassifier, known: ItemTable, items: Path, table: PairTable, pairs: Path
) -> tuple[NDArray[np.bool_], str | None]:
    """Pairs without an item that the model was trained on, and what to say of the others."""
    ends = _positions(known, items, table, pairs)
    needed, places = np.unique(ends, return_inverse=True)
    kept = getattr(classifier, "training_items_", None)
    seen = seen_items(kept, known.features[needed], known.ids[needed])
    new = np.asarray(~seen[places.reshape(ends.shape)].any(1))
    doubt = doubt_of_seen(new)
    if len(table) < 2:  # too few in any case, which is said later
        return np.ones(len(table), bool), None
    if doubt is not None and doubt.startswith(NO_ACCURACY):
        told: Any = getattr(classifier, "trained_on_", None)
        found = told.get("accuracy") if isinstance(told, dict) else None
        before = ""
        if isinstance(found, dict) and {"value", "low", "high"} <= found.keys():
            before = (
                f"; `pairlearn fit` measured {found['value']:.3f} ({found['low']:.3f} to "
                f"{found['high']:.3f}) on items that it held out"
            )
        raise ValueError(
            f"{pairs} measures no accuracy: the model was trained on items of "
            f"{int((~new).sum()):,} of its {len(new):,} pairs, and does better on those than on "
            f"others. Split by items before training, with `pairlearn split`{before}"
        )
    return new, doubt


def _positions(known: ItemTable, items: Path, used: PairTable, pairs: Path) -> NDArray[np.int64]:
    try:
        return used.positions(known)
    except TableError as error:
        raise TableError(f"{pairs}, {error} in {items}") from None


def _held(
    classifier: PairClassifier, known: ItemTable, items: Path, used: PairTable, pairs: Path
) -> _Held:
    from pairlearn.estimators.prediction import log_odds

    ends = _positions(known, items, used, pairs)
    needed, places = np.unique(ends, return_inverse=True)
    z = log_odds(classifier, known[needed], items)[places.reshape(ends.shape)]
    return _Held(z, used.labels(), used.weight, ends)


def _evaluated(held: _Held, request: Request, side: Side | None) -> Evaluation:
    cut = math.log(request.threshold) - math.log1p(-request.threshold)
    z, z_prime = held.z.T
    try:
        return evaluate(
            z,
            z_prime,
            held.labels,
            threshold=cut,
            cost=request.cost,
            prior=request.prior,
            side=side,
            **held.options(request),
        )
    except ValueError as error:
        raise ValueError(as_options(str(error))) from None


def _mended(
    classifier: PairClassifier,
    held: _Held,
    labelled: Path,
    known: ItemTable,
    positive: str | None,
) -> Recalibration:
    if positive is None and classifier.classes_.dtype.kind == "U":
        positive = str(classifier.classes_[1])
    told = read_labelled(labelled, known, positive)
    classes = np.full(len(known), np.nan)
    classes[told.rows] = told.positive
    at = classes[held.ends]
    if np.isnan(at).all():
        raise ValueError(f"{labelled}: none of its items is in the pairs that are measured with")
    return recalibrate(held.labels, *held.z.T, *at.T)


def _doubts(
    classifier: PairClassifier, pairs: Path, told: Evaluation, request: Request
) -> list[str]:
    """What speaks against the figures, beside what `evaluate` itself found."""
    found = []
    before = getattr(classifier, "trained_on_", None)
    if isinstance(before, dict) and before.get("pairs_sha256") == digest(pairs):
        found.append(
            "the model was fitted to these very pairs, and does better on them than on others: "
            "measure on pairs that were held out"
        )
    stated: Any = classifier.target_prior
    if stated is None and classifier.prior != "estimate":
        stated = classifier.prior
    if stated is not None and request.prior is None:
        implied = told.prior
        if not implied.low <= float(stated) <= implied.high:
            found.append(
                f"the model is meant for a share of positives of {float(stated):g}, and these "
                f"pairs imply {implied}: where it is used, the accuracy is another"
            )
    return found
