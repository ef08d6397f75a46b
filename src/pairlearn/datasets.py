"""Deprecated: the name that :mod:`pairlearn.data` had in version 0.1."""

from pairlearn.data import *  # noqa: F403
