"""What goes into the store and comes out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pairlearn.studio.store_file import StoreError

Floats: TypeAlias = NDArray[np.float64]

Origin: TypeAlias = Literal["person", "model", "import", "adjudicator"]

MAX_NOTE = 2000
MAX_KEY = 128


@dataclass(frozen=True)
class Annotator:
    """Somebody, or something, that judges pairs.

    Parameters
    ----------
    id, name
        Of the annotator.
    active : bool
        Whether a link leads to them. Models and annotators of imported judgements have none.
    origin : {"person", "model", "import", "adjudicator"}
        Where their judgements come from.
    """

    id: int
    name: str
    active: bool = True
    origin: Origin = "person"

    @property
    def note(self) -> str:
        """What to show beside the name: nothing for people who take part."""
        if self.active:
            return ""
        words = {"person": "retired", "import": "imported", "adjudicator": "settles pairs"}
        return words.get(self.origin, self.origin)


@dataclass(frozen=True)
class Pair:
    """A pair to judge.

    ``weight`` is one over the chance of having been chosen, up to a common factor: 1 for pairs at
    random. ``origin`` is "plan" (at random), "chosen" (by a model) or "import".
    """

    id: int
    left: str
    right: str
    weight: float = 1.0
    origin: str = "plan"


@dataclass(frozen=True)
class Task:
    """A pair in the hands of an annotator: the ``number``-th of ``total``."""

    pair: int
    left: str
    right: str
    number: int
    total: int


@dataclass(frozen=True)
class Answer:
    """What an annotator said about a pair.

    Raises StoreError if a value is out of range or nothing is said.

    Parameters
    ----------
    similarity, difference : float, optional
        s in [0, 1] and c in [−1, 1].
    preference : {−1, 0, 1}
        The left (−1) or the right (+1) one is more positive; 0 where not given.
    cant_say : bool
        They looked and cannot say; then only a note may be given.
    note : str
        In their words.
    seconds : float
        How long it took.
    key : str
        Chosen by the sender, once for each form: a repeated key is a repeated delivery.
    others : mapping of str to float
        Values of further columns of statements (`pairlearn.kinds.columns`), such as a label.
    level : str
        The answer in words that was chosen (`pairlearn.studio.known`), if one was.

    Examples
    --------
    >>> Answer(similarity=0.8, difference=-0.1, key="f1").preference
    0
    >>> Answer(similarity=80, key="f1")
    Traceback (most recent call last):
    pairlearn.studio.store_file.StoreError: similarity is 80, outside [0, 1]
    """

    similarity: float | None = None
    difference: float | None = None
    preference: Literal[-1, 0, 1] = 0
    cant_say: bool = False
    note: str = ""
    seconds: float = 0.0
    key: str = ""
    others: Mapping[str, float] = field(default_factory=dict)
    level: str = ""

    def __post_init__(self) -> None:
        for name, value, low in (
            ("similarity", self.similarity, 0),
            ("difference", self.difference, -1),
        ):
            # The comparison also refuses NaN.
            if value is not None and not low <= value <= 1:
                raise StoreError(f"{name} is {value:g}, outside [{low}, 1]")
        if self.preference not in (-1, 0, 1):
            raise StoreError(f"preference must be -1, 0 or 1; got {self.preference!r}")
        if self.difference is not None and self.difference * self.preference < 0:
            raise StoreError(
                f"difference is {self.difference:g} and preference {self.preference}: they "
                "point to different sides; give one of them"
            )
        if not 0 <= self.seconds < math.inf:
            raise StoreError(f"seconds must be a number of at least 0; got {self.seconds:g}")
        if not 1 <= len(self.key) <= MAX_KEY or not self.key.isprintable():
            raise StoreError(f"key must be 1 to {MAX_KEY} printable characters; got {self.key!r}")
        if len(self.note) > MAX_NOTE:
            raise StoreError(f"note has {len(self.note)} characters; at most {MAX_NOTE} are kept")
        if "\0" in self.note:
            raise StoreError("note has a NUL character; remove it")
        try:
            (self.note + self.key).encode()
        except UnicodeEncodeError:
            raise StoreError("note and key must be text in Unicode, without surrogates") from None
        if self.cant_say and self.said_something:
            raise StoreError("cant_say goes with no other answer: give one or the other")
        if not self.cant_say and not self.said_something:
            raise StoreError("nothing is said: give similarity, difference, preference or cant_say")

    @property
    def said_something(self) -> bool:
        """Whether there is a similarity, a difference, a preference or another statement."""
        return self.compares or bool(self.others)

    @property
    def compares(self) -> bool:
        """Whether there is a similarity, a difference or a preference."""
        return (self.similarity, self.difference, self.preference) != (None, None, 0)

    def same_judgement(self, other: Answer) -> bool:
        """Whether two answers say the same, whenever and however they were given."""
        return self == replace(
            other, note=self.note, seconds=self.seconds, key=self.key, level=self.level
        )


@dataclass(frozen=True)
class Receipt:
    """An answer is on disk. ``revision`` counts the answers of one annotator to one pair."""

    answer_id: int
    revision: int


@dataclass(frozen=True)
class Progress:
    """How far an annotator is; pace and time left are None before the first answer."""

    done: int
    total: int
    per_hour: float | None
    seconds_left: float | None


@dataclass(frozen=True)
class StoredAnswer:
    """One row of the answers: who said what about which pair, and when."""

    id: int
    annotator: str
    pair: int
    left: str
    right: str
    similarity: float | None
    difference: float | None
    preference: int
    cant_say: bool
    note: str
    seconds: float
    at: str
    revision: int
    weight: float = 1.0
    others: Mapping[str, float] = field(default_factory=dict)
    level: str = ""

    def answer(self, key: str) -> Answer:
        """The answer in it, to be submitted under a key."""
        said = {one.name: getattr(self, one.name) for one in fields(Answer) if one.name != "key"}
        return Answer(**said, key=key)


@dataclass(frozen=True)
class Change:
    """One line of the history: who changed what, when, from which answer to which.

    ``action`` is "answered", "revised", "withdrawn", or what was done to the project; ``before``
    and ``after`` are ids of answers.
    """

    id: int
    at: str
    who: str
    action: str
    annotator: str | None
    pair: int | None
    before: int | None
    after: int | None
    detail: str


class AnswerColumns:
    """Answers as arrays; NaN where one was not given."""

    def __init__(self, answers: Sequence[StoredAnswer]) -> None:
        def array(name: str, kind: Any) -> Any:
            return np.array([getattr(one, name) for one in answers], dtype=kind)

        self.annotator: NDArray[np.str_] = array("annotator", np.str_)
        self.pair: NDArray[np.int64] = array("pair", np.int64)
        self.similarity: Floats = array("similarity", np.float64)  # None becomes NaN
        self.difference: Floats = array("difference", np.float64)
        self.preference: NDArray[np.int8] = array("preference", np.int8)
        self.seconds: Floats = array("seconds", np.float64)
        self.cant_say: NDArray[np.bool_] = array("cant_say", np.bool_)
        self.weight: Floats = array("weight", np.float64)
