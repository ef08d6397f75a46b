"""Answers in words, pairs whose answer is known, and pairs that come twice.

People who are asked "which one is more likely positive?" answer in degrees. Every degree
stands for a similarity and a difference that two posteriors can give, so that whatever is
chosen is feasible: (1 − c²)/2 ≤ s ≤ 1 − |c|. The project file states the numbers.

Known pairs are stated there, too: examples, practice, and checks. Checks get a row among the pairs,
outside of the plan, and are ``known_share`` of what every annotator judges. Repeats are pairs of
the plan the other way round, some time after the first answer. Which of the next tasks is one of
these follows from the annotator and how many they have answered: it cannot be guessed, and stays
the same when a page is reloaded.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from pairlearn.labels import PairLabels

if TYPE_CHECKING:
    from pairlearn.studio.changes import Changes


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


CLOSE = 0.351
"""An answer agrees with a known one if neither number is further away: the next degree is not."""
LAG = 8
"""Answers that come between a pair and its repeat, at least, as long as there are others."""
SETTING = "mixed in"


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair whose answer is known, one of the levels; ``why`` is told to annotators."""

    left: str
    right: str
    answer: str
    use: Literal["example", "practice", "check"] = "check"
    why: str = ""

    def turned(self) -> Known:
        """The same with left and right exchanged."""
        other = {"left": "right", "right": "left"}
        side, _, degree = self.answer.partition(" ")
        answer = f"{other.get(side, side)} {degree}".strip()
        return msgspec.structs.replace(self, left=self.right, right=self.left, answer=answer)

    def agrees(self, answer: Any, levels: Levels) -> bool:
        """Whether an answer, as it is given or stored, is the known one or next to it."""
        opposite = {"both positive", "both negative"}
        if answer.cant_say or {answer.level, self.answer} == opposite:
            return False
        return near((answer.similarity, answer.difference), levels[self.answer])


def near(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Whether two answers (s, c) are the same or one degree apart; missing numbers agree.

    Examples
    --------
    >>> near((0.36, 0.6), (0.098, 0.9)), near((0.36, 0.6), (0.36, -0.6))
    (True, False)
    """
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return all(abs(a - b) <= CLOSE for a, b in both)


class Mixed(msgspec.Struct):
    """Known pairs and repeats mixed in with the pairs of a plan, as the store keeps them."""

    checks: list[Known] = []
    share: float = 0.0
    pairs: dict[str, Known] = {}
    repeat_share: float = 0.0
    repeats: dict[str, int] = {}

    @classmethod
    def read(cls, setting: str | None) -> Mixed:
        """From the setting of a store, or nothing."""
        return cls() if setting is None else msgspec.json.decode(setting, type=cls)

    @property
    def known(self) -> dict[int, Known]:
        """The checks by the numbers of their pairs."""
        return {int(number): one for number, one in self.pairs.items()}

    @property
    def originals(self) -> dict[int, int]:
        """The pairs that are repeated, by the numbers of their repeats."""
        return {int(number): one for number, one in self.repeats.items()}

    @property
    def whole_share(self) -> float:
        """How much of what people judge is mixed in."""
        return self.share * bool(self.pairs) + self.repeat_share * bool(self.repeats)

    def states(self, checks: Sequence[Known], share: float, repeat_share: float) -> bool:
        """Whether this is what a project file states."""
        same = self.checks == list(checks) and (self.share == share or not checks)
        return same and self.repeat_share == repeat_share


def read_known(given: Any, levels: Levels) -> tuple[Known, ...]:
    """Known pairs as a project file states them; ValueError names the first bad one."""
    known = []
    for number, pair in enumerate(given if isinstance(given, list | tuple) else [given], 1):
        try:
            known.append(msgspec.convert(pair, Known))
        except msgspec.ValidationError as error:
            raise ValueError(
                f"known pair {number}: {reason(error, pair)}; a pair has left, right, answer, and "
                "perhaps use (example, practice or check) and why"
            ) from None
        if (answer := known[-1].answer) not in levels:
            raise ValueError(
                f"known pair {number}: answer is {answer[:80]!r}; there are {', '.join(levels)}"
            )
    return tuple(known)


def settle(changes: Changes, checks: Sequence[Known], share: float, repeat_share: float) -> None:
    """Have checks and repeats among the pairs; what is none any more is in nobody's hands."""
    before = Mixed.read(changes.setting(SETTING))
    now = Mixed(list(checks), share, {}, repeat_share)
    for one in checks:
        found = changes.find_pair(one.left, one.right)
        if found is None:
            found = changes.add_pairs([(one.left, one.right, 1.0)], "import")[0], False
        now.pairs[str(found[0])] = one.turned() if found[1] else one
    plan = changes.rows("SELECT id, left, right FROM pair WHERE origin = 'plan' ORDER BY id")
    made = {original: number for number, original in before.originals.items()}
    for number, left, right in plan[: math.ceil(repeat_share * len(plan))]:
        repeat = made.get(number) or changes.add_repeat(right, left)
        now.repeats[str(repeat)] = number
    for gone in {*before.known, *before.originals} - {*now.known, *now.originals}:
        # One of the plan is assigned anew with the others.
        changes.rows("DELETE FROM assignment WHERE pair = ? AND answer IS NULL", gone)
    changes.set_setting(SETTING, msgspec.json.encode(now).decode())
    changes.log("mixed in", f"{len(now.pairs)} known pairs, {len(now.repeats)} repeats")


def share_out(changes: Changes, wanted: set[tuple[int, int]], active: Sequence[int]) -> None:
    """Give everybody checks in proportion to their pairs, and repeats; nobody loses one."""
    mixed = Mixed.read(changes.setting(SETTING))
    if not mixed.whole_share:
        return
    load = Counter(who for who, _ in wanted)
    outside = {number for (number,) in changes.rows("SELECT id FROM pair WHERE origin = 'import'")}
    pairs = [number for number in mixed.known if number in outside]
    theirs = set(changes.rows("SELECT annotator, pair FROM assignment"))
    for who in active:
        due = min(len(pairs), math.ceil(mixed.share * load[who]))
        start = who % max(len(pairs), 1)
        turn = [pair for pair in pairs[start:] + pairs[:start] if (who, pair) not in theirs]
        missing = max(due - (len(pairs) - len(turn)), 0)
        repeated = [one for one, of in mixed.originals.items() if (who, of) in wanted]
        for pair in turn[:missing] + repeated:
            changes.assign_pair(who, pair)


def is_due(annotator: int, done: int, share: float) -> bool:
    """Whether the task after so many answers is a check, one in every 1/share."""
    every = max(round(1 / share), 1)
    block, place = divmod(done, every)
    return zlib.crc32(f"{annotator} {block}".encode()) % every == place
