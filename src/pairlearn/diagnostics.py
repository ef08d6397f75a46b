"""Deprecated: the name that :mod:`pairlearn.check` had in version 0.1."""

from pairlearn.check import *  # noqa: F403
