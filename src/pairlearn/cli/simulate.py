"""``pairlearn simulate``: a folder of items and judged pairs whose truth is known.

Exit codes: 0 all is well, 2 the request was wrong.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import JsonOption, QuietOption, SeedOption
from pairlearn.cli.refusals import refusing

__all__ = ["simulate"]


class Source(StrEnum):
    """Where the items come from."""

    gaussians = "gaussians"
    moons = "moons"
    digits = "digits"
    breast_cancer = "breast-cancer"


class FileFormat(StrEnum):
    """Of the tables."""

    csv = "csv"
    parquet = "parquet"


def simulate(
    folder: Annotated[Path, typer.Argument(help="Where the files go; it is created.")],
    source: Annotated[
        Source, typer.Option("--from", help="Where the items come from.")
    ] = Source.gaussians,
    pairs: Annotated[int, typer.Option(help="Pairs to judge.", min=1)] = 1000,
    items: Annotated[
        int | None, typer.Option(help="Items; with fewer than two a pair they recur.", min=2)
    ] = None,
    prior: Annotated[float, typer.Option(help="Share of positive items.")] = 0.3,
    overlap: Annotated[
        float | None,
        typer.Option(help="Error of the best classifier, if both classes were as frequent."),
    ] = None,
    annotators: Annotated[int, typer.Option(help="How many of them.", min=1)] = 1,
    annotator_prior: Annotated[
        float | None, typer.Option(help="They judge by a population with this prior.")
    ] = None,
    noise: Annotated[
        float, typer.Option(help="σ: judgements are multiplied by N(1, σ²) and clipped.")
    ] = 0.0,
    missing: Annotated[float, typer.Option(help="Share with one of the two answers.")] = 0.0,
    preference: Annotated[float, typer.Option(help="Share with a preference alone.")] = 0.0,
    repeated: Annotated[float, typer.Option(help="Share judged by a second annotator.")] = 0.0,
    also: Annotated[
        list[str] | None,
        typer.Option(help="KIND=SHARE: further statements, such as label=0.1; may be repeated."),
    ] = None,
    format: Annotated[FileFormat, typer.Option(help="Of the tables.")] = FileFormat.csv,
    seed: SeedOption = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make items, judged pairs and, for checking, the truth.

    Writes items, pairs and truth.csv (id, class, posterior) to FOLDER.

    \b
    Examples:
      pairlearn simulate try
      pairlearn simulate moons --from moons --pairs 500 --prior 0.2 --noise 0.2
      pairlearn simulate cancer --from breast-cancer --pairs 200 --annotators 3 --repeated 0.3

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.data.simulation import simulate as make

    with refusing("simulate"):
        names = [f"items.{format.value}", f"pairs.{format.value}", "truth.csv"]
        there = [name for name in names if Path(folder, name).exists()]
        if there and not force:
            raise ValueError(
                f"{Path(folder, there[0])} is there already: choose another folder, or --force"
            )
        made = make(
            source.value,
            pairs=pairs,
            prior=prior,
            items=items,
            annotators=annotators,
            noise=noise,
            missing=missing,
            preference=preference,
            repeated=repeated,
            annotator_prior=annotator_prior,
            overlap=overlap,
            also=_shares(also or []),
            seed=seed,
        )
        files = made.write(folder, format.value)
    best = float((made.posterior.clip(min=0.5) + (1 - made.posterior).clip(min=0.5) - 0.5).mean())
    if as_json:
        report = {
            "files": [str(path) for path in files],
            "items": len(made.items),
            "judgements": len(made.pairs),
            "positive": int(made.positive.sum()),
            "best_accuracy": best,
        }
        typer.echo(json.dumps(report))
    elif not quiet:
        typer.echo(
            f"{len(made.items):,} items ({int(made.positive.sum()):,} positive), "
            f"{len(made.pairs):,} judgements; the best accuracy is about {best:.3f}"
        )
        for path in files:
            typer.echo(f"  {path}")


def _shares(given: list[str]) -> dict[str, float]:
    """Shares by kind, from KIND=SHARE."""
    shares = {}
    for text in given:
        name, _, share = text.partition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            raise ValueError(f"--also takes KIND=SHARE, such as label=0.1; got {text!r}") from None
    return shares
