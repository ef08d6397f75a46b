"""Self-contained pages, and the report about a fitted model."""

from pairlearn.report.figures import save_figure as save_figure
from pairlearn.report.html import write_page as write_page
from pairlearn.report.measured import AnnotatorRow as AnnotatorRow
from pairlearn.report.measured import Measured as Measured
from pairlearn.report.measured import build_class_report as build_class_report
from pairlearn.report.measured import build_report as build_report
from pairlearn.report.measured import compare_annotators as compare_annotators
from pairlearn.report.measured import measure as measure
