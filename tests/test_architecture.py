"""The walk through the architecture names what there is, in at most 20 stops."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "extend" / "architecture.md"
NAMES = sorted(set(re.findall(r"`((?:pairlearn\.)?[a-z_]+(?:\.[A-Za-z_]+)+)`", PAGE.read_text())))


def test_the_walk_is_short() -> None:
    stops = re.findall(r"^(\d+)\. ", PAGE.read_text(), re.M)
    assert stops == [str(k) for k in range(1, len(stops) + 1)]
    assert 10 < len(stops) <= 20


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    parts = ["pairlearn", *name.removeprefix("pairlearn.").split(".")]
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return
    raise AssertionError(f"{name} is not there")
