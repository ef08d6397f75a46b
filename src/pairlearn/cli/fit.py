"""``pairlearn fit``: learn a classifier from judged pairs and write it as a model folder."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pairlearn.cli import options as opt
from pairlearn.cli.command import (
    INTERRUPTED,
    SHOWN,
    Command,
    CommandError,
    Output,
    baseline,
    counted,
    new_app,
)
from pairlearn.cli.options import check_new_model, check_positive, option
from pairlearn.cli.reading import Reading, column_choice, parse_classes
from pairlearn.cli.tables import by_kind, where
from pairlearn.progress import hidden_bars

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.fit_input import Table
    from pairlearn.io import ItemTable

app = new_app()
#: Findings that some known classes, or shares of groups, settle.
SETTLED_BY_LABELS = {
    "majority-unclear", "needs-majority", "needs-prior", "one-value",
}  # fmt: skip
#: Findings that the classes or their frequencies may be wrong, which `fit` repeats.
SIDES = {"contradicted-classes", "majority-unclear", "prior-disagrees"}
#: What −1 and 1 stand for.
UNNAMED = {"-1": "negative", "1": "positive"}
#: Attributes of each annotator in the JSON.
HABITS = ("answers", "guesses", "leans", "spreads", "knowledge", "scale")


@app.command(cls=Command)
def fit(
    items: opt.Items,
    pairs: opt.Pairs,
    *,
    out: Annotated[Path, option("Folder to write the model to.")],
    holdout: Annotated[
        float, option("Share of the pairs held out to measure the accuracy; 0 for none.")
    ] = 0.2,
    model: Annotated[
        str,
        option(
            "auto, linear, mlp-bn, mlp or a registered name. mlp-bn and mlp have three hidden "
            "layers. auto is linear for texts and where that suffices for few pairs, resnet8 (a "
            "small convolutional network) for images, and mlp-bn otherwise."
        ),
    ] = "auto",
    annotators: Annotated[
        Literal["auto", "learn", "ideal"],
        option("Whether to learn how each annotator answers; auto: if the pairs suggest it."),
    ] = "auto",
    unjudged: Annotated[
        str, option("Whether to learn from items that no row mentions: auto or ignore.")
    ] = "auto",
    ids: opt.Ids = None,
    classes: opt.Classes = None,
    labelled: opt.Labelled = None,
    positive: opt.Positive = None,
    groups: Annotated[
        Path | None,
        option(
            "File with the columns group, share of positives and perhaps uncertainty; ITEMS then "
            "needs a column group."
        ),
    ] = None,
    prior: opt.Prior = None,
    majority: opt.Majority = None,
    target_prior: Annotated[
        float | None,
        option("Share of positive items where the model will be used.", default="as in the pairs"),
    ] = None,
    annotator_prior: Annotated[
        float | None,
        option("Share that the annotators had in mind.", default="as in the pairs"),
    ] = None,
    noisy: opt.Noisy = False,
    columns: opt.Columns = None,
    ignore: opt.Ignore = None,
    kinds: opt.Kinds = None,
    similarity_scale: opt.SimilarityScale = None,
    difference_scale: opt.DifferenceScale = None,
    risk: Annotated[
        str,
        option("A risk and its correction: sconfconfdiff-abs, confdiff-relu, convex-0.5-none, …"),
    ] = "likelihood-abs",
    epochs: opt.Epochs = None,
    batch_size: Annotated[
        int | None, option("Pairs per training step.", default="by their number", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None, option("Learning rate of Adam.", default="by the model")
    ] = None,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    checkpoint_seconds: opt.CheckpointSeconds = 60.0,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> Output | None:
    """Learn a classifier from judged pairs.

    ITEMS has an id and the features of each item, PAIRS the judgements: left, right,
    similarity, difference, and perhaps preference, weight and annotator. Features may be
    numbers, categories, yes and no, dates and free text, with gaps; ITEMS may be a folder of
    texts or images.

    The printed accuracy needs no labels. A first model is fitted without the pairs
    of some items and measured on those (--holdout, about a fifth of the pairs). The model
    that is saved is then fitted to all pairs. The interval assumes calibrated annotators.

    Run the same command again to continue an interrupted training: its state is in the
    folder OUT.checkpoint until the model is saved. torchrun … -m pairlearn fit … trains one
    model in several processes.

    With more than two classes, PAIRS has a column about: the class that a row is about, or
    several, as in cat|dog, or nothing where a similarity says "the same class at all".

    Scikit-learn classifiers cannot be saved without pickle and are not offered here: use
    PairClassifier(model=...) in Python.

    For example:
      pairlearn fit items.csv pairs.csv --out model
      pairlearn fit items.parquet pairs.parquet --out model --model linear
      pairlearn fit items.csv pairs.csv --out model --target-prior 0.1
      pairlearn fit items.csv pairs.csv --out model --labelled known.csv
      pairlearn fit items.csv pairs.csv --out model --kinds zip:category

    Exit codes: 0 done, 1 training diverged, 2 wrong request or unusable file.
    """
    start = time.perf_counter()
    from pairlearn.columns import check_share

    check_share("--holdout", holdout, ends="[)")
    check_positive(positive, labelled)
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.measuring import FitCheckpoints, HeldAccuracy, fit_and_measure
    from pairlearn.estimators.parameters import check_parameters
    from pairlearn.io.item_files import digest
    from pairlearn.training.devices import local_device
    from pairlearn.training.ranks import joined_ranks

    given: dict[str, Any] = {
        "model": model, "annotators": annotators, "unjudged": unjudged, "prior": prior,
        "majority": majority, "target_prior": target_prior, "annotator_prior": annotator_prior,
        "risk": risk, "epochs": epochs, "random_state": seed, "training__batch_size": batch_size,
        "training__learning_rate": learning_rate, "training__device": local_device(device),
    }  # fmt: skip
    known = {name: value for name, value in given.items() if value is not None}
    classifier = PairClassifier().set_params(**known)
    check_parameters(classifier)
    files = {"items": items, "pairs": pairs, "ids": ids, "labelled": labelled, "groups": groups}
    reading = Reading(similarity_scale, difference_scale)
    chosen = column_choice(columns, ignore, kinds)
    checkpoints = FitCheckpoints(out, checkpoint_seconds)
    with joined_ranks(device) as ranks, hidden_bars(not ranks.first):
        with ranks.first_goes_first():
            if ranks.first:
                check_new_model(out, force=force)
            data = _read(
                reading, files, chosen, positive, parse_classes(classes),
                noisy=noisy, prior=prior, majority=majority,
            )  # fmt: skip
        with _errors_of_training(checkpoints.folder):
            measured = fit_and_measure(
                classifier, data.table, checkpoints, holdout=holdout, seed=seed, prior=prior
            )
    if not ranks.first:
        return None
    accuracy = measured.to_dict() if isinstance(measured, HeldAccuracy) else None
    summary = {
        "model": str(out),
        **_summary(classifier, data),
        "seconds_in_all": time.perf_counter() - start,
        "accuracy": accuracy,
        "not_measured": measured if isinstance(measured, str) else None,
    }
    source_files = {
        "items": items.name,
        "items_sha256": digest(items),
        "pairs": pairs.name,
        "pairs_sha256": digest(pairs),
        "accuracy": accuracy,
    }
    classifier.fitted_ = replace(classifier.fitted_, trained_on=source_files)
    classifier.save(out, overwrite=force)
    checkpoints.remove()
    doubt = measured.doubt if isinstance(measured, HeldAccuracy) else None
    notes = [*data.items.notes, *data.notes, *filter(None, [doubt])]
    return Output(summary, _lines(summary, target_prior, data.items.encoder), warnings=notes)


@dataclass(frozen=True)
class TrainingData:
    """A table to fit, and its counts; ``judged`` counts the items that the ``rows`` are about."""

    items: ItemTable
    table: Table
    rows: int
    judged: int
    statements: Counter[str]
    notes: list[str]


def _read(
    reading: Reading, files: dict[str, Path | None], columns: Any, positive: str | None,
    names: list[str] | int | None, *, noisy: bool, prior: float | None, majority: Any,
) -> TrainingData:  # fmt: skip
    """Read everything into memory; errors that `check` finds are raised."""
    from pairlearn.check import CHECKS, check
    from pairlearn.estimators.fit_input import Table
    from pairlearn.io import read_items
    from pairlearn.io.pairs import read_groups
    from pairlearn.judgements import Judgements

    items_file, pairs_file = Path(files["items"] or ""), Path(files["pairs"] or "")
    known = None
    if files["groups"] is not None:
        known = read_groups(files["groups"], items_file)
        columns = replace(columns, ignore=(*columns.ignore, "group"))
    items = read_items(items_file, files["ids"], columns=columns)
    pairs, classes, named = reading.task(pairs_file, names, files["labelled"], items, positive)
    everything = pairs if classes is None else Judgements.concatenate([pairs, classes[0]])
    settled = reading.settled(noisy=noisy)
    if classes is not None or known is not None:
        settled |= SETTLED_BY_LABELS
    wanted = {code for code, look_for in CHECKS.items() if look_for.severity == "error"} | SIDES
    codes = wanted - settled
    report = check(everything, items=items, prior=prior, majority=majority, codes=codes)
    if errors := report.of("error"):
        lines = [f"  {e.code}: {e.message}{where(e, e.message)}" for e in errors[:SHOWN]]
        lines += [f"  … and {len(errors) - SHOWN} more"] * (len(errors) > SHOWN)
        command = shlex.join(["pairlearn", "check", str(pairs_file), "--items", str(items_file)])
        head = f"{pairs_file} cannot be used as it is:"
        raise ValueError("\n".join([head, *lines, f"`{command}` shows all findings"]))
    statements = Counter(report.statements)
    if known is not None:  # a group is one statement about its items
        statements += Counter({name: len({*known.v}) for name in known.kinds()})
    located = [everything.located(items.ids), *([] if known is None else [known])]
    named = named if classes is None else classes[1]
    table = Table.of_items(items, Judgements.concatenate(located), reading.scales, named)
    notes = [finding.message for finding in report.findings if finding.code in SIDES]
    return TrainingData(items, table, len(pairs), len(pairs.used()), statements, notes)


@contextmanager
def _errors_of_training(checkpoint: Path) -> Iterator[None]:
    """Turn a divergence or an interrupt into an error that says what the same command does then."""
    from pairlearn.training.loop import DivergedError

    try:
        yield
    except DivergedError as error:
        raise CommandError(error) from None
    except KeyboardInterrupt:
        begun = f": the training so far is in {checkpoint}; run the same command to continue"
        none = " before the first checkpoint: run the same command to start again"
        message = f"interrupted{begun if checkpoint.is_dir() else none}"
        raise CommandError(message, INTERRUPTED) from None


def _summary(classifier: PairClassifier, data: TrainingData) -> dict[str, Any]:
    """Counts of the data and facts about the training, for JSON."""
    encoder = data.items.encoder
    return {
        "judgements": data.rows,
        "features": len(data.items.names),
        "items": data.judged,
        "statements": {name: count for name, count in data.statements.items() if count},
        "columns": encoder and {column.name: column.kind for column in encoder.columns},
        "trained": classifier.model_,
        "classes": classifier.classes_.tolist(),
        "prior": classifier.prior_,
        "shift": classifier.shift_,
        "epochs": classifier.n_iter_,
        "loss": classifier.history_[classifier.n_iter_ - 1]["risk"],
        "seconds": sum(row["seconds"] for row in classifier.history_),
        "unjudged": classifier.unjudged_,
        "likeliest": _likeliest(classifier, data),
        "annotators": [
            {"annotator": person.name, "in_words": person.sentence()}
            | {name: getattr(person, name) for name in HABITS}
            for person in classifier.annotators_.people
        ],
    }


def _likeliest(classifier: PairClassifier, data: TrainingData) -> dict[str, list[Any]]:
    """Ids of the judged items that are likeliest of each class: exchanged classes show here."""
    import numpy as np

    rows = np.unique(data.table.judged.ends)
    z = classifier.log_odds(data.table.features[rows])
    of_classes = z.T if z.ndim > 1 else np.stack([-z, z])
    return {
        str(name): data.items.ids[rows[np.argsort(-odds, kind="stable")[:SHOWN]]].tolist()
        for name, odds in zip(classifier.classes_, of_classes, strict=True)
    }


def _lines(summary: dict[str, Any], target_prior: float | None, encoder: object) -> list[str]:
    """The summary in at most ten lines."""
    shifted = "" if target_prior is None else f", shifted to {target_prior:g}"
    unjudged = "; also trained on {unjudged:,} unjudged items" * bool(summary["unjudged"])
    text = [
        f"trained on {counted(summary['judgements'], 'judgement')} of {summary['items']:,} items "
        f"with {counted(summary['features'], 'feature')}: {by_kind(summary['statements'])}",
        *([] if encoder is None else [f"  columns: {encoder}"]),
        "  {trained}, {epochs} epochs in {seconds:.1f} s; {seconds_in_all:.1f} s including reading "
        "and measuring".format(**summary),
        f"  loss {{loss:.4f}}, {_shares(summary)}{shifted}{unjudged}".format(**summary),
        "  "
        + "; ".join(
            f"most likely {UNNAMED.get(name, name)}: {', '.join(map(str, i))}"
            for name, i in summary["likeliest"].items()
        ),
    ]
    if summary["accuracy"] is not None:
        text += _accuracy(summary["accuracy"], summary["prior"])
    elif summary["not_measured"]:
        text.append(f"  accuracy not measured: {summary['not_measured']}")
    people = [f"{row['annotator'] or 'the annotator'}: {row['in_words']}"
              for row in summary["annotators"]]  # fmt: skip
    if people:
        more = f"; and {len(people) - SHOWN} more (--json)" * (len(people) > SHOWN)
        text.append(f"  annotators: {'; '.join(people[:SHOWN])}{more}")
    return [*text, f"model: {summary['model']}"]


def _shares(summary: dict[str, Any]) -> str:
    """The frequencies of the classes in words."""
    if isinstance(summary["prior"], float):
        return "share of positives among the judged items {prior:.3f}".format(**summary)
    named = zip(summary["classes"], summary["prior"], strict=True)
    return f"shares of the classes {', '.join(f'{name} {share:.3f}' for name, share in named)}"


def _accuracy(accuracy: dict[str, Any], prior: Any) -> list[str]:
    answers = "{held_out:,} answers about " * (accuracy["pairs"] < accuracy["held_out"])
    dropped = "; {dropped:,} that straddle the split were dropped" * bool(accuracy["dropped"])
    beside = f"; {baseline(prior)}" * (accuracy.get("method") != "agreement")
    others = counted(accuracy["training"], "other judgement")
    line = (
        f"measured on {answers}{{pairs:,}} pairs of held-out items, with a model fitted to "
        f"{others}{dropped}{beside}"
    ).format(**accuracy)
    *rare, sentence = accuracy["sentences"]
    return [f"  {text}" for text in (" ".join(rare), sentence, line) if text]
