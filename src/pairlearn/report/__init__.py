"""Both reports: pages that need nothing but themselves, and a fitted model as such a page."""

from pairlearn.report.figures import save_figure
from pairlearn.report.html import write_page
from pairlearn.report.measured import (
    AnnotatorRow,
    Disagreement,
    Measured,
    compare_annotators,
    measure,
)
from pairlearn.report.model import build_report

__all__ = [
    "AnnotatorRow",
    "Disagreement",
    "Measured",
    "build_report",
    "compare_annotators",
    "measure",
    "save_figure",
    "write_page",
]
