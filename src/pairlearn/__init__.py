"""Learn a binary classifier from pairs that nobody labelled with a class.

An annotator says two soft things about a pair (x, x'): how likely both are of the
same class (similarity), and how much more likely x' is positive (difference).
"""

from pairlearn.labels import PairLabels
from pairlearn.prior import PriorEstimate, estimate_prior
from pairlearn.risks import (
    ConfDiff,
    Convex,
    Mixed,
    NonNegative,
    PairLikelihood,
    Sconf,
    SconfConfDiff,
    Supervised,
    make_risk,
)

__version__ = "0.1.0"

__all__ = [
    "ConfDiff",
    "Convex",
    "Mixed",
    "NonNegative",
    "PairLabels",
    "PairLikelihood",
    "PriorEstimate",
    "Sconf",
    "SconfConfDiff",
    "Supervised",
    "estimate_prior",
    "make_risk",
]
