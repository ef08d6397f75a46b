"""``pairlearn bench run``: train what is missing, on this machine or on a cluster."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pairlearn import __version__
from pairlearn.cli.bench_options import (
    AnnotatorOption,
    DatasetsOption,
    EpochsOption,
    GridArgument,
    JsonOption,
    MethodsOption,
    ModelOption,
    PriorsOption,
    SeedsOption,
    StoreOption,
    plain_errors,
    runs_of,
    store_of,
)
from pairlearn.data.errors import DatasetCorruptError, DatasetNotFoundError, DownloadFailedError
from pairlearn.experiments.grids import GRIDS
from pairlearn.experiments.records import StoreError
from pairlearn.experiments.selection import Selection
from pairlearn.experiments.spec import Run
from pairlearn.experiments.store import RunStore
from pairlearn.training import CheckpointError

if TYPE_CHECKING:
    from pairlearn.experiments.clusters import Cluster
    from pairlearn.training import Precision

__all__ = ["run"]

Progress = Callable[[int, int, str], None]


class Device(StrEnum):
    """Where to train."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class PrecisionName(StrEnum):
    """Of the matrix products."""

    float32 = "float32"
    tf32 = "tf32"
    bf16 = "bf16"


def run(
    grid: GridArgument,
    store: StoreOption = None,
    data: Annotated[
        Path | None, typer.Option(envvar="PAIRLEARN_DATA", help="Folder of data sets.")
    ] = None,
    datasets: DatasetsOption = None,
    priors: PriorsOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    methods: MethodsOption = None,
    model: ModelOption = None,
    annotator: AnnotatorOption = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.auto,
    precision: Annotated[
        PrecisionName, typer.Option(help="Of the matrix products.")
    ] = PrecisionName.float32,
    cluster: Annotated[
        str,
        typer.Option(help="Who trains: local, ray, ray:HOST:PORT, ray:auto, slurm or slurm:local."),
    ] = "local",
    cluster_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE for the cluster, such as partition=gpu; may be repeated."),
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(help="How often a fleet's state is kept.", min=0)
    ] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Train what is not in the store yet; stop it at any time and start it again."""
    from pairlearn.experiments.clusters import open_cluster

    with plain_errors(ValueError):
        selection = Selection.parse(
            datasets, priors, seeds, methods, epochs=epochs, model=model, annotator=annotator
        )
        wanted = runs_of(selection.of(GRIDS[grid.value]))
        kept = store_of(store, grid)
        missing = kept.missing(wanted)
        trainer = open_cluster(cluster, cluster_option or (), kept.path.with_suffix(".jobs"))
    start = time.monotonic()
    with plain_errors(*_TRAINING_ERRORS):
        finished = _train(
            missing,
            wanted,
            kept,
            trainer,
            data,
            device.value,
            precision.value,
            checkpoint_seconds,
        )
    report = {
        "grid": grid.value,
        "store": str(kept.path),
        "wanted": len(wanted),
        "found": len(wanted) - len(missing),
        "finished": finished,
        "seconds": round(time.monotonic() - start, 3),
    }
    text = "{finished} runs finished, {found} of {wanted} were there before: {store}"
    typer.echo(json.dumps(report) if as_json else text.format(**report))


_TRAINING_ERRORS = (
    StoreError,
    CheckpointError,
    DatasetNotFoundError,
    DatasetCorruptError,
    DownloadFailedError,
    NotADirectoryError,
    ImportError,
)


def _train(
    runs: list[Run],
    among: list[Run],
    store: RunStore,
    cluster: Cluster,
    data: Path | None,
    device: str,
    precision: str,
    checkpoint_seconds: float,
) -> int:
    """Run and keep the runs, and say how many were kept."""
    if not runs:
        return 0
    from pairlearn.experiments.clusters import ClusterError
    from pairlearn.experiments.execute import Checkpoints, execute

    finished = 0
    folder = store.path.absolute().with_suffix(".checkpoints")
    with plain_errors(ClusterError), store, _progress_bar() as progress, cluster:
        notes = {
            "device": cluster.device(device).partition(":")[0],
            "precision": precision,
            "version": __version__,
        }
        results = execute(
            runs,
            among=among,
            data=data,
            device=device,
            precision=cast("Precision", precision),
            progress=progress,
            cluster=cluster,
            checkpoints=Checkpoints(folder, checkpoint_seconds),
        )
        # Closed before the cluster is: what is under way is cancelled there.
        with closing(results):
            for run, result in results:
                store.append(run, result, **notes)
                finished += 1
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return finished


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """One bar with the time that is left; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def update(done: int, total: int, text: str) -> None:
            bars.update(task, completed=done, total=total, description=text)

        yield update
