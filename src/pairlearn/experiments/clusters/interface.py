"""Where fleets are trained: what every cluster can do, and how its failures are told."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

from pairlearn.experiments.clusters.benchmark import Inputs

__all__ = ["Cluster", "ClusterError", "Failure", "attempt", "checked", "describe"]

T = TypeVar("T")
R = TypeVar("R")

LOSSES = 5
"""How often a task may be lost with its worker before the grid gives up."""


class ClusterError(RuntimeError):
    """A cluster cannot be reached or used, or a training on it failed.

    Examples
    --------
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


class Cluster(Protocol):
    """Workers that do the tasks of a grid.

    A task is done by ``work(inputs, task)``, where `work` is a function of a module, so
    that a worker can import it. Used as a context manager; what is under way when the
    block ends, or when the iterator of `run` is closed, is cancelled.
    """

    def __enter__(self) -> Cluster:
        """Start or join the cluster."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave it, and stop what was started for this grid."""

    def device(self, asked: str) -> str:
        """The device that the workers train on when `asked` is "auto", "cpu" or "cuda"."""

    def run(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        """Do every task and yield the results as they come, in any order."""

    def everywhere(self, work: Callable[[Inputs, T], R], inputs: Inputs, task: T) -> list[R]:
        """Do one task once on each machine whose device could differ from the others'."""


@dataclass(frozen=True)
class Failure:
    """What a worker hands back in place of a result when the work raised an exception.

    A value, since a raised one would look like a lost worker to some clusters.

    Parameters
    ----------
    reason : str
        The exception in one line.
    trace : str
        Where it was raised.
    """

    reason: str
    trace: str


def attempt(
    work: Callable[[Inputs, T], R],
    inputs: Inputs,
    task: T,
    lost: tuple[type[Exception], ...] = (),
) -> R | Failure:
    """Do a task; an exception becomes a `Failure`, unless it says that the worker is lost.

    Examples
    --------
    >>> attempt(lambda inputs, task: 1 / task, None, 0).reason
    'ZeroDivisionError: division by zero'
    """
    try:
        return work(inputs, task)
    except lost:
        raise
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc())


def checked(outcome: R | Failure, task: Any) -> R:
    """The result of a task; ClusterError with the run and the worker's words if it failed.

    Examples
    --------
    >>> checked(0.5, task="a run")
    0.5
    """
    if isinstance(outcome, Failure):
        raise ClusterError(
            f"{describe(task)} failed: {outcome.reason}. That is not tried again. "
            f"On the worker:\n{outcome.trace.rstrip()}"
        )
    return outcome


def describe(task: Any) -> str:
    """A task in words: of a fleet, how many runs it has and the first of them.

    Examples
    --------
    >>> from pairlearn.experiments import Run
    >>> describe([[Run(dataset="digits", prior=0.2, seed=0, method="sconf", pairs=9, epochs=1)]])
    'training of the run {"annotator":"paper",...}'
    """
    try:
        runs = [run.key() for group in task for run in group]
    except (AttributeError, TypeError):
        return f"training of the annotators (seed, prior) {task}"
    if len(runs) == 1:
        return f"training of the run {runs[0]}"
    return f"training of {len(runs)} runs together, the first being {runs[0]},"
