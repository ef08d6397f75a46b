"""Predictions from file to file, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from pairlearn.columns import Floats, check_share, quote
from pairlearn.estimators.prediction import PairPredictor
from pairlearn.io import ItemTable, TableError, iter_items, open_rows
from pairlearn.io.pairs import PathLike

#: Features predicted at a time: 4 MiB.
NUMBERS = 1 << 20


@dataclass(frozen=True)
class Predicted:
    """Rows that `predict_file` wrote, how many are of each class, and notes."""

    rows: int
    counts: tuple[int, ...]
    notes: tuple[str, ...] = ()


def predict_file(
    classifier: PairPredictor,
    items: PathLike,
    out: PathLike,
    *,
    ids: PathLike | None = None,
    threshold: float = 0.5,
    progress: Callable[[int], None] | None = None,
) -> Predicted:
    """Predict a table of items from file to file.

    Writes the columns ``id``, ``label`` (of `classes_`) and ``probability`` (of the positive
    class), in the order of the items; with more than two classes ``probability_NAME`` of each. The
    file appears when it is complete.

    Parameters
    ----------
    classifier : PairClassifier
        Fitted.
    items, ids : path-like
        As in `pairlearn.io.iter_items`. Columns are found by their names; those that the
        model was not fitted to are left out with a note.
    out : path-like
        The ``.csv`` or ``.parquet`` file.
    threshold : float
        Items with a higher probability are called positive.
    progress : callable, optional
        Called repeatedly with the number of rows done.
    """
    check_share("threshold", threshold)
    cut, classes = logit(threshold), classifier.classes_
    several = len(classes) > 2
    if several and threshold != 0.5:
        raise ValueError(f"threshold is for two classes, and there are {len(classes)}")
    names = [f"probability_{name}" for name in classes] if several else ["probability"]
    batch_rows = min(max(NUMBERS // math.prod(classifier.instance_shape_), 64), 65536)
    batches = iter_items(items, batch_rows, ids, columns=classifier.columns())
    counts, notes = np.zeros(len(classes), np.int64), tuple[str, ...]()
    with open_rows(out, ["id", "label", *names]) as rows:
        for batch in batches:
            z = item_log_odds(classifier, batch, items)
            chosen = z.argmax(1) if several else (z > cut).astype(np.intp)
            p = dict(zip(names, expit(z).reshape(len(z), -1).T, strict=True))
            rows.write({"id": batch.ids, "label": classes[chosen], **p})
            counts, notes = counts + np.bincount(chosen, minlength=len(classes)), batch.notes
            if progress is not None:
                progress(rows.count)
    return Predicted(rows.count, tuple(counts.tolist()), notes)


def item_log_odds(classifier: PairPredictor, items: ItemTable, source: PathLike) -> Floats:
    """Log-odds of items from a file that was read with the columns of the classifier.

    Raises TableError if the number of features is not that of training, or the model overflows.
    """
    wanted = math.prod(classifier.instance_shape_)
    if items.features.shape[1] != wanted:
        raise TableError(
            f"{source} has {items.features.shape[1]} features, and the model was fitted to {wanted}"
        )
    return classifier.finite_log_odds(
        items.features.reshape(-1, *classifier.instance_shape_),
        lambda row: f"{source}: the item {quote(items.ids[row].item())}",
    )
