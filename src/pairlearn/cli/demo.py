"""``pairlearn demo``: the main job on data that come with scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.cli.options import JsonOption, SeedOption
from pairlearn.cli.refusals import refusing
from pairlearn.progress import bar

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("demo.png"),
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Learn even from odd digits from 400 judged pairs, and say how well, without labels.

    \b
    Examples:
      pairlearn demo --seed 1 --out demo.png
    """  # noqa: D301
    from pairlearn.paper.demo import METHODS, draw_demo, run_demo
    from pairlearn.report.figures import save_figure

    with refusing("demo"):
        if out.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--out {out.name} must end in .png, .svg or .pdf")
        with bar(f"training {len(METHODS)} models") as progress:
            found = run_demo(seed, progress)
        save_figure(draw_demo(found), out, json.dumps(found.to_dict()))
    if as_json:
        typer.echo(json.dumps(found.to_dict() | {"figure": str(out)}))
        return
    prior = found.prior
    typer.echo("scikit-learn's digits, even against odd; pairs at prior 0.3, no labels in training")
    typer.echo(
        f"prior estimated from similarities: {prior.value:.3f} "
        f"(95% {prior.low:.3f} to {prior.high:.3f})\n"
    )
    typer.echo(f"{'method':<20}  test accuracy   estimated without labels (95%)")
    for row in found.rows:
        told = row.estimate
        typer.echo(
            f"{row.method:<20}  {row.accuracy:>13.3f}   "
            f"{told.value:.3f}  ({told.low:.3f} to {told.high:.3f})"
        )
    typer.echo(f"\nfigure: {out}")
