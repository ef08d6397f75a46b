"""Pages do what they say: they are run block by block."""

from __future__ import annotations

import re
import sys

import pytest
import torch

from pages import ROOT, assert_shown, read_page, run_page

FILES = ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))
PAGES = [page for page in FILES if read_page(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_prints_what_it_shows(page, tmp_path, monkeypatch, forgetful):
    torch.manual_seed(0)
    for block, printed in run_page(page, tmp_path, monkeypatch):
        if block.shown is not None:
            assert_shown(block.shown, printed, within=0.04)


NEEDED = {  # by what a page imports or calls: the extra, or the package
    "^import pandas": "pandas",
    "^from PIL": "images",
    "^import onnxruntime|^pairlearn export": "onnx",
    "matplotlib|^pairlearn (report|demo|bench figure)": "plot",
    "^pairlearn annotate|pairlearn_studio": "studio",
    "^pairlearn bench|pairlearn_bench": "bench",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_says_what_to_install(page):
    code = "\n".join(block.text for block in read_page(page))
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
    known = {"numpy", "torch", "sklearn", "pandas", "PIL", "onnxruntime", "matplotlib"}
    known |= {"pairlearn", "pairlearn_bench", "pairlearn_studio"}
    known |= {block.file.removesuffix(".py") for block in read_page(page) if block.file}
    assert imported <= known | sys.stdlib_module_names
    told = " ".join(re.findall(r"pip install ([^`\n]+)", page.read_text(encoding="utf-8")))
    needed = {extra for used, extra in NEEDED.items() if re.search(used, code, re.MULTILINE)}
    assert needed <= set(re.findall(r"\w+", told))


def test_there_are_pages_to_run(tmp_path):
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert {"README.md", "docs/extend/add_a_data_set.md", "docs/extend/add_a_model.md"} <= names
    page = tmp_path / "page.md"  # of which the first block is never run
    page.write_text("```console\n$ rm -rf /\n```\n\n```python\na = 1\n```\n", encoding="utf-8")
    assert [block.language for block in read_page(page)] == ["python"]


def test_a_page_is_held_to_what_it_shows():
    assert_shown("a 0.98 b\n…\nend 3", "a 0.97 b\nmore\nend 3\n", within=0.02)
    assert_shown("…\nsecond", "first\nsecond", within=0.02)
    for shown, printed in (
        ("a 0.98", "a 0.95"),
        ("a 0.98", "b 0.98"),
        ("a\nb", "a\nmore\nb"),
        ("a", "a\nmore"),
        ("a\nb", "a"),
    ):
        with pytest.raises(AssertionError):
            assert_shown(shown, printed, within=0.02)


def test_the_command_line_is_walked_in_order():
    commands = [
        line.split()[1]
        for block in read_page(ROOT / "docs" / "tutorial.md")
        for line in block.text.splitlines()
        if line.startswith("pairlearn ")
    ]
    order = ["simulate", "check", "split", "fit", "evaluate", "predict", "compare"]
    assert list(dict.fromkeys(commands)) == order
