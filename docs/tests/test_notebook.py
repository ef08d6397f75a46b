"""The notebook runs from top to bottom and prints what is stored in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from run_notebook import run_cell, run_notebook

from pages import assert_shown

FIRST_STEPS = Path(__file__).parents[1] / "first_steps.ipynb"


def test_first_steps():
    stored = json.loads(FIRST_STEPS.read_text(encoding="utf-8"))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    kinds = [cell["cell_type"] for cell in stored["cells"]]
    assert kinds[0] == "markdown" and "code code" not in " ".join(kinds)  # every cell is explained
    assert len({cell["id"] for cell in stored["cells"]}) == len(kinds)
    printed = ""
    for old, new in zip(stored["cells"], run_notebook(FIRST_STEPS)["cells"], strict=True):
        shown, found = (
            "".join("".join(one.get("text", ["figure\n"])) for one in cell.get("outputs", []))
            for cell in (old, new)
        )
        assert_shown(shown, found, within=0.04)
        printed += found
    assert printed.count("figure\n") == 2
    value, low, high = map(
        float, re.findall(r"accuracy (\S+), 95% interval (\S+) to (\S+)", printed)[0]
    )
    by_people, by_pairs, by_classes = (
        float(re.findall(rf"{what}: +(\d\.\d+)", printed)[0])
        for what in ("the annotators", "from judgements", "from true classes")
    )
    # 280 digits: two standard errors of a share of 0.93 are 0.03.
    assert by_people < by_pairs + 0.03 < by_classes + 0.06
    assert low <= value <= high and low < by_pairs < high


def test_a_cell_shows_what_jupyter_shows():
    names: dict[str, object] = {}
    assert run_cell("a = 2\nprint('two')\na + 1", names, "cell") == "two\n3\n"
    assert run_cell("a = 5", names, "cell") == ""
    assert run_cell("None", names, "cell") == ""
    assert run_cell("a + 1;", names, "cell") == ""
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", names, "cell")
