"""The notebook runs from top to bottom, says what its text says, and is stored clean."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from notebooks import read_notebook, run_cell, run_notebook  # noqa: E402


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in stored["cells"]}) == len(stored["cells"])
    for cell in stored["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_is_explained(path):
    kinds = [kind for kind, _ in read_notebook(path)]
    assert kinds[0] == "markdown"
    assert "code code" not in " ".join(kinds)


def test_first_steps(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    printed, drawn = "", 0
    for _, text, figures in run_notebook(ROOT / "notebooks" / "first_steps.ipynb", tmp_path):
        printed += text
        drawn += len(figures)
    assert drawn == 1
    told = re.search(r"accuracy (\S+), 95% interval (\S+) to (\S+)", printed)
    assert told is not None
    value, low, high = map(float, told.groups())
    assert 0.85 < low <= value <= high <= 1
    by_pairs, by_classes = (
        float(re.search(rf"{what}: +(\d\.\d+)", printed)[1])  # type: ignore[index]
        for what in ("from judgements", "from true classes")
    )
    # 140 biopsies: two standard errors of a share of .95 are .04.
    assert min(by_pairs, by_classes) > 0.9
    assert abs(by_pairs - by_classes) < 0.06
    assert printed.rstrip().endswith("True")


def test_a_cell_shows_what_jupyter_shows():
    names: dict[str, object] = {}
    assert run_cell("a = 2\nprint('two')\na + 1", names, "cell") == "two\n3\n"
    assert run_cell("a = 5", names, "cell") == ""
    assert run_cell("None", names, "cell") == ""
    assert run_cell("a + 1;", names, "cell") == ""
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", names, "cell")
