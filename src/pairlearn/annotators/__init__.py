"""Annotators: how people answer, learnt from what they say; and simulated ones.

>>> from pairlearn.annotators import Manner
>>> Manner("ann", 100, random=0.2, hard=True).words()
'a fifth of the answers are guesses'
"""

from typing import Any

from pairlearn.annotators.answers import Answers
from pairlearn.annotators.crowd import Crowd, with_errors
from pairlearn.annotators.link import Link, learn_link
from pairlearn.annotators.manner import Manner
from pairlearn.annotators.measurement import fair
from pairlearn.annotators.scale import AnswerScale, scale_of

SIMULATED = ("EPOCHS", "Annotator", "add_noise", "judge", "train_annotators")
"""Names that come with torch, which is loaded when one of them is asked for."""

__all__ = [
    "EPOCHS",
    "Annotator",
    "AnswerScale",
    "Answers",
    "Crowd",
    "Link",
    "Manner",
    "add_noise",
    "fair",
    "judge",
    "learn_link",
    "scale_of",
    "train_annotators",
    "with_errors",
]


def __getattr__(name: str) -> Any:
    if name not in SIMULATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pairlearn.annotators import simulated

    return getattr(simulated, name)
