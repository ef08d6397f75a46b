"""Annotators: how people answer, learnt from what they say."""

from pairlearn.annotators.annotator import Annotator, Phrase, in_words
from pairlearn.annotators.findings import SENTENCES, findings
from pairlearn.annotators.model import Annotators, Corrected

__all__ = ["SENTENCES", "Annotator", "Annotators", "Corrected", "Phrase", "findings", "in_words"]
