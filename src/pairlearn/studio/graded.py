"""Answers in words: what each of them means as (s, c), and pairs whose answer is known.

People who are asked "which one is more likely positive?" answer in degrees. Every degree
stands for a similarity and a difference that two posteriors can give, so that whatever is
chosen is feasible: (1 − c²)/2 ≤ s ≤ 1 − |c|. The project file states the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from pairlearn.labels import PairLabels

AnswerMode: TypeAlias = Literal["graded", "each", "exact"]
Levels: TypeAlias = Mapping[str, tuple[float, float]]

LEVELS: Levels = {
    "left surely": (0.098, -0.9),
    "left probably": (0.36, -0.6),
    "left slightly": (0.6, -0.25),
    "can't tell which": (0.5, 0.0),
    "right slightly": (0.6, 0.25),
    "right probably": (0.36, 0.6),
    "right surely": (0.098, 0.9),
    "both positive": (0.9, 0.0),
    "both negative": (0.9, 0.0),
    "alike": (0.8, 0.0),
}
"""The answers in the order of their keys, 1 to 9 and 0, and what they mean unless a project
says otherwise. The posteriors of "can't tell which" are ½ both; those of "both positive" and
"both negative" 0.95 and 0.05, which similarity and difference do not tell apart."""

CERTAIN: Levels = {
    "left surely": (0.0, -1.0),
    "right surely": (0.0, 1.0),
    "both positive": (1.0, 0.0),
    "both negative": (1.0, 0.0),
}
"""What the ends of the scale can stand for at most."""


def read_levels(given: Any) -> dict[str, tuple[float, float]]:
    """Levels as a project file states them, defaults for the rest.

    Raises ValueError if a name is unknown or no two posteriors give the numbers.
    """
    try:
        levels = msgspec.convert(given, dict[str, tuple[float, float]])
    except msgspec.ValidationError as error:
        raise ValueError(f"levels must give a similarity and a difference each: {error}") from None
    for name, (s, c) in levels.items():
        if name not in LEVELS:
            raise ValueError(f"levels has {name[:80]!r}; there are {', '.join(LEVELS)}")
        if not (0 <= s <= 1 and -1 <= c <= 1 and PairLabels([s], [c]).feasible().all()):
            raise ValueError(
                f"levels has {name!r}: s = {s:g} and c = {c:g} cannot both hold; with that c, s "
                f"is between {(1 - c * c) / 2:g} and {1 - abs(c):g}"
            )
    return dict(LEVELS) | levels


def reason(error: msgspec.ValidationError, value: Any = None) -> str:
    """What is wrong with a value that was read, and where.

    Examples
    --------
    >>> value = {"s": "x"}
    >>> try:
    ...     msgspec.convert(value, dict[str, int])
    ... except msgspec.ValidationError as error:
    ...     reason(error)
    "[...]: expected 'int', got 'str'"
    """
    what, _, place = str(error).replace("`", "'").partition(" - at '$")
    what = what.replace("Object missing required field", "it lacks")
    what = what.replace("Object contains", "it has an").replace("Expected", "expected")
    place = place.rstrip("'").removeprefix(".")
    if isinstance(value, dict) and place in value:
        place += f" is {value[place]!r:.80}"
    return f"{place}: {what}" if place else what
