"""Models of more than two classes: how `evaluate` and `report` measure them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlearn.cli.command import SHOWN, Output

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import HeldPairs
    from pairlearn.evaluation import ClassAccuracy


def class_accuracy(
    classifier: PairClassifier,
    held: HeldPairs,
    labelled: Path | None,
    prior: Any,
    confidence: float,
) -> ClassAccuracy:
    """The accuracy of a model of more than two classes, perhaps with known classes."""
    from pairlearn.estimators.orientation import stated_priors
    from pairlearn.io.pairs import read_classes

    known = None
    if labelled is not None:
        rows, labels, weight = read_classes(labelled, held.items)
        labels = labels.astype(classifier.classes_.dtype.type)  # text of any length
        known = classifier.labelled(held.items[rows], labels, weight)
    priors = None if prior is None else stated_priors(prior, [*map(str, classifier.classes_)])
    accuracy: ClassAccuracy = held.scored.accuracy(priors, confidence, known)
    return accuracy


def class_output(
    held: HeldPairs, accuracy: ClassAccuracy, files: tuple[Path, Path], at_least: float | None
) -> Output:
    """The measures of the model and the pairs in two files."""
    data = {
        "model": files[0], "pairs": files[1], "accuracy": accuracy.to_dict(), "seen": held.seen,
    }  # fmt: skip
    below = at_least is not None and not accuracy.low >= at_least
    text = [*filter(None, [held.seen]), *_text(accuracy)]
    if below:
        text.append(f"the accuracy may be below {at_least:g}: its interval begins at "
                    f"{accuracy.low:.3f}")  # fmt: skip
    return Output(data, text, f"{accuracy.value:.4f}", held.items.notes, code=1 if below else 0)


def _text(accuracy: ClassAccuracy) -> Iterator[Any]:
    from rich.table import Table

    yield accuracy.sentence()
    grid = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("class", "share", "recall", "precision"):
        grid.add_column(name, justify="left" if name == "class" else "right")
    for name, prior in accuracy.prior.items():
        recall, precision = (each.get(name) for each in (accuracy.recall, accuracy.precision))
        grid.add_row(name, f"{prior.value:.3f}", *map(_short, (recall, precision)))
    if accuracy.prior:
        yield grid
    mistakes = [
        (share.value, known, called)
        for known, row in accuracy.confusion.items()
        for called, share in row.items()
        if called != known
    ]
    for share, known, called in sorted(mistakes, reverse=True)[:SHOWN]:
        yield f"{share:.1%} of all items are {known} and called {called}"


def _short(estimate: Any) -> str:
    return (
        "–"
        if estimate is None
        else f"{estimate.value:.3f} ({estimate.low:.2f}–{estimate.high:.2f})"
    )
