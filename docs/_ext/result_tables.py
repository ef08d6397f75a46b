"""Pages made from the files under `results/`: wide tables cut into readable ones, figures."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path

from docutils import nodes
from expansion import Place, offer
from repository import repository_page
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def cut_tables(text: str) -> str:
    r"""Every table of a Markdown text, cut where the value in its first column changes.

    Examples
    --------
    >>> print(cut_tables("| set | a |\n| --- | --- |\n| X | 1 |\n| Y | 2 |"))
    <BLANKLINE>
    ## X
    <BLANKLINE>
    :::{rst-class} numbers
    :::
    <BLANKLINE>
    | a |
    | --- |
    | 1 |
    <BLANKLINE>
    ## Y
    <BLANKLINE>
    :::{rst-class} numbers
    :::
    <BLANKLINE>
    | a |
    | --- |
    | 2 |
    """
    done: list[str] = []
    for is_table, group in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        lines = list(group)
        done += _cut([_cells(line) for line in lines]) if is_table else lines
    return "\n".join(done)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _cut(rows: list[list[str]]) -> list[str]:
    head, rule, *body = rows
    lines = []
    for value, group in groupby(body, key=lambda row: row[0]):
        lines += ["", f"## {value}", "", ":::{rst-class} numbers", ":::", ""]
        lines += ["| " + " | ".join(row[1:]) + " |" for row in (head, rule, *group)]
    return lines


def cut_page(name: str, place: Place) -> str:
    """A Markdown file of the repository with its tables cut."""
    return cut_tables(repository_page(name, place))


class Figures(SphinxDirective):
    """All figures of the repository that match a pattern, each with its name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The images; an error if there is none."""
        docs = Path(self.env.srcdir)
        page = Path(self.env.doc2path(self.env.docname)).resolve()
        found = sorted(docs.parent.glob(self.arguments[0]))
        if not found:
            raise self.error(f"no file matches {self.arguments[0]}")
        lines = []
        for path in found:
            self.env.note_dependency(str(path))
            place = Path(os.path.relpath(path, page.parent)).as_posix()
            lines += [f"```{{figure}} {place}", f":alt: {path.stem}", ":class: drawn", ""]
            lines += [f"`{path.relative_to(docs.parent).as_posix()}`", "```", ""]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the block and register the directive."""
    offer("cut-tables", cut_page)
    app.add_directive("figures", Figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
