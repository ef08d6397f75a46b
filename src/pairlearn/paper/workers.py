"""Where fleets are trained: what every cluster can do, and how its failures are told."""

from __future__ import annotations

import os
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Self, TypeVar

import torch

from pairlearn.paper.benchmark import Inputs, train_fleet
from pairlearn.training import choose_device

__all__ = ["Cluster", "ClusterError", "open_cluster"]

T = TypeVar("T")
R = TypeVar("R")

LOSSES = 5
"""How often a task may be lost with its worker before the grid gives up."""


class ClusterError(RuntimeError):
    """A cluster cannot be reached or used, or a training on it failed."""


class Cluster(ABC):
    """Workers that do the tasks of a grid.

    A task is done by ``work(inputs, task)``, where `work` is a function of a module, so
    that a worker can import it. Used as a context manager; what is under way when the
    block ends, or when the iterator of `run` is closed, is cancelled.
    """

    @abstractmethod
    def run(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        """Do every task and yield the results as they come, in any order."""

    def everywhere(self, work: Callable[[Inputs, T], R], inputs: Inputs, task: T) -> list[R]:
        """Do one task once on each machine whose device could differ from the others'."""
        return list(self.run(work, inputs, [task]))

    def device(self, asked: str) -> str:
        """The device that the workers train on when `asked` is "auto", "cpu" or "cuda"."""
        lacking = self._without_gpus()
        if asked.startswith("cuda") and lacking:
            raise ClusterError(f"device='cuda' needs a GPU and {lacking}, or choose device='cpu'")
        return "cpu" if lacking or asked == "cpu" else "cuda"

    def _without_gpus(self) -> str | None:  # noqa: B027
        """Why the workers have no GPU, and what to do for one; None if they have."""

    def __enter__(self) -> Self:
        """Start or join the cluster."""
        return self

    def __exit__(self, *error: object) -> None:  # noqa: B027
        """Leave it, and stop what was started for this grid."""


@dataclass(frozen=True)
class Failure:
    """What a worker hands back in place of a result when the work raised an exception.

    A value, since a raised one would look like a lost worker to some clusters.
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
    >>> from pairlearn.paper import Run
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


class Processes(Cluster):
    """Workers are processes of this machine; the default.

    Parameters
    ----------
    workers : int, optional
        Processes on a CPU; by default one a core. One trains in this process.

    Examples
    --------
    >>> with Processes(workers=2) as cluster:
    ...     cluster.device("cpu")
    'cpu'
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be 1 or more; got {workers}")
        self.workers = workers

    def device(self, asked: str) -> str:
        """The device of that name; "auto" is CUDA where there is one."""
        return str(choose_device(asked))

    def run(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        """Do every task and yield the results as they come."""
        # Annotators are few and train briefly: processes take as long to start.
        brief = work is not train_fleet or len(tasks) == 1
        if brief or self.workers == 1 or on_cuda(inputs):
            return (work(inputs, task) for task in tasks)
        return self._in_processes(work, inputs, tasks)

    def _in_processes(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        count = min(len(tasks), self.workers or os.cpu_count() or 1)
        with ProcessPoolExecutor(
            count, get_context("spawn"), _start_worker, (inputs.to_share(),)
        ) as pool:
            futures = [pool.submit(_work, work, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def on_cuda(inputs: Inputs) -> bool:
    """Whether the tasks train on a GPU."""
    return torch.device(inputs.benchmark.device).type == "cuda"


_inputs: Inputs  # what a worker process was started with


def _start_worker(inputs: Inputs) -> None:
    global _inputs
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _inputs = inputs


def _end_with_parent() -> None:
    """End this process when the one that started it does, even by SIGKILL."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(work: Callable[[Inputs, Any], R], task: Any) -> R:
    return work(_inputs, task)


def open_cluster(
    name: str = "local", options: Sequence[str] = (), folder: Path = Path("jobs")
) -> Cluster:
    """The cluster of that name, to be used in a ``with`` block.

    Parameters
    ----------
    name : str
        "local" for processes of this machine; "ray" for a Ray cluster that is started
        here, "ray:HOST:PORT" for one that runs, "ray:auto" for the one that runs on this
        machine; "slurm" for jobs of Slurm, "slurm:local" for such jobs on this machine.
    options : sequence of str
        ``KEY=VALUE``. Of "local": workers. Of "ray": cpus, gpus. Of "slurm": jobs,
        folder, and what a job asks for, see :class:`~.on_slurm.Slurm`.
    folder : Path
        Where Slurm's jobs are kept if no option says otherwise.

    Returns
    -------
    Cluster

    Examples
    --------
    >>> with open_cluster("local", ["workers=2"]) as cluster:
    ...     cluster.device("cpu")
    'cpu'
    """
    kind, _, where = name.partition(":")
    given = _parsed(options)
    if kind == "local" and not where:
        return Processes(**_counts(given, kind, "workers"))
    if kind == "ray" and (where or name == "ray"):
        from pairlearn.paper.on_ray import Ray

        return Ray(where or None, **_counts(given, kind, "cpus", "gpus"))
    if name in ("slurm", "slurm:local"):
        from pairlearn.paper.on_slurm import Slurm

        folder = Path(given.pop("folder", folder))
        jobs = _counts({k: given.pop(k) for k in ("jobs",) if k in given}, kind, "jobs")
        return Slurm(folder, "local" if where else "slurm", given, **jobs)
    raise ValueError(
        f"cluster {name!r} is unknown; choose local, ray, ray:HOST:PORT, ray:auto, slurm or "
        "slurm:local"
    )


def _parsed(options: Sequence[str]) -> dict[str, str]:
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals and value):
            raise ValueError(f"cluster option {option!r} is not KEY=VALUE, such as time=60")
        parsed[key.strip()] = value.strip()
    return parsed


def _counts(given: dict[str, str], kind: str, *known: str) -> dict[str, int]:
    """The options of a cluster that takes whole numbers only."""
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"cluster option {key!r} is unknown to {kind}; it knows {known}")
        if not value.isdigit():
            raise ValueError(f"cluster option {key}={value} must be a whole number")
    return {key: int(value) for key, value in given.items()}
