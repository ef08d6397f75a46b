"""The language of the pages: short sentences, people with a name, words of the glossary."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LONGEST = 35
"""Words of a sentence: longer ones lose the reader (`docs/contributing.md`)."""
WITHOUT_REFERENT = re.compile(
    r"\b(somebody|someone|nobody|everybody|everyone|anybody|anyone|whoever|no one|the one whom?)\b",
    re.I,
)
HOUSE_WORDS = re.compile(
    r"\b(in place of|the other way round|mend(?:ed|s)?|drawn set|exchanged sides|exchanged classes"
    r"|mirrored|guided|fleets?|leans?|goes on|is there already|the reverse|as well as can be"
    r"|tells? (?:an accuracy|the prior|how))\b|, too\b[.;:)]",
    re.I,
)
"""Translations and words of the house; a page may use one that the glossary explains."""
TRANSLATED = re.compile(
    r"\bin place of\b|is there already|\bgoes on from\b|, too[.;:)](?!\")", re.I
)
"""What no docstring and no message says."""
BARE_DECIMAL = re.compile(r"(?<![\w.…/*:])\.\d+\b")
"""0.84, not .84."""
FENCE = re.compile(r"^(`{3,}|:{3,}|~{3,}).*?^\1\s*$", re.M | re.S)
BESIDE = (
    *("README.md", "CHANGELOG.md", "studio/README.md", "bench/README.md", "bench/speed/README.md"),
    ".github/SECURITY.md",
)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [
        *(ROOT / name for name in BESIDE),
        *DOCS.rglob("*.md"),
        *DOCS.glob("*.ipynb"),
        *ROOT.glob("bench/results/**/README.md"),
        *DOCS.glob("gallery/*.py"),
    ]
    if "auto_gallery" not in page.parts and page.name != "changelog.md"
)


def text_of(page: str) -> str:
    """The Markdown of a page; of a notebook its cells of text, of a script its first docstring."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".py"):
        return ast.get_docstring(ast.parse(text)) or ""
    if page.endswith(".ipynb"):
        cells = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
        return "\n\n".join("".join(cell["source"]) for cell in cells)
    return text


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page in Markdown, and cells of its tables, without code and formulas."""
    text = FENCE.sub("\n\n", text)
    text = re.sub(r"<!--.*?-->|^\$\$.*?^\$\$$", "", text, flags=re.M | re.S)
    text = re.sub(r'!?\[([^\]]*)\]\([^\s)]*(?:\s+"[^"]*")?\)', r"\1", text)
    text = re.sub(r"\{[\w:]+\}`([^`]*)`|`[^`]*`|\$[^$\n]+\$", r"\1 X", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>:]|\d+\.) )|\n(?=\|)", text):
        line = " ".join(block.split())
        if not line or block.startswith("    "):
            continue
        if line.startswith("|"):
            yield from filter(None, (cell.strip(" -:") for cell in line.split("|")))
            continue
        yield from re.split(r"(?<=[.!?:;])\s+(?=[A-Z*(\"“X])", line.lstrip("#->*: "))


def words(sentence: str) -> int:
    return sum(any(c.isalpha() for c in word) for word in sentence.split())


def glossary() -> str:
    return (DOCS / "glossary.md").read_text(encoding="utf-8").lower()


def test_the_readme_the_glossary_and_the_changelog_are_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900
    assert len(re.findall(r"^\S.*\n    ", (DOCS / "glossary.md").read_text("utf-8"), re.M)) <= 40
    newest = re.split(r"^## \[", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)[1]
    assert len(newest.splitlines()) <= 60
    assert (
        len([page for page in PAGES if page.startswith("docs/guides/")]) <= 12 + 1
    )  # and the index


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_plain_english(page):
    text, known = text_of(page), glossary()
    found = []
    for sentence in sentences(text):
        if (count := words(sentence)) > LONGEST:
            found.append(f"{count} words: {sentence}")
        found += [
            f"{m[0]!r} names no person in: {sentence}" for m in WITHOUT_REFERENT.finditer(sentence)
        ]
        found += [
            f"{m[0]!r} is not in the glossary: {sentence}"
            for m in HOUSE_WORDS.finditer(sentence)
            if not re.search(
                rf"^{m[0].lower().removesuffix('s')}s?$|\*{m[0].lower()}\*", known, re.M
            )
        ]
        found += [f"{m[0]} lacks its 0 in: {sentence}" for m in BARE_DECIMAL.finditer(sentence)]
    assert not found, "\n".join(found)


GUIDES = [page for page in PAGES if re.match(r"docs/guides/(?!index)", page)]


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_has_a_question_an_answer_code_and_what_can_go_wrong(page):
    before, answer, after = text_of(page).partition("**Short answer:**")
    assert answer and "?" in before
    assert re.search(r"^```(sh|python|console|\{)", after, re.M)
    assert page.endswith("failures.md") or "## What can go wrong" in after


SOURCES = [*ROOT.glob("src/**/*.py"), *ROOT.glob("*/src/**/*.py")]


def test_docstrings_and_messages_are_plain_english():
    found = []
    for file in [*SOURCES, *ROOT.glob("*/src/**/*.html")]:
        text = file.read_text(encoding="utf-8")
        for wrong in (WITHOUT_REFERENT, TRANSLATED):
            found += [f"{file.name}: {m[0]}" for m in wrong.finditer(text)]
    assert not found


def test_docstrings_have_short_clauses():
    found = []
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = (ast.get_docstring(node) or "").split("\nExamples\n")[0].split("example:")[0]
                # Tables and lists of parameters are indented below their names.
                blocks = re.split(r"\n\s*\n|\n(?! )(?=\S+ : )|(?<= : )", text)
                for block in filter(lambda block: "\n    " not in f"\n{block}", blocks):
                    clauses = itertools.chain(*(re.split("[:;] ", x) for x in sentences(block)))
                    found += [f"{file.name}: {x}" for x in clauses if words(x) > LONGEST]
    assert not found, "\n".join(found)


def test_the_checker_finds_what_is_wrong():
    text = "# T\n\nOne. Two, " + "word " * 40 + "end.\n\n| a | table |\n\n```py\nsomebody\n```\n"
    assert [words(s) for s in sentences(text)] == [1, 1, 42, 1, 1]
    assert BARE_DECIMAL.search("at .05") and not BARE_DECIMAL.search("0.05, x.05, .3f")
    assert WITHOUT_REFERENT.search("Nobody said so")
    assert HOUSE_WORDS.search("so do we, too.") and not HOUSE_WORDS.search("too many")
