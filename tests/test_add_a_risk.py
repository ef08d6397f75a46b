"""The risk that docs/extend/add_a_risk.md adds, and the file that it is in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pages import read_page
from pairlearn import make_risk
from pairlearn.plugins import load_plugin
from pairlearn.risks import check_risk
from pairlearn.style import method_style
from test_risks import expected_partial_risks, world

PAGE = Path(__file__).parents[1] / "docs" / "extend" / "add_a_risk.md"
(CODE,) = [block.text for block in read_page(PAGE) if block.file == "halfway.py"]


@pytest.fixture(autouse=True)
def added(tmp_path: Path, forgetful: None) -> None:
    """The file of the page, loaded as the command line does."""
    (tmp_path / "halfway.py").write_text(CODE)
    load_plugin(tmp_path / "halfway.py")


def test_the_file_is_short_and_passes_the_checks() -> None:
    assert len(CODE.splitlines()) < 60
    check_risk("halfway")


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_average_of_its_neighbours(seed: int) -> None:
    w = world(seed)
    new, *neighbours = (
        expected_partial_risks(make_risk(name, prior=w.prior), w)
        for name in ("halfway", "confdiff", "sconfconfdiff")
    )
    torch.testing.assert_close(new, sum(neighbours) / 2)


def test_it_is_drawn_like_the_others() -> None:
    assert method_style("halfway-abs").color != method_style("sconf-abs").color


def test_plugins_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.py is not a Python file"):
        load_plugin("nowhere.py")
    (tmp_path / "json.py").write_text("")
    with pytest.raises(ValueError, match="there is a module 'json' already; rename the file"):
        load_plugin(tmp_path / "json.py")
    (tmp_path / "wrong.py").write_text("1 / 0")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load_plugin(tmp_path / "wrong.py")
    load_plugin(tmp_path / "halfway.py")  # a second time, which does nothing
