"""Deprecated: the name that :mod:`pairlearn.data.simulation` had in version 0.1."""

from pairlearn.data.simulation import *  # noqa: F403
