"""Which risk and which correction to choose: cross-validated, and without a label.

All methods are trained on the same folds of the user's own pairs, and their accuracies,
as the annotator sees them, are estimated on the pairs that were held out.
"""

from pairlearn.comparison.comparing import compare
from pairlearn.comparison.methods import default_methods
from pairlearn.comparison.report import Comparison, MethodResult
from pairlearn.comparison.training import Decide
from pairlearn.estimators.splits import Folds as Folds
from pairlearn.estimators.splits import split_items as split_items

__all__ = [
    "Comparison",
    "Decide",
    "MethodResult",
    "compare",
    "default_methods",
]
