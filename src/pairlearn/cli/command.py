"""A command is a documented function: its parameters are options, and its `Output` is printed.

Positional parameters become arguments of the command line, keyword-only ones options. Their help
is in the section "Parameters" of the docstring, or in `HELP` where several commands share them.
A wrong request is an error of one line, with exit code 2.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import chain
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
    *("learning_rate", "epochs", "device", "images", "model", "priors"),
    *("columns", "ignore", "kinds"),
)
"""Parameters of the library that are options of the same name: messages name them as options."""


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
    short : str or ValueError
        For ``--quiet``: a line, nothing, or why there is no such line.
    warnings : sequence of str
        Printed to standard error after the text.
    urgent : sequence of str
        Those of the warnings that ``--quiet`` does not silence.
    file : Path, optional
        Where to write the JSON or the lines instead.
    error : str
        The final error, which is always printed.
    code : int
        The exit code.
    """

    data: Any
    text: Sequence[Any] = ()
    short: str | ValueError = ""
    warnings: Sequence[str] = ()
    urgent: Sequence[str] = ()
    file: Path | None = None
    error: str = ""
    code: int = 0

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print it, or write it to its file."""
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
            _warn(self.urgent)
        else:
            _print(self.text)
            _warn(self.warnings)


def as_text(data: Any) -> str:
    """JSON of plain values, dataclasses and arrays; NaN becomes null."""
    import msgspec

    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.dumps(msgspec.json.decode(msgspec.json.encode(data, enc_hook=plain)))


def _warn(texts: Sequence[str]) -> None:
    _print([f"warning: {text}" for text in texts], stderr=True)


def _print(parts: Sequence[Any], *, stderr: bool = False) -> None:
    """Print lines and tables; lines are broken between words on a terminal only."""
    if not parts:
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    for part in parts:
        unbroken = isinstance(part, str | Text) and not console.is_terminal
        console.print(part, soft_wrap=unbroken or (isinstance(part, str) and "\n" in part))


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


def narrower(remedy: str, labels: int) -> str:
    """How to make a range narrower, with the option where known classes do it."""
    return f"{remedy} (--labelled)" if labels else remedy


def as_options(text: str) -> str:
    """Rewrite a message about parameters as one about options.

    Examples
    --------
    >>> as_options("pass prior=, or majority='positive' or 'negative'; see target_prior=0.1")
    "pass --prior, or --majority 'positive' or 'negative'; see --target-prior 0.1"
    >>> as_options("The 'prior' parameter of PairClassifier must be a str among {'estimate'} or 1")
    '--prior must be 1'
    """

    def option(match: re.Match[str]) -> str:
        value = f" {match[2]}" if match.lastindex == 2 and match[2] else ""
        return f"--{match[1].replace('_', '-')}{value}"

    text = re.sub("noisy=True(, or --noisy)?", "--noisy", text.replace("overwrite=True", "--force"))
    text = re.sub(r"The '(\w+)' parameter of PairClassifier", option, text)
    # Values that stand for an absent option cannot be passed.
    text = re.sub(r"a str among \{'\w+'\} or | or None(?=\. Got)", "", text)
    return re.sub(rf"\b({'|'.join(AS_OPTIONS)})=([^\s,;:]?)", option, text)


@contextmanager
def _reporting_errors(name: str, options: Collection[str]) -> Iterator[None]:
    """Turn errors into a line on standard error and an exit code."""
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
    """Turn a function into the command ``pairlearn name``.

    ``blocks`` are dataclasses of options that belong together; the function takes their instances
    first. ``quiet`` is the help of ``--quiet``, if there is one, and ``exits`` explains the exit
    codes other than 2.
    """
    flags = [_flag("as_json", "--json", HELP["json"])] if has_json else []
    flags += [_flag("quiet", "--quiet", quiet)] if quiet else []

    def decorate(function: Callable[..., Output | None]) -> Callable[..., None]:
        codes = ", ".join(sorted([*exits.split(", "), "2 wrong request or unusable file"]))
        own = _parameters(function, len(blocks))
        fields = {block: _parameters(block) for block in blocks}

        def run(**values: Any) -> None:
            options = set(values)
            as_json, silent = values.pop("as_json", False), values.pop("quiet", False)
            chosen = [
                block(**{p.name: values.pop(p.name) for p in parameters if p.name in values})
                for block, parameters in fields.items()
            ]
            with _reporting_errors(name, options):
                with hidden_bars(as_json or silent):
                    output = function(*chosen, **values)
                if output is not None:
                    output.show(as_json=as_json, quiet=silent)
                    if output.code:
                        raise CommandError(output.error, output.code)

        parameters = [*own, *chain.from_iterable(fields.values()), *flags]
        run.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__name__, run.__module__ = name.split()[-1], function.__module__
        run.__doc__ = f"{_documented(function)[0]}\n\nExit codes: {codes}."
        return run

    return decorate


def _flag(name: str, option: str, text: str) -> inspect.Parameter:
    annotation = Annotated[bool, typer.Option(option, help=text)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=False, annotation=annotation)


def register(app: typer.Typer, *commands: Callable[..., None]) -> typer.Typer:
    """Add commands to an app, with help in which flags do not look as if they took a value."""
    app.info.cls = Group
    for run in commands:
        app.command(run.__name__, cls=Command)(run)
    return app


def _parameters(function: Callable[..., Any], start: int = 0) -> list[inspect.Parameter]:
    """Parameters of a function, or fields of a dataclass, as typer takes them."""
    hints, helps = get_type_hints(function, include_extras=True), dict(HELP)
    for base in reversed(getattr(function, "__mro__", [function])):
        helps |= _documented(base)[1]
    converted = []
    for parameter in list(inspect.signature(function).parameters.values())[start:]:
        hint, option = hints[parameter.name], None
        if get_origin(hint) is Annotated:
            hint, option = get_args(hint)
        named = isinstance(function, type) or parameter.kind is parameter.KEYWORD_ONLY
        option = copy(option) or (typer.Option() if named else typer.Argument())
        option.help, _, default = helps[parameter.name].partition(" [default: ")
        option.show_default = default.removesuffix("]") or option.show_default
        if hint is bool and not option.param_decls:
            option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
        converted.append(
            parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=Annotated[hint, option])
        )
    return converted


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring without its parameters, and the help of each parameter.

    Paragraphs become one line each, except lists with indented lines.
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
                param.metavar = ""  # by default the type
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A group of commands; it has the flag ``--help`` at least."""
