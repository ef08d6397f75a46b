"""Pairs of CIFAR-10 images judged from what people said: train on them, measure without labels.

    python bench/results/cifar10h/run.py DATA [--seeds 3] [--workers 8] [--device cuda]

DATA is a folder with cifar10.npz and cifar10h.npz (how many of about 51 people chose each class
for each test image). Networks that logits.npz does not have yet are trained, several at once, and
their outputs for the held-out images added to it: delete it to train again. accuracy.csv and
summary.txt are made from it each time, which needs no GPU where nothing has to be trained.
"""

from __future__ import annotations

import argparse
import csv
import gc
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, pstdev, stdev

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from pairlearn import PairClassifier, PairLabels, TrainingOptions
from pairlearn.atomic import replacing
from pairlearn.judgements import Judgements
from pairlearn.models import ResNet
from pairlearn_bench.data import as_images, load, load_cifar10h

HERE = Path(__file__).parent
LOGITS, TABLE, SUMMARY = (HERE / name for name in ("logits.npz", "accuracy.csv", "summary.txt"))
EPOCHS = (120, 20)  # an image is in two pairs, so that it is seen twice in each
BATCH = 160  # divides the pairs of all splits
RISKS = ("likelihood-abs", "sconfconfdiff-abs", "confdiff-abs", "sconf-abs")
SORTS = ("soft", "hard")
KINDS = [
    *((risk, sort) for risk in RISKS for sort in SORTS),
    ("supervised", "classes"),
    ("supervised", "shares"),
]


@dataclass(frozen=True)
class Split:
    """Original classes in two groups; images of other classes are left out."""

    title: str
    positive: tuple[int, ...]
    negative: tuple[int, ...]


SPLITS = {
    "animals": Split("animals against vehicles", (2, 3, 4, 5, 6, 7), (0, 1, 8, 9)),
    "pets": Split("cat, dog against bird, deer, frog, horse", (3, 5), (2, 4, 6, 7)),
    "three": Split("bird, cat, deer against dog, frog, horse", (2, 3, 4), (5, 6, 7)),
}


@dataclass(frozen=True, order=True)
class Cell:
    """One training: `answers` is "soft", "hard", "classes" or "shares"."""

    epochs: int
    seed: int
    split: str
    method: str
    answers: str

    def __str__(self) -> str:
        return f"{self.split} {self.method} {self.answers} {self.seed} {self.epochs}"

    @classmethod
    def parse(cls, name: str) -> Cell:
        """The cell with this name, as `str` writes it."""
        split, method, answers, seed, epochs = name.split()
        return cls(int(epochs), int(seed), split, method, answers)


@dataclass(frozen=True)
class Part:
    """Images for training or held out, in random order, and pairs of each with the next.

    Attributes
    ----------
    rows : array of shape (m,)
        Rows of the test set of CIFAR-10.
    positive : array of bool, shape (m,)
        True classes.
    share : array of shape (m,)
        People who chose a class of the positive group, among those of either group.
    pairs : array of shape (m, 2)
        Positions in `rows`: every image is left once and right once.
    answered : array of bool, shape (m, 2)
        For each pair, whether one person takes either image for a positive one.
    """

    rows: NDArray[np.int64]
    positive: NDArray[np.bool_]
    share: NDArray[np.float64]
    pairs: NDArray[np.int64]
    answered: NDArray[np.bool_]

    def judged(self, answers: str) -> PairLabels:
        """Soft: by all people's shares. Hard: by what one person for each pair takes them for."""
        r = self.share[self.pairs] if answers == "soft" else self.answered.astype(float)
        return PairLabels.from_posteriors(r[:, 0], r[:, 1])


def parts(
    name: str, seed: int, classes: NDArray[np.uint8], counts: NDArray[np.uint8]
) -> tuple[Part, Part]:
    """The training and the held-out images of a split: four fifths and one fifth."""
    split = SPLITS[name]
    rng = np.random.default_rng([seed, list(SPLITS).index(name)])
    rows = rng.permutation(np.flatnonzero(np.isin(classes, split.positive + split.negative)))
    for_positive, for_negative = (
        counts[:, list(group)].sum(1, dtype=np.float64)
        for group in (split.positive, split.negative)
    )
    cut = len(rows) * 4 // 5
    both = []
    for chosen in (rows[:cut], rows[cut:]):
        share = for_positive[chosen] / (for_positive + for_negative)[chosen]
        order = np.arange(len(chosen))
        pairs = np.stack([order, np.roll(order, -1)], 1)
        answered = rng.random(pairs.shape) < share[pairs]
        positive = np.isin(classes[chosen], split.positive)
        both.append(Part(chosen, positive, share, pairs, answered))
    return both[0], both[1]


class Augmented(nn.Module):
    """A network that sees every training image mirrored or not, and moved by up to 4 pixels."""

    def __init__(self, network: nn.Module, moved: int = 4) -> None:
        super().__init__()
        self.network, self.moved = network, moved

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images (n, channels, height, width)."""
        return self.network(self.changed(x) if self.training else x)

    def changed(self, x: Tensor) -> Tensor:
        """The images with a random shift and reflection."""
        n, channels, *size = x.shape
        x = torch.where(torch.rand(n, 1, 1, 1, device=x.device) < 0.5, x, x.flip(-1))
        x = F.pad(x, (self.moved,) * 4)
        down, right = (
            torch.arange(length, device=x.device)
            + torch.randint(2 * self.moved + 1, (n, 1), device=x.device)
            for length in size
        )
        image = torch.arange(n, device=x.device).view(n, 1, 1, 1)
        channel = torch.arange(channels, device=x.device).view(1, channels, 1, 1)
        return x[image, channel, down.view(n, 1, -1, 1), right.view(n, 1, 1, -1)]


def make_network(channels: int, height: int, width: int) -> nn.Module:
    """A residual network of ten layers."""
    return Augmented(ResNet(channels, ((64, 1), (128, 1), (256, 1), (512, 1))))


def train(
    cell: Cell,
    images: NDArray[np.float32],
    part: Part,
    held_out: Part,
    *,
    device: str,
) -> NDArray[np.float32]:
    """Train one network: its log-odds of the held-out images."""
    supervised = cell.method == "supervised"
    if supervised:
        known = part.positive if cell.answers == "classes" else part.share
        # As often as in the pairs, so that all train for as many steps.
        items = part.pairs.ravel()
        judgements = Judgements.about_items("label", items, known.astype(float)[items])
    else:
        judgements = Judgements.from_pairs(part.pairs, part.judged(cell.answers))
    classifier = PairClassifier(
        risk="likelihood-abs" if supervised else cell.method,
        prior="estimate" if cell.method == "likelihood-abs" or supervised else part.share.mean(),
        model=make_network,
        epochs=cell.epochs,
        training=TrainingOptions(
            learning_rate=1e-3, schedule="cosine", batch_size=BATCH, device=device
        ),
        random_state=cell.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that people's answers imply another prior
        classifier.fit(images[part.rows], judgements)
    return classifier.decision_function(images[held_out.rows]).astype(np.float32)


def wanted(seeds: int) -> list[Cell]:
    """All trainings; the long ones of the likelihood and of supervised learning only."""
    return [
        Cell(epochs, seed, split, method, answers)
        for epochs in EPOCHS
        for seed in range(seeds)
        for method, answers in KINDS
        for split in SPLITS
        # Classes of equal size leave Sconf without an estimator.
        if (split, method) != ("three", "sconf-abs")
        and (epochs == min(EPOCHS) or method in ("likelihood-abs", "supervised"))
    ]


def start_worker(data: Path, device: str) -> None:
    """Load the data that this process trains on."""
    global _images, _classes, _counts, _device
    torch.set_num_threads(1)
    _images, _classes, _counts = people(data)
    _device = device
    torch.zeros(1, device=device)  # if the device fails, it fails here and not in every training


def people(data: Path) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint8]]:
    """The test images of CIFAR-10, their classes, and people's labels."""
    cifar10 = load("cifar10", data, download=False)
    test = slice(cifar10.spec.n_train, None)
    return as_images(cifar10.x[test], cifar10.spec), cifar10.y[test], load_cifar10h(data)


def work(cell: Cell) -> tuple[Cell, NDArray[np.float32], float]:
    """Train one network in a process that has the data."""
    start = time.monotonic()
    part, held_out = parts(cell.split, cell.seed, _classes, _counts)
    logits = train(cell, _images, part, held_out, device=_device)
    # The recorded step and its fleet refer to each other, and keep their memory until then.
    gc.collect()
    torch.cuda.empty_cache()
    return cell, logits, time.monotonic() - start


def trained(path: Path) -> dict[Cell, NDArray[np.float32]]:
    """The stored outputs for held-out images."""
    if not path.exists():
        return {}
    with np.load(path) as archive:
        return {Cell.parse(name): archive[name] for name in archive.files}


def rows_of(
    logits: dict[Cell, NDArray[np.float32]],
    classes: NDArray[np.uint8],
    counts: NDArray[np.uint8],
) -> Iterator[dict[str, float | str]]:
    """Accuracy of every network on held-out images."""
    for cell, z in sorted(logits.items()):
        _, held_out = parts(cell.split, cell.seed, classes, counts)
        chosen = z > 0
        row: dict[str, float | str] = {
            "epochs": cell.epochs,
            "split": cell.split,
            "method": cell.method,
            "answers": cell.answers,
            "seed": cell.seed,
            "accuracy": float(np.mean(chosen == held_out.positive)),
            "accuracy_by_shares": float(
                np.where(chosen, held_out.share, 1 - held_out.share).mean()
            ),
        }
        yield row


def summary(rows: list[dict[str, float | str]]) -> str:
    """Everything that is quoted from these runs."""
    lines = []
    seeds = len({row["seed"] for row in rows})

    def of(*cell: int | str) -> list[dict[str, float | str]]:
        names = ("epochs", "split", "method", "answers")
        return [row for row in rows if tuple(row[name] for name in names) == cell]

    for epochs, split in product(EPOCHS, SPLITS):
        best = [row["accuracy"] for row in of(epochs, split, "supervised", "classes")]
        lines += [
            f"{SPLITS[split].title}, {epochs} epochs: accuracy on held-out images, mean and "
            f"standard deviation of {seeds} seeds",
            "  method             answers   accuracy        less supervised (standard error)",
        ]
        for method, answers in KINDS:
            accuracies = [row["accuracy"] for row in of(epochs, split, method, answers)]
            if not accuracies:
                continue
            line = f"  {method:18} {answers:8} {fmean(accuracies):.4f} ± {pstdev(accuracies):.4f}"
            if (method, answers) != ("supervised", "classes") and len(accuracies) == len(best) > 1:
                less = [a - b for a, b in zip(accuracies, best, strict=True)]
                line += f"   {fmean(less):+.4f} ({stdev(less) / len(less) ** 0.5:.4f})"
            lines.append(line)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Train what is missing; write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    logits = trained(LOGITS)
    missing = [cell for cell in wanted(options.seeds) if cell not in logits]
    if missing:
        start = time.monotonic()
        settings = (options.data, options.device)
        with ProcessPoolExecutor(
            options.workers, get_context("spawn"), start_worker, settings
        ) as pool:
            futures = {pool.submit(work, cell): cell for cell in missing}
            for future in as_completed(futures):
                if error := future.exception():
                    print(f"{futures[future]} failed: {error!r}", flush=True)
                    continue
                cell, z, seconds = future.result()
                logits[cell] = z
                with replacing(LOGITS) as part, part.open("wb") as file:
                    np.savez_compressed(file, **{str(key): logits[key] for key in sorted(logits)})
                print(f"{time.monotonic() - start:6.1f} s: {cell} in {seconds:.1f} s", flush=True)
    _, classes, counts = people(options.data)
    rows = list(rows_of(logits, classes, counts))
    with replacing(TABLE) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    with replacing(SUMMARY) as part:
        part.write_text(summary(rows), encoding="utf-8")
    print(summary(rows), end="")


if __name__ == "__main__":
    main()
