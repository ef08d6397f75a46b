"""Annotators: how people answer, learnt from what they say; and simulated ones.

>>> from pairlearn.annotators import Manner
>>> Manner("ann", 100, random=0.2, hard=True).words()
'a fifth of the answers are guesses'
"""

from pairlearn.annotators.answers import Answers
from pairlearn.annotators.link import Link, fair, learn_link
from pairlearn.annotators.manner import Manner
from pairlearn.annotators.simulated import EPOCHS, Annotator, add_noise, judge, train_annotators

__all__ = [
    "EPOCHS",
    "Annotator",
    "Answers",
    "Link",
    "Manner",
    "add_noise",
    "fair",
    "judge",
    "learn_link",
    "train_annotators",
]
