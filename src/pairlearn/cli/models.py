"""``predict``, ``export`` and ``report``: what a fitted model is used for."""

from __future__ import annotations

import time
from pathlib import Path

from pairlearn.cli.command import Failed, Told, as_options, baseline, command, counted
from pairlearn.cli.options import Reading, check_new_file, check_share
from pairlearn.progress import bar, shows_bars


@command("predict", quiet="Print nothing.")
def predict(
    model: Path,
    items: Path,
    *,
    out: Path,
    ids: Path | None = None,
    threshold: float = 0.5,
    force: bool = False,
) -> Told:
    """Predict items: writes id, label and probability (of the positive class) of each.

    Reads and writes some rows at a time, so that files may have any size. Columns are found
    by their names, in whatever order they stand, and others are left out; .npy items have no
    names and need the order of the training.

    Parameters
    ----------
    out
        File to write: .csv or .parquet.

    \b
    Examples:
      pairlearn predict model items.csv --out predictions.csv
      pairlearn predict model items.csv --out predictions.csv --threshold 0.2

    Exit codes: 0 done, 2 wrong request or unusable file.
    """  # noqa: D301
    check_new_file(out, "predictions", (".csv", ".parquet"), inputs=[items, ids], force=force)
    from pairlearn.estimators import PairClassifier, predict_file

    classifier = PairClassifier.load(model)
    start = time.perf_counter()
    with bar("predict", rows_in(items) if shows_bars() else None, unit="rows") as progress:
        done = predict_file(classifier, items, out, ids=ids, threshold=threshold, progress=progress)
    data = {
        "out": out,
        "rows": done.rows,
        "positive": done.positive,
        "seconds": time.perf_counter() - start,
        "threshold": threshold,
    }
    share = done.positive / done.rows
    text = [f"{done.rows:,} items, {done.positive:,} positive ({share:.1%}): {out}"]
    return Told(data | {"warnings": done.notes}, text, warnings=done.notes)


def rows_in(path: Path) -> int | None:
    """How many rows a table has; None if that cannot be told."""
    import pyarrow
    from pyarrow import dataset

    try:
        return int(dataset.dataset(path, format=path.suffix[1:].lower()).count_rows())
    except (pyarrow.ArrowException, OSError, ValueError):  # reading will say what is wrong
        return None


@command("export", quiet="Print nothing.")
def export(model: Path, out: Path, *, force: bool = False) -> Told:
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

    \b
    Examples:
      pairlearn export model model.onnx
      pairlearn export model model.onnx --json | jq .features

    Exit codes: 0 done, 1 the answers differ, 2 wrong request.
    """  # noqa: D301
    check_new_file(out, "exported models", (".onnx",), inputs=[], force=force)
    if out.resolve().parent == model.resolve():
        raise ValueError(f"{model} holds nothing but its model: choose another folder")
    from pairlearn.estimators import PairClassifier

    classifier = PairClassifier.load(model)
    try:
        difference = classifier.export_onnx(out)
    except RuntimeError as error:
        raise Failed(error) from None
    names = [str(name) for name in getattr(classifier, "feature_names_in_", [])]
    data = {"out": out, "difference": difference, "features": names, "classes": classifier.classes_}
    taken = f"x (n, {classifier.n_features_in_})"
    if hasattr(classifier, "encoder_"):
        image = classifier.encoder_.reads("image")
        taken = "image (n, 3, 32, 32)" if image else f"{classifier.n_features_in_} columns (n,)"
    return Told(
        data,
        [
            f"{out}: {taken} to logit and probability of class {classifier.classes_[1]}",
            f"  onnxruntime and torch differ by {difference:.1e} at most",
        ],
    )


@command("report", Reading)
def report(
    reading: Reading,
    model: Path,
    out: Path,
    *,
    items: Path,
    pairs: Path,
    ids: Path | None = None,
    threshold: float = 0.5,
    prior: float | None = None,
    confidence: float = 0.95,
    noisy: bool = False,
    force: bool = False,
) -> Told:
    """Write a page about a model for readers who do not know the method.

    Its accuracy without labels and what that means, rates, calibration, the judgements, the
    annotators, the training, warnings, a glossary. The page needs no network and nothing
    beside itself. Measure on pairs that the model was not fitted to.

    Parameters
    ----------
    out
        The page to write: .html.
    pairs
        Judged pairs that were held out: .csv or .parquet.

    \b
    Examples:
      pairlearn report model --items items.csv --pairs held_out.csv report.html
      pairlearn report model --items items.csv --pairs held_out.csv report.html \\
        --force

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    check_share("--threshold", threshold)
    check_new_file(out, "reports", (".html",), inputs=[items, pairs, ids], force=force)
    from pairlearn.estimators import PairClassifier
    from pairlearn.estimators.held_pairs import HeldPairs, doubts_of
    from pairlearn.report import build_report, measure, write_page
    from pairlearn.tables import read_items

    classifier = PairClassifier.load(model)
    known = read_items(items, ids, columns=classifier.columns())
    table = reading.checked(pairs, noisy=noisy, prior=prior)
    held = HeldPairs.of(classifier, known, table, (items, pairs))
    told = held.evaluate(classifier, threshold, confidence, prior=prior)
    seen = [] if held.seen is None else [held.seen]
    doubts = [*known.notes, *reading.notes, *doubts_of(classifier, pairs, told, prior)]
    doubts += held.strangers(classifier)
    measured = measure(
        classifier,
        held.items,
        held.table,
        told,
        names=(model.resolve().name, pairs.name),
        source=items,
        threshold=threshold,
        prior=prior,
        band=held.plausible(classifier, threshold, confidence),
        warnings=(*seen, *doubts, *map(as_options, told.warnings)),
    )
    size = write_page(out, build_report(measured), [*sorted(model.iterdir()), items, pairs])
    data = measured.to_dict()
    line = (
        f"{out}: accuracy {told.accuracy} as the annotators see it, {baseline(told.prior.value)}; "
        f"{counted(len(data['warnings']), 'warning')}, {size / 1e3:.0f} kB"
    )
    return Told({"path": out, "bytes": size, **data}, [line, *seen])
