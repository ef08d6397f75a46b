"""``predict``, ``export`` and ``compare``: use a fitted model, or choose a method."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairlearn.cli.command import CommandError, Output, baseline, command
from pairlearn.cli.options import (
    Columns,
    Reading,
    Training,
    check_new_file,
    check_suffix,
    in_file,
    parse_names,
)
from pairlearn.progress import bar, shows_bars

if TYPE_CHECKING:
    from pairlearn.comparison import Comparison


@command("predict", quiet="Print nothing.")
def predict(
    model: Path,
    items: Path,
    *,
    out: Path,
    ids: Path | None = None,
    threshold: float = 0.5,
    force: bool = False,
) -> Output:
    """Predict items: writes id, label and probability (of the positive class) of each.

    Rows are read and written in batches, so that files may have any size. Columns are matched
    by name, in any order, and others are ignored; .npy items have no names and need the order
    of the training.

    Parameters
    ----------
    out
        File to write: .csv or .parquet.

    For example:
      pairlearn predict model items.csv --out predictions.csv
      pairlearn predict model items.csv --out predictions.csv --threshold 0.2
    """
    check_new_file(out, "predictions", (".csv", ".parquet"), inputs=[items, ids], force=force)
    from pairlearn.estimators import PairClassifier, predict_file

    classifier = PairClassifier.load(model)
    start = time.perf_counter()
    with bar("predict", rows_in(items) if shows_bars() else None, unit="rows") as progress:
        result = predict_file(
            classifier, items, out, ids=ids, threshold=threshold, progress=progress
        )
    data = {
        "out": out,
        "rows": result.rows,
        "positive": result.positive,
        "seconds": time.perf_counter() - start,
        "threshold": threshold,
        "warnings": result.notes,
    }
    share = result.positive / result.rows
    text = [f"{result.rows:,} items, {result.positive:,} positive ({share:.1%}): {out}"]
    return Output(data, text, warnings=result.notes)


def rows_in(path: Path) -> int | None:
    """Number of rows of a table; None if it cannot be read."""
    import pyarrow
    from pyarrow import dataset

    try:
        return int(dataset.dataset(path, format=path.suffix[1:].lower()).count_rows())
    except (pyarrow.ArrowException, OSError, ValueError):  # reading will say what is wrong
        return None


@command("export", quiet="Print nothing.", exits="0 done, 1 the answers differ")
def export(model: Path, out: Path, *, force: bool = False) -> Output:
    """Export a model to ONNX, to run where there is no pairlearn.

    The file takes features x, float32 of shape (n, d) in the order of the training, and
    gives logit and probability. A model of columns that are not all plain numbers has an
    input of n values for each: float32 for numbers and 0 or 1, NaN for a gap; strings for
    categories and texts; days since 1970-01-01 in float64 for dates. The file is written
    only if onnxruntime gives the same answers as torch.

    Parameters
    ----------
    out
        File to write: .onnx.

    For example:
      pairlearn export model model.onnx
      pairlearn export model model.onnx --json | jq .features
    """
    check_new_file(out, "exported models", (".onnx",), inputs=[], force=force)
    if out.resolve().parent == model.resolve():
        raise ValueError(f"{model} holds nothing but its model: choose another folder")
    from pairlearn.estimators import PairClassifier

    classifier = PairClassifier.load(model)
    try:
        difference = classifier.export_onnx(out)
    except RuntimeError as error:
        raise CommandError(error) from None
    names = [str(name) for name in getattr(classifier, "feature_names_in_", [])]
    data = {"out": out, "difference": difference, "features": names, "classes": classifier.classes_}
    inputs = f"x (n, {', '.join(map(str, classifier.instance_shape_))})"
    text = [
        f"{out}: {inputs} to logit and probability of class {classifier.classes_[1]}",
        f"  onnxruntime and torch differ by {difference:.1e} at most",
    ]
    return Output(data, text)


@dataclass
class Comparing(Training):
    """How to compare.

    Parameters
    ----------
    model
        The network.
    folds
        Parts that the items are split into.
    repeats
        Splits; more are steadier and slower.
    """

    model: Literal["mlp-bn", "mlp", "linear"] = "mlp-bn"
    folds: int = 5
    repeats: int = 1
    confidence: float = 0.95


@command("compare", Comparing, Reading, Columns, quiet="Print the best method alone.")
def compare(
    how: Comparing,
    reading: Reading,
    columns: Columns,
    items: Path,
    pairs: Path,
    *,
    methods: str | None = None,
    noisy: bool = False,
    out: Path | None = None,
) -> Output:
    """Which method? Rank all of them on your own pairs by cross-validation, without labels.

    Accuracies are as the annotator sees them, on pairs that no model was trained on. The
    intervals of the differences hold all together; methods whose interval contains 0 are ties.

    Parameters
    ----------
    methods
        Names, with commas between; 'sconf' is all corrections. [default: all]
    out
        Write the ranking: .csv.

    For example:
      pairlearn compare items.csv pairs.csv
      pairlearn compare items.csv pairs.csv --model linear --out ranking.csv
      pairlearn compare items.csv pairs.csv --methods likelihood,sconf --json
    """
    from pairlearn.io import read_items

    check_suffix("--out", out, ".csv")
    from pairlearn.comparison import compare as run

    table = read_items(items, columns=columns.choice())
    with in_file(pairs):
        judgements = reading.checked(pairs, noisy=noisy, prior=how.prior).located(table.ids)
    with bar("training") as progress:
        comparison = run(
            table,
            None,
            judgements,
            methods=parse_names(methods, "--methods") or None,
            progress=progress,
            **how.chosen(),
        )
    if out is not None:
        _write(comparison, out)
    warnings = [*table.notes, *reading.notes, *comparison.warnings]
    text = list(_text(comparison, int((~judgements.single).sum()), out))
    return Output(comparison.to_dict(), text, comparison.best.name, warnings)


def _write(comparison: Comparison, path: Path) -> None:
    from pairlearn.io import open_rows

    columns: dict[str, list[Any]] = {"method": [row.name for row in comparison.rows]}
    for measure, end in product(("accuracy", "difference"), ("value", "low", "high")):
        name = measure if end == "value" else f"{measure}_{end}"
        columns[name] = [getattr(getattr(row, measure), end) for row in comparison.rows]
    columns["tie"] = [str(row.tie).lower() for row in comparison.rows]
    with open_rows(path, [*columns]) as rows:
        rows.write(columns)


def _text(comparison: Comparison, judgements: int, out: Path | None) -> Iterator[Any]:
    from rich.table import Table

    grid = Table("method", "accuracy", "less than the best by")
    for cells, row in zip(comparison.table(), comparison.distinct.values(), strict=True):
        best = row is comparison.best
        grid.add_row(*cells, style="bold" if best else "" if row.tie else "dim")
    yield grid
    lost = f", {comparison.dropped:,} lost between folds" if comparison.dropped else ""
    prior = ""
    if comparison.prior is not None:
        prior = f"; class prior {comparison.prior:.3f}, {baseline(comparison.prior)}"
    counted = f"{judgements:,} judgements"
    if comparison.pairs < judgements:
        counted += f" ({comparison.pairs:,} of them count)"
    yield (
        f"{counted}, {comparison.tested:,} held out in {comparison.folds} folds × "
        f"{comparison.repeats}{lost}{prior}.\nAccuracy as the annotator sees it; "
        f"{comparison.confidence:.0%} intervals, those of the differences all together."
    )
    yield comparison.verdict
    if out is not None:
        yield f"ranking: {out}"
