"""The command line as a page: every command with its help, arguments and options."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

import typer.main
from expansion import Place, offer
from sphinx.application import Sphinx

from pairlearn.cli import app as command_line


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below this one, depth first, with its full name."""
    for key, below in getattr(command, "commands", {}).items():
        if below.hidden:
            continue
        if hasattr(below, "commands"):
            yield from walk(below, f"{name} {key}")
        else:
            yield f"{name} {key}", below


def describe(name: str, command: Any) -> str:
    """A command as a section of a page."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    usage = " ".join([name, *(called(one) for one in arguments), "[OPTIONS]"])
    parts = [f"## {name}", f"```console\n{usage}\n```", as_markdown(command.help or "")]
    kinds = get_type_hints(inspect.unwrap(command.callback))
    names = [f"`{called(one)}`" for one in arguments]
    names += [" ".join(f"`{opt}`" for opt in written(one)) for one in options]
    texts = [said(one, kinds.get(one.name)) for one in (*arguments, *options)]
    table = ["| | |", "| --- | --- |", *map("| {} | {} |".format, names, texts)]
    return "\n\n".join([*parts, "\n".join(table)])


def called(argument: Any) -> str:
    """How an argument is called in the usage line."""
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required else f"[{name}]"


def written(option: Any) -> list[str]:
    """How an option is written."""
    return [*option.opts, *option.secondary_opts]


def said(parameter: Any, kind: Any) -> str:
    """What the help says of a parameter, its choices and its default."""
    text = (parameter.help or "").replace("|", r"\|")
    for choices in (kind, *get_args(kind)):
        if isinstance(choices, type) and issubclass(choices, Enum):
            text += " One of " + ", ".join(f"`{one.value}`" for one in choices) + "."
    default = getattr(parameter.default, "value", parameter.default)
    if parameter.required:
        return f"{text} Required."
    if default not in (None, False, "", (), []) and not callable(default):
        text += f" Default: `{default}`."
    return text


def as_markdown(help: str) -> str:
    r"""Help text with the blocks that keep their lines (`\b`) fenced."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(help))
    done = []
    for paragraph in paragraphs:
        if example := re.match(r"Example: (pairlearn .*)", paragraph, re.DOTALL):
            done += ["Example:", f"```console\n{example[1]}\n```"]
            continue
        if not paragraph.lstrip().startswith("\b"):
            done.append(re.sub(r"(?<!\w)(--[\w-]+)", r"`\1`", paragraph))
            continue
        head, *lines = paragraph.lstrip("\b\n").splitlines()
        done += [head, "```console\n" + textwrap.dedent("\n".join(lines)) + "\n```"]
    return "\n\n".join(done)


def command_sections(name: str, place: Place) -> str:
    """Every command below one of this name, as a section each."""
    top = typer.main.get_command(command_line)
    return "\n\n".join(describe(full, one) for full, one in walk(top, name))


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the block."""
    offer("commands", command_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
