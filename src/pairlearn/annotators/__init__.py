"""Annotators: how people answer, learnt from what they say.

>>> from pairlearn.annotators import Manner
>>> Manner("ann", 100, random=0.2, hard=True).words()
'a fifth of the answers are guesses'
"""

from pairlearn.annotators.answers import Answers
from pairlearn.annotators.crowd import Crowd, with_errors
from pairlearn.annotators.link import Link, learn_link
from pairlearn.annotators.manner import Manner
from pairlearn.annotators.measurement import fair
from pairlearn.annotators.scale import AnswerScale, scale_of

__all__ = [
    "AnswerScale",
    "Answers",
    "Crowd",
    "Link",
    "Manner",
    "fair",
    "learn_link",
    "scale_of",
    "with_errors",
]
