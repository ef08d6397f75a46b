"""How good a classifier is, from judged pairs that nobody labelled.

Everything here is *as the annotator sees it*: with a calibrated annotator the estimates
are those of the true classes. The classifier must not have been trained on the pairs.
Simulated with 500 pairs and a calibrated annotator, 95% intervals of the accuracy cover
in 94 to 96% of tables, for priors 0.1 to 0.5 and errors of 2% and 12% of every kind
(``benchmarks/coverage.py``).
"""

from pairlearn.evaluation.curves import (
    CalibrationCurve,
    RocCurve,
    ThresholdChoice,
    calibration_curve,
    choose_threshold,
    roc_curve,
)
from pairlearn.evaluation.judged import Estimate
from pairlearn.evaluation.measures import (
    AccuracyEstimate,
    Evaluation,
    Plausible,
    estimate_accuracy,
    evaluate,
)
from pairlearn.evaluation.miscalibration import (
    Confidence,
    Recalibration,
    Sensitivity,
    plausible,
    recalibrate,
    sensitivity,
)

__all__ = [
    "AccuracyEstimate",
    "CalibrationCurve",
    "Confidence",
    "Estimate",
    "Evaluation",
    "Plausible",
    "Recalibration",
    "RocCurve",
    "Sensitivity",
    "ThresholdChoice",
    "calibration_curve",
    "choose_threshold",
    "estimate_accuracy",
    "evaluate",
    "plausible",
    "recalibrate",
    "roc_curve",
    "sensitivity",
]
