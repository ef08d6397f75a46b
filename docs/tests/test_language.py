"""The language of the pages: short sentences, people with a name, words of the glossary."""

from __future__ import annotations

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
    r"\b(in place of|the other way round|mend(?:ed|s)?|drawn set|honest subset|exchanged sides"
    r"|mirrored|guided)\b|, too\b[.;:)]",
    re.I,
)
"""Translations and words of the house; a page may use one that the glossary explains."""
BARE_DECIMAL = re.compile(r"(?<![\w.…/*])\.\d\d+\b")
"""0.84, not .84."""
FENCE = re.compile(r"^(`{3,}|:{3,}|~{3,}).*?^\1\s*$", re.M | re.S)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]
    if "auto_gallery" not in page.parts and page.name != "changelog.md"
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page in Markdown, without code, tables, links' targets and formulas."""
    text = FENCE.sub("\n\n", text)
    text = re.sub(r"<!--.*?-->|^\$\$.*?^\$\$$", "", text, flags=re.M | re.S)
    text = re.sub(r'!?\[([^\]]*)\]\([^\s)]*(?:\s+"[^"]*")?\)', r"\1", text)
    text = re.sub(r"\{[\w:]+\}`([^`]*)`|`[^`]*`|\$[^$\n]+\$", r"\1 X", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>:]|\d+\.) )|\n(?=\|)", text):
        line = " ".join(block.split())
        if not line or line.startswith("|") or block.startswith("    "):
            continue
        yield from re.split(r"(?<=[.!?:;])\s+(?=[A-Z*(\"“X])", line.lstrip("#->*: "))


def words(sentence: str) -> int:
    return sum(any(c.isalpha() for c in word) for word in sentence.split())


def glossary() -> str:
    return (DOCS / "glossary.md").read_text(encoding="utf-8").lower()


def test_the_readme_and_the_glossary_are_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900
    assert len(re.findall(r"^\S.*\n    ", (DOCS / "glossary.md").read_text("utf-8"), re.M)) <= 40
    assert (
        len([page for page in PAGES if page.startswith("docs/guides/")]) <= 12 + 1
    )  # and the index


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_plain_english(page):
    text, known = (ROOT / page).read_text(encoding="utf-8"), glossary()
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
            if f"\n{m[0].lower()}\n" not in known and f"*{m[0].lower()}*" not in known
        ]
        found += [f"{m[0]} lacks its 0 in: {sentence}" for m in BARE_DECIMAL.finditer(sentence)]
    assert not found, "\n".join(found)


def test_docstrings_and_messages_name_people():
    found = []
    for file in [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("*/src/**/*.py"),
        *ROOT.glob("src/**/*.html"),
    ]:
        text = file.read_text(encoding="utf-8")
        found += [f"{file.name}: {m[0]}" for m in WITHOUT_REFERENT.finditer(text)]
        found += [f"{file.name}: {m[0]}" for m in re.finditer(r"in place of", text)]
    assert not found


def test_the_checker_finds_what_is_wrong():
    text = "# T\n\nOne. Two, " + "word " * 40 + "end.\n\n| a | table |\n\n```py\nsomebody\n```\n"
    assert [words(s) for s in sentences(text)] == [1, 1, 42]
    assert WITHOUT_REFERENT.search("Nobody said so")
    assert HOUSE_WORDS.search("so do we, too.") and not HOUSE_WORDS.search("too many")
