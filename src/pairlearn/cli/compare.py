"""``pairlearn compare``: rank risks and corrections on one's own pairs, without labels.

Exit codes: 0 all is well, 2 the request was wrong or a file is no such table.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairlearn.atomic import replacing
from pairlearn.cli.options import (
    ConfidenceOption,
    ItemsArgument,
    JsonOption,
    MajorityOption,
    Model,
    PairsArgument,
    SeedOption,
    with_options,
)
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import refusing
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.comparison import Comparison

__all__ = ["compare"]


@with_options(Reading)
def compare(
    reading: Reading,
    items: ItemsArgument,
    pairs: PairsArgument,
    methods: Annotated[
        str | None,
        typer.Option(help="Names, with commas between; 'sconf' is all corrections. [default: all]"),
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that the items are split into.")] = 5,
    repeats: Annotated[int, typer.Option(help="Splits; more are steadier and slower.")] = 1,
    model: Annotated[Model, typer.Option(help="The network.")] = Model.mlp_bn,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the pairs. [default: as fit]", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Of Adam; as `fit` would choose it if not given.")
    ] = None,
    prior: Annotated[
        float | None, typer.Option(help="Share of positives. [default: estimated]")
    ] = None,
    majority: MajorityOption = None,
    confidence: ConfidenceOption = 0.95,
    noisy: Annotated[bool, typer.Option("--noisy", help="Admit values out of range.")] = False,
    seed: SeedOption = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Write the ranking: .csv.")] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the best method alone.")] = False,
) -> None:
    """Which method? Rank all of them on your own pairs by cross-validation, without labels.

    Accuracies are as the annotator sees them, on pairs that no model was trained on. The
    intervals of the differences hold all together; methods whose interval contains 0 are ties.

    \b
    Examples:
      pairlearn compare items.csv pairs.csv
      pairlearn compare items.csv pairs.csv --model linear --epochs 50 --out ranking.csv
      pairlearn compare items.npy pairs.parquet --methods likelihood,sconfconfdiff-abs --json

    Exit codes: 0 done, 2 wrong request or unreadable file.
    """  # noqa: D301
    from pairlearn.tables import read_items

    with refusing("compare"):
        if out is not None and out.suffix != ".csv":
            raise ValueError(f"--out {out.name} must end in .csv")
        from pairlearn.comparison import compare as run

        known, table = read_items(items), reading.checked(pairs, noisy=noisy, prior=prior)
        with bar("training", shown=not (as_json or quiet)) as progress:
            found = run(
                known.features,
                None,
                table.judgements(known),
                methods=None if methods is None else [m.strip() for m in methods.split(",")],
                prior="estimate" if prior is None else prior,
                majority=None if majority is None else majority.value,
                folds=folds,
                repeats=repeats,
                model=model.value,
                epochs="auto" if epochs is None else epochs,
                learning_rate="auto" if learning_rate is None else learning_rate,
                confidence=confidence,
                seed=seed,
                device=device,
                progress=progress,
            )
        if out is not None:
            _write(found, out)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    elif quiet:
        typer.echo(found.best.name)
    else:
        _show(found, out)


def _write(found: Comparison, path: Path) -> None:
    ends = ("value", "low", "high")
    names = [f"{what}_{end}" for what in ("accuracy", "difference") for end in ends]
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["method", *(name.removesuffix("_value") for name in names), "tie"])
        for row in found.rows:
            told = [getattr(what, end) for what in (row.accuracy, row.difference) for end in ends]
            rows.writerow([row.name, *told, str(row.tie).lower()])


def _show(found: Comparison, out: Path | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    grid = Table("method", "accuracy", "less than the best by")
    for cells, row in zip(found.table(), found.distinct.values(), strict=True):
        style = "bold" if row is found.best else "" if row.tie else "dim"
        grid.add_row(*map(escape, cells), style=style)
    console.print(grid)
    lost = f", {found.dropped:,} lost between folds" if found.dropped else ""
    prior = "" if found.prior is None else f"; class prior {found.prior:.3f}"
    console.print(
        f"{found.pairs:,} judgements, {found.tested:,} held out in {found.folds} folds × "
        f"{found.repeats}{lost}{prior}. Accuracy as the annotator sees it; {found.confidence:.0%} "
        "intervals, those of the differences all together."
    )
    console.print(escape(found.verdict))
    for warning in found.warnings:
        console.print(f"[yellow]warning[/] {escape(warning)}")
    if out is not None:
        console.print(f"ranking: {escape(str(out))}")
