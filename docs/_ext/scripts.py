"""The gallery: each script under `gallery/` is run at build time and becomes a page.

A script opens with a docstring, whose first line is the title and whose rest is Markdown;
the figures that it leaves open and what it prints are shown above its code.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


@dataclass(frozen=True)
class Example:
    """A script that was run: its words, its code, its figures and what it printed."""

    path: Path
    title: str
    text: str
    code: str
    figures: tuple[Path, ...]
    printed: str


def read_script(path: Path) -> tuple[str, str, str]:
    """Title, text and code of a script."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree)
    if docstring is None or len(tree.body) < 2:
        raise ValueError(f"{path} needs a docstring, whose first line is the title, and code")
    title, _, text = docstring.partition("\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip() + "\n"
    return title.rstrip("."), text.strip(), code


@cache
def run_script(path: Path, out: Path) -> Example:
    """Run a script once in a build and keep its figures in a folder."""
    import matplotlib.pyplot as plt

    plt.close("all")
    title, text, code = read_script(path)
    compiled = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed, plt.rc_context():
        exec(compiled, {"__name__": "__main__", "__file__": str(path)})
        figures = save_figures(out / path.stem)
    return Example(path, title, text, code, figures, printed.getvalue())


def save_figures(stem: Path) -> tuple[Path, ...]:
    """Write every open figure next to this stem, and close them."""
    import matplotlib.pyplot as plt

    stem.parent.mkdir(parents=True, exist_ok=True)
    found = []
    for number in plt.get_fignums():
        found.append(stem.with_name(f"{stem.name}-{number}.png"))
        plt.figure(number).savefig(found[-1], dpi=180, bbox_inches="tight", facecolor="white")
    plt.close("all")
    return tuple(found)


def show_figure(figure: Path, page: Path, said: str) -> str:
    """A figure in Markdown, at the size that its letters were meant for."""
    place = Path(os.path.relpath(figure, page.parent)).as_posix()
    width = int.from_bytes(figure.read_bytes()[16:20], "big") * 2 // 3  # of a PNG file
    return f"```{{image}} {place}\n:alt: {said}\n:width: {width}px\n:class: drawn\n```"


def page_of(example: Example, page: Path) -> str:
    """The page of a script, in Markdown."""
    parts = [f"# {example.title}", example.text]
    parts += [show_figure(figure, page, example.title) for figure in example.figures]
    if example.printed:
        parts.append(f"```text\n{example.printed.rstrip()}\n```")
    parts.append(f"```python\n{example.code}```")
    parts.append(f"{{download}}`Download {example.path.name} <{example.path.name}>`")
    return "\n\n".join(part for part in parts if part)


class ScriptParser(MystParser):
    """Reads a script as the page that it makes."""

    supported = ("gallery",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Run the script and parse its page."""
        env = document.settings.env
        path = Path(env.doc2path(env.docname))
        text = page_of(run_script(path, drawings(env)), path)
        super().parse(text, document)


class Gallery(SphinxDirective):
    """Cards of all scripts beside this page, and their table of contents."""

    def run(self) -> list[nodes.Node]:
        """The nodes, from the text that one would write by hand."""
        page = Path(self.env.doc2path(self.env.docname))
        cards, names = [], []
        for path in sorted(page.parent.glob("*.py")):
            example = run_script(path, drawings(self.env))
            place = Path(os.path.relpath(example.figures[0], page.parent)).as_posix()
            first = example.text.split("\n\n")[0].replace("\n", " ")
            cards.append(
                f":::{{container}} card\n[![{example.title}]({place})]({path.name})\n\n"
                f"[**{example.title}**]({path.name})\n\n{first}\n:::"
            )
            names.append(path.stem)
        toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
        text = "\n\n".join(["::::{container} cards", *cards, "::::", toctree])
        return self.parse_text_to_nodes(text)


def drawings(env: Any) -> Path:
    """Where figures are kept until Sphinx copies them."""
    return Path(env.doctreedir) / "drawings"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register scripts as sources of pages."""
    app.add_source_suffix(".py", "gallery")
    app.add_source_parser(ScriptParser)
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
