"""Deprecated: the name that :mod:`pairlearn.report` had in version 0.1."""

from pairlearn.report import *  # noqa: F403
