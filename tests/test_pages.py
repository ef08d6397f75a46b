"""Pages that need nothing but themselves: markup, tables, charts."""

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairlearn.pages import (
    Axis,
    Chart,
    Column,
    Html,
    TableCell,
    TableRow,
    document,
    escape,
    figure,
    interval,
    legend,
    nice_ticks,
    percent,
    signed,
    table,
    tag,
    write_page,
)
from pairlearn.pages.axes import accuracy_axis, span_of
from pairlearn.pages.document import POLICY, filters
from pairlearn.pages.tables import difference_cell


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


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text: str) -> None:
    read = Reader(tag("p", text, title=text))
    assert read.elements == [("p", {"title": text})]
    assert read.text == text


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    read = Reader(tag("p", text, data_x=text))
    (_, attributes), *others = read.elements
    kept = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", "�", text)
    assert not others and read.text == kept and attributes["data-x"] == kept


def test_halves_of_characters_can_be_written(tmp_path: Path) -> None:
    page = tag("p", "a\ud800b\x00c")
    assert write_page(tmp_path / "p.html", page) == len(page.encode())
    assert "a�b�c" in page


def test_markup_is_not_escaped_twice_but_is_inside_of_attributes() -> None:
    inner = tag("b", 'say "x"')
    assert tag("p", inner) == "<p><b>say &quot;x&quot;</b></p>"
    assert Reader(tag("p", title=inner)).elements == [("p", {"title": str(inner)})]
    assert escape(Html("<i>")) == "<i>"


def test_attributes() -> None:
    assert tag("br") == "<br>" and tag("input", disabled=True) == "<input disabled>"
    assert tag("a", href=None, hidden=False, class_="x", aria_label=1) == (
        '<a class="x" aria-label="1"></a>'
    )


@pytest.mark.parametrize(
    ("difference", "text", "classes"),
    [
        (None, "–", ""),
        (0.0, "0.000", "diff"),
        (-0.0004, "0.000", "diff"),
        (0.0019, "+0.002", "diff"),
        (0.002, "+0.002 ▲", "diff above-1"),
        (-0.006, "−0.006 ▼", "diff below-2"),
        (0.5, "+0.500 ▲", "diff above-3"),
    ],
)
def test_differences_are_told_by_sign_and_arrow(
    difference: float | None, text: str, classes: str
) -> None:
    cell = difference_cell(difference)
    assert (cell.text, cell.classes, cell.value) == (text, classes, difference)


def test_table_is_announced_and_carries_what_it_sorts_and_filters_by() -> None:
    rows = [TableRow([TableCell("a"), TableCell("0.5 ± 0.1", 0.5)], {"dataset": HOSTILE[1]})]
    read = Reader(table("letters", [Column("name"), Column("mean", "number")], rows))
    found = dict(read.elements)
    assert found["tr"] == {"data-dataset": HOSTILE[1]}
    assert found["td"] == {"class": "n", "data-v": "0.5"}
    assert [a["aria-sort"] for name, a in read.elements if "aria-sort" in a] == ["none", "none"]
    assert read.elements[0][1]["tabindex"] == "0", "the keyboard must be able to scroll it"
    with pytest.raises(ValueError, match="longer"):
        table("letters", [Column("name"), Column("mean")], [TableRow([TableCell("a")])])


def test_chart_places_its_marks() -> None:
    chart = Chart("t", Axis("x", 0, 10), Axis("y", 0, 1), width=200, height=120, left=40, bottom=40)
    assert chart.at(0, 0) == (40, 80) and chart.at(10, 1) == (188, 8)
    assert chart.at(99, -5) == chart.at(10, 0), "what lies outside stands at the edge"
    chart.mark(5, 0.5, "o", "c-sconf", HOSTILE[1])
    chart.box((0, 0), (5, 0.5), "", "half", "#123456")
    chart.dots([(1, 0.1), (2, 0.2)], "c-up")
    chart.line([(0, 0)], "alone")
    read = Reader(chart.html())
    marks = [a for _, a in read.elements if "pt" in (a.get("class") or "").split()]
    assert [mark["aria-label"] for mark in marks] == [HOSTILE[1], "half"]
    assert marks[1]["style"] == "fill:#123456"
    assert (marks[1]["width"], marks[1]["height"]) == ("74", "36")
    assert not any("alone" in (a.get("class") or "") for _, a in read.elements)


def test_ticks_are_round_and_inside() -> None:
    assert nice_ticks(0, 1) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(-1, 1, 4) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert nice_ticks(1, 0) == nice_ticks(0, 1)


@given(
    st.floats(-1e6, 1e6, allow_nan=False),
    st.floats(1e-6, 1e6),
    st.integers(2, 8),
)
def test_there_are_about_as_many_ticks_as_asked(low: float, width: float, count: int) -> None:
    ticks = nice_ticks(low, low + width, count)
    assert count / 3 - 1 <= len(ticks) <= 3 * count
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)


@given(st.lists(st.floats(-0.5, 1.5), max_size=5))
def test_accuracy_axis_takes_anything_and_grows(accuracies: list[float]) -> None:
    axis = accuracy_axis(accuracies)
    places = [axis.place(x / 100) for x in range(101)]
    assert places == sorted(places) and min(places) >= -1e-9 and max(places) <= 1 + 1e-9


def test_accuracy_axis_is_even_in_the_error() -> None:
    axis = accuracy_axis([0.8, 0.99])
    assert axis.place(0.99) - axis.place(0.98) == pytest.approx(axis.place(0.95) - axis.place(0.9))


def test_span_has_air() -> None:
    assert span_of([0.5], least=0.01) == (0.4945, 0.5055)


def test_numbers() -> None:
    assert (signed(0.01), signed(-0.01), signed(0.0)) == ("+0.010", "−0.010", "0.000")
    assert [percent(x) for x in (0, 0.004, 0.5, 0.996, 1, math.nan)] == [
        *("0%", "0.4%", "50%", "99.6%", "100%", "–")
    ]
    assert interval(0, 1) == "0.000 to 1.000"


def test_document_is_whole_and_loads_nothing() -> None:
    chart = figure(Chart(HOSTILE[0], Axis("x", 0, 1), Axis("y", 0, 1)).html(), HOSTILE[0])
    body = [("one", HOSTILE[0], chart), ("two", "Two", legend([("sconf-abs", HOSTILE[0])]))]
    bar = filters({"dataset": ("Set", [("", "All"), (HOSTILE[1], HOSTILE[0])])})
    page = document(HOSTILE[0], Html(""), body, HOSTILE[0], bar)
    read = Reader(page)
    names = [name for name, _ in read.elements]
    assert names.count("script") == names.count("style") == 1
    assert not {"img", "link", "iframe", "object", "base"} & set(names)
    assert not any(key.startswith("on") or key == "src" for _, a in read.elements for key in a)
    assert all(a["href"] is None or a["href"][0] == "#" for _, a in read.elements if "href" in a)
    policy = [a["content"] for _, a in read.elements if a.get("http-equiv")]
    assert policy == [POLICY] and POLICY.startswith("default-src 'none'")
    assert "://" not in page and "@import" not in page and "url(" not in page
