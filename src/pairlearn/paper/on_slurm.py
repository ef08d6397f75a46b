"""Slurm, through submitit: fleets are dealt out to the jobs of an array.

submitit hands functions and results over as pickles in a folder of its own, by design.
That folder lies beside the store of the grid unless another is named, only its owner can
read it, and it is removed when the grid is done. What we write there ourselves, the data
set and the posteriors of its annotators, are plain arrays, written once for all jobs.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch

from pairlearn.atomic import replacing
from pairlearn.data import Dataset, DatasetSpec
from pairlearn.extras import missing_extra
from pairlearn.paper.benchmark import AnnotatorKey, Benchmark, Inputs
from pairlearn.paper.workers import (
    LOSSES,
    Cluster,
    ClusterError,
    Failure,
    attempt,
    checked,
    describe,
)

T = TypeVar("T")
R = TypeVar("R")

JOBS = 100
MINUTES = 60
_PLAIN = {"cpus": "cpus_per_task", "gpus": "gpus_per_node", "time": "timeout_min"}  # whole numbers
_PASSED_ON = ("account", "constraint", "exclude", "gres", "mem", "nodelist", "partition", "qos")


class Slurm(Cluster):
    """Jobs of a Slurm cluster, or processes of this machine that stand in for them.

    Parameters
    ----------
    folder : Path
        For submitit's files, on a disk that all machines see.
    where : {"slurm", "local"}
        "local" runs the jobs on this machine, to try things out.
    options : mapping of str to str, optional
        What a job asks for: ``time`` in minutes (60), ``cpus``, ``gpus``, and as Slurm
        spells them ``account``, ``constraint``, ``exclude``, ``gres``, ``mem``,
        ``nodelist``, ``partition``, ``qos``.
    jobs : int
        Jobs at most; fleets are dealt out to them. With "local" they run as many at a
        time as the machine has cores.

    Examples
    --------
    >>> cluster = Slurm(Path("jobs"), options={"partition": "gpu", "gpus": "1"})
    >>> cluster.device("auto")
    'cuda'
    """

    def __init__(
        self,
        folder: Path,
        where: Literal["slurm", "local"] = "slurm",
        options: Mapping[str, str] | None = None,
        *,
        jobs: int = JOBS,
    ) -> None:
        if jobs < 1:
            raise ValueError(f"jobs must be 1 or more; got {jobs}")
        self.folder = folder.absolute() / f"{os.getpid()}-{secrets.token_hex(4)}"
        self.where, self.jobs = where, jobs
        self.parameters = _parameters(options or {})
        self._executor: Any = None
        self._files = 0
        self._made_parent = False

    def __enter__(self) -> Self:
        submitit = _imported()
        if self.where == "slurm" and shutil.which("sbatch") is None:
            raise ClusterError(
                "Slurm's `sbatch` is not on this machine; run this command on a login node, or "
                "try it out with --cluster slurm:local"
            )
        self._made_parent = not self.folder.parent.exists()
        # Others must not be able to put a pickle there.
        self.folder.mkdir(parents=True, mode=0o700)
        self._executor = submitit.AutoExecutor(self.folder / "%j", cluster=self.where)
        self._executor.update_parameters(name="pairlearn", **self.parameters)
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(error[1], ClusterError):
            return  # the logs are wanted
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._made_parent:
            with suppress(OSError):  # the jobs of another grid are there
                self.folder.parent.rmdir()

    def _without_gpus(self) -> str | None:
        if self.parameters.get("gpus_per_node") or self.parameters.get("slurm_gres"):
            return None
        return "the jobs ask for none; give --cluster-option gpus=1"

    def run(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        """Do every task in some job and yield the results as their jobs end."""
        job_of = self._job(work, inputs)
        count = min(self.jobs, len(tasks))
        waiting = [_Bundle(list(tasks[start::count])) for start in range(count)]
        running: list[tuple[Any, _Bundle]] = []
        try:
            while waiting or running:
                now, waiting = self._take(waiting, len(running))
                if now:
                    with _interruptible():
                        started = self._executor.map_array(job_of, [b.tasks for b in now])
                    running += zip(started, now, strict=True)
                ended = [one for one in running if one[0].done()]
                running = [one for one in running if one not in ended]
                for job, bundle in ended:
                    outcomes = self._outcomes(job, bundle)
                    if outcomes is None:
                        waiting += bundle.again()
                    else:
                        pairs = zip(outcomes, bundle.tasks, strict=True)
                        yield from (checked(outcome, task) for outcome, task in pairs)
                if running and not ended:
                    time.sleep(0.1 if self.where == "local" else 2.0)
        finally:
            for job, _ in running:
                job.cancel(check=False)

    def _take(self, waiting: list[_Bundle], running: int) -> tuple[list[_Bundle], list[_Bundle]]:
        """What to submit now, and what to keep: Slurm queues jobs, this machine does not."""
        free = (os.cpu_count() or 1) - running if self.where == "local" else len(waiting)
        return waiting[:free], waiting[free:]

    def _outcomes(self, job: Any, bundle: _Bundle) -> list[Any] | None:
        """What a job that ended hands back; None if it was lost and may be tried again."""
        errors = _imported().core.utils
        try:
            outcomes: list[Any] = job.result()
        except (errors.UncompletedJobError, errors.FailedJobError) as error:
            # Killed, out of time, or its machine is gone; or it never came to our code.
            if bundle.losses >= LOSSES:
                raise ClusterError(
                    f"{describe(bundle.tasks[0])} was lost {LOSSES + 1} times with its job; logs "
                    f"are in {self.folder}. The last words of job {job.job_id}:\n{error}"
                ) from None
            return None
        return outcomes

    def _job(self, work: Callable[[Inputs, Any], Any], inputs: Inputs) -> _Job:
        """What a job does, with the arrays that it reads on the disk."""
        self._files += 1
        benchmark, folder = inputs.benchmark, self.folder / f"inputs-{self._files}"
        arrays = {"x": benchmark.dataset.x, "y": benchmark.dataset.y}
        if inputs.posteriors:
            arrays["posteriors"] = np.stack(list(inputs.posteriors.values()))
        for name, array in arrays.items():
            with replacing(folder / f"{name}.npy") as part, part.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        recipe = benchmark.model, benchmark.device, benchmark.precision
        return _Job(work, folder, benchmark.dataset.spec, recipe, list(inputs.posteriors))


def _parameters(options: Mapping[str, str]) -> dict[str, Any]:
    """The options as submitit calls them."""
    parameters: dict[str, Any] = {"timeout_min": MINUTES, "cpus_per_task": 1}
    for name, value in options.items():
        if name in _PASSED_ON:
            parameters[f"slurm_{name}"] = value
        elif name in _PLAIN:
            if not value.isdigit():
                raise ValueError(f"cluster option {name}={value} must be a whole number")
            parameters[_PLAIN[name]] = int(value)
        else:
            known = ", ".join(sorted([*_PASSED_ON, *_PLAIN, "jobs", "folder"]))
            raise ValueError(f"cluster option {name!r} is unknown to slurm; it knows {known}")
    return parameters


def _imported() -> Any:
    try:
        import submitit
    except ImportError:
        raise missing_extra("slurm", "submitit", "Slurm") from None
    logger = logging.getLogger("submitit")
    for handler in list(logger.handlers):
        # It writes to the standard output, where our results go.
        if handler.get_name() == "submitit_out":
            logger.removeHandler(handler)
    return submitit


@dataclass(frozen=True)
class _Bundle:
    """The tasks of one job."""

    tasks: list[Any]
    losses: int = 0

    def again(self) -> list[_Bundle]:
        """Two jobs of half the tasks each: the time of one may have been too short."""
        half = (len(self.tasks) + 1) // 2
        halves = self.tasks[:half], self.tasks[half:]
        return [_Bundle(tasks, self.losses + 1) for tasks in halves if tasks]


# --- in a job -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """Read the inputs from the disk, then do one task after another."""

    work: Callable[[Inputs, Any], Any]
    folder: Path
    spec: DatasetSpec
    recipe: tuple[Any, ...]
    annotators: list[AnnotatorKey]

    def __call__(self, tasks: list[Any]) -> list[Any | Failure]:
        lost = _imported().core.utils.UncompletedJobError  # raised in here when time is up
        torch.set_num_threads(1)
        benchmark = Benchmark(Dataset(self.spec, self._array("x"), self._array("y")), *self.recipe)
        told = self._array("posteriors") if self.annotators else ()
        inputs = Inputs(benchmark, dict(zip(self.annotators, told, strict=True)))
        return [attempt(self.work, inputs, task, (lost,)) for task in tasks]

    def _array(self, name: str) -> Any:
        return np.load(self.folder / f"{name}.npy", allow_pickle=False)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Start processes that an interrupt ends, which is how submitit cancels those of this machine.

    A shell has what it runs in the background ignore interrupts, and processes inherit that.
    """
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if not ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
