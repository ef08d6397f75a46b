"""Deprecated: the name that :mod:`pairlearn.paper.bounds` had in version 0.1."""

from pairlearn.paper.bounds import *  # noqa: F403
