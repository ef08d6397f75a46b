"""Look judgements over before anything is learnt from them: `check` and `plot_plane`.

>>> from pairlearn.diagnostics import check
>>> from pairlearn.data.simulation import simulate
>>> check(simulate(pairs=200).pairs).ok
True
"""

from pairlearn.diagnostics.checking import check
from pairlearn.diagnostics.plane import plot_plane
from pairlearn.diagnostics.report import CheckReport, Finding, Severity, Summary

__all__ = ["CheckReport", "Finding", "Severity", "Summary", "check", "plot_plane"]
