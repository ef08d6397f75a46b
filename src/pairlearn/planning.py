"""Deprecated: the functions of :mod:`pairlearn.check` that plan were here in version 0.1."""

from pairlearn.check.planning import *  # noqa: F403
