"""Many pairs judged by one model, several at a time, each kept as soon as it is judged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pairlearn.annotate.models.errors import LimitReached, ModelError, Stopped
from pairlearn.annotate.models.judging import Judge, Judgement
from pairlearn.labels import PairLabels

__all__ = ["Filled", "PairToJudge", "fill"]


class PairToJudge(NamedTuple):
    """A pair of the project by its number, and the ids of its ends.

    Examples
    --------
    >>> PairToJudge(1, "a", "b").left
    'a'
    """

    pair: int
    left: str
    right: str


@dataclass
class Filled:
    """What came out of a run.

    Attributes
    ----------
    judgements : list of Judgement
        Of this run, in the order in which they were ready.
    stopped : str
        Why it ended before the last pair: "max-requests", "max-cost", "interrupted" or
        "error"; empty if it did not.
    error : ModelError or None
        What "error" was.

    Examples
    --------
    >>> filled = Filled([Judgement(0.6, 0.1, 0.04, 1.0), Judgement(None, None, math.nan, 0.2)])
    >>> filled.summary()
    {'judged': 1, 'cant_say': 1, 'infeasible': 0, 'position_bias': 0.04, 'least_mass': 0.2}
    """

    judgements: list[Judgement] = field(default_factory=list)
    stopped: str = ""
    error: ModelError | None = None

    def summary(self) -> dict[str, Any]:
        """Counts, the mean position bias (None where orders were not asked), the least mass."""
        said = [
            (one.similarity, one.difference)
            for one in self.judgements
            if one.similarity is not None and one.difference is not None
        ]
        biases = [one.bias for one in self.judgements if not math.isnan(one.bias)]
        infeasible = 0
        if said:
            infeasible = int((~PairLabels.from_array(np.array(said)).feasible()).sum())
        return {
            "judged": len(said),
            "cant_say": len(self.judgements) - len(said),
            "infeasible": infeasible,
            "position_bias": math.fsum(biases) / len(biases) if biases else None,
            "least_mass": min((one.mass for one in self.judgements), default=None),
        }


def fill(
    pairs: Iterable[PairToJudge],
    judge: Judge,
    keep: Callable[[PairToJudge, Judgement, float], object],
    *,
    concurrent: int = 1,
    stop: Callable[[], None] = lambda: None,
    progress: Callable[[int], None] = lambda done: None,
) -> Filled:
    """Judge pairs, and keep every judgement before the next pair is taken.

    A limit lets the questions in flight end, an error ends those that wait, too; neither
    loses a judgement, and both are told in what is returned.

    Parameters
    ----------
    pairs : iterable of PairToJudge
        What is to be judged.
    judge : callable
        From both ids to a judgement; called from `concurrent` threads.
    keep : callable
        Called with pair, judgement and seconds; returns when it is on disk.
    concurrent : int
        Pairs at a time.
    stop : callable
        Wakes questions that wait for their turn, to end them.
    progress : callable
        Called with the number of pairs that are done.

    Examples
    --------
    >>> kept = []
    >>> filled = fill(
    ...     [PairToJudge(1, "a", "b")],
    ...     lambda left, right: Judgement(0.7, 0.1, 0.0, 1.0),
    ...     lambda pair, judgement, seconds: kept.append((pair.pair, judgement.similarity)),
    ... )
    >>> kept, filled.stopped
    ([(1, 0.7)], '')
    """
    if concurrent < 1:
        raise ValueError(f"concurrent must be at least 1; got {concurrent}")

    def work(pair: PairToJudge) -> Judgement:
        begin = time.monotonic()
        try:
            judgement = judge(pair.left, pair.right)
        except (LimitReached, Stopped, ModelError):
            raise
        except Exception as error:
            raise ModelError(f"the model failed with {type(error).__name__}: {error}") from error
        keep(pair, judgement, time.monotonic() - begin)
        return judgement

    filled = Filled()
    source = iter(pairs)
    running: dict[Future[Judgement], PairToJudge] = {}
    with ThreadPoolExecutor(concurrent, thread_name_prefix="pairlearn-model") as pool:
        try:
            while True:
                while not filled.stopped and len(running) < concurrent:
                    pair = next(source, None)
                    if pair is None:
                        break
                    running[pool.submit(work, pair)] = pair
                if not running:
                    return filled
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    _settle(filled, running.pop(done), done, stop)
                    progress(len(filled.judgements))
        except BaseException as error:
            stop()
            if not isinstance(error, KeyboardInterrupt):
                raise
            filled.stopped = "interrupted"
            for done in wait(running).done:  # those in flight are paid for
                _settle(filled, running[done], done, stop)
            return filled


def _settle(
    filled: Filled, pair: PairToJudge, done: Future[Judgement], stop: Callable[[], None]
) -> None:
    try:
        filled.judgements.append(done.result())
    except LimitReached as limit:
        filled.stopped = filled.stopped or str(limit)
    except Stopped:
        pass
    except ModelError as error:
        stop()
        if filled.error is None:
            filled.stopped = "error"
            filled.error = ModelError(f"pair {pair.left}, {pair.right}: {error}")
            filled.error.__cause__ = error.__cause__
