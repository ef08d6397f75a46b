"""Tables that sort by a click on a column's title, or by the keyboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pairlearn.pages.markup import Html, tag
from pairlearn.pages.numbers import signed

__all__ = ["Column", "TableCell", "TableRow", "difference_cell", "table"]

STEPS = (0.002, 0.006, 0.015)
"""Differences from which on a cell is tinted, more and more."""


@dataclass(frozen=True)
class Column:
    """A column's title, and whether it holds numbers.

    Examples
    --------
    >>> Column("accuracy", "number").title
    'accuracy'
    """

    title: str
    kind: Literal["text", "number"] = "text"


@dataclass(frozen=True)
class TableCell:
    """What a cell shows, and what it is sorted by.

    Parameters
    ----------
    text : str
        What it shows; Html is markup.
    value : float or None
        What it is sorted by in a column of numbers; cells without one stand last.
    classes : str
        Classes of the stylesheet.

    Examples
    --------
    >>> TableCell("0.978 ± 0.002", 0.978).value
    0.978
    """

    text: str
    value: float | None = None
    classes: str = ""


@dataclass(frozen=True)
class TableRow:
    """Cells, and what filters show and hide them by.

    Examples
    --------
    >>> TableRow([TableCell("MNIST")], {"dataset": "mnist"}).facets
    {'dataset': 'mnist'}
    """

    cells: Sequence[TableCell]
    facets: Mapping[str, str] = field(default_factory=dict)


def difference_cell(difference: float | None) -> TableCell:
    """A difference with its sign, an arrow and a tint: colour is never the only sign.

    Parameters
    ----------
    difference : float or None
        Ours less the other; None where there is nothing to compare with.

    Returns
    -------
    TableCell

    Examples
    --------
    >>> cell = difference_cell(-0.007)
    >>> cell.text, cell.classes
    ('−0.007 ▼', 'diff below-2')
    """
    if difference is None:
        return TableCell("–")
    size = sum(abs(difference) >= step - 1e-9 for step in STEPS)
    if not size:
        return TableCell(signed(difference), difference, "diff")
    side, arrow = ("above", "▲") if difference > 0 else ("below", "▼")
    return TableCell(f"{signed(difference)} {arrow}", difference, f"diff {side}-{size}")


def table(caption: str, columns: Sequence[Column], rows: Iterable[TableRow]) -> Html:
    """A table.

    Parameters
    ----------
    caption : str
        What it shows.
    columns : sequence of Column
        Its columns.
    rows : iterable of TableRow
        Its rows, each with a cell for every column.

    Returns
    -------
    Html

    Examples
    --------
    >>> rows = [TableRow([TableCell("<b>")]), TableRow([TableCell("b")])]
    >>> "&lt;b&gt;" in table("letters", [Column("letter")], rows)
    True
    """
    heads = [
        tag(
            "th",
            tag("button", column.title, type="button"),
            scope="col",
            class_="n" if column.kind == "number" else None,
            aria_sort="none",
        )
        for column in columns
    ]
    body = [_row(row, columns) for row in rows]
    whole = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *body),
        class_="sortable",
    )
    # A region that scrolls must be reachable, or the keyboard cannot scroll it.
    return tag("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


def _row(row: TableRow, columns: Sequence[Column]) -> Html:
    cells = []
    for place, (cell, column) in enumerate(zip(row.cells, columns, strict=True)):
        number = column.kind == "number"
        classes = " ".join(filter(None, ["n" if number else "", cell.classes]))
        value = None if cell.value is None else f"{cell.value:.6g}"
        name, scope = ("td", None) if place else ("th", "row")
        cells.append(tag(name, cell.text, class_=classes or None, data_v=value, scope=scope))
    return tag("tr", *cells, **{f"data_{name}": value for name, value in row.facets.items()})
