"""From runs to trained models: which runs train together, where, and how they did.

Runs of one data set that share architecture, number of pairs and epochs form fleets.
Within a fleet a group is one (prior, seed): the same pairs, the same batches. On CUDA
a fleet is as large as the device's memory allows; on a CPU, where stacking gains
nothing, small fleets run side by side. A cluster does the training: processes of this
machine, or the workers of Ray or Slurm.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from pairlearn.data import load
from pairlearn.experiments.clusters.benchmark import (
    Benchmark,
    Checkpoints,
    Inputs,
    PlannedFleet,
    Posteriors,
    Result,
    train_annotator_batch,
    train_fleet,
)
from pairlearn.experiments.clusters.interface import Cluster
from pairlearn.experiments.clusters.planning import MEMBERS_ON_CPU as MEMBERS_ON_CPU
from pairlearn.experiments.clusters.planning import grouped, largest_fleet
from pairlearn.experiments.clusters.planning import plan_fleets as plan_fleets
from pairlearn.experiments.clusters.processes import Processes
from pairlearn.experiments.spec import Run
from pairlearn.risks import Supervised, make_risk
from pairlearn.training import Precision

__all__ = ["MEMBERS_ON_CPU", "Checkpoints", "execute", "plan_fleets"]

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
    cluster: Cluster | None = None,
    checkpoints: Checkpoints | None = None,
) -> Generator[Result, None, None]:
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
        As in `Fleet`; "auto" is what the cluster has.
    progress : callable, optional
        Called with epochs × models done, their total, and what is being trained.
    workers : int, optional
        Processes on a CPU; by default one a core. One trains in this process.
    cluster : Cluster, optional
        Where to train, entered already; by default processes of this machine.
    checkpoints : Checkpoints, optional
        Where fleets keep their state from time to time; one that was interrupted goes on.

    Yields
    ------
    (Run, dict)
        Accuracies, means over the run's window: "paper" and "stratified" on the two
        test subsets, "annotator_paper" and "annotator_stratified" of the annotator; and
        all four with "_shifted", where log-odds are moved from the class prior of the
        annotator's population to that of the pairs.
    """
    cluster = cluster or Processes(workers)
    device = cluster.device(device)
    # Runs that differ in what their risk does not read are trained once.
    alike = grouped(runs, _as_trained)
    among = list(grouped(among or runs, _as_trained))
    sets = grouped(among, lambda run: (run.dataset, run.model, run.images))
    asked = {key: set(members).intersection(alike) for key, members in sets.items()}
    bar = _Bar(progress, sum(run.epochs for chosen in asked.values() for run in chosen))
    for (name, model, images), members in sets.items():
        chosen = asked[name, model, images]
        if not chosen:
            continue
        mixed = images == "published"
        dataset = load(name, data, images="published") if mixed else load(name, data)
        benchmark = Benchmark(dataset, model, device, precision)
        report = bar.report if progress is not None else None
        inputs = Inputs(benchmark, report=report, checkpoints=checkpoints)
        fleets = plan_fleets(members, largest_fleet(cluster, inputs, members))
        fleets = [fleet for fleet in fleets if chosen.intersection(_runs_of(fleet))]
        trained_runs = [run for fleet in fleets for run in _runs_of(fleet)]
        # What trains in the company of what is asked for trains again.
        bar.total += sum(run.epochs for run in trained_runs) - sum(run.epochs for run in chosen)
        bar.say(f"{name}: annotators")
        # On CUDA annotators train together, so all of them do; on a CPU each alone.
        judged = trained_runs if device == "cpu" else members
        inputs = replace(inputs, posteriors=_annotate(cluster, inputs, judged))
        with closing(cluster.run(train_fleet, inputs, fleets)) as finished:
            for results in finished:
                bar.advance(sum(run.epochs for run, _ in results), name)
                for trained, accuracies in results:
                    yield from ((run, dict(accuracies)) for run in alike.get(trained, []))


def _annotate(cluster: Cluster, inputs: Inputs, runs: Sequence[Run]) -> Posteriors:
    """Posteriors of every annotator that the runs ask for."""
    batches = inputs.benchmark.annotator_batches(runs)
    posteriors: Posteriors = {}
    for found in cluster.run(train_annotator_batch, inputs, batches):
        posteriors |= found
    return posteriors


@dataclass
class _Bar:
    """How far the grid is, in epochs × models."""

    progress: Progress | None
    total: int
    done: int = 0

    def say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total, text)

    def advance(self, epochs: int, text: str) -> None:
        self.done += epochs
        self.say(text)

    def report(self, fleet: PlannedFleet, epoch: int, risk: float) -> None:
        """After an epoch of a fleet that trains in this process, one at a time."""
        if self.progress is not None:
            models = len(_runs_of(fleet))
            text = f"{fleet[0][0].dataset}: {models} models, mean risk {risk:.3f}"
            self.progress(self.done + epoch * models, self.total, text)


def _runs_of(fleet: PlannedFleet) -> list[Run]:
    return [run for group in fleet for run in group]


def _as_trained(run: Run) -> Run:
    """The run with ε = 1 or σ = 0 where its risk reads neither prior nor judgements."""
    risk = make_risk(run.method, prior=run.estimator_prior)
    if isinstance(risk, Supervised):
        return replace(run, prior_factor=1.0, label_noise=0.0)
    return run if hasattr(risk, "prior") else replace(run, prior_factor=1.0)
