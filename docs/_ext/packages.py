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

# Members of these are documented by those who made them.
OTHERS = (
    "BaseEstimator, ClassifierMixin, TransformerMixin, Module, Protocol, object, BaseException, "
    "Exception, Warning, UserWarning, OSError, ValueError, LookupError, RuntimeError, "
    "FileNotFoundError, Enum, StrEnum, str, tuple, dict"
)


def public_names(module: types.ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or else what it imports `as` itself and defines.

    Examples
    --------
    >>> import pairlearn.prior
    >>> public_names(pairlearn.prior)
    ['PriorEstimate', 'estimate_prior']
    """
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    own = re.findall(r"^(?:def |class |(?=\w+(?:: [^=\n]+)? = ))([A-Za-z]\w*)", source, re.M)
    return list(getattr(module, "__all__", re.findall(r"\b(\w+) as \1\b", source) + own))


def kind_of(found: Any) -> str:
    """Which of autodoc's directives describes an object."""
    if inspect.isclass(found) and get_origin(found) is None:
        return "autoexception" if issubclass(found, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(found) else "data"


def describe_data(module: str, name: str, found: Any) -> list[str]:
    """An entry for a constant or a type alias: the text below it in the source, its values."""
    lines = [f".. py:data:: {name}", f"   :module: {module}", ""]
    lines += [f"   {line}".rstrip() for line in _text_below(module, name)] + [""]
    if get_origin(found) is Literal:
        lines += ["   One of " + ", ".join(f"``{one!r}``" for one in get_args(found)) + ".", ""]
    elif isinstance(found, Mapping):
        lines += ["   Has " + ", ".join(f"``{one!r}``" for one in found) + ".", ""]
    elif isinstance(found, int | float | tuple):
        lines += [f"   ``{found!r}``", ""]
    return lines


def _text_below(module: str, name: str) -> list[str]:
    """The lines below the assignment of a name, in this module or in one of its package."""
    for one in (module, *sorted(m for m in sys.modules if m.startswith(f"{module}."))):
        if lines := ModuleAnalyzer.for_module(one).find_attr_docs().get(("", name)):
            return lines
    return []


class Package(SphinxDirective):
    """Describe a module and every public name of it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes, from the text that one would write by hand."""
        name = self.arguments[0]
        module = importlib.import_module(name)
        self.env.note_dependency(str(module.__file__))
        kinds = {one: kind_of(getattr(module, one)) for one in public_names(module)}
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        lines += [f".. currentmodule:: {name}", "", ".. autosummary::", ""]
        lines += [*(f"   {one}" for one, kind in kinds.items() if kind != "data"), ""]
        for one, kind in kinds.items():
            if kind == "data":
                lines += describe_data(name, one, getattr(module, one))
                continue
            lines.append(f".. {kind}:: {name}.{one}")
            if kind == "autoexception":
                lines.append("   :show-inheritance:")
            if kind != "autofunction":
                lines += ["   :members:", f"   :inherited-members: {OTHERS}"]
            lines.append("")
        text = "\n".join(["```{eval-rst}", *lines, "```"])
        return self.parse_text_to_nodes(text)


def follow(app: Sphinx, module: str, attribute: str) -> str:
    """Where the source of a name is, for the link beside it; a constant's is where it stands."""
    found = getattr(importlib.import_module(module), attribute.split(".")[0], None)
    defined = str(getattr(found, "__module__", None))
    return defined if defined.startswith("pairlearn") else module


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("package", Package)
    if "sphinx.ext.viewcode" in app.extensions:
        app.connect("viewcode-follow-imported", follow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
