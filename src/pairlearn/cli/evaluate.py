"""``evaluate`` and ``report``: how good a model is, from judged pairs alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairlearn.cli import options as opt
from pairlearn.cli.command import Command, Output, baseline, counted, new_app
from pairlearn.cli.many_classes import class_output, measure_classes
from pairlearn.cli.options import argument, check_new_file, check_positive, option
from pairlearn.cli.reading import Reading

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.evaluation import Evaluation, LabelledItems

app = new_app()
HeldOut = Annotated[Path, argument("Judged pairs that were held out: .csv or .parquet.")]
TITLES = {"f1": "F1", "prior": "share of positives", "roc auc": "ROC AUC"}


@dataclass(frozen=True)
class Scoring:
    """A model, its scores of held-out pairs, and how to measure it with them."""

    classifier: PairClassifier
    held: HeldPairs
    pairs: Path
    threshold: float
    prior: float | None
    confidence: float

    @classmethod
    def read(
        cls,
        classifier: PairClassifier,
        files: tuple[Path, Path],
        ids: Path | None,
        scales: tuple[str | None, str | None],
        *,
        noisy: bool,
        **options: Any,
    ) -> Scoring:
        """Read the tables, and score the pairs."""
        from pairlearn.columns import check_share
        from pairlearn.estimators.measuring import HeldPairs
        from pairlearn.io import read_items

        check_share("--threshold", options["threshold"])
        table = Reading(*scales, classifier).checked(
            files[1], noisy=noisy, prior=options["prior"], classes=classifier.classes_
        )
        items = read_items(files[0], ids, columns=classifier.columns())
        held = HeldPairs.score(classifier, items, table, files)
        return cls(classifier, held, files[1], **options)

    def evaluation(
        self, cost: tuple[float, float] | None = None, labelled: LabelledItems | None = None
    ) -> Evaluation:
        """All measures on the held-out pairs, and on labelled items if there are some."""
        options: Any = {"threshold": self.cut, "cost": cost, "prior": self.prior}
        options["labelled"] = labelled
        evaluation: Evaluation = self.held.scored.evaluate(self.confidence, **options)
        return evaluation

    @property
    def cut(self) -> float:
        """The threshold as log-odds."""
        return math.log(self.threshold) - math.log1p(-self.threshold)

    def doubts(self, evaluation: Evaluation) -> list[str]:
        """Other warnings about an evaluation."""
        doubts = self.held.doubts(self.classifier, evaluation, self.prior)
        return [*self.held.items.notes, *doubts]


@app.command(cls=Command)
def evaluate(
    model: opt.Model,
    items: opt.Items,
    pairs: HeldOut,
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
        option("Costs of a false positive and of a false negative, as 1,5; names a threshold."),
    ] = None,
    sensitivity: Annotated[
        bool, option("Show the effect of miscalibrated annotators.", "--sensitivity")
    ] = False,
    labelled: opt.Labelled = None,
    positive: opt.Positive = None,
    at_least: Annotated[
        float | None,
        option(
            "Exit with 1 unless the accuracy's interval lies above this, also if the classes may "
            "be exchanged."
        ),
    ] = None,
    as_json: opt.Json = False,
    quiet: Annotated[bool, option("Print the accuracy alone.", "--quiet")] = False,
) -> Output:
    """Measure a model on judged pairs that it was not fitted to.

    No label is needed. Without labels everything is as the annotators see it, in two readings: they
    knew everything that the model uses, or their mistakes are unrelated to the model's. With
    --labelled, the classes of some items drawn at random make it hold whatever the answers are
    worth. Weights count, and intervals allow for items that are in several pairs.

    Pairs with items that the model was trained on are left out, with a note; without others
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
    if len(classifier.classes_) > 2:
        held, accuracy = measure_classes(
            classifier, (items, pairs), ids, labelled, prior, confidence,
            Reading(similarity_scale, difference_scale, classifier), noisy=noisy,
        )  # fmt: skip
        return class_output(held, accuracy, (model, pairs), at_least)
    scoring = Scoring.read(
        classifier, (items, pairs), ids, (similarity_scale, difference_scale), noisy=noisy,
        threshold=threshold, prior=prior, confidence=confidence,
    )  # fmt: skip
    held = scoring.held
    known, against = _labelled(scoring.classifier, held, labelled, positive)
    evaluation = scoring.evaluation(costs, known)
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
    warnings = [*scoring.doubts(evaluation), *against]
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


def _labelled(
    classifier: PairClassifier, held: HeldPairs, labelled: Path | None, positive: str | None
) -> tuple[LabelledItems | None, list[str]]:
    """Items of known class, and what these contradict."""
    from pairlearn.estimators.orientation import class_doubts
    from pairlearn.io.pairs import read_labelled

    if labelled is None:
        return None, []
    if positive is None and classifier.classes_.dtype.kind == "U":
        positive = str(classifier.classes_[1])
    known, _ = read_labelled(labelled, held.items, positive)
    items = held.labelled(classifier, known, labelled)
    return items, class_doubts(items)


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
    pairs: HeldOut,
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

    Its accuracy without labels and what that means, rates, calibration, the judgements, the
    annotators, the training, warnings, a glossary. The page needs no network and nothing
    beside itself. Measure on pairs that the model was not fitted to.

    For example:
      pairlearn report model items.csv held_out.csv report.html
      pairlearn report model items.csv held_out.csv report.html --force

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    check_new_file(out, "reports", (".html",), inputs=[items, pairs, ids], force=force)
    from pairlearn.report import build_class_report, build_report, measure, write_page

    classifier = _loaded(model, {"--threshold": threshold != 0.5, "--positive": positive})
    inputs = [*sorted(model.iterdir()), items, pairs]
    if len(classifier.classes_) > 2:
        several, accuracy = measure_classes(
            classifier, (items, pairs), ids, labelled, prior, confidence,
            Reading(similarity_scale, difference_scale, classifier), noisy=noisy,
        )  # fmt: skip
        names = model.resolve().name, pairs.name
        page = build_class_report(classifier, several.items, several.table, accuracy, names=names)
        size = write_page(out, page, inputs)
        found = {"path": out, "bytes": size, "accuracy": accuracy.to_dict(), "seen": several.seen}
        return Output(found, [f"{out}: {accuracy.sentence()}", *filter(None, [several.seen])])
    scoring = Scoring.read(
        classifier, (items, pairs), ids, (similarity_scale, difference_scale), noisy=noisy,
        threshold=threshold, prior=prior, confidence=confidence,
    )  # fmt: skip
    check_positive(positive, labelled)
    held = scoring.held
    known, against = _labelled(scoring.classifier, held, labelled, positive)
    evaluation = scoring.evaluation(labelled=known)
    seen = [] if held.seen is None else [held.seen]
    measured = measure(
        scoring.classifier,
        held.items,
        held.table,
        evaluation,
        names=(model.resolve().name, pairs.name),
        threshold=threshold,
        prior=prior,
        warnings=(*seen, *scoring.doubts(evaluation), *against),
        log_odds_of=held.log_odds_of,
    )
    size = write_page(out, build_report(measured), inputs)
    data = measured.to_dict()
    line = (
        f"{out}: accuracy {evaluation.accuracy} {_seen_by(evaluation)}, "
        f"{baseline(evaluation.prior.value)}; {counted(len(data['warnings']), 'warning')}, "
        f"{size / 1e3:.0f} kB"
    )
    return Output({"path": out, "bytes": size, **data}, [line, *seen])
