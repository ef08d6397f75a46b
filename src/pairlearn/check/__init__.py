"""Look judgements over before anything is learnt from them, and plan how many it takes.

>>> from pairlearn.check import check
>>> from pairlearn.data.simulation import simulate
>>> check(simulate(pairs=200).pairs).ok
True
"""

from pairlearn.check.checking import check
from pairlearn.check.findings import CheckReport, Finding, Severity, Summary
from pairlearn.check.plane import plot_plane
from pairlearn.check.planning import (
    Errors,
    PairPlan,
    annotator_strength,
    expected_half_width,
    plan,
    plan_from_pilot,
)

__all__ = [
    "CheckReport",
    "Errors",
    "Finding",
    "PairPlan",
    "Severity",
    "Summary",
    "annotator_strength",
    "check",
    "expected_half_width",
    "plan",
    "plan_from_pilot",
    "plot_plane",
]
