"""From runs to trained models: which runs train together, where, and how they did.

Runs of one data set that share architecture, number of pairs and epochs form fleets, in which a
group is one (prior, seed). On CUDA a fleet is as large as the device's memory allows; on a CPU,
where stacking gains nothing, small fleets run side by side in processes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from dataclasses import replace
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path

import torch

from pairlearn.data import load
from pairlearn.models import CONVOLUTIONAL, make_model
from pairlearn.paper.benchmark import (
    Benchmark,
    Checkpoints,
    PlannedFleet,
    Posteriors,
    Result,
    company_of,
)
from pairlearn.paper.runs import Run, grouped, risk_of
from pairlearn.risks import Supervised
from pairlearn.training import Precision, choose_device

MEMBERS_ON_CPU = 1  # stacking gains nothing there, and alone a run rounds as it always does
MODELS_ON_CUDA = 1024
MARGIN = 0.8  # of the free memory that is planned with; the rest is for what was not foreseen
COPIES = 16  # of parameters and activations, at most: what a model of a fleet takes


def largest_fleet(benchmark: Benchmark, runs: Sequence[Run], free: float | None = None) -> int:
    """How many models of these runs may train together on the benchmark's device.

    On a CPU one. On CUDA a power of two that fits, so that a little more or less free memory when
    a grid is resumed gives the same plan, and with it the same rounding. For the same reason
    ``runs`` are all of the experiment on that data set. ``free`` bytes default to the device's.
    """
    device = torch.device(benchmark.device)
    if device.type != "cuda":
        return MEMBERS_ON_CPU
    if runs[0].model in CONVOLUTIONAL:
        return 1
    if free is None:
        free, _ = torch.cuda.mem_get_info(device)
    # The more pairs there are, and the larger their batches, the more memory a model takes.
    largest = max(runs, key=lambda run: (run.batch_size, run.n_training_pairs))
    one = _bytes_of_a_model(benchmark, largest)
    if one > MARGIN * free:
        raise ValueError(
            f"one model takes {one / 2**20:,.0f} MiB and {MARGIN * free / 2**20:,.0f} MiB of the "
            "device may be used; free some of its memory or choose another device"
        )
    return min(MODELS_ON_CUDA, 1 << (int(MARGIN * free / one).bit_length() - 1))


def _bytes_of_a_model(benchmark: Benchmark, run: Run) -> float:
    """Bytes that a model does not exceed, by its numbers of parameters and activations.

    Adam, gradients, operands and what is kept for the backward pass were measured to take less.
    """
    module = make_model(run.model, tuple(benchmark.features.shape[1:]), 0)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    outputs = sum(parameter.numel() for parameter in module.parameters() if parameter.ndim == 1)
    numbers = parameters + 2 * run.batch_size * outputs + 2 * run.n_training_pairs
    return COPIES * 4.0 * numbers


def plan_fleets(runs: Sequence[Run], limit: int) -> list[list[list[Run]]]:
    """Divide runs of one data set into fleets of groups of at most `limit` models.

    Groups of different size waste places, since a fleet is as wide as its largest group; large
    groups are cut where that saves more than it costs.
    """
    fleets = []
    alike = grouped(runs, lambda r: (r.n_training_pairs, r.batch_size, r.epochs, r.window, r.model))
    for members in alike.values():
        groups = list(grouped(members, company_of).values())
        most = 1 if members[0].model in CONVOLUTIONAL else limit
        size = min(most, _best_size(groups))
        pieces = [
            group[start : start + size] for group in groups for start in range(0, len(group), size)
        ]
        per_fleet = most // size
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
        The experiment that they are part of. Fleets are planned for all of it, so that
        a run trains in the same company, and rounds alike, whichever others are done.
    data : Path, optional
        Folder of the data sets.
    device, precision
        As in `Fleet`.
    progress : callable, optional
        Called with epochs × models done, their total, and what is being trained.
    workers : int, optional
        Processes on a CPU; by default one a core. One trains in this process.
    checkpoints : Checkpoints, optional
        Where fleets keep their state from time to time; an interrupted one is resumed.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers={workers} must be 1 or more")
    device = str(choose_device(device))
    # Runs that differ in what their risk does not read are trained once.
    alike = grouped(runs, _as_trained)
    among = list(grouped(among or runs, _as_trained))
    sets = grouped(among, lambda run: (run.dataset, run.model, run.images))
    asked = {key: set(members).intersection(alike) for key, members in sets.items()}
    done, total = 0, sum(run.epochs for chosen in asked.values() for run in chosen)

    def say(text: str, epochs: int = 0) -> None:
        if progress is not None:
            progress(done + epochs, total, text)

    for (name, model, images), members in sets.items():
        chosen = asked[name, model, images]
        if not chosen:
            continue
        mixed = images == "published"
        dataset = load(name, data, images="published") if mixed else load(name, data)
        benchmark = Benchmark(dataset, model, device, precision)
        fleets = plan_fleets(members, largest_fleet(benchmark, members))
        fleets = [fleet for fleet in fleets if chosen.intersection(_runs_of(fleet))]
        trained_runs = [run for fleet in fleets for run in _runs_of(fleet)]
        # What trains in the company of what is asked for trains again.
        total += sum(run.epochs for run in trained_runs) - sum(run.epochs for run in chosen)
        say(f"{name}: annotators")
        # On CUDA annotators train together, so all of them do; on a CPU each alone.
        judged = trained_runs if device == "cpu" else members
        posteriors: Posteriors = {}
        for batch in benchmark.annotator_batches(judged):
            posteriors |= benchmark.annotate(batch)

        def report(fleet: PlannedFleet, epoch: int, risk: float, name: str = name) -> None:
            """After an epoch of a fleet that trains in this process, one at a time."""
            models = len(_runs_of(fleet))
            say(f"{name}: {models} models, mean risk {risk:.3f}", epoch * models)

        train = partial(benchmark.train, annotators=posteriors, checkpoints=checkpoints)
        with closing(
            _trained(train, fleets, report, 1 if device.startswith("cuda") else workers)
        ) as finished:
            for results in finished:
                done += sum(run.epochs for run, _ in results)
                say(name)
                for trained, accuracies in results:
                    yield from ((run, dict(accuracies)) for run in alike.get(trained, []))


Train = Callable[..., list[Result]]  # of a fleet, with all that those of a data set share
Report = Callable[[PlannedFleet, int, float], None]


def _trained(
    train: Train, fleets: Sequence[PlannedFleet], report: Report, workers: int | None
) -> Generator[list[Result], None, None]:
    """Train every fleet, in this process or several, and yield the results as they come."""
    count = min(len(fleets), workers or os.cpu_count() or 1)
    if count == 1:
        for fleet in fleets:
            yield train(fleet, progress=partial(report, fleet))
        return
    with ProcessPoolExecutor(count, get_context("forkserver"), _start_worker, (train,)) as pool:
        futures = [pool.submit(_train_in_worker, fleet) for fleet in fleets]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_train: Train  # what a worker process was started with


def _start_worker(train: Train) -> None:
    global _train
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _train = train


def _end_with_parent() -> None:
    """End this process when the one that started it does, even by SIGKILL."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _train_in_worker(fleet: PlannedFleet) -> list[Result]:
    return _train(fleet)


def _runs_of(fleet: PlannedFleet) -> list[Run]:
    return [run for group in fleet for run in group]


def _as_trained(run: Run) -> Run:
    """The run with ε = 1 or σ = 0 where its risk reads neither prior nor judgements."""
    risk = risk_of(run.method, run.estimator_prior)
    if isinstance(risk, Supervised):
        return replace(run, prior_factor=1.0, label_noise=0.0)
    return run if risk.needs_prior else replace(run, prior_factor=1.0)
