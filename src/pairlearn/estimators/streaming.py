"""Prediction of files of any size in constant memory."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairlearn.columns import shown
from pairlearn.tables import ItemTable, TableError, iter_items, open_rows

if TYPE_CHECKING:
    from pairlearn.estimators.prediction import PairPredictor

__all__ = ["Predicted", "feature_order", "log_odds", "predict_file"]

PathLike = str | os.PathLike[str]
NUMBERS = 1 << 20
"""Features that are in memory at a time."""


@dataclass(frozen=True)
class Predicted:
    """What `predict_file` wrote: how many rows, and how many of them positive."""

    rows: int
    positive: int


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

    Writes the columns ``id``, ``label`` (of `classes_`) and ``probability`` (of the
    positive class), in the order of the items. The file appears when it is complete.

    Parameters
    ----------
    classifier : PairClassifier
        Fitted.
    items, ids : path-like
        As in `pairlearn.tables.iter_items`. Features that have other places in this file
        than in training are found by their names.
    out : path-like
        The ``.csv`` or ``.parquet`` file.
    threshold : float
        Items whose probability is above it are called positive.
    progress : callable, optional
        Called with the number of rows done, again and again.

    Examples
    --------
    >>> import tempfile
    >>> from pairlearn.estimators import PairClassifier
    >>> from pairlearn.data.simulation import simulate
    >>> from pairlearn.tables import write_items
    >>> told = simulate(pairs=50)
    >>> classifier = PairClassifier(model="linear", epochs=1, random_state=0)
    >>> classifier = classifier.fit(told.items.features[told.pairs.ids()], told.pairs.labels())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_items(told.items, f"{folder}/items.csv")
    ...     predict_file(classifier, path, f"{folder}/predictions.csv").rows
    100
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must lie in (0, 1); got {threshold:g}")
    cut = math.log(threshold) - math.log1p(-threshold)
    batch_rows = min(max(NUMBERS // classifier.n_features_in_, 64), 65536)
    batches = iter_items(items, batch_rows, ids)
    positive = 0
    with open_rows(out, ["id", "label", "probability"]) as rows:
        for batch in batches:
            z = log_odds(classifier, batch, items)
            above = z > cut
            rows.write(
                {
                    "id": batch.ids,
                    "label": classifier.classes_[above.astype(np.intp)],
                    "probability": _sigmoid(z),
                }
            )
            positive += int(above.sum())
            if progress is not None:
                progress(rows.count)
    return Predicted(rows.count, positive)


def log_odds(classifier: PairPredictor, items: ItemTable, source: PathLike) -> NDArray[np.float64]:
    """Log-odds of items from a file, whatever the order of its features.

    Raises
    ------
    TableError
        If the features are not those of the training, or so far from them that the model
        overflows.
    """
    names = None if Path(source).suffix.lower() == ".npy" else items.names
    order = feature_order(classifier, names, len(items.names), source)
    features = items.features if order is None else items.features[:, order]
    ours = getattr(classifier, "feature_names_in_", None)
    given: Any = features
    if ours is not None:
        # Rows as ids: the true ones may recur, and need no looking up.
        given = ItemTable.trusted(np.arange(len(items)), features, [str(name) for name in ours])
    with np.errstate(over="ignore", invalid="ignore"):
        z = classifier.decision_function(given)
    bad = ~np.isfinite(z)
    if bad.any():
        row = int(bad.argmax())
        raise TableError(
            f"{source}: the item {shown(items.ids[row].item())} gets log-odds of {z[row]}: its "
            "features are far outside of those in training"
        )
    return z


def feature_order(
    classifier: PairPredictor, names: Sequence[str] | None, count: int, source: PathLike
) -> NDArray[np.intp] | None:
    """Where the model's features are in a file; None if they stand there as they should.

    Parameters
    ----------
    classifier : PairClassifier
        Fitted. If it knows no names, features are taken as they come.
    names : sequence of str, or None
        Of the features in the file; None for a file without names, whose features are
        taken as they come.
    count : int
        How many the file has.
    source : path-like
        The file, for messages.

    Raises
    ------
    TableError
        Naming the features that are missing or too many.
    """
    ours = getattr(classifier, "feature_names_in_", None)
    if names is None or ours is None:
        if count != classifier.n_features_in_:
            raise TableError(
                f"{source} has {count} features, and the model was fitted to "
                f"{classifier.n_features_in_}"
            )
        return None
    wanted = [str(name) for name in ours]
    missing, extra = set(wanted) - set(names), set(names) - set(wanted)
    if missing:
        raise TableError(f"{source} lacks {_listed(wanted, missing)} that the model was fitted to")
    if extra:
        which = "it" if len(extra) == 1 else "them"
        raise TableError(
            f"{source} has {_listed(names, extra)} that the model was not fitted to: drop {which}"
        )
    if wanted == list(names):
        return None
    place = {name: column for column, name in enumerate(names)}
    return np.array([place[name] for name in wanted], dtype=np.intp)


def _listed(names: Sequence[str], chosen: set[str]) -> str:
    found = [shown(name) for name in names if name in chosen]
    if len(found) == 1:
        return f"the feature {found[0]}"
    return f"{len(found)} features {', '.join(found[:5])}" + (", …" if len(found) > 5 else "")


def _sigmoid(z: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import expit

    return np.asarray(expit(z))
