"""Both reports: pages that need nothing but themselves, and a fitted model as such a page."""

from pairlearn.report.annotators import AnnotatorRow, compare_annotators
from pairlearn.report.figures import save_figure
from pairlearn.report.html import write_page
from pairlearn.report.model import Disagreement, Measured, build_report, measure

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
