"""``pairlearn predict``: classes and probabilities of items, from file to file.

Exit codes: 0 all is well, 2 the request or a file was wrong.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import (
    ForceOption,
    IdsOption,
    ItemsArgument,
    JsonOption,
    ModelArgument,
    QuietOption,
    ThresholdOption,
)
from pairlearn.cli.refusals import check_new_file, load_model, refusing
from pairlearn.progress import bar, shows_bars

__all__ = ["predict", "rows_in"]

BLOCK = 1 << 22


def predict(
    model: ModelArgument,
    items: ItemsArgument,
    out: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
    ids: IdsOption = None,
    threshold: ThresholdOption = 0.5,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict items: writes id, label and probability (of the positive class) of each.

    Reads and writes some rows at a time, so that files may have any size. Features are
    found by their names, in whatever order they stand; .npy items have no names and need
    the order of the training.

    \b
    Examples:
      pairlearn predict model items.csv --out predictions.csv
      pairlearn predict model items.parquet --out predictions.parquet --threshold 0.2

    Exit codes: 0 done, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("predict"):
        read = [items] if ids is None else [items, ids]
        check_new_file(out, "predictions", (".csv", ".parquet"), inputs=read, force=force)
        classifier = load_model(model)
        from pairlearn.estimators import predict_file

        shown = not (as_json or quiet)
        total = rows_in(items) if shown and shows_bars() else None
        start = time.perf_counter()
        with bar("predict", total, unit="rows", shown=shown) as progress:
            done = predict_file(
                classifier, items, out, ids=ids, threshold=threshold, progress=progress
            )
        seconds = time.perf_counter() - start
    if as_json:
        told = {"out": str(out), "rows": done.rows, "positive": done.positive, "seconds": seconds}
        typer.echo(json.dumps(told | {"threshold": threshold}))
    elif not quiet:
        share = done.positive / done.rows
        typer.echo(f"{done.rows:,} items, {done.positive:,} positive ({share:.1%}): {out}")


def rows_in(path: Path) -> int | None:
    """About how many rows a file has; None if that cannot be told at a glance.

    Examples
    --------
    >>> rows_in(Path("no-such-file.csv")) is None
    True
    """
    suffix = path.suffix.lower()
    if suffix == ".csv" and path.is_file():
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b"")) - 1
    if suffix == ".parquet" and path.is_file():
        import pyarrow
        from pyarrow import parquet

        try:
            return int(parquet.read_metadata(path).num_rows)
        except (pyarrow.ArrowException, OSError):  # reading will say what is wrong with it
            return None
    return None
