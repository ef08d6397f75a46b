"""Annotators: how people answer, learnt from what they say."""

from pairlearn.annotators.annotator import Annotator
from pairlearn.annotators.findings import SENTENCES, findings
from pairlearn.annotators.model import Annotators

__all__ = ["SENTENCES", "Annotator", "Annotators", "findings"]
