"""Everything that `fit` is given, as instances and rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.estimators.rows import Rows, judged_rows, labelled_rows
from pairlearn.estimators.validation import (
    read_classes,
    read_instances,
    read_labels,
    read_pairs,
    read_preference,
    read_weight,
)

__all__ = ["Judgements", "Table", "read_table"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judgements:
    """What was said of each pair, as it came in: NaN or 0 where nothing was."""

    ends: NDArray[np.int64]
    similarity: Floats
    difference: Floats
    preference: Floats
    weight: Floats


@dataclass(frozen=True)
class Table:
    """Instances, the rows of judged pairs, and those of labelled instances.

    Attributes
    ----------
    features : array of shape (N, ...)
        Instances of the pairs, followed by the labelled ones.
    judgements : Judgements
        Pairs of weight zero are left out.
    judged, known : Rows
        Rows for training; `known` is None without labelled instances.
    positive : array of bool
        Classes of the labelled instances.
    classes : array of shape (2,)
        The negative and the positive class.
    names : array of str, optional
        Names of the features.
    """

    features: NDArray[Any]
    judgements: Judgements
    judged: Rows
    known: Rows | None
    positive: NDArray[np.bool_]
    classes: NDArray[Any]
    names: NDArray[Any] | None

    def all_rows(self, labelled_weight: float | str) -> Rows:
        """Judged and labelled rows, the latter with the share asked for.

        Judged rows have mean weight one. So have labelled ones with "auto": two labelled
        instances, each counting one half, beside one pair, whose likelihood is halved.
        """
        judged = self.judged.scaled(len(self.judged) / self.judged.weight.sum())
        if self.known is None:
            return judged
        known = self.known
        if not isinstance(labelled_weight, str):
            share = labelled_weight / (1 - labelled_weight)
            known = known.scaled(share * judged.weight.sum() / known.weight.sum())
        return Rows.concatenate([judged, known])

    def instance_weight(self) -> Floats:
        """How much each instance counts in the judged pairs: both ends of every row."""
        ends, both = self.judgements.ends.ravel(), np.repeat(self.judgements.weight, 2)
        weight = np.bincount(ends, both, minlength=len(self.features))
        return weight.astype(np.float64)


def read_table(
    pairs: Any,
    labels: Any,
    sample_weight: Any,
    preference: Any,
    labelled: tuple[Any, Any] | None,
    preprocessor: Any,
    seed: int,
) -> Table:
    """Check what `fit` is given and put it together."""
    found = read_pairs(pairs, preprocessor)
    n = len(found.ends)
    similarity, difference = read_labels(labels, n)
    preferred, weight = read_preference(preference, n), read_weight(sample_weight, n)
    silent = np.isnan(similarity) & np.isnan(difference) & (preferred == 0)
    if silent.any():
        raise ValueError(
            f"labels have neither similarity nor difference in row {int(silent.argmax())}, and "
            "there is no preference: drop pairs without any judgement"
        )
    kept: Any = slice(None) if weight.all() else weight > 0
    judgements = Judgements(
        *(column[kept] for column in (found.ends, similarity, difference, preferred, weight))
    )
    judged = judged_rows(
        judgements.ends,
        judgements.similarity,
        judgements.difference,
        judgements.preference,
        judgements.weight,
    )
    features, classes, known = found.features, np.array([-1, 1]), None
    positive = np.empty(0, np.bool_)
    if labelled is not None:
        x, y = _labelled_pair(labelled)
        instances, _ = read_instances("labelled instances", x, preprocessor)
        if instances.shape[1:] != features.shape[1:]:
            raise ValueError(
                f"labelled instances have shape {instances.shape[1:]} each, and those of the "
                f"pairs {features.shape[1:]}"
            )
        classes, positive = read_classes(y, len(instances))
        rows = np.arange(len(features), len(features) + len(instances))
        known = labelled_rows(rows, positive, seed)
        features = np.concatenate([features, instances])
    return Table(features, judgements, judged, known, positive, classes, found.names)


def _labelled_pair(labelled: Any) -> tuple[Any, Any]:
    if not isinstance(labelled, (tuple, list)) or len(labelled) != 2:
        raise ValueError("labelled must be (X, y): instances and their classes")
    return labelled[0], labelled[1]
