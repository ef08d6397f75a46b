"""Files of the repository as pages of the site, and links between them.

    ```{repository-page} results/README.md
    ```

shows a Markdown file that lives outside `docs/`. A link in any page to such a file leads
to the page that shows it; a link to another file of the repository downloads it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from expansion import Place, offer
from sphinx.application import Sphinx

README = Path(__file__).resolve().parents[2] / "README.md"
_DIRECTIVE = re.compile(r"^```\{repository-page\} (\S+)$", re.MULTILINE)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)


def shown_pages(docs: Path) -> dict[Path, Path]:
    """Which file of the repository is shown by which page; the first page stands for README.md."""
    root = docs.parent
    return {README: docs / "index.md"} | {
        (root / target).resolve(): page
        for page in sorted(docs.rglob("*.md"))
        for target in _DIRECTIVE.findall(page.read_text(encoding="utf-8"))
    }


def relocate(text: str, origin: Path, page: Path, shown: dict[Path, Path]) -> str:
    """The text of one file for the place of another, with links that lead where they led.

    Parameters
    ----------
    text : str
        Markdown.
    origin, page : Path
        The file that the text is from, and the page of the site that will show it.
    shown : dict of Path to Path
        See `shown_pages`.
    """
    docs = shown[README].parent
    fences = [match.span() for match in _FENCE.finditer(text)]

    def replace(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        in_code = any(start <= match.start() < end for start, end in fences)
        if in_code or not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = (origin.parent / target).resolve()
        path = path / "README.md" if (path / "README.md").exists() else path
        place = Path(os.path.relpath(shown.get(path, path), page.parent)).as_posix()
        if path in shown or words.startswith("!"):
            return f"{words}({place}{anchor})"
        if path.is_file() and docs not in path.parents:
            return f"{words}(path:{place})"  # a download; `.py` would else be taken for a page
        return match[0] if origin == page else f"{words}({place}{anchor})"

    return _LINK.sub(replace, text)


def repository_page(name: str, place: Place) -> str:
    """The text of a file, for the page that shows it."""
    origin = place.file(name)
    shown = shown_pages(place.root / "docs")
    return relocate(origin.read_text("utf-8"), origin, place.page, shown)


def redirect(app: Sphinx, docname: str, content: list[str]) -> None:
    """Let the links of every page lead to pages of the site where there are some."""
    page = Path(app.env.doc2path(docname)).resolve()
    if page.suffix == ".md":
        content[0] = relocate(content[0], page, page, shown_pages(Path(app.srcdir)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the block and redirect links."""
    offer("repository-page", repository_page)
    app.connect("source-read", redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
