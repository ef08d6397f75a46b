"""``pairlearn bench run``: train what is missing, on this machine or on a cluster."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pairlearn import __version__
from pairlearn.cli.options import JsonOption, with_options
from pairlearn.cli.refusals import refusing
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.paper.grids import Selection
    from pairlearn.paper.runs import Run
    from pairlearn.paper.store import RunStore
    from pairlearn.paper.workers import Cluster
    from pairlearn.training import Precision

__all__ = ["Chosen", "GridName", "run"]


class GridName(StrEnum):
    """The experiments."""

    accuracy = "accuracy"
    gamma = "gamma"
    limited = "limited"
    robustness = "robustness"


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


@dataclass(frozen=True)
class Chosen:
    """Runs of one experiment, and where they are kept: options of most commands."""

    grid: Annotated[GridName, typer.Argument(help="The experiment.")]
    store: Annotated[
        Path | None, typer.Option(help="File of finished runs; runs/GRID.jsonl if not given.")
    ] = None
    datasets: Annotated[str | None, typer.Option(help="Data sets, separated by commas.")] = None
    priors: Annotated[str | None, typer.Option(help="Class priors, separated by commas.")] = None
    seeds: Annotated[
        str | None,
        typer.Option(help="How many seeds (5 is 0 to 4), or a range 3-5, or a list 0,2."),
    ] = None
    epochs: Annotated[int | None, typer.Option(help="Epochs of every training.")] = None
    methods: Annotated[
        str | None, typer.Option(help="Methods such as likelihood-abs, separated by commas.")
    ] = None
    model: Annotated[
        str | None, typer.Option(help="One of mlp, mlp-bn, linear, resnet34, resnet32.")
    ] = None
    annotator: Annotated[str | None, typer.Option(help="One of paper, calibrated.")] = None
    images: Annotated[
        str | None,
        typer.Option(help="CIFAR-10's: proper, or published, mixed up as in the public code."),
    ] = None

    def selection(self) -> Selection:
        """Which runs of the experiment."""
        from pairlearn.paper.grids import Selection

        return Selection.parse(
            self.datasets,
            self.priors,
            self.seeds,
            self.methods,
            epochs=self.epochs,
            model=self.model,
            annotator=self.annotator,
            images=self.images,
        )

    def runs(self) -> list[Run]:
        """The runs themselves; an error if there are none."""
        from pairlearn.paper.grids import GRIDS

        runs = self.selection().of(GRIDS[self.grid.value]).runs()
        if not runs:
            raise ValueError("nothing is chosen, or no method that is defined at a prior chosen")
        return runs

    def open_store(self) -> RunStore:
        """Where finished runs are kept."""
        from pairlearn.paper.store import RunStore

        return RunStore(self.store or Path("runs", f"{self.grid.value}.jsonl"))


@with_options(Chosen)
def run(
    chosen: Chosen,
    data: Annotated[
        Path | None, typer.Option(envvar="PAIRLEARN_DATA", help="Folder of data sets.")
    ] = None,
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
    from pairlearn.paper.workers import open_cluster

    with refusing("bench run", ValueError):
        wanted = chosen.runs()
        kept = chosen.open_store()
        missing = kept.missing(wanted)
        trainer = open_cluster(cluster, cluster_option or (), kept.path.with_suffix(".jobs"))
    start = time.monotonic()
    options = (data, device.value, precision.value, checkpoint_seconds)
    with refusing("bench run", ImportError):
        finished = _train(missing, wanted, kept, trainer, *options) if missing else 0
    report = {
        "grid": chosen.grid.value,
        "store": str(kept.path),
        "wanted": len(wanted),
        "found": len(wanted) - len(missing),
        "finished": finished,
        "seconds": round(time.monotonic() - start, 3),
    }
    text = "{finished} runs finished, {found} of {wanted} were there before: {store}"
    typer.echo(json.dumps(report) if as_json else text.format(**report))


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
    from pairlearn.data import DatasetCorruptError, DatasetNotFoundError
    from pairlearn.paper.benchmark import Checkpoints
    from pairlearn.paper.execute import execute
    from pairlearn.paper.runs import StoreError
    from pairlearn.paper.workers import ClusterError
    from pairlearn.training import CheckpointError

    expected = (
        *(ClusterError, CheckpointError, StoreError, NotADirectoryError),
        *(DatasetNotFoundError, DatasetCorruptError),
    )
    finished = 0
    folder = store.path.absolute().with_suffix(".checkpoints")
    with refusing("bench run", *expected), store, bar("starting") as progress, cluster:
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
