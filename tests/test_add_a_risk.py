"""The risk that docs/extend/add_a_risk.md adds works as it is printed there.

The code is taken from the page and put through the checks that one row in
tests/test_risks.py would start.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import test_risks
from pairlearn import make_risk
from pairlearn.losses import LOSSES
from pairlearn.risks import RISKS
from test_risks import expected_partial_risks, world

PAGE = Path(__file__).parents[1] / "docs" / "extend" / "add_a_risk.md"
TEXT = PAGE.read_text(encoding="utf-8")


def printed_code() -> str:
    """The one Python block on the page: the whole new file."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    return str(code)


@pytest.fixture
def halfway(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The printed file as a module, its class in the catalogue for one test."""
    module = ModuleType("halfway")
    exec(compile(printed_code(), str(PAGE), "exec"), module.__dict__)
    monkeypatch.setitem(RISKS, "halfway", module.Halfway)
    return module


def test_the_file_is_short() -> None:
    assert len(printed_code().splitlines()) < 60


def test_the_page_shows_the_line_and_the_row() -> None:
    assert re.search(r'^\+ +"halfway": Halfway,$', TEXT, flags=re.MULTILINE)
    assert re.search(r'^\+AFFINE \+= \["halfway"\]$', TEXT, flags=re.MULTILINE)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_it_is_unbiased(halfway: ModuleType, seed: int, loss: str) -> None:
    test_risks.test_affine_risks_are_unbiased("halfway", seed, loss)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_average_of_its_neighbours(halfway: ModuleType, seed: int) -> None:
    w = world(seed)
    new, *neighbours = (
        expected_partial_risks(make_risk(name, prior=w.prior), w)
        for name in ("halfway", "confdiff", "sconfconfdiff")
    )
    torch.testing.assert_close(new, sum(neighbours) / 2)
    tables = [make_risk(name, prior=0.2).table for name in ("halfway", "confdiff", "sconfconfdiff")]
    torch.testing.assert_close(tables[0], (tables[1] + tables[2]) / 2)


@pytest.mark.parametrize("correction", ["none", "relu", "abs", "slope=0.25"])
def test_its_name_and_gradients(halfway: ModuleType, correction: str) -> None:
    test_risks.test_names_round_trip("halfway", correction)
    test_risks.test_gradients("halfway", correction, "logistic")


def test_its_example_runs(halfway: ModuleType) -> None:
    tests = doctest.DocTestFinder().find(halfway)
    assert sum(len(test.examples) for test in tests) >= 2
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).failed for test in tests) == 0


def test_it_appears_in_the_benchmark_by_its_line_in_the_catalogue() -> None:
    """In a process of its own, in which the catalogue has it from the start."""
    code = f"""
exec({printed_code()!r})
from pairlearn.risks import RISKS
Halfway.look = ("#123456", "#abcdef", "h")
RISKS["halfway"] = Halfway
from pairlearn_bench import GRIDS, Method
from pairlearn.style import method_style
assert {{r.method for r in GRIDS["accuracy"].runs()}} >= {{"halfway-abs", "supervised"}}
print(Method.parse("halfway-abs").title, method_style("halfway-abs").color)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["Halfway-ABS", "#123456"]
