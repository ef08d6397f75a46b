"""Check judgements before learning from them, and plan how many to collect.

>>> from pairlearn.check import check
>>> from pairlearn.simulation import simulate
>>> check(simulate(pairs=200).pairs).ok
True
"""

from pairlearn.check.checking import check as check
from pairlearn.check.checks import CHECKS as CHECKS
from pairlearn.check.checks import Check as Check
from pairlearn.check.plane import plot_plane as plot_plane
from pairlearn.check.planning import Errors as Errors
from pairlearn.check.planning import PairPlan as PairPlan
from pairlearn.check.planning import annotator_strength as annotator_strength
from pairlearn.check.planning import plan as plan
from pairlearn.check.summary import CheckReport as CheckReport
from pairlearn.check.summary import Summary as Summary
from pairlearn.finding import Finding as Finding
from pairlearn.finding import Severity as Severity
