"""Markup from text that may hold anything."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Html", "escape", "joined", "tag"]

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_SPECIAL = re.compile("[&<>\"']")
# What HTML does not admit: controls but tab and newline, and halves of characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Text that is markup already, and is not escaped again.

    Examples
    --------
    >>> tag("p", Html("<b>bold</b>"), " & plain")
    '<p><b>bold</b> &amp; plain</p>'
    """

    __slots__ = ()


def escape(value: object) -> Html:
    """Text as markup that shows that text.

    Parameters
    ----------
    value : object
        What to show; :class:`Html` stays as it is.

    Returns
    -------
    Html
        Safe between tags and inside of quotes. What HTML cannot hold is shown as �.

    Examples
    --------
    >>> escape("<script>alert('x')</script>")
    '&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;'
    """
    if isinstance(value, Html):
        return value
    text = _FORBIDDEN.sub("�", str(value))
    return Html(_SPECIAL.sub(lambda found: _ESCAPES[found[0]], text))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element.

    Parameters
    ----------
    name : str
        Its name.
    *children : object
        What it holds; escaped unless :class:`Html`.
    **attributes : object
        Its attributes: ``class_`` is class, ``aria_label`` is aria-label, True is an
        attribute without a value, None and False leave it out.

    Returns
    -------
    Html

    Examples
    --------
    >>> tag("td", "a < b", class_="n", data_value=0.5, hidden=None)
    '<td class="n" data-value="0.5">a &lt; b</td>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        called = key.rstrip("_").replace("_", "-")
        # str() of Html is plain: markup is safe between tags, its quotes in here are not.
        parts.append(called if value is True else f'{called}="{escape(str(value))}"')
    opened = f"<{' '.join(parts)}>"
    return Html(opened if name in _VOID else f"{opened}{joined(children)}</{name}>")


def joined(children: Iterable[object]) -> Html:
    """Several pieces as one.

    Parameters
    ----------
    children : iterable of object
        Text and markup.

    Returns
    -------
    Html

    Examples
    --------
    >>> joined(["1 < 2", tag("br")])
    '1 &lt; 2<br>'
    """
    return Html("".join(map(escape, children)))
