"""The API reference: one page a room, with every name that the room offers.

    ```{room} pairlearn.labels
    ```

writes the module's own text, a table of its public names, and the entry of each.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Members of these are documented by those who made them.
OTHERS = (
    *("BaseEstimator", "ClassifierMixin", "TransformerMixin", "Module", "Protocol"),
    *("object", "BaseException", "Exception", "Warning", "UserWarning", "OSError"),
    *("ValueError", "LookupError", "RuntimeError", "FileNotFoundError"),
    *("Enum", "StrEnum", "str", "tuple", "dict"),
)


def public_names(module: types.ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or else what it imports `as` itself.

    Examples
    --------
    >>> import pairlearn.prior
    >>> public_names(pairlearn.prior)
    ['PriorEstimate', 'estimate_prior']
    """
    if hasattr(module, "__all__"):
        return list(module.__all__)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    return [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]


def kind_of(found: Any) -> str:
    """Which of autodoc's directives describes an object."""
    if inspect.isclass(found) and get_origin(found) is None:
        return "autoexception" if issubclass(found, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(found) else "data"


def describe_data(module: str, name: str, found: Any) -> list[str]:
    """An entry for a constant or a type alias: the text below it in the source, its values."""
    lines = [f".. py:data:: {name}", f"   :module: {module}", ""]
    if text := _text_below(module, name):
        lines += [f"   {line}".rstrip() for line in inspect.cleandoc(text).splitlines()] + [""]
    if get_origin(found) is Literal:
        lines += ["   One of " + ", ".join(f"``{one!r}``" for one in get_args(found)) + ".", ""]
    elif isinstance(found, Mapping):
        lines += ["   Has " + ", ".join(f"``{one!r}``" for one in found) + ".", ""]
    elif isinstance(found, int | float | tuple):
        lines += [f"   ``{found!r}``", ""]
    return lines


def _text_below(module: str, name: str) -> str:
    """The string below the assignment of a name, in this module or in one that it is from."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and node.module and name in _imported(node):
            return _text_below(node.module, name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return str(after.value.value)
    return ""


def _imported(node: ast.ImportFrom) -> set[str]:
    return {alias.asname or alias.name for alias in node.names}


class Room(SphinxDirective):
    """Describe a module and every public name of it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes, from the text that one would write by hand."""
        name = self.arguments[0]
        module = importlib.import_module(name)
        self.env.note_dependency(str(module.__file__))
        names = public_names(module)
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        described = [one for one in names if kind_of(getattr(module, one)) != "data"]
        lines += [f".. currentmodule:: {name}", "", ".. autosummary::", ""]
        lines += [*(f"   {one}" for one in described), ""]
        for one in names:
            kind = kind_of(getattr(module, one))
            if kind == "data":
                lines += describe_data(name, one, getattr(module, one))
                continue
            lines.append(f".. {kind}:: {name}.{one}")
            if kind == "autoexception":
                lines.append("   :show-inheritance:")
            if kind != "autofunction":
                lines += ["   :members:", f"   :inherited-members: {', '.join(OTHERS)}"]
            lines.append("")
        text = "\n".join(["```{eval-rst}", *lines, "```"])
        return self.parse_text_to_nodes(text)


def follow(app: Sphinx, module: str, attribute: str) -> str:
    """Where the source of a name is, for the link beside it; a constant's is where it stands."""
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    defined = str(getattr(found, "__module__", None))
    return defined if defined.startswith("pairlearn") else module


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and where sources are."""
    app.add_directive("room", Room)
    app.connect("viewcode-follow-imported", follow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
