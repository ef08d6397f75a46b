"""The API reference: one page per package, with every public name.

    ```{package} pairlearn.labels
    ```

writes the module's own text, a table of its public names, and the entry of each.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

# Members of these classes are documented elsewhere.
OTHERS = (
    "BaseEstimator, ClassifierMixin, TransformerMixin, Module, Protocol, object, BaseException, "
    "Exception, Warning, UserWarning, OSError, ValueError, LookupError, RuntimeError, "
    "FileNotFoundError, Enum, StrEnum, str, tuple, dict"
)


def public_names(module: types.ModuleType) -> list[str]:
    """The public names of a module: `__all__`, or what it defines and imports `as` itself.

    Examples
    --------
    >>> import pairlearn.labels
    >>> public_names(pairlearn.labels)
    ['PairLabels']
    """
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    own = re.findall(r"^(?:def |class |(?=\w+(?:: [^=\n]+)? = ))([A-Za-z]\w*)", source, re.M)
    return list(getattr(module, "__all__", re.findall(r"\b(\w+) as \1\b", source) + own))


def kind_of(value: Any) -> str:
    """The autodoc directive for an object."""
    if inspect.isclass(value) and get_origin(value) is None:
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(value) else "data"


def describe_data(module: str, name: str, value: Any) -> list[str]:
    """The entry of a constant or type alias: the text below it in the source, and its values."""
    lines = [f".. py:data:: {name}", f"   :module: {module}", ""]
    lines += [f"   {line}".rstrip() for line in _text_below(module, name)] + [""]
    if get_origin(value) is Literal:
        members = ", ".join(f"``{member!r}``" for member in get_args(value))
        lines += [f"   One of {members}.", ""]
    elif isinstance(value, Mapping):
        keys = ", ".join(f"``{key!r}``" for key in value)
        lines += [f"   Has {keys}.", ""]
    elif isinstance(value, int | float | tuple):
        lines += [f"   ``{value!r}``", ""]
    return lines


def _text_below(module: str, name: str) -> list[str]:
    """The lines below the assignment of a name, in this module or in its package."""
    for place in (module, *sorted(m for m in sys.modules if m.startswith(f"{module}."))):
        if lines := ModuleAnalyzer.for_module(place).find_attr_docs().get(("", name)):
            return lines
    return []


class Package(SphinxDirective):
    """Describe a module and all its public names."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes, parsed from the reStructuredText one would write by hand."""
        name = self.arguments[0]
        module = importlib.import_module(name)
        self.env.note_dependency(str(module.__file__))
        kinds = {member: kind_of(getattr(module, member)) for member in public_names(module)}
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        lines += [f".. currentmodule:: {name}", "", ".. autosummary::", ""]
        lines += [*(f"   {member}" for member, kind in kinds.items() if kind != "data"), ""]
        for member, kind in kinds.items():
            if kind == "data":
                lines += describe_data(name, member, getattr(module, member))
                continue
            lines.append(f".. {kind}:: {name}.{member}")
            if kind == "autoexception":
                lines.append("   :show-inheritance:")
            if kind != "autofunction":
                lines += ["   :members:", f"   :inherited-members: {OTHERS}"]
            lines.append("")
        text = "\n".join(["```{eval-rst}", *lines, "```"])
        return self.parse_text_to_nodes(text)


def follow(app: Sphinx, module: str, attribute: str) -> str:
    """The module whose source defines a name; for a constant, the module that documents it."""
    value = getattr(importlib.import_module(module), attribute.split(".")[0], None)
    defined = str(getattr(value, "__module__", None))
    return defined if defined.startswith("pairlearn") else module


def lead_back(app: Sphinx, env: Any) -> None:
    """Let the pages of source lead back to the page that has the name they link to.

    Where two pages document a class, viewcode keeps the name on the first, and the second page.
    """
    entries = env.domains.python_domain.objects
    for _, _, used, module in filter(None, getattr(env, "_viewcode_modules", {}).values()):
        for name in used:
            if found := entries.get(f"{module}.{name}"):
                used[name] = found.docname


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("package", Package)
    if "sphinx.ext.viewcode" in app.extensions:
        app.connect("viewcode-follow-imported", follow)
        app.connect("env-updated", lead_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
