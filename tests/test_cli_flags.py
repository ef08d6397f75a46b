"""The help of every command: flags take no value, and do not look as if they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from pairlearn.cli import app


def commands(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield name
    for key, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*name, key))


@pytest.mark.parametrize("name", [*commands(typer.main.get_command(app))], ids=" ".join)
def test_flags_show_no_value(name: tuple[str, ...]) -> None:
    result = CliRunner(env={"COLUMNS": "100"}).invoke(app, [*name, "--help"])
    assert result.exit_code == 0
    assert "--help" in result.output
    assert "bool" not in result.output.lower()


def test_options_with_a_value_show_what_it_is() -> None:
    text = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["check", "--help"]).output
    assert "<float>" in text
    assert "<positive|negative>" in text
