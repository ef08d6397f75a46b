"""How good a classifier is, from judged pairs that nobody labelled.

Everything here is *as the annotator sees it*: with a calibrated annotator the estimates
are those of the true classes. The classifier must not have been trained on the pairs.
Simulated with 500 pairs and a calibrated annotator, 95% intervals of the accuracy cover
in 94 to 96% of tables, for priors .1 to .5 and errors of 2% and 12% of every kind
(``benchmarks/coverage.py``).
"""

from pairlearn.evaluation.accuracy import AccuracyEstimate, estimate_accuracy
from pairlearn.evaluation.calibration import CalibrationCurve, calibration_curve
from pairlearn.evaluation.estimate import Estimate
from pairlearn.evaluation.measures import Evaluation, evaluate
from pairlearn.evaluation.miscalibration import (
    Recalibration,
    Sensitivity,
    recalibrate,
    sensitivity,
)
from pairlearn.evaluation.ranking import RocCurve, roc_curve
from pairlearn.evaluation.threshold import ThresholdChoice, choose_threshold

__all__ = [
    "AccuracyEstimate",
    "CalibrationCurve",
    "Estimate",
    "Evaluation",
    "Recalibration",
    "RocCurve",
    "Sensitivity",
    "ThresholdChoice",
    "calibration_curve",
    "choose_threshold",
    "estimate_accuracy",
    "evaluate",
    "recalibrate",
    "roc_curve",
    "sensitivity",
]
