"""Names of the package: `one` in backquotes becomes a link where it is documented.

A name may be written as one imports it (`pairlearn.ConfDiff`), as it is filed
(`pairlearn.risks.affine.ConfDiff`) or, in a docstring, by itself. The reference has one
entry for each object, and all ways lead there.
"""

from __future__ import annotations

import importlib
import re
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

_DOTTED = re.compile(r"[A-Za-z_][\w.]*\w(\(\))?$")


class NameRole(SphinxRole):
    """The role of text in single backquotes: code, and a link if it names something of ours."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference that is plain code where nothing is found."""
        code = nodes.literal(self.rawtext, self.text, classes=["xref", "py"])
        if not _DOTTED.match(self.text):
            return [nodes.literal(self.rawtext, self.text)], []
        context = self.env.ref_context
        reference = addnodes.pending_xref(
            self.rawtext,
            code,
            refdomain="py",
            reftype="obj",
            reftarget=self.text.removesuffix("()"),
            refexplicit=False,
            refwarn=False,
            **{"py:module": context.get("py:module"), "py:class": context.get("py:class")},
        )
        reference["of-ours"] = True
        return [reference], []


@cache
def find_object(name: str) -> Any:
    """What a dotted name stands for in Python, or None."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            continue
    return None


def filed_name(found: Any) -> str | None:
    """Where an object is defined, as `module.name`."""
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    return f"{module}.{name}" if module and name else None


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Lead a reference to the one entry of its object, by whichever name it goes."""
    if node.get("refdomain") != "py":
        return None
    target, module, owner = node["reftarget"], node.get("py:module"), node.get("py:class")
    known = env.domains.python_domain.objects
    tried = [target]
    if module:
        tried = [f"{module}.{owner}.{target}", f"{module}.{target}", target]
    tried = [name for name in tried if name.startswith("pairlearn")]
    for name in tried:
        found = find_object(name)
        filed = filed_name(found) if not isinstance(found, ModuleType) else name
        for entry in (name, filed, *aliases(tuple(known)).get(filed or "", ())):
            if entry in known:
                return _link(app, env, node, entry, content)
    # Annotations are made from the code and nobody meant them as links; what they name may
    # be of another project or not public.
    annotated = "refexplicit" not in node.attributes
    base = node.get("reftype") == "class" and any(find_object(name) for name in tried)
    if node.get("of-ours"):
        content["classes"] = []
    return content if annotated or base or node.get("of-ours") else None


@lru_cache(maxsize=1)
def aliases(names: tuple[str, ...]) -> dict[str, list[str]]:
    """The documented names of each object, by where it is defined."""
    found: dict[str, list[str]] = {}
    for name in names:
        if filed := filed_name(find_object(name)):
            found.setdefault(filed, []).append(name)
    return found


def _link(
    app: Sphinx,
    env: BuildEnvironment,
    node: addnodes.pending_xref,
    entry: str,
    content: nodes.Element,
) -> nodes.Node | None:
    domain = env.domains.python_domain
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", entry, _absolute(node, entry), content
    )


def _absolute(node: addnodes.pending_xref, entry: str) -> addnodes.pending_xref:
    """The reference without the place that it was made in."""
    copy = node.copy()
    copy["reftarget"], copy["py:module"], copy["py:class"] = entry, None, None
    copy.attributes.pop("refspecific", None)
    return copy


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role and the resolver."""
    app.add_role("name", NameRole())
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
