"""A command is a documented function: its parameters are options, what it returns is printed.

Parameters by position become arguments of the command line, keyword-only ones options. Their
help is in the section "Parameters" of the docstring, or in `HELP` where several commands
have them. What is wrong with a request is said in one line, and ends with exit code 2.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from pairlearn.atomic import replacing
from pairlearn.cli.options import HELP
from pairlearn.progress import hidden_bars

REFUSED, INTERRUPTED = 2, 130
AS_OPTIONS = (
    *("annotator_prior", "target_prior", "majority", "positive", "prior"),
    *("learning_rate", "epochs", "device"),
    *("columns", "ignore", "kinds"),
)
"""Parameters of the library that messages name, and that are options of the same name."""


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
        For ``--json``: numbers, texts, dataclasses, arrays, and lists and dictionaries of
        them. What is not a number becomes null.
    text : sequence
        Otherwise: lines, and what else rich prints, such as tables.
    short : str or ValueError
        For ``--quiet``: a line, nothing, or why there is no such line.
    warnings : sequence of str
        Printed with the text, to standard error.
    file : Path, optional
        Where the JSON or the lines go in place of the terminal.
    error : str
        The final error, which is always printed.
    code : int
        The exit code.
    """

    data: Any
    text: Sequence[Any] = ()
    short: str | ValueError = ""
    warnings: Sequence[str] = ()
    file: Path | None = None
    error: str = ""
    code: int = 0

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print it."""
        if self.file is not None:
            with replacing(self.file) as part:
                text = as_text(self.data) if as_json else "\n".join(self.text)
                part.write_text(f"{text}\n", encoding="utf-8")
        elif as_json:
            typer.echo(as_text(self.data))
        elif quiet and isinstance(self.short, ValueError):
            raise self.short
        elif quiet:
            typer.echo(self.short, nl=bool(self.short))
        else:
            _print(self.text)
            _print([f"warning: {text}" for text in self.warnings], stderr=True)


def as_text(data: Any) -> str:
    """JSON of plain values, dataclasses and arrays; null for what is not a number."""
    import msgspec

    def plain(other: Any) -> Any:
        return other.tolist() if hasattr(other, "tolist") else str(other)

    return json.dumps(msgspec.json.decode(msgspec.json.encode(data, enc_hook=plain)))


def _print(parts: Sequence[Any], *, stderr: bool = False) -> None:
    """Print lines and tables; lines are broken between words on a terminal only."""
    if not parts:
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    for part in parts:
        whole = isinstance(part, str | Text) and not console.is_terminal
        console.print(part, soft_wrap=whole or (isinstance(part, str) and "\n" in part))


NO_RANGE = (
    "no range for annotators who are too sure, or not sure enough: that takes pairs with a "
    "similarity and a difference"
)


def counted(number: int, word: str) -> str:
    """A number of things: "1 error", "1,200 pairs"."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def baseline(prior: float) -> str:
    """The accuracy of always choosing the larger class, to show beside another one."""
    return f"always the larger class: {max(prior, 1 - prior):.3f}"


def as_options(text: str) -> str:
    """A message about parameters as one about options of the command line.

    Examples
    --------
    >>> as_options("pass prior=, or majority='positive' or 'negative'; see target_prior=0.1")
    "pass --prior, or --majority 'positive' or 'negative'; see --target-prior 0.1"
    >>> as_options("The 'prior' parameter of PairClassifier must be a str among {'estimate'} or 1")
    '--prior must be 1'
    """

    def option(found: re.Match[str]) -> str:
        value = f" {found[2]}" if found.lastindex == 2 and found[2] else ""
        return f"--{found[1].replace('_', '-')}{value}"

    text = re.sub("noisy=True(, or --noisy)?", "--noisy", text.replace("overwrite=True", "--force"))
    text = re.sub(r"The '(\w+)' parameter of PairClassifier", option, text)
    # What stands for an option that is not given cannot be given.
    text = re.sub(r"a str among \{'\w+'\} or | or None(?=\. Got)", "", text)
    return re.sub(rf"\b({'|'.join(AS_OPTIONS)})=([^\s,;:]?)", option, text)


@contextmanager
def _refusing(name: str, options: Collection[str]) -> Iterator[None]:
    """Turn what is wrong with a request, or went wrong, into a line and an exit code."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        message, code = as_options(str(error)), REFUSED
        if "noisy" not in options:
            message = message.replace(" (--noisy admits labels with noise)", "")
    except CommandError as error:
        message, code = str(error), error.code
    except KeyboardInterrupt:
        message, code = "interrupted before anything was written", INTERRUPTED
    else:
        return
    if message:
        typer.echo(f"pairlearn {name}: {message}", err=True)
    raise typer.Exit(code)


def command(
    name: str,
    *blocks: type[Any],
    quiet: str = "",
    has_json: bool = True,
    exits: str = "0 done",
) -> Callable[[Callable[..., Output | None]], Callable[..., None]]:
    """Make a command of a function, called ``name`` after ``pairlearn``.

    ``blocks`` are dataclasses of options that several commands share, or that belong together: the
    function takes these objects first. ``quiet`` is the help of ``--quiet``, if there is one, and
    ``exits`` says what the exit codes mean beside 2.
    """
    ending = [("as_json", "--json", HELP["json"])] if has_json else []
    ending += [("quiet", "--quiet", quiet)] if quiet else []

    def decorate(function: Callable[..., Output | None]) -> Callable[..., None]:
        codes = ", ".join(sorted([*exits.split(", "), "2 wrong request or unusable file"]))
        about = f"{_documented(function)[0]}\n\nExit codes: {codes}."
        own = _parameters(function, len(blocks))
        shared = {block: _parameters(block) for block in blocks}

        def run(**given: Any) -> None:
            options = set(given)
            as_json, silent = (bool(given.pop(one, False)) for one in ("as_json", "quiet"))
            chosen = [
                block(**{p.name: given.pop(p.name) for p in fields if p.name in given})
                for block, fields in shared.items()
            ]
            with _refusing(name, options):
                with hidden_bars(as_json or silent):
                    told = function(*chosen, **given)
                if told is not None:
                    told.show(as_json=as_json, quiet=silent)
                    if told.code:
                        raise CommandError(told.error, told.code)

        flags = [
            inspect.Parameter(
                one, inspect.Parameter.KEYWORD_ONLY, default=False,
                annotation=Annotated[bool, typer.Option(flag, help=text)],
            )
            for one, flag, text in ending
        ]  # fmt: skip
        parameters = [*own, *(p for fields in shared.values() for p in fields), *flags]
        run.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__, run.__module__, run.__doc__ = name.split()[-1], function.__module__, about
        return run

    return decorate


def register(app: typer.Typer, *commands: Callable[..., None]) -> typer.Typer:
    """Add commands to an app, with help in which flags do not look as if they took a value."""
    app.info.cls = Group
    for one in commands:
        app.command(one.__name__, cls=Command)(one)
    return app


def _parameters(function: Callable[..., Any], start: int = 0) -> list[inspect.Parameter]:
    """What typer shall make of the parameters of a function, or of the fields of a dataclass."""
    hints, helps = get_type_hints(function, include_extras=True), dict(HELP)
    for one in reversed(getattr(function, "__mro__", [function])):
        helps |= _documented(one)[1]
    found = []
    for one in list(inspect.signature(function).parameters.values())[start:]:
        hint, option = hints[one.name], None
        if get_origin(hint) is Annotated:
            hint, option = get_args(hint)
        positional = one.kind is one.POSITIONAL_OR_KEYWORD and not isinstance(function, type)
        option = copy(option) or (typer.Argument() if positional else typer.Option())
        option.help, _, default = helps[one.name].partition(" [default: ")
        option.show_default = default.removesuffix("]") or option.show_default
        if hint is bool and not option.param_decls:
            option.param_decls = (f"--{one.name.replace('_', '-')}",)
        found.append(one.replace(kind=one.KEYWORD_ONLY, annotation=Annotated[hint, option]))
    return found


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring without its parameters, and their texts.

    Paragraphs are in one line each, but for lists with indented lines.
    """
    text, _, rest = inspect.cleandoc(function.__doc__ or "").partition("Parameters\n----------\n")
    section, _, after = rest.partition("\n\n")
    helps = {
        name: " ".join(lines.split())
        for names, lines in re.findall(r"^(\w.*)\n((?:    .*\n?)+)", section, re.M)
        for name in names.split(", ")
    }
    paragraphs = [
        f"\b\n{part}" if "\n  " in part else " ".join(part.split())
        for part in f"{text.strip()}\n\n{after}".strip().split("\n\n")
    ]
    return "\n\n".join(paragraphs), helps


class _PlainFlags:
    """Help that shows ``--json``, not ``--json <bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with nothing after the names of flags."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # by default it is the type, which is no use for a flag
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A group of commands; it has the flag ``--help`` at least."""
