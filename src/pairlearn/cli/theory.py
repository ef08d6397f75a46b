"""``pairlearn bench theory``: the theory in numbers and pictures, without any data set."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pairlearn.experiments.render import aligned
from pairlearn.experiments.theory import (
    FULL,
    QUICK,
    Progress,
    compute_theory,
    save_theory,
    summarize_theory,
)

__all__ = ["theory"]


def theory(
    out: Annotated[Path, typer.Option(help="Folder of the tables and figures.")] = Path("theory"),
    seed: Annotated[int, typer.Option(min=0, help="Everything random follows from it.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions, in seconds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Geometry of the labels, class prior, variances, and bounds beside measured errors."""
    start = time.monotonic()
    try:
        with _progress_bar() as progress:
            tables = compute_theory(QUICK if quick else FULL, seed=seed, progress=progress)
        files = save_theory(tables, out)
    except (ImportError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    summary = summarize_theory(tables)
    if as_json:
        seconds = round(time.monotonic() - start, 3)
        report = {"files": list(map(str, files)), "seconds": seconds, "summary": summary}
        typer.echo(json.dumps(report))
    else:
        rows = [[k, f"{v:,.0f}" if v >= 100 else f"{v:.3f}"] for k, v in summary.items()]
        typer.echo(aligned(["what", "value"], rows))
        typer.echo(f"\n{len(files)} files in {out}")


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """One bar with the time that is left; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("theory", total=None)

        def update(done: int, total: int, text: str) -> None:
            bars.update(task, completed=done, total=total, description=text)

        yield update
