"""The whole page: policy, stylesheet, script and body in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from pairlearn.atomic import replacing
from pairlearn.pages.figures import method_colours
from pairlearn.pages.markup import Html, joined, tag

__all__ = ["POLICY", "document", "filters", "write_page"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the browser may load for a page: nothing that is not in it."""


def document(
    title: str,
    lead: Html,
    sections: Sequence[tuple[str, str, Html]],
    foot: str,
    bar: Html | None = None,
) -> str:
    """A page.

    Parameters
    ----------
    title : str
        Its title.
    lead : Html
        What stands first.
    sections : sequence of (id, title, Html)
        The rest, which a list of contents leads to.
    foot : str
        The last line.
    bar : Html, optional
        What stays in sight above the sections, see `filters`.

    Returns
    -------
    str

    Examples
    --------
    >>> page = document("a < b", Html(""), [("one", "One", Html("<p>first</p>"))], "made by hand")
    >>> page.startswith("<!doctype html>"), "<title>a &lt; b</title>" in page
    (True, True)
    """
    links = [tag("li", tag("a", name, href=f"#{place}")) for place, name, _ in sections]
    body = [
        tag("section", tag("h2", name, id=f"{place}-title"), content, id=place,
            aria_labelledby=f"{place}-title")
        for place, name, content in sections
    ]  # fmt: skip
    head = joined(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", title),
            tag("style", Html(f"{method_colours()}\n{_asset('page.css')}")),
        ]
    )
    content = joined(
        [
            tag("a", "Skip to the contents", class_="skip", href="#main"),
            tag("header", tag("h1", title), lead),
            tag("nav", tag("ul", *links), aria_label="Contents"),
            bar or "",
            tag("main", *body, id="main"),
            tag("footer", foot),
            tag("div", id="tip", hidden=True, aria_hidden="true"),
            tag("script", Html(_asset("page.js"))),
        ]
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', content), lang='en')}\n"


def filters(choices: Mapping[str, tuple[str, Sequence[tuple[str, str]]]]) -> Html:
    """A bar that shows and hides rows and figures by their facets.

    Parameters
    ----------
    choices : mapping of str to (str, sequence of (value, title))
        By the facet's name, the title of its list and what can be chosen; the first
        is chosen, and the value "" is everything.

    Returns
    -------
    Html

    Examples
    --------
    >>> "All priors" in filters({"prior": ("Class prior", [("", "All priors"), ("0.2", "0.2")])})
    True
    """
    lists = [
        tag(
            "label",
            tag("span", title),
            tag(
                "select",
                *(tag("option", shown, value=value) for value, shown in options),
                data_facet=name,
                autocomplete="off",  # or a browser would keep a choice that the page forgot
            ),
        )
        for name, (title, options) in choices.items()
    ]
    said = tag("output", class_="said", role="status")
    return tag("form", *lists, said, class_="filters", aria_label="What to show")


def write_page(path: Path, page: str) -> int:
    """Write a page to a file that is whole or is not there.

    Parameters
    ----------
    path : Path
        The file.
    page : str
        What to write.

    Returns
    -------
    int
        Its bytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Path(folder, "page.html"), "ä")
    2
    """
    content = page.encode("utf-8")
    with replacing(path) as part:
        part.write_bytes(content)
    return len(content)


def _asset(name: str) -> str:
    return resources.files("pairlearn.pages").joinpath(name).read_text("utf-8")
