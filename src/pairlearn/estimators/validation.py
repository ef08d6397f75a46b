"""Reading what `fit` and `predict` are given; bad input never trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlearn import kinds
from pairlearn.columns import placed
from pairlearn.estimators.seen import same_rows
from pairlearn.labels import PairLabels
from pairlearn.tables import PairTable

__all__ = [
    "Instances",
    "look_up",
    "read_classes",
    "read_instances",
    "read_labels",
    "read_pairs",
    "read_preference",
    "read_weight",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Instances:
    """Instances (N, ...), and pairs (n, 2) of their rows.

    Attributes
    ----------
    recur : bool
        Whether some instance is in several pairs.
    names : array of str, optional
        Names of the features.
    ids : array of shape (N,), optional
        What the instances are called.
    """

    features: NDArray[Any]
    ends: NDArray[np.int64]
    recur: bool
    names: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None

    @property
    def items(self) -> NDArray[np.int64] | None:
        """The instances in each pair, where that makes pairs dependent."""
        return self.ends if self.recur else None


def read_pairs(pairs: Any, preprocessor: Any = None) -> Instances:
    """Instances of pairs (n, 2, d, ...), or of (n, 2) ids that a preprocessor knows.

    Equal features are the same instance, which makes pairs dependent as an id would.

    Examples
    --------
    >>> found = read_pairs([[5, 7], [7, 9]], preprocessor=np.arange(20.0).reshape(10, 2))
    >>> found.features[:, 0].tolist(), found.ends.tolist(), found.recur
    ([10.0, 14.0, 18.0], [[0, 1], [1, 2]], True)
    """
    _refuse_sparse("pairs", pairs)
    array = np.asarray(pairs)
    if array.ndim < 2 or array.shape[1] != 2:
        raise ValueError(
            "pairs must have shape (n, 2, d, ...), or (n, 2) with ids and a preprocessor; "
            f"got {array.shape}"
        )
    if not len(array):
        raise ValueError("pairs is empty: there is nothing to learn from")
    if array.ndim > 2:
        array = _numbers("pairs", array)
        _refuse_missing("pairs", array)
        features = array.reshape(-1, *array.shape[2:])
        first, which = same_rows(features)
        recur = len(first) < len(features)
        return Instances(features[first] if recur else features, which.reshape(-1, 2), recur)
    if preprocessor is None:
        raise ValueError(
            f"pairs of shape {array.shape} are ids and need a preprocessor that knows their "
            "features: an array whose rows they are, a table with an index, or a function"
        )
    ids, ends = np.unique(array, return_inverse=True)
    features, names = look_up(preprocessor, ids)
    recur = len(ids) < array.size
    return Instances(features, ends.reshape(-1, 2).astype(np.int64), recur, names, ids)


def read_instances(
    name: str, x: Any, preprocessor: Any = None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Instances (m, d, ...) as they are, or those of ids (m,), and the features' names."""
    _refuse_sparse(name, x)
    if hasattr(x, "ids") and hasattr(x, "features"):
        return look_up(x, np.asarray(x.ids))
    array = np.asarray(x)
    if array.ndim == 1 and preprocessor is not None:
        return look_up(preprocessor, array)
    if array.ndim < 2:
        raise ValueError(f"{name} must have shape (m, d, ...); got {array.shape}")
    array = _numbers(name, array)
    _refuse_missing(name, array)
    return array, None


def look_up(preprocessor: Any, ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Features (m, d, ...) of ids (m,), and the features' names if there are any.

    Parameters
    ----------
    preprocessor : array, table or callable
        An array, whose rows the ids are; a data frame with the ids as index; a table with
        `ids` and `features`; or a function from ids (m,) to features (m, ...).
    ids : array of shape (m,)
        Distinct or not.
    """
    names = None
    if hasattr(preprocessor, "iloc"):
        rows = preprocessor.index.get_indexer(ids)
        _refuse_unknown(ids, rows < 0, "index of the preprocessor")
        features, names = preprocessor.to_numpy()[rows], np.asarray(preprocessor.columns)
    elif hasattr(preprocessor, "ids") and hasattr(preprocessor, "features"):
        known = np.asarray(preprocessor.ids)
        order = np.argsort(known, kind="stable")
        rows = order[np.searchsorted(known, ids, sorter=order).clip(max=len(known) - 1)]
        _refuse_unknown(ids, known[rows] != ids, "ids of the preprocessor")
        features = np.asarray(preprocessor.features)[rows]
        given = getattr(preprocessor, "names", None)
        names = None if given is None else np.asarray(given, dtype=object)
    elif callable(preprocessor):
        features = np.asarray(preprocessor(ids))
        if features.ndim < 2 or len(features) != len(ids):
            raise ValueError(
                f"preprocessor must give features (m, d, ...) of m ids; for {len(ids)} ids it "
                f"gave an array of shape {features.shape}"
            )
    else:
        features = _rows_of(np.asarray(preprocessor), ids)
    features = _numbers("features of the preprocessor", features)
    _refuse_missing("features of the preprocessor", features, ids)
    named = names is not None and all(isinstance(name, str) for name in names)
    return features, names if named else None


def _rows_of(array: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    if array.ndim < 2:
        raise ValueError(f"preprocessor must have shape (m, d, ...); got {array.shape}")
    if ids.dtype.kind not in "iu":
        raise ValueError(
            f"ids of type {ids.dtype} cannot be rows of an array: give whole numbers, or a "
            "preprocessor with an index"
        )
    _refuse_unknown(ids, (ids < 0) | (ids >= len(array)), f"{len(array)} rows of the preprocessor")
    rows: NDArray[Any] = array[ids]
    return rows


def read_labels(labels: Any, n: int) -> tuple[Floats, Floats]:
    """Similarity and difference of n pairs, NaN where not given.

    An array (n, 2) or a `PairTable` may have rows without either (a preference may stand
    for them). Values outside the ranges are refused in an array; in a table or in
    `PairLabels` they were checked, or noise was admitted.
    """
    if labels is None:
        return np.full(n, np.nan), np.full(n, np.nan)
    if isinstance(labels, (list, tuple)) and labels and isinstance(labels[0], PairLabels):
        labels = PairLabels.concatenate(labels)  # scikit-learn takes rows one by one
    if isinstance(labels, PairTable):
        similarity, difference = labels.similarity, labels.difference
    elif not isinstance(labels, PairLabels):
        array = _numbers("labels", np.asarray(labels))
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(
                "labels must be PairLabels or have shape (n, 2), columns similarity and "
                f"difference; got {array.shape}"
            )
        empty = np.isnan(array).all(1)
        # PairLabels checks the ranges; what is empty is checked with the preferences.
        columns = np.where(empty[:, None], 0.0, array)
        checked = PairLabels.from_array(columns)
        similarity, difference = (
            np.where(empty, np.nan, column) for column in (checked.similarity, checked.difference)
        )
    else:
        told = labels.to_array()
        told = np.asarray(told.cpu() if hasattr(told, "cpu") else told)
        similarity, difference = told.T
    _same_length("labels", len(similarity), n)
    return similarity.astype(np.float64), difference.astype(np.float64)


def read_preference(preference: Any, n: int) -> Floats:
    """−1 where the left one is more positive, +1 the right one, NaN where none is given.

    Examples
    --------
    >>> read_preference(["left", None, "right"], 3)
    array([-1., nan,  1.])
    """
    if preference is None:
        return np.full(n, np.nan)
    array = np.asarray(preference)
    _same_length("preference", len(array) if array.ndim else 0, n)
    with placed(lambda row: f"row {row}"):
        return kinds.columns()["preference"].read(array)


def read_weight(sample_weight: Any, n: int) -> Floats:
    """Weights of n pairs, one each if none are given."""
    if sample_weight is None:
        return np.ones(n)
    weight = _numbers("sample_weight", np.asarray(sample_weight)).astype(np.float64)
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have shape (n,); got {weight.shape}")
    _same_length("sample_weight", len(weight), n)
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"sample_weight must be finite and at least 0; row {row} is {weight[row]:g}"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every pair: there is nothing to learn from")
    return weight


def read_classes(y: Any, n: int, positive: Any = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The two classes, the positive one last, and which instances are positive.

    Of two numbers the larger one is positive unless `positive` says otherwise; of other
    classes nothing but `positive` tells.

    Examples
    --------
    >>> classes, which = read_classes(["ham", "spam", "ham"], 3, positive="ham")
    >>> classes.tolist(), which.tolist()
    (['spam', 'ham'], [True, False, True])
    """
    array = np.asarray(y)
    if array.shape != (n,):
        raise ValueError(
            f"labelled classes must have shape ({n},), one for each instance; got {array.shape}"
        )
    missing = array != array
    if np.any(missing):
        raise ValueError(f"labelled classes are missing (NaN) in row {int(missing.argmax())}")
    classes = np.unique(array)
    if len(classes) > 2:
        raise ValueError(f"labelled classes must be two; got {classes[:5].tolist()}")
    if len(classes) < 2:
        for usual in (np.array([-1, 1]), np.array([0, 1])):
            if array.dtype.kind in "iufb" and classes[0] in usual:
                classes = usual
                break
        else:
            raise ValueError(
                f"labelled classes are all {classes[0]!r}: give instances of both classes, or "
                "call the classes -1 and 1"
            )
    if positive is None:
        if array.dtype.kind not in "iufb":
            one, other = classes.tolist()
            raise ValueError(
                f"labelled classes are {one!r} and {other!r}: say which one is positive, as in "
                f"positive={other!r}"
            )
    elif positive not in classes.tolist():
        raise ValueError(
            f"positive is {positive!r}, and the labelled classes are {classes.tolist()}"
        )
    elif positive == classes[0]:
        classes = classes[::-1].copy()
    return classes, array == classes[1]


def _refuse_sparse(name: str, values: Any) -> None:
    if hasattr(values, "toarray") and hasattr(values, "tocsr"):
        raise TypeError(f"{name} is sparse, and dense data is required: use .toarray()")


def _numbers(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Real numbers in an array; objects and text only if they are numbers."""
    if values.dtype.kind in "fiub":
        return values
    try:
        if values.dtype.kind == "c":
            raise ValueError("complex numbers")
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from None


def _refuse_missing(name: str, values: NDArray[Any], ids: NDArray[Any] | None = None) -> None:
    if values.dtype.kind != "f":
        return
    # One sum tells of any NaN or infinity, short of an overflow, which is then looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    wrong = ~np.isfinite(values.reshape(len(values), -1)).all(1)
    if wrong.any():
        row = int(wrong.argmax())
        which = f"row {row}" if ids is None else f"the row of id {_plain_id(ids, row)!r}"
        raise ValueError(f"{name} hold NaN or infinity in {which}: fill them in, or drop the row")


def _refuse_unknown(ids: NDArray[Any], unknown: NDArray[np.bool_], where: str) -> None:
    if unknown.any():
        one = _plain_id(ids, int(unknown.argmax()))
        raise ValueError(f"id {one!r} is not among the {where}")


def _plain_id(ids: NDArray[Any], row: int) -> Any:
    return ids[row : row + 1].tolist()[0]


def _same_length(name: str, length: int, n: int) -> None:
    if length != n:
        raise ValueError(f"{name} has {length} rows and pairs has {n}: they need the same length")
