"""Pages that need nothing but themselves: one HTML file, no network, no font, no library.

Text becomes markup through :func:`tag`, which escapes; :func:`document` adds one stylesheet,
one small script and a policy by which the browser refuses everything else.
"""

from pairlearn.pages.axes import Axis, nice_ticks
from pairlearn.pages.charts import Chart
from pairlearn.pages.document import document, write_page
from pairlearn.pages.figures import figure, legend, method_classes
from pairlearn.pages.markup import Html, escape, joined, tag
from pairlearn.pages.numbers import interval, percent, signed, spread
from pairlearn.pages.tables import Column, TableCell, TableRow, table

__all__ = [
    "Axis",
    "Chart",
    "Column",
    "Html",
    "TableCell",
    "TableRow",
    "document",
    "escape",
    "figure",
    "interval",
    "joined",
    "legend",
    "method_classes",
    "nice_ticks",
    "percent",
    "signed",
    "spread",
    "table",
    "tag",
    "write_page",
]
