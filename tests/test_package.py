"""The package as a stranger meets it: imports, README, size of the core, the demo."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import pairlearn
from pairlearn.cli import app
from pairlearn.experiments import demo

ROOT = Path(__file__).parents[1]
SOURCE = Path(pairlearn.__file__).parent


def test_import_is_light() -> None:
    heavy = ("sklearn", "matplotlib", "pyarrow", "typer", "rich", "PIL", "pandas")
    code = f"import sys, pairlearn; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_readme_example_learns() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "make_risk" in block]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    torch.manual_seed(0)
    names: dict[str, object] = {}
    exec(code, names)
    x = torch.randn(500, 5)
    decided = names["model"](x).squeeze(-1) > 0  # type: ignore[operator]
    assert ((decided == (x[:, 0] > 0)).float().mean()) > 0.9


def code_lines(path: Path) -> int:
    """Lines of code, without blank lines, comments and docstrings."""
    text = path.read_text()
    taken: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            taken |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in taken
        for number, line in lines
    )


def test_the_core_stays_small() -> None:
    core = [SOURCE / "labels.py", SOURCE / "losses.py", SOURCE / "prior.py"]
    core += sorted((SOURCE / "risks").glob("*.py"))
    assert sum(map(code_lines, core)) <= 700


def test_no_file_grows_out_of_hand() -> None:
    long = {p.name: n for p in SOURCE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 450}
    assert not long


def test_py_typed_is_there() -> None:
    assert (SOURCE / "py.typed").exists()


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EPOCHS", 30)
    out = tmp_path / "demo.png"
    result = CliRunner().invoke(app, ["demo", "--json", "--seed", "3", "--out", str(out)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [row["method"] for row in found["results"]] == list(demo.METHODS)
    accuracy = {row["method"]: row["test_accuracy"] for row in found["results"]}
    assert accuracy["likelihood-abs"] > 0.85
    assert accuracy["supervised"] > 0.85
    for row in found["results"]:
        told = row["accuracy_without_labels"]
        assert 0 <= told["low"] <= told["value"] <= told["high"] <= 1
    assert out.read_bytes().startswith(b"\x89PNG")


def test_demo_refuses_an_unknown_format_before_it_trains(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo.xyz")])
    assert result.exit_code == 2
    assert "--out demo.xyz must end in .png, .svg or .pdf" in result.output
    assert not list(tmp_path.iterdir())
