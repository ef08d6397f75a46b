"""A Ray cluster: one that runs already, or one of this machine's cores for this grid.

The data set and the posteriors of its annotators are put into Ray's object store once;
workers on the same machine read them where they lie. A task that is lost with its worker
or its machine is done again by Ray; an exception in the training itself is not.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TypeVar

import torch

from pairlearn import __version__
from pairlearn.extras import missing_extra
from pairlearn.paper.benchmark import Benchmark, Inputs
from pairlearn.paper.workers import (
    LOSSES,
    Cluster,
    ClusterError,
    Failure,
    attempt,
    checked,
    describe,
    on_cuda,
)

T = TypeVar("T")
R = TypeVar("R")

OBJECT_STORE_BYTES = 4 * 2**30  # at most, and never more than half of the shared memory
_SMALLEST_STORE = 80 * 2**20  # Ray refuses less
_LOOPBACK = "127.0.0.1"
# Read when Ray is imported. The second is what makes Ray's servers listen on the loopback
# interface alone: by default, on Linux, other machines may join a cluster and can reach it.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
_PRIVATE = _QUIET | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class Ray(Cluster):
    """Workers of a Ray cluster: one task a CPU, or one a GPU where there are any.

    In a process that is connected to a Ray cluster already, that one is used and left
    running.

    Parameters
    ----------
    address : str, optional
        ``HOST:PORT`` of a running cluster, or "auto" for the one of this machine. By
        default a cluster of this machine is started, which nobody else can reach, and
        stopped at the end.
    cpus, gpus : int, optional
        Of the cluster that is started; by default what the machine has.

    Examples
    --------
    >>> Ray("10.0.0.1:6379")
    Ray('10.0.0.1:6379')
    """

    def __init__(
        self, address: str | None = None, *, cpus: int | None = None, gpus: int | None = None
    ) -> None:
        for name, count in (("cpus", cpus), ("gpus", gpus)):
            if count is None:
                continue
            if address is not None:
                raise ValueError(f"{name}={count} is for a cluster that is started, not joined")
            if count < (name == "cpus"):
                raise ValueError(f"{name} must be {int(name == 'cpus')} or more; got {count}")
        self.address, self.cpus, self.gpus = address, cpus, gpus
        self._open = ExitStack()
        self._ray: Any = None
        self._put: dict[int, tuple[Any, Any]] = {}  # what is in the object store, by identity

    def __repr__(self) -> str:
        return f"Ray({self.address!r})"

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            self._ray = opening.enter_context(_connected(self.address, self.cpus, self.gpus))
            self._open = opening.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._put.clear()
        self._open.close()

    def _without_gpus(self) -> str | None:
        has = self._ray.cluster_resources().get("GPU")
        return None if has else "the Ray cluster has none; add a machine with one"

    def run(
        self, work: Callable[[Inputs, T], R], inputs: Inputs, tasks: Sequence[T]
    ) -> Generator[R, None, None]:
        """Do every task as a Ray task and yield the results as they come."""
        submit = self._submitter(work, inputs)
        return self._results({submit(task): task for task in tasks})

    def everywhere(self, work: Callable[[Inputs, T], R], inputs: Inputs, task: T) -> list[R]:
        """Do one task on each machine of the cluster that has a device of that kind."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        kind = "GPU" if on_cuda(inputs) else "CPU"
        submit = self._submitter(work, inputs)
        pending = {
            submit(task, NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)): task
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get(kind)
        }
        return list(self._results(pending))

    def _submitter(self, work: Callable[[Inputs, T], R], inputs: Inputs) -> Callable[..., Any]:
        """A function that makes a task a Ray task and returns the reference to its result."""
        shared = self._shared(inputs.benchmark, inputs.posteriors)
        # The process of a GPU task ends with it, as Ray does by default: that frees the device.
        needs = {"num_cpus": 0, "num_gpus": 1} if on_cuda(inputs) else {"num_cpus": 1}
        remote = self._ray.remote(max_retries=LOSSES, retry_exceptions=False, **needs)(_do)

        def submit(task: T, strategy: Any = "DEFAULT") -> Any:
            options = remote.options(scheduling_strategy=strategy, name=work.__name__)
            return options.remote(__version__, work, shared, task)

        return submit

    def _shared(self, *things: Any) -> list[Any]:
        """References to the things in the object store, each put there once."""
        self._put = {
            id(thing): self._put.get(id(thing)) or (thing, self._ray.put(thing)) for thing in things
        }
        # In a list: Ray would hand every task what a bare reference stands for.
        return [self._put[id(thing)][1] for thing in things]

    def _results(self, pending: dict[Any, T]) -> Generator[Any, None, None]:
        try:
            while pending:
                (ready, *_), _ = self._ray.wait(list(pending), num_returns=1)
                task = pending.pop(ready)
                try:
                    outcome = self._ray.get(ready)
                except self._ray.exceptions.RayError as error:
                    raise ClusterError(
                        f"{describe(task)} was lost {LOSSES + 1} times with its worker, or Ray "
                        f"gave it up: {error}"
                    ) from None
                yield checked(outcome, task)
        finally:
            for reference in pending:
                self._ray.cancel(reference, force=True)


@contextmanager
def _connected(address: str | None, cpus: int | None, gpus: int | None) -> Iterator[Any]:
    """Ray at an address, or on this machine, where it ends with this process or before."""
    if address not in (None, "auto"):
        _check_answers(address)
    with _environment(_PRIVATE if address is None else _QUIET), ExitStack() as ending:
        try:
            import ray
        except ImportError:
            raise missing_extra("ray", "ray", "a Ray cluster") from None
        if not ray.is_initialized():
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            folder = ending.enter_context(
                tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
            )
            ending.callback(ray.shutdown)
            if address is None:
                _start(ray, folder, num_cpus=cpus, num_gpus=gpus, **quiet)
            else:
                _join(ray, address, **quiet)
        yield ray


def _start(ray: Any, folder: str, **options: Any) -> None:
    """A cluster on this machine, heard by nobody else."""
    context = ray.init(
        address="local",
        include_dashboard=False,
        object_store_memory=_object_store_bytes(),
        _temp_dir=folder,
        **options,
    )
    if context.address_info["node_ip_address"] != _LOOPBACK:
        raise ClusterError(
            "ray was imported before it could be told to stay on this machine; set "
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 in the environment"
        )


def _join(ray: Any, address: str, **options: Any) -> None:
    try:
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"the Ray cluster at {address!r} cannot be joined: {error}\n"
            "`ray start --head` starts one on this machine"
        ) from None


def _check_answers(address: str) -> None:
    """Refuse an address at which nothing listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if "/" in address or not host or not port.isdigit():
        raise ClusterError(
            f"the address {address!r} of a Ray cluster is not HOST:PORT, such as 10.0.0.1:6379; "
            "run this command on a machine of the cluster, where `ray:auto` finds it"
        )
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"no Ray cluster answers at {address!r} ({error}); `ray start --head` starts one and "
            "says its address"
        ) from None


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ.update(before)


def _object_store_bytes() -> int:
    """A modest object store: it lies in shared memory, of which containers have little."""
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:  # not on Linux
        free = OBJECT_STORE_BYTES
    return max(_SMALLEST_STORE, min(OBJECT_STORE_BYTES, free // 2))


# --- on a worker ----------------------------------------------------------------------------

_held: dict[str, Any] = {}  # what this worker has read from the object store, by reference


def _do(version: str, work: Callable[[Inputs, T], R], shared: list[Any], task: T) -> R | Failure:
    """Do a task on a worker."""
    if version != __version__:
        words = f"the worker has pairlearn {__version__}, the machine that asks {version}"
        return Failure(f"{words}; install one version on all machines", "")
    torch.set_num_threads(1)
    benchmark, posteriors = _read(shared)
    return attempt(work, Inputs(benchmark, posteriors), task)


def _read(references: list[Any]) -> list[Any]:
    """What the references stand for; kept, so that one task after another finds it there."""
    global _held
    import ray

    keys = [reference.hex() for reference in references]
    new = {k: ray.get(r) for k, r in zip(keys, references, strict=True) if k not in _held}
    for thing in new.values():
        if isinstance(thing, Benchmark):
            with warnings.catch_warnings():
                # The object store is read-only, and torch warns that it cannot keep to that.
                # As a tensor a fleet does not copy the features, and nothing writes to them.
                warnings.filterwarnings("ignore", "The given NumPy array is not", UserWarning)
                thing.features = torch.as_tensor(thing.features)
    _held = {key: new[key] if key in new else _held[key] for key in keys}
    return [_held[key] for key in keys]
