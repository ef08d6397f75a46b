"""Everything that `fit` is given, as instances and a table of judgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.estimators.seen import fingerprints
from pairlearn.estimators.validation import (
    read_classes,
    read_instances,
    read_labels,
    read_pairs,
    read_preference,
    read_weight,
)
from pairlearn.judgements import Judgements

__all__ = ["Table", "read_table"]

CLASSES = np.array([-1, 1])


@dataclass(frozen=True)
class Table:
    """Instances, and what was said of them.

    Attributes
    ----------
    features : array of shape (N, ...)
        Instances of the pairs, followed by the labelled ones.
    judged : Judgements
        Statements about pairs; rows of weight zero are left out.
    known : Judgements or None
        Labels of instances.
    classes : array of shape (2,)
        The negative and the positive class.
    names : array of str, optional
        Names of the features.
    ids : array of shape (N,), optional
        What the instances are called; "" where that is not known.
    """

    features: NDArray[Any]
    judged: Judgements
    known: Judgements | None
    classes: NDArray[Any]
    names: NDArray[Any] | None
    ids: NDArray[np.str_] | None = None

    def fingerprints(self) -> NDArray[np.int64]:
        """By which the instances that something was said of are recognised later."""
        parts = [self.judged] if self.known is None else [self.judged, self.known]
        used = np.unique(np.concatenate([part.ends[part.ends >= 0] for part in parts]))
        return fingerprints(self.features[used], None if self.ids is None else self.ids[used])

    def rows(self, labelled_weight: float | str) -> Judgements:
        """All statements, labels with the share asked for.

        Judged rows have mean weight one. So has each label with "auto": it counts one half,
        as one pair does, whose likelihood is halved.
        """
        judged = self.judged.scaled(len(self.judged) / self.judged.weight.sum())
        if self.known is None:
            return judged
        known = self.known
        if not isinstance(labelled_weight, str):
            share = labelled_weight / (1 - labelled_weight)
            known = known.scaled(share * judged.weight.sum() / (known.weight.sum() / 2))
        return Judgements.concatenate([judged, known])


def read_table(
    pairs: Any,
    labels: Any,
    sample_weight: Any,
    preference: Any,
    labelled: tuple[Any, Any] | None,
    preprocessor: Any,
    annotator: Any = None,
    positive: Any = None,
) -> Table:
    """Check what `fit` is given and put it together."""
    if isinstance(labels, Judgements):
        return _of_judgements(pairs, labels, preprocessor, labelled, positive)
    found = read_pairs(pairs, preprocessor)
    n = len(found.ends)
    similarity, difference = read_labels(labels, n)
    preferred, weight = read_preference(preference, n), read_weight(sample_weight, n)
    silent = np.isnan(similarity) & np.isnan(difference) & np.isnan(preferred)
    if silent.any():
        raise ValueError(
            f"labels have neither similarity nor difference in row {int(silent.argmax())}, and "
            "there is no preference: drop pairs without any judgement"
        )
    columns = {"similarity": similarity, "difference": difference, "preference": preferred}
    judged = Judgements.from_columns(found.ends, columns, weight, annotator)
    table = Table(found.features, judged, None, CLASSES, found.names, _text(found.ids))
    return _with_labels(table, labelled, preprocessor, positive)


def _of_judgements(
    pairs: Any,
    said: Judgements,
    preprocessor: Any,
    labelled: tuple[Any, Any] | None,
    positive: Any,
) -> Table:
    """Of statements, and the items that they are about.

    `pairs` are the items themselves (N, d, ...), to which the statements refer; or, row by
    row, the pairs (n, 2, d, ...), or the ids (n, 2) that the preprocessor knows; without
    them the statements refer to ids.
    """
    names = known = None
    if preprocessor is not None:
        ids = said.ends if pairs is None else np.asarray(pairs)
        if len(ids) != len(said):
            raise ValueError(f"pairs has {len(ids)} rows and labels has {len(said)}")
        used = ids[~(said.ends < 0)]
        known, place = np.unique(used, return_inverse=True)
        features, names = read_instances("pairs", known, preprocessor)
        ends = np.full(said.ends.shape, -1, np.int64)
        ends[~(said.ends < 0)] = place
    elif np.ndim(pairs) > 2 and np.shape(pairs)[:2] == (len(said), 2):
        found = read_pairs(pairs)
        features = found.features
        ends = np.where(said.ends < 0, -1, found.ends)
    else:
        features, names = read_instances("pairs", pairs)
        ends = said.ends
        if ends.size and ends.max() >= len(features):
            raise ValueError(
                f"labels are about item {ends.max()}, and pairs has {len(features)} items"
            )
    said = Judgements(ends, said.kind, said.values, said.weight, said.annotator)
    table = Table(features, said, None, CLASSES, names, _text(known))
    return _with_labels(table, labelled, preprocessor, positive)


def _text(ids: NDArray[Any] | None) -> NDArray[np.str_] | None:
    return None if ids is None else ids.astype(np.str_)


def _with_labels(
    table: Table, labelled: tuple[Any, Any] | None, preprocessor: Any, positive: Any
) -> Table:
    """The same table without rows of weight zero, and with the instances of known class."""
    features, judged, ids = table.features, table.judged, table.ids
    if not judged.weight.all():
        judged = judged[judged.weight > 0]
    classes, known = table.classes, None
    if judged.single.any() and not judged.single.all():
        known, judged = judged[judged.single], judged[~judged.single]
    if labelled is not None:
        if not isinstance(labelled, (tuple, list)) or len(labelled) != 2:
            raise ValueError("labelled must be (X, y): instances and their classes")
        x, y = labelled
        instances, _ = read_instances("labelled instances", x, preprocessor)
        if instances.shape[1:] != features.shape[1:]:
            raise ValueError(
                f"labelled instances have shape {instances.shape[1:]} each, and those of the "
                f"pairs {features.shape[1:]}"
            )
        classes, of_positive = read_classes(y, len(instances), positive)
        rows = np.arange(len(features), len(features) + len(instances))
        told = Judgements.about_items("label", rows, of_positive)
        known = told if known is None else Judgements.concatenate([known, told])
        features = np.concatenate([features, instances])
        if ids is not None:
            named = np.asarray(x).astype(np.str_) if np.ndim(x) == 1 else [""] * len(instances)
            ids = np.concatenate([ids, named])
    elif positive is not None:
        raise ValueError("positive is a class of labelled, which is not given")
    return Table(features, judged, known, classes, table.names, ids)
