"""Train the rows of the accuracy table on CIFAR-10, several networks on one GPU at once.

    python results/cifar10/train.py DATA STORE [--model resnet32] [--images published] [--seeds 1]
        [--methods all] [--priors 0.2,0.5,0.8] [--workers 8] [--epochs 200]

DATA is the folder of the data sets, STORE a file of finished runs that is added to. One small
network does not fill a GPU, so each of several processes trains one network after another; with
NVIDIA's multi-process service (MPS) their kernels overlap. Annotators are kept beside STORE and
trained once. Runs in STORE are not trained again.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from pairlearn import __version__
from pairlearn.atomic import replacing
from pairlearn.data import load
from pairlearn.paper import GRIDS, RunStore
from pairlearn.paper.benchmark import Benchmark
from pairlearn.paper.grids import Selection
from pairlearn.paper.runs import Run

# Those first that tell the networks apart; then what the tables have.
FIRST = ("supervised", "sconfconfdiff-abs", "confdiff-abs")


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--model", default="resnet32")
    parser.add_argument("--images", default="published", choices=("published", "proper"))
    parser.add_argument("--seeds", default="1", help="how many, or a range such as 1-2")
    parser.add_argument("--methods", default="all", help="names, separated by commas")
    parser.add_argument("--priors", default="0.2,0.5,0.8")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="bf16")
    options = parser.parse_args()
    store = RunStore(options.store)
    runs = store.missing(wanted(options))
    settings = (options.data, options.model, options.images, options.device, options.precision)
    notes = {"device": options.device, "precision": options.precision, "version": __version__}
    context = get_context("spawn")
    start = time.monotonic()
    with (
        store,
        ProcessPoolExecutor(
            options.workers, context, start_worker, (options.store, *settings)
        ) as pool,
    ):
        # First in the queue, since the runs wait for them.
        annotators = [pool.submit(annotate, seed) for seed in dict.fromkeys(r.seed for r in runs)]
        futures = [pool.submit(train, run) for run in runs]
        for annotator in as_completed(annotators):
            print(f"{time.monotonic() - start:7.1f} s: annotator {annotator.result()}", flush=True)
        for future in as_completed(futures):
            run, accuracies, seconds = future.result()
            store.append(run, accuracies, seconds=round(seconds, 1), **notes)
            print(
                f"{time.monotonic() - start:7.1f} s: {run.model} {run.prior} {run.method} seed "
                f"{run.seed}: {accuracies['paper']:.4f} in {seconds:.1f} s",
                flush=True,
            )


def wanted(options: argparse.Namespace) -> list[Run]:
    """The runs, seed by seed, the most telling methods first and the unbiased ones last."""
    selection = Selection.parse(
        "cifar10",
        options.priors,
        options.seeds,
        None if options.methods == "all" else options.methods,
        epochs=options.epochs,
        model=options.model,
        images=options.images,
    )
    runs = selection.of(GRIDS["accuracy"]).runs()

    def order(run: Run) -> tuple[int, bool, bool]:
        return run.seed, run.method not in FIRST, run.method.endswith("-none")

    return sorted(runs, key=order)


def start_worker(
    store: Path, data: Path, model: str, images: str, device: str, precision: str
) -> None:
    """Load the data that this process trains on."""
    global _benchmark, _annotators
    _benchmark = Benchmark(load("cifar10", data, images=images), model, device, precision)
    _annotators = store.with_suffix(".annotators")
    _annotators.mkdir(parents=True, exist_ok=True)


def annotate(seed: int) -> int:
    """Train the annotator of a seed and keep its posteriors."""
    path = kept(seed)
    if not path.exists():
        (posteriors,) = _benchmark.annotate([(seed, None)]).values()
        with replacing(path) as part, part.open("wb") as file:
            np.save(file, posteriors)
    return seed


def train(run: Run) -> tuple[Run, dict[str, float], float]:
    """Train one network once its annotator is there: its accuracies, and the seconds."""
    while not kept(run.seed).exists():
        time.sleep(0.2)
    posteriors = {(run.seed, None): np.load(kept(run.seed))}
    start = time.monotonic()
    ((_, accuracies),) = _benchmark.train([[run]], posteriors)
    return run, accuracies, time.monotonic() - start


def kept(seed: int) -> Path:
    """Where an annotator's posteriors are."""
    return _annotators / f"{_benchmark.model}-{_benchmark.dataset.spec.images}-{seed}.npy"


if __name__ == "__main__":
    main()
