"""Deprecated: :func:`pairlearn.report.write_page` was here in version 0.1."""

from pairlearn.report import write_page  # noqa: F401
