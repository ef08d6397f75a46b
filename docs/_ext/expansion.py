"""Text inserted into a page before it is parsed, and links between files of the repository.

    ```{repository-page} bench/results/README.md
    ```

A directive could not do this: the headings it inserts would not nest among those of the page.
`BLOCKS` maps the name of a block to the function that writes its Markdown.
A link in any page to a file that a page shows leads to that page; a link to another file of
the repository downloads it.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from sphinx.application import Sphinx
from typer.cli import get_docs_for_click

from pairlearn.cli.root import app as command_line
from pairlearn_bench import read_sources
from pairlearn_bench.cells import dataset_title
from pairlearn_bench.page import EXPLAINED, TITLES, cells_page

README = Path(__file__).resolve().parents[2] / "README.md"
_BLOCK = re.compile(r"^```\{([\w-]+)\} *(\S*)\n```$", re.MULTILINE)
_SHOWN = re.compile(r"^```\{repository-page\} (\S+)$", re.MULTILINE)
_LINK = re.compile(r'(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s#]*)((?:#[^)\s]*)?(?: "[^"]*")?)\)')
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
_KEPT_LINES = re.compile(r"\x08\n(.*)\n((?:  .*\n?)+)")


@dataclass(frozen=True)
class Place:
    """The page that text is inserted into, and the folder that holds `docs/`."""

    page: Path
    root: Path
    app: Sphinx

    def file(self, name: str) -> Path:
        """A file of the repository; the page is rebuilt when it changes."""
        path = (self.root / name).resolve()
        self.app.env.note_dependency(str(path))
        return path


def shown_pages(docs: Path) -> dict[Path, Path]:
    """The page that shows each file of the repository; the home page shows README.md."""
    root = docs.parent
    return {README: docs / "index.md"} | {
        (root / target).resolve(): page
        for page in sorted(docs.rglob("*.md"))
        for target in _SHOWN.findall(page.read_text(encoding="utf-8"))
    }


def relocate(text: str, origin: Path, page: Path, shown: dict[Path, Path]) -> str:
    """Rewrite the links in a file's text so that they still work on the page that shows it.

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
            return f"{words}(path:{place})"  # a download; otherwise `.py` is taken for a page
        return match[0] if origin == page else f"{words}({place}{anchor})"

    return _LINK.sub(replace, text)


def repository_page(name: str, place: Place) -> str:
    """The text of a file, for the page that shows it."""
    origin = place.file(name)
    text = origin.read_text("utf-8").replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    return relocate(text, origin, place.page, shown_pages(place.root / "docs"))


def results_table(grid: str, place: Place) -> str:
    """Every cell of an experiment beside the published one, to sort and to filter."""
    place.file(f"bench/results/runs/{grid}.parquet")
    sources = _sources(place.root / "bench/results")
    records = [record for source in sources if source.grid == grid for record in source.records]
    return f"```{{raw}} html\n{cells_page(grid, records)}\n```"


_sources = cache(lambda folder: read_sources([folder]))


def figures(pattern: str, place: Place) -> str:
    """All figures of the repository that match a pattern, each with its caption."""
    paths = sorted(place.root.glob(pattern))
    if not paths:
        raise ValueError(f"{place.page}: no file matches {pattern}")
    parts = []
    for path in paths:
        grid, _, which = path.stem.partition("-")
        setting = f"on {dataset_title(which)}" if grid == "robustness" else f"at prior {which}"
        title = f"{TITLES[grid]} {setting}, {path.parent.name} test subset"
        name = path.relative_to(place.root).as_posix()
        below = Path(os.path.relpath(place.file(name), place.page.parent)).as_posix()
        caption = " ".join(EXPLAINED[grid].split())
        alt = f":alt: {title}; the numbers are in the table"
        parts.append(f"```{{figure}} {below}\n{alt}\n:class: drawn\n\n{title}. {caption}\n```")
    return "\n\n".join(parts)


def commands(name: str, place: Place) -> str:
    """Every command below one of this name, as a section each."""
    text = "\n".join(_commands(typer.main.get_command(command_line), name))
    return _KEPT_LINES.sub(r"\1\n\n```console\n\2```\n", text).replace(
        "\n  pairlearn", "\npairlearn"
    )


def _commands(command: Any, name: str) -> Iterator[str]:
    for key, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{name} {key}")
    if not hasattr(command, "commands"):
        context = typer.Context(command, info_name=name)
        yield get_docs_for_click(obj=command, ctx=context, indent=1, name=name, title=name)


def notebook_page(name: str, place: Place) -> str:
    """A notebook with its stored outputs as the text of a page."""
    path, parts = place.file(name), []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for number, output in enumerate(cell.get("outputs", [])):
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            else:
                png = base64.b64decode(output["data"]["image/png"])
                drawn = Path(place.app.doctreedir, f"{cell['id']}-{number}.png")
                drawn.write_bytes(png)
                below = Path(os.path.relpath(drawn, place.page.parent)).as_posix()
                width = int.from_bytes(png[16:20], "big") * 2 // 3
                alt = "what the cell drew"
                parts.append(
                    f"```{{image}} {below}\n:alt: {alt}\n:width: {width}px\n:class: drawn\n```"
                )
    below = Path(os.path.relpath(path, place.page.parent)).as_posix()
    return "\n\n".join([*parts, f"Download [{path.name}](path:{below}).", ""])


BLOCKS: dict[str, Callable[[str, Place], str]] = {
    "commands": commands,
    "figures": figures,
    "notebook": notebook_page,
    "repository-page": repository_page,
    "results-table": results_table,
}


def expand(app: Sphinx, docname: str, content: list[str]) -> None:
    """Replace the blocks of a page, and point its links to pages of the site."""
    page = Path(app.env.doc2path(docname)).resolve()
    if page.suffix != ".md":
        return
    place = Place(page, Path(app.srcdir).resolve().parent, app)

    def replace(match: re.Match[str]) -> str:
        return BLOCKS[match[1]](match[2], place) if match[1] in BLOCKS else match[0]

    text = _BLOCK.sub(replace, content[0])
    content[0] = relocate(text, page, page, shown_pages(Path(app.srcdir)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Change pages when they are read."""
    app.connect("source-read", expand)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
