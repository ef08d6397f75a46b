"""From what a model says to one judgement of a pair.

Models lean to the first or to the second of two things. So both orders are asked. With
(s₁, c₁) said of (left, right) and (s₂, c₂) of (right, left),

    s = (s₁ + s₂)/2,    c = (c₁ − c₂)/2,    bias = (c₁ + c₂)/2:

the similarity is symmetric and the difference antisymmetric in the order, and what is
added to the second one whatever it is, the position bias, cancels.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pairlearn.annotate.items import ItemView

__all__ = [
    "Judge",
    "Judgement",
    "PairModel",
    "PosteriorModel",
    "Said",
    "SaidOfItem",
    "by_items",
    "by_pairs",
]


class Said(NamedTuple):
    """What a model said of a pair in one order; None where it cannot say.

    Examples
    --------
    >>> Said(0.7, 0.1).mass
    1.0
    """

    similarity: float | None
    difference: float | None
    mass: float = 1.0
    """Probability of the answers that were understood."""


class SaidOfItem(NamedTuple):
    """P(y = +1 | x) as a model said it; None where it cannot say.

    Examples
    --------
    >>> SaidOfItem(None, 0.2).posterior is None
    True
    """

    posterior: float | None
    mass: float = 1.0


@dataclass(frozen=True)
class Judgement:
    """A judgement of a pair, and what is known about how it came to be.

    Attributes
    ----------
    similarity, difference : float or None
        Both, or None for "can't say".
    bias : float
        How much more positive the second place made an item; NaN where not asked.
    mass : float
        Probability of the answers that were understood, the least of all.

    Examples
    --------
    >>> Judgement(None, None, 0.0, 0.3).cant_say
    True
    """

    similarity: float | None
    difference: float | None
    bias: float
    mass: float

    @property
    def cant_say(self) -> bool:
        """Whether there is no judgement."""
        return self.similarity is None or self.difference is None


PairModel: TypeAlias = "Callable[[ItemView, ItemView], Said]"
PosteriorModel: TypeAlias = "Callable[[ItemView], SaidOfItem]"
Judge: TypeAlias = Callable[[str, str], Judgement]
"""From the ids of the left and the right item to a judgement."""


def by_pairs(model: PairModel, view: Callable[[str], ItemView]) -> Judge:
    """Judge pairs as pairs, each in both orders: two questions a pair.

    This is a judgement of the pair as people give it: the two items stand side by side,
    and a model that is better at comparing than at stating probabilities is asked to
    compare.

    Parameters
    ----------
    model : callable
        From the first and the second item to what it says of them.
    view : callable
        From an id to the item.

    Examples
    --------
    >>> def leans(first, second):           # true: s = 0.6 and c = 0.2 if "b" comes second
    ...     return Said(0.6, 0.1 + (0.2 if second == "b" else -0.2))
    >>> judgement = by_pairs(leans, lambda id: id)("a", "b")
    >>> round(judgement.difference, 3), round(judgement.bias, 3)
    (0.2, 0.1)
    """

    def judge(left: str, right: str) -> Judgement:
        one, two = view(left), view(right)
        return _average(model(one, two), model(two, one))

    return judge


def _average(forward: Said, back: Said) -> Judgement:
    mass = min(forward.mass, back.mass)
    if (
        forward.similarity is None
        or forward.difference is None
        or back.similarity is None
        or back.difference is None
    ):
        return Judgement(None, None, math.nan, mass)
    return Judgement(
        (forward.similarity + back.similarity) / 2,
        (forward.difference - back.difference) / 2,
        (forward.difference + back.difference) / 2,
        mass,
    )


def by_items(model: PosteriorModel, view: Callable[[str], ItemView]) -> Judge:
    """Judge every item once, and derive the pairs: s = rr' + (1 − r)(1 − r'), c = r' − r.

    One question an item instead of two a pair, and there is no order to lean to. But the
    model has to know probabilities of classes with nothing to compare with, and whatever
    is wrong with them is in every pair of the item.

    Parameters
    ----------
    model : callable
        From an item to P(y = +1 | x).
    view : callable
        From an id to the item.

    Examples
    --------
    >>> judge = by_items(lambda item: SaidOfItem({"a": 0.9, "b": 0.4}[item]), lambda id: id)
    >>> judgement = judge("a", "b")
    >>> round(judgement.similarity, 3), round(judgement.difference, 3)
    (0.42, -0.5)
    """
    known: dict[str, Future[SaidOfItem]] = {}
    lock = threading.Lock()

    def ask(item: str) -> SaidOfItem:
        with lock:
            future = known.get(item)
            if future is None:
                mine: Future[SaidOfItem] = Future()
                known[item] = mine
        if future is not None:
            return future.result()
        try:
            said = model(view(item))
        except BaseException as error:
            with lock:  # not for ever: the next run of the same judge may ask again
                del known[item]
            mine.set_exception(error)
            raise
        mine.set_result(said)
        return said

    def judge(left: str, right: str) -> Judgement:
        (r, mass), (r_prime, mass_prime) = ask(left), ask(right)
        mass = min(mass, mass_prime)
        if r is None or r_prime is None:
            return Judgement(None, None, math.nan, mass)
        return Judgement(r * r_prime + (1 - r) * (1 - r_prime), r_prime - r, math.nan, mass)

    return judge
