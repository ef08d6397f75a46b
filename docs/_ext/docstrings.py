"""Docstrings for autodoc: indented blocks keep their lines, and names become links.

Equations and small tables in docstrings are indented by four spaces. docutils takes them for
quotations and joins their lines; here they become literal blocks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from jinja2 import FileSystemLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import pairlearn

# Sections whose indented lines describe a name above them.
_LISTS = {
    *("Parameters", "Other Parameters", "Attributes", "Methods"),
    *("Returns", "Yields", "Raises", "Warns", "See Also"),
}
_BARS = re.compile(r"\|(?=\S)")  # |x| is an absolute value and not a substitution
_FITTED = re.compile(r"(?<=\w)_(?=\W|$)")  # classes_ is an attribute and not a reference
_PLURAL = re.compile(r"`[^`]+`(?=\w)")
_DOCTEST = re.compile(r"\s*(>>>|\.\.\.) ")
_LIST_ITEM = re.compile(r"\s*([-*+•]|\d+[.)]|\.\.)\s")


def keep_lines(lines: list[str]) -> list[str]:
    """Mark the indented blocks of a docstring as literal.

    Examples
    --------
    >>> keep_lines(["Two numbers,", "", "    a = 1", "    b = 2", "", "and so on."])
    ['Two numbers,', '', '.. code-block:: text', '', '    a = 1', '    b = 2', '', 'and so on.']
    """
    kept: list[str] = []
    section, above = "", ""
    inside = False
    for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        if line and set(after.strip()) == {"-"} and len(after.strip()) >= 3:
            section = line.strip()
        indented = line.startswith("    ")
        opens = indented and not inside and number > 0 and not lines[number - 1].strip()
        if opens and section not in _LISTS and _is_text(above):
            kept += [".. code-block:: text", ""]
            inside = True
        if line.strip() and not indented:
            inside = False
        if line.strip():
            above = line
        kept.append(line if inside or _DOCTEST.match(line) else escape(line))
    return kept


def escape(line: str) -> str:
    r"""Escape what docutils would take for markup in a line of text.

    Examples
    --------
    >>> print(escape("`nn.Module`s with |w| ≤ 1"), escape("sign_ : int, or shift_ : float"))
    `nn.Module`\ s with |w| ≤ 1 sign_ : int, or shift\_ : float
    """
    line = _PLURAL.sub(r"\g<0>\\ ", line)
    if "`" not in line:
        line = _BARS.sub(r"\\|", line)
    name, colon, kind = line.partition(" : ")
    return name + colon + _FITTED.sub(r"\\_", kind)


def _is_text(line: str) -> bool:
    """Whether docutils has no other meaning for a block below this line."""
    return bool(line) and not (
        line.startswith(" ") or line.endswith("::") or _LIST_ITEM.match(line)
    )


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Skip members that come from other projects, such as scikit-learn's `set_fit_request`."""
    module = getattr(obj, "__module__", None) or "pairlearn"
    return skipped if module.startswith("pairlearn") else True


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the docstring in place, as autodoc expects."""
    lines[:] = keep_lines(lines)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Link a class documented in another module, or a name that the top-level package exports.

    Annotations come from the code, and may name private classes or those of other projects.
    """
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].removeprefix("pairlearn.")
    if name[:1].isupper() or name != node["reftarget"]:
        matches = env.domains.python_domain.find_obj(env, None, None, name, None, 1)
        home = getattr(getattr(pairlearn, name, None), "__module__", None)
        entries = [
            (full, entry)
            for full, entry in matches
            if (home or full).startswith(full.rpartition(".")[0]) and not entry.aliased
        ]
        if len(entries) == 1:
            full, entry = entries[0]
            place = (app.builder, node["refdoc"], entry.docname, entry.node_id)
            return make_refnode(*place, content, full)
    return None if "refexplicit" in node else content


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before numpydoc, which rewrites the sections."""
    # numpydoc compiles its template for every docstring, which takes a tenth of the build.
    folder = Path(docscrape_sphinx.__file__).with_name("templates")
    templates = SandboxedEnvironment(loader=FileSystemLoader(folder))
    docscrape_sphinx.SandboxedEnvironment = lambda loader: templates
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve, priority=900)  # after intersphinx
    return {"parallel_read_safe": True, "parallel_write_safe": True}
