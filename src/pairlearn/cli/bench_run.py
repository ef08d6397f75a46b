"""``pairlearn bench run``: train what is missing, on this machine or on a cluster."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn import __version__
from pairlearn.cli.command import INTERRUPTED, REFUSED, Failed, Told, command
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.paper.grids import Selection
    from pairlearn.paper.runs import Run
    from pairlearn.paper.store import RunStore
    from pairlearn.paper.workers import Cluster

GridName = Literal["accuracy", "gamma", "limited", "robustness", "siblings"]
PLACES = ("grid", "store")


@dataclass(frozen=True)
class Chosen:
    """Runs of one experiment, and where they are kept: options of most commands.

    Parameters
    ----------
    grid
        The experiment.
    store
        File of finished runs. [default: runs/GRID.jsonl]
    datasets
        Data sets, separated by commas. [default: those of the paper]
    priors
        Class priors, separated by commas. [default: those of the paper]
    seeds
        How many seeds (5 is 0 to 4), or a range 3-5, or a list 0,2. [default: 5]
    epochs
        Epochs of every training. [default: those of the paper]
    methods
        Methods such as likelihood-abs, separated by commas. [default: all]
    model
        One of mlp, mlp-bn, linear, resnet34, resnet32. [default: by the data set]
    annotator
        One of paper, calibrated. [default: paper]
    images
        CIFAR-10's: proper, or published, mixed up as in the public code. [default: proper]
    """

    grid: Annotated[GridName, typer.Argument()]
    store: Path | None = None
    datasets: str | None = None
    priors: str | None = None
    seeds: str | None = None
    epochs: int | None = None
    methods: str | None = None
    model: str | None = None
    annotator: str | None = None
    images: str | None = None

    def selection(self) -> Selection:
        """Which runs of the experiment."""
        from pairlearn.paper.grids import Selection

        which = {name: value for name, value in vars(self).items() if name not in PLACES}
        return Selection.parse(**which)

    def runs(self) -> list[Run]:
        """The runs themselves; an error if there are none."""
        from pairlearn.paper.grids import GRIDS

        runs = self.selection().of(GRIDS[self.grid]).runs()
        if not runs:
            raise ValueError("nothing is chosen, or no method that is defined at a prior chosen")
        return runs

    def open_store(self) -> RunStore:
        """Where finished runs are kept."""
        from pairlearn.paper.store import RunStore

        return RunStore(self.store or Path("runs", f"{self.grid}.jsonl"))


@command("bench run", Chosen)
def run(
    chosen: Chosen,
    *,
    data: Annotated[Path | None, typer.Option(envvar="PAIRLEARN_DATA")] = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Literal["float32", "tf32", "bf16"] = "float32",
    cluster: str = "local",
    cluster_option: list[str] | None = None,
    checkpoint_seconds: Annotated[float, typer.Option(min=0)] = 60.0,
) -> Told:
    """Train what is not in the store yet; stop it at any time and start it again.

    Parameters
    ----------
    data
        Folder of data sets.
    device
        Where to train.
    precision
        Of the matrix products.
    cluster
        Who trains: local, ray, ray:HOST:PORT, ray:auto, slurm or slurm:local.
    cluster_option
        KEY=VALUE for the cluster, such as partition=gpu; may be repeated.
    checkpoint_seconds
        How often a fleet's state is kept.
    """
    from pairlearn.paper.workers import ClusterError, open_cluster

    wanted, kept = chosen.runs(), chosen.open_store()
    missing = kept.missing(wanted)
    trainer = open_cluster(cluster, cluster_option or (), kept.path.with_suffix(".jobs"))
    start, finished = time.monotonic(), 0
    options = {"data": data, "device": device, "precision": precision}
    if missing:
        try:
            finished = _train(missing, kept, trainer, checkpoint_seconds, among=wanted, **options)
        except ClusterError as error:
            raise Failed(error, REFUSED) from None
        except KeyboardInterrupt:
            where = f"interrupted: finished runs are in {kept.path}; the same command goes on"
            raise Failed(where, INTERRUPTED) from None
    report = {
        "grid": chosen.grid,
        "store": str(kept.path),
        "wanted": len(wanted),
        "found": len(wanted) - len(missing),
        "finished": finished,
        "seconds": round(time.monotonic() - start, 3),
    }
    text = "{finished} runs finished, {found} of {wanted} were there before: {store}"
    return Told(report, [text.format(**report)])


def _train(
    runs: list[Run], store: RunStore, cluster: Cluster, checkpoint_seconds: float, **options: Any
) -> int:
    """Run and keep the runs, and say how many were kept."""
    from pairlearn.paper.benchmark import Checkpoints
    from pairlearn.paper.execute import execute

    finished = 0
    folder = store.path.absolute().with_suffix(".checkpoints")
    with store, bar("starting") as progress, cluster:
        notes = {
            "device": cluster.device(options["device"]).partition(":")[0],
            "precision": options["precision"],
            "version": __version__,
        }
        results = execute(
            runs,
            progress=progress,
            cluster=cluster,
            checkpoints=Checkpoints(folder, checkpoint_seconds),
            **options,
        )
        # Closed before the cluster is: what is under way is cancelled there.
        with closing(results):
            for run, result in results:
                store.append(run, result, **notes)
                finished += 1
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return finished
