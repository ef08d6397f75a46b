"""``pairlearn fit``: learn a classifier from judged pairs and write it as a model folder."""

from __future__ import annotations

import shlex
import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn.cli.command import (
    INTERRUPTED,
    CommandError,
    Output,
    as_options,
    command,
)
from pairlearn.cli.fit_output import crowd_of, summary_of, text_of, warnings_of
from pairlearn.cli.options import (
    Columns,
    OptionalCount,
    Reading,
    Training,
    check_new_model,
    check_positive,
)
from pairlearn.cli.pairs import where
from pairlearn.progress import hidden_bars

if TYPE_CHECKING:
    from pairlearn.check import Finding
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import FitCheckpoints, Measured
    from pairlearn.estimators.table import Table
    from pairlearn.io import ItemTable
    from pairlearn.judgements import Judgements

SHOWN = 3
"""Errors that are named."""
SETTLED_BY_LABELS = {
    "majority-unclear", "needs-majority", "needs-prior", "one-class", "one-value",
    "ranking-only",
}  # fmt: skip
"""Findings that some known classes, or shares of groups, settle."""
CHECKED = (
    *("labelled", "positive", "columns", "ignore", "kinds", "prior", "majority"),
    *("similarity_scale", "difference_scale", "difference_means"),
)
"""Options of `fit` that `check` takes, too."""


@dataclass(kw_only=True)
class Request(Columns, Reading, Training):
    """What to learn from, and the parameters of `PairClassifier`.

    Parameters
    ----------
    groups
        File with the columns group, share of positives and perhaps uncertainty; ITEMS then has
        a column group.
    annotators
        Whether to learn how each of them answers; auto: where the pairs suggest it.
    model
        mlp-bn and mlp have three hidden layers; auto is mlp-bn, or linear where few pairs
        need no more and for texts, and for images resnet8, a small convolutional network.
    risk
        likelihood, sconfconfdiff, confdiff, sconf, convex-0.5, …
    correction
        abs, relu, none, or a slope.
    unjudged
        auto or ignore: whether to learn from items that no row is about.
    target_prior
        Share of positive items where it will be used. [default: as in the pairs]
    annotator_prior
        Share that the annotators had in mind. [default: as in the pairs]
    labelled_weight
        Share of --labelled in the objective; 0 to 1. [default: an item counts as a pair]
    batch_size
        Pairs in a step. [default: by their number]
    weight_decay
        Weight decay of Adam. [default: 0.00001]
    early_stopping
        Stop when the loss on held-out pairs no longer falls.
    """

    items: Annotated[Path, typer.Argument()]
    pairs: Annotated[Path, typer.Argument()]
    ids: Path | None = None
    labelled: Path | None = None
    positive: str | None = None
    groups: Path | None = None
    noisy: bool = False
    model: Literal["auto", "mlp-bn", "mlp", "linear"] = "auto"
    annotators: Literal["auto", "learn", "ideal"] = "auto"
    unjudged: str = "auto"
    risk: str = "likelihood"
    correction: str = "abs"
    target_prior: float | None = None
    annotator_prior: float | None = None
    labelled_weight: float | None = None
    batch_size: OptionalCount = None
    weight_decay: float | None = None
    early_stopping: bool = False

    def __post_init__(self) -> None:
        words = ["pairlearn", "check", self.pairs, "--items", self.items]
        for name in CHECKED:
            value = getattr(self, name)
            option = f"--{name.replace('_', '-')}"
            if str(value).startswith("-"):
                words.append(f"{option}={value}")
            elif value is not None:
                words += [option, value]
        self.check_command = f"`{shlex.join(map(str, words))}`"

    def check_options(self) -> None:
        """Refuse options that do not go together."""
        check_positive(self.positive, self.labelled)

    def classifier(self) -> PairClassifier:
        """The classifier to fit, its parameters checked."""
        from pairlearn.estimators import PairClassifier
        from pairlearn.estimators.parameters import check_parameters
        from pairlearn.training.ranks import local_device

        names = PairClassifier().get_params()
        options = {name: value for name, value in self.chosen().items() if name in names}
        options |= {"device": local_device(self.device), "random_state": self.seed}
        with suppress(ValueError):
            options["correction"] = float(self.correction)
        classifier = PairClassifier(**options)
        check_parameters(classifier)
        return classifier

    def read(self) -> TrainingData:
        """Read everything into memory, and check it."""
        from pairlearn.estimators.table import Table
        from pairlearn.io import read_items
        from pairlearn.io.pairs import read_groups, read_labelled
        from pairlearn.judgements import Judgements

        choice, groups, classes = self.choice(), None, None
        if self.groups is not None:
            groups = read_groups(self.groups, self.items)
            choice = replace(choice, ignore=(*choice.ignore, "group"))
        items = read_items(self.items, self.ids, columns=choice)
        pairs = self.table(self.pairs)
        if self.labelled is not None:
            classes = read_labelled(self.labelled, items, self.positive)
        everything = pairs
        if classes is not None:
            everything = Judgements.concatenate([pairs, classes[0]])
        statements, doubts = self._check(everything, items)
        if groups is not None:  # a group is one statement about its items
            statements += Counter({name: len({*groups.v}) for name in groups.kinds()})
        table = Table.of_items(items, pairs.located(items.ids), classes, groups)
        judged = len(pairs.used())
        return TrainingData(items, table, len(pairs), judged, statements, doubts)

    def _check(
        self, pairs: Judgements, items: ItemTable | None, place: str | None = None
    ) -> tuple[Counter[str], dict[str, str]]:
        """Count the statements of each kind, and shorten the warnings; errors are raised.

        ``place`` replaces the rows of findings, where these are not the rows of the file.
        """
        from pairlearn.check import check

        settled = self.settled(noisy=self.noisy)
        if self.labelled is not None or self.groups is not None:
            settled |= SETTLED_BY_LABELS
        known: Any = {"prior": self.prior, "majority": self.majority}
        report = check(pairs, items=items, **known, precision=False).without(settled)

        def line(finding: Finding, text: str) -> str:
            return f"{finding.code}: {text}{where(finding, text) if place is None else place}"

        if errors := report.of("error"):
            lines = [f"  {line(error, error.message)}" for error in errors[:SHOWN]]
            lines += [f"  … and {len(errors) - SHOWN} more"] * (len(errors) > SHOWN)
            head = f"{self.pairs} cannot be used as it is:"
            raise ValueError("\n".join([head, *lines, f"{self.check_command} says more"]))
        return Counter(report.statements), {
            doubt.code: line(doubt, doubt.message.split(". ")[0].rstrip("."))
            for doubt in report.of("warning")
        }


@dataclass(frozen=True)
class TrainingData:
    """A table to fit, in memory or in a file, and its counts for the summary.

    ``judged`` counts the items that the ``rows`` are about. ``doubts`` are the warnings of `check`
    by code, in short.
    """

    items: ItemTable
    table: Table
    rows: int
    judged: int
    statements: Counter[str]
    doubts: dict[str, str]


@command("fit", Request, quiet="Print nothing.", exits="0 done, 1 training diverged")
def fit(
    request: Request,
    *,
    out: Path,
    holdout: float = 0.2,
    checkpoint_seconds: Annotated[float, typer.Option(min=0)] = 60.0,
    force: bool = False,
) -> Output | None:
    """Learn a classifier from judged pairs.

    ITEMS has an id and the features of each item, PAIRS the judgements: left, right,
    similarity, difference, and perhaps preference, weight and annotator. Features may be
    numbers, categories, yes and no, dates and free text, with gaps; ITEMS may be a folder of
    texts or images.

    The accuracy that is printed needs no labels. A first model is fitted without the pairs
    of some items and measured on those (--holdout, about a fifth of the pairs). The model
    that is saved is then fitted to all pairs. It is accuracy as the annotators see it.

    An interrupted training continues when the same command is run again: its state is in the
    folder OUT.checkpoint until the model is saved. torchrun … -m pairlearn fit … trains one
    model in several processes.

    Scikit-learn classifiers cannot be saved without pickle and are not offered here: use
    PairClassifier(model=...) in Python.

    Parameters
    ----------
    out
        Folder to write the model to.
    holdout
        Share of the pairs to measure the accuracy with; 0: none.

    For example:
      pairlearn fit items.csv pairs.csv --out model
      pairlearn fit items.parquet pairs.parquet --out model --model linear
      pairlearn fit items.csv pairs.csv --out model --target-prior 0.1
      pairlearn fit items.csv pairs.csv --out model --labelled known.csv \\
        --positive spam
      pairlearn fit items.csv pairs.csv --out model --ignore name \\
        --kinds zip:category
    """  # noqa: D301
    start = time.perf_counter()
    from pairlearn.columns import check_share

    check_share("--holdout", holdout, zero=True)
    request.check_options()
    from pairlearn.estimators.exchanged import CONTRADICTED, either_way
    from pairlearn.estimators.measuring import EITHER_CLASSES, FitCheckpoints, Measured
    from pairlearn.estimators.population import KnownClassesWarning
    from pairlearn.io.item_files import digest
    from pairlearn.training.ranks import joined_ranks

    classifier = request.classifier()
    checkpoints = FitCheckpoints(out, checkpoint_seconds)
    with joined_ranks(request.device) as ranks, hidden_bars(not ranks.first):
        with ranks.first_goes_first():
            if ranks.first:
                check_new_model(out, force=force)
            data = request.read()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            measured = _train(classifier, data.table, checkpoints, request, holdout)
    if not ranks.first:
        return None
    contradicted = any(issubclass(warning.category, KnownClassesWarning) for warning in caught)
    if contradicted and isinstance(measured, Measured):
        measured = either_way(measured.range, EITHER_CLASSES)
    accuracy = measured.to_dict() if isinstance(measured, Measured) else None
    crowd = crowd_of(classifier, caught)
    warned = warnings_of(request, data, crowd, caught, accuracy)
    if isinstance(measured, Measured) and measured.doubt is not None:
        warned.append(measured.doubt)
    summary = {
        "model": str(out),
        **summary_of(classifier, data, crowd),
        "seconds_in_all": time.perf_counter() - start,
        "accuracy": accuracy,
        "not_measured": as_options(measured) if isinstance(measured, str) else None,
        "warnings": warned,
    }
    classifier.trained_on_ = {
        "items": request.items.name,
        "items_sha256": digest(request.items),
        "pairs": request.pairs.name,
        "pairs_sha256": digest(request.pairs),
        "accuracy": accuracy,
    }
    if contradicted:
        classifier.trained_on_[CONTRADICTED] = True
    classifier.save(out, overwrite=force)
    checkpoints.remove()
    return Output(summary, text_of(summary, request, data.items.encoder), warnings=warned)


def _train(
    classifier: PairClassifier,
    table: Table,
    checkpoints: FitCheckpoints,
    request: Request,
    holdout: float,
) -> Measured | str | None:
    """Measure and fit; the accuracy, or why there is none."""
    from pairlearn.estimators.measuring import fit_and_measure
    from pairlearn.training.loop import DivergedError

    options: Any = {"holdout": holdout, "seed": request.seed, "prior": request.prior}
    try:
        return fit_and_measure(classifier, table, checkpoints, **options)
    except DivergedError as error:
        raise CommandError(as_options(str(error))) from None
    except KeyboardInterrupt:
        message = (
            f"interrupted: the training so far is in {checkpoints.folder}; the same command goes "
            "on from there"
            if checkpoints.folder.is_dir()
            else "interrupted before the first checkpoint: the same command starts from the "
            "beginning"
        )
        raise CommandError(message, INTERRUPTED) from None
