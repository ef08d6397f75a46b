"""Figures of a page: charts with a caption, and legends in the styles of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pairlearn.pages.charts import marker_path
from pairlearn.pages.markup import Html, joined, tag
from pairlearn.style import FAMILIES, method_style

__all__ = ["figure", "legend", "method_classes", "method_colours"]


def method_classes(name: str) -> str:
    """Classes of the stylesheet that show a method in its style.

    Parameters
    ----------
    name : str
        A name of the catalogue.

    Returns
    -------
    str

    Examples
    --------
    >>> method_classes("sconf-relu"), method_classes("mine-abs")
    ('c-sconf dashed', 'c-other')
    """
    family = name.partition("-")[0]
    style = method_style(name)
    colour = f"c-{family}" if family in FAMILIES else "c-other"
    return colour if style.dash == "solid" else f"{colour} {style.dash}"


def method_colours() -> str:
    """The stylesheet's rules for the colours of the methods, on a white and on a dark page.

    Examples
    --------
    >>> method_colours().splitlines()[0][:24]
    ':root{--sconfconfdiff:#1'
    """

    def rule(attribute: str) -> str:
        return ";".join(f"--{f}:{getattr(method_style(f), attribute)}" for f in FAMILIES)

    return "\n".join(
        [
            f":root{{{rule('color')}}}",
            f"@media screen and (prefers-color-scheme:dark){{:root{{{rule('dark_color')}}}}}",
            *(f".c-{family}{{--c:var(--{family})}}" for family in FAMILIES),
        ]
    )


def figure(
    chart: Html, title: str, note: str = "", facets: Mapping[str, str] | None = None
) -> Html:
    """A chart with its caption.

    Parameters
    ----------
    chart : Html
        The drawing.
    title, note : str
        Its caption, and what else there is to know.
    facets : mapping of str to str, optional
        What filters show and hide it by.

    Returns
    -------
    Html

    Examples
    --------
    >>> figure(Html("<svg></svg>"), "MNIST", facets={"prior": "0.2"})
    '<figure data-prior="0.2"><figcaption>MNIST</figcaption><svg></svg></figure>'
    """
    small = [tag("small", note)] if note else []
    marked = {f"data_{name}": value for name, value in (facets or {}).items()}
    return tag("figure", tag("figcaption", title, *small), chart, **marked)


def legend(entries: Sequence[tuple[str, str]]) -> Html:
    """What the lines and markers of methods mean.

    Parameters
    ----------
    entries : sequence of (name, title)
        Names of the catalogue, and how readers know them.

    Returns
    -------
    Html

    Examples
    --------
    >>> "Likelihood-ABS" in legend([("likelihood-abs", "Likelihood-ABS")])
    True
    """
    items = []
    for name, title in entries:
        classes = method_classes(name)
        swatch = joined(
            [
                tag("path", class_=f"line {classes}", d="M1 7H33"),
                tag("path", class_=f"pt {classes}",
                    d=marker_path(method_style(name).marker, 17, 7, 4)),
            ]
        )  # fmt: skip
        shown = tag("svg", swatch, viewBox="0 0 34 14", aria_hidden="true")
        items.append(tag("li", shown, title))
    return tag("ul", *items, class_="legend")
