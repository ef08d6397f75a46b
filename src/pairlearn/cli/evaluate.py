"""``evaluate`` and ``report``: how good a model is, from judged pairs alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlearn.cli.command import (
    NO_RANGE,
    Output,
    as_options,
    baseline,
    command,
    counted,
    narrower,
)
from pairlearn.cli.options import Reading, check_new_file, check_positive

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import HeldPairs, PairSample
    from pairlearn.evaluation import Evaluation, Plausible, Recalibration

TITLES = {"f1": "F1", "prior": "share of positives", "roc auc": "ROC AUC"}
LINES = {
    "recalibration": "judgements corrected with {labels:,} known classes: log-odds times "
    "{slope:.2f}, shifted by {shift:+.2f};\n  as they were, the accuracy was {accuracy_before}",
    "chosen_threshold": "threshold with the least cost: probability {probability:.3f},\n  expected "
    "cost {expected_cost}",
    "sensitivity": "if the true log-odds are {by_slope[0][slope]:g} to {by_slope[4][slope]:g} "
    "times the annotators',\n  the accuracy is {low:.3f} to {high:.3f}, with sampling error "
    "{low_end:.3f} to {high_end:.3f}",
    "calibration": "predicted probability, and the share of positives that judgements imply:",
}
"""Results of further options, in a line each."""


@dataclass(kw_only=True)
class Request(Reading):
    """A model, and judged pairs to measure it with; files by position or by name.

    Parameters
    ----------
    files
        ITEMS and PAIRS, unless they are given by name.
    items
        Table of items, or their folder: ITEMS by name.
    pairs
        Judged pairs that were held out: PAIRS by name.
    """

    model: Annotated[Path, typer.Argument()]
    files: Annotated[list[Path] | None, typer.Argument(metavar="ITEMS PAIRS")] = None
    items: Path | None = None
    pairs: Path | None = None
    ids: Path | None = None
    threshold: float = 0.5
    prior: float | None = None
    confidence: float = 0.95
    noisy: bool = False

    @cached_property
    def tables(self) -> tuple[Path, Path]:
        """The files of items and of pairs."""
        from pairlearn.columns import check_share

        check_share("--threshold", self.threshold)
        rest = [*(self.files or ())]
        paths = [named or (rest.pop(0) if rest else None) for named in (self.items, self.pairs)]
        if rest or None in paths:
            positional = " ".join(map(str, self.files or ())) or "none"
            page = getattr(self, "out", None)
            last = f"; the last file, {page}, is the page to write" * (page is not None)
            raise ValueError(
                "give ITEMS and PAIRS, by position or as --items and --pairs; by position there "
                f"are: {positional}{last}"
            )
        return paths[0], paths[1]  # type: ignore[return-value]

    @cached_property
    def classifier(self) -> PairClassifier:
        """The model."""
        from pairlearn.estimators import PairClassifier

        return PairClassifier.load(self.model)

    def sample(self) -> PairSample:
        """Items and pairs."""
        from pairlearn.estimators.measuring import PairSample
        from pairlearn.io import read_items

        (items, pairs), columns = self.tables, self.classifier.columns()
        table = self.checked(pairs, noisy=self.noisy, prior=self.prior)
        return PairSample(read_items(items, self.ids, columns=columns), table, len(table))

    def evaluated(self, held: HeldPairs, cost: tuple[float, float] | None = None) -> Evaluation:
        """All measures on held-out pairs."""
        return held.evaluate(self.confidence, threshold=self.cut, cost=cost, prior=self.prior)

    @property
    def cut(self) -> float:
        """The threshold as log-odds."""
        return math.log(self.threshold) - math.log1p(-self.threshold)

    def plausible(self, held: HeldPairs, known: Recalibration | None = None) -> Plausible | None:
        """The accuracy whatever the annotators' confidence, or as known classes tell it."""
        if known is not None:
            held = replace(held, known=known)
        return held.plausible(self.cut, self.confidence)

    def side_doubts(self, held: HeldPairs) -> list[str]:
        """Reasons why the model may have the classes exchanged."""
        from pairlearn.estimators.exchanged import side_doubts

        return side_doubts(self.classifier, held.table)

    def doubts(self, held: HeldPairs, evaluation: Evaluation) -> list[str]:
        """Other warnings about an evaluation."""
        from pairlearn.estimators.measuring import evaluation_doubts

        doubts = evaluation_doubts(self.classifier, self.tables[1], evaluation, self.prior)
        notes = [*held.items.notes, *self.notes, *doubts, *held.annotator_doubts(self.classifier)]
        return [*notes, *map(as_options, evaluation.warnings)]


@command(
    "evaluate",
    Request,
    quiet="Print the accuracy alone.",
    exits="0 done, 1 the accuracy does not reach --at-least",
)
def evaluate(
    request: Request,
    *,
    cost: str | None = None,
    choose_threshold: bool = False,
    sensitivity: bool = False,
    calibration: bool = False,
    labelled: Path | None = None,
    positive: str | None = None,
    at_least: float | None = None,
) -> Output:
    """Measure a model on judged pairs that it was not fitted to.

    No label is needed. Everything is as the annotators see it: with a calibrated annotator,
    accuracy, rates and the others are those of the true classes. Weights count, and
    intervals allow for items that are in several pairs.

    Pairs with items that the model was trained on are left out, with a note; without others
    nothing is measured. pairlearn split makes tables without such items.

    Parameters
    ----------
    cost
        Costs of a false positive and of a false negative, as 1,5.
    choose_threshold
        Find the threshold with the least cost.
    sensitivity
        Show the effect of miscalibrated annotators.
    calibration
        Compare probabilities with judgements.
    labelled
        Items of known class, id and class: corrects the confidence of the judgements.
    at_least
        Exit with 1 unless the accuracy's interval lies above this, also if the classes may be
        exchanged.

    For example:
      pairlearn evaluate model items.csv held_out.csv
      pairlearn evaluate model items.csv held.csv --cost 1,5 --choose-threshold
      pairlearn evaluate model items.csv held.csv --sensitivity \\
        --labelled known.csv
      pairlearn evaluate model items.csv held_out.csv --at-least 0.9 --quiet
    """  # noqa: D301
    from pairlearn.columns import check_share

    check_share("--at-least", at_least)
    check_positive(positive, labelled)
    costs, files = _costs(cost), request.tables
    from pairlearn.estimators.exchanged import either_way
    from pairlearn.estimators.measuring import HeldPairs

    sample = request.sample()
    held = HeldPairs.score(
        request.classifier, sample.items, sample.table, files, both=labelled is not None
    )
    evaluation, recalibration = request.evaluated(held, costs), None
    sides = request.side_doubts(held)
    wrong: list[str] = []
    extras: dict[str, Any] = dict.fromkeys(LINES)
    if labelled is not None:
        recalibration, against, wrong = _recalibrated(request.classifier, held, labelled, positive)
        sides += against
    band = request.plausible(held, recalibration)
    if recalibration is not None:
        extras["recalibration"] = {
            "slope": recalibration.slope,
            "shift": recalibration.shift,
            "labels": recalibration.n,
            "accuracy_before": evaluation.accuracy,
        }
        held = replace(held, labels=recalibration.labels)
        evaluation = request.evaluated(held, costs)
    options = held.options(request.confidence)
    if choose_threshold:
        extras["chosen_threshold"] = _choice(held, costs or (1, 1), request.prior, options)
    if sensitivity:
        extras["sensitivity"] = _sensitivity(held, options)
    if calibration:
        extras["calibration"] = _calibration(held, request.prior, options)
    warnings = [*request.doubts(held, evaluation), *sides, *wrong]
    value, low = evaluation.accuracy.value, evaluation.accuracy.low
    not_measured = None
    if sides:  # nothing tells which side is right
        value, low = min(value, 1 - value), min(low, 1 - evaluation.accuracy.high)
        not_measured, band = either_way(band or evaluation.accuracy), None
    sampled = sample.rows - sample.ignored > len(sample.table)
    data = {
        "model": request.model,
        "pairs": files[1],
        **evaluation.to_dict(),
        "threshold": request.threshold,
        "plausible": None if band is None else band.to_dict(),
        "not_measured": not_measured,
        "ignored": sample.ignored + held.ignored,
        "sampled_from": sample.rows if sampled else None,
        "seen": held.seen,
        **extras,
        "warnings": warnings,
    }
    below = at_least is not None and not low >= at_least
    text = [*_text(request, evaluation, band, data | {"measured_on": held.words()})]
    if below:
        text.append(f"the accuracy may be below {at_least:g}: its interval begins at {low:.3f}")
    text += [NO_RANGE] * (band is None and not sides)
    return Output(data, text, f"{value:.4f}", warnings, urgent=sides, code=1 if below else 0)


def _recalibrated(
    classifier: PairClassifier, held: HeldPairs, labelled: Path, positive: str | None
) -> tuple[Recalibration | None, list[str], list[str]]:
    """Correct the confidence of the judgements by known classes, unless these contradict anything.

    What contradicts the judgements follows, and what contradicts the model.
    """
    from pairlearn.estimators.exchanged import class_doubts
    from pairlearn.io.pairs import read_labelled

    if positive is None and classifier.classes_.dtype.kind == "U":
        positive = str(classifier.classes_[1])
    known, _ = read_labelled(labelled, held.items, positive)
    recalibration = held.recalibrate(known)
    if recalibration is None:
        items, n = held.items, len(known)
        seen = n - int(classifier.unseen(known.ends[:, :1], items.features, items.ids).sum())
        learnt = f"fit has learnt from {seen:,} of them, and the pairs of these are left out"
        why = [learnt] * bool(seen) + [f"{n - seen:,} are not in these pairs"] * (seen < n)
        raise ValueError(
            f"{labelled}: none of its {n:,} items is in the pairs that are measured with: "
            f"{'; '.join(why)}. Give classes of items that are in these pairs and that fit has not "
            "seen, or leave out --labelled"
        )
    against, wrong = (
        [*map(as_options, doubts)] for doubts in class_doubts(held, held.classes_of(known))
    )
    return None if against or wrong else recalibration, against, wrong


def _choice(
    held: HeldPairs, cost: tuple[float, float], prior: float | None, options: dict[str, Any]
) -> dict[str, Any]:
    from pairlearn.evaluation import choose_threshold

    choice = choose_threshold(*held.arguments, cost=cost, prior=prior, **options)
    p = (1 + math.tanh(choice.threshold / 2)) / 2
    return {"probability": p, "log_odds": choice.threshold, "expected_cost": choice.cost}


def _sensitivity(held: HeldPairs, options: dict[str, Any]) -> dict[str, Any]:
    from pairlearn.evaluation import sensitivity

    band = sensitivity(*held.arguments, **options)
    slopes = [
        {"slope": k, "value": e.value, "low": e.low, "high": e.high} for k, _, e in band.estimates
    ]
    ends = {name: getattr(band, name) for name in ("low", "high", "low_end", "high_end", "n")}
    return ends | {"by_slope": slopes}


def _calibration(held: HeldPairs, prior: float | None, options: dict[str, Any]) -> dict[str, Any]:
    from pairlearn.evaluation import calibration_curve
    from pairlearn.evaluation.miscalibration import sigmoid

    p, p_prime = sigmoid(held.z.T)
    curve = calibration_curve(p, p_prime, held.labels, prior=prior, **options)
    return {name: getattr(curve, name) for name in ("predicted", "implied", "shares")}


def _text(
    request: Request, evaluation: Evaluation, band: Plausible | None, data: dict[str, Any]
) -> Iterator[Any]:
    if data["seen"]:
        yield data["seen"]
    if data["not_measured"]:
        yield f"accuracy not measured: {data['not_measured']}"
    if band is not None:
        yield f"accuracy {band.words()};\n  {narrower(band.remedy(), band.labels)}"
    rows = data["sampled_from"]
    sampled = "" if rows is None else f", drawn at random from the {rows:,}"
    yield (
        f"{request.model} on {data['measured_on']}{sampled} of {data['pairs']}, as the annotators "
        f"see it; positive above {request.threshold:g}"
    )
    yield _measures(evaluation)
    for name, line in LINES.items():
        if data[name] is not None:
            yield line.format(**data[name])
    if data["calibration"] is not None:
        for predicted, share, weight in zip(*data["calibration"].values(), strict=True):
            yield (
                f"  {predicted:.3f}  {share.value:.3f} ({share.low:.3f} to {share.high:.3f})  "
                f"{weight:.0%} of the items"
            )


def _costs(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        false_positive, false_negative = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--cost must be two numbers, of a false positive and of a false negative, as in "
            f"1,5; got {text!r}"
        ) from None
    return false_positive, false_negative


def _measures(evaluation: Evaluation) -> Any:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("measure", "estimate", f"{evaluation.confidence:.0%} interval"):
        grid.add_column(name, justify="left" if name == "measure" else "right")
    for name, estimate in evaluation.rows().items():
        value = "–" if math.isnan(estimate.value) else f"{estimate.value:.3f}"
        grid.add_row(TITLES.get(name, name), value, f"{estimate.low:.3f} to {estimate.high:.3f}")
        if name == "accuracy":
            larger = max(evaluation.prior.value, 1 - evaluation.prior.value)
            grid.add_row("  always the larger class", f"{larger:.3f}")
    return grid


@dataclass(kw_only=True)
class PageRequest(Request):
    """The same, and the page to write.

    Parameters
    ----------
    out
        The page to write: .html.
    """

    out: Annotated[Path, typer.Argument()]


@command("report", PageRequest)
def report(request: PageRequest, *, force: bool = False) -> Output:
    """Write a page about a model for readers who do not know the method.

    Its accuracy without labels and what that means, rates, calibration, the judgements, the
    annotators, the training, warnings, a glossary. The page needs no network and nothing
    beside itself. Measure on pairs that the model was not fitted to.

    For example:
      pairlearn report model items.csv held_out.csv report.html
      pairlearn report model --items items.csv --pairs held_out.csv report.html \\
        --force
    """  # noqa: D301
    items, pairs = files = request.tables
    check_new_file(request.out, "reports", (".html",), inputs=[*files, request.ids], force=force)
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.report import build_report, measure, write_page

    sample = request.sample()
    held = HeldPairs.score(request.classifier, sample.items, sample.table, files)
    evaluation = request.evaluated(held)
    seen = [] if held.seen is None else [held.seen]
    measured = measure(
        request.classifier,
        held.items,
        held.table,
        evaluation,
        names=(request.model.resolve().name, pairs.name),
        source=items,
        threshold=request.threshold,
        prior=request.prior,
        band=request.plausible(held),
        warnings=(*seen, *request.doubts(held, evaluation), *request.side_doubts(held)),
    )
    inputs = [*sorted(request.model.iterdir()), items, pairs]
    size = write_page(request.out, build_report(measured), inputs)
    data = measured.to_dict()
    line = (
        f"{request.out}: accuracy {evaluation.accuracy} as the annotators see it, "
        f"{baseline(evaluation.prior.value)}; {counted(len(data['warnings']), 'warning')}, "
        f"{size / 1e3:.0f} kB"
    )
    return Output({"path": request.out, "bytes": size, **data}, [line, *seen])
