"""From runs to trained models: which runs train together, on what, and how they did.

Runs of one data set that share architecture, number of pairs and epochs form fleets.
Within a fleet a group is one (prior, seed): the same pairs, the same batches. On CUDA
a fleet is as large as the grid; on a CPU, where stacking gains nothing, small fleets
run side by side in processes of one thread each.
"""

from __future__ import annotations

import math
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn.annotators import Annotator, add_noise, judge, train_annotators
from pairlearn.datasets import Dataset, as_features, as_images, load, split_indices
from pairlearn.experiments.spec import Run
from pairlearn.risks import Supervised, make_risk
from pairlearn.sampling import sample_pairs, subset_at_prior
from pairlearn.training import Fleet, Group, Member, Precision, TestSet, choose_device

__all__ = ["execute", "plan_fleets"]

T = TypeVar("T")
Progress = Callable[[int, int, str], None]
Result = tuple[Run, dict[str, float]]
Posteriors = dict[tuple[int, float | None], NDArray[np.float32]]  # by seed and prior
MEMBERS_ON_CPU = 1  # stacking gains nothing there, and alone a run rounds as it always does
MODELS_ON_CUDA = 1024


def execute(
    runs: Sequence[Run],
    *,
    among: Sequence[Run] | None = None,
    data: Path | None = None,
    device: str = "auto",
    precision: Precision = "float32",
    progress: Progress | None = None,
    workers: int | None = None,
) -> Iterator[Result]:
    """Train the runs and yield each with its accuracies, in the order they finish.

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

    Yields
    ------
    (Run, dict)
        Accuracies, means over the run's window: "paper" and "stratified" on the two
        test subsets, "annotator_paper" and "annotator_stratified" of the annotator; and
        all four with "_shifted", where log-odds are moved from the class prior of the
        annotator's population to that of the pairs.
    """
    # Runs that differ in what their risk does not read are trained once.
    alike = _grouped(runs, _as_trained)
    asked = set(alike)
    among = list(_grouped(among or runs, _as_trained))
    on_cuda = choose_device(device).type == "cuda"
    plans = []
    for key, members in _grouped(among, lambda run: (run.dataset, run.model)).items():
        fleets = plan_fleets(members, MODELS_ON_CUDA if on_cuda else MEMBERS_ON_CPU)
        fleets = [fleet for fleet in fleets if any(asked.intersection(group) for group in fleet)]
        if fleets:
            plans.append((key, members, fleets))
    total = sum(run.epochs for *_, fleets in plans for run in _runs_of(fleets))
    done = 0
    for (name, model), members, fleets in plans:
        benchmark = Benchmark(load(name, data), model, device, precision)
        # On CUDA annotators train together, so all of them do; on a CPU each alone.
        annotators = benchmark.annotate(members if on_cuda else _runs_of(fleets))
        if on_cuda or workers == 1 or len(fleets) == 1:
            finished: Iterator[list[Result]] = (
                benchmark.train(fleet, annotators, _reporter(progress, start, total, fleet))
                for start, fleet in _with_starts(fleets, done)
            )
        else:
            finished = _in_processes(benchmark, fleets, annotators, workers)
        for results in finished:
            done += sum(run.epochs for run, _ in results)
            if progress is not None:
                progress(done, total, name)
            for trained, accuracies in results:
                yield from ((run, dict(accuracies)) for run in alike.get(trained, []))


@dataclass
class Benchmark:
    """A loaded data set with what its runs have in common."""

    dataset: Dataset
    model: str
    device: str
    precision: Precision

    def __post_init__(self) -> None:
        prepare = as_images if self.model == "resnet34" else as_features
        self.features = prepare(self.dataset.x, self.dataset.spec)
        self.positive = self.dataset.spec.is_positive(self.dataset.y)
        self._used: Fleet | None = None

    def rows(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of the training and of the test split."""
        everything = np.arange(len(self.dataset.y))
        train, test = split_indices(self.dataset, seed)
        return everything[train], everything[test]

    def annotate(self, runs: Sequence[Run]) -> Posteriors:
        """Posteriors of every annotator that the runs ask for, by seed and prior."""
        wanted = sorted({_annotator_of(run) for run in runs}, key=str)
        posteriors: Posteriors = {}
        alone = self.model == "resnet34" or choose_device(self.device).type == "cpu"
        # Of one prior only: a fleet's annotators learn from equally many instances.
        batches = _grouped(wanted, (lambda one: one) if alone else (lambda one: one[1]))
        for batch in batches.values():
            annotators = []
            for seed, prior in batch:
                train, _ = self.rows(seed)
                annotators.append(Annotator(train, self.positive[train], seed, prior))
            trained = train_annotators(
                self.features,
                annotators,
                self.model,
                batch_size=self.dataset.spec.batch_size,
                learning_rate=self.dataset.spec.learning_rate,
                weight_decay=self.dataset.spec.weight_decay,
                device=self.device,
                precision=self.precision,
            )
            posteriors |= dict(zip(batch, trained, strict=True))
        return posteriors

    def train(
        self,
        groups: Sequence[Sequence[Run]],
        annotators: Posteriors,
        progress: Callable[[int, float], None] | None = None,
    ) -> list[Result]:
        """Train one fleet and measure it."""
        run = groups[0][0]
        fleet = self._fleet([self._group(group, annotators) for group in groups], run.batch_size)
        history = fleet.fit(run.epochs, window=run.window, progress=progress)
        results = []
        for g, group in enumerate(groups):
            test = fleet.groups[g].test
            assert test is not None
            for m, one in enumerate(group):
                accuracy = {name: float(values[:, g, m].mean()) for name, values in history.items()}
                told = annotators[_annotator_of(one)][test.rows]
                for name, subset in test.subsets.items():
                    threshold = 1 / (1 + np.exp(-test.thresholds.get(name, 0.0)))
                    agreement = (told[subset] > threshold) == test.positive[subset]
                    accuracy[f"annotator_{name}"] = float(agreement.mean())
                results.append((one, accuracy))
        return results

    def _fleet(self, groups: list[Group], batch_size: int) -> Fleet:
        """A fleet of these groups; for one convolutional net after another the same one."""
        if self._used is not None and self._used.can_restart(groups):
            self._used.restart(groups)
            return self._used
        fleet = Fleet(
            self.features,
            groups,
            self.model,
            batch_size=batch_size,
            device=self.device,
            precision=self.precision,
        )
        if self.model == "resnet34":
            self._used = fleet
        return fleet

    def _group(
        self,
        runs: Sequence[Run],
        annotators: Posteriors,
    ) -> Group:
        first = runs[0]
        train, test = self.rows(first.seed)
        positive = self.positive[train]
        ends = sample_pairs(positive, first.n_training_pairs, first.prior, first.seed)
        pairs = train[ends]
        members = []
        for run in runs:
            risk = make_risk(run.method, prior=run.estimator_prior)
            labels: Any = positive[ends]
            if risk.judgements == ("similarity", "difference"):
                told = judge(annotators[_annotator_of(run)], pairs)
                labels = add_noise(told, run.label_noise, run.seed).to_array()
            members.append(Member(risk, labels, run.learning_rate, run.weight_decay, run.seed))
        return Group(pairs, members, first.seed, self._test_set(test, first))

    def _test_set(self, rows: NDArray[np.int64], run: Run) -> TestSet:
        positive, classes = self.positive[rows], self.dataset.y[rows]
        # Only the image sets were truncated in class order; the others were shuffled.
        in_order = classes if self.dataset.spec.official_split else None
        subsets = {
            "paper": subset_at_prior(positive, run.prior, "paper", classes=in_order),
            "stratified": subset_at_prior(
                positive, run.prior, "stratified", classes=classes, seed=run.seed
            ),
        }
        shifted = {f"{name}_shifted": rows for name, rows in subsets.items()}
        return TestSet(
            rows, positive, subsets | shifted, dict.fromkeys(shifted, -self._prior_shift(run))
        )

    def _prior_shift(self, run: Run) -> float:
        """What to add to the log-odds of the annotator's population to get to the pairs'."""
        if run.annotator == "calibrated":
            return 0.0
        train, _ = self.rows(run.seed)
        natural = self.positive[train].mean()
        return math.log(run.prior / (1 - run.prior)) - math.log(natural / (1 - natural))


def plan_fleets(runs: Sequence[Run], limit: int) -> list[list[list[Run]]]:
    """Divide runs of one data set into fleets of groups of at most `limit` models.

    Groups of different size waste places, since a fleet is as wide as its largest
    group; large groups are cut where that saves more than it costs.

    Examples
    --------
    >>> def run(prior, method):
    ...     return Run(dataset="digits", prior=prior, seed=0, method=method, pairs=9, epochs=1)
    >>> methods = ["confdiff-none", "confdiff-abs", "sconf-none", "sconf-abs"]
    >>> runs = [run(0.2, m) for m in methods] + [run(0.5, m) for m in methods[:2]]
    >>> [[len(group) for group in fleet] for fleet in plan_fleets(runs, limit=100)]
    [[2, 2, 2]]
    """
    fleets = []
    alike = _grouped(
        runs, lambda r: (r.n_training_pairs, r.batch_size, r.epochs, r.window, r.model)
    )
    for members in alike.values():
        groups = list(_grouped(members, lambda run: (run.prior, run.seed)).values())
        size = 1 if members[0].model == "resnet34" else min(limit, _best_size(groups))
        pieces = [
            group[start : start + size] for group in groups for start in range(0, len(group), size)
        ]
        per_fleet = max(1, limit // size)
        if members[0].model == "resnet34":
            per_fleet = 1
        fleets += [pieces[k : k + per_fleet] for k in range(0, len(pieces), per_fleet)]
    return fleets


def _best_size(groups: Sequence[Sequence[Run]]) -> int:
    def cost(size: int) -> float:
        pieces = sum(-(-len(group) // size) for group in groups)
        return pieces * (size + 0.15)  # a group's own batch costs about 0.15 models

    return min(range(1, max(map(len, groups)) + 1), key=cost)


def _runs_of(fleets: Sequence[Sequence[Sequence[Run]]]) -> list[Run]:
    return [run for fleet in fleets for group in fleet for run in group]


def _with_starts(
    fleets: Sequence[list[list[Run]]], start: int
) -> Iterator[tuple[int, list[list[Run]]]]:
    """Each fleet with the epochs done before it."""
    for fleet in fleets:
        yield start, fleet
        start += sum(run.epochs for run in _runs_of([fleet]))


def _as_trained(run: Run) -> Run:
    """The run with ε = 1 or σ = 0 where its risk reads neither prior nor judgements."""
    risk = make_risk(run.method, prior=run.estimator_prior)
    if isinstance(risk, Supervised):
        return replace(run, prior_factor=1.0, label_noise=0.0)
    return run if hasattr(risk, "prior") else replace(run, prior_factor=1.0)


def _annotator_of(run: Run) -> tuple[int, float | None]:
    return run.seed, (run.prior if run.annotator == "calibrated" else None)


def _grouped(things: Sequence[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    groups: dict[Any, list[T]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups


def _reporter(
    progress: Progress | None, done: int, total: int, fleet: list[list[Run]]
) -> Callable[[int, float], None] | None:
    if progress is None:
        return None
    models = sum(map(len, fleet))

    def report(epoch: int, risk: float) -> None:
        text = f"{fleet[0][0].dataset}: {models} models, mean risk {risk:.3f}"
        progress(done + epoch * models, total, text)

    return report


def _in_processes(
    benchmark: Benchmark,
    fleets: list[list[list[Run]]],
    annotators: Posteriors,
    workers: int | None,
) -> Iterator[list[Result]]:
    count = min(len(fleets), workers or os.cpu_count() or 1)
    with ProcessPoolExecutor(
        count, get_context("spawn"), _start_worker, (benchmark, annotators)
    ) as pool:
        futures = [pool.submit(_work, fleet) for fleet in fleets]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_worker: tuple[Benchmark, Posteriors]  # what a worker process was started with


def _start_worker(benchmark: Benchmark, annotators: Posteriors) -> None:
    global _worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _worker = benchmark, annotators


def _end_with_parent() -> None:
    """End this process when the one that started it does, even by SIGKILL."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(fleet: list[list[Run]]) -> list[Result]:
    benchmark, annotators = _worker
    return benchmark.train(fleet, annotators)
