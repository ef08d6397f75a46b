"""What every command has: an `Output` that is printed, errors of one line, and its help.

Commands are plain typer functions that return an `Output`. Their options ``as_json`` and ``quiet``
are read here. A wrong request is an error of one line, with exit code 2.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from pairlearn.progress import hidden_bars

#: Exit codes: that of typer for a wrong usage, and that of shells for Ctrl-C.
REFUSED, INTERRUPTED = 2, 130
#: Errors, annotators, items of a class, or confusions that a text names: the rest is in --json.
SHOWN = 3


class CommandError(Exception):
    """An error with an exit code of its own."""

    def __init__(self, message: object, code: int = 1) -> None:
        super().__init__(str(message))
        self.code = code


@dataclass(frozen=True)
class Output:
    """What a command prints.

    Attributes
    ----------
    data : object
        For ``--json``: numbers, strings, dataclasses, arrays, and lists and dictionaries of
        them. NaN becomes null.
    text : sequence
        Otherwise: lines, and other things that rich prints, such as tables.
    short : str
        For ``--quiet``: a line, or nothing.
    warnings : sequence of str, optional
        Printed to standard error after the text, and a part of the JSON, together with the
        warnings of the library. Without them the JSON has no warnings.
    urgent : sequence of str
        Warnings that ``--quiet`` does not silence.
    error : str
        The final error, which is always printed.
    code : int
        The exit code.
    """

    data: Any
    text: Sequence[Any] = ()
    short: str = ""
    warnings: Sequence[str] | None = None
    urgent: Sequence[str] = ()
    error: str = ""
    code: int = 0

    def show(self, *, as_json: bool, quiet: bool, warned: Sequence[str] = ()) -> None:
        """Print it, with the warnings that the library gave."""
        texts = list(dict.fromkeys([*(self.warnings or ()), *warned]))
        if as_json:
            more = {} if self.warnings is None else {"warnings": texts}
            typer.echo(json_text(self.data | more if more else self.data))
        elif quiet:
            typer.echo(self.short, nl=bool(self.short))
            _warn(self.urgent)
        else:
            print_parts(self.text)
            _warn(texts)


def json_text(data: Any) -> str:
    """JSON of plain values, dataclasses and arrays; NaN becomes null."""
    import msgspec

    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.dumps(msgspec.json.decode(msgspec.json.encode(data, enc_hook=plain)))


def _warn(texts: Sequence[str]) -> None:
    print_parts([f"warning: {text}" for text in texts], stderr=True)


def print_parts(parts: Sequence[Any], *, stderr: bool = False) -> None:
    """Print lines and tables; lines are broken between words on a terminal only."""
    if not parts:
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    for part in parts:
        unbroken = isinstance(part, str | Text) and not console.is_terminal
        console.print(part, soft_wrap=unbroken or (isinstance(part, str) and "\n" in part))


def counted(number: int, word: str) -> str:
    """A number of things: "1 error", "1,200 pairs"."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def baseline(prior: float | Sequence[float]) -> str:
    """The accuracy of always choosing the largest class, to show beside another one.

    ``prior`` is that of the positive one of two, or those of all classes.
    """
    shares = (prior, 1 - prior) if isinstance(prior, float) else prior
    return f"always naming the larger class: {max(shares):.1%}"


@contextmanager
def _reporting_errors(name: str) -> Iterator[None]:
    """Turn errors into a line on standard error and an exit code."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        message, code = str(error), REFUSED
    except CommandError as error:
        message, code = str(error), error.code
    except KeyboardInterrupt:
        message, code = "interrupted before anything was written", INTERRUPTED
    else:
        return
    if message:
        typer.echo(f"{name}: {message}", err=True)
    raise typer.Exit(code)


class _PlainFlags:
    """Help that shows ``--json``, not ``--json <bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with nothing after the names of flags."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # by default the type
        return params


class Command(_PlainFlags, TyperCommand):
    """A command that prints its `Output`, and whose examples are the end of its help."""

    def __init__(self, name: str | None, *, help: str | None = None, **options: Any) -> None:
        # Paragraphs are broken by the terminal, except lists with indented lines.
        parts = [
            f"\b\n{part}" if "\n  " in part else " ".join(part.split())
            for part in (help or "").split("\n\n")
        ]
        first = next((i for i, part in enumerate(parts) if "For example:" in part), len(parts))
        options["epilog"] = "\n\n".join(parts[first:])
        super().__init__(name, help="\n\n".join(parts[:first]), **options)

    def invoke(self, ctx: Any) -> None:
        """Run the function and print its output; warnings of the library are printed once."""
        as_json, quiet = (bool(ctx.params.get(name)) for name in ("as_json", "quiet"))
        with _reporting_errors(ctx.command_path):
            with warnings.catch_warnings(record=True) as caught, hidden_bars(as_json or quiet):
                warnings.simplefilter("always", UserWarning)
                output: Output | None = super().invoke(ctx)
            if output is None:
                return
            warned = [str(warning.message) for warning in caught]
            output.show(as_json=as_json, quiet=quiet, warned=warned)
            if output.code:
                raise CommandError(output.error, output.code)


class Group(_PlainFlags, TyperGroup):
    """A group of commands; it has the flag ``--help`` at least."""


def new_app(**options: Any) -> typer.Typer:
    """A typer app for some commands."""
    return typer.Typer(
        cls=Group,
        add_completion=False,
        pretty_exceptions_show_locals=False,  # a traceback must not show a key or a token
        **options,
    )
