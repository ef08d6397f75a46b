"""Training on one machine: in this process on CUDA, in several of one thread on a CPU."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from types import TracebackType
from typing import Any, TypeVar

import torch

from pairlearn.experiments.clusters.benchmark import Inputs, train_fleet
from pairlearn.training import choose_device

__all__ = ["Processes"]

T = TypeVar("T")
R = TypeVar("R")


class Processes:
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

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left to stop: processes end with the iterator of `run`."""

    def device(self, asked: str) -> str:
        """The device of that name; "auto" is CUDA where there is one."""
        return str(choose_device(asked))

    def run(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        """Do every task and yield the results as they come."""
        on_cuda = torch.device(inputs.benchmark.device).type == "cuda"
        # Annotators are few and train briefly: processes take as long to start.
        brief = work is not train_fleet
        if on_cuda or self.workers == 1 or len(tasks) == 1 or brief:
            return (work(inputs, task) for task in tasks)
        return self._in_processes(work, inputs, tasks)

    def everywhere(self, work: Callable[[Inputs, T], R], inputs: Inputs, task: T) -> list[R]:
        """Do one task here."""
        return [work(inputs, task)]

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
