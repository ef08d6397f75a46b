"""The `pairlearn` command: one file a command group."""

from __future__ import annotations

import typer

from pairlearn.cli import bench
from pairlearn.cli.demo import demo

__all__ = ["app", "main"]

app = typer.Typer(
    name="pairlearn",
    help="Learn a binary classifier from pairs annotated with soft judgements.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(demo)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command line."""
    app()
