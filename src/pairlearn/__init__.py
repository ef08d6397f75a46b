"""Learn a classifier from judged pairs instead of class labels.

An annotator makes two soft statements about a pair (x, x'): how likely both are of the same class
(similarity), and how much more likely x' is positive (difference).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlearn.estimators import PairClassifier, TrainingOptions
    from pairlearn.evaluation import AccuracyEstimate, estimate_accuracy, evaluate
    from pairlearn.judgements import Judgements
    from pairlearn.judgements.kinds import register_kind
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
        register_risk,
    )

__version__ = "1.0.0"

__all__ = [
    "AccuracyEstimate",
    "ConfDiff",
    "Convex",
    "Judgements",
    "Mixed",
    "NonNegative",
    "PairClassifier",
    "PairLabels",
    "PairLikelihood",
    "PriorEstimate",
    "Sconf",
    "SconfConfDiff",
    "Supervised",
    "TrainingOptions",
    "estimate_accuracy",
    "estimate_prior",
    "evaluate",
    "make_risk",
    "register_kind",
    "register_risk",
]

#: Modules with the names above, the fastest to import first.
_HOMES = (
    "labels", "prior", "judgements.kinds", "risks", "judgements", "evaluation", "estimators"
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name, or one of the modules, on first use."""
    if name in _HOMES:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"{__name__}.{home}")
            if name in vars(module):
                return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})
