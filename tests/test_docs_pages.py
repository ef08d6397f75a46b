"""Every code block of the documentation runs, page by page, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pages import assert_shown, read_page, run_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [page for page in (*sorted(DOCS.rglob("*.md")), ROOT / "README.md") if read_page(page)]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    """Small matrices are slower on several threads, and results differ less on one."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_its_code_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    torch.manual_seed(0)
    for block, printed in run_page(page, tmp_path, monkeypatch):
        if block.shown is not None:
            assert_shown(block.shown, printed, within=0.04)


def test_there_are_pages_to_run():
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert {"README.md", "docs/extend/add_a_data_set.md", "docs/extend/add_a_model.md"} <= names


def test_console_blocks_are_never_run(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ rm -rf /\n```\n\n```python\na = 1\n```\n", encoding="utf-8")
    assert [block.language for block in read_page(page)] == ["python"]
