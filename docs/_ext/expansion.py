"""Text that is put into a page before it is parsed.

    ```{repository-page} results/README.md
    ```

A directive could not do it: the headings of what it brings would not nest among those of
the page. An extension offers a function from what is below such a line to Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sphinx.application import Sphinx

_BLOCK = re.compile(r"^```\{([\w-]+)\} *(\S*)\n```$", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """The page that text is put into, and the folder that `docs/` is in."""

    page: Path
    root: Path
    app: Sphinx

    def file(self, name: str) -> Path:
        """A file of the repository, of which the page is made anew when it changes."""
        path = (self.root / name).resolve()
        self.app.env.note_dependency(str(path))
        return path


Expand = Callable[[str, Place], str]
_KNOWN: dict[str, Expand] = {}


def offer(name: str, expand: Expand) -> None:
    """Let blocks of this name be replaced by what a function makes of their argument."""
    _KNOWN[name] = expand


def expand_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Replace the blocks of a page."""
    page = Path(app.env.doc2path(docname)).resolve()
    place = Place(page, Path(app.srcdir).resolve().parent, app)

    def replace(match: re.Match[str]) -> str:
        return _KNOWN[match[1]](match[2], place) if match[1] in _KNOWN else match[0]

    if page.suffix == ".md":
        content[0] = _BLOCK.sub(replace, content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before what else changes the text of a page."""
    app.connect("source-read", expand_page, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
