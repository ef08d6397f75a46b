"""Learn a binary classifier from pairs that nobody labelled with a class.

An annotator says two soft things about a pair (x, x'): how likely both are of the
same class (similarity), and how much more likely x' is positive (difference).
"""

from typing import TYPE_CHECKING, Any

from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy, evaluate
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

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier

__version__ = "0.1.0"

__all__ = [
    "AccuracyEstimate",
    "ConfDiff",
    "Convex",
    "Mixed",
    "NonNegative",
    "PairClassifier",
    "PairLabels",
    "PairLikelihood",
    "PriorEstimate",
    "Sconf",
    "SconfConfDiff",
    "Supervised",
    "estimate_accuracy",
    "estimate_prior",
    "evaluate",
    "make_risk",
]


def __getattr__(name: str) -> Any:
    """`PairClassifier` needs scikit-learn, which is loaded when it is first asked for."""
    if name == "PairClassifier":
        from pairlearn.estimators import PairClassifier

        return PairClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
