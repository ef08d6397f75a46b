"""Train runs: plan which train together, distribute them, and yield their accuracies.

Runs of one data set with the same architecture, number of pairs and epochs form fleets, in which a
group is one (prior, seed). On CUDA a fleet is as large as the device's memory allows; on a CPU,
where stacking gains nothing, every run is a fleet, and processes train them in parallel.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed
from joblib.parallel import BACKENDS, get_active_backend

from pairlearn.models import CONVOLUTIONAL, make_model
from pairlearn.plugins import load_plugins
from pairlearn.risks import Supervised
from pairlearn.training import Precision, choose_device
from pairlearn_bench.benchmark import (
    RESNETS,
    Benchmark,
    Checkpoints,
    PlannedFleet,
    Result,
    group_key,
)
from pairlearn_bench.classes import ClassesBenchmark
from pairlearn_bench.data import load
from pairlearn_bench.runs import CLASSES, Run, grouped, risk_of

MEMBERS_ON_CPU = 1  # stacking gains nothing there, and a run alone always rounds the same
MODELS_ON_CUDA = 1024
MARGIN = 0.8  # share of the free memory to plan with
COPIES = 16  # of parameters and activations: upper bound of the memory of a model


def largest_fleet(benchmark: Benchmark, runs: Sequence[Run], free: float | None = None) -> int:
    """The number of models of these runs that may train together on the benchmark's device.

    On a CPU it is one, on CUDA a power of two that fits: resuming a grid with a little more or less
    free memory gives the same plan, and so the same rounding. For the same reason ``runs`` are all
    runs of the experiment on that data set. ``free`` bytes default to the device's.
    """
    device = torch.device(benchmark.device)
    if device.type != "cuda":
        return MEMBERS_ON_CPU
    if runs[0].model in CONVOLUTIONAL:
        return RESNETS[runs[0].model]
    if free is None:
        free, _ = torch.cuda.mem_get_info(device)
    # Memory grows with the batch size and the number of pairs.
    largest = max(runs, key=lambda run: (run.batch_size, run.n_training_pairs))
    size = _bytes_of_a_model(benchmark, largest)
    if size > MARGIN * free:
        raise ValueError(
            f"one model takes {size / 2**20:,.0f} MiB and {MARGIN * free / 2**20:,.0f} MiB of the "
            "device may be used; free some of its memory or choose another device"
        )
    return min(MODELS_ON_CUDA, 1 << (int(MARGIN * free / size).bit_length() - 1))


def _bytes_of_a_model(benchmark: Benchmark, run: Run) -> float:
    """Upper bound of the memory of a model, by its numbers of parameters and activations.

    Measurements with Adam, gradients, operands and the backward pass stayed below it.
    """
    module = make_model(run.model, tuple(benchmark.features.shape[1:]), 0)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    outputs = sum(parameter.numel() for parameter in module.parameters() if parameter.ndim == 1)
    numbers = parameters + 2 * run.batch_size * outputs + 2 * run.n_training_pairs
    return COPIES * 4.0 * numbers


def plan_fleets(runs: Sequence[Run], limit: int) -> list[list[list[Run]]]:
    """Divide runs of one data set into fleets of groups, of at most `limit` models each.

    A fleet is as wide as its largest group, so groups of different sizes waste places; large
    groups are divided if that saves more than it costs.
    """
    fleets = []
    alike = grouped(runs, lambda r: (r.n_training_pairs, r.batch_size, r.epochs, r.window, r.model))
    for members in alike.values():
        groups = list(grouped(members, group_key).values())
        convolutional = members[0].model in CONVOLUTIONAL
        # A group's own batch costs residual networks next to nothing.
        size = 1 if convolutional else min(limit, _best_size(groups))
        pieces = [
            group[start : start + size] for group in groups for start in range(0, len(group), size)
        ]
        per_fleet = limit // size
        fleets += [pieces[k : k + per_fleet] for k in range(0, len(pieces), per_fleet)]
    return fleets


def _best_size(groups: Sequence[Sequence[Run]]) -> int:
    def cost(size: int) -> float:
        pieces = sum(-(-len(group) // size) for group in groups)
        return pieces * (size + 0.15)  # a group's own batch costs about 0.15 models

    return min(range(1, max(map(len, groups)) + 1), key=cost)


Progress = Callable[[int, int, str], None]


def execute(
    runs: Sequence[Run],
    *,
    among: Sequence[Run] | None = None,
    data: Path | None = None,
    device: str = "auto",
    precision: Precision = "float32",
    progress: Progress | None = None,
    workers: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> Generator[Result, None, None]:
    """Train the runs and yield each with its accuracies, in the order they finish.

    The accuracies are means over the run's window: "paper" and "stratified" on the two test
    subsets, "annotator_paper" and "annotator_stratified" of the annotator; and all four with
    "_shifted", where log-odds are moved from the class prior of the annotator's population to that
    of the pairs.

    Parameters
    ----------
    runs : sequence of Run
        Any mix.
    among : sequence of Run, optional
        The experiment that they are part of. Fleets are planned for all of it, so that a run trains
        in the same fleet, with the same rounding, whichever others are finished.
    data : Path, optional
        Folder of the data sets.
    device, precision
        As in `Fleet`.
    progress : callable, optional
        Called with epochs × models done, their total, and a description of the current fleet.
    workers : int, optional
        Processes on a CPU; by default one per core. One trains in this process.
    checkpoints : Checkpoints, optional
        Where fleets save their state; an interrupted one is resumed.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers={workers} must be 1 or more")
    device = str(choose_device(device))
    # Runs that differ only in fields that their risk does not read are trained once.
    alike = grouped(runs, _as_trained)
    planned = list(grouped(among or runs, _as_trained))
    done, total = 0, sum(run.epochs for run in alike)

    def report(text: str, epochs: int = 0) -> None:
        if progress is not None:
            progress(done + epochs, total, text)

    sets = grouped(planned, lambda run: (run.dataset, run.model, run.images, run.method in CLASSES))
    for (name, model, images, several), members in sets.items():
        chosen = set(members).intersection(alike)
        if not chosen:
            continue
        kind = ClassesBenchmark if several else Benchmark
        benchmark = kind(load(name, data, images=images), model, device, precision)
        fleets = plan_fleets(members, largest_fleet(benchmark, members))
        fleets = [fleet for fleet in fleets if chosen.intersection(_runs_of(fleet))]
        trained = [run for fleet in fleets for run in _runs_of(fleet)]
        # The other runs of a fleet train again.
        total += sum(run.epochs for run in trained) - sum(run.epochs for run in chosen)
        report(f"{name}: annotators")
        # On CUDA annotators train together, so all of them do; on a CPU each alone.
        posteriors = benchmark.posteriors(trained if device == "cpu" else members)

        def after_epoch(fleet: PlannedFleet, epoch: int, risk: float, name: str = name) -> None:
            models = len(_runs_of(fleet))
            report(f"{name}: {models} models, mean risk {risk:.3f}", epoch * models)

        train = partial(benchmark.train, annotators=posteriors, checkpoints=checkpoints)
        count = 1 if device.startswith("cuda") else workers
        with closing(_train_fleets(train, fleets, after_epoch, count)) as finished:
            for results in finished:
                done += sum(run.epochs for run, _ in results)
                report(name)
                for representative, accuracies in results:
                    for run in alike.get(representative, []):
                        yield run, dict(accuracies)


Train = Callable[..., list[Result]]
AfterEpoch = Callable[[PlannedFleet, int, float], None]


def _train_fleets(
    train: Train, fleets: Sequence[PlannedFleet], after_epoch: AfterEpoch, workers: int | None
) -> Generator[list[Result], None, None]:
    """Train every fleet and yield results as they finish, in this process or by joblib.

    `joblib.parallel_config` chooses another backend, such as that of a Ray or Dask cluster.
    """
    backend, configured = get_active_backend()
    count = min(len(fleets), workers or configured or os.cpu_count() or 1)
    if count == 1:
        for fleet in fleets:
            yield train(fleet, progress=partial(after_epoch, fleet))
        return
    # Other backends, such as Ray's, return results a round of fleets at a time.
    streams = backend.supports_return_generator
    size, kind = (len(fleets), "generator_unordered") if streams else (count, "list")
    begin: dict[str, Any] = {}
    if isinstance(backend, BACKENDS["loky"]):  # those of a cluster end their processes themselves
        begin = {"initializer": _begin_worker, "initargs": (os.getpid(),)}
    for start in range(0, len(fleets), size):
        tasks = [delayed(_train_in_worker)(train, one) for one in fleets[start : start + size]]
        yield from Parallel(n_jobs=count, return_as=kind, **begin)(tasks)


def _train_in_worker(train: Train, fleet: PlannedFleet) -> list[Result]:
    _prepare_worker()
    return train(fleet)


@cache
def _prepare_worker() -> None:
    torch.set_num_threads(1)
    load_plugins()


def _begin_worker(parent: int) -> None:
    """Watch the parent from the start: it may end before the first task."""
    watched = parent if os.name == "posix" else os.getppid()  # Windows may have a launcher between
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process when its parent has ended, even by SIGKILL."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _runs_of(fleet: PlannedFleet) -> list[Run]:
    return [run for group in fleet for run in group]


def _as_trained(run: Run) -> Run:
    """The run with ε = 1 or σ = 0 if its risk does not read the prior or the judgements."""
    if run.method in CLASSES:
        return run
    risk = risk_of(run.method, run.estimator_prior)
    if isinstance(risk, Supervised):
        return replace(run, prior_factor=1.0, label_noise=0.0)
    return run if risk.needs_prior else replace(run, prior_factor=1.0)
