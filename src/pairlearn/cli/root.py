"""The root of the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairlearn import __version__
from pairlearn.cli import evaluate, fit, predict, samples, tables
from pairlearn.cli.command import new_app
from pairlearn.cli.distributions import Root
from pairlearn.plugins import load_plugin


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairlearn {__version__}")
        raise typer.Exit


app = new_app(name="pairlearn", no_args_is_help=True)
app.info.cls = Root


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="Python file that registers your own."),
    ] = None,
) -> None:
    """Learn a classifier from soft judgements about pairs of items."""
    for path in plugin or ():
        load_plugin(path)


for part in (samples, tables, fit, evaluate, predict):
    app.add_typer(part.app)
