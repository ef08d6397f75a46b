"""How good a classifier is, from judged pairs that nobody labelled.

Everything here is *as the annotator sees it*: with a calibrated annotator the estimates
are those of the true classes. The classifier must not have been trained on the pairs.
Simulated with 500 pairs and a calibrated annotator, 95% intervals of the accuracy cover
in 94 to 96% of tables, for priors 0.1 to 0.5 and errors of 2% and 12% of every kind
(``bench/speed/coverage.py``).
"""

from pairlearn.evaluation.curves import CalibrationCurve as CalibrationCurve
from pairlearn.evaluation.curves import RocCurve as RocCurve
from pairlearn.evaluation.curves import ThresholdChoice as ThresholdChoice
from pairlearn.evaluation.curves import calibration_curve as calibration_curve
from pairlearn.evaluation.curves import choose_threshold as choose_threshold
from pairlearn.evaluation.curves import roc_curve as roc_curve
from pairlearn.evaluation.judged import Estimate as Estimate
from pairlearn.evaluation.measures import AccuracyEstimate as AccuracyEstimate
from pairlearn.evaluation.measures import Evaluation as Evaluation
from pairlearn.evaluation.measures import Plausible as Plausible
from pairlearn.evaluation.measures import estimate_accuracy as estimate_accuracy
from pairlearn.evaluation.measures import evaluate as evaluate
from pairlearn.evaluation.miscalibration import Confidence as Confidence
from pairlearn.evaluation.miscalibration import Recalibration as Recalibration
from pairlearn.evaluation.miscalibration import Sensitivity as Sensitivity
from pairlearn.evaluation.miscalibration import plausible as plausible
from pairlearn.evaluation.miscalibration import recalibrate as recalibrate
from pairlearn.evaluation.miscalibration import sensitivity as sensitivity
