"""Classifiers from judged pairs in scikit-learn's manner."""

from pairlearn.estimators.classifier import PairClassifier
from pairlearn.estimators.population import PriorMismatchWarning

__all__ = ["PairClassifier", "PriorMismatchWarning"]
