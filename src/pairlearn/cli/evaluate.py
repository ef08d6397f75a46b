"""``pairlearn evaluate``: how good a model is, from judged pairs without labels.

Exit codes: 0 all is well, 1 the accuracy does not reach --at-least, 2 the request or a file
was wrong.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlearn.cli.options import (
    ConfidenceOption,
    IdsOption,
    ItemsArgument,
    JsonOption,
    ModelArgument,
    NoisyOption,
    PairsArgument,
    PositiveOption,
    PriorOption,
    StreamOption,
    ThresholdOption,
    with_options,
)
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import load_model, refusing

if TYPE_CHECKING:
    from pairlearn.cli.measuring import Report

__all__ = ["evaluate"]

BELOW = 1


@with_options(Reading)
def evaluate(
    reading: Reading,
    model: ModelArgument,
    items: ItemsArgument,
    pairs: PairsArgument,
    ids: IdsOption = None,
    threshold: ThresholdOption = 0.5,
    cost: Annotated[
        str | None, typer.Option(help="Of a false positive and of a false negative, as 1,5.")
    ] = None,
    choose_threshold: Annotated[
        bool, typer.Option("--choose-threshold", help="Find the one with the least cost.")
    ] = False,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Show what a miscalibrated annotator would do.")
    ] = False,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Compare probabilities with judgements.")
    ] = False,
    labelled: Annotated[
        Path | None,
        typer.Option(help="Items of known class, id and class: mends the judgements' confidence."),
    ] = None,
    positive: PositiveOption = None,
    prior: PriorOption = None,
    confidence: ConfidenceOption = 0.95,
    at_least: Annotated[
        float | None,
        typer.Option(help="Exit with 1 unless the accuracy's interval lies above this."),
    ] = None,
    noisy: NoisyOption = False,
    stream: StreamOption = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the accuracy alone.")] = False,
) -> None:
    """Measure a model on judged pairs that it was not fitted to.

    No label is needed. Everything is as the annotators see it: with a calibrated annotator,
    accuracy, rates and the others are those of the true classes. Weights count, and
    intervals allow for items that are in several pairs.

    Pairs with items that the model was trained on are left out, and said to be; without any
    others nothing is measured. pairlearn split makes tables without such items.

    With --stream the pairs stay in their Parquet file. All are checked, and a random sample
    of them, 262,144 at most, is measured with.

    \b
    Examples:
      pairlearn evaluate model items.csv held_out.csv
      pairlearn evaluate model items.csv held_out.csv --cost 1,5 --choose-threshold
      pairlearn evaluate model items.csv held_out.csv --sensitivity --labelled known.csv
      pairlearn evaluate model items.csv held_out.csv --at-least 0.9 --quiet

    Exit codes: 0 done, 1 the accuracy does not reach --at-least, 2 wrong request or
    unusable file.
    """  # noqa: D301
    with refusing("evaluate"):
        from pairlearn.cli.measuring import Request, measure_model

        if not 0 < threshold < 1:
            raise ValueError(f"--threshold must lie in (0, 1); got {threshold:g}")
        if at_least is not None and not 0 < at_least < 1:
            raise ValueError(f"--at-least must lie in (0, 1); got {at_least:g}")
        if positive is not None and labelled is None:
            raise ValueError("--positive is a class of --labelled, which is not given")
        request = Request(
            threshold=threshold,
            cost=_costs(cost),
            choose_threshold=choose_threshold,
            sensitivity=sensitivity,
            calibration=calibration,
            prior=prior,
            confidence=confidence,
        )
        report = measure_model(
            load_model(model),
            items,
            ids,
            pairs,
            labelled,
            positive,
            request,
            reading=reading,
            noisy=noisy,
            stream=stream,
        )
    accuracy = report.evaluation.accuracy
    if as_json:
        typer.echo(json.dumps({"model": str(model), "pairs": str(pairs), **report.to_dict()}))
    elif quiet:
        typer.echo(f"{accuracy.value:.4f}")
    else:
        _show(report, model, pairs)
    if at_least is not None and not accuracy.low >= at_least:
        if not (as_json or quiet):
            typer.echo(
                f"the accuracy may be below {at_least:g}: its interval begins at {accuracy.low:.3f}"
            )
        raise typer.Exit(BELOW)


def _costs(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        false_positive, false_negative = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--cost must be two numbers, of a false positive and of a false negative, as in "
            f"1,5; got {text!r}"
        ) from None
    return false_positive, false_negative


def _show(report: Report, model: Path, pairs: Path) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    told = report.evaluation
    if report.seen:
        console.print(f"[bold yellow]{escape(report.seen)}[/]")
    console.print(
        f"[bold]{escape(str(model))}[/] on {told.n:,} pairs{_drawn(report)} of "
        f"{escape(str(pairs))}, as the "
        f"annotators see it; positive above {report.request.threshold:g}"
    )
    console.print(_measures(report))
    for line in _further(report):
        console.print(line)
    for text in report.warnings:
        console.print(f"[yellow]warning[/]: {escape(text)}")


def _drawn(report: Report) -> str:
    if report.sampled_from is None:
        return ""
    return f", drawn at random from the {report.sampled_from:,}"


def _measures(report: Report) -> Any:
    from rich.table import Table

    told = report.evaluation
    grid = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("measure", "estimate", f"{told.confidence:.0%} interval"):
        grid.add_column(name, justify="left" if name == "measure" else "right")
    rows = {
        "accuracy": told.accuracy,
        "balanced accuracy": told.balanced_accuracy,
        "ROC AUC": told.roc_auc,
        "true positive rate": told.true_positive_rate,
        "false positive rate": told.false_positive_rate,
        "precision": told.precision,
        "F1": told.f1,
        "share of positives": told.prior,
        **{f"{name.replace('_', ' ')}s": share for name, share in told.confusion.items()},
    }
    if told.expected_cost is not None:
        rows["expected cost"] = told.expected_cost
    for name, found in rows.items():
        value = "–" if math.isnan(found.value) else f"{found.value:.3f}"
        grid.add_row(name, value, f"{found.low:.3f} to {found.high:.3f}")
    return grid


def _further(report: Report) -> list[str]:
    """Lines about what was asked for beside the measures."""
    lines = []
    if report.mended is not None:
        lines.append(
            f"judgements mended with {report.mended.n:,} known classes: log-odds times "
            f"{report.mended.slope:.2f}, shifted by {report.mended.shift:+.2f}; as they were, the "
            f"accuracy was {report.unmended}"
        )
    if report.choice is not None:
        found = report.choice
        lines.append(
            f"threshold with the least cost: probability {report.chosen_probability:.3f}, "
            f"expected cost {found.cost.value:.3f} ({found.cost.low:.3f} to {found.cost.high:.3f})"
        )
    if report.band is not None:
        band = report.band
        slopes = [k for k, _, _ in band.estimates]
        lines.append(
            f"if the true log-odds are {min(slopes):g} to {max(slopes):g} times the annotators', "
            f"the accuracy is {band.low:.3f} to {band.high:.3f}, with sampling error "
            f"{band.low_end:.3f} to {band.high_end:.3f}"
        )
    if report.curve is not None:
        lines.append("predicted probability, and the share of positives that judgements imply:")
        curve = report.curve
        for predicted, implied, share in zip(
            curve.predicted, curve.implied, curve.shares, strict=True
        ):
            lines.append(
                f"  {predicted:.3f}  {implied.value:.3f} ({implied.low:.3f} to "
                f"{implied.high:.3f})  {share:.0%} of the items"
            )
    return lines
