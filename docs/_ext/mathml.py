"""Mathematics as MathML, made at build time: browsers draw it without a script or a font."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# LaTeX that docutils cannot read, rewritten so that it can.
_REWRITTEN = (
    (r"\\(begin|end)\{(?:align|gathered|gather|split)\}", r"\\\1{aligned}"),
    (r"\\(t?frac)(\d)(\d)", r"\\\1{\2}{\3}"),
    (r"\\([bB]ig)(?=[(\[])", r"\\\1l"),
    (r"\\([bB]ig)(?=[)\]])", r"\\\1r"),
)
# The signs in P(+, −) are not binary operators.
_LONE_SIGN = re.compile(r"(<math[^>]*>\s*|>[(\[,]</mo>\s*)<mo>(?=[+−]</mo>)")
# An accent and an index are not a sum's limits: in \hat\pi_+ the plus belongs beside π, not below.
_ACCENTED = re.compile(
    r"<munderover>\s*(<mi>[^<]*</mi>)\s*((?:(?!munderover).)*?)\s*(<mo[^>]*>[ˆˉ˜˙^~¯→]</mo>)\s*"
    r"</munderover>",
    re.DOTALL,
)
_INDEXED = r'<msub><mover accent="true">\1\3</mover>\2</msub>'
# p log p is not one word.
_FUNCTION = re.compile(r"<mi>([a-z]+)</mi>\s*<mo>&ApplyFunction;</mo>")
_SPACED = r'<mo form="prefix" lspace="0.17em" rspace="0.17em">\1</mo>'


def to_mathml(latex: str, display: str) -> str:
    r"""Convert a LaTeX formula to a `<math>` element; an error if a command is unknown.

    Examples
    --------
    >>> to_mathml("x^2", "inline").count("msup")
    2
    >>> to_mathml(r"\nosuch{x}", "inline")
    Traceback (most recent call last):
    ValueError: Unknown LaTeX command "\nosuch" in the formula '\\nosuch{x}': write it another way
    """
    text = latex.strip()
    for pattern, replacement in _REWRITTEN:
        text = re.sub(pattern, replacement, text)
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    try:
        mathml = str(tex2mathml(text, as_block=display == "block"))
    except MathError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{reason} in the formula {latex!r}: write it another way") from None
    mathml = _ACCENTED.sub(_INDEXED, mathml)
    mathml = _LONE_SIGN.sub(r'\1<mo form="prefix" lspace="0" rspace="0">', mathml)
    return _FUNCTION.sub(_SPACED, mathml).replace(">'<", ">′<")


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
