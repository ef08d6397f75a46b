"""Commands of other distributions: entry points of the group ``pairlearn.commands``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperCommand

from pairlearn.cli.command import Group

GROUP = "pairlearn.commands"
#: Our own, each with its help and what to install, in a clone, where it is missing.
ELSEWHERE = {
    "annotate": ("Collect judgements of pairs from people and models.", "./studio"),
    "bench": ("Run the paper's experiments and show the results.", "./bench"),
}


class Root(Group):
    """The command with those of other distributions, which are imported when asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        installed = {point.name for point in entry_points(group=GROUP)}
        return [*super().list_commands(ctx), *sorted(installed | set(ELSEWHERE))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; a missing one says what to install."""
        for point in entry_points(group=GROUP, name=cmd_name):
            command = typer.main.get_command(point.load())
            command.name = cmd_name
            return command
        if cmd_name in ELSEWHERE:
            return _missing(cmd_name, *ELSEWHERE[cmd_name])
        return super().get_command(ctx, cmd_name)


def _missing(name: str, text: str, folder: str) -> Any:
    def missing() -> None:
        what = f"pairlearn {name} is not installed"
        typer.echo(f"{what}: in a clone of pairlearn, pip install . {folder}", err=True)
        raise typer.Exit(2)

    settings: Any = {"ignore_unknown_options": True, "allow_extra_args": True}
    help_text = f"{text} Not installed."
    return TyperCommand(
        name, callback=missing, help=help_text, context_settings=settings, add_help_option=False
    )
