"""Outputs of a classifier beside what was said about the same pairs, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import columns_of, numbers, weights_of
from pairlearn.dependence import Dependence
from pairlearn.labels import PairLabels

__all__ = ["JudgedPairs", "check_confidence", "check_prior"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgedPairs:
    """n pairs with both outputs and one judgement at least; NaN is "not given".

    Weights are scaled to a mean of one. Judgements are noisy if no posteriors produce some.
    """

    z: Floats
    z_prime: Floats
    similarity: Floats
    difference: Floats
    weight: Floats
    dependence: Dependence
    noisy: bool

    @classmethod
    def of(
        cls,
        logits: Any,
        logits_prime: Any,
        labels: PairLabels,
        weight: Any,
        items: Any,
        names: tuple[str, str] = ("logits", "logits_prime"),
    ) -> JudgedPairs:
        """Check the arguments that every function of this room has in common."""
        if not isinstance(labels, PairLabels):
            raise ValueError(
                f"labels must be PairLabels; got {type(labels).__name__}: "
                "use PairLabels.from_array for an (n, 2) array"
            )
        n = len(labels)
        if n < 2:
            raise ValueError(f"labels have {n} pairs: an estimate needs two")
        z, z_prime = (
            columns_of(name, values, n)
            for name, values in zip(names, (logits, logits_prime), strict=True)
        )
        told = numbers(labels.to_array())
        neither = np.isnan(told).all(1)
        if neither.any():
            row = int(neither.argmax())
            raise ValueError(f"labels have no judgement in row {row}: drop such pairs")
        dependence = Dependence.of(items, n)
        noisy = not bool(labels.feasible().all())
        return cls(z, z_prime, told[:, 0], told[:, 1], weights_of(weight, n), dependence, noisy)

    def __len__(self) -> int:
        return len(self.z)

    @property
    def has_similarity(self) -> NDArray[np.bool_]:
        """Rows with a similarity."""
        return ~np.isnan(self.similarity)

    @property
    def has_difference(self) -> NDArray[np.bool_]:
        """Rows with a difference."""
        return ~np.isnan(self.difference)

    @property
    def effective_ends(self) -> float:
        """Independent instances of equal weight that these pairs are worth."""
        return self.dependence.effective_ends(self.weight)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1)."""
    if not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")


def check_prior(prior: float | None) -> None:
    """Refuse a prior outside (0, 1)."""
    if prior is not None and not 0 < prior < 1:
        raise ValueError(f"prior must lie in (0, 1); got {prior}")
