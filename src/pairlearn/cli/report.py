"""``pairlearn report``: a model as a page that anyone can read.

Exit codes: 0 written, 2 the request or a file was wrong.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import (
    ConfidenceOption,
    ForceOption,
    IdsOption,
    JsonOption,
    ModelArgument,
    NoisyOption,
    PriorOption,
    ThresholdOption,
    with_options,
)
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import check_new_file, load_model, refusing

__all__ = ["report"]


@with_options(Reading)
def report(
    reading: Reading,
    model: ModelArgument,
    out: Annotated[Path, typer.Argument(help="The page to write: .html.")],
    items: Annotated[
        Path, typer.Option(help="Table of items, id and features: .csv, .parquet or .npy.")
    ],
    pairs: Annotated[Path, typer.Option(help="Judged pairs that were held out: .csv or .parquet.")],
    ids: IdsOption = None,
    threshold: ThresholdOption = 0.5,
    prior: PriorOption = None,
    confidence: ConfidenceOption = 0.95,
    noisy: NoisyOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a page about a model for readers who do not know the method.

    Its accuracy without labels and what that means, rates, calibration, the judgements, the
    annotators, the training, warnings, a glossary. The page needs no network and nothing
    beside itself. Measure on pairs that the model was not fitted to.

    \b
    Examples:
      pairlearn report model --items items.csv --pairs held_out.csv report.html
      pairlearn report model --items items.csv --pairs held_out.csv report.html --force --json

    Exit codes: 0 written, 2 wrong request or unusable file.
    """  # noqa: D301
    with refusing("report"):
        from pairlearn.cli.measuring import Request, measure_model
        from pairlearn.report import build_report, measure, write_page

        if not 0 < threshold < 1:
            raise ValueError(f"--threshold must lie in (0, 1); got {threshold:g}")
        read = [items, pairs, *([ids] if ids is not None else [])]
        check_new_file(out, "reports", (".html",), inputs=read, force=force)
        classifier = load_model(model)
        request = Request(threshold=threshold, prior=prior, confidence=confidence)
        told = measure_model(
            classifier, items, ids, pairs, None, None, request, reading=reading, noisy=noisy
        )
        assert told.items is not None and told.table is not None
        measured = measure(
            classifier,
            told.items,
            told.table,
            told.evaluation,
            names=(model.resolve().name, pairs.name),
            source=items,
            threshold=threshold,
            prior=prior,
            warnings=(*([] if told.seen is None else [told.seen]), *told.warnings),
        )
        size = write_page(out, build_report(measured))
    if as_json:
        typer.echo(json.dumps({"path": str(out), "bytes": size, **measured.to_dict()}))
    else:
        found = measured.evaluation.accuracy
        count = len(measured.to_dict()["warnings"])
        doubts = f"{count} warning{'s' * (count != 1)}"
        typer.echo(
            f"{out}: accuracy {found} as the annotators see it, {doubts}, {size / 1e3:.0f} kB"
            + ("" if told.seen is None else f"\n{told.seen}")
        )
