"""Pairs whose answer is known: examples, practice, and checks mixed in with the other pairs.

They are stated in the project file. Checks get a row among the pairs, outside of the plan, and
every annotator is given so many that they are ``known_share`` of what they judge. Which of the
next tasks is a check follows from the annotator and from how many they have answered, so that it
comes at no place that could be guessed and stays the same when a page is loaded again.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pairlearn.studio.graded import Levels

if TYPE_CHECKING:
    from pairlearn.studio.changes import Changes

CLOSE = 0.351
"""An answer agrees with a known one if neither number is further away: the next degree is not."""
SETTING = "known"


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair whose answer is known, one of the levels; ``why`` is told to annotators.

    Examples
    --------
    >>> Known("a", "b", "left surely", "practice").turned().answer
    'right surely'
    """

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
        """Whether an answer, as it is given or stored, is the known one or next to it.

        Examples
        --------
        >>> from pairlearn.studio import Answer
        >>> from pairlearn.studio.graded import LEVELS
        >>> probably = Answer(0.36, -0.6, key="k")
        >>> [Known("a", "b", one).agrees(probably, LEVELS) for one in ("left surely", "alike")]
        [True, False]
        """
        opposite = {"both positive", "both negative"}
        if answer.cant_say or {answer.level, self.answer} == opposite:
            return False
        given = zip((answer.similarity, answer.difference), levels[self.answer], strict=True)
        return all(said is None or abs(said - right) <= CLOSE for said, right in given)


def read_known(given: Any, levels: Levels) -> tuple[Known, ...]:
    """Known pairs as a project file states them.

    Raises
    ------
    ValueError
        If one is not as it should be.

    Examples
    --------
    >>> read_known([{"left": "a", "right": "b", "answer": "maybe"}], {"alike": (0.8, 0.0)})
    Traceback (most recent call last):
    ValueError: known[0].answer is 'maybe'; there are alike
    """
    try:
        known = msgspec.convert(given, tuple[Known, ...])
    except msgspec.ValidationError as error:
        raise ValueError(f"known must be a list of pairs: {error}") from None
    for place, one in enumerate(known):
        if one.answer not in levels:
            raise ValueError(
                f"known[{place}].answer is {one.answer[:80]!r}; there are {', '.join(levels)}"
            )
    return known


def settle(changes: Changes, checks: Sequence[Known], share: float) -> None:
    """Have checks among the pairs, and those that are none any more in nobody's hands."""
    before = placed(changes.first("SELECT value FROM setting WHERE name = ?", SETTING))
    pairs: dict[int, Known] = {}
    for one in checks:
        found = changes.find_pair(one.left, one.right)
        if found is None:
            (number,) = changes.add_pairs([(one.left, one.right, 1.0)], "import")
            found = number, False
        pairs[found[0]] = one.turned() if found[1] else one
    for number in before.keys() - pairs.keys():
        changes.rows("DELETE FROM assignment WHERE pair = ? AND answer IS NULL", number)
    stated = {
        "checks": msgspec.to_builtins(list(checks)),
        "share": share,
        "pairs": {str(number): msgspec.to_builtins(one) for number, one in pairs.items()},
    }
    changes.set_setting(SETTING, json.dumps(stated))
    changes.log("known pairs", f"{len(pairs)} at a share of {share:g}")


def placed(setting: tuple[Any, ...] | None) -> dict[int, Known]:
    """The checks of a project by the numbers of their pairs, from its setting."""
    stated = {} if setting is None else json.loads(setting[0])["pairs"]
    return {int(number): msgspec.convert(one, Known) for number, one in stated.items()}


def is_settled(setting: tuple[Any, ...] | None, checks: Sequence[Known], share: float) -> bool:
    """Whether a store knows the checks of its project file already."""
    if setting is None:
        return not checks
    stated = json.loads(setting[0])
    return bool(stated["checks"] == msgspec.to_builtins(list(checks)) and stated["share"] == share)


def share_out(changes: Changes, load: Mapping[int, int]) -> None:
    """Give everybody checks in proportion to their other pairs; nobody loses one."""
    setting = changes.first("SELECT value FROM setting WHERE name = ?", SETTING)
    if setting is None:
        return
    share = json.loads(setting[0])["share"]
    outside = {number for (number,) in changes.rows("SELECT id FROM pair WHERE origin = 'import'")}
    pairs = [number for number in placed(setting) if number in outside]
    theirs = set(changes.rows("SELECT annotator, pair FROM assignment"))
    for who, count in load.items():
        due = min(len(pairs), math.ceil(share * count))
        start = who % max(len(pairs), 1)
        turn = [pair for pair in pairs[start:] + pairs[:start] if (who, pair) not in theirs]
        missing = max(due - (len(pairs) - len(turn)), 0)
        for pair in turn[:missing]:
            changes.assign_pair(who, pair)


def is_due(annotator: int, done: int, share: float) -> bool:
    """Whether the task after so many answers is a check, one in every 1/share.

    Examples
    --------
    >>> sum(is_due(7, done, 0.05) for done in range(200))
    10
    """
    every = max(round(1 / share), 1)
    block, place = divmod(done, every)
    return zlib.crc32(f"{annotator} {block}".encode()) % every == place
