"""The `pairlearn` command: one file a command group."""

from __future__ import annotations

from typing import Annotated

import typer

from pairlearn import __version__
from pairlearn.cli.command import register
from pairlearn.cli.evaluate import evaluate, report
from pairlearn.cli.fit import fit
from pairlearn.cli.models import compare, export, predict
from pairlearn.cli.pairs import check, plan, split
from pairlearn.cli.plugins import Root
from pairlearn.cli.samples import demo, simulate

__all__ = ["app", "main"]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairlearn {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="pairlearn",
    help="Learn a binary classifier from pairs annotated with soft judgements.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # a traceback must not show a key or a token
)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Learn a binary classifier from pairs annotated with soft judgements."""


register(app, demo, simulate, check, split, fit, evaluate)
register(app, report, compare, predict, plan, export)
app.info.cls = Root


def main() -> None:
    """Run the command line."""
    app()
