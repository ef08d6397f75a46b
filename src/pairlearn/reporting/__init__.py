"""A fitted model as a page that someone can read who does not know the method."""

from pairlearn.reporting.annotators import AnnotatorRow, compare_annotators
from pairlearn.reporting.measured import Disagreement, Measured, measure
from pairlearn.reporting.page import build_report

__all__ = [
    "AnnotatorRow",
    "Disagreement",
    "Measured",
    "build_report",
    "compare_annotators",
    "measure",
]
