"""How often intervals from people's answers hold the accuracy on images that are in no pair.

    python bench/results/cifar10h/coverage.py DATA > bench/results/cifar10h/coverage.txt

DATA is a folder with cifar10.npz and cifar10h.npz.
The networks are those of `run.py` with 120 epochs, by their stored outputs for held-out images. In
each random split, half of these images are paired, each once, and judged by people's shares (soft)
or by what one person takes each image for (hard). The other images are in no pair: some are
labelled, and the rest tells the accuracy, by true classes or as people see it. It has a sampling
error of its own, which is added to the interval: half the width becomes √(half² + (1.96 se)²).
Networks of one seed and one split of the classes share their held-out images, so a standard error
is that of the mean over these nine groups.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from run import LOGITS, SORTS, SPLITS, Cell, parts, trained

from pairlearn import PairLabels
from pairlearn.evaluation import Estimate, estimate_accuracy

LABELS = (30, 100, 300)


def holds(estimate: Estimate, right: np.ndarray) -> bool:
    """Whether an interval holds an accuracy that is itself a mean over images."""
    truth, error = right.mean(), 1.96 * right.std() / len(right) ** 0.5
    half = np.hypot([estimate.value - estimate.low, estimate.high - estimate.value], error)
    return bool(estimate.value - half[0] <= truth <= estimate.value + half[1])


def tables(
    cell: Cell, z: np.ndarray, classes: np.ndarray, counts: np.ndarray, splits: int
) -> Iterator[tuple[str, bool, float]]:
    """Rows (what, holds, width) of all random splits of one network's held-out images."""
    _, held = parts(cell.split, cell.seed, classes, counts)
    rng = np.random.default_rng([cell.seed, list(SPLITS).index(cell.split)])
    for _ in range(splits):
        order = rng.permutation(len(z))
        cut = len(z) // 4 * 2
        pairs, others = order[:cut].reshape(-1, 2), order[cut:]
        seen = np.where(z > 0, held.share, 1 - held.share)
        right = ((z > 0) == held.positive).astype(float)
        for sort in SORTS:
            r = held.share[pairs]
            r = r if sort == "soft" else (rng.random(r.shape) < r).astype(float)
            labels = PairLabels.from_posteriors(*r.T)
            ends = *z[pairs].T, labels
            estimate = estimate_accuracy(*ends)
            for name, part in (("informed", estimate.informed), ("bracket", estimate)):
                width = part.high - part.low
                yield f"{sort}, {name}, by true classes", holds(part, right[others]), width
                yield f"{sort}, {name}, as people see it", holds(part, seen[others]), width
        for count in LABELS:  # the answers do not matter to these
            known, rest = others[:count], others[count:]
            powered = estimate_accuracy(*ends, labelled=(z[known], held.positive[known]))
            width = powered.high - powered.low
            yield f"{count} labels, by true classes", holds(powered, right[rest]), width


def main() -> None:
    """Print the coverage over all networks, and for each split of the classes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=100)
    args = parser.parse_args()
    with np.load(args.data / "cifar10.npz") as file:
        classes = file["y_test"]
    with np.load(args.data / "cifar10h.npz") as file:
        counts = file["counts"]
    found: dict[str, dict[Cell, list[tuple[bool, float]]]] = defaultdict(lambda: defaultdict(list))
    cells = {cell: z for cell, z in trained(LOGITS).items() if cell.epochs == 120}
    for cell, z in cells.items():
        for what, held, width in tables(cell, z.astype(float), classes, counts, args.splits):
            found[what][cell].append((held, width))
    print(f"{len(cells)} networks, {args.splits} random splits of the held-out images of each")
    print(f"{'':42} holds (se)       width  " + "  ".join(f"{name:>7}" for name in SPLITS))
    for what, by_cell in found.items():
        shares = {cell: np.mean([held for held, _ in rows]) for cell, rows in by_cell.items()}
        by_images = defaultdict(list)
        for cell, share in shares.items():
            by_images[cell.split, cell.seed].append(share)
        every = np.array([np.mean(some) for some in by_images.values()])
        width = np.mean([width for rows in by_cell.values() for _, width in rows])
        groups = [np.mean([v for c, v in shares.items() if c.split == name]) for name in SPLITS]
        error = every.std(ddof=1) / len(every) ** 0.5
        print(f"{what:42} {every.mean():.3f} ({error:.3f})  {width:.3f}  "
              + "  ".join(f"{share:7.3f}" for share in groups))  # fmt: skip


if __name__ == "__main__":
    main()
