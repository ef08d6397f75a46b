"""``pairlearn bench run``: train what is missing."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairlearn import __version__
from pairlearn.cli.command import INTERRUPTED, Failed, Told, command
from pairlearn.progress import bar

if TYPE_CHECKING:
    from pairlearn.paper.grids import Selection
    from pairlearn.paper.runs import Record, Run
    from pairlearn.paper.store import RunStore

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
        File of finished runs; to read, also a folder of such files, or their export to
        Parquet. [default: runs/GRID.jsonl]
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
        One of mlp, mlp-bn, mlp-small, linear, resnet34, resnet32. [default: by the data set]
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

        return RunStore(self._path())

    def records(self) -> list[Record]:
        """The finished runs of the experiment that are chosen, of one file or of several."""
        from pairlearn.paper.grids import GRIDS
        from pairlearn.paper.store import read_sources

        path = self._path()
        if path.is_dir() or path.suffix == ".parquet":
            found = [r for s in read_sources([path]) if s.grid == self.grid for r in s.records]
        else:
            found = list(self.open_store())
        return self.selection().records(GRIDS[self.grid], found)

    def _path(self) -> Path:
        return self.store or Path("runs", f"{self.grid}.jsonl")


@command("bench run", Chosen)
def run(
    chosen: Chosen,
    *,
    data: Annotated[Path | None, typer.Option(envvar="PAIRLEARN_DATA")] = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Literal["float32", "tf32", "bf16"] = "float32",
    workers: Annotated[int | None, typer.Option(min=1)] = None,
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
    workers
        Processes on a CPU. [default: one a core]
    checkpoint_seconds
        How often a fleet's state is kept.
    """
    wanted, kept = chosen.runs(), chosen.open_store()
    missing = kept.missing(wanted)
    start, finished = time.monotonic(), 0
    options = {"data": data, "device": device, "precision": precision, "workers": workers}
    if missing:
        try:
            finished = _train(missing, kept, checkpoint_seconds, among=wanted, **options)
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


def _train(runs: list[Run], store: RunStore, checkpoint_seconds: float, **options: Any) -> int:
    """Run and keep the runs, and say how many were kept."""
    from pairlearn.paper.benchmark import Checkpoints
    from pairlearn.paper.execute import execute
    from pairlearn.training import choose_device

    finished = 0
    folder = store.path.absolute().with_suffix(".checkpoints")
    notes = {
        "device": choose_device(options["device"]).type,
        "precision": options["precision"],
        "version": __version__,
    }
    with store, bar("starting") as progress:
        checkpoints = Checkpoints(folder, checkpoint_seconds)
        results = execute(runs, progress=progress, checkpoints=checkpoints, **options)
        # Closed before the store is: what is under way is cancelled.
        with closing(results):
            for run, result in results:
                store.append(run, result, **notes)
                finished += 1
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return finished
