"""Simulated annotators: posteriors of a trained model, turned into judgements.

The paper's annotator is a network of the same architecture as the classifier,
trained for ten epochs on the whole labelled training split at its natural class
balance. Pairs sampled at another prior are then judged by the posteriors of another
population; the "calibrated" annotator is trained at the prior of the pairs instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pairlearn.columns import Indices
from pairlearn.labels import PairLabels
from pairlearn.randomness import normal, permutation, stream
from pairlearn.risks import Supervised
from pairlearn.training import Precision
from pairlearn_bench.data.sampling import sample_pairs
from pairlearn_bench.fleet import Fleet, Group, Member

__all__ = ["EPOCHS", "Annotator", "add_noise", "judge", "train_annotators"]

#: Epochs that the paper trains its annotator for.
EPOCHS = 10


@dataclass(frozen=True)
class Annotator:
    """What to train one annotator on: rows of the labelled training split and their classes.

    ``seed`` is that of the initial weights and the batches. With a ``prior`` it is trained at that
    class balance instead of the natural one.
    """

    rows: Any
    positive: Any
    seed: int
    prior: float | None = None


def train_annotators(
    features: Any,
    annotators: Sequence[Annotator],
    model: str = "mlp",
    *,
    epochs: int = EPOCHS,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-5,
    device: str = "auto",
    precision: Precision = "float32",
    progress: Callable[[int, float], None] | None = None,
) -> NDArray[np.float32]:
    """Train annotators together; posteriors (annotators, N), P(y=+1|x) of all instances by each.

    Each is an ordinary supervised training on as many instances as the others. It runs as pairs
    with known classes: a batch of 256 instances is one of 128 pairs. ``features`` (N, ...) are all
    instances, training and test; ``batch_size`` counts instances, and the rest is as in `Fleet`.

    Examples
    --------
    >>> x = np.linspace(-2, 2, 200, dtype=np.float32)[:, None]
    >>> rows = np.arange(200)
    >>> r = train_annotators(x, [Annotator(rows, x[:, 0] > 0, seed=0)], "linear",
    ...                      epochs=100, batch_size=50, learning_rate=0.05)
    >>> bool(r[0, 0] < 0.1 and r[0, -1] > 0.9)
    True
    """
    drawn = [_draw_pairs(annotator) for annotator in annotators]
    pairs = min(map(len, drawn))
    groups = []
    for annotator, ends in zip(annotators, drawn, strict=True):
        both = annotator.rows, annotator.positive
        rows, positive = (np.asarray(values)[ends[:pairs]] for values in both)
        member = Member(Supervised(), positive, learning_rate, weight_decay, annotator.seed)
        groups.append(Group(rows, [member], annotator.seed))
    fleet = Fleet(
        features,
        groups,
        model,
        batch_size=batch_size // 2,
        device=device,
        precision=precision,
        compiled=False,  # ten epochs do not repay what compiling takes
    )
    fleet.fit(epochs, progress=progress)
    posteriors: NDArray[np.float32] = (
        torch.sigmoid(fleet.logits(np.arange(len(features)))[:, 0]).float().cpu().numpy()
    )
    return posteriors


def judge(posteriors: Any, pairs: Any) -> PairLabels:
    """The judgements of pairs (n, 2) by an annotator with these posteriors.

    Examples
    --------
    >>> judge(np.array([0.9, 0.1]), np.array([[1, 0]]))
    PairLabels(n=1, similarity=[0.18], difference=[0.8])
    """
    ends = np.asarray(posteriors, dtype=np.float64)[np.asarray(pairs)]
    return PairLabels.from_posteriors(ends[:, 0], ends[:, 1])


def add_noise(labels: PairLabels, sigma: float, seed: int) -> PairLabels:
    """Multiply every judgement by a factor drawn from N(1, σ²); nothing is clipped.

    Examples
    --------
    >>> add_noise(PairLabels([0.5], [0.0]), sigma=0.1, seed=0)
    PairLabels(n=1, similarity=[0.4707], difference=[0.])
    """
    if not 0 <= sigma < np.inf:
        raise ValueError(f"sigma must be a finite number of at least 0; got {sigma}")
    draws = normal(stream(seed, "label noise"), 2 * len(labels))
    factors = 1 + sigma * draws.reshape(2, len(labels))
    return PairLabels(labels.similarity * factors[0], labels.difference * factors[1], noisy=True)


def _draw_pairs(annotator: Annotator) -> Indices:
    """Positions of all instances in pairs (n, 2), or of as many as there are at the prior."""
    positive, prior, seed = np.asarray(annotator.positive), annotator.prior, annotator.seed
    if prior is None:
        order = permutation(stream(seed, "annotator"), len(positive))
        return order[: len(order) // 2 * 2].reshape(2, -1).T
    count = int(positive.sum())
    n = int(min(count / prior, (len(positive) - count) / (1 - prior)) - 1) // 2
    return sample_pairs(positive, n, prior, seed)
