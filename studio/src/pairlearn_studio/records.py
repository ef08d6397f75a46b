"""Answers, known pairs, and the rows of the store.

Annotators who are asked "which one is more likely positive?" answer in degrees. Each degree stands
for a similarity and a difference that two posteriors can produce, so that every answer is
feasible: (1 − c²)/2 ≤ s ≤ 1 − |c|. Known pairs are examples, practice, and checks, which are mixed
in with the pairs of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import Any, Literal, TypeAlias

import msgspec

from pairlearn.judgements.sets import join_set, split_set
from pairlearn_studio.store_file import StoreError

Origin: TypeAlias = Literal["person", "model", "import", "adjudicator"]
AnswerMode: TypeAlias = Literal["graded", "each", "exact"]
Levels: TypeAlias = Mapping[str, tuple[float, float | None]]

#: (Similarity, difference) of each answer in words, in the order of their keys, 1 to 9 and 0.
#:
#: "Can't tell which" has two posteriors of ½; "both positive" and "both negative" have 0.95 and
#: 0.05: the same similarity and difference, so the class of both is a statement of its own beside
#: them.
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

#: Similarity of each answer to the question whether two items are of the same class at all, in a
#: project of several classes.
WHETHER_SAME: Levels = {
    "different surely": (0.05, None),
    "different probably": (0.2, None),
    "different slightly": (0.4, None),
    "can't tell whether": (0.5, None),
    "same slightly": (0.6, None),
    "same probably": (0.8, None),
    "same surely": (0.95, None),
}

#: The most extreme meaning that the ends of the scale can have.
CERTAIN: Levels = {
    "same surely": (1.0, None),
    "different surely": (0.0, None),
    "left surely": (0.0, -1.0),
    "right surely": (0.0, 1.0),
    "both positive": (1.0, 0.0),
    "both negative": (1.0, 0.0),
}


ALL_LEVELS: Levels = {**LEVELS, **WHETHER_SAME}


def levels_for(about: str | None) -> Levels:
    """The answers to a question, as in `Pair`, and their numbers."""
    return WHETHER_SAME if about == "" else LEVELS


#: Largest distance between numbers of neighbouring degrees.
ONE_DEGREE = 0.351


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair whose answer, one of the levels, is known; annotators are shown ``why``.

    In a project of several classes it is about the set ``about``, empty for "of the same class at
    all?". The classes of both items can stand for the answer; the set is then that of the left one
    unless another is given.
    """

    left: str
    right: str
    answer: str = ""
    use: Literal["example", "practice", "check"] = "check"
    why: str = ""
    about: str = ""
    left_class: str = ""
    right_class: str = ""

    def with_answer(self) -> Known:
        """The same with the answer that the classes of the items give."""
        about, answer = join_set(split_set(self.about)) if self.about else "", self.answer
        if self.left_class and self.right_class and not answer:
            about = about or join_set([self.left_class])
            answer = answer_of(about, self.left_class, self.right_class)
        return msgspec.structs.replace(self, about=about, answer=answer)

    def swapped(self) -> Known:
        """The same pair with left and right exchanged."""
        other = {"left": "right", "right": "left"}
        side, _, degree = self.answer.partition(" ")
        answer = f"{other.get(side, side)} {degree}".strip()
        return msgspec.structs.replace(self, left=self.right, right=self.left, answer=answer)

    def agrees(self, answer: Answer) -> bool:
        """Whether an answer is the known one or one degree from it."""
        similarity, difference = ALL_LEVELS[self.answer]
        known = Answer(similarity, difference, level=self.answer)
        return not answer.cant_say and answers_agree(answer, known)


def answer_of(about: str | None, left: str, right: str) -> str:
    """The certain answer about a set that the classes of two items give.

    >>> answer_of("cat|dog", "cat", "cow"), answer_of("", "cat", "cow")
    ('left surely', 'different surely')
    """
    if not about:
        return "same surely" if left == right else "different surely"
    inside, other = (name in split_set(about) for name in (left, right))
    if inside != other:
        return "left surely" if inside else "right surely"
    return "both positive" if inside else "both negative"


#: Answers that have the same numbers and contradict each other, and what tells them apart.
OPPOSITE = {"both positive": {"both": 1.0}, "both negative": {"both": 0.0}}


def answers_agree(first: Answer, second: Answer) -> bool:
    """Whether two answers to a pair are at most one degree apart and do not contradict.

    Missing numbers agree.

    >>> probably, surely = Answer(0.36, 0.6), Answer(0.098, 0.9)
    >>> answers_agree(probably, surely), answers_agree(probably, Answer(0.36, -0.6))
    (True, False)
    """
    pairs = zip(first.numbers, second.numbers, strict=True)
    near = all(a is None or b is None or abs(a - b) <= ONE_DEGREE for a, b in pairs)
    return near and {first.level, second.level} != OPPOSITE.keys()


def read_known(values: Any, place: str = "known pair") -> tuple[Known, ...]:
    """Known pairs of a project file; ValueError names the first bad one."""
    known = []
    for number, pair in enumerate(values if isinstance(values, list | tuple) else [values], 1):
        try:
            known.append(msgspec.convert(pair, Known).with_answer())
        except msgspec.ValidationError as error:
            raise ValueError(
                f"{place} {number}: {error}; a pair has left, right, answer, and perhaps use "
                "(example, practice or check), why, about, left_class and right_class"
            ) from None
        if (answer := known[-1].answer) not in ALL_LEVELS:
            raise ValueError(
                f"{place} {number}: answer is {answer[:80]!r}; there are {', '.join(LEVELS)}"
            )
    return tuple(known)


MAX_NOTE = 2000
MAX_KEY = 128


@dataclass(frozen=True)
class Annotator:
    """A person or program that judges pairs.

    ``active`` annotators have a link that works, until ``expires_at``; models and annotators of
    imported judgements have none. ``origin`` is where their judgements come from, ``quota`` the
    most pairs that they are given.
    """

    id: int
    name: str
    active: bool = True
    origin: Origin = "person"
    expires_at: str | None = None
    quota: int | None = None

    @property
    def note(self) -> str:
        """Remark beside the name: empty for people who take part."""
        if self.active:
            return ""
        words = {"person": "ended", "import": "imported", "adjudicator": "settles pairs"}
        return words.get(self.origin, self.origin)


@dataclass(frozen=True)
class Pair:
    """A pair to judge; ``origin`` is "plan" (drawn at random), "check" or "import".

    ``about`` is the set of classes that is asked about, empty for "of the same class at all?", and
    None in a project of two classes.
    """

    id: int
    left: str
    right: str
    origin: str = "plan"
    about: str | None = None


@dataclass(frozen=True)
class Task:
    """A pair assigned to an annotator: the ``number``-th of ``total``, ``about`` as in `Pair`."""

    pair: int
    left: str
    right: str
    about: str | None
    number: int
    total: int


@dataclass(frozen=True)
class Answer:
    """An annotator's answer about a pair; StoreError if a value is out of range or missing.

    Parameters
    ----------
    similarity, difference : float, optional
        s in [0, 1] and c in [−1, 1].
    cant_say : bool
        The annotator cannot say; then only a note may be given.
    note : str
        A comment by the annotator.
    seconds : float
        Time taken.
    key : str
        Chosen by the sender, once for each form: the same key again is the same delivery again.
        By default a new one.
    others : mapping of str to float
        Values of other columns of statements (`kinds.columns`), such as a label.
    level : str
        The chosen answer in words (`LEVELS`), if any.
    orders : tuple of (float, float)
        Similarity and difference by each order in which a model saw the items.
    classes : tuple of str
        The classes of the two items, where the annotator named them.

    Examples
    --------
    >>> Answer(similarity=0.8, difference=-0.1, key="f1").numbers
    (0.8, -0.1)
    >>> Answer(similarity=80, key="f1")
    Traceback (most recent call last):
    pairlearn_studio.store_file.StoreError: similarity is 80, outside [0, 1]
    """

    similarity: float | None = None
    difference: float | None = None
    cant_say: bool = False
    note: str = ""
    seconds: float = 0.0
    key: str = field(default_factory=partial(token_hex, 16))
    others: Mapping[str, float] = field(default_factory=dict)
    level: str = ""
    orders: tuple[tuple[float, float], ...] = ()
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "others", {**self.others, **OPPOSITE.get(self.level, {})})
        ranges = (("similarity", 0), ("difference", -1))
        for (name, low), value in zip(ranges, self.numbers, strict=True):
            # The comparison also refuses NaN.
            if value is not None and not low <= value <= 1:
                raise StoreError(f"{name} is {value:g}, outside [{low}, 1]")
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
        has_statement = self.numbers != (None, None) or bool(self.others)
        if self.cant_say and has_statement:
            raise StoreError("cant_say goes with no other answer: give one or the other")
        if not self.cant_say and not has_statement:
            raise StoreError("the answer is empty: give similarity, difference, others or cant_say")

    @property
    def numbers(self) -> tuple[float | None, float | None]:
        """Similarity and difference."""
        return self.similarity, self.difference

    def same_judgement(self, other: Answer) -> bool:
        """Whether two answers make the same statement, whenever and however they were given."""
        names = ("numbers", "cant_say", "others", "classes")
        return all(getattr(self, name) == getattr(other, name) for name in names)


@dataclass(frozen=True)
class Receipt:
    """Confirms that an answer is on disk; ``revision`` counts an annotator's answers to a pair."""

    answer_id: int
    revision: int


@dataclass(frozen=True)
class Progress:
    """Progress of an annotator; the time left is None before the first answer."""

    done: int
    total: int
    seconds_left: float | None


@dataclass(frozen=True, kw_only=True)
class StoredAnswer(Answer):
    """An answer as a row of the store: by whom, about which pair, and when.

    ``about`` is as in `Pair`, and ``q`` the probability with which that set was chosen.
    """

    id: int
    annotator: str
    pair: int
    left: str
    right: str
    at: str
    revision: int
    about: str | None = None
    q: float = 1.0

    def __post_init__(self) -> None:
        """Check nothing: answers are checked before they are stored."""
