"""``pairlearn demo``: the main job on data that come with scikit-learn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("demo.png"),
    seed: Annotated[int, typer.Option(help="Everything random follows from it.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Learn even from odd digits from 400 judged pairs, and say how well, without labels.

    Example: pairlearn demo --seed 1 --out demo.png
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from pairlearn.experiments.demo import METHODS, draw_demo, run_demo
    from pairlearn.experiments.figure_files import save_figure

    if out.suffix not in (".png", ".svg", ".pdf"):
        typer.echo(f"pairlearn demo: --out {out.name} must end in .png, .svg or .pdf", err=True)
        raise typer.Exit(2)
    try:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(f"training {len(METHODS)} models", total=None)
            found = run_demo(
                seed, lambda done, total: bar.update(task, completed=done, total=total)
            )
        save_figure(draw_demo(found), out)
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"pairlearn demo: {error}", err=True)
        raise typer.Exit(2) from None
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
