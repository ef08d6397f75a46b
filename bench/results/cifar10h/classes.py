"""Answers about pairs of CIFAR-10 images, from people's shares of the ten classes.

    python bench/results/cifar10h/classes.py DATA [--seeds 3]

DATA is a folder with cifar10.npz and cifar10h.npz. People's shares are the posteriors from which
`ClassesBenchmark` makes the answers of every method. The network reads the k-means features of
Coates, Lee and Ng (AISTATS 2011), learnt without labels from all 10,000 images and kept in the
folder local. Runs that classes.csv does not have are trained on the CPU and added to it: delete it
to train again. classes.txt is made from it each time; if no run is missing, DATA is not read.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch.nn import functional as F

from pairlearn.atomic import replacing
from pairlearn.randomness import permutation, stream
from pairlearn_bench.classes import ClassesBenchmark
from pairlearn_bench.data import Dataset, as_images, load, load_cifar10h
from pairlearn_bench.runs import CLASSES, Run

HERE = Path(__file__).parent
TABLE, SUMMARY = HERE / "classes.csv", HERE / "classes.txt"
FEATURES = HERE.parents[2] / "local" / "cifar10h-features.npy"
OF_ITEMS = ("true", "confidences", "labels", "label")
OF_PAIRS = ("all", "half", "half-hard", "proposed", "same", "same-hard")
METHODS, RIVAL = [f"classes-{name}" for name in OF_ITEMS + OF_PAIRS], "classes-confidences"
SIZES, STEPS, BATCH = (4000,), 160, 128
PATCH, CENTROIDS, SAMPLE = 6, 400, 500  # width of a patch; centroids; patches of 100 images


class People(ClassesBenchmark):
    """Images that people named, of which a random fifth is held out."""

    def rows(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows to learn from, and those held out."""
        order, cut = permutation(stream(seed, "split"), len(self.dataset.y)), 8000
        return order[:cut], order[cut:]


def patches(images: torch.Tensor) -> torch.Tensor:
    """All patches (n, places, values) of images, brought to one brightness and contrast."""
    found = F.unfold(images, PATCH).mT
    contrast = (found.var(-1, keepdim=True) + 10 / 255**2).sqrt()
    return (found - found.mean(-1, keepdim=True)) / contrast


def features(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """How near the patches in each quadrant of an image are to centroids of whitened patches."""
    parts, side = torch.from_numpy(images).split(100), images.shape[-1] - PATCH + 1
    sample = []
    for k, part in enumerate(parts):
        chosen = permutation(stream(k, "patches"), len(part) * side**2)[:SAMPLE]
        sample.append(patches(part).flatten(0, 1)[torch.from_numpy(chosen)])
    known = torch.cat(sample)
    mean = known.mean(0)
    values, axes = torch.linalg.eigh((known - mean).T.cov())
    white = axes / (values + 0.1).sqrt() @ axes.T
    clusters = KMeans(CENTROIDS, n_init=1, max_iter=30, random_state=0)
    clusters.fit(((known - mean) @ white).numpy())
    centroids = torch.from_numpy(clusters.cluster_centers_)
    pooled = []
    for part in parts:
        far = torch.cdist((patches(part) - mean) @ white, centroids)
        near = (far.mean(-1, keepdim=True) - far).clamp(min=0)
        maps = near.mT.reshape(len(part), CENTROIDS, side, side)
        pooled.append(F.adaptive_avg_pool2d(maps, 2).flatten(1))
    return torch.cat(pooled).numpy()


def benchmark(data: Path) -> tuple[People, NDArray[np.float64]]:
    """The images with their features, and people's shares of the classes."""
    cifar10 = load("cifar10", data, download=False)
    spec, test = cifar10.spec, slice(cifar10.spec.n_train, None)
    images = Dataset(replace(spec, n_train=0), cifar10.x[test], cifar10.y[test])
    if not FEATURES.exists():
        FEATURES.parent.mkdir(exist_ok=True)
        np.save(FEATURES, features(as_images(images.x, spec)))
    people = People(images, "mlp-bn", "cpu", "float32")
    people.features = np.load(FEATURES)
    counts = load_cifar10h(data).astype(np.float64)
    return people, counts / counts.sum(1, keepdims=True)


def wanted(seeds: int) -> Iterator[Run]:
    """All trainings; each takes the same number of steps."""
    for pairs in SIZES:
        settings = {"dataset": "cifar10h", "model": "mlp-bn", "batch_size": BATCH, "window": 1}
        settings |= {"pairs": pairs, "epochs": STEPS // -(-pairs // BATCH)}
        for seed, method in product(range(seeds), METHODS):
            yield Run(seed=seed, method=method, **settings)


def summary(found: dict[tuple[str, str, str], float], seeds: int) -> str:
    """Accuracies, and how far each method is from soft labels of the same images."""
    lines = []
    for pairs in map(str, SIZES):
        lines += [
            f"{pairs} pairs: accuracy on held-out images, mean and deviation of {seeds} seeds",
            "  method                   accuracy         less 2n soft labels (standard error)",
        ]
        rows = {m: np.array([found[m, pairs, str(s)] for s in range(seeds)]) for m in METHODS}
        for method, row in rows.items():
            line = f"  {CLASSES[method]:23}  {row.mean():.4f} ± {row.std(ddof=1):.4f}"
            if method != RIVAL:
                less = row - rows[RIVAL]
                line += f"  {less.mean():+.4f} ({less.std(ddof=1) / seeds**0.5:.4f})"
            lines.append(line)
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Train what is missing; write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    found = {}
    if TABLE.exists():
        rows = csv.reader(TABLE.read_text(encoding="utf-8").splitlines()[1:])
        found = {tuple(key): float(value) for *key, value in rows}
    runs = {(run.method, str(run.pairs), str(run.seed)): run for run in wanted(options.seeds)}
    if missing := runs.keys() - found.keys():
        if options.data is None:
            parser.error(f"{len(missing)} runs are missing: give the folder with the data")
        people, shares = benchmark(options.data)
    for key in sorted(missing, key=[*runs].index):
        start = time.process_time()
        ((_, measured),) = people.train([[runs[key]]], {(runs[key].seed, None): shares})
        found[key] = measured["stratified"]
        print(*key, found[key], f"{time.process_time() - start:.1f} s", flush=True)
        with replacing(TABLE) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("method", "pairs", "seed", "accuracy"))
            writer.writerows((*each, f"{value:.4f}") for each, value in found.items())
    text = summary(found, options.seeds)
    SUMMARY.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
