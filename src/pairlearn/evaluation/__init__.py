"""How good a classifier is, from judged pairs without labels, or with a few.

Judged pairs say how the annotators see a classifier. Two readings of the answers bracket how good
it is: either the answers are posteriors given everything that its decisions depend on, or the
annotators' mistakes are unrelated to its own. What remains assumed is that annotators are
calibrated. A few labelled items remove that assumption. The classifier must not have been trained
on the pairs. How often the intervals hold is measured by ``bench/speed/coverage.py``.
"""

from pairlearn.evaluation.classes import ClassAccuracy as ClassAccuracy
from pairlearn.evaluation.classes import estimate_class_accuracy as estimate_class_accuracy
from pairlearn.evaluation.curves import CalibrationCurve as CalibrationCurve
from pairlearn.evaluation.curves import calibration_curve as calibration_curve
from pairlearn.evaluation.judged import Bracket as Bracket
from pairlearn.evaluation.judged import Estimate as Estimate
from pairlearn.evaluation.labelled import LabelCheck as LabelCheck
from pairlearn.evaluation.labelled import LabelledItems as LabelledItems
from pairlearn.evaluation.measures import AccuracyEstimate as AccuracyEstimate
from pairlearn.evaluation.measures import Evaluation as Evaluation
from pairlearn.evaluation.measures import estimate_accuracy as estimate_accuracy
from pairlearn.evaluation.measures import evaluate as evaluate
from pairlearn.evaluation.measures import sensitivity as sensitivity
from pairlearn.evaluation.readings import independent_probability as independent_probability
from pairlearn.evaluation.readings import independent_threshold as independent_threshold
