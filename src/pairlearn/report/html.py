"""Self-contained pages: one HTML file, no network, no font, no library.

Templates are Jinja2's and escape what they show. Figures are matplotlib's, as inline SVG in
the colours of the page, which follow the reader's light or dark setting.
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup, escape

import pairlearn
from pairlearn.atomic import replacing
from pairlearn.style import FAMILIES, method_style

#: Content security policy: the browser loads nothing from outside the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

# Not allowed in HTML: control characters but tab and newline, and lone surrogates.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class TableCell(NamedTuple):
    """The text of a cell, the number to sort by, and classes of the stylesheet."""

    text: str
    value: float | None = None
    classes: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """A table that is sorted by a click on a column's title.

    Filters, if the page has any, show and hide each row by its ``facets``.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    facets: Sequence[Mapping[str, str]] = ()

    @cached_property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers: those with a value in some row."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return [any(cell.value is not None for cell in column) for column in columns]


def render(template: str, **values: Any) -> str:
    """Render a template of this package."""
    page = _environment().get_template(template).render(policy=POLICY, **values)
    return _FORBIDDEN.sub("�", page)


def write_page(path: Path, page: str, inputs: Sequence[Path] = ()) -> int:
    """Write a page atomically, and return its bytes.

    Its footer gets the date, the versions and the SHA-256 of the input files.
    """
    head, footer, tail = page.rpartition("</footer>")
    if footer:
        page = f"{head}{Markup('<br>{}').format(_provenance(inputs))}{footer}{tail}"
    with replacing(path) as part:
        return part.write_bytes(page.encode("utf-8"))


def _provenance(inputs: Sequence[Path]) -> str:
    """Date, versions and input files of a page."""
    from pairlearn.io.item_files import digest

    sums = [f"{path.name} {digest(path)[:16]}…" for path in inputs]
    versions = (f"{name} {metadata.version(name)}" for name in ("torch", "numpy"))
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    software = ", ".join([f"Python {platform.python_version()}", *versions])
    return f"{date}; {software}." + (f" SHA-256 of the inputs: {', '.join(sums)}." if sums else "")


def mark_code(text: str) -> Markup:
    """Turn backticks in a message into code elements."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, a real minus and no negative zero.

    Examples
    --------
    >>> signed(0.012), signed(-0.0301), signed(-0.0001)
    ('+0.012', '−0.030', '0.000')
    """
    text = f"{abs(value):.{digits}f}"
    return text if float(text) == 0 else f"{'+' if value > 0 else '−'}{text}"


def percent(share: float) -> str:
    """A share in percent, with a decimal where it is close to none or all.

    Examples
    --------
    >>> percent(0.934), percent(0.9871), percent(math.nan)
    ('93%', '98.7%', '–')
    """
    if math.isnan(share):
        return "–"
    near_an_end = 0 < share < 1 and round(100 * share) in (0, 1, 99, 100)
    return f"{share:.1%}" if near_an_end else f"{share:.0%}"


def number_cell(value: float, text: str = "{:g}") -> TableCell:
    """A number as a cell, with a real minus; a dash for NaN, which is sorted last."""
    if math.isnan(value):
        return TableCell("–")
    return TableCell(text.format(value).replace("-", "−"), value)


def _interval(estimate: Any) -> str:
    """The interval of an estimate, or a dash where it is undefined."""
    return "–" if math.isnan(estimate.value) else f"{estimate.low:.3f} to {estimate.high:.3f}"


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pairlearn.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    filters = {"percent": percent, "interval": _interval, "signed": signed, "code": mark_code}
    environment.filters |= filters
    environment.globals |= {
        "HtmlTable": HtmlTable,
        "cell": TableCell,
        "number": number_cell,
        "version": pairlearn.__version__,
        "methods": {family: method_style(family) for family in FAMILIES},
    }
    return environment
