"""Deprecated: the name that :mod:`pairlearn.data.sampling` had in version 0.1."""

from pairlearn.data.sampling import *  # noqa: F403
from pairlearn.randomness import *  # noqa: F403
