"""Have a model judge the pairs of a project: a Python function, or a chat completions endpoint.

Per pair (`by_pairs`), the model sees both items side by side, in both orders. Per item
(`by_items`), it gives P(positive) once for each item, from which pairs are derived; since items
recur, this is far cheaper.

A function that judges pairs is called as ``f(left, right)`` and returns ``(similarity,
difference)``; one that judges items is called as ``f(item)`` and returns P(y = +1 | x). Both
return None for "can't say". In a project of several classes they are ``f(left, right, about)``,
which returns the similarity alone if ``about`` is empty, and ``f(item)``, which returns the
probability of each class by its name. Arguments are `pairlearn_studio.ItemView`: a cell of a table
is ``dict(item.rows)[name]``, a text ``item.text``, an image ``item.image_path``.
"""

from __future__ import annotations

import math
import pkgutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlearn.labels import PairLabels
from pairlearn_studio.changes import Changes
from pairlearn_studio.endpoint import ChatEndpoint
from pairlearn_studio.items import ItemView
from pairlearn_studio.judges import (
    Judge,
    Judgement,
    PairModel,
    PosteriorModel,
    SaidOfItem,
    Wording,
    by_items,
    by_pairs,
    chat_item_model,
    chat_pair_model,
    order_effects,
)  # fmt: skip
from pairlearn_studio.limits import AnswerCache, Budget, LimitReached, ModelError, SkippedError
from pairlearn_studio.reader import SKIPPED
from pairlearn_studio.records import Answer, Pair

if TYPE_CHECKING:
    from pairlearn_studio.store import Store

__all__ = [
    "AnswerCache", "Budget", "ChatEndpoint", "Filled", "Judgement", "LimitReached", "ModelError",
    "SaidOfItem", "Seat", "Wording", "by_items", "by_pairs", "chat_item_model",
    "chat_pair_model", "fill", "find_function", "item_model", "order_effects", "pair_model",
]  # fmt: skip

#: Pairs without a judgement after which a model that has judged none yet is given up.
STOP_AFTER = 5


def find_function(name: str) -> Callable[..., Any]:
    """Import ``module:function``, also from the current folder.

    Examples
    --------
    >>> find_function("math:hypot")(3, 4)
    5.0
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        function = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelError(f"{name!r} cannot be imported as module:function: {error}") from None
    if not callable(function):
        raise ModelError(f"{name!r} must be module:function, such as mymodel:judge")
    return function  # type: ignore[no-any-return]  # callable() does not tell its type


def pair_model(function: Callable[..., Any]) -> PairModel:
    """Wrap a function of two items, and check what it returns.

    Examples
    --------
    >>> pair_model(lambda left, right: (0.6, 0.2))("a", "b").difference
    0.2
    >>> pair_model(lambda left, right: (60, 20))("a", "b")
    Traceback (most recent call last):
    pairlearn_studio.limits.ModelError: <lambda> returned (60, 20): similarity must lie in [0, 1]
    """

    def ask(first: ItemView, second: ItemView, *about: str) -> Judgement:
        answer = function(first, second, *about)
        if answer is None:
            return Judgement(None, None, mass=0.0)
        if about == ("",):
            (s,) = _numbers(function, answer, [answer], {"similarity": 0})
            return Judgement(s, None)
        s, c = _numbers(function, answer, answer, {"similarity": 0, "difference": -1})
        return Judgement(s, c)

    return ask


def item_model(function: Callable[..., Any], classes: Collection[str] = ()) -> PosteriorModel:
    """Wrap a function of one item, and check what it returns, as `pair_model` does."""

    def ask(item: ItemView) -> SaidOfItem:
        answer = function(item)
        if answer is None:
            return SaidOfItem(None, mass=0.0)
        if not classes:
            return SaidOfItem(_numbers(function, answer, [answer], {"P(positive)": 0})[0])
        given = answer if isinstance(answer, Mapping) else {}
        p = _numbers(function, answer, map(given.get, classes), dict.fromkeys(classes, 0))
        if not math.isclose(math.fsum(p), 1, abs_tol=1e-3):
            raise ModelError(f"{_returned(function, answer)}: the sum must be 1")
        return SaidOfItem(dict(zip(classes, p, strict=True)))

    return ask


def _numbers(
    function: Callable[..., Any], answer: Any, values: Any, lowest: dict[str, int]
) -> list[float]:
    """The numbers in an answer of a function, each between a lowest value and 1."""
    returned, numbers = _returned(function, answer), dict[str, float]()
    with suppress(TypeError, ValueError):
        numbers = dict(zip(lowest, map(float, values), strict=True))
    if not numbers:
        expected = ", ".join(lowest)
        raise ModelError(f"{returned}: return numbers for {expected}, or None for “can't say”")
    for name, value in numbers.items():
        if not lowest[name] <= value <= 1:  # NaN neither
            raise ModelError(f"{returned}: {name} must lie in [{lowest[name]}, 1]")
    return [*numbers.values()]


def _returned(function: Callable[..., Any], answer: Any) -> str:
    return f"{getattr(function, '__name__', type(function).__name__)} returned {answer!r:.80}"


@dataclass
class Filled:
    """Result of a run: the judgements, in the order in which they were completed.

    ``skipped`` has the pairs without a judgement and the reason. ``stopped`` says why the run
    ended before the last pair: "max-requests", "max-cost", "interrupted", or "error", which is in
    ``error``; it is empty after a complete run.

    Examples
    --------
    >>> filled = Filled([Judgement(0.6, 0.1), Judgement(None, None, mass=0.2)])
    >>> filled.summary()
    {'judged': 1, 'cant_say': 1, 'skipped': [], 'infeasible': 0, 'orders': None, 'least_mass': 0.2}
    """

    judgements: list[Judgement] = field(default_factory=list)
    skipped: list[tuple[Pair, str]] = field(default_factory=list)
    stopped: str = ""
    error: ModelError | None = None
    proven: bool = False

    @property
    def done(self) -> int:
        """Number of pairs that need no further question."""
        return len(self.judgements) + len(self.skipped)

    def summary(self) -> dict[str, Any]:
        """Counts, skipped pairs, the effect of the order of the items, and the least mass."""
        judged = [j for j in self.judgements if not j.cant_say]
        numbers = np.array([(j.similarity, j.difference) for j in judged], np.float64)
        feasible = PairLabels(*numbers.reshape(-1, 2).T).feasible()
        effects = order_effects(j.orders for j in judged)
        return {
            "judged": len(judged),
            "cant_say": len(self.judgements) - len(judged),
            "skipped": [
                {"left": pair.left, "right": pair.right, "reason": reason}
                for pair, reason in self.skipped
            ],
            "infeasible": int((~feasible).sum()),
            "orders": effects and effects._asdict(),
            "least_mass": min((j.mass for j in self.judgements), default=None),
        }


def fill(
    pairs: Iterable[Pair],
    judge: Judge,
    keep: Callable[[Pair, Judgement, float], object],
    skip: Callable[[Pair, str], object] = lambda pair, reason: None,
    *,
    concurrent: int = 1,
    proven: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Filled:
    """Judge pairs, and store every judgement before a thread takes the next pair.

    A pair that fails for a reason of its own is skipped. At a limit, at an error, or after
    `STOP_AFTER` pairs without a single judgement, the pairs in flight are completed. None of these
    loses a judgement, and the result reports all of them.

    Parameters
    ----------
    pairs : iterable of Pair
    judge : callable
        Maps two item ids, and what the pair is asked about, to a judgement; called from
        ``concurrent`` threads.
    keep : callable
        Called with pair, judgement and seconds; returns when the judgement is on disk.
    skip : callable
        Called with a pair that is skipped, and the reason.
    concurrent : int
        Pairs judged at a time.
    proven : bool
        Whether the model has judged pairs before, so that failures are those of single pairs.
    progress : callable
        Called with the number of pairs done.
    """

    def work(pair: Pair) -> Judgement:
        begin = time.monotonic()
        try:
            judgement = judge(pair.left, pair.right, pair.about)
        except (LimitReached, ModelError, SkippedError):
            raise
        except Exception as error:
            raise ModelError(f"the model failed with {type(error).__name__}: {error}") from error
        if not judgement.text:
            keep(pair, judgement, time.monotonic() - begin)
        return judgement

    filled = Filled(proven=proven)
    source = iter(pairs)
    running: dict[Future[Judgement], Pair] = {}
    with ThreadPoolExecutor(concurrent, thread_name_prefix="pairlearn-model") as pool:
        try:
            while True:
                free = 0 if filled.stopped else concurrent - len(running)
                for pair in islice(source, free):
                    running[pool.submit(work, pair)] = pair
                if not running:
                    return filled
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    _settle(filled, running.pop(done), done, skip)
                    progress(filled.done)
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                raise
            filled.stopped = "interrupted"
            for done in wait(running).done:  # requests in flight are paid for
                _settle(filled, running[done], done, skip)
            return filled


def _settle(
    filled: Filled,
    pair: Pair,
    done: Future[Judgement],
    skip: Callable[[Pair, str], object],
) -> None:
    reason, error = "", None
    try:
        judgement = done.result()
        if judgement.text:
            reason = f"not understood: {judgement.text!r}"
        else:
            filled.judgements.append(judgement)
    except LimitReached as limit:
        filled.stopped = filled.stopped or str(limit)
    except SkippedError as skipped:
        reason = str(skipped)
    except ModelError as problem:
        error = ModelError(f"pair {pair.left}, {pair.right}: {problem}")
        error.__cause__ = problem.__cause__
    if reason:
        filled.skipped.append((pair, reason))
        skip(pair, reason)
        if len(filled.skipped) == STOP_AFTER and not (filled.proven or filled.judgements):
            error = ModelError(f"none of {STOP_AFTER} pairs has a judgement; the last: {reason}")
    if error is not None and filled.error is None:
        filled.stopped, filled.error = "error", error


class Seat:
    """The annotator for a model: without a link, and without assigned pairs.

    It is created with the first pair; its name cannot be that of a person. People keep their
    pairs: the model's answers count towards the overlap only where the project says so
    (``models_count``).
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._done = {answer.pair for answer in store.answers() if answer.annotator == name}
        for annotator in store.annotators():
            if annotator.name == name and annotator.origin != "model":
                raise ModelError(f"{name!r} is an annotator, not a model: give another --name")

    @property
    def proven(self) -> bool:
        """Whether the model has judged a pair of this project before."""
        return bool(self._done)

    def open_pairs(self) -> list[Pair]:
        """Pairs of the project that the model has not judged, in their order."""
        return [pair for pair in self._store.pairs() if pair.id not in self._done]

    def keep(self, pair: Pair, judgement: Judgement, seconds: float) -> None:
        """Store a judgement, unless another run has already stored one.

        SkippedError if the pair is asked about another class by now.
        """
        answer = Answer(
            judgement.similarity, judgement.difference, cant_say=judgement.cant_say,
            seconds=seconds, orders=judgement.orders,
        )  # fmt: skip

        def work(changes: Changes) -> None:
            if changes.first("SELECT about FROM pair WHERE id = ?", pair.id) != (pair.about,):
                raise SkippedError("the pair is now asked about another class: run again")
            changes.import_answer(self._name, pair.id, answer, revise=False)

        self._store.carry_out(work, who="model")

    def skip(self, pair: Pair, reason: str) -> None:
        """Note in the history that a pair was skipped."""
        self._store.carry_out(
            lambda changes: changes.log(
                SKIPPED,
                reason,
                annotator=changes.unlinked_annotator(self._name),
                pair=pair.id,
            ),
            who="model",
        )
