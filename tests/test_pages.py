"""Pages that need nothing but themselves: markup, tables, figures."""

import math
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairlearn.report.figures import draw
from pairlearn.report.html import (
    POLICY,
    HtmlTable,
    TableCell,
    _environment,
    number_cell,
    percent,
    render,
    signed,
    write_page,
)
from pairlearn.style import method_style


class Reader(HTMLParser):
    """What a browser would make of markup: elements, attributes, text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus='alert(1)' autofocus='",
    "</td></table><svg onload=alert(1)>",
    "&lt;b&gt; &amp; &#39;",
    "</script><!--",
    "javascript:alert(1)",
    "‮gnihton",
]


PAGE = _environment().from_string(
    """{% extends "base.html" %}
    {% from "macros.html" import table, figure, tiles, section with context %}
    {% block lead %}{{ tiles([(title, title, title)]) }}{% endblock %}
    {% block main %}{% call section("one") %}{{ table(shown) }}
    {% for one in figures %}{{ figure(one) }}{% endfor %}{% endcall %}{% endblock %}"""
)
"""Every part that pages are made of."""


def page_with(table: HtmlTable, text: str = "", figures: Sequence[Any] = ()) -> str:
    sections = {"one": text}
    return render(PAGE, title=text, sections=sections, shown=table, figures=figures, foot=text)


@pytest.mark.parametrize("text", [HOSTILE[1], "".join(HOSTILE)])
def test_text_stays_text_and_the_page_loads_nothing(text: str) -> None:
    table = HtmlTable(text, [text], [[TableCell(text, None, "wide")]], [{"dataset": text}])
    drawing = draw(lambda ax: None, text)
    figure = SimpleNamespace(title=text, svg=drawing, note=text, facets={"p": text})
    page = page_with(table, text, [figure])
    read = Reader(page)
    names = [name for name, _ in read.elements]
    assert read.text.count(text) >= 10
    assert names.count("script") == names.count("style") == names.count("title") == 1
    assert not {"img", "link", "iframe", "object", "base", "image"} & set(names)
    assert not any(key.startswith("on") or key == "src" for _, a in read.elements for key in a)
    links = [v for _, a in read.elements for k, v in a.items() if k.endswith("href")]
    assert links and all(link is None or link[0] == "#" for link in links)
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(ids) == len(set(ids))
    policy = [a["content"] for _, a in read.elements if a.get("http-equiv")]
    assert policy == [POLICY] and POLICY.startswith("default-src 'none'")
    assert "://" not in page.replace(text, "") and "@import" not in page


@settings(max_examples=40)
@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    table = HtmlTable("letters", ["a"], [[TableCell(text)]], [{"x": text}])
    read = Reader(render_table(table))
    kept = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", "�", text)
    assert [a["data-x"] for _, a in read.elements if "data-x" in a] == [kept]
    assert read.text.strip("\n").endswith(kept.strip("\n"))


def render_table(table: HtmlTable) -> str:
    """The markup of a table alone."""
    page = page_with(table)
    return page[page.index('<div class="scroll"') : page.index("</tbody>")]


def test_halves_of_characters_can_be_written(tmp_path: Path) -> None:
    page = page_with(HtmlTable("a\ud800b\x00c", [], []))
    written = write_page(tmp_path / "p.html", page)
    assert written == (tmp_path / "p.html").stat().st_size > len(page.encode())
    assert "a�b�c" in page


def test_table_is_announced_and_carries_what_it_sorts_and_filters_by() -> None:
    rows = [[TableCell("a"), TableCell("0.5 ± 0.1", 0.5)], [TableCell("b"), number_cell(math.nan)]]
    facets = [{"dataset": HOSTILE[1]}, {"dataset": "b"}]
    table = HtmlTable("letters", ["name", "mean"], rows, facets)
    assert table.numeric == [False, True]
    read = Reader(render_table(table))
    assert [a for name, a in read.elements if name == "tr"][1:] == [
        {"data-dataset": HOSTILE[1]},
        {"data-dataset": "b"},
    ]
    assert [a for name, a in read.elements if name == "td"] == [
        {"class": "n", "data-v": "0.5"},
        {"class": "n"},
    ]
    assert [a["aria-sort"] for name, a in read.elements if "aria-sort" in a] == ["none", "none"]
    assert read.elements[0][1]["tabindex"] == "0", "the keyboard must be able to scroll it"


def test_numbers() -> None:
    assert (signed(0.01), signed(-0.01), signed(0.0)) == ("+0.010", "−0.010", "0.000")
    assert [percent(x) for x in (0, 0.004, 0.5, 0.996, 1, math.nan)] == [
        *("0%", "0.4%", "50%", "99.6%", "100%", "–")
    ]


def test_figures_take_the_colours_of_the_page_and_keep_their_words() -> None:
    def plot(ax):
        ax.plot([0, 1], [0.12345, 0.5], label="0.12345", **method_style("sconf-none").line())
        ax.legend()

    one, two = draw(plot, HOSTILE[1]), draw(plot, "another")
    read = Reader(one)
    assert read.elements[0][1]["aria-label"] == HOSTILE[1]
    assert "0.12345" in read.text, "coordinates are rounded, words are not"
    assert "var(--sconf)" in one and "var(--card)" in one and "var(--ink)" in one
    assert method_style("sconf").color not in one
    ids = [{a["id"] for _, a in Reader(x).elements if "id" in a} for x in (one, two)]
    assert ids[0] and not ids[0] & ids[1], "figures of one page do not share their parts"
    assert draw(plot, "another") == two
