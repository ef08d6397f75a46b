"""``predict``, ``export`` and ``compare``: use a fitted model, or choose one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairlearn.cli import options as opt
from pairlearn.cli.command import Command, CommandError, Output, baseline, new_app
from pairlearn.cli.options import (
    argument,
    check_new_file,
    check_positive,
    option,
    parse_names,
)
from pairlearn.cli.reading import Reading, column_choice, in_file, parse_classes
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.comparison import Comparison

app = new_app()


@app.command(cls=Command)
def predict(
    model: opt.Model,
    items: opt.Items,
    *,
    out: Annotated[Path, option("File to write: .csv or .parquet.")],
    ids: opt.Ids = None,
    threshold: opt.Threshold = 0.5,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> Output:
    """Predict items: write the id, label and probability (of the positive class) of each.

    With more than two classes, each has a column probability_NAME.

    Rows are read and written in batches, so files may have any size. Columns are matched by
    name, in any order, and others are ignored; .npy items have no names and need the columns in
    the order of training.

    For example:
      pairlearn predict model items.csv --out predictions.csv
      pairlearn predict model items.csv --out predictions.csv --threshold 0.2

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    check_new_file(out, "predictions", (".csv", ".parquet"), inputs=[items, ids], force=force)
    from pairlearn.estimators import PairClassifier, predict_file

    classifier = PairClassifier.load(model)
    start = time.perf_counter()
    with bar("predict", unit="rows") as progress:
        result = predict_file(
            classifier, items, out, ids=ids, threshold=threshold, progress=progress
        )
    names = classifier.classes_.tolist()
    data = {
        "out": out,
        "rows": result.rows,
        "positive": result.counts[1] if len(names) == 2 else None,
        "classes": {str(name): n for name, n in zip(names, result.counts, strict=True)},
        "seconds": time.perf_counter() - start,
        "threshold": threshold,
    }
    counts = [f"{n:,} {name}" for name, n in zip(names, result.counts, strict=True)]
    if len(counts) == 2:
        counts = [f"{result.counts[1]:,} positive ({result.counts[1] / result.rows:.1%})"]
    text = [f"{result.rows:,} items, {', '.join(counts)}: {out}"]
    return Output(data, text, warnings=result.notes)


@app.command(cls=Command)
def export(
    model: opt.Model,
    out: Annotated[Path, argument("File to write: .onnx.")],
    *,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> Output:
    """Export a model to ONNX, to run without pairlearn.

    The file takes features x, float32 of shape (n, d) in the order of training, and gives
    logit and probability; with more than two classes, a column for each class. It is written
    only if onnxruntime gives the same results as torch. A model that reads categories, dates,
    texts or gaps cannot be exported.

    For example:
      pairlearn export model model.onnx
      pairlearn export model model.onnx --json | jq .features

    Exit codes: 0 done, 1 the results differ, 2 wrong request or unusable file.
    """
    check_new_file(out, "exported models", (".onnx",), inputs=[], force=force)
    if out.resolve().parent == model.resolve():
        raise ValueError(f"{model} may hold only the model: choose another folder")
    from pairlearn.estimators import PairClassifier

    classifier = PairClassifier.load(model)
    try:
        difference = classifier.export_onnx(out)
    except RuntimeError as error:
        raise CommandError(error) from None
    names = [str(name) for name in getattr(classifier, "feature_names_in_", [])]
    data = {"out": out, "difference": difference, "features": names, "classes": classifier.classes_}
    classes = [str(name) for name in classifier.classes_]
    of_what = f"class {classes[1]}" if len(classes) == 2 else f"each of {', '.join(classes)}"
    inputs = f"x (n, {', '.join(map(str, classifier.instance_shape_))})"
    text = [
        f"{out}: {inputs} to logit and probability of {of_what}",
        f"  onnxruntime and torch differ by {difference:.1e} at most",
    ]
    return Output(data, text)


@app.command(cls=Command)
def compare(
    items: opt.Items,
    pairs: opt.Pairs,
    *,
    models: Annotated[
        str, option("linear, mlp-bn, mlp, boosting or registered names, separated by commas.")
    ] = "linear,mlp-bn,boosting",
    risks: Annotated[
        str | None,
        option(
            "Risks to train the networks with, such as likelihood-abs,sconfconfdiff-abs.",
            default="likelihood-abs",
        ),
    ] = None,
    folds: Annotated[int, option("Number of parts that the items are split into.")] = 3,
    classes: opt.Classes = None,
    labelled: opt.Labelled = None,
    positive: opt.Positive = None,
    prior: opt.Prior = None,
    majority: opt.Majority = None,
    epochs: opt.Epochs = None,
    noisy: opt.Noisy = False,
    columns: opt.Columns = None,
    ignore: opt.Ignore = None,
    kinds: opt.Kinds = None,
    similarity_scale: opt.SimilarityScale = None,
    difference_scale: opt.DifferenceScale = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: Annotated[bool, option("Print only the best candidate.", "--quiet")] = False,
) -> Output:
    """Rank models on your own pairs by cross-validation, without labels or with a few.

    Accuracies are as the annotators see them, on pairs of items that a model was not trained
    on; with --labelled, the classes of items drawn at random, they hold however reliable the
    answers are. The intervals of the differences hold simultaneously; a candidate whose
    interval contains 0 is a tie.

    For example:
      pairlearn compare items.csv pairs.csv
      pairlearn compare items.csv pairs.csv --models linear,mlp-bn
      pairlearn compare items.csv pairs.csv --risks likelihood-abs,sconf-abs
      pairlearn compare items.csv pairs.csv --labelled known.csv

    Exit codes: 0 done, 2 wrong request or unusable file.
    """
    from pairlearn.comparison import compare as run
    from pairlearn.comparison import default_candidates
    from pairlearn.io import read_items
    from pairlearn.io.pairs import read_labelled

    check_positive(positive, labelled)
    known: dict[str, Any] = {
        "prior": prior, "majority": majority, "epochs": epochs, "classes": parse_classes(classes),
    }  # fmt: skip
    chosen = default_candidates(
        parse_names(models, "--models"),
        parse_names(risks, "--risks") or ["likelihood-abs"],
        random_state=seed,
        **{name: value for name, value in known.items() if value is not None},
    )
    reading = Reading(similarity_scale, difference_scale)
    table = read_items(items, columns=column_choice(columns, ignore, kinds))
    with in_file(pairs):
        judgements = reading.checked(pairs, noisy=noisy, prior=prior, classes=known["classes"])
        judgements = judgements.located(table.ids)
    sample = None
    if labelled is not None:
        rows, _ = read_labelled(labelled, table, positive)
        sample = table[rows.ends[:, 0]], rows.u, rows.weight
    with bar("training") as progress:
        options: Any = {"folds": folds, "seed": seed, "progress": progress, "labelled": sample}
        comparison = run(chosen, None, judgements, preprocessor=table, **options)
    warnings = [*table.notes, *comparison.warnings]
    return Output(comparison.to_dict(), [*_text(comparison)], comparison.best.name, warnings)


def _text(comparison: Comparison) -> Iterator[Any]:
    from rich.table import Table

    grid = Table("candidate", "accuracy", "difference from the best")
    for row in comparison.rows:
        style = "bold" if row is comparison.best else "" if row.tie else "dim"
        tie = " tie" * row.tie
        difference = "" if row is comparison.best else f"{row.difference}{tie}"
        grid.add_row(row.name, str(row.accuracy), difference, style=style)
    yield grid
    by = "if the annotators knew everything that the models use"
    yield (
        f"{comparison.tested:,} of {comparison.judgements:,} judgements held out in "
        f"{comparison.folds} folds; {baseline(comparison.prior)}.\nAccuracy "
        f"{'by the labelled items' if comparison.labelled else by}; {comparison.confidence:.0%} "
        "intervals, simultaneous for the differences."
    )
    yield from comparison.sentences
    yield comparison.verdict
