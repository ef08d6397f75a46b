"""Risk estimators: what a classifier costs, seen through judged pairs only."""

from pairlearn.risks.affine import (
    AffineRisk,
    ConfDiff,
    Convex,
    NonNegative,
    Sconf,
    SconfConfDiff,
    affine_table,
)
from pairlearn.risks.base import (
    BASIS,
    CORRECTIONS,
    TERMS,
    Risk,
    contract,
    correct,
    correction_slope,
    make_table,
    pair_moments,
)
from pairlearn.risks.catalogue import RISKS, make_risk
from pairlearn.risks.likelihood import PairLikelihood
from pairlearn.risks.siblings import SIBLINGS, Pconf, SharesRisk
from pairlearn.risks.supervised import Mixed, Supervised

__all__ = [
    "BASIS",
    "CORRECTIONS",
    "RISKS",
    "SIBLINGS",
    "TERMS",
    "AffineRisk",
    "ConfDiff",
    "Convex",
    "Mixed",
    "NonNegative",
    "PairLikelihood",
    "Pconf",
    "Risk",
    "Sconf",
    "SconfConfDiff",
    "SharesRisk",
    "Supervised",
    "affine_table",
    "contract",
    "correct",
    "correction_slope",
    "make_risk",
    "make_table",
    "pair_moments",
]
