"""The benchmark as one page: what ran, the paper's numbers and ours, and every figure."""

from pairlearn.experiments.report.page import BenchReport, build_report
from pairlearn.experiments.report.sources import Source, read_sources

__all__ = ["BenchReport", "Source", "build_report", "read_sources"]
