"""Mathematics as MathML, made at build time: browsers draw it without a script or a font."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

ElementTree.register_namespace("", "http://www.w3.org/1998/Math/MathML")
# The converter knows `align*` and would number the lines of `align`.
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|align|gathered|gather|split)\}")
_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_BARE = re.compile(r"&(?!#?\w+;)")
_SIGNS, _OPENING, _PRIMES = ("+", "−"), ("(", "[", ",", "{"), ("′", "″", "‴")
_FUNCTION = re.compile(r"[a-z]{2,}")
_NOT_CONVERTED = re.compile(r"<m[io]>(\\\w+|&|&amp;)</m[io]>")


def to_mathml(latex: str, display: str) -> str:
    r"""A formula in LaTeX as a `<math>` element; an error if a part of it is not known.

    Examples
    --------
    >>> to_mathml("x^2", "inline").count("msup")
    2
    >>> to_mathml(r"\nosuch{x}", "inline")
    Traceback (most recent call last):
    ValueError: \nosuch in the formula '\\nosuch{x}' has no MathML; write it another way
    """
    latex = _ALIGNED.sub(r"\\\1{align*}", latex.strip())
    if r"\\" in latex and r"\begin" not in latex:
        latex = rf"\begin{{align*}}{latex}\end{{align*}}"
    found = mend(convert(latex, display=display))
    if lost := _NOT_CONVERTED.search(found):
        raise ValueError(f"{lost[1]} in the formula {latex!r} has no MathML; write it another way")
    return found


def mend(mathml: str) -> str:
    """Primes on the line, signs without room, functions with some.

    A prime that is a superscript is raised twice where no mathematical font is installed;
    the signs in P(+, −) are no binary operators; p log p is not one word.
    """
    tree = ElementTree.fromstring(_BARE.sub("&amp;", mathml))
    for row in tree.iter():
        for number, child in enumerate(list(row)):
            before = row[number - 1].text if number else "("
            if child.tag.endswith("}mo") and child.text in _SIGNS and before in _OPENING:
                child.attrib.update(form="prefix", lspace="0", rspace="0")
            if child.tag.endswith(("}mi", "}mo")) and _FUNCTION.fullmatch(child.text or ""):
                after = row[number + 1].text if number + 1 < len(row) else "("
                child.tag = f"{{{_NAMESPACE}}}mo"
                child.attrib.update(form="prefix", lspace="0.17em")
                child.attrib["rspace"] = "0" if after in _OPENING else "0.17em"
            if child.tag.endswith(("}msup", "}msubsup")) and child[-1].text in _PRIMES:
                row[number] = _primed(child)
    return ElementTree.tostring(tree, encoding="unicode")


def _primed(script: ElementTree.Element) -> ElementTree.Element:
    """A symbol with a prime behind it, and a subscript if it has one."""
    prime = script[-1]
    script.remove(prime)
    prime.tag = f"{{{_NAMESPACE}}}mo"
    prime.attrib.update(lspace="0", rspace="0.05em")
    symbol = script[0]
    if len(script) == 2:
        symbol, script.tag = script, f"{{{_NAMESPACE}}}msub"
    row = ElementTree.Element(f"{{{_NAMESPACE}}}mrow")
    row.tail, symbol.tail = script.tail, None
    row.extend([symbol, prime])
    return row


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    self.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number and anchor if it has them."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    if number := node.get("number"):
        self.body.append(f'<span class="eqno">({number})</span>')
    self.body.append(to_mathml(node.astext(), "block"))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name that `html_math_renderer` takes."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
