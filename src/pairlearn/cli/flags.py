"""Help in which an option without a value does not look as if it took one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["Command", "Group", "plain_flags"]


class Command(TyperCommand):
    """A command whose help shows ``--json``, not ``--json <bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, with nothing after the names of flags."""
        return _plain(super().get_params(ctx))


class Group(TyperGroup):
    """The same for a group of commands: it has ``--help`` at least."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, with nothing after the names of flags."""
        return _plain(super().get_params(ctx))


def plain_flags(app: typer.Typer) -> typer.Typer:
    """Have all commands of an app, and of the apps in it, show their flags plainly.

    Parameters
    ----------
    app : typer.Typer
        With its commands.

    Returns
    -------
    typer.Typer
        The same.

    Examples
    --------
    >>> from typer.testing import CliRunner
    >>> app = typer.Typer()
    >>> @app.command()
    ... def greet(loudly: bool = typer.Option(False, "--loudly")) -> None: ...
    >>> "bool" in CliRunner().invoke(plain_flags(app), ["--help"]).output
    False
    """
    app.info.cls = Group
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            plain_flags(group.typer_instance)
    return app


def _plain(params: Iterable[Any]) -> list[Any]:
    found = list(params)
    for param in found:
        if getattr(param, "is_flag", False):
            param.metavar = ""  # by default it is the type, which is no use for a flag
    return found
