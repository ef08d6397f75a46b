"""``pairlearn predict``: classes and probabilities of items, from file to file."""

from __future__ import annotations

import time
from pathlib import Path

from pairlearn.cli.command import Told, command
from pairlearn.cli.options import check_new_file
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
