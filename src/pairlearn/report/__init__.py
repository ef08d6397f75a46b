"""Self-contained pages, and the report about a fitted model."""

from pairlearn.report.figures import save_figure as save_figure
from pairlearn.report.html import write_page as write_page
from pairlearn.report.model import AnnotatorRow as AnnotatorRow
from pairlearn.report.model import Disagreement as Disagreement
from pairlearn.report.model import Measured as Measured
from pairlearn.report.model import build_report as build_report
from pairlearn.report.model import compare_annotators as compare_annotators
from pairlearn.report.model import measure as measure
