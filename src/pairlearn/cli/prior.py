"""``pairlearn prior``: the share of positives that the similarities imply.

Exit codes: 0 all is well, 2 the request was wrong.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from pairlearn.cli.options import JsonOption, Majority, PairsArgument, with_options
from pairlearn.cli.reading import Reading
from pairlearn.cli.refusals import refusing

__all__ = ["prior"]


@with_options(Reading)
def prior(
    reading: Reading,
    pairs: PairsArgument,
    majority: Annotated[
        Majority | None, typer.Option(help="The larger class; similarities cannot tell.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Coverage of the interval.")] = 0.95,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the number alone.")] = False,
) -> None:
    """Estimate the share of positive items from similarities.

    Weights count, and the interval allows for items that are in several pairs.

    \b
    Examples:
      pairlearn prior pairs.csv
      pairlearn prior pairs.csv --majority negative --json

    Exit codes: 0 done, 2 wrong request.
    """  # noqa: D301
    from pairlearn.prior import estimate_prior
    from pairlearn.tables import read_pairs

    with refusing("prior"):
        if quiet and majority is None and not as_json:
            raise ValueError("--quiet prints one number: say --majority positive or negative")
        table = reading.table(pairs) if reading.given else read_pairs(pairs)
        table = table[~table.single]
        found = estimate_prior(
            table.similarity,
            "positive" if majority is Majority.positive else "negative",
            confidence=confidence,
            weight=table.weight,
            items=table.ids(),
        )
    other = {"value": 1 - found.value, "low": 1 - found.high, "high": 1 - found.low}
    if as_json:
        known = None if majority is None else majority.value
        typer.echo(json.dumps({"majority": known, **asdict(found), "if_reversed": other}))
        return
    if quiet:
        typer.echo(f"{found.value:.6g}")
        return
    equal = majority is None and f"{found.value:.3f}" == "0.500"  # the same on both sides of ½
    high = other["high"] if equal else found.high
    span = f"{confidence:.0%} interval {found.low:.3f} to {high:.3f}"
    typer.echo(f"share of positives: {found.value:.3f} ({span})")
    if majority is None and not equal:
        typer.echo(
            f"               or: {other['value']:.3f} ({other['low']:.3f} to {other['high']:.3f}) "
            "if positives are the majority"
        )
    typer.echo(f"from {found.n:,} similarities with mean {found.mean_similarity:.3f}")
