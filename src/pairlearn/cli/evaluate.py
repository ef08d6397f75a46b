"""``evaluate`` and ``report``: how good a model is, from judged pairs alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairlearn.cli import options as opt
from pairlearn.cli.command import Command, Output, counted, new_app
from pairlearn.cli.many_classes import class_accuracy, class_output
from pairlearn.cli.options import argument, check_new_file, check_positive, option
from pairlearn.cli.reading import Reading

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.evaluation import Evaluation

app = new_app()
HeldOutPairs = Annotated[Path, argument("Held-out judged pairs: .csv or .parquet.")]
TITLES = {"f1": "F1", "prior": "share of positives", "roc auc": "ROC AUC"}


@app.command(cls=Command)
def evaluate(
    model: opt.Model,
    items: opt.Items,
    pairs: HeldOutPairs,
    *,
    ids: opt.Ids = None,
    threshold: opt.Threshold = 0.5,
    prior: opt.Prior = None,
    confidence: opt.Confidence = 0.95,
    noisy: opt.Noisy = False,
    similarity_scale: opt.SimilarityScale = None,
    difference_scale: opt.DifferenceScale = None,
    cost: Annotated[
        str | None,
        option("Costs of a false positive and a false negative, as 1,5; shows the best threshold."),
    ] = None,
    sensitivity: Annotated[
        bool, option("Show the effect of miscalibrated annotators.", "--sensitivity")
    ] = False,
    labelled: opt.Labelled = None,
    positive: opt.Positive = None,
    at_least: Annotated[
        float | None,
        option(
            "Exit with 1 unless the interval of the accuracy lies above this, and if the classes "
            "may be exchanged."
        ),
    ] = None,
    as_json: opt.Json = False,
    quiet: Annotated[bool, option("Print only the accuracy.", "--quiet")] = False,
) -> Output:
    """Measure a model on judged pairs that it was not fitted to.

    No label is needed. Without labels, classes are as the annotators see them, under two readings:
    they knew everything that the model uses, or their mistakes are unrelated to the model's. With
    --labelled, the classes of some items drawn at random, the result holds however reliable the
    answers are. Weights count, and intervals allow for items that are in several pairs.

    Pairs with items that the model was trained on are left out, with a note; if no others remain,
    nothing is measured. pairlearn split makes tables without such items.

    For example:
      pairlearn evaluate model items.csv held_out.csv
      pairlearn evaluate model items.csv held.csv --cost 1,5
      pairlearn evaluate model items.csv held.csv --labelled known.csv
      pairlearn evaluate model items.csv held_out.csv --at-least 0.9 --quiet

    Exit codes: 0 done, 1 the accuracy does not reach --at-least, 2 wrong request or unusable
    file.
    """
    from pairlearn.columns import check_share
    from pairlearn.evaluation.measures import check_cost

    check_share("--at-least", at_least)
    check_positive(positive, labelled)
    costs = None if cost is None else check_cost(cost.split(","))
    of_two = {"--threshold": threshold != 0.5, "--cost": cost, "--sensitivity": sensitivity}
    classifier = _loaded(model, of_two | {"--positive": positive})
    held = _held_pairs(
        classifier, (items, pairs), ids, (similarity_scale, difference_scale), noisy=noisy,
        threshold=threshold, prior=prior,
    )  # fmt: skip
    if len(classifier.classes_) > 2:
        accuracy = class_accuracy(classifier, held, labelled, prior, confidence)
        return class_output(held, accuracy, (model, pairs), at_least)
    evaluation, warnings, against = _measured(
        classifier, held, labelled, positive,
        threshold=threshold, prior=prior, confidence=confidence, cost=costs,
    )  # fmt: skip
    value, low = evaluation.accuracy.value, evaluation.accuracy.low
    data = {
        "model": model,
        "pairs": pairs,
        **evaluation.to_dict(),
        "threshold": threshold,
        "ignored": held.ignored,
        "seen": held.seen,
        "sensitivity": _sensitivity(held, confidence) if sensitivity else None,
    }
    below = at_least is not None and not low >= at_least
    text = [*_text(evaluation, data | {"measured_on": held.words()})]
    if below:
        text.append(f"the accuracy may be below {at_least:g}: its interval begins at {low:.3f}")
    return Output(data, text, f"{value:.4f}", warnings, urgent=against, code=1 if below else 0)


def _loaded(model: Path, of_two: Mapping[str, Any]) -> PairClassifier:
    """A model; ValueError if it has more classes than options that are given are for."""
    from pairlearn.estimators import PairClassifier

    classifier = PairClassifier.load(model)
    given = [name for name, value in of_two.items() if value]
    if given and len(classifier.classes_) > 2:
        raise ValueError(
            f"{given[0]} is for two classes, and {model} has {len(classifier.classes_)}"
        )
    return classifier


def _held_pairs(
    classifier: PairClassifier,
    files: tuple[Path, Path],
    ids: Path | None,
    scales: tuple[str | None, str | None],
    *,
    noisy: bool,
    threshold: float,
    prior: Any,
) -> HeldPairs:
    """Read the tables of items and of pairs, and score the pairs."""
    from pairlearn.columns import check_share
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.io import read_items

    check_share("--threshold", threshold)
    share = None if len(classifier.classes_) > 2 else prior
    table = Reading(*scales, classifier).checked(
        files[1], noisy=noisy, prior=share, classes=classifier.classes_
    )
    items = read_items(files[0], ids, columns=classifier.columns())
    return HeldPairs.score(classifier, items, table, files)


def _measured(
    classifier: PairClassifier,
    held: HeldPairs,
    labelled: Path | None,
    positive: str | None,
    *,
    threshold: float,
    prior: float | None,
    confidence: float,
    cost: tuple[float, float] | None = None,
) -> tuple[Evaluation, list[str], list[str]]:
    """All measures, perhaps with known classes; warnings; and those that known classes give."""
    from pairlearn.estimators.orientation import class_doubts
    from pairlearn.io.pairs import read_labelled

    known, against = None, []
    if labelled is not None:
        if positive is None and classifier.classes_.dtype.kind == "U":
            positive = str(classifier.classes_[1])
        rows, _ = read_labelled(labelled, held.items, positive)
        known = held.labelled(classifier, rows, labelled)
        against = class_doubts(known)
    cut = math.log(threshold) - math.log1p(-threshold)
    options: Any = {"threshold": cut, "cost": cost, "prior": prior, "labelled": known}
    evaluation: Evaluation = held.scored.evaluate(confidence, **options)
    doubts = held.doubts(classifier, evaluation, prior)
    return evaluation, [*held.items.notes, *doubts, *against], against


def _sensitivity(held: HeldPairs, confidence: float) -> list[dict[str, Any]]:
    from pairlearn.evaluation import sensitivity

    band = sensitivity(*held.scored.arguments, **held.scored.options(confidence))
    return [{"slope": k, **estimate.to_dict()} for k, estimate in band.items()]


def _text(evaluation: Evaluation, data: dict[str, Any]) -> Iterator[Any]:
    if data["seen"]:
        yield data["seen"]
    yield from evaluation.sentences()
    yield (
        "{model} on {measured_on} of {pairs}, {seen_by}; positive above {threshold:g}".format(
            **data, seen_by=_seen_by(evaluation)
        )
    )
    yield _measures(evaluation)
    for row in data["sensitivity"] or ():
        yield (
            "if the true log-odds are {slope:g} times the annotators': accuracy {value:.3f} "
            "({low:.3f} to {high:.3f})".format(**row)
        )


def _seen_by(evaluation: Evaluation) -> str:
    labelled = evaluation.accuracy.labelled
    return "as the annotators see it" if labelled is None else "by the labelled items"


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


@app.command(cls=Command)
def report(
    model: opt.Model,
    items: opt.Items,
    pairs: HeldOutPairs,
    out: Annotated[Path, argument("The page to write: .html.")],
    *,
    ids: opt.Ids = None,
    threshold: opt.Threshold = 0.5,
    prior: opt.Prior = None,
    confidence: opt.Confidence = 0.95,
    noisy: opt.Noisy = False,
    similarity_scale: opt.SimilarityScale = None,
    difference_scale: opt.DifferenceScale = None,
    labelled: opt.Labelled = None,
    positive: opt.Positive = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> Output:
    """Write a page about a model for readers who do not know the method.

    It shows the accuracy without labels and what that means, rates, calibration, the judgements,
    the annotators, the training, warnings and a glossary. The page needs no network and no
    other file. Measure on pairs that the model was not fitted to.

    For example:
      pairlearn report model items.csv held_out.csv report.html
      pairlearn report model items.csv held_out.csv report.html --force

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    check_new_file(out, "reports", (".html",), inputs=[items, pairs, ids], force=force)
    from pairlearn.report import build_class_report, build_report, measure, write_page

    check_positive(positive, labelled)
    classifier = _loaded(model, {"--threshold": threshold != 0.5, "--positive": positive})
    inputs, names = [*sorted(model.iterdir()), items, pairs], (model.resolve().name, pairs.name)
    held = _held_pairs(
        classifier, (items, pairs), ids, (similarity_scale, difference_scale), noisy=noisy,
        threshold=threshold, prior=prior,
    )  # fmt: skip
    seen = [] if held.seen is None else [held.seen]
    if len(classifier.classes_) > 2:
        accuracy = class_accuracy(classifier, held, labelled, prior, confidence)
        page = build_class_report(classifier, held.items, held.table, accuracy, names=names)
        size = write_page(out, page, inputs)
        found = {"path": out, "bytes": size, "accuracy": accuracy.to_dict(), "seen": held.seen}
        return Output(found, [f"{out}: {accuracy.sentence()}", *seen])
    evaluation, warnings, _ = _measured(
        classifier, held, labelled, positive,
        threshold=threshold, prior=prior, confidence=confidence,
    )  # fmt: skip
    measured = measure(
        classifier,
        held.items,
        held.table,
        evaluation,
        names=names,
        threshold=threshold,
        prior=prior,
        warnings=(*seen, *warnings),
        log_odds_of=held.log_odds_of,
    )
    size = write_page(out, build_report(measured), inputs)
    data = measured.to_dict()
    counts = f"{counted(len(data['warnings']), 'warning')}, {size / 1e3:.0f} kB"
    text = [f"{out}: {evaluation.accuracy.sentence()}", counts, *seen]
    return Output({"path": out, "bytes": size, **data}, text)
