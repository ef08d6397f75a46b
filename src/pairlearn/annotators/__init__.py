"""Annotators: how people answer, learnt from what they say."""

from pairlearn.annotators.annotator import Annotator
from pairlearn.annotators.findings import AnnotatorFinding, findings
from pairlearn.annotators.model import Annotators

__all__ = ["Annotator", "AnnotatorFinding", "Annotators", "findings"]
